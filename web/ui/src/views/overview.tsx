import { signal, useComputed } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { ApiError, get, type List } from "../api";
import { bytes, count, plural } from "../format";
import { trouble } from "../health";
import { headingOf, objectsOf } from "../places";
import { usePolled } from "../polled";
import { byKey, changes, find, keyOf, known, path, rates, readable, resources, clusters, mixed, type Resource } from "../resources";
import { href, params } from "../route";
import { absence, StateIcon, Track } from "../ui";
import { Images } from "./images";
import { Quotas, Recent } from "./namespace";
import { Rollouts } from "./rollouts";
import { Trouble } from "./trouble";

// The cluster at a glance: how much there is of what and where, and what wants
// somebody's attention. Every bar leads to the objects it counts.

const deleting = "metadata.deletionTimestamp";

interface Answer {
  n: number;
  /** What the resource was like when this was counted. */
  mark: string;
  at: number;
}

/** Counts by resource and selector; "" is what cannot be told. */
const answers = signal<ReadonlyMap<string, Answer>>(new Map());
const spaces = signal<ReadonlyMap<string, ReadonlyMap<string, number>>>(new Map());
const spaceMarks = new Map<string, string>();
const reasons = signal<{ reason: string; n: number }[] | null>(null);
let reasonsMark = "";

function markOf(r: Resource): string {
  return `${r.counts.events} ${r.counts.relists} ${r.objects}`;
}

/** Whether it is time to ask again: when the resource has changed, and for large
 * ones, which are read through for the answer, not too often. */
function due(r: Resource, a: Answer | undefined): boolean {
  if (!a) return true;
  return a.mark !== markOf(r) && Date.now() - a.at > Math.min(120_000, 2000 + r.objects * 5);
}

async function countOf(r: Resource, selector: string, signal: AbortSignal): Promise<void> {
  const key = keyOf(r) + " " + selector;
  if (!due(r, answers.peek().get(key))) return;
  const mark = markOf(r);
  const { body } = await get<List>(path(r, "/objects", { fieldSelector: selector, limit: "1", fields: "metadata.name" }), signal);
  const n = body.items.length + (body.metadata.remainingItemCount ?? 0);
  answers.value = new Map(answers.peek()).set(key, { n, mark, at: Date.now() });
}

async function spacesOf(r: Resource, signal: AbortSignal): Promise<void> {
  const key = keyOf(r);
  if (spaceMarks.get(key) === markOf(r)) return;
  spaceMarks.set(key, markOf(r));
  try {
    const { body } = await get<List<{ value: string; objects: number }>>(path(r, "/indexes/namespace"), signal);
    spaces.value = new Map(spaces.peek()).set(key, new Map(body.items.map((i) => [i.value, i.objects])));
  } catch (e) {
    spaceMarks.delete(key);
    throw e;
  }
}

async function reasonsOf(r: Resource, signal: AbortSignal): Promise<void> {
  if (reasonsMark === markOf(r)) return;
  const mark = markOf(r);
  const { body } = await get<{ items: { group: { reason: string | null }; values: Record<string, number> }[] }>(
    path(r, "/objects", { groupBy: "reason", sort: "-count()", limit: "16" }), signal);
  reasonsMark = mark;
  reasons.value = body.items.map((i) => ({ reason: i.group.reason ?? "", n: i.values["count()"]! }));
}

function eventResource(): Resource | undefined {
  const all = ["events", "events.events.k8s.io"].map((n) => find(n)).filter((r): r is Resource => !!r);
  return all.find(readable) ?? all[0];
}

async function ask(signal: AbortSignal): Promise<undefined> {
  const able = resources.peek().filter((r) => readable(r) && r.objects > 0);
  const jobs: (() => Promise<void>)[] = [];
  for (const r of able) if (r.namespaced) jobs.push(() => spacesOf(r, signal));
  const e = eventResource();
  if (e && readable(e)) jobs.push(() => reasonsOf(e, signal));
  for (const r of [...able].sort((a, b) => a.objects - b.objects)) jobs.push(() => countOf(r, deleting, signal));
  const work = async () => {
    for (let job = jobs.shift(); job && !signal.aborted; job = jobs.shift()) {
      try {
        await job();
      } catch (e) {
        if (!(e instanceof ApiError)) return; // the connection: the status line tells
      }
    }
  };
  await Promise.all([work(), work()]);
  return undefined;
}

export function Overview() {
  const ready = useComputed(() => resources.value.filter(readable).length).value;
  useEffect(() => {
    document.title = "informerd";
  }, []);
  usePolled(String(ready > 0), 4000, ask);
  if (!known.value) return <div class="view"><p class="empty">Waiting for informerd…</p></div>;
  const all = resources.value;
  const watched = all.filter((r) => r.state !== "unwatched");
  const able = watched.filter(readable);
  const namespace = params.value.get("namespace") ?? "";
  return (
    <div class="view">
      <div class="head">
        <h1>{namespace || "Overview"}</h1>
        {namespace && <p class="soft">namespace · <a href={href("objects", { resource: "*", namespace })}>everything in it</a> · <a href={href("object", { resource: "namespaces", name: namespace })}>itself</a></p>}
        {!namespace && <p class="soft">
          {count(able.reduce((n, r) => n + r.objects, 0))} objects of {plural(able.length, "kind")}
          {mixed.value ? ` in ${clusters.value.length} clusters` : ""}, {bytes(able.reduce((n, r) => n + r.bytes, 0))} in memory
        </p>}
      </div>
      <div class="scroll" tabIndex={0} role="region" aria-label="Overview">
        <Trouble namespace={namespace} />
        {namespace ? (
          <div class="cards" key={namespace}>
            <KindsIn namespace={namespace} />
            <Rollouts namespace={namespace} />
            <Quotas namespace={namespace} />
            <Images namespace={namespace} />
            <Recent namespace={namespace} />
          </div>
        ) : (
          <div class="cards">
            <Rollouts namespace="" />
            <Deleting />
            <Dangling />
            <Kinds able={able} />
            <Namespaces />
            <Images namespace="" />
            <Blind all={all} />
            <EventReasons />
          </div>
        )}
      </div>
    </div>
  );
}

function Bar({ to, label, n, share, tone, note, open }: { to: string; label: string; n: number; share: number; tone?: string; note?: string; open?: boolean }) {
  return (
    <a class={"bar-row " + (tone ?? "")} href={to} aria-expanded={open}>
      <span class="label">{label}</span>
      {note && <small>{note}</small>}
      <b>{count(n)}</b>
      <Track share={Math.max(n > 0 ? 0.01 : 0, share)} />
    </a>
  );
}

function Deleting() {
  const able = resources.value.filter((r) => readable(r) && r.objects > 0);
  const rows = able.flatMap((r) => {
    const a = answers.value.get(keyOf(r) + " " + deleting);
    return a?.n ? [{ r, n: a.n }] : [];
  });
  const asked = able.filter((r) => answers.value.has(keyOf(r) + " " + deleting)).length;
  const most = Math.max(1, ...rows.map((x) => x.n));
  return (
    <section class="card">
      <h2>Being deleted</h2>
      <ul>
        {rows.map(({ r, n }) => <li key={keyOf(r)}><Bar to={objectsOf(r, { fieldSelector: deleting, sort: "-age" })} label={headingOf(r)} n={n} share={n / most} tone="wait" /></li>)}
        {rows.length === 0 && <li class="bar-row off"><span class="label">{asked < able.length ? `looking: ${asked} of ${able.length} kinds` : "none"}</span></li>}
      </ul>
      <p class="soft">{asked < able.length && rows.length ? `${asked} of ${able.length} kinds looked through` : "Objects with a deletion time that are still there: finalizers hold them."}</p>
    </section>
  );
}

interface End {
  resource: string;
  kind: string;
  namespace?: string;
  name: string;
}

interface DanglingList {
  metadata: { truncated?: boolean };
  items: { from: End; to?: End; edge: string; selector?: string; namespaceSelector?: string }[];
}

const dangling = signal<DanglingList | null>(null);
let danglingMark = "";

function Dangling() {
  // An error is the status line's to tell; what was last known stays.
  usePolled("dangling", 6000, async (signal) => {
    const mark = String(changes());
    if (mark === danglingMark) return undefined;
    dangling.value = (await get<DanglingList>("v1/graph/dangling?limit=200", signal)).body;
    danglingMark = mark;
    return undefined;
  });
  const list = dangling.value;
  const groups = new Map<string, DanglingList["items"]>();
  for (const i of list?.items ?? []) {
    const key = i.to ? `${i.from.kind} without its ${i.to.kind}` : `${i.from.kind} that selects nothing`;
    groups.set(key, [...(groups.get(key) ?? []), i]);
  }
  const open = params.value.get("dangling");
  const most = Math.max(1, ...[...groups.values()].map((g) => g.length));
  return (
    <section class="card">
      <h2>Dangling references</h2>
      <ul>
        {!list && <li class="bar-row off"><span class="label">looking…</span></li>}
        {list?.items.length === 0 && <li class="bar-row off"><span class="label">none</span></li>}
        {[...groups].sort((a, b) => b[1].length - a[1].length).slice(0, 12).map(([what, items]) => (
          <li key={what}>
            <Bar to={href("overview", { dangling: what === open ? null : what })} open={what === open} label={what} n={items.length} share={items.length / most} tone="wait" note={list!.metadata.truncated ? "or more" : ""} />
            {what === open && (
              <ul class="within">
                {items.slice(0, 20).map((i) => (
                  <li>
                    <a href={href("object", { resource: i.from.resource, namespace: i.from.namespace ?? "", name: i.from.name, tab: "relations" })}>{i.from.namespace ? i.from.namespace + "/" : ""}{i.from.name}</a>
                    <span class="soft"> {i.to ? `→ ${i.to.name}` : [i.selector, i.namespaceSelector && `in namespaces ${i.namespaceSelector}`].filter(Boolean).join(" ")}</span>
                  </li>
                ))}
                {items.length > 20 && <li class="soft">and {count(items.length - 20)} more</li>}
              </ul>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}

function Kinds({ able }: { able: Resource[] }) {
  const top = [...able].filter((r) => r.objects > 0).sort((a, b) => b.objects - a.objects).slice(0, 16);
  const most = Math.sqrt(top[0]?.objects ?? 1);
  return (
    <section class="card">
      <h2>By kind</h2>
      <ul>
        {top.map((r) => {
          const rate = rates.value.get(keyOf(r)) ?? 0;
          return <li key={keyOf(r)}><Bar to={objectsOf(r)} label={(mixed.value ? r.cluster + " / " : "") + headingOf(r)} n={r.objects} share={Math.sqrt(r.objects) / most} note={rate >= 0.1 ? `${rate.toFixed(1)}/s` : ""} /></li>;
        })}
      </ul>
      <p class="soft"><a href={href("resources", { sort: "-objects" })}>All resources</a>; bars are square roots</p>
    </section>
  );
}

function badIn(ns: string): string {
  const n = trouble.value?.namespaces.find((x) => x.namespace === ns)?.bad ?? 0;
  return n ? `${count(n)} bad` : "";
}

function Namespaces() {
  const sum = useComputed(() => {
    const out = new Map<string, number>();
    for (const [key, per] of spaces.value) {
      if (!byKey.value.has(key)) continue;
      for (const [ns, n] of per) if (ns) out.set(ns, (out.get(ns) ?? 0) + n);
    }
    return [...out].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
  }).value;
  const top = params.value.get("namespaces") === "all" ? sum : sum.slice(0, 16);
  const most = top[0]?.[1] ?? 1;
  return (
    <section class="card">
      <h2>By namespace</h2>
      <ul>
        {top.map(([ns, n]) => <li key={ns}><Bar to={href("objects", { resource: "*", namespace: ns })} note={badIn(ns)} label={ns} n={n} share={n / most} /></li>)}
        {top.length === 0 && <li class="bar-row off"><span class="label">counting…</span></li>}
      </ul>
      <p class="soft">{sum.length > top.length ? <a href={href("overview", { namespaces: "all" })}>and {sum.length - top.length} more namespaces</a> : plural(sum.length, "namespace")}</p>
    </section>
  );
}

function Blind({ all }: { all: Resource[] }) {
  const blind = all.filter((r) => !readable(r));
  return (
    <section class="card">
      <h2>Not seen</h2>
      <ul>
        {blind.map((r) => (
          <li key={keyOf(r)}>
            <a class="bar-row" href={objectsOf(r)} title={r.reason}>
              <span class="label"><StateIcon state={r.state} /> {r.name}</span>
              <span class="note">{absence[r.state]?.toLowerCase()}</span>
            </a>
          </li>
        ))}
        {blind.length === 0 && <li class="bar-row off"><span class="label">nothing: every resource is read</span></li>}
      </ul>
    </section>
  );
}

/** What is in a namespace, by kind. */
function KindsIn({ namespace }: { namespace: string }) {
  const rows = [...spaces.value].flatMap(([key, per]) => {
    const r = byKey.value.get(key), n = per.get(namespace);
    return r && n ? [{ r, n }] : [];
  }).sort((a, b) => b.n - a.n);
  const most = Math.sqrt(rows[0]?.n ?? 1);
  return (
    <section class="card">
      <h2>By kind</h2>
      <ul>
        {rows.map(({ r, n }) => <li key={keyOf(r)}><Bar to={objectsOf(r, { namespace })} label={(mixed.value ? r.cluster + " / " : "") + headingOf(r)} n={n} share={Math.sqrt(n) / most} /></li>)}
        {rows.length === 0 && <li class="bar-row off"><span class="label">counting…</span></li>}
      </ul>
    </section>
  );
}

function EventReasons() {
  const r = eventResource();
  const list = reasons.value;
  const most = list?.[0]?.n ?? 1;
  return (
    <section class="card">
      <h2>Events by reason</h2>
      {!r || !readable(r) ? (
        <p class="soft"><StateIcon state={r?.state ?? "unwatched"} /> {absence[r?.state ?? "unwatched"]}{!r || r.state === "unwatched" ? ": the configuration leaves events out" : ""}</p>
      ) : (
        <ul>
          {list?.map((x) => <li key={x.reason}><Bar to={objectsOf(r, { fieldSelector: x.reason ? "reason=" + x.reason : "!reason" })} label={x.reason || "no reason"} n={x.n} share={x.n / most} /></li>)}
          {list?.length === 0 && <li class="bar-row off"><span class="label">none</span></li>}
        </ul>
      )}
    </section>
  );
}
