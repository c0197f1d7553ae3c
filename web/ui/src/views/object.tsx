import { useEffect, useMemo, useState } from "preact/hooks";
import { ApiError, get, type KubeObject, type List } from "../api";
import { features } from "../features";
import { fieldChanges, hunks, lineDiff, type FieldChange } from "../diff";
import { count, dateTime, plural, seconds, time } from "../format";
import { headingOf, objectOf, objectsOf } from "../places";
import { byKey, find, findKind, keyOf, known, now, path, readable, resources, type Resource } from "../resources";
import { params, update } from "../route";
import { anyStatus, statusColumn, toneOf } from "../table/columns";
import { jsonLines, yaml, yamlLines } from "../text";
import { absence, Age, copy, Icon, meaning, Popover, StateIcon, StateMark } from "../ui";
import { Code } from "./code";
import { objectPath, ObjectModel } from "./watch-object";

// One object: its text, what became of it, what belongs to it.

type Tab = "yaml" | "json" | "changes" | "relations" | "events" | "compare";
const tabNames: Record<Tab, string> = { yaml: "YAML", json: "JSON", changes: "Changes", relations: "Relations", events: "Events", compare: "Compare" };

export function ObjectView() {
  const p = params.value;
  const name = p.get("name") ?? "";
  const ns = p.get("namespace") ?? "";
  if (!known.value) return <div class="view"><p class="empty">Waiting for informerd…</p></div>;
  const r = find(p.get("resource") ?? "", p.get("cluster") ?? "");
  if (!r) {
    return (
      <div class="view">
        <div class="head"><h1>{name}</h1></div>
        <div class="absent"><StateIcon state="none" /><h2>No such resource</h2><p>The cluster serves no resource called <code>{p.get("resource")}</code>.</p></div>
      </div>
    );
  }
  return <OneObject key={`${keyOf(r)} ${ns}/${name}`} r={r} ns={ns} name={name} />;
}

function OneObject({ r: first, ns, name }: { r: Resource; ns: string; name: string }) {
  const r = byKey.value.get(keyOf(first)) ?? first;
  const able = readable(r);
  const model = useMemo(() => new ObjectModel(first, ns, name), [able]);
  useEffect(() => () => model.close(), [model]);
  useEffect(() => {
    document.title = `${name} · ${r.kind} · informerd`;
  }, [name, r.kind]);
  const o = model.object.value;
  const tab = (params.value.get("tab") as Tab) || "yaml";
  const history = model.history.value;
  const show = (t: Tab) => update({ tab: t === "yaml" ? null : t });
  return (
    <div class="view object">
      <div class="head">
        <p class="crumbs">
          <a href={objectsOf(r)}>{headingOf(r)}</a>
          {ns && <> / <a href={objectsOf(r, { namespace: ns })}>{ns}</a></>}
          {" /"}
        </p>
        <h1 title={name}>{name}</h1>
        {o && <StatusWord o={o} r={r} />}
        {model.gone.value ? (
          <span class="state state-failed"><StateIcon state="failed" />deleted {time(model.gone.value)}</span>
        ) : (
          <span class="fresh">
            <StateMark state={r.state} reason={r.reason} />
            {r.state !== "live" && r.contactTime && <small>{seconds((now.value - Date.parse(r.contactTime)) / 1000)} old</small>}
          </span>
        )}
        <span class="space" />
        {o && <ObjectMenu o={o} r={r} ns={ns} name={name} />}
      </div>
      {!o ? (
        <NoObject model={model} r={r} ns={ns} name={name} />
      ) : (
        <div class={"object-area" + (model.gone.value ? " gone" : r.state === "stale" ? " old" : "")}>
          <div class="object-main">
            <div class="tabs" role="tablist" aria-label="Parts of the object" onKeyDown={(e) => {
              if (e.key !== "ArrowLeft" && e.key !== "ArrowRight") return;
              const all = [...e.currentTarget.querySelectorAll<HTMLElement>("[role=tab]")];
              const next = all[(all.indexOf(document.activeElement as HTMLElement) + (e.key === "ArrowRight" ? 1 : all.length - 1)) % all.length];
              next?.focus();
              next?.click();
            }}>
              {(Object.keys(tabNames) as Tab[]).map((t) => (
                <button key={t} type="button" role="tab" id={"tab-" + t} aria-selected={t === tab} aria-controls="tab-panel" tabIndex={t === tab ? 0 : -1} onClick={() => show(t)}>
                  {tabNames[t]}
                  {t === "changes" && history.length > 0 && <small class="badge">{history.length}</small>}
                </button>
              ))}
            </div>
            <div class="tab-panel" role="tabpanel" id="tab-panel" aria-labelledby={"tab-" + tab}>
              {(tab === "yaml" || tab === "json") && <Text o={o} json={tab === "json"} />}
              {tab === "changes" && <Changes model={model} />}
              {tab === "relations" && <Relations o={o} r={r} />}
              {tab === "events" && <Events o={o} r={r} />}
              {tab === "compare" && <Compare o={o} r={r} />}
            </div>
          </div>
          <Facts o={o} r={r} />
        </div>
      )}
    </div>
  );
}

function StatusWord({ o, r }: { o: KubeObject; r: Resource }) {
  const word = r.name === "events" ? "" : anyStatus(o);
  if (!word) return null;
  return <span class={"word tone-" + (statusColumn.tone!(word) || "off")}>{word}</span>;
}

function NoObject({ model, r, ns, name }: { model: ObjectModel; r: Resource; ns: string; name: string }) {
  const e = model.error.value;
  if (!readable(r)) {
    return (
      <div class="absent">
        <StateIcon state={r.state} />
        <h2>{absence[r.state] ?? r.state}</h2>
        <p>{meaning[r.state]}.</p>
        {r.reason && <p class="reason"><code>{r.reason}</code></p>}
      </div>
    );
  }
  if (e instanceof ApiError && e.code === 404) {
    return (
      <div class="absent">
        <StateIcon state="none" />
        <h2>There is none</h2>
        <p>No {r.kind} {ns ? <><code>{ns}/</code></> : null}<code>{name}</code> exists{r.state === "live" ? "" : ` as far as is known (${r.state})`}. If it is created, it appears here.</p>
      </div>
    );
  }
  return <p class="empty">{e ? e.message : "Loading…"}</p>;
}

function Text({ o, json }: { o: KubeObject; json: boolean }) {
  const [managed, setManaged] = useState(false);
  const has = !!o.metadata.managedFields;
  const lines = useMemo(() => {
    const shown = has && !managed ? { ...o, metadata: { ...o.metadata, managedFields: undefined } } : o;
    const clean = has && !managed ? (JSON.parse(JSON.stringify(shown)) as KubeObject) : shown;
    return json ? jsonLines(clean) : yamlLines(clean);
  }, [o, json, managed]);
  return (
    <Code lines={lines} label={json ? "JSON" : "YAML"}>
      {has ? (
        <label class="check"><input type="checkbox" checked={managed} onChange={() => setManaged(!managed)} /> managedFields</label>
      ) : (
        <span class="soft long" title="The configuration drops metadata.managedFields before anything is stored.">no managedFields kept</span>
      )}
      <button type="button" class="button quiet" onClick={() => void copy(json ? JSON.stringify(o, null, 2) : yaml(o), json ? "JSON" : "YAML")}>
        <Icon name="copy" /> Copy
      </button>
    </Code>
  );
}

function Value({ v }: { v: unknown }) {
  const text = typeof v === "string" ? v : typeof v === "object" && v !== null ? yaml(v).trimEnd() : String(v);
  return <code>{text.length > 2000 ? text.slice(0, 2000) + " …" : text}</code>;
}

function FieldChanges({ changes }: { changes: FieldChange[] }) {
  if (changes.length === 0) return <p class="soft">only its version</p>;
  return (
    <dl class="changes">
      {changes.slice(0, 60).map((c) => (
        <>
          <dt><code>{c.path || "the whole object"}</code></dt>
          <dd>
            {c.before !== undefined && <del><span class="hidden">was </span><Value v={c.before} /></del>}
            {c.op === "set" && <span class="soft" aria-hidden="true"> → </span>}
            {c.after !== undefined && <ins><span class="hidden">is now </span><Value v={c.after} /></ins>}
          </dd>
        </>
      ))}
      {changes.length > 60 && <dt>and {count(changes.length - 60)} more</dt>}
    </dl>
  );
}

function Changes({ model }: { model: ObjectModel }) {
  const history = model.history.value;
  return (
    <div class="scroll pad" tabIndex={0} role="log" aria-label="Changes">
      {history.length === 0 && (
        <p class="empty">{model.streaming.value ? "No change since this page was opened. Changes appear here as they happen." : "Changes appear here as they happen, once the connection is back."}</p>
      )}
      {history.map((m) => (
        <section class="moment" key={m.version + m.type + m.at}>
          <h3>
            <time>{time(m.at)}</time>
            {m.type === "DELETED" ? <span class="word tone-bad">deleted</span> : m.type === "ADDED" ? <span class="word tone-good">created anew</span> : <span class="soft">{plural(m.changes.length, "field")}</span>}
            <span class="soft">version {m.version}</span>
          </h3>
          {m.type === "MODIFIED" && <FieldChanges changes={m.changes} />}
        </section>
      ))}
    </div>
  );
}

interface Condition {
  type: string;
  status: string;
  reason?: string;
  message?: string;
  lastTransitionTime?: string;
}

/** Conditions that are well when they are False. */
const inverse = /Pressure$|^(Failed|NetworkUnavailable|Stalled|ReplicaFailure|.*Degraded|DisruptionTarget|Suspended)$/;

function Facts({ o, r }: { o: KubeObject; r: Resource }) {
  const m = o.metadata;
  const created = m.creationTimestamp ? Date.parse(m.creationTimestamp) : 0;
  const conditions = ((o.status?.conditions ?? []) as Condition[]).filter((c) => c?.type);
  const labels = Object.entries(m.labels ?? {});
  const annotations = Object.entries(m.annotations ?? {});
  return (
    <aside class="facts" aria-label="Facts">
      <dl class="pairs">
        <dt>Kind</dt>
        <dd>{o.kind ?? r.kind} <span class="soft">{o.apiVersion ?? ""}</span></dd>
        {m.namespace && (
          <>
            <dt>Namespace</dt>
            <dd><a href={objectsOf(r, { namespace: m.namespace })}>{m.namespace}</a></dd>
          </>
        )}
        {created > 0 && (
          <>
            <dt>Age</dt>
            <dd><Age since={created} /> <span class="soft">{dateTime(created)}</span></dd>
          </>
        )}
        {m.deletionTimestamp && (
          <>
            <dt>Deleting</dt>
            <dd class="tone-wait">for <Age since={Date.parse(m.deletionTimestamp)} />{m.finalizers?.length ? <>, held by {m.finalizers.join(", ")}</> : null}</dd>
          </>
        )}
        <dt>Version</dt>
        <dd class="mono">{m.resourceVersion}</dd>
        <dt>UID</dt>
        <dd class="mono small">{m.uid}</dd>
        {m.ownerReferences?.length ? (
          <>
            <dt>Owner</dt>
            <dd><Owners o={o} r={r} /></dd>
          </>
        ) : null}
      </dl>
      {conditions.length > 0 && (
        <section>
          <h2>Conditions</h2>
          <ul class="conditions">
            {conditions.map((c) => {
              const ok = (c.status === "True") !== inverse.test(c.type);
              const tone = c.status === "Unknown" ? "wait" : ok ? "good" : toneOf(c.reason ?? "") === "off" || c.reason === "PodCompleted" ? "off" : "bad";
              return (
                <li key={c.type}>
                  <span class={"word tone-" + tone}>{c.type}: {c.status}</span>
                  {c.reason && c.reason !== c.type && <> {c.reason}</>}
                  {c.lastTransitionTime && <small class="soft"> <Age since={Date.parse(c.lastTransitionTime)} /> ago</small>}
                  {c.message && !ok && <p class="soft">{c.message}</p>}
                </li>
              );
            })}
          </ul>
        </section>
      )}
      <section>
        <h2>Labels</h2>
        {labels.length === 0 ? <p class="soft">none</p> : (
          <ul class="labels">
            {labels.map(([k, v]) => (
              <li key={k}>
                <a href={objectsOf(r, { labelSelector: `${k}=${v}` })} title={`${headingOf(r)} with ${k}=${v}`}>
                  <span>{k}</span>
                  <b>{v || "\u00a0"}</b>
                </a>
              </li>
            ))}
          </ul>
        )}
      </section>
      {annotations.length > 0 && (
        <section>
          <details>
            <summary><h2>Annotations</h2> <small class="soft">{annotations.length}</small></summary>
            <dl class="annotations">
              {annotations.map(([k, v]) => (
                <>
                  <dt>{k}</dt>
                  <dd><code>{v.length > 500 ? v.slice(0, 500) + " …" : v}</code></dd>
                </>
              ))}
            </dl>
          </details>
        </section>
      )}
    </aside>
  );
}

interface Ancestor {
  kind: string;
  name: string;
  r?: Resource;
  ns: string;
  missing?: boolean;
}

/** The controlling owner, its owner, and so on. */
async function ancestors(o: KubeObject, r: Resource): Promise<Ancestor[]> {
  const out: Ancestor[] = [];
  let at: KubeObject | null = o;
  for (let depth = 0; at && depth < 8; depth++) {
    const refs: KubeObject["metadata"]["ownerReferences"] = at.metadata.ownerReferences;
    const ref: NonNullable<typeof refs>[number] | undefined = refs?.find((x) => x.controller) ?? refs?.[0];
    if (!ref) break;
    const owner = findKind(ref.apiVersion, ref.kind, r.cluster);
    const step: Ancestor = { kind: ref.kind, name: ref.name, r: owner, ns: owner?.namespaced ? (o.metadata.namespace ?? "") : "" };
    out.push(step);
    at = null;
    if (owner && readable(owner)) {
      try {
        at = (await get<KubeObject>(objectPath(owner, step.ns, ref.name))).body;
        if (at.metadata.uid !== ref.uid) {
          step.missing = true;
          at = null;
        }
      } catch (e) {
        if (e instanceof ApiError && e.code === 404) step.missing = true;
      }
    }
  }
  return out;
}

function Owners({ o, r }: { o: KubeObject; r: Resource }) {
  const [chain, setChain] = useState<Ancestor[] | null>(null);
  useEffect(() => {
    let current = true;
    void ancestors(o, r).then((c) => current && setChain(c));
    return () => {
      current = false;
    };
  }, [o.metadata.uid, JSON.stringify(o.metadata.ownerReferences)]);
  const list: Ancestor[] = chain ?? o.metadata.ownerReferences!.slice(0, 1).map((x) => ({ kind: x.kind, name: x.name, ns: "" }));
  return (
    <ol class="chain">
      {list.map((a) => (
        <li>
          {a.r && !a.missing ? <a href={objectOf(a.r, a.ns, a.name)}>{a.kind} {a.name}</a> : <>{a.kind} {a.name}</>}
          {a.missing && <span class="word tone-bad">does not exist</span>}
          {a.r && !readable(a.r) && <StateIcon state={a.r.state} />}
        </li>
      ))}
    </ol>
  );
}

interface Owned {
  r: Resource;
  items: KubeObject[];
  more: boolean;
}

/** What an object owns, by the owner index of every resource that could have some. */
async function ownedBy(uid: string, r: Resource, signal: AbortSignal, namespaced: boolean): Promise<Owned[]> {
  const candidates = resources.peek().filter((c) => readable(c) && c.objects > 0 && c.cluster === r.cluster && (!namespaced || c.namespaced));
  const out: Owned[] = [];
  const next = async (): Promise<void> => {
    for (let c = candidates.shift(); c; c = candidates.shift()) {
      try {
        const { body } = await get<List>(path(c, `/indexes/owner/${encodeURIComponent(uid)}`, { limit: "100", fields: "metadata.name,metadata.namespace,metadata.uid,metadata.deletionTimestamp,status.phase,status.conditions,status.containerStatuses" }), signal);
        if (body.items.length) out.push({ r: c, items: body.items, more: !!body.metadata.continue });
      } catch {
        if (signal.aborted) return;
      }
    }
  };
  await Promise.all([next(), next(), next()]);
  return out.sort((a, b) => (a.r.name < b.r.name ? -1 : 1));
}

type GraphPart = typeof import("./graph");
let graphPart: GraphPart | null = null;

function Relations({ o, r }: { o: KubeObject; r: Resource }) {
  const able = features.value.graph;
  const [part, setPart] = useState<GraphPart | null>(graphPart);
  const [error, setError] = useState("");
  useEffect(() => {
    if (!able || part) return;
    import("./graph").then((m) => {
      graphPart = m;
      setPart(m);
    }, () => setError("The graph could not be loaded; reload the page to try again."));
  }, [able]);
  if (able && part) return <part.GraphRelations r={r} ns={o.metadata.namespace ?? ""} name={o.metadata.name} />;
  if (able && !error) return <p class="empty">Loading…</p>;
  return (
    <div class="scroll pad" tabIndex={0} role="region" aria-label="Relations">
      <h2>Owners</h2>
      {o.metadata.ownerReferences?.length ? <Owners o={o} r={r} /> : <p class="soft">none: nothing owns it</p>}
      <h2>Owned</h2>
      <OwnedTree uid={o.metadata.uid ?? ""} r={r} namespaced={!!o.metadata.namespace} depth={0} />
    </div>
  );
}

function OwnedTree({ uid, r, namespaced, depth }: { uid: string; r: Resource; namespaced: boolean; depth: number }) {
  const [list, setList] = useState<Owned[] | null>(null);
  useEffect(() => {
    const stop = new AbortController();
    const load = () => void ownedBy(uid, r, stop.signal, namespaced).then((l) => !stop.signal.aborted && setList(l));
    load();
    const t = depth === 0 ? setInterval(load, 15_000) : undefined;
    return () => {
      stop.abort();
      clearInterval(t);
    };
  }, [uid]);
  if (!list) return <p class="soft">looking…</p>;
  const blind = resources.value.filter((c) => !readable(c) && c.cluster === r.cluster && c.state !== "unwatched");
  if (list.length === 0) return depth > 0 ? null : <p class="soft">none{blind.length ? `, as far as is known: ${blind.map((b) => b.name).join(", ")} cannot be read` : ""}</p>;
  return (
    <ul class="tree">
      {list.flatMap((g) =>
        g.items.map((i) => {
          const word = anyStatus(i);
          return (
            <li key={i.metadata.uid}>
              <span class="soft">{g.r.kind}</span> <a href={objectOf(g.r, i.metadata.namespace ?? "", i.metadata.name)}>{i.metadata.name}</a>{" "}
              {word && <span class={"word tone-" + (statusColumn.tone!(word) || "off")}>{word}</span>}
              {depth < 3 && i.metadata.uid && g.r.name !== "pods" && <OwnedTree uid={i.metadata.uid} r={g.r} namespaced={!!i.metadata.namespace} depth={depth + 1} />}
            </li>
          );
        }).concat(g.more ? [<li key={keyOf(g.r)}><a href={objectsOf(g.r)}>and more {headingOf(g.r)}</a></li>] : []),
      )}
    </ul>
  );
}

interface EventObject extends KubeObject {
  type?: string;
  reason?: string;
  message?: string;
  note?: string;
  count?: number;
  lastTimestamp?: string;
  eventTime?: string;
}

function Events({ o, r }: { o: KubeObject; r: Resource }) {
  const core = find("events", r.cluster), modern = find("events.events.k8s.io", r.cluster);
  const e = [core, modern].find((x) => x && readable(x)) ?? core ?? modern;
  const [list, setList] = useState<EventObject[] | null>(null);
  const [error, setError] = useState("");
  const state = e?.state;
  useEffect(() => {
    if (!e || !readable(e)) return;
    const stop = new AbortController();
    const field = e.group ? "regarding.uid" : "involvedObject.uid";
    const q: Record<string, string> = { fieldSelector: `${field}=${o.metadata.uid}`, limit: "500" };
    if (o.metadata.namespace) q.namespace = o.metadata.namespace;
    const load = () => get<List<EventObject>>(path(e, "/objects", q), stop.signal).then(({ body }) => {
      setError("");
      setList(body.items.sort((a, b) => (when(a) < when(b) ? 1 : -1)));
    }, (err: Error) => !stop.signal.aborted && setError(err.message));
    void load();
    const t = setInterval(() => void load(), 5000);
    return () => {
      stop.abort();
      clearInterval(t);
    };
  }, [o.metadata.uid, state]);
  if (!e || !readable(e)) {
    const s = e?.state ?? "unwatched";
    return (
      <div class="absent">
        <StateIcon state={s} />
        <h2>{absence[s] ?? s}</h2>
        <p>{s === "unwatched" ? "There may be events, but the configuration leaves them out." : meaning[s]}</p>
        {s === "unwatched" && <p class="soft">A rule with <code>match: [events]</code> in <code>config.yaml</code>, above the one with <code>watch: false</code>, brings them in.</p>}
      </div>
    );
  }
  return (
    <div class="scroll pad" tabIndex={0} role="region" aria-label="Events">
      {error && <p class="error">{error}</p>}
      {list === null ? <p class="soft">Loading…</p> : list.length === 0 ? <p class="empty">None: the cluster keeps no event of this object.</p> : (
        <table class="plain">
          <thead><tr><th scope="col">Last</th><th scope="col">Type</th><th scope="col">Reason</th><th scope="col" class="number">Count</th><th scope="col">Message</th></tr></thead>
          <tbody>
            {list.map((x) => (
              <tr key={x.metadata.uid}>
                <td><Age since={Date.parse(when(x))} /></td>
                <td class={x.type === "Warning" ? "tone-wait" : ""}>{x.type}</td>
                <td>{x.reason}</td>
                <td class="number">{x.count ?? 1}</td>
                <td class="wrap">{x.message ?? x.note}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </div>
  );
}

function when(e: EventObject): string {
  return e.lastTimestamp ?? e.eventTime ?? e.metadata.creationTimestamp ?? "";
}

function Compare({ o, r }: { o: KubeObject; r: Resource }) {
  const withWhom = params.value.get("with") ?? "";
  const [typed, setTyped] = useState(withWhom);
  useEffect(() => setTyped(withWhom), [withWhom]);
  const [names, setNames] = useState<string[]>([]);
  const [other, setOther] = useState<KubeObject | null>(null);
  const [error, setError] = useState("");
  const [all, setAll] = useState(false);
  const [whole, setWhole] = useState(false);
  useEffect(() => {
    const q: Record<string, string> = { fields: "metadata.name,metadata.namespace", limit: "1000" };
    if (o.metadata.namespace) q.namespace = o.metadata.namespace;
    get<List>(path(r, "/objects", q)).then(({ body }) => setNames(body.items.map((i) => (i.metadata.namespace ? i.metadata.namespace + "/" : "") + i.metadata.name).filter((n) => !n.endsWith("/" + o.metadata.name) && n !== o.metadata.name)), () => setNames([]));
  }, [r.name, o.metadata.namespace]);
  useEffect(() => {
    setError("");
    if (!withWhom) return setOther(null);
    const [a, b] = withWhom.includes("/") ? withWhom.split("/", 2) : ["", withWhom];
    let current = true;
    get<KubeObject>(objectPath(r, a!, b!)).then(({ body }) => current && setOther(body), (e: Error) => current && (setOther(null), setError(e.message)));
    return () => {
      current = false;
    };
  }, [withWhom, r.name]);
  const diff = useMemo(() => {
    if (!other) return null;
    const strip = (x: KubeObject): KubeObject => {
      const c = JSON.parse(JSON.stringify(x)) as KubeObject;
      delete c.metadata.managedFields;
      if (!all) {
        for (const f of ["uid", "resourceVersion", "creationTimestamp", "generation"] as const) delete c.metadata[f];
        delete c.status;
      }
      return c;
    };
    const a = strip(o), b = strip(other);
    return { lines: lineDiff(yaml(a).trimEnd().split("\n"), yaml(b).trimEnd().split("\n")), fields: fieldChanges(a, b).length };
  }, [o, other, all]);
  return (
    <div class="code-box">
      <div class="bar code-bar">
        <label class="check">with <input type="text" list="compare-names" value={typed} placeholder={o.metadata.namespace ? "namespace/name" : "name"} autocomplete="off" spellcheck={false} data-filter onInput={(e) => setTyped(e.currentTarget.value)} onKeyDown={(e) => e.key === "Enter" && update({ with: typed.trim() })} onChange={(e) => update({ with: e.currentTarget.value.trim() })} /></label>
        <datalist id="compare-names">{names.map((n) => <option value={n} />)}</datalist>
        <label class="check"><input type="checkbox" checked={all} onChange={() => setAll(!all)} /> identity and status, too</label>
        <label class="check"><input type="checkbox" checked={whole} onChange={() => setWhole(!whole)} /> equal lines</label>
      </div>
      <div class="scroll diff" tabIndex={0} role="region" aria-label="Differences">
        {error && <p class="error">{error}</p>}
        {!withWhom && <p class="empty">Choose another {r.kind} to compare with.</p>}
        {diff && diff.fields === 0 && <p class="empty">No difference{all ? "" : " in what they are meant to be"}.</p>}
        {diff && diff.fields > 0 && (
          <>
            <p class="soft pad">{plural(diff.fields, "field")} differ: <del>{o.metadata.name}</del> <ins>{other!.metadata.name}</ins></p>
            <pre>
              {(whole ? diff.lines : hunks(diff.lines)).map((l) =>
                typeof l === "number" ? <span class="skip-lines">{`⋯ ${plural(l, "equal line")}\n`}</span> : l.op === "-" ? <del>{`- ${l.text}\n`}</del> : l.op === "+" ? <ins>{`+ ${l.text}\n`}</ins> : <span>{`  ${l.text}\n`}</span>,
              )}
            </pre>
          </>
        )}
      </div>
    </div>
  );
}

function ObjectMenu({ o, r, ns, name }: { o: KubeObject; r: Resource; ns: string; name: string }) {
  const url = new URL(objectPath(r, ns, name), location.href).href;
  return (
    <Popover right label={<><Icon name="copy" /><span class="long">Copy</span></>} name="Copy" title="Copy">
      {(close) => (
        <div class="menu-items">
          <button type="button" data-autofocus onClick={() => { void copy(yaml(o), "YAML"); close(); }}>Copy YAML</button>
          <button type="button" onClick={() => { void copy(`curl -s '${url}'`, "curl command"); close(); }}>Copy as curl</button>
          <button type="button" onClick={() => { void copy(`kubectl get ${r.name} ${name}${ns ? " -n " + ns : ""} -o yaml`, "kubectl command"); close(); }}>Copy as kubectl</button>
          <a href={objectPath(r, ns, name)} download={name + ".json"} onClick={close}>Download JSON</a>
          <button type="button" onClick={() => { void copy(location.href, "Link"); close(); }}>Copy link to this view</button>
        </div>
      )}
    </Popover>
  );
}
