import { batch, signal } from "@preact/signals";
import type { KubeObject } from "../api";
import { Follower, type Change, type FollowStatus, type Selection } from "../follow";
import { keyOf, type Resource } from "../resources";
import { rowPaths, type Column } from "./columns";
import { Rows, type Order, type Row } from "./rows";

// A table's data: the rows of one or many resources, kept current.

export interface Part {
  resource: Resource;
  status: FollowStatus;
  /** Objects of the list seen so far, and how many are still to come. */
  seen: number;
  remaining: number;
  streaming: boolean;
}

/** Resources followed by a stream of their own; the others are read again when
 * informerd says that they changed. Browsers have six connections in all. */
const streamsAtMost = 2;

/** Between two redraws (ms), so that a burst does not redraw for every event. */
const calm = 120;

export class TableModel {
  readonly rows = new Rows();
  /** What is shown, in order; a new array with every change. */
  readonly view = signal<Row[]>([]);
  readonly total = signal(0);
  readonly parts = signal<Part[]>([]);
  readonly paused = signal(false);
  readonly held = signal(0);
  /** Changes since the table was opened, for whoever cannot see them. */
  readonly changes = signal(0);

  private followers: Follower[] = [];
  private pending = new Map<string, Row | null>();
  private seen = new Map<string, Set<string>>();
  private initial = new Set<string>();
  private marks = new Map<string, string>();
  private timer: ReturnType<typeof setTimeout> | 0 = 0;
  private flushed = 0;
  private closed = false;

  constructor(
    readonly resources: Resource[],
    readonly selection: Selection,
    readonly columns: Column[],
  ) {
    const fields = [...new Set([...rowPaths, ...columns.flatMap((c) => c.paths)])];
    this.parts.value = resources.map((resource, i) => ({
      resource, seen: 0, remaining: 0, streaming: i < streamsAtMost,
      status: { phase: "loading", error: null, fresh: null, streaming: false },
    }));
    this.followers = resources.map((resource, i) => {
      const key = keyOf(resource);
      this.marks.set(key, markOf(resource));
      return new Follower(resource, selection, fields, {
        begin: () => {
          this.seen.set(key, new Set());
          if (!this.initial.has(key)) this.initial.add(key);
        },
        page: (objects, remaining) => {
          const seen = this.seen.get(key)!;
          for (const o of objects) {
            const row = this.row(resource, o, 0);
            seen.add(row.key);
            const old = this.rows.all.get(row.key);
            if (old && same(old, row)) continue;
            if (old) row.changed = Date.now();
            this.pending.set(row.key, row);
          }
          this.part(i, { seen: seen.size, remaining });
          this.schedule(this.rows.size === 0);
        },
        complete: () => {
          const seen = this.seen.get(key);
          this.seen.delete(key);
          if (seen) for (const row of this.rows.all.values()) if (row.resource === key && !seen.has(row.key)) this.pending.set(row.key, null);
          this.part(i, { remaining: 0 });
          this.schedule(false);
        },
        changes: (changes) => this.take(resource, changes),
        status: (status) => this.part(i, { status }),
      }, i < streamsAtMost);
    });
  }

  close(): void {
    this.closed = true;
    clearTimeout(this.timer || undefined);
    for (const f of this.followers) f.close();
  }

  arrange(order: Order, filter: ((r: Row) => boolean) | null): void {
    this.rows.arrange(this.columns, order, filter);
    this.view.value = this.rows.view;
  }

  /** Reads again what is not followed by a stream and has changed. */
  refresh(now: ReadonlyMap<string, Resource>): void {
    for (const [i, f] of this.followers.entries()) {
      const key = keyOf(f.resource);
      const current = now.get(key);
      if (!current) continue;
      const mark = markOf(current);
      if (mark === this.marks.get(key)) continue;
      this.marks.set(key, mark);
      if (i >= streamsAtMost) f.reload();
    }
  }

  retry(): void {
    for (const f of this.followers) f.retry();
  }

  setPaused(on: boolean): void {
    this.paused.value = on;
    if (!on) this.flush();
  }

  private take(resource: Resource, changes: Change[]): void {
    const at = Date.now();
    for (const { type, object } of changes) {
      const row = this.row(resource, object, at);
      this.pending.set(row.key, type === "DELETED" ? null : row);
    }
    this.changes.value += changes.length;
    this.schedule(false);
  }

  private row(resource: Resource, o: KubeObject, changed: number): Row {
    const m = o.metadata;
    const ns = m.namespace ?? "";
    const key = keyOf(resource);
    return {
      key: `${key} ${ns}/${m.name}`, resource: key, kind: resource.kind, ns, name: m.name, uid: m.uid ?? "",
      created: m.creationTimestamp ? Date.parse(m.creationTimestamp) : 0, deleting: !!m.deletionTimestamp,
      cells: this.columns.map((c) => (c.id === "kind" ? resource.kind : value(c, o))), changed, gone: false,
    };
  }

  private part(i: number, change: Partial<Part>): void {
    const parts = this.parts.peek().slice();
    parts[i] = { ...parts[i]!, ...change };
    this.parts.value = parts;
  }

  private schedule(now: boolean): void {
    if (this.closed) return;
    if (this.paused.peek() && this.rows.size > 0) {
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
      if (row) upserts.push(row);
      else deletes.push(key);
    }
    this.pending.clear();
    this.rows.apply(upserts, deletes);
    this.flushed = performance.now();
    batch(() => {
      this.held.value = 0;
      this.view.value = this.rows.view;
      this.total.value = this.rows.size;
    });
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

function same(a: Row, b: Row): boolean {
  return a.uid === b.uid && a.deleting === b.deleting && a.cells.every((c, i) => c === b.cells[i]);
}

/** Changes when something in the resource did. */
function markOf(r: Resource): string {
  return `${r.counts.events} ${r.counts.relists} ${r.objects} ${r.state}`;
}
