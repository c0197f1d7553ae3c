import { answered, ApiError, LinkError, request } from "./api";

// Server-sent events over fetch. An EventSource would hide why a stream was
// refused, could not begin at a version, and could not be paused while the page
// is hidden; this one resumes with Last-Event-ID just the same.

export interface ServerEvent {
  type: string;
  id: string;
  data: string;
}

/** Cuts a text stream into events. Feed it chunks as they come. */
export class EventParser {
  private rest = "";
  private type = "";
  private id = "";
  private data: string[] = [];

  push(chunk: string): ServerEvent[] {
    const events: ServerEvent[] = [];
    const text = this.rest + chunk;
    let start = 0;
    for (;;) {
      const nl = text.indexOf("\n", start);
      if (nl < 0) break;
      const end = nl > start && text.charCodeAt(nl - 1) === 13 ? nl - 1 : nl;
      const line = text.slice(start, end);
      start = nl + 1;
      if (line === "") {
        if (this.data.length > 0) events.push({ type: this.type || "message", id: this.id, data: this.data.join("\n") });
        this.type = this.id = "";
        this.data = [];
        continue;
      }
      const colon = line.indexOf(":");
      if (colon === 0) continue; // a comment: a sign of life
      const field = colon < 0 ? line : line.slice(0, colon);
      let value = colon < 0 ? "" : line.slice(colon + 1);
      if (value.startsWith(" ")) value = value.slice(1);
      if (field === "event") this.type = value;
      else if (field === "data") this.data.push(value);
      else if (field === "id") this.id = value;
    }
    this.rest = text.slice(start);
    return events;
  }
}

/** Milliseconds to wait before try number n (from 0): doubling, with jitter. */
export function backoff(n: number, random: () => number = Math.random): number {
  const full = Math.min(10_000, 300 * 2 ** n);
  return full / 2 + (random() * full) / 2;
}

export interface StreamHandlers {
  /** Events in order, as many as came together. */
  events(events: ServerEvent[]): void;
  open?(): void;
  /** The stream broke; it comes back by itself. */
  lost?(error: Error): void;
  /** The server refused for good, or ended the stream with an error. */
  failed(error: ApiError): void;
}

export interface StreamOptions {
  /** The id of the event to begin after; none begins with what there is. */
  lastId?: string;
  /** Silence after which a stream is taken for dead (ms). The server speaks every 15 s. */
  patience?: number;
  wait?: (ms: number, signal: AbortSignal) => Promise<void>;
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

/** A stream that reconnects until it is closed or refused for good. */
export class Stream {
  /** Where a reconnect goes on; "" begins again. */
  private lastId: string;
  private readonly ended = new AbortController();
  private tries = 0;
  private kick: (() => void) | null = null;
  private resumeWanted: (() => void) | null = null;
  private connection: AbortController | null = null;

  constructor(
    private readonly url: string,
    private readonly handlers: StreamHandlers,
    private readonly options: StreamOptions = {},
  ) {
    this.lastId = options.lastId ?? "";
    streams.add(this);
    if (typeof document !== "undefined" && document.hidden && hiding === undefined) this.pause(); // opened in the background
    void this.run().finally(() => streams.delete(this));
  }

  close(): void {
    this.ended.abort();
    this.connection?.abort();
    this.kick?.();
    this.resumeWanted?.();
  }

  /** Stops reading until resume(); nothing is missed. */
  pause(): void {
    if (this.resumeWanted || this.ended.signal.aborted) return;
    this.paused = new Promise((r) => (this.resumeWanted = r));
    this.connection?.abort();
  }
  private paused: Promise<void> | null = null;

  resume(): void {
    this.resumeWanted?.();
    this.resumeWanted = this.paused = null;
  }

  /** Tries again now instead of after the pause. */
  retry(): void {
    this.tries = 0;
    this.kick?.();
  }

  private async run(): Promise<void> {
    while (!this.ended.signal.aborted) {
      if (this.paused) await this.paused;
      if (this.ended.signal.aborted) return;
      try {
        await this.connect();
        // A stream that ends in order is that of a server which stops or is
        // reconfigured: come back soon.
        this.handlers.lost?.(new LinkError("the stream ended"));
      } catch (e) {
        if (this.ended.signal.aborted) return;
        if (this.paused) continue;
        if (e instanceof ApiError && !temporary(e)) {
          this.ended.abort();
          this.handlers.failed(e);
          return;
        }
        this.handlers.lost?.(e as Error);
      }
      await this.sleep(backoff(this.tries++));
    }
  }

  private async connect(): Promise<void> {
    const connection = (this.connection = new AbortController());
    const headers: Record<string, string> = { Accept: "text/event-stream" };
    if (this.lastId) headers["Last-Event-ID"] = this.lastId;
    let watchdog: ReturnType<typeof setTimeout> | undefined;
    const alive = () => {
      clearTimeout(watchdog);
      watchdog = setTimeout(() => connection.abort(), this.options.patience ?? 40_000);
    };
    alive();
    try {
      const r = await request(this.url, { headers, signal: connection.signal });
      this.handlers.open?.();
      const reader = r.body!.getReader();
      const decoder = new TextDecoder();
      const parser = new EventParser();
      for (;;) {
        let chunk: ReadableStreamReadResult<Uint8Array>;
        try {
          chunk = await reader.read();
        } catch {
          throw new LinkError("the connection broke");
        }
        if (chunk.done) return;
        alive();
        answered();
        this.tries = 0;
        const events = parser.push(decoder.decode(chunk.value, { stream: true }));
        if (events.length === 0) continue;
        this.handlers.events(events);
        for (const e of events) {
          if (e.id) this.lastId = e.id;
          if (e.type === "ERROR") throw streamError(e.data);
        }
      }
    } catch (e) {
      if (connection.signal.aborted && !this.ended.signal.aborted && !this.paused) {
        throw new LinkError("informerd has gone silent");
      }
      throw e;
    } finally {
      clearTimeout(watchdog);
      connection.abort();
    }
  }

  private sleep(ms: number): Promise<void> {
    if (this.options.wait) return this.options.wait(ms, this.ended.signal);
    return new Promise((resolve) => {
      const t = setTimeout(resolve, ms);
      this.kick = () => {
        clearTimeout(t);
        resolve();
      };
    });
  }
}

/** Errors that time heals: no data yet, too many requests, a server's own. */
export function temporary(e: ApiError): boolean {
  return e.code === 429 || e.code >= 500;
}

function streamError(data: string): ApiError {
  const status = (JSON.parse(data) as { object?: { code?: number } }).object ?? {};
  return new ApiError(status.code ?? 500, status);
}
