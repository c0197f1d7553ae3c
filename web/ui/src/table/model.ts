import { signal } from "@preact/signals";
import type { KubeObject } from "../api";
import { Follower, type Change, type FollowStatus, type Found, type Selection } from "../follow";
import { keyOf, type Resource } from "../resources";
import type { Source } from "../source";
import { rowPaths, type Column } from "./columns";
import { Rows, type Order, type Ordered, type Row } from "./rows";

// A table's data: the rows of one or many resources, kept current.

/** Between two redraws (ms), so that a burst does not redraw for every event. */
const calm = 120;

/** How objects are, by key of their rows, and all that are not named. */
export interface Verdicts {
  of: ReadonlyMap<string, string>;
  others: string;
}

export class TableModel {
  readonly rows = new Rows();
  /** Grows with every change of what is shown. */
  readonly version = signal(0);
  /** How each source is doing. */
  readonly parts = signal<FollowStatus[]>([]);
  readonly paused = signal(false);
  readonly held = signal(0);

  private followers: Follower[] = [];
  private pending = new Map<string, Row | null>();
  /** Rows that came since the beginning of a list that is not complete. */
  private seen = new Map<string, Set<string>>();
  private timer: ReturnType<typeof setTimeout> | 0 = 0;
  private flushed = 0;
  private closed = false;
  /** What is not good, by key of the row; null while that is not known. */
  private verdicts: Verdicts | null = null;
  /** What the rows that are shown were told. */
  private told: Verdicts | null = null;
  private readonly health: number;

  constructor(
    sources: Source[],
    selection: Selection,
    readonly columns: Column[],
    sort: string,
  ) {
    this.health = columns.findIndex((c) => c.id === "health");
    const fields = [...new Set([...rowPaths, ...columns.flatMap((c) => c.paths)])];
    this.parts.value = sources.map(() => ({ phase: "loading", error: null, expected: 0, streaming: false }));
    this.followers = sources.map((source, i) => new Follower(source, selection, fields, sort, {
      begin: (resources) => resources.forEach((r) => this.seen.set(keyOf(r), new Set())),
      page: (found) => this.page(found),
      complete: (resources) => this.complete(resources),
      changes: (changes) => this.take(changes),
      status: (status) => (this.parts.value = this.parts.peek().map((s, j) => (i === j ? status : s))),
    }));
  }

  /** What is shown, in order. It changes in place; who reads it here is told, as a signal's readers are. */
  get view(): Ordered {
    void this.version.value;
    return this.rows.view;
  }

  private changed(): void {
    this.version.value = this.version.peek() + 1;
  }

  close(): void {
    this.closed = true;
    clearTimeout(this.timer || undefined);
    for (const f of this.followers) f.close();
  }

  /** Says how rows are shown; sort is how the server says the same, or nothing. */
  arrange(order: Order, filter: ((r: Row) => boolean) | null, sort: string): void {
    for (const f of this.followers) f.orderBy(sort);
    this.rows.arrange(this.columns, order, filter);
    this.changed();
  }

  /** Tells how objects are. */
  setHealth(verdicts: Verdicts): void {
    this.verdicts = verdicts;
    const before = this.told;
    this.told = this.paused.peek() ? null : verdicts;
    if (this.health < 0 || !this.told) return;
    this.rows.amend(this.health, (r) => this.healthOf(r.key), before?.others === verdicts.others ? changed(before.of, verdicts.of) : undefined);
    this.changed();
  }

  private healthOf(key: string): string {
    return this.verdicts ? (this.verdicts.of.get(key) ?? this.verdicts.others) : "";
  }

  /** What came before is shown first: no flush that is due may move a table that is paused. */
  setPaused(on: boolean): void {
    this.flush();
    this.paused.value = on;
    if (!on && this.verdicts) this.setHealth(this.verdicts);
  }

  private page(found: Found[]): void {
    for (const { resource, object } of found) {
      const row = this.row(resource, object, 0);
      this.seen.get(row.resource)?.add(row.key);
      const old = this.rows.all.get(row.key);
      if (old && same(old, row)) continue;
      if (old) row.changed = Date.now();
      this.pending.set(row.key, row);
    }
    this.schedule(this.rows.all.size === 0);
  }

  private complete(resources: Resource[]): void {
    const lists = new Map<string, Set<string>>();
    for (const r of resources) {
      const seen = this.seen.get(keyOf(r));
      if (seen) lists.set(keyOf(r), seen);
      this.seen.delete(keyOf(r));
    }
    for (const row of this.rows.all.values()) if (lists.get(row.resource)?.has(row.key) === false) this.pending.set(row.key, null);
    this.schedule(false);
  }

  private take(changes: Change[]): void {
    const at = Date.now();
    for (const { type, resource, object } of changes) {
      const row = this.row(resource, object, at);
      this.pending.set(row.key, type === "DELETED" ? null : row);
    }
    this.schedule(false);
  }

  private row(resource: Resource, o: KubeObject, changed: number): Row {
    const m = o.metadata;
    const ns = m.namespace ?? "";
    const key = keyOf(resource);
    return {
      key: `${key} ${ns}/${m.name}`, resource: key, ns, name: m.name, uid: m.uid ?? "",
      deleting: !!m.deletionTimestamp,
      cells: this.columns.map((c) => (c.id === "kind" ? resource.kind : c.id === "cluster" ? resource.cluster! : c.id === "health" ? this.healthOf(`${key} ${ns}/${m.name}`) : value(c, o))), changed,
    };
  }

  private schedule(now: boolean): void {
    if (this.closed) return;
    if (this.paused.peek() && this.rows.all.size > 0) {
      this.held.value = this.pending.size;
      return;
    }
    if (now) {
      this.flush();
      return;
    }
    if (this.timer) return;
    this.timer = setTimeout(() => this.flush(), Math.max(0, calm - (performance.now() - this.flushed)));
  }

  private flush(): void {
    clearTimeout(this.timer || undefined);
    this.timer = 0;
    if (this.closed) return;
    const upserts: Row[] = [];
    const deletes: string[] = [];
    for (const [key, row] of this.pending) {
      if (!row) deletes.push(key);
      else if (upserts.push(row) && this.health > 0) row.cells[this.health] = this.healthOf(key); // known better than when it came
    }
    this.pending.clear();
    this.rows.apply(upserts, deletes);
    this.flushed = performance.now();
    this.held.value = 0;
    this.changed();
  }
}

/** A cell; an object that no column was made for must not take the page down. */
function value(c: Column, o: KubeObject) {
  try {
    return c.value(o);
  } catch {
    return null;
  }
}

/** The keys of which two maps say different things. */
function changed(before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>): string[] {
  return [...new Set([...before.keys(), ...after.keys()])].filter((key) => before.get(key) !== after.get(key));
}

function same(a: Row, b: Row): boolean {
  return a.uid === b.uid && a.deleting === b.deleting && a.cells.every((c, i) => c === b.cells[i]);
}
