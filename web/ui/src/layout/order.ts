// In which order nodes stand in their columns, so that few lines cross. A line that
// passes columns has a place in each of them, as nodes have: a bend.

import type { Arc } from "./ranks";

export interface Columns {
  /** What stands in each, from the top: nodes by their numbers, bends by greater ones. */
  columns: number[][];
  /** What each arc leads through, from the left: a node, bends, a node. */
  lines: number[][];
  /** The neighbors of each in the column to the left. */
  left: number[][];
  right: number[][];
}

/** The columns are gone through from one end and the other, until this often in a row
 * it did not help. */
const patience = 4;

/** Each arc must lead to a greater rank. */
export function columnsOf(rank: readonly number[], arcs: readonly Arc[]): Columns {
  const first = Math.min(...rank);
  const column = rank.map((r) => r - first); // of nodes, and of bends
  const left: number[][] = rank.map(() => []), right: number[][] = rank.map(() => []);
  const lines = arcs.map(([from, to]) => {
    const line = [from];
    for (let c = column[from]! + 1; c <= column[to]!; c++) {
      const v = c < column[to]! ? column.push(c) - 1 : to;
      const before = line.at(-1)!;
      (left[v] ??= []).push(before);
      (right[before] ??= []).push(v);
      line.push(v);
    }
    return line;
  });
  const columns: number[][] = Array.from({ length: Math.max(...column) + 1 }, () => []);
  // What hangs together begins together.
  const seen = new Set<number>();
  const visit = (v: number) => {
    if (seen.has(v)) return;
    seen.add(v);
    columns[column[v]!]!.push(v);
    right[v]?.forEach(visit);
    left[v]?.forEach(visit);
  };
  column.forEach((_, v) => visit(v));
  return { columns: untangled(columns, left, right), lines, left, right };
}

function untangled(columns: number[][], left: number[][], right: number[][]): number[][] {
  /** Where each stands in its column: 0 is the top, 1 the bottom. */
  const place: number[] = [];
  const mark = (column: number[]) => column.forEach((v, i) => (place[v] = (i + 0.5) / column.length));
  columns.forEach(mark);
  /** How many lines of a cross lines of b while a is above b. */
  const crossings = (a: number, b: number) => {
    let n = 0;
    for (const side of [left, right]) for (const x of side[a]!) for (const y of side[b]!) if (place[x]! > place[y]!) n++;
    return n;
  };
  /** How many lines cross in all: as many as an insertion sort moves. */
  const all = () => {
    let n = 0;
    for (const column of columns) {
      const ends: number[] = [];
      for (const v of column) {
        for (const end of right[v]!.map((w) => place[w]!).sort((a, b) => a - b)) {
          let i = ends.length;
          while (i > 0 && ends[i - 1]! > end) i--;
          n += ends.length - i;
          ends.splice(i, 0, end);
        }
      }
    }
    return n;
  };
  let best = columns.map((c) => [...c]), least = all();
  for (let round = 0, idle = 0; idle < patience && least > 0; round++) {
    const side = round % 2 ? right : left;
    for (const column of round % 2 ? [...columns].reverse() : columns) {
      // Each goes to the middle of its neighbors, then changes with the next if that helps.
      const wish = new Map(column.map((v) => [v, side[v]!.length ? mean(side[v]!.map((w) => place[w]!)) : place[v]!]));
      column.sort((a, b) => wish.get(a)! - wish.get(b)!);
      mark(column);
      for (let i = 1; i < column.length; i++) {
        const a = column[i - 1]!, b = column[i]!;
        if (crossings(a, b) > crossings(b, a)) [column[i - 1], column[i]] = [b, a];
      }
      mark(column);
    }
    const n = all();
    if (n < least) [best, least, idle] = [columns.map((c) => [...c]), n, 0];
    else idle++;
  }
  return best;
}

function mean(list: number[]): number {
  return list.reduce((a, b) => a + b, 0) / list.length;
}
