import { computed, signal } from "@preact/signals";
import { answered, ApiError, errorText, link, request, unanswered, type List, type State } from "./api";
import { kept } from "./kept";
import { params, query, type Value } from "./route";
import { backoff } from "./sse";

// What informerd holds of each resource, asked for every two seconds. With the
// ETag of the last answer that costs nothing while nothing changes. The same
// question tells whether informerd answers at all.

export interface Resource {
  cluster?: string;
  group: string;
  version: string;
  resource: string;
  /** As kubectl names it: pods, deployments.apps. */
  name: string;
  kind: string;
  singular?: string;
  shortNames?: string[];
  namespaced: boolean;
  namespaces?: string[];
  labelSelector?: string;
  fieldSelector?: string;
  /** Paths whose values are not known: they are served as "". */
  redacted?: string[];
  state: State;
  reason?: string;
  since?: string;
  objects: number;
  bytes: number;
  rawBytes: number;
  resourceVersion?: string;
  lastEventTime?: string;
  provenTime?: string;
  age?: number;
  indexes: string[];
  counts: { events: number; relists: number; compared: number; fetched: number; expired: number; restarts: number; unextracted: number; undecoded: number; mended: number; subscribers: number };
  snapshot?: { time?: string; drops: number; dropReason?: string };
}

const interval = 2000;

/** Those of all clusters. */
export const held = signal<Resource[]>([]);
export const allClusters = computed(() => [...new Set(held.value.map((r) => r.cluster ?? ""))]);
export const several = computed(() => allClusters.value.length > 1);
/** The cluster that somebody has chosen; "" is all of them. */
export const within = kept("informerd.cluster");
/** The clusters that are looked at: that of the address, the chosen one, or all. */
export const clusters = computed(() => {
  const at = params.value.get("cluster") || within.value;
  return allClusters.value.includes(at) ? [at] : allClusters.value;
});
/** The cluster as addresses have it: where there is one, they name none. */
export const clusterOf = (r: { cluster?: string }): string | undefined => (several.peek() ? r.cluster : undefined);
/** Whether what is looked at is of several of them. */
export const mixed = computed(() => clusters.value.length > 1);
/** Those of the clusters that are looked at. */
export const resources = computed(() => held.value.filter((r) => clusters.value.includes(r.cluster ?? "")));
/** Whether there has been an answer at all. */
export const known = signal(false);
/** Why there was none although informerd answers. */
export const refused = signal("");
/** When the answer shown was given (ms). */
export const asOf = signal(0);
/** Events per second of each resource, smoothed. */
export const rates = signal<ReadonlyMap<string, number>>(new Map());
/** The time, each second while the page is looked at. */
export const now = signal(Date.now());

/** When the resources shown were asked for (ms). */
let asked = 0;

/**
 * The seconds since the API server last proved a resource current; null where
 * nobody knows. It is what informerd says and the time since: the clocks of
 * informerd and of this browser are not compared.
 */
export function ageOf(r: Resource): number | null {
  return r.age === undefined ? null : r.age + Math.max(0, now.value - asked) / 1000;
}

/** What tells a resource from all others. */
export function keyOf(r: { cluster?: string; name: string }): string {
  return r.cluster ? r.cluster + "/" + r.name : r.name;
}

export const byKey = computed(() => new Map(resources.value.map((r) => [keyOf(r), r])));

/** Another number once anything has changed. */
export function changes(): number {
  return resources.peek().reduce((n, r) => n + r.counts.events + r.counts.relists, 0);
}

export function readable(r: Resource): boolean {
  return r.state === "live" || r.state === "warm" || r.state === "stale";
}

/** Finds a resource by any name that kubectl accepts. */
export function find(name: string, cluster = ""): Resource | undefined {
  const n = name.toLowerCase();
  let weak: Resource | undefined;
  for (const r of resources.value) {
    if (cluster && r.cluster !== cluster) continue;
    if (r.name.toLowerCase() === n || `${r.resource}.${r.version}.${r.group}` === n) return r;
    if (!weak && (r.resource === n || r.singular === n || r.kind.toLowerCase() === n || r.shortNames?.includes(n))) weak = r;
  }
  return weak;
}

/** Finds the resource of an apiVersion and kind, as owner references name it. */
export function findKind(apiVersion: string | undefined, kind: string, cluster = ""): Resource | undefined {
  const group = apiVersion?.includes("/") ? apiVersion.split("/")[0] : "";
  return resources.value.find((r) => r.kind === kind && r.group === group && (!cluster || r.cluster === cluster));
}

/** Names as the address has them: "pods,*.apps", "*". */
export function match(pattern: string, cluster = ""): Resource[] {
  const out: Resource[] = [];
  for (const one of pattern.split(",").filter(Boolean)) {
    const found = one.includes("*") ? resources.value.filter((r) => glob(one, r) && (!cluster || r.cluster === cluster)) : clusters.value.map((c) => find(one, cluster || c));
    for (const r of found) if (r && !out.includes(r)) out.push(r);
  }
  return out;
}

/** Which of the names nothing is called. */
export function unknownNames(pattern: string, cluster = ""): string[] {
  return pattern.split(",").filter((one) => one && match(one, cluster).length === 0);
}

/** The same as the API knows it: it would refuse names that nothing has. */
export function asPatterns(pattern: string, found: Resource[]): string {
  const globs = pattern.split(",").filter((p) => p.includes("*"));
  return [...new Set([...globs, ...found.filter((r) => !globs.some((g) => glob(g, r))).map((r) => r.name)])].join(",");
}

/** As the API reads it: a star for the resource does not reach into the group. */
function glob(pattern: string, r: Resource): boolean {
  if (pattern === "*") return true;
  const [resource = "", ...group] = pattern.toLowerCase().split(".");
  const like = (glob: string, text: string) => new RegExp("^" + glob.replace(/[.+^${}()|[\]\\]/g, "\\$&").replace(/\*/g, ".*") + "$").test(text);
  return like(resource, r.resource) && like(group.join("."), r.group);
}

/** What there is to an object below /v1/graph and /v1/health, with a question about it. */
export function askOf(r: Resource, ns: string | undefined, name: string, question: Record<string, Value>): string {
  return [r.name, ns || "-", name].map(encodeURIComponent).join("/") + "?" + query({ ...question, cluster: clusterOf(r) });
}

/** The address of a resource in the API. */
export function path(r: Resource, below = "", more: URLSearchParams | Record<string, string> = {}): string {
  const p = new URLSearchParams(more);
  const cluster = clusterOf(r);
  if (cluster) p.set("cluster", cluster);
  const q = p.toString();
  return `v1/resources/${encodeURIComponent(r.name)}${below}${q ? "?" + q : ""}`;
}

let etag = "";
let failures = 0;
let timer: ReturnType<typeof setTimeout> | undefined;
let last = new Map<string, { events: number; at: number; rate: number }>();

/** Asks now, and from then on by itself. */
export async function poll(): Promise<void> {
  clearTimeout(timer);
  const timeout = new AbortController();
  const watchdog = setTimeout(() => timeout.abort(), 8000);
  const began = Date.now();
  try {
    const r = await request("v1/resources", { headers: etag ? { "If-None-Match": etag } : {}, signal: timeout.signal });
    const at = Date.now();
    if (r.status === 200) {
      const list = (await r.json()) as List<Resource>;
      etag = r.headers.get("ETag") ?? "";
      measure(list.items, at);
      asked = began;
      held.value = list.items;
      known.value = true;
    } else {
      measure(resources.peek(), at);
    }
    asOf.value = at;
    refused.value = "";
    failures = 0;
  } catch (e) {
    failures++;
    if (timeout.signal.aborted) unanswered("no answer for 8 s");
    else if (e instanceof ApiError) {
      answered();
      refused.value = errorText(e);
    }
  } finally {
    clearTimeout(watchdog);
  }
  const pause = link.peek().up ? (document.hidden ? 5 * interval : interval) : Math.min(4000, backoff(failures));
  nextTry.value = Date.now() + pause;
  timer = setTimeout(() => void poll(), pause);
}

/** When informerd is asked again (ms). */
export const nextTry = signal(0);

function measure(items: Resource[], at: number): void {
  const next = new Map<string, { events: number; at: number; rate: number }>();
  const out = new Map<string, number>();
  for (const r of items) {
    const key = keyOf(r);
    const before = last.get(key);
    let rate = 0;
    if (before && at > before.at) {
      // A restarted informerd counts from nothing.
      const fresh = (Math.max(0, r.counts.events - before.events) * 1000) / (at - before.at);
      rate = before.rate * 0.6 + fresh * 0.4;
      if (rate < 0.01) rate = 0;
    }
    next.set(key, { events: r.counts.events, at, rate });
    out.set(key, rate);
  }
  last = next;
  rates.value = out;
}

export function start(): void {
  void poll();
  setInterval(() => {
    if (!document.hidden) now.value = Date.now();
  }, 1000);
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) return;
    now.value = Date.now();
    void poll();
  });
  addEventListener("online", () => void poll());
}
