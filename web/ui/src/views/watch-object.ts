import { signal } from "@preact/signals";
import { ApiError, errorText, get, LinkError, request, type KubeObject } from "../api";
import { fieldChanges, type FieldChange } from "../diff";
import { path, type Resource } from "../resources";
import { backoff, Stream, temporary } from "../sse";

// One object and what happens to it.

export interface Moment {
  at: number;
  version: string;
  type: "ADDED" | "MODIFIED" | "DELETED";
  changes: FieldChange[];
}

const momentsAtMost = 100;

export class ObjectModel {
  readonly object = signal<KubeObject | null>(null);
  /** Why there is none. */
  readonly error = signal<ApiError | LinkError | null>(null);
  readonly gone = signal(0);
  readonly streaming = signal(false);
  readonly history = signal<Moment[]>([]);
  private stream: Stream | null = null;
  private readonly stop = new AbortController();

  constructor(
    readonly resource: Resource,
    readonly ns: string,
    readonly name: string,
  ) {
    void this.load();
  }

  close(): void {
    this.stop.abort();
    this.stream?.close();
  }

  private async load(): Promise<void> {
    for (let n = 0; !this.stop.signal.aborted; n++) {
      let version = "";
      try {
        const { body, response } = await get<KubeObject>(objectPath(this.resource, this.ns, this.name), this.stop.signal);
        version = response.headers.get("Informerd-Resource-Version") ?? "";
        this.show(body, "MODIFIED");
        this.error.value = null;
      } catch (e) {
        if (this.stop.signal.aborted) return;
        this.error.value = e instanceof ApiError || e instanceof LinkError ? e : new LinkError(errorText(e));
        const missing = e instanceof ApiError && e.code === 404 && !e.hasCause("NotWatched");
        if (!missing) {
          if (e instanceof ApiError && !temporary(e)) return;
          await new Promise((r) => setTimeout(r, backoff(n)));
          continue;
        }
        if (this.object.value && !this.gone.value) this.gone.value = Date.now();
        version = await this.versionNow();
      }
      this.follow(version);
      return;
    }
  }

  /** The version from which to wait for an object that is not there. */
  private async versionNow(): Promise<string> {
    try {
      const r = await request(path(this.resource));
      return r.headers.get("Informerd-Resource-Version") ?? "";
    } catch {
      return "";
    }
  }

  private follow(version: string): void {
    const p = new URLSearchParams({ watch: "true", fieldSelector: "metadata.name=" + this.name });
    if (this.ns) p.set("namespace", this.ns);
    if (version) p.set("resourceVersion", version);
    this.stream?.close();
    this.stream = new Stream(path(this.resource, "/objects", p), {
      open: () => (this.streaming.value = true),
      lost: () => (this.streaming.value = false),
      failed: (e) => {
        this.streaming.value = false;
        if (e.code === 410) void this.load();
      },
      events: (events) => {
        for (const e of events) {
          if (e.type !== "ADDED" && e.type !== "MODIFIED" && e.type !== "DELETED") continue;
          this.show((JSON.parse(e.data) as { object: KubeObject }).object, e.type);
        }
      },
    });
  }

  private show(o: KubeObject, type: Moment["type"]): void {
    const before = this.object.peek();
    this.error.value = null;
    this.gone.value = type === "DELETED" ? Date.now() : 0;
    if (before && (before.metadata.resourceVersion !== o.metadata.resourceVersion || type === "DELETED")) {
      const moment: Moment = { at: Date.now(), version: o.metadata.resourceVersion ?? "", type: before.metadata.uid !== o.metadata.uid ? "ADDED" : type, changes: fieldChanges(before, o) };
      this.history.value = [moment, ...this.history.peek()].slice(0, momentsAtMost);
    }
    if (before && before.metadata.resourceVersion === o.metadata.resourceVersion && type !== "DELETED") return;
    this.object.value = o;
  }
}

export function objectPath(r: Resource, ns: string, name: string): string {
  return path(r, `/objects/${encodeURIComponent(ns || "-")}/${encodeURIComponent(name)}`);
}
