import { compareCells, type Cell, type Column } from "./columns";

// The rows of a table: a map by key, and the order in which they are shown, in
// blocks. A table of a hundred thousand rows is never sorted again for a change,
// nor copied: each row is put in its place in its block. To move the rest about,
// or to throw a copy away, would be felt while somebody scrolls.

export interface Row {
  key: string;
  /** Key of its resource. */
  resource: string;
  ns: string;
  name: string;
  uid: string;
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

/** So many rows are in a block at most. */
const most = 512;

export function natural(a: Row, b: Row): number {
  return cmp(a.ns, b.ns) || cmp(a.name, b.name) || cmp(a.resource, b.resource);
}

function cmp(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Rows in order. */
export class Ordered implements Iterable<Row> {
  /** None is empty but the only one. */
  private blocks: Row[][] = [];
  length = 0;

  constructor(private readonly compare: (a: Row, b: Row) => number, sorted: Row[]) {
    for (let i = 0; !i || i < sorted.length; i += most) this.blocks.push(sorted.slice(i, i + most));
    this.length = sorted.length;
  }

  at(index: number): Row | undefined {
    for (const b of this.blocks) {
      if (index < b.length) return b[index];
      index -= b.length;
    }
  }

  /** Where a row is; -1 if it is not shown, or another is in its place. */
  indexOf(row: Row): number {
    const [b, i] = this.search(row);
    return this.blocks[b]![i] === row ? this.blocks.slice(0, b).reduce((n, b) => n + b.length, i) : -1;
  }

  [Symbol.iterator](): Iterator<Row> {
    return this.blocks.flat().values();
  }

  insert(row: Row): void {
    const [b, i] = this.search(row);
    const block = this.blocks[b]!;
    block.splice(i, 0, row);
    if (block.length > most) this.blocks.splice(b + 1, 0, block.splice(most / 2));
    this.length++;
  }

  /** The row must not have changed since it came. */
  remove(row: Row): void {
    const [b, i] = this.search(row);
    const block = this.blocks[b]!;
    if (block[i] !== row) return;
    block.splice(i, 1);
    if (!block[0] && this.blocks[1]) this.blocks.splice(b, 1);
    this.length--;
  }

  /** The block of a row and its index in it: where it is, or would be. */
  private search(row: Row): [block: number, index: number] {
    const b = first(this.blocks.length - 1, (i) => this.compare(this.blocks[i]!.at(-1)!, row) >= 0);
    const block = this.blocks[b]!;
    return [b, first(block.length, (i) => this.compare(block[i]!, row) >= 0)];
  }
}

/** The first of so many numbers for which a test holds, as it does for all after it. */
function first(count: number, test: (i: number) => boolean): number {
  let from = 0;
  while (from < count) {
    const middle = (from + count) >> 1;
    if (test(middle)) count = middle;
    else from = middle + 1;
  }
  return from;
}

export class Rows {
  readonly all = new Map<string, Row>();
  private columns: Column[] = [];
  private order: Order = { column: -1, down: false };
  private filter: ((r: Row) => boolean) | null = null;

  private compare = (a: Row, b: Row): number => {
    const { column, down } = this.order;
    const c = this.columns[column];
    return (c && compareCells(c, a.cells[column]!, b.cells[column]!, down)) || natural(a, b);
  };

  /** What is shown. It changes in place. */
  view = new Ordered(this.compare, []);

  /** Says how rows are shown, and arranges them so. */
  arrange(columns: Column[], order: Order, filter: ((r: Row) => boolean) | null): void {
    this.columns = columns;
    this.order = order;
    this.filter = filter;
    const rows = [...this.all.values()];
    this.view = new Ordered(this.compare, (filter ? rows.filter(filter) : rows).sort(this.compare));
  }

  /** Gives rows another value of a column: those of some keys one by one, or all in place, which are arranged again. */
  amend(column: number, of: (r: Row) => Cell, keys?: Iterable<string>): void {
    for (const key of keys ?? this.all.keys()) {
      const r = this.all.get(key);
      if (!r) continue;
      if (keys) this.apply([{ ...r, cells: r.cells.map((c, i) => (i === column ? of(r) : c)) }]);
      else r.cells[column] = of(r);
    }
    if (!keys) this.arrange(this.columns, this.order, this.filter);
  }

  /** Takes rows in and drops others by key. */
  apply(upserts: Row[], deletes: string[] = []): void {
    for (const key of deletes) {
      this.take(key);
      this.all.delete(key);
    }
    for (const row of upserts) {
      this.take(row.key);
      this.all.set(row.key, row);
      if (!this.filter || this.filter(row)) this.view.insert(row);
    }
  }

  private take(key: string): void {
    const old = this.all.get(key);
    if (old) this.view.remove(old);
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
