import { describe, expect, it } from "vitest";
import { fieldChanges, hunks, lineDiff, type LineChange } from "../src/diff";

function random(seed: number) {
  return () => ((seed = (seed * 1103515245 + 12345) & 0x7fffffff) / 0x7fffffff);
}

describe("lineDiff", () => {
  const sides = (d: LineChange[]) => [d.filter((l) => l.op !== "+").map((l) => l.text), d.filter((l) => l.op !== "-").map((l) => l.text)];

  it("holds both texts, and is as short as can be", () => {
    const r = random(1);
    for (let n = 0; n < 400; n++) {
      const text = () => Array.from({ length: Math.floor(r() * 12) }, () => "abcd"[Math.floor(r() * 4)]!);
      const a = text(), b = text();
      const d = lineDiff(a, b);
      expect(sides(d)).toEqual([a, b]);
      expect(d.filter((l) => l.op === " ")).toHaveLength(common(a, b));
    }
  });
  it("gives up politely where nothing is alike", () => {
    const a = Array.from({ length: 3000 }, (_, i) => "a" + i), b = Array.from({ length: 3000 }, (_, i) => "b" + i);
    expect(sides(lineDiff(a, b, 100))).toEqual([a, b]);
  });
});

/** Length of the longest common subsequence, the slow way. */
function common(a: string[], b: string[]): number {
  const t = Array.from({ length: a.length + 1 }, () => new Array<number>(b.length + 1).fill(0));
  for (let i = 1; i <= a.length; i++) for (let j = 1; j <= b.length; j++) t[i]![j] = a[i - 1] === b[j - 1] ? t[i - 1]![j - 1]! + 1 : Math.max(t[i - 1]![j]!, t[i]![j - 1]!);
  return t[a.length]![b.length]!;
}

describe("hunks", () => {
  it("leaves out what is equal and far away", () => {
    const d = lineDiff([..."abcdefghij"], [..."abcdefghiJ"]);
    expect(hunks(d, 1)).toEqual([8, { op: " ", text: "i" }, { op: "-", text: "j" }, { op: "+", text: "J" }]);
  });
});

describe("fieldChanges", () => {
  it("names what moved, by path", () => {
    expect(fieldChanges(
      { metadata: { resourceVersion: "1", labels: { a: "1" } }, spec: { replicas: 2, gone: true } },
      { metadata: { resourceVersion: "2", labels: { a: "1", "b.io/c": "2" } }, spec: { replicas: 3 } },
    )).toEqual([
      { path: "metadata.labels['b.io/c']", after: "2", op: "add" },
      { path: "spec.replicas", before: 2, after: 3, op: "set" },
      { path: "spec.gone", before: true, op: "remove" },
    ]);
  });
  it("compares elements with names by name", () => {
    const c = (...l: [string, string][]) => ({ status: { conditions: l.map(([type, status]) => ({ type, status })) } });
    expect(fieldChanges(c(["A", "1"], ["B", "1"]), c(["B", "2"], ["A", "1"]))).toEqual([
      { path: "status.conditions[0].status", before: "1", after: "2", op: "set" },
    ]);
    expect(fieldChanges(c(["A", "1"]), c(["A", "1"], ["B", "1"]))).toEqual([{ path: "status.conditions[1]", after: { type: "B", status: "1" }, op: "add" }]);
  });
  it("finds nothing in equal objects", () => {
    expect(fieldChanges({ a: [1, { b: null }] }, { a: [1, { b: null }] })).toEqual([]);
  });
});
