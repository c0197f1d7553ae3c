import { describe, expect, it } from "vitest";
import type { KubeObject } from "../src/api";
import { anyStatus, compareCells, customColumn, knownColumns, podStatus, printerColumns, serverOrder, toneOf } from "../src/table/columns";
import { choose, frame, joinIds, splitIds } from "../src/table/setup";
import type { Resource } from "../src/resources";

const meta = { name: "x", namespace: "n" };
const pods = { name: "pods", namespaced: true } as Resource;

describe("podStatus", () => {
  const cases: [string, object, object?][] = [
    ["Running", { phase: "Running", containerStatuses: [{ ready: true, state: { running: {} } }] }],
    ["CrashLoopBackOff", { phase: "Running", containerStatuses: [{ state: { waiting: { reason: "CrashLoopBackOff" } } }] }],
    ["Completed", { phase: "Succeeded", containerStatuses: [{ state: { terminated: { reason: "Completed", exitCode: 0 } } }] }],
    ["Running", { phase: "Running", containerStatuses: [{ state: { terminated: { reason: "Completed" } } }, { ready: true, state: { running: {} } }] }],
    ["Init:0/2", { phase: "Pending", initContainerStatuses: [{ state: { running: {} } }, {}] }],
    ["Init:ImagePullBackOff", { phase: "Pending", initContainerStatuses: [{ state: { waiting: { reason: "ImagePullBackOff" } } }] }],
    ["Init:Error", { phase: "Pending", initContainerStatuses: [{ state: { terminated: { exitCode: 1, reason: "Error" } } }] }],
    ["ExitCode:3", { phase: "Failed", containerStatuses: [{ state: { terminated: { exitCode: 3 } } }] }],
    ["Evicted", { phase: "Failed", reason: "Evicted" }],
    ["SchedulingGated", { phase: "Pending", conditions: [{ type: "PodScheduled", status: "False", reason: "SchedulingGated" }] }],
    ["Terminating", { phase: "Running" }, { deletionTimestamp: "2026-01-01T00:00:00Z" }],
    ["", {}],
  ];
  for (const [want, status, more] of cases) {
    it(want || "nothing", () => expect(podStatus({ metadata: { ...meta, ...more }, status } as KubeObject)).toBe(want));
  }
});

describe("anyStatus", () => {
  it("reads what most kinds have", () => {
    const of = (o: object) => anyStatus({ metadata: meta, ...o } as KubeObject);
    expect(of({ status: { conditions: [{ type: "Ready", status: "True" }] } })).toBe("Ready");
    expect(of({ status: { conditions: [{ type: "Ready", status: "False", reason: "Provisioning" }] } })).toBe("Provisioning");
    expect(of({ status: { conditions: [{ type: "Failed", status: "False" }, { type: "Complete", status: "True" }] } })).toBe("Complete");
    expect(of({ status: { phase: "Bound" } })).toBe("Bound");
    expect(of({ spec: { replicas: 3 }, status: { readyReplicas: 1 } })).toBe("NotReady 1/3");
    expect(of({})).toBe("");
  });
});

describe("columns", () => {
  it("show a known kind as kubectl does", () => {
    const pod = { metadata: meta, spec: { containers: [{ name: "a" }, { name: "b" }], nodeName: "n1" }, status: { phase: "Running", containerStatuses: [{ ready: true, restartCount: 2 }, { ready: false, restartCount: 1 }] } } as unknown as KubeObject;
    const cells = Object.fromEntries(knownColumns("pods")!.map((c) => [c.id, c.value(pod)]));
    expect(cells).toMatchObject({ ready: "1/2", restarts: 3, node: "n1", ip: "" });
  });
  it("of every known kind survive an object without any field", () => {
    for (const name of ["pods", "nodes", "services", "deployments.apps", "jobs.batch", "persistentvolumeclaims", "horizontalpodautoscalers.autoscaling", "rolebindings.rbac.authorization.k8s.io"]) {
      for (const c of knownColumns(name)!) c.value({ metadata: { name: "x" } });
    }
  });
  it("come from a CustomResourceDefinition", () => {
    const crd = { metadata: { name: "q" }, spec: { versions: [{ name: "v1", additionalPrinterColumns: [
      { name: "Engine", type: "string", jsonPath: ".spec.engine" },
      { name: "Depth", type: "integer", jsonPath: ".status.depth" },
      { name: "Wide", type: "string", jsonPath: ".spec.x", priority: 1 },
      { name: "Ready", type: "string", jsonPath: ".status.conditions[?(@.type=='Ready')].status" },
      { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp" },
    ] }] } };
    const columns = printerColumns(crd, "v1");
    expect(columns.map((c) => [c.title, c.type, ...c.paths])).toEqual([["Engine", "text", "spec.engine"], ["Depth", "number", "status.depth"]]);
    expect(columns[1]!.value({ metadata: meta, status: { depth: 4 } })).toBe(4);
    expect(printerColumns(crd, "v2")).toEqual([]);
  });
  it("can be a path or a label", () => {
    expect(customColumn("label:app.io/x").paths).toEqual(["metadata.labels['app.io/x']"]);
    expect(customColumn("label:app").value({ metadata: { name: "x", labels: { app: "web" } } })).toBe("web");
    expect(customColumn("spec.replicas").value({ metadata: meta, spec: { replicas: 3 } })).toBe(3);
    expect(customColumn("spec.c[*].image").value({ metadata: meta, spec: { c: [{ image: "a" }, { image: "b" }] } })).toBe("a,b");
    expect(() => customColumn("a[?]")).toThrow();
  });
  it("sort ratios by how much is missing", () => {
    const ready = knownColumns("pods")![0]!;
    expect(["2/2", "0/3", "1/2"].sort((a, b) => compareCells(ready, a, b, false))).toEqual(["0/3", "1/2", "2/2"]);
  });
  it("say how the server orders alike", () => {
    const of = (name: string, id: string, down = false) => serverOrder([...knownColumns(name)!, ...frame([pods], [], false).offered].find((c) => c.id === id), down);
    expect([of("pods", "name"), of("pods", "node", true), of("pods", "age"), of("pods", "age", true)]).toEqual(["metadata.name", "-spec.nodeName", "-metadata.creationTimestamp", "metadata.creationTimestamp"]);
    expect([of("pods", "status"), of("deployments.apps", "images"), serverOrder(undefined, true)]).toEqual(["", "", ""]); // made of several values
    expect([serverOrder(customColumn("label:app"), false), serverOrder(customColumn("spec.c[*].image"), false)]).toEqual(["metadata.labels.app", ""]);
  });
  it("color words", () => {
    expect(["Running", "CrashLoopBackOff", "Pending", "Completed", "Init:0/1", "Init:Error", "whatever", ""].map(toneOf)).toEqual(["good", "bad", "wait", "off", "wait", "bad", "", ""]);
  });
});

describe("which columns", () => {
  const { offered, shown } = frame([pods], knownColumns("pods")!, false);
  it("are the usual ones unless chosen", () => {
    expect(shown).toEqual(["name", "health", "namespace", "ready", "status", "restarts", "node", "ip", "age"]);
    expect(frame([pods], knownColumns("pods")!, true).shown).not.toContain("namespace");
    // Of several clusters each kind has its columns, and which cluster it is.
    expect(frame([{ ...pods, cluster: "a" }, { ...pods, cluster: "b" }], knownColumns("pods")!, false).shown.slice(0, 4)).toEqual(["name", "health", "cluster", "namespace"]);
    expect(frame([pods, { ...pods, name: "jobs.batch" }], [], false).shown).toEqual(["name", "health", "kind", "namespace", "status", "age"]);
  });
  it("survive a bad address", () => {
    expect(choose(["status", "a[?]", "label:app", "status"], offered).map((c) => c.id)).toEqual(["name", "status", "label:app"]);
  });
  it("travel in one parameter", () => {
    const ids = ["name", "metadata.labels['a,b\\c']", "label:x"];
    expect(splitIds(joinIds(ids))).toEqual(ids);
  });
});
