import { describe, expect, it } from "vitest";
import { ageColumn, nameColumn, namespaceColumn, type Column } from "../src/table/columns";
import { facet, Rows, textFilter, type Row } from "../src/table/rows";

const status: Column = { id: "status", title: "Status", paths: [], type: "text", value: () => "" };
const restarts: Column = { id: "restarts", title: "Restarts", paths: [], type: "number", value: () => 0 };
const columns = [nameColumn, namespaceColumn, status, restarts, ageColumn];

function row(ns: string, name: string, s = "Running", n: number | null = 0, created = 0): Row {
  return { key: `pods ${ns}/${name}`, resource: "pods", ns, name, uid: name, deleting: false, cells: [name, ns, s, n, created], changed: 0 };
}
const names = (r: Rows) => [...r.view].map((x) => x.ns + "/" + x.name).join(" ");

describe("Rows", () => {
  it("keeps the natural order as pages and changes come", () => {
    const r = new Rows();
    r.arrange(columns, { column: -1, down: false }, null);
    r.apply([row("a", "1"), row("a", "3")]);
    r.apply([row("b", "1"), row("b", "2")]);
    r.apply([row("a", "2"), row("c", "1")], ["pods b/1"]);
    expect(names(r)).toBe("a/1 a/2 a/3 b/2 c/1");
  });

  it("sorts up and down, missing last either way, ties by name", () => {
    const r = new Rows();
    r.apply([row("a", "x", "", null, 30), row("a", "y", "", 2, 20), row("a", "z", "", 10, 10), row("b", "a", "", 2, 20)]);
    r.arrange(columns, { column: 3, down: false }, null);
    expect(names(r)).toBe("a/y b/a a/z a/x");
    r.arrange(columns, { column: 3, down: true }, null);
    expect(names(r)).toBe("a/z a/y b/a a/x");
    r.arrange(columns, { column: 4, down: false }, null); // youngest first
    expect(names(r)).toBe("a/x a/y b/a a/z");
  });

  it("is after any changes what sorting everything would give", () => {
    let seed = 7;
    const rnd = (n: number) => (seed = (seed * 1103515245 + 12345) & 0x7fffffff) % n;
    for (const order of [{ column: -1, down: false }, { column: 2, down: true }, { column: 3, down: false }, { column: 4, down: true }]) {
      const r = new Rows();
      const filter = textFilter("-status:gone", columns);
      r.arrange(columns, order, filter);
      const model = new Map<string, Row>();
      for (let step = 0; step < 300; step++) {
        const up: Row[] = [], down: string[] = [];
        const used = new Set<string>();
        for (let i = rnd(9) ? rnd(5) : 240; i >= 0; i--) { // few, and now and then many
          // So many names that there are several blocks.
          const x = row("n" + rnd(3), "p" + rnd(900), ["Running", "Gone", "Failed", ""][rnd(4)], rnd(3) ? rnd(5) : null, rnd(9));
          if (used.has(x.key)) continue;
          used.add(x.key);
          if (rnd(3) === 0) {
            down.push(x.key);
            model.delete(x.key);
          } else {
            up.push(x);
            model.set(x.key, x);
          }
        }
        r.apply(up, down);
        if (step % 50 === 49) { // and then a status of some, or of all
          const words = new Map([...model.values()].filter(() => rnd(step % 100 === 99 ? 4 : 1) === 0).map((x) => [x.key, ["Failed", "Gone", "Pending"][rnd(3)]!]));
          r.amend(2, (x) => words.get(x.key) ?? x.cells[2]!, step % 100 === 99 ? words.keys() : undefined);
          for (const key of words.keys()) model.set(key, r.all.get(key)!);
        }
      }
      const fresh = new Rows();
      fresh.apply([...model.values()]);
      fresh.arrange(columns, order, filter);
      expect(names(r)).toBe(names(fresh));
      expect(r.view.length).toBe([...r.view].length);
      [...r.view].forEach((x, i) => {
        if (r.view.at(i) !== x || r.view.indexOf(x) !== i) throw new Error(`row ${i} is not found there`);
      });
      expect([r.view.at(-1), r.view.at(r.view.length), r.view.indexOf({ ...r.view.at(0)! })]).toEqual([undefined, undefined, -1]);
      expect(r.all.size).toBe(model.size);
    }
  });

  it("takes a change among 100,000 rows quickly", () => {
    const r = new Rows();
    r.arrange(columns, { column: -1, down: false }, null);
    for (let page = 0; page < 50; page++) r.apply(Array.from({ length: 2000 }, (_, i) => row("ns", String(page * 2000 + i).padStart(6, "0"))));
    let best = Infinity;
    for (let i = 0; i < 20; i++) {
      const start = performance.now();
      r.apply([row("ns", "05000" + (i % 10), "Failed")]);
      best = Math.min(best, performance.now() - start);
    }
    expect(best).toBeLessThan(50); // it takes two; the machine may be busy
    expect(r.view).toHaveLength(100_000);
  }, 60_000);
});

describe("textFilter", () => {
  const rows = [row("shop", "web-1"), row("shop", "db-1", "CrashLoopBackOff", 12), row("data", "web-2", "")];
  const hit = (t: string) => rows.filter(textFilter(t, columns) ?? (() => true)).map((r) => r.name).join(" ");
  it("takes words, columns, exact values and exclusion", () => {
    expect(hit("web")).toBe("web-1 web-2");
    expect(hit("web shop")).toBe("web-1");
    expect(hit("status:crash")).toBe("db-1");
    expect(hit("-status:running")).toBe("db-1 web-2");
    expect(hit("status:=")).toBe("web-2");
    expect(hit("restarts:12")).toBe("db-1");
    expect(hit("WEB-1")).toBe("web-1");
    expect(hit("")).toBe("web-1 db-1 web-2");
  });
});

describe("facet", () => {
  it("counts", () => {
    expect(facet([row("a", "1"), row("a", "2"), row("b", "3")], 1)).toEqual([{ value: "a", n: 2 }, { value: "b", n: 1 }]);
  });
});
