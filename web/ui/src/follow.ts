import { ApiError, errorText, get, LinkError, type FilterErrors, type KubeObject, type List } from "./api";
import type { Resource } from "./resources";
import type { Source } from "./source";
import { backoff, Stream, temporary, type ServerEvent } from "./sse";

// One selection of one source, read in pages and then followed.

/** What selects objects, in the words of the API. */
export interface Selection {
  namespace?: string[];
  labelSelector?: string;
  fieldSelector?: string;
  filter?: string;
}

export interface Found {
  resource: Resource;
  object: KubeObject;
}

export interface Change extends Found {
  type: "ADDED" | "MODIFIED" | "DELETED";
}

export interface Handlers {
  /** From here to complete() comes all there is of these resources. */
  begin(resources: Resource[]): void;
  page(found: Found[]): void;
  /** What did not come since begin() is gone. */
  complete(resources: Resource[]): void;
  changes(changes: Change[]): void;
  status(s: FollowStatus): void;
}

export type Phase = "loading" | "ready" | "waiting" | "failed";

export interface FollowStatus {
  phase: Phase;
  error: ApiError | LinkError | null;
  /** While pages are to come: how many objects there will be. */
  expected: number;
  /** Whether changes arrive as they happen. */
  streaming: boolean;
  /** For how many objects the filter has no value, and why for one of them. */
  filterErrors?: FilterErrors;
  /** The same of changes that came since, as the stream tells. */
  lateErrors?: FilterErrors;
}

/** The first page is small, so that it is on the screen at once. */
const pageSizes = [200, 2000];

export function selectionQuery(s: Selection): URLSearchParams {
  const p = new URLSearchParams();
  for (const ns of s.namespace ?? []) p.append("namespace", ns);
  if (s.labelSelector) p.set("labelSelector", s.labelSelector);
  if (s.fieldSelector) p.set("fieldSelector", s.fieldSelector);
  if (s.filter) p.set("filter", s.filter);
  return p;
}

export class Follower {
  private stream: Stream | null = null;
  private readonly stop = new AbortController();
  private since = "";
  private tries = 0;
  private wake: (() => void) | null = null;
  /** Resources that the stream tells anew, up to its next bookmark. */
  private anew: Resource[] = [];
  private status: FollowStatus = { phase: "loading", error: null, expected: 0, streaming: false };

  constructor(
    private readonly source: Source,
    private readonly selection: Selection,
    private readonly fields: string[],
    private sort: string,
    private readonly handlers: Handlers,
  ) {
    void this.load();
  }

  close(): void {
    this.stop.abort();
    this.wake?.();
    this.endStream();
  }

  /** Wants the list in another order. Where all of it is there that changes
   * nothing; otherwise it begins again, so that what comes first is there first. */
  orderBy(sort: string): void {
    this.sort = sort;
  }

  private url(more: Record<string, string>): string {
    const p = selectionQuery(this.selection);
    if (this.fields.length) p.set("fields", this.fields.join(","));
    for (const [k, v] of Object.entries(more)) if (v) p.set(k, v);
    return this.source.url(p);
  }

  private tell(s: Partial<FollowStatus>): void {
    if (this.stop.signal.aborted) return;
    this.status = { ...this.status, ...s };
    this.handlers.status(this.status);
  }

  private async load(): Promise<void> {
    this.endStream();
    while (!this.stop.signal.aborted) {
      try {
        if (!(await this.pages())) continue;
        this.tries = 0;
        this.tell({ phase: "ready", error: null });
        this.follow();
        return;
      } catch (e) {
        if (this.stop.signal.aborted) return;
        if (e instanceof ApiError && e.code === 410) continue; // the list took too long
        if (e instanceof ApiError && !temporary(e)) {
          this.tell({ phase: "failed", error: e, streaming: false });
          return;
        }
        this.tell({ phase: this.status.phase === "ready" ? "ready" : "waiting", error: known(e), streaming: false });
        await this.pause(e instanceof ApiError ? Math.min(5000, e.retryAfter * 1000) : 0);
      }
    }
  }

  private pause(atLeast: number): Promise<void> {
    return new Promise((resolve) => {
      const t = setTimeout(resolve, Math.max(atLeast, backoff(this.tries++)));
      this.wake = () => {
        clearTimeout(t);
        resolve();
      };
    });
  }

  /** Reads the list; false if another order was wanted meanwhile. */
  private async pages(): Promise<boolean> {
    const { sort } = this;
    let token = "";
    let read = 0;
    this.handlers.begin(this.source.resources);
    for (let n = 0; n === 0 || token; n++) {
      if (this.sort !== sort) return false;
      const limit = String(pageSizes[Math.min(n, pageSizes.length - 1)]);
      const { body } = await get<List>(this.url({ sort, limit, continue: token }), this.stop.signal);
      if (n === 0) {
        this.since = this.source.since(body);
        this.tell({ error: null, filterErrors: filterErrorsOf(body), lateErrors: undefined });
      }
      token = body.metadata.continue ?? "";
      read += body.items.length;
      this.handlers.page(body.items.flatMap((object) => {
        const resource = this.source.ofObject(object);
        return resource ? [{ resource, object }] : [];
      }));
      this.tell({ expected: token ? read + (body.metadata.remainingItemCount ?? 0) : 0 });
    }
    this.handlers.complete(this.source.resources);
    return true;
  }

  private follow(): void {
    this.stream = new Stream(this.url({ watch: "true" }), {
      events: (events) => this.take(events),
      open: () => this.tell({ streaming: true, error: null }),
      lost: (e) => this.tell({ streaming: false, error: known(e) }),
      failed: (e) => {
        this.endStream();
        // We read too slowly.
        if (e.code === 410) void this.load();
        else this.tell({ phase: "failed", error: e, streaming: false });
      },
    }, { lastId: this.since });
  }

  private endStream(): void {
    this.stream?.close();
    this.stream = null;
    this.anew = [];
  }

  private take(events: ServerEvent[]): void {
    let fresh: Found[] = [];
    let batch: Change[] = [];
    const flush = () => {
      if (fresh.length) this.handlers.page(fresh);
      if (batch.length) this.handlers.changes(batch);
      fresh = [];
      batch = [];
    };
    for (const e of events) {
      if (e.type === "ERROR") continue; // the stream reports it
      const m = JSON.parse(e.data) as { resource?: string; object?: KubeObject; filterErrors?: FilterErrors };
      const resource = this.source.ofEvent(m.resource);
      switch (e.type) {
        case "ADDED":
        case "MODIFIED":
        case "DELETED":
          if (!resource) break;
          if (this.anew.includes(resource)) fresh.push({ resource, object: m.object! });
          else batch.push({ type: e.type, resource, object: m.object! });
          break;
        case "RESYNC":
          flush();
          if (!resource) break;
          this.anew.push(resource);
          this.handlers.begin([resource]);
          break;
        case "WARNING":
          if (m.filterErrors) this.tell({ lateErrors: { ...m.filterErrors, count: m.filterErrors.count + (this.status.lateErrors?.count ?? 0) } });
          break;
        case "BOOKMARK":
          flush();
          if (this.anew.length) this.handlers.complete(this.anew);
          this.anew = [];
          break;
      }
    }
    flush();
  }
}

function known(e: unknown): ApiError | LinkError {
  return e instanceof ApiError || e instanceof LinkError ? e : new LinkError(errorText(e));
}

/** Of many resources together: how many, and the first one's reason. */
function filterErrorsOf(list: List): FilterErrors | undefined {
  const parts = (list.metadata.resources ?? []).flatMap((r) => r.filterErrors ?? []);
  return list.metadata.filterErrors ?? (parts[0] && { ...parts[0], count: parts.reduce((n, p) => n + p.count, 0) });
}
