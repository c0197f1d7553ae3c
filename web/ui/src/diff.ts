import { formatPath, type Step } from "./paths";

// What differs between two objects, by field, and between two texts, by line.

export interface FieldChange {
  path: string;
  before?: unknown;
  after?: unknown;
  op: "add" | "remove" | "set";
}

/** Fields that change with every write and say nothing. */
const noise = new Set(["metadata.resourceVersion", "metadata.managedFields", "metadata.generation"]);

export function fieldChanges(a: unknown, b: unknown): FieldChange[] {
  const out: FieldChange[] = [];
  walk(a, b, [], out);
  return out;
}

function walk(a: unknown, b: unknown, at: Step[], out: FieldChange[]): void {
  if (a === b) return;
  const path = formatPath(at);
  if (noise.has(path)) return;
  if (a === undefined) out.push({ path, after: b, op: "add" });
  else if (b === undefined) out.push({ path, before: a, op: "remove" });
  else if (Array.isArray(a) && Array.isArray(b)) lists(a, b, at, out);
  else if (isMap(a) && isMap(b)) {
    for (const k of Object.keys(a)) walk(a[k], b[k], [...at, k], out);
    for (const k of Object.keys(b)) if (!Object.hasOwn(a, k)) walk(undefined, b[k], [...at, k], out);
  } else out.push({ path, before: a, after: b, op: "set" });
}

const isMap = (v: unknown): v is Record<string, unknown> => typeof v === "object" && v !== null && !Array.isArray(v);

/** Elements with names are compared by name, wherever they stand. */
function lists(a: unknown[], b: unknown[], at: Step[], out: FieldChange[]): void {
  const key = ["name", "type", "uid", "ip", "key"].find((k) => [a, b].every((l) => l.every((x) => isMap(x) && typeof x[k] === "string") && new Set(l.map((x) => (x as Record<string, unknown>)[k])).size === l.length));
  if (key) {
    const of = (l: unknown[]) => new Map(l.map((x, i) => [(x as Record<string, string>)[key]!, [x, i] as const]));
    const before = of(a), after = of(b);
    for (const [name, [x, i]] of before) walk(x, after.get(name)?.[0], [...at, after.get(name)?.[1] ?? i], out);
    for (const [name, [x, i]] of after) if (!before.has(name)) walk(undefined, x, [...at, i], out);
    return;
  }
  for (let i = 0; i < Math.max(a.length, b.length); i++) walk(a[i], b[i], [...at, i], out);
}

export interface LineChange {
  op: " " | "-" | "+";
  text: string;
}

/** The shortest way from one text to the other, after Myers. Texts that differ in
 * very much are told as replaced, so that it never takes long. */
export function lineDiff(a: string[], b: string[], limit = 2000): LineChange[] {
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  const middle = myers(a.slice(start, a.length - end), b.slice(start, b.length - end), limit);
  const same = (text: string): LineChange => ({ op: " ", text });
  return [...a.slice(0, start).map(same), ...middle, ...a.slice(a.length - end).map(same)];
}

function myers(a: string[], b: string[], limit: number): LineChange[] {
  const n = a.length, m = b.length;
  const max = Math.min(n + m, limit);
  const v = new Map<number, number>([[1, 0]]);
  const trace: Map<number, number>[] = [];
  let found = -1;
  outer: for (let d = 0; d <= max; d++) {
    trace.push(new Map(v));
    for (let k = -d; k <= d; k += 2) {
      let x = k === -d || (k !== d && (v.get(k - 1) ?? -1) < (v.get(k + 1) ?? -1)) ? v.get(k + 1)! : v.get(k - 1)! + 1;
      let y = x - k;
      while (x < n && y < m && a[x] === b[y]) {
        x++;
        y++;
      }
      v.set(k, x);
      if (x >= n && y >= m) {
        found = d;
        break outer;
      }
    }
    if (d * d > 4_000_000) break;
  }
  if (found < 0) return [...a.map((text): LineChange => ({ op: "-", text })), ...b.map((text): LineChange => ({ op: "+", text }))];
  const out: LineChange[] = [];
  let x = n, y = m;
  for (let d = found; d > 0; d--) {
    const w = trace[d]!;
    const k = x - y;
    const down = k === -d || (k !== d && (w.get(k - 1) ?? -1) < (w.get(k + 1) ?? -1));
    const px = down ? w.get(k + 1)! : w.get(k - 1)!;
    const py = px - (down ? k + 1 : k - 1);
    while (x > px && y > py) {
      out.push({ op: " ", text: a[--x]! });
      y--;
    }
    if (down) out.push({ op: "+", text: b[--y]! });
    else out.push({ op: "-", text: a[--x]! });
  }
  while (x > 0 && y > 0) {
    out.push({ op: " ", text: a[x - 1]! });
    x--;
    y--;
  }
  return out.reverse();
}

/** A diff with only the lines around changes; the numbers say how many are left out. */
export function hunks(diff: LineChange[], context = 3): (LineChange | number)[] {
  const keep = new Uint8Array(diff.length);
  diff.forEach((l, i) => {
    if (l.op !== " ") for (let j = Math.max(0, i - context); j <= Math.min(diff.length - 1, i + context); j++) keep[j] = 1;
  });
  const out: (LineChange | number)[] = [];
  let skipped = 0;
  diff.forEach((l, i) => {
    if (keep[i]) {
      if (skipped) out.push(skipped);
      skipped = 0;
      out.push(l);
    } else skipped++;
  });
  if (skipped) out.push(skipped);
  return out;
}
