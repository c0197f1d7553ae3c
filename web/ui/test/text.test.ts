import { describe, expect, it } from "vitest";
import { markRedacted } from "../src/redact";
import { jsonLines, shown, textOfLine, visible, yaml, yamlLines } from "../src/text";

describe("yaml", () => {
  it("writes what kubectl writes", () => {
    expect(yaml({
      apiVersion: "v1", kind: "ConfigMap",
      metadata: { name: "a", labels: {}, finalizers: [], generation: 3, annotations: { "a.io/b": "true", empty: "" } },
      list: [{ name: "x", ports: [{ port: 80 }] }, "plain", ["a", ["b"]], null],
    })).toBe(`apiVersion: v1
kind: ConfigMap
metadata:
  name: a
  labels: {}
  finalizers: []
  generation: 3
  annotations:
    a.io/b: "true"
    empty: ""
list:
- name: x
  ports:
  - port: 80
- plain
- - a
  - - b
- null
`);
  });
  it("writes texts of many lines as blocks", () => {
    expect(yaml({ a: "one\ntwo\n", b: "one\ntwo", c: "one\n\ntwo\n\n", d: " one\ntwo", e: "a\u0000\nb" })).toBe(
      'a: |\n  one\n  two\nb: |-\n  one\n  two\nc: |+\n  one\n\n  two\n\nd: " one\\ntwo"\ne: "a\\u0000\\nb"\n');
  });
  it("quotes what would be something else", () => {
    for (const s of ["true", "no", "~", "12", "1e3", "0x1f", "1_000", "2026-01-02", "12:30", ".5", "-1", "a: b", "a #b", "- a", "*a", "&a", "!a", "%a", "@a", "[a", "{a", "", " a", "a ", "a:", "|", "\t", "1.5", "+1", "=", "?", "'a", "\u2028"]) {
      const quoted = JSON.stringify(s).replace("\u2028", "\\u2028");
      expect(yaml({ k: s }), quoted).toBe(`k: ${quoted}\n`);
    }
    for (const s of ["a", "10.0.0.1", "a:b", "a#b", "-a", "/x", "100m", "1Gi", "v1.2.3", "é", "a,b", "http://a/b:1", "$(X)"]) {
      expect(yaml({ k: s }), s).toBe(`k: ${s}\n`);
    }
  });
  it("survives what is no object", () => {
    expect(yaml(null)).toBe("null\n");
    expect(yaml([])).toBe("[]\n");
    expect(yaml("x")).toBe("x\n");
  });
});

describe("folding", () => {
  const lines = yamlLines({ a: { b: { c: 1 }, d: [{ e: 1, f: 2 }] }, g: "x\ny" });
  it("knows what each line folds", () => {
    expect(lines.map((l) => [textOfLine(l), l.end])).toEqual([
      ["a:", 5], ["  b:", 2], ["    c: 1", 0], ["  d:", 5], ["  - e: 1", 5], ["    f: 2", 0], ["g: |-", 8], ["  x", 0], ["  y", 0],
    ]);
  });
  it("leaves out what is folded", () => {
    expect(visible(lines, new Set([1, 6]))).toEqual([0, 1, 3, 4, 5, 6]);
    expect(visible(lines, new Set([0, 1]))).toEqual([0, 6, 7, 8]);
  });
});

describe("json", () => {
  it("is JSON", () => {
    const v = { a: [1, { b: null, c: [] }, "x\"y"], d: {}, e: true, f: { g: [[1]] } };
    const text = jsonLines(v).map(textOfLine).join("\n");
    expect(JSON.parse(text)).toEqual(v);
    expect(text).toBe(JSON.stringify(v, null, 2));
  });
});

describe("what cannot be seen", () => {
  it("is escaped, in quotes that YAML and JSON read back", () => {
    expect(shown("a\u202etxt.exe\u200b")).toBe("a\\u202etxt.exe\\u200b");
    expect(shown("שלום 你好 é 🙂")).toBe("שלום 你好 é 🙂");
    for (const s of ["a\u202eb", "a\u200b\nb", "\u{e0041}x"]) {
      const [line] = yamlLines({ k: s });
      const value = line!.parts.at(-1)![1];
      expect(value).toMatch(/^"[\x20-\x7e]*"$/);
      expect(JSON.parse(value)).toBe(s);
      expect(JSON.parse(jsonLines({ k: s }).map(textOfLine).join("\n"))).toEqual({ k: s });
    }
  });
});

describe("redacted values", () => {
  const secret = { data: { key: "", other: "kept" }, list: [{ token: "" }, { token: "" }], word: "" };
  it("are marked where a rule takes them out, and nowhere else", () => {
    const { object, n } = markRedacted(secret, ["data", "list[*].token", "nothing.here"]);
    expect(n).toBe(3);
    expect(yamlLines(object).map(textOfLine)).toEqual(["data:", "  key: redacted", "  other: kept", "list:", "- token: redacted", "- token: redacted", 'word: ""']);
    expect(yamlLines(object)[1]!.parts.at(-1)).toEqual(["gone", "redacted"]);
    expect(yaml(object)).toContain('  key: "" # redacted\n');
    expect(JSON.parse(JSON.stringify(object))).toEqual(secret);
  });
});
