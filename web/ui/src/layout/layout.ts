// Draws what is related to an object as a graph in columns, from left to right: each
// in a box, boxes nowhere on each other, and lines that pass boxes beside them. The
// picture is made of the graph alone, in whatever order that is told.

import { columnsOf } from "./order";
import { placed } from "./place";
import { ranksOf, type Arc } from "./ranks";

export interface Point {
  x: number;
  y: number;
}

export interface Layout {
  /** The middle of each box. */
  at: Map<string, Point>;
  /** Through which points the line of each edge leads: from a box, in pairs along the
   * columns that it passes, to a box. */
  lines: Point[][];
  left: number;
  top: number;
  width: number;
  height: number;
}

export const width = 208, height = 44;
/** Between boxes that are one below the other. */
export const gap = 12;
/** Between columns. */
export const alley = 44;
const margin = 16;

/** root is the node in the middle. Each edge must be between two nodes. */
export function layOut(nodes: readonly string[], edges: readonly { from: string; to: string }[], root: string): Layout {
  const ids = [root, ...nodes.filter((id) => id !== root).sort()];
  const number = new Map(ids.map((id, i) => [id, i]));
  // Lines are numbered as their nodes are, or the picture would depend on their order.
  const given = edges.map((e, edge) => ({ edge, arc: [number.get(e.from)!, number.get(e.to)!] as Arc })).sort((a, b) => a.arc[0] - b.arc[0] || a.arc[1] - b.arc[1]);
  const { rank, turned } = ranksOf(ids.length, given.map((g) => g.arc));
  const columns = columnsOf(rank, given.map(({ arc: [from, to] }, i) => (turned[i] ? [to, from] : [from, to])));
  const isBend = (v: number) => v >= ids.length;
  const half = (v: number) => (isBend(v) ? 0 : height / 2);
  const y = placed(columns, (a, b) => half(a) + gap + half(b), isBend);
  const x: number[] = [];
  columns.columns.forEach((column, c) => column.forEach((v) => (x[v] = c * (width + alley))));

  const lines: Point[][] = [];
  columns.lines.forEach((line, i) => {
    const points = line.flatMap((v) => [{ x: x[v]! - width / 2, y: y[v]! }, { x: x[v]! + width / 2, y: y[v]! }]).slice(1, -1);
    lines[given[i]!.edge] = turned[i] ? points.reverse() : points;
  });
  const edge = (list: number[], by: number) => [Math.min(...list) - by - margin, Math.max(...list) + by + margin] as const;
  const [left, right] = edge(x, width / 2), [top, bottom] = edge(y, height / 2);
  return { at: new Map(ids.map((id, v) => [id, { x: x[v]!, y: y[v]! }])), lines, left, top, width: right - left, height: bottom - top };
}

/** A line through points: level where it comes out of a box and where it passes one. */
export function curve(points: readonly Point[]): string {
  const n = (v: number) => v.toFixed(1);
  return points.map(({ x, y }, i) => {
    if (i === 0) return `M${n(x)} ${n(y)}`;
    const before = points[i - 1]!;
    if (i % 2 === 0) return `H${n(x)}`;
    const middle = n((before.x + x) / 2);
    return `C${middle} ${n(before.y)} ${middle} ${n(y)} ${n(x)} ${n(y)}`;
  }).join("");
}
