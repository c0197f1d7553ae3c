import { describe, expect, it } from "vitest";
import { rowsOf, termOf } from "../src/views/groups";
import { repositoryOf, shortOf } from "../src/views/images";
import { progressOf } from "../src/views/rollouts";

describe("groups", () => {
  it("lead to their rows by a term that means the value", () => {
    expect(termOf("spec.nodeName", "n1")).toBe("spec.nodeName=n1");
    expect(termOf("spec.nodeName", null)).toBe("!spec.nodeName");
    expect(termOf("metadata.labels['a.b/c']", "x,y=\\z")).toBe("metadata.labels['a.b/c']=x\\,y\\=\\\\z");
    expect(termOf("spec.replicas", 3)).toBe("spec.replicas=3");
  });
});

describe("rows of a group", () => {
  it("are asked for besides what is asked already", () => {
    expect(rowsOf("a.b", "x", { fieldSelector: "c=d", filter: "true" })).toEqual({ fieldSelector: "c=d,a.b=x" });
    expect(rowsOf("health()", "bad", {})).toEqual({ filter: 'health(object) == "bad"' });
    expect(rowsOf("healthReason()", null, { filter: "a || b" })).toEqual({ filter: '(a || b) && healthReason(object) == ""' });
  });
});

describe("images", () => {
  it("are one repository in all their versions", () => {
    for (const image of ["registry.example:5000/shop/cart", "registry.example:5000/shop/cart:v1.2", "registry.example:5000/shop/cart@sha256:0a", "registry.example:5000/shop/cart:v1@sha256:0a"]) {
      expect(repositoryOf(image)).toBe("registry.example:5000/shop/cart");
    }
    expect(repositoryOf("nginx:1")).toBe("nginx");
    expect(repositoryOf("nginx")).toBe("nginx");
    expect(["registry.example:5000/shop/cart", "localhost:5000/cart", "shop/cart", "nginx"].map(shortOf)).toEqual(["shop/cart", "cart", "shop/cart", "nginx"]);
  });
});

describe("progress of a rollout", () => {
  const metadata = { name: "x" };
  it("is what is updated and what serves, of what is wanted", () => {
    expect(progressOf({ kind: "Deployment", metadata, spec: { replicas: 9 }, status: { updatedReplicas: 4, availableReplicas: 8 } })).toEqual({ wanted: 9, updated: 4, available: 8 });
    expect(progressOf({ kind: "StatefulSet", metadata, spec: {}, status: { availableReplicas: 1 } })).toEqual({ wanted: 1, updated: 0, available: 1 });
    expect(progressOf({ kind: "DaemonSet", metadata, status: { desiredNumberScheduled: 12, updatedNumberScheduled: 3, numberAvailable: 2 } })).toEqual({ wanted: 12, updated: 3, available: 2 });
    expect(progressOf({ kind: "Deployment", metadata, spec: { replicas: 2 } })).toEqual({ wanted: 2, updated: 0, available: 0 });
  });
});
