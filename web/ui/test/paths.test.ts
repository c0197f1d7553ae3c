import { describe, expect, it } from "vitest";
import { each, formatPath, parsePath, PathError, valuesAt } from "../src/paths";

describe("parsePath", () => {
  it("reads paths as the API does, and JSONPath's spelling of them", () => {
    expect(parsePath("spec.containers[*].image")).toEqual(["spec", "containers", each, "image"]);
    expect(parsePath(".status.ports[0]['a.b']")).toEqual(["status", "ports", 0, "a.b"]);
    expect(parsePath("$.a")).toEqual(["a"]);
    expect(parsePath("metadata.labels['it\\'s']")).toEqual(["metadata", "labels", "it's"]);
    expect(parsePath("metadata.annotations.app-name")).toEqual(["metadata", "annotations", "app-name"]);
  });
  it("points at what is wrong", () => {
    for (const [text, column] of [["", 1], ["a.", 3], ["a..b", 3], ["a[", 2], ["a[x]", 2], ["a[?(@.b)]", 2], ["a]b", 2], ["a b", 2]] as const) {
      let error: unknown;
      try {
        parsePath(text);
      } catch (e) {
        error = e;
      }
      expect(error, text).toBeInstanceOf(PathError);
      expect((error as PathError).column, text).toBe(column);
    }
  });
  it("writes what it read", () => {
    for (const p of ["a.b", "a[*].b", "a[0]", "a['b.c/d'].e", "a['it\\'s']"]) expect(formatPath(parsePath(p))).toBe(p);
  });
});

describe("valuesAt", () => {
  const o = { a: [{ b: 1 }, { b: 2 }, null, { c: 3 }], d: { "x.y": "z" }, n: null };
  it("walks", () => {
    const at = (p: string) => valuesAt(o, parsePath(p));
    expect(at("a[*].b")).toEqual([1, 2]);
    expect(at("a[1].b")).toEqual([2]);
    expect(at("d['x.y']")).toEqual(["z"]);
    expect(at("a.b")).toEqual([]);
    expect(at("n.x")).toEqual([]);
    expect(at("toString")).toEqual([]);
    expect(at("n")).toEqual([null]);
  });
});
