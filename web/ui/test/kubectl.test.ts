import { describe, expect, it } from "vitest";
import { kubectlOf } from "../src/kubectl";
import type { Resource } from "../src/resources";

const r = (name: string, namespaced = true, more: Partial<Resource> = {}) => ({ name, namespaced, kind: "X", ...more }) as Resource;
const page = "http://informerd.example/at/?view=objects";
const of = (list: Resource[], selection: Parameters<typeof kubectlOf>[1]) => {
  const k = kubectlOf(list, selection, page);
  return k.command || "none: " + k.why;
};

describe("kubectlOf", () => {
  it("asks the API server for what it can", () => {
    expect(of([r("pods")], {})).toBe("kubectl get pods -A");
    expect(of([r("nodes", false)], {})).toBe("kubectl get nodes");
    expect(of([r("pods")], { namespace: ["a"], labelSelector: "app in (x, y)" })).toBe("kubectl get pods -n a '--selector=app in (x, y)'");
    expect(of([r("pods")], { fieldSelector: "status.phase notin (Running,Succeeded)" })).toBe("kubectl get pods -A '--field-selector=status.phase!=Running,status.phase!=Succeeded'");
    expect(of([r("pods")], { fieldSelector: "spec.nodeName=n1,status.phase in (Failed)" })).toBe("kubectl get pods -A --field-selector=spec.nodeName=n1,status.phase=Failed");
    expect(of([r("deployments.apps"), r("services")], { fieldSelector: "metadata.name==cart" })).toBe("kubectl get deployments.apps,services -A --field-selector=metadata.name=cart");
  });
  it("quotes whatever a shell would read otherwise", () => {
    expect(of([r("pods")], { labelSelector: "!legacy", namespace: ["a;b"] })).toBe("kubectl get pods -n 'a;b' '--selector=!legacy'");
  });
  it("asks one namespace after the other, and never all instead of some", () => {
    expect(of([r("pods"), r("nodes", false)], { namespace: ["a", "b"] })).toBe("kubectl get pods -n a\nkubectl get pods -n b");
    expect(of([r("pods")], { namespace: ["team-*"] })).toBe("none: kubectl takes no patterns for namespaces: team-*");
    expect(of([r("nodes", false)], { namespace: ["a"] })).toMatch(/^none: /);
  });
  it("asks informerd for fields that the API server does not select by", () => {
    expect(of([r("pods")], { fieldSelector: "spec.containers[*].image=web:1" })).toBe("kubectl --server http://informerd.example/at get pods -A '--field-selector=spec.containers[*].image=web:1'");
    expect(of([r("deployments.apps")], { fieldSelector: "spec.replicas!=0" })).toBe("kubectl --server http://informerd.example/at get deployments.apps -A '--field-selector=spec.replicas!=0'");
  });
  it("says what cannot be said", () => {
    expect(of([r("pods")], { filter: "true" })).toBe("none: kubectl knows no CEL");
    expect(of([r("pods")], { fieldSelector: "status.phase in (Running,Failed)" })).toBe("none: kubectl cannot ask for any of several values: status.phase in (Running,Failed)");
    expect(of([r("pods")], { fieldSelector: "metadata.deletionTimestamp" })).toBe("none: kubectl cannot ask whether there is a field: metadata.deletionTimestamp");
  });
});
