// How high nodes and bends stand in their columns: in order, apart from each other,
// and as near as that allows to where their neighbors are, so that lines are straight.

import type { Columns } from "./order";

const rounds = 24;

/** The middle of each, counted downwards; `apart` is how far two that follow each other must be. */
export function placed({ columns, left, right }: Columns, apart: (above: number, below: number) => number, isBend: (v: number) => boolean): number[] {
  const y: number[] = [];
  const wish = (v: number, near: number[]): Wish => {
    // A line that passes several columns is straight in them, and bent at its ends.
    const bends = isBend(v) ? near.filter(isBend) : [];
    const those = bends.length > 0 ? bends : near;
    if (those.length === 0) return { at: y[v]!, weight: 0.1 }; // it gives way
    return { at: those.reduce((sum, w) => sum + y[w]!, 0) / those.length, weight: bends.length > 0 ? 8 : isBend(v) ? 2 : 1 };
  };
  const gaps = (column: number[]) => column.map((v, i) => (i > 0 ? apart(column[i - 1]!, v) : 0));
  for (const column of columns) {
    let at = 0;
    gaps(column).forEach((gap, i) => (y[column[i]!] = at += gap));
  }
  const backward = [...columns].reverse();
  for (let round = 0; round < rounds; round++) {
    // At last both sides count, so that what is between two stands between them.
    const sides = round >= rounds - 4 ? [left, right] : [round % 2 ? right : left];
    for (const column of round % 2 ? backward : columns) {
      const wishes = column.map((v) => wish(v, sides.flatMap((side) => side[v]!)));
      nearest(wishes, gaps(column)).forEach((at, i) => (y[column[i]!] = at));
    }
  }
  return y;
}

interface Wish {
  at: number;
  weight: number;
}

/** Where things in a row stand that must be gaps apart (the first gap does not count),
 * with the least squares of the distances to where they wish to be: those that would
 * be too near move together, as one block (pool adjacent violators). */
export function nearest(wishes: readonly Wish[], gaps: readonly number[]): number[] {
  const blocks: (Wish & { n: number })[] = [];
  let offset = 0;
  const offsets = gaps.map((gap) => (offset += gap));
  wishes.forEach(({ at, weight }, i) => {
    let block = { at: at - offsets[i]!, weight, n: 1 };
    for (let last = blocks.at(-1); last && last.at >= block.at; last = blocks.at(-1)) {
      blocks.pop();
      const sum = last.weight + block.weight;
      block = { at: (last.at * last.weight + block.at * block.weight) / sum, weight: sum, n: last.n + block.n };
    }
    blocks.push(block);
  });
  return blocks.flatMap((b) => Array<number>(b.n).fill(b.at)).map((at, i) => at + offsets[i]!);
}
