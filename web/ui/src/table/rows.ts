import { compareCells, type Cell, type Column } from "./columns";

// The rows of a table: a map by key, and the order in which they are shown.
// Changes are merged into that order in one pass, however many come together,
// so that a table of a hundred thousand rows takes a burst in a millisecond or
// two instead of being sorted again.

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
  gone: boolean;
}

export interface Order {
  /** Index into the columns; -1 the natural order: namespace, name. */
  column: number;
  down: boolean;
}

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

  /** Takes rows in and drops others by key. */
  apply(upserts: Row[], deletes: string[] = []): void {
    let removed = 0;
    for (const key of deletes) {
      const old = this.all.get(key);
      if (!old) continue;
      old.gone = true;
      removed++;
      this.all.delete(key);
    }
    const fresh: Row[] = [];
    for (const row of upserts) {
      const old = this.all.get(row.key);
      if (old) {
        old.gone = true;
        removed++;
      }
      this.all.set(row.key, row);
      if (!this.filter || this.filter(row)) fresh.push(row);
    }
    if (!removed && !fresh.length) return;
    fresh.sort(this.compare);
    this.view = this.merge(this.view, fresh);
  }

  clear(): void {
    this.all.clear();
    this.view = [];
  }

  private merge(view: Row[], fresh: Row[]): Row[] {
    const lastRow = view[view.length - 1];
    const out: Row[] = [];
    // Pages of a list arrive in order: most batches go to the end.
    if (lastRow && fresh[0] && this.compare(lastRow, fresh[0]) < 0) {
      for (const r of view) if (!r.gone) out.push(r);
      for (const r of fresh) if (!r.gone) out.push(r);
      return out;
    }
    let i = 0;
    for (const r of view) {
      if (r.gone) continue;
      while (i < fresh.length && this.compare(fresh[i]!, r) < 0) {
        if (!fresh[i]!.gone) out.push(fresh[i]!);
        i++;
      }
      out.push(r);
    }
    for (; i < fresh.length; i++) if (!fresh[i]!.gone) out.push(fresh[i]!);
    return out;
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
