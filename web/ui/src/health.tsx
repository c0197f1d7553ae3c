import { computed, effect, signal, type Signal } from "@preact/signals";
import { errorText, get, type ApiError, type LinkError, type State } from "./api";
import { duration } from "./format";
import { askOf, changes, clusterOf, clusters, keyOf, known, now, resources, type Resource } from "./resources";
import { href, params, query, view, type Value } from "./route";
import { Stream } from "./sse";

// What is wrong and why, as informerd works it out for objects of all kinds.

export type Health = "good" | "progressing" | "bad" | "unknown";

export interface Verdict {
  id: string;
  cluster?: string;
  resource: string;
  kind: string;
  namespace?: string;
  name: string;
  status: Health;
  reason?: string;
  message?: string;
  since?: string;
  /** What it owns that shows why. */
  cause?: { id: string; status?: Health; reason?: string; message?: string };
  affected?: number;
}

export type Counts = Record<Health, number>;

export interface HealthList {
  metadata: { truncated?: boolean; remainingItemCount?: number };
  summary: Counts;
  resources: (Counts & { resource: string; kind: string; cluster?: string })[];
  namespaces: (Counts & { namespace: string })[];
  items: Verdict[];
  unanswered: { resource: string; state: State; reason?: string }[];
}

/** A question about health and its answer, kept current. */
export interface Followed {
  list: Signal<HealthList | null>;
  error: Signal<string>;
  close(): void;
}

/** Follows a question in every cluster that it is about: in a stream if what happens
 * has to be seen at once in one cluster, else by asking when something has changed. A browser
 * has six connections to a server, for all its windows. */
export function followHealth(question: Question, about: string[] = clusters.peek(), live = false): Followed {
  const list = signal<HealthList | null>(null);
  const error = signal("");
  const parts = new Map<string, HealthList>();
  const errors = new Map<string, string>();
  const tell = () => {
    error.value = [...errors.values()].join("; ");
    // Of clusters that do not answer nothing is known; the others do not wait for them.
    if (parts.size && about.every((c) => parts.has(c) || errors.has(c))) list.value = joined([...parts.values()]);
  };
  const ends = about.map((cluster) => (live && !about[1] ? streamed : polled)({ ...question, cluster: clusterOf({ cluster }) }, (part) => {
    parts.set(cluster, withCluster(part, cluster));
    errors.delete(cluster);
    tell();
  }, (e) => {
    errors.set(cluster, about.length > 1 ? `${cluster}: ${e}` : e);
    tell();
  }));
  return { list, error, close: () => ends.forEach((end) => end()) };
}

type Question = Record<string, Value>;
type Ask = (question: Question, take: (part: HealthList) => void, fail: (error: string) => void) => () => void;

const streamed: Ask = (question, take, fail) => {
  const stream = new Stream("v1/health?" + query({ ...question, watch: "true" }), {
    lost: (e: Error) => fail(e.message),
    failed: (e: ApiError | LinkError) => fail(errorText(e)),
    events: (events) => {
      const last = events.filter((e) => e.type === "HEALTH").at(-1);
      if (last) take((JSON.parse(last.data) as { object: HealthList }).object);
    },
  });
  return () => stream.close();
};

/** So often it is asked also when nothing has changed: time makes things worse, too (ms). */
const atLeast = 15_000;

const polled: Ask = (question, take, fail) => {
  const stop = new AbortController();
  let mark = "", at = 0;
  let timer: ReturnType<typeof setTimeout>;
  const load = async () => {
    const next = String(changes()) + resources.peek().map((r) => r.state).join();
    if (!document.hidden && (next !== mark || Date.now() - at > atLeast)) {
      try {
        const { body } = await get<HealthList>("v1/health?" + query(question), stop.signal);
        [mark, at] = [next, Date.now()];
        take(body);
      } catch (e) {
        if (!stop.signal.aborted) fail(errorText(e));
      }
    }
    if (!stop.signal.aborted) timer = setTimeout(() => void load(), 2000);
  };
  void load();
  return () => {
    stop.abort();
    clearTimeout(timer);
  };
};

function withCluster(l: HealthList, cluster: string): HealthList {
  if (!cluster) return l;
  return { ...l, items: l.items.map((i) => ({ ...i, cluster })), resources: l.resources.map((r) => ({ ...r, cluster })) };
}

const worst: Health[] = ["bad", "progressing", "unknown", "good"];
const add = <T extends Counts>(a: T, b: Counts): T => ({ ...a, good: a.good + b.good, progressing: a.progressing + b.progressing, bad: a.bad + b.bad, unknown: a.unknown + b.unknown });

function joined(parts: HealthList[]): HealthList {
  const namespaces = new Map<string, HealthList["namespaces"][number]>();
  for (const n of parts.flatMap((p) => p.namespaces)) namespaces.set(n.namespace, namespaces.has(n.namespace) ? add(namespaces.get(n.namespace)!, n) : n);
  return {
    metadata: { truncated: parts.some((p) => p.metadata.truncated), remainingItemCount: parts.reduce((n, p) => n + (p.metadata.remainingItemCount ?? 0), 0) },
    summary: parts.map((p) => p.summary).reduce(add),
    resources: parts.flatMap((p) => p.resources),
    namespaces: [...namespaces.values()],
    items: parts.flatMap((p) => p.items).sort((a, b) => worst.indexOf(a.status) - worst.indexOf(b.status)),
    unanswered: parts.flatMap((p) => p.unanswered),
  };
}

/** What is wrong anywhere, for the frame of the page and the overview. */
export const everywhere = signal<Followed | null>(null);
export const trouble = computed(() => everywhere.value?.list.value ?? null);
let followed = "";
effect(() => {
  const live = view.value === "overview" && !params.value.get("namespace");
  const key = known.value ? clusters.value.join() + live : "";
  if (key === followed || !known.value) return;
  followed = key;
  const before = everywhere.peek();
  before?.close();
  const next = followHealth({ limit: "300" }, clusters.peek(), live);
  // What was known stays in sight until there is something newer.
  next.list.value ??= before?.list.peek() ?? null;
  everywhere.value = next;
});

/** The counts of a resource, if they are known. */
export function countsOf(r: Resource): Counts | undefined {
  return trouble.value?.resources.find((x) => x.resource === r.name && (!clusterOf(r) || x.cluster === r.cluster));
}

export async function healthOf(r: Resource, ns: string, name: string, signal?: AbortSignal): Promise<{ item: Verdict; children: Verdict[] }> {
  return (await get<{ item: Verdict; children: Verdict[] }>("v1/health/" + askOf(r, ns, name, { limit: "200" }), signal)).body;
}

/** The address of an object that health tells of. */
export function placeOf(v: Pick<Verdict, "cluster" | "resource" | "namespace" | "name">, tab?: string, rel?: Value): string {
  return href("object", { cluster: clusterOf(v), resource: v.resource, namespace: v.namespace ?? "", name: v.name, tab, rel });
}

/** An id as the API writes it: resource/namespace/name, with - for no namespace. */
export function splitId(id: string): Pick<Verdict, "resource" | "namespace" | "name"> {
  const [resource = "", namespace = "", ...name] = id.split("/");
  return name.length ? { resource, namespace: namespace === "-" ? "" : namespace, name: name.join("/") } : { resource, namespace: "", name: namespace };
}

export const keyOfVerdict = (v: Pick<Verdict, "cluster" | "resource" | "namespace" | "name">): string =>
  `${keyOf({ cluster: v.cluster, name: v.resource })} ${v.namespace ?? ""}/${v.name}`;

/** A verdict in a cell: told by shape and word, and found by both. */
export function cellOf(v: Verdict | undefined): string {
  return !v || v.status === "good" ? "good" : v.reason ? `${v.status}: ${v.reason}` : v.status;
}

export const healthRank = (cell: string): number => worst.indexOf(cell.split(":")[0] as Health);

const shapes: Record<Health, string> = {
  good: "M6.5 11.8L2.9 8.2l1.1-1.1 2.5 2.5 5.5-5.5 1.1 1.1z",
  progressing: "M8 1.7a6.3 6.3 0 1 0 0 12.6A6.3 6.3 0 0 0 8 1.7zm-.7 3h1.5v3.1l2.2 2.2-1 1-2.7-2.7z",
  bad: "M8 1.5a6.5 6.5 0 1 0 0 13a6.5 6.5 0 1 0 0-13zM5.8 4.7L8 6.9l2.2-2.2 1.1 1.1L9.1 8l2.2 2.2-1.1 1.1L8 9.1l-2.2 2.2-1.1-1.1L6.9 8 4.7 5.8z",
  unknown: "M8 1.5a6.5 6.5 0 1 0 0 13a6.5 6.5 0 1 0 0-13zm-.8 9.2h1.5v1.5H7.2zm0-1.2c0-2 2-2 2-3.4 0-.7-.5-1.1-1.2-1.1S6.7 5.5 6.6 6.2H5.1C5.2 4.6 6.4 3.6 8 3.6s2.7 1 2.7 2.4c0 2-2 2.1-2 3.5z",
};
export const toneOfHealth: Record<Health, string> = { good: "good", progressing: "wait", bad: "bad", unknown: "off" };

export function HealthIcon({ status }: { status: Health }) {
  return (
    <svg class={`icon tone-${toneOfHealth[status]}`} viewBox="0 0 16 16" aria-hidden="true">
      <path fill-rule="evenodd" d={shapes[status]} />
    </svg>
  );
}

/** Since when; kept current. */
export function Since({ at }: { at?: string }) {
  return at ? <time dateTime={at} title={at}>{duration(now.value - Date.parse(at))}</time> : null;
}
