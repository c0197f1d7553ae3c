import { describe, expect, it } from "vitest";
import { collapse } from "../src/siblings";

const node = (id: string, kind: string) => ({ id, kind, resource: kind.toLowerCase() + "s", name: id });
const edge = (from: string, to: string, edge: string) => ({ from, to, edge, why: "" });
const pods = (n: number) => Array.from({ length: n }, (_, i) => node("p" + i, "Pod"));

describe("siblings", () => {
  const graph = (n: number) => ({
    root: "rs", nodes: [node("rs", "ReplicaSet"), node("cm", "ConfigMap"), node("svc", "Service"), ...pods(n)],
    edges: pods(n).flatMap((p) => [edge("rs", p.id, "owns"), edge("svc", p.id, "selects"), edge(p.id, "cm", "mounts")]),
  });
  it("are one box when they are many, with one line for all of theirs", () => {
    const { nodes, edges } = collapse(graph(9), new Set());
    const group = nodes.find((n) => "members" in n)! as unknown as { id: string; name: string; members: string[] };
    expect(nodes).toHaveLength(4);
    expect(group.members).toHaveLength(9);
    expect(edges.map((e) => [e.from === group.id ? "*" : e.from, e.edge, e.to === group.id ? "*" : e.to].join(" ")).sort()).toEqual(["* mounts cm", "rs owns *", "svc selects *"]);
  });
  it("are each one when they are few", () => {
    const few = graph(3);
    expect(collapse(few, new Set())).toBe(few);
  });
  it("open", () => {
    const g = graph(9);
    const id = collapse(g, new Set()).nodes.find((n) => "members" in n)!.id;
    const other = collapse(g, new Set([id])).nodes.find((n) => "members" in n); // the Service selects the same
    expect(collapse(g, new Set([id, other!.id])).nodes).toHaveLength(12);
  });
});
