// In which column of a picture each node stands. Columns are counted from the node 0,
// which is in the middle: what it needs is right of it, what needs it left, each as
// far away as the longest way to it. So nothing moves a node but what leads to it.

/** From one node to another, by their numbers. */
export type Arc = readonly [from: number, to: number];

export interface Ranks {
  /** The column of each node; those left of the middle are negative. */
  rank: number[];
  /** Arcs that would close a circle: they lead from right to left. */
  turned: boolean[];
}

export function ranksOf(n: number, arcs: readonly Arc[]): Ranks {
  const { order, turned } = topological(n, arcs);
  const before: number[][] = order.map(() => []), after: number[][] = order.map(() => []);
  arcs.forEach(([a, b], i) => {
    const [from, to] = turned[i] ? [b, a] : [a, b];
    after[from]!.push(to);
    before[to]!.push(from);
  });
  const rank: (number | undefined)[] = order.map(() => undefined);
  /** Ranks what has neighbors with a rank on one side, a step beyond the farthest. */
  const pass = (nodes: number[], side: number[][], step: 1 | -1) => {
    let given = 0;
    for (const v of nodes) {
      const near = rank[v] === undefined ? side[v]!.flatMap((w) => rank[w] ?? []) : [];
      if (near.length === 0) continue;
      rank[v] = step * Math.max(...near.map((r) => r * step)) + step;
      given++;
    }
    return given;
  };
  const backward = [...order].reverse();
  // What leads to the middle, then what these lead to, what leads to that, and so on.
  // After a pass nothing without a rank has a neighbor with one on the side that the
  // pass looked at, so the next pass, which looks at the other, heeds all arcs.
  for (let next: number | undefined = 0; next !== undefined; next = order.find((v) => rank[v] === undefined)) {
    rank[next] = 0; // the middle, or what nothing joins to it
    while (pass(backward, after, -1) + pass(order, before, 1) > 0);
  }
  return { rank: rank as number[], turned };
}

/** The nodes in an order in which arcs lead forward only, but for those that are turned. */
function topological(n: number, arcs: readonly Arc[]): { order: number[]; turned: boolean[] } {
  const out: number[][] = Array.from({ length: n }, () => []);
  arcs.forEach(([from], i) => out[from]!.push(i));
  const turned = arcs.map(() => false);
  const order: number[] = [];
  const open = new Set<number>(), done = new Set<number>();
  const visit = (v: number) => {
    if (done.has(v)) return;
    open.add(v);
    for (const i of out[v]!) {
      const to = arcs[i]![1];
      if (open.has(to)) turned[i] = true;
      else visit(to);
    }
    open.delete(v);
    done.add(v);
    order.unshift(v);
  };
  for (let v = 0; v < n; v++) visit(v);
  return { order, turned };
}
