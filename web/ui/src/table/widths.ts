import type { Column } from "./columns";

// How wide the columns of a table are: what matters is shown whole, and what is long
// gives way.

export interface Wish {
  /** What its widest value needs. */
  wanted: number;
  /** What it does with less: names and addresses can be cut, a status cannot. */
  least: number;
  /** Whether more than it needs is of use. */
  grows: boolean;
}

/** Columns that are never cut as long as others can be. */
export function matters(c: Column): boolean {
  return c.type !== "text" || !!c.tone || !!c.rank;
}

/** On a narrow screen what matters stands next to the name. */
export function narrowOrder(columns: Column[]): number[] {
  const [name, ...rest] = columns.map((_, i) => i);
  if (name === undefined) return [];
  const rank = (i: number) => (columns[i]!.id === "health" ? 0 : columns[i]!.id === "status" ? 1 : columns[i]!.tone ? 2 : 3);
  return [name, ...rest.sort((a, b) => rank(a) - rank(b) || a - b)];
}

/** Parts the room. What is missing is taken from the widest first; what is left over
 * goes to those it is of use to, in proportion. */
export function fit(wishes: Wish[], room: number): number[] {
  const widths = wishes.map((w) => w.wanted);
  let over = widths.reduce((a, b) => a + b, 0) - room;
  while (over > 0.5) {
    const able = widths.map((w, i) => (w > wishes[i]!.least + 0.5 ? i : -1)).filter((i) => i >= 0);
    if (able.length === 0) break; // the table scrolls
    const widest = Math.max(...able.map((i) => widths[i]!));
    const top = able.filter((i) => widths[i]! > widest - 0.5);
    const next = Math.max(0, ...able.filter((i) => !top.includes(i)).map((i) => widths[i]!));
    for (const i of top) {
      const cut = Math.min(over / top.length, widest - Math.max(next, wishes[i]!.least));
      widths[i] = widths[i]! - Math.max(cut, 0);
    }
    const now = widths.reduce((a, b) => a + b, 0) - room;
    if (now >= over) break;
    over = now;
  }
  if (over < 0) {
    const growing = wishes.reduce((n, w, i) => n + (w.grows ? widths[i]! : 0), 0);
    if (growing > 0) wishes.forEach((w, i) => w.grows && (widths[i] = widths[i]! - (over * widths[i]!) / growing));
  }
  return widths.map(Math.floor);
}
