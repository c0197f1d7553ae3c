import { each, parsePath, type Step } from "./paths";
import { redacted } from "./text";

// What the configuration redacts arrives as "": keys of a map stay, values go. That
// must not look as if the values were empty.

/** The object with a mark in place of every value that was taken out, and how many. */
export function markRedacted<T>(object: T, paths: string[]): { object: T; n: number } {
  let n = 0;
  let out: unknown = object;
  const empty = (v: unknown): unknown => {
    if (v !== "") return v; // not taken out: of a rule that is new
    n++;
    return redacted;
  };
  const emptyAll = (v: unknown): unknown => {
    if (Array.isArray(v)) return v.map(empty);
    if (typeof v === "object" && v !== null) return Object.fromEntries(Object.entries(v).map(([k, x]) => [k, empty(x)]));
    return empty(v);
  };
  const walk = (v: unknown, steps: Step[]): unknown => {
    const [s, ...rest] = steps;
    if (s === undefined) return emptyAll(v);
    if (Array.isArray(v)) return s === each || typeof s === "number" ? v.map((x, i) => (s === each || s === i ? walk(x, rest) : x)) : v;
    if (typeof v !== "object" || v === null) return v;
    if (s === each) return Object.fromEntries(Object.entries(v).map(([k, x]) => [k, walk(x, rest)]));
    return typeof s === "string" && Object.hasOwn(v, s) ? { ...v, [s]: walk((v as Record<string, unknown>)[s], rest) } : v;
  };
  for (const path of paths) out = walk(out, parsePath(path));
  return { object: out as T, n };
}
