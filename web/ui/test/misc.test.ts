import { execFileSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { ApiError } from "../src/api";
import { bytes, duration, quantity, rate, seconds } from "../src/format";
import { headingOf, sectionOf } from "../src/places";
import { asPatterns, find, held, match, type Resource } from "../src/resources";
import { href, params, query, search, view } from "../src/route";
import { rankKind } from "../src/views/palette";
import { curlOf, kubectlGet, quoteShell } from "../src/shell";
import { csvOf } from "../src/views/share-menu";
import { ageColumn, nameColumn } from "../src/table/columns";

describe("format", () => {
  it("writes ages as kubectl does", () => {
    expect([0, 119, 120, 312, 599, 600, 10799, 10800, 11040, 28800, 172799, 172800, 183600, 691200, 63071999, 63072000].map((s) => duration(s * 1000))).toEqual(
      ["0s", "119s", "2m", "5m12s", "9m59s", "10m", "179m", "3h", "3h4m", "8h", "47h", "2d", "2d3h", "8d", "729d", "2y"]);
  });
  it("writes sizes and rates", () => {
    expect([0, 999, 1000, 99949, 999499, 999500, 1e9].map(bytes)).toEqual(["0 B", "999 B", "1.0 KB", "99.9 KB", "999 KB", "1.0 MB", "1.0 GB"]);
    expect([0, 0.04, 0.5, 12.4, 1234].map(rate)).toEqual(["0", "0", "0.5", "12", "1,234"]);
    expect([0.34, 12, 100, 7200].map(seconds)).toEqual(["0.3 s", "12 s", "2 min", "2 h"]);
  });
  it("reads quantities", () => {
    expect(["1", "250m", "1Gi", "1.5k", "2e3", "1E", "x", ""].map(quantity)).toEqual([1, 0.25, 2 ** 30, 1500, 2000, 1e18, null, null]);
  });
});

describe("route", () => {
  it("carries the whole state of a view", () => {
    const to = href("objects", { resource: "pods", namespace: ["a", "team-*"], labelSelector: "app=web,x in (a b)", empty: "" });
    expect(to).toBe("./?view=objects&resource=pods&namespace=a&namespace=team-*&labelSelector=app=web,x+in+(a+b)".replace("(", "%28").replace(")", "%29"));
    search.value = to.slice(3);
    expect(view.value).toBe("objects");
    expect(params.value.getAll("namespace")).toEqual(["a", "team-*"]);
    expect(params.value.get("labelSelector")).toBe("app=web,x in (a b)");
    search.value = "view=nonsense";
    expect(view.value).toBeNull(); // and not another one in silence
    search.value = "";
    expect(view.value).toBe("overview");
  });
  it("keeps what could end a parameter", () => {
    expect(new URLSearchParams(query({ a: "x&y=1#2+3%" })).get("a")).toBe("x&y=1#2+3%");
  });
});

const r = (name: string, kind: string, more: Partial<Resource> = {}) => {
  const [resource, ...group] = name.split(".");
  return { name, kind, resource, group: group.join("."), version: "v1", singular: kind.toLowerCase(), shortNames: [], namespaced: true, state: "live", objects: 1, ...more } as Resource;
};

describe("resources", () => {
  held.value = [r("pods", "Pod", { shortNames: ["po"] }), r("deployments.apps", "Deployment", { shortNames: ["deploy"] }), r("events.events.k8s.io", "Event"), r("events", "Event"), r("replicasets.apps", "ReplicaSet")];
  it("are found by the names kubectl takes", () => {
    expect(["po", "Pods", "pod", "deployments.apps", "deployments.v1.apps", "deploy", "events", "nothing"].map((n) => find(n)?.name)).toEqual(["pods", "pods", "pods", "deployments.apps", "deployments.apps", "deployments.apps", "events", undefined]);
  });
  it("are matched by globs", () => {
    expect(match("pods,*.apps").map((x) => x.name)).toEqual(["pods", "deployments.apps", "replicasets.apps"]);
    expect(match("*")).toHaveLength(5);
    expect(match("pods,po")).toHaveLength(1);
    expect(match("*.events.k8s.io,e*").map((x) => x.name)).toEqual(["events.events.k8s.io", "events"]); // a star does not reach into the group
  });
  it("are asked for by names that the API knows", () => {
    const asked = (p: string) => asPatterns(p, match(p));
    expect([asked("po,deploy,unicorns"), asked("*.apps,deploy,po"), asked("*")]).toEqual(["pods,deployments.apps", "*.apps,pods", "*"]);
  });
  it("have headings and sections", () => {
    expect([r("networkpolicies.networking.k8s.io", "NetworkPolicy"), r("ingresses.networking.k8s.io", "Ingress"), r("endpoints", "Endpoints"), r("pods", "Pod")].map(headingOf)).toEqual(["NetworkPolicies", "Ingresses", "Endpoints", "Pods"]);
    expect(sectionOf(r("queues.messaging.example.com", "Queue"))).toBe("messaging.example.com");
  });
  it("rank by how well they are named", () => {
    const pdb = r("poddisruptionbudgets.policy", "PodDisruptionBudget", { shortNames: ["pdb"] });
    expect([rankKind(r("pods", "Pod", { shortNames: ["po"] }), "po"), rankKind(pdb, "po"), rankKind(pdb, "pdb"), rankKind(pdb, "xyz")]).toEqual([0, 2, 0, -1]);
  });
});

describe("answers", () => {
  it("point at what is wrong with a query", () => {
    const e = new ApiError(400, { message: "filter: column 12: undeclared reference", details: { causes: [{ field: "filter" }] } });
    expect([e.field, e.column]).toEqual(["filter", 12]);
  });
});

describe("exports", () => {
  it("quote what CSV and shells would misread", () => {
    expect(csvOf([nameColumn, ageColumn], [{ cells: ['a,"b"', 0] }, { cells: ["=1+1", null] }])).toBe('Name,Age\r\n"a,""b""",1970-01-01T00:00:00.000Z\r\n\'=1+1,\r\n');
    expect(curlOf("v1/query?resources=pods&filter=a'b", "http://x/y/?view=objects")).toBe("curl -s 'http://x/y/v1/query?resources=pods&filter=a%27b'");
  });

  it("take no text of a cell for a formula", () => {
    const cells = ["-1+cmd|' /C calc'!A0", "-12.5", "@SUM(1)", "+1", "-x", "12"].map((c) => ({ cells: [c] }));
    expect(csvOf([nameColumn], cells)).toBe("Name\r\n'-1+cmd|' /C calc'!A0\r\n-12.5\r\n'@SUM(1)\r\n'+1\r\n'-x\r\n12\r\n");
  });

  // Names of RBAC objects are any text without a slash.
  it("are one word to a shell, whatever the name is", () => {
    for (const name of ["x;touch pwned", "$(touch pwned)", "`touch pwned`", "a'b", "a\"b", "a\nb", "*", "a b", "", "!x", "~", "a=b", "web-1", "system:node"]) {
      expect(execFileSync("/bin/sh", ["-c", "printf %s " + quoteShell(name)], { encoding: "utf8" })).toBe(name);
    }
    expect(kubectlGet("roles.rbac.authorization.k8s.io", "shop", "x;touch pwned")).toBe("kubectl get roles.rbac.authorization.k8s.io -n shop -o yaml 'x;touch pwned'");
    expect(kubectlGet("clusterroles.rbac.authorization.k8s.io", "", "--all")).toBe("kubectl get clusterroles.rbac.authorization.k8s.io -o yaml -- --all");
    expect(curlOf("v1/resources/roles/objects/shop/it's", "http://x/y/")).toBe("curl -s 'http://x/y/v1/resources/roles/objects/shop/it'\\''s'");
  });
});
