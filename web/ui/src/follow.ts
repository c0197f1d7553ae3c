import { ApiError, errorText, get, LinkError, type Freshness, type KubeObject, type List, type State } from "./api";
import { path, type Resource } from "./resources";
import { backoff, Stream, temporary, type ServerEvent } from "./sse";

// One selection of one resource, read in pages and then followed.

/** What selects objects, in the words of the API. */
export interface Selection {
  namespace?: string[];
  labelSelector?: string;
  fieldSelector?: string;
  filter?: string;
}

export interface Change {
  type: "ADDED" | "MODIFIED" | "DELETED";
  object: KubeObject;
}

export interface Handlers {
  /** A page of the list. */
  page(objects: KubeObject[], remaining: number): void;
  /** The list is complete: what was not in it since begin() is gone. */
  begin(): void;
  complete(): void;
  changes(changes: Change[]): void;
  status(s: FollowStatus): void;
}

export type Phase = "loading" | "ready" | "waiting" | "failed";

export interface FollowStatus {
  phase: Phase;
  error: ApiError | LinkError | null;
  fresh: Freshness | null;
  /** Whether changes arrive as they happen. */
  streaming: boolean;
  /** For how many objects the filter has no value, and why for one of them. */
  filterErrors?: { count: number; object?: string; message?: string };
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

// A browser opens six connections to a server. Streams of pages that nobody
// looks at would take them from the one that is looked at.
const streams = new Set<Stream>();
let hiding: ReturnType<typeof setTimeout> | undefined;
if (typeof document !== "undefined") {
  document.addEventListener("visibilitychange", () => {
    clearTimeout(hiding);
    if (document.hidden) hiding = setTimeout(() => streams.forEach((s) => s.pause()), 15_000);
    else streams.forEach((s) => s.resume());
  });
}

/** Lets all broken streams try again now. */
export function retryStreams(): void {
  for (const s of streams) s.retry();
}

export class Follower {
  private stream: Stream | null = null;
  private readonly stop = new AbortController();
  private version = "";
  private tries = 0;
  private wake: (() => void) | null = null;
  private running = false;
  private again = false;
  private resync = false;
  state: FollowStatus = { phase: "loading", error: null, fresh: null, streaming: false };

  constructor(
    readonly resource: Resource,
    private readonly selection: Selection,
    private readonly fields: string[],
    private readonly handlers: Handlers,
    /** Whether to follow by a stream; otherwise reload() says when. */
    private readonly live: boolean,
  ) {
    void this.load();
  }

  close(): void {
    this.stop.abort();
    this.wake?.();
    this.endStream();
  }

  /** Reads the list again: what changed shows as changes. */
  reload(): void {
    if (this.running) this.again = true;
    else void this.load();
  }

  retry(): void {
    this.tries = 0;
    this.wake?.();
    this.stream?.retry();
  }

  private url(more: Record<string, string>): string {
    const p = selectionQuery(this.selection);
    if (this.fields.length) p.set("fields", this.fields.join(","));
    for (const [k, v] of Object.entries(more)) p.set(k, v);
    return path(this.resource, "/objects", p);
  }

  private tell(s: Partial<FollowStatus>): void {
    if (this.stop.signal.aborted) return;
    this.state = { ...this.state, ...s };
    this.handlers.status(this.state);
  }

  private async load(): Promise<void> {
    this.running = true;
    this.endStream();
    while (!this.stop.signal.aborted) {
      try {
        await this.pages();
        this.tries = 0;
        this.tell({ phase: "ready", error: null });
        if (this.again) {
          this.again = false;
          continue;
        }
        if (this.live) this.follow();
        break;
      } catch (e) {
        if (this.stop.signal.aborted) return;
        if (e instanceof ApiError && e.code === 410) continue; // the list took too long
        if (e instanceof ApiError && !temporary(e)) {
          this.tell({ phase: "failed", error: e, streaming: false });
          break;
        }
        const error = e instanceof ApiError || e instanceof LinkError ? e : new LinkError(errorText(e));
        const state = e instanceof ApiError ? e.state : null;
        this.tell({
          phase: this.state.phase === "ready" ? "ready" : "waiting",
          error,
          fresh: state ? { state, age: null, at: Date.now(), reason: e instanceof ApiError ? e.message : "" } : this.state.fresh,
          streaming: false,
        });
        const hint = e instanceof ApiError ? Math.min(5000, e.retryAfter * 1000) : 0;
        await new Promise<void>((resolve) => {
          const t = setTimeout(resolve, Math.max(hint, backoff(this.tries++)));
          this.wake = () => {
            clearTimeout(t);
            resolve();
          };
        });
      }
    }
    this.running = false;
  }

  private async pages(): Promise<void> {
    let token = "";
    this.handlers.begin();
    for (let n = 0; ; n++) {
      const more: Record<string, string> = { limit: String(pageSizes[Math.min(n, pageSizes.length - 1)]) };
      if (token) more.continue = token;
      const { body, fresh } = await get<List>(this.url(more), this.stop.signal);
      token = body.metadata.continue ?? "";
      this.version = body.metadata.resourceVersion ?? "";
      this.handlers.page(body.items, body.metadata.remainingItemCount ?? 0);
      if (n === 0) this.tell({ fresh: fresh ?? null, error: null, filterErrors: body.metadata.filterErrors });
      if (!token) break;
    }
    this.handlers.complete();
  }

  private follow(): void {
    const more: Record<string, string> = { watch: "true" };
    if (this.version) more.resourceVersion = this.version;
    const stream = new Stream(this.url(more), {
      events: (events) => this.take(events),
      open: (fresh) => this.tell({ streaming: true, error: null, fresh: fresh ?? this.state.fresh }),
      lost: (e) => this.tell({ streaming: false, error: e instanceof ApiError || e instanceof LinkError ? e : new LinkError(errorText(e)) }),
      failed: (e) => {
        this.endStream();
        // The version is no longer remembered, or we read too slowly.
        if (e.code === 410) void this.load();
        else this.tell({ phase: "failed", error: e, streaming: false });
      },
    });
    this.stream = stream;
    streams.add(stream);
    if (document.hidden && hiding === undefined) stream.pause();
  }

  private endStream(): void {
    if (!this.stream) return;
    streams.delete(this.stream);
    this.stream.close();
    this.stream = null;
    this.resync = false;
  }

  private take(events: ServerEvent[]): void {
    let batch: Change[] = [];
    const flush = () => {
      if (batch.length) this.handlers.changes(batch);
      batch = [];
    };
    for (const e of events) {
      if (e.type === "ERROR") continue; // the stream reports it
      const m = JSON.parse(e.data) as { object?: KubeObject; state?: State; reason?: string; age?: number };
      switch (e.type) {
        case "ADDED":
        case "MODIFIED":
        case "DELETED":
          batch.push({ type: e.type, object: m.object! });
          if (this.resync && batch.length >= 500) this.flushPage(batch.splice(0));
          break;
        case "RESYNC":
          flush();
          this.resync = true;
          this.handlers.begin();
          break;
        case "BOOKMARK":
          if (this.resync && m.object?.metadata?.annotations?.["k8s.io/initial-events-end"]) {
            this.flushPage(batch.splice(0));
            this.resync = false;
            this.handlers.complete();
          }
          break;
        case "STATE":
          this.tell({ fresh: { state: m.state!, reason: m.reason, age: m.age ?? null, at: Date.now() } });
          break;
      }
    }
    if (this.resync) this.flushPage(batch);
    else flush();
  }

  private flushPage(batch: Change[]): void {
    if (batch.length) this.handlers.page(batch.map((c) => c.object), 0);
  }
}
