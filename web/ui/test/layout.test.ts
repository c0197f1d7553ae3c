import { describe, expect, it } from "vitest";
import { alley, curve, gap, height, layOut, width, type Layout, type Point } from "../src/layout/layout";
import { nearest } from "../src/layout/place";
import { ranksOf } from "../src/layout/ranks";

type Edge = { from: string; to: string };

/** Numbers from 0 to n-1 that are the same in each run. */
function random(seed: number): (n: number) => number {
  return (n) => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    return Math.floor((seed / 2 ** 32) * n);
  };
}

const name = (i: number) => "n" + i;

/** A graph whose nodes hang together; in one without circles edges lead to greater numbers. */
function graph(seed: number, circles: boolean): { nodes: string[]; edges: Edge[]; root: string } {
  const pick = random(seed);
  const n = 2 + pick(40);
  const edges = new Map<string, Edge>();
  const add = (a: number, b: number) => {
    const [from, to] = (circles ? pick(2) : a > b) ? [name(b), name(a)] : [name(a), name(b)];
    if (a !== b) edges.set(from + " " + to, { from, to });
  };
  for (let i = 1; i < n; i++) add(pick(i), i);
  for (let i = pick(n); i > 0; i--) add(pick(n), pick(n));
  return { nodes: Array.from({ length: n }, (_, i) => name(i)), edges: [...edges.values()], root: name(pick(n)) };
}

const laid = (g: { nodes: string[]; edges: Edge[]; root: string }) => layOut(g.nodes, g.edges, g.root);

/** In which column a node stands, counted from the root. */
const column = (l: Layout, id: string, root: string) => Math.round((l.at.get(id)!.x - l.at.get(root)!.x) / (width + alley));

const shuffled = <T>(list: readonly T[], pick: (n: number) => number): T[] => {
  const out = [...list];
  for (let i = out.length - 1; i > 0; i--) {
    const j = pick(i + 1);
    [out[i], out[j]] = [out[j]!, out[i]!];
  }
  return out;
};

const seeds = Array.from({ length: 60 }, (_, i) => i + 1);

describe("a picture of any graph", () => {
  const all = seeds.map((seed) => graph(seed, seed % 3 === 0));

  it("has no box on another", () => {
    for (const g of all) {
      const boxes = [...laid(g).at.values()];
      boxes.forEach((a, i) => boxes.slice(i + 1).forEach((b) => expect(Math.abs(a.x - b.x) >= width || Math.abs(a.y - b.y) >= height + gap - 0.01, JSON.stringify([a, b])).toBe(true)));
    }
  });

  it("has lines from the side of a box to the side of a box, and through none", () => {
    for (const g of all) {
      const l = laid(g);
      g.edges.forEach((e, i) => {
        const points = l.lines[i]!, from = l.at.get(e.from)!, to = l.at.get(e.to)!;
        const way = Math.sign(to.x - from.x);
        expect(way).not.toBe(0);
        expect(points[0]).toEqual({ x: from.x + (way * width) / 2, y: from.y });
        expect(points.at(-1)).toEqual({ x: to.x - (way * width) / 2, y: to.y });
        // Between columns there are no boxes; along one the line is level and beside all.
        for (let k = 1; k < points.length - 1; k += 2) {
          const [a, b] = [points[k]!, points[k + 1]!];
          expect(a.y).toBe(b.y);
          expect(Math.abs(a.x - b.x)).toBe(width);
          for (const box of l.at.values()) if (box.x === (a.x + b.x) / 2) expect(Math.abs(box.y - a.y)).toBeGreaterThan(height / 2 + gap - 0.01);
        }
        for (let k = 0; k < points.length; k += 2) expect((points[k + 1]!.x - points[k]!.x) * way).toBeGreaterThan(0);
      });
    }
  });

  it("is large enough for all that is in it", () => {
    for (const g of all) {
      const l = laid(g);
      for (const p of [...l.at.values()].flatMap(({ x, y }) => [{ x: x - width / 2, y: y - height / 2 }, { x: x + width / 2, y: y + height / 2 }]).concat(l.lines.flat())) {
        expect(p.x).toBeGreaterThan(l.left);
        expect(p.y).toBeGreaterThan(l.top);
        expect(p.x).toBeLessThan(l.left + l.width);
        expect(p.y).toBeLessThan(l.top + l.height);
      }
    }
  });

  it("is the same whatever order the graph is told in", () => {
    all.forEach((g, i) => {
      const pick = random(1000 + i);
      const edges = shuffled(g.edges, pick);
      const a = laid(g), b = layOut(shuffled(g.nodes, pick), edges, g.root);
      for (const id of g.nodes) expect(b.at.get(id)).toEqual(a.at.get(id));
      edges.forEach((e, k) => expect(b.lines[k]).toEqual(a.lines[g.edges.indexOf(e)]));
    });
  });

  it("keeps everything in its column when a child comes or goes", () => {
    all.forEach((g, i) => {
      const pick = random(2000 + i);
      const edge = { from: g.nodes[pick(g.nodes.length)]!, to: "m" };
      const before = laid(g), after = layOut([...g.nodes, "m"], [...g.edges, edge], g.root);
      for (const id of g.nodes) expect(column(after, id, g.root), id).toBe(column(before, id, g.root));
      expect(after.at.get("m")!.x).toBeGreaterThan(after.at.get(edge.from)!.x);
    });
  });
});

describe("edges lead to the right", () => {
  it("all, where there are no circles", () => {
    for (const seed of seeds) {
      const g = graph(seed, false), l = laid(g);
      for (const e of g.edges) expect(l.at.get(e.to)!.x).toBeGreaterThan(l.at.get(e.from)!.x);
    }
  });
  it("but for one of a circle", () => {
    const edges = [{ from: "a", to: "b" }, { from: "b", to: "c" }, { from: "c", to: "a" }];
    const l = layOut(["a", "b", "c"], edges, "a");
    expect(["a", "b", "c"].map((id) => column(l, id, "a"))).toEqual([0, 1, 2]);
    expect(l.lines[2]![0]!.x).toBeGreaterThan(l.lines[2]!.at(-1)!.x);
  });
});

describe("columns", () => {
  const rank = (n: number, arcs: [number, number][]) => ranksOf(n, arcs).rank;
  it("are counted from the middle, by the longest way", () => {
    expect(rank(4, [[0, 1], [1, 2], [0, 2], [3, 0]])).toEqual([0, 1, 2, -1]);
  });
  it("of what needs the same are beside the middle, and not at the far end", () => {
    // A Service (3) selects the pods (2) of the ReplicaSet (1) of the Deployment (0).
    expect(rank(4, [[0, 1], [1, 2], [3, 2]])).toEqual([0, 1, 2, 1]);
  });
  it("have room for a longer way around the middle", () => {
    expect(rank(6, [[1, 0], [0, 2], [1, 3], [3, 4], [4, 5], [5, 2]])).toEqual([0, -1, 3, 0, 1, 2]);
  });
  it("are there for what nothing joins to the middle", () => {
    expect(rank(3, [[2, 1]])).toEqual([0, 1, 0]);
  });
});

describe("lines", () => {
  it("of a chain are straight", () => {
    const ids = Array.from({ length: 6 }, (_, i) => name(i));
    const l = layOut(ids, ids.slice(1).map((to, i) => ({ from: ids[i]!, to })), "n2");
    expect(new Set([...l.at.values()].map((p) => p.y.toFixed(3))).size).toBe(1);
  });
  it("of a tree do not cross, and who has children is in the middle of them", () => {
    for (const seed of seeds) {
      const pick = random(seed);
      const edges = Array.from({ length: 2 + pick(30) }, (_, i) => ({ from: name(pick(i + 1)), to: name(i + 1) }));
      const l = layOut(["n0", ...edges.map((e) => e.to)], edges, "n0");
      edges.forEach((a, i) => edges.slice(i + 1).forEach((b) => {
        const [fa, ta, fb, tb] = [a.from, a.to, b.from, b.to].map((id) => l.at.get(id)!) as [Point, Point, Point, Point];
        if (fa.x === fb.x) expect((fa.y - fb.y) * (ta.y - tb.y), `${seed}: ${JSON.stringify([a, b])}`).toBeGreaterThanOrEqual(0);
      }));
    }
    const children = ["a", "b", "c", "d"];
    const l = layOut(["p", ...children], children.map((to) => ({ from: "p", to })), "p");
    expect(l.at.get("p")!.y).toBeCloseTo((l.at.get("a")!.y + l.at.get("d")!.y) / 2, 1);
    expect(l.height).toBe(4 * height + 3 * gap + 32);
  });
  it("are level at their ends", () => {
    expect(curve([{ x: 0, y: 0 }, { x: 50, y: 20 }, { x: 250, y: 20 }, { x: 300, y: 0 }])).toBe("M0.0 0.0C25.0 0.0 25.0 20.0 50.0 20.0H250.0C275.0 20.0 275.0 0.0 300.0 0.0");
  });
});

describe("nearest", () => {
  it("keeps the order and the gaps, and no other way is nearer", () => {
    for (const seed of seeds) {
      const pick = random(seed);
      const wishes = Array.from({ length: 1 + pick(8) }, () => ({ at: pick(100), weight: 1 + pick(4) }));
      const gaps = wishes.map(() => 5 + pick(20));
      const apart = (at: number[]) => at.every((v, i) => i === 0 || v - at[i - 1]! >= gaps[i]! - 1e-9);
      const cost = (at: number[]) => at.reduce((sum, v, i) => sum + wishes[i]!.weight * (v - wishes[i]!.at) ** 2, 0);
      const best = nearest(wishes, gaps);
      expect(apart(best)).toBe(true);
      for (let k = 0; k < 300; k++) {
        const other = best.map((v) => v + (pick(2001) - 1000) / (k % 2 ? 100 : 1000));
        if (apart(other)) expect(cost(other)).toBeGreaterThanOrEqual(cost(best) - 1e-9);
      }
    }
  });
});
