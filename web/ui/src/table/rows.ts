import { compareCells, type Cell, type Column } from "./columns";

// The rows of a table: a map by key, and the order in which they are shown. A
// table of a hundred thousand rows is never sorted again for a change: a few are
// put in their places in a copy, many are merged in one pass.

export interface Row {
  key: string;
  /** Key of its resource. */
  resource: string;
  kind: string;
  ns: string;
  name: string;
  uid: string;
  created: number;
  deleting: boolean;
  cells: Cell[];
  /** When a change of it arrived (ms); 0 for what was there at first. */
  changed: number;
}

export interface Order {
  /** Index into the columns; -1 the natural order: namespace, name. */
  column: number;
  down: boolean;
}

/** So many changes are cheaper one by one. */
const few = 256;

export function natural(a: Row, b: Row): number {
  return cmp(a.ns, b.ns) || cmp(a.name, b.name) || cmp(a.resource, b.resource);
}

function cmp(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

export class Rows {
  readonly all = new Map<string, Row>();
  /** What is shown, in order. Replaced, never changed. */
  view: Row[] = [];
  private columns: Column[] = [];
  private order: Order = { column: -1, down: false };
  private filter: ((r: Row) => boolean) | null = null;

  get size(): number {
    return this.all.size;
  }

  private compare = (a: Row, b: Row): number => {
    const { column, down } = this.order;
    const c = this.columns[column];
    return (c && compareCells(c, a.cells[column]!, b.cells[column]!, down)) || natural(a, b);
  };

  /** Says how rows are shown, and arranges them so. */
  arrange(columns: Column[], order: Order, filter: ((r: Row) => boolean) | null): void {
    this.columns = columns;
    this.order = order;
    this.filter = filter;
    const rows = [...this.all.values()];
    this.view = (filter ? rows.filter(filter) : rows).sort(this.compare);
  }

  /** Gives rows another value of a column, where it is another. */
  amend(column: number, of: (r: Row) => Cell): void {
    const changed: Row[] = [];
    for (const r of this.all.values()) {
      const v = of(r);
      if (r.cells[column] === v) continue;
      const cells = r.cells.slice();
      cells[column] = v;
      changed.push({ ...r, cells });
    }
    if (changed.length) this.apply(changed);
  }

  /** Takes rows in and drops others by key. */
  apply(upserts: Row[], deletes: string[] = []): void {
    const stale: Row[] = [];
    for (const key of deletes) {
      const old = this.all.get(key);
      if (!old) continue;
      stale.push(old);
      this.all.delete(key);
    }
    const fresh: Row[] = [];
    for (const row of upserts) {
      const old = this.all.get(row.key);
      if (old) stale.push(old);
      this.all.set(row.key, row);
      if (!this.filter || this.filter(row)) fresh.push(row);
    }
    if (stale.length + fresh.length > few) this.view = this.merge(stale, fresh);
    else if (stale.length || fresh.length) this.view = this.place(stale, fresh);
  }

  /** Where a row is in a view, or would be. */
  private search(view: Row[], row: Row): number {
    let from = 0, to = view.length;
    while (from < to) {
      const middle = (from + to) >> 1;
      if (this.compare(view[middle]!, row) < 0) from = middle + 1;
      else to = middle;
    }
    return from;
  }

  private place(stale: Row[], fresh: Row[]): Row[] {
    const view = this.view.slice();
    for (const row of stale) {
      const at = this.search(view, row);
      if (view[at] === row) view.splice(at, 1);
    }
    for (const row of fresh) view.splice(this.search(view, row), 0, row);
    return view;
  }

  private merge(stale: Row[], fresh: Row[]): Row[] {
    const gone = new Set(stale);
    const kept = gone.size ? this.view.filter((r) => !gone.has(r)) : this.view;
    fresh.sort(this.compare);
    const last = kept[kept.length - 1];
    // Pages of a list arrive in order: most go to the end.
    if (!last || !fresh[0] || this.compare(last, fresh[0]) < 0) return kept.concat(fresh);
    const out: Row[] = [];
    let i = 0;
    for (const r of kept) {
      while (i < fresh.length && this.compare(fresh[i]!, r) < 0) out.push(fresh[i++]!);
      out.push(r);
    }
    return out.concat(fresh.slice(i));
  }
}

/** A test for what somebody typed to narrow a table down: every word must be in
 * some cell; column:word asks one column; -word must not be there. */
export function textFilter(input: string, columns: Column[]): ((r: Row) => boolean) | null {
  const tests = (input.match(/(?:[^\s"]+|"[^"]*")+/g) ?? []).map((raw) => {
    let word = raw.replace(/"/g, "").toLowerCase();
    const not = word.length > 1 && word.startsWith("-");
    if (not) word = word.slice(1);
    const colon = word.indexOf(":");
    const index = colon > 0 ? columns.findIndex((c) => c.id === word.slice(0, colon) || c.title.toLowerCase() === word.slice(0, colon)) : -1;
    const exact = index >= 0 && word[colon + 1] === "=";
    if (index >= 0) word = word.slice(colon + (exact ? 2 : 1));
    return (r: Row) => {
      const hit = index >= 0 ? cellHas(r.cells[index]!, word, exact) : r.name.includes(word) || r.cells.some((c) => cellHas(c, word, false));
      return hit !== not;
    };
  });
  return tests.length ? (r) => tests.every((t) => t(r)) : null;
}

function cellHas(c: Cell, word: string, exact: boolean): boolean {
  if (c === null) return exact && word === "";
  const text = String(c).toLowerCase();
  return exact ? text === word : text.includes(word);
}

/** The most frequent values of a column among rows. */
export function facet(rows: Iterable<Row>, column: number, most = 12): { value: string; n: number }[] {
  const counts = new Map<string, number>();
  for (const r of rows) {
    const v = r.cells[column];
    const text = v === null || v === undefined ? "" : String(v);
    counts.set(text, (counts.get(text) ?? 0) + 1);
    if (counts.size > 5000) return []; // as good as unique: no facet
  }
  return [...counts].map(([value, n]) => ({ value, n })).sort((a, b) => b.n - a.n || cmp(a.value, b.value)).slice(0, most);
}
