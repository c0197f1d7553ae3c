import { useComputed, useSignalEffect } from "@preact/signals";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { ApiError, errorText, get, type List } from "../api";
import { features } from "../features";
import { selectionQuery, type Selection } from "../follow";
import { count, plural, seconds } from "../format";
import { headingOf, objectOf } from "../places";
import { byKey, keyOf, known, match, now, path, readable, type Resource } from "../resources";
import { href, params, update } from "../route";
import { Grid } from "../table/grid";
import type { Column } from "../table/columns";
import { TableModel, type Part } from "../table/model";
import { facet, textFilter, type Order } from "../table/rows";
import { choose, frame, joinIds, remember, remembered, splitIds, usualColumns } from "../table/setup";
import { absence, copy, Icon, meaning, Popover, QueryInput, StateIcon, StateMark, type Suggestion } from "../ui";
import { parsePath, PathError } from "../paths";

// A live table of the objects of one or many kinds.

export function Objects() {
  const p = params.value;
  const pattern = p.get("resource") ?? "";
  const cluster = p.get("cluster") ?? "";
  // Which resources these are changes rarely; what is held of them all the time.
  const keys = useComputed(() => {
    const q = params.value;
    return match(q.get("resource") ?? "", q.get("cluster") ?? "").map(keyOf).join("\n");
  }).value;
  const list = useMemo(() => match(pattern, cluster), [keys, pattern, cluster]);
  const globbed = pattern.includes("*");
  const chosen = globbed ? list.filter((r) => r.state !== "unwatched") : list;
  const [usual, setUsual] = useState<{ key: string; columns: Column[] } | null>(null);
  useEffect(() => {
    if (chosen.length !== 1) {
      setUsual({ key: keys, columns: [] });
      return;
    }
    let current = true;
    void usualColumns(chosen[0]!).then((columns) => current && setUsual({ key: keys, columns }));
    return () => {
      current = false;
    };
  }, [keys]);
  if (!known.value) return <div class="view"><p class="empty">Waiting for informerd…</p></div>;
  if (list.length === 0) {
    return (
      <div class="view">
        <div class="head"><h1>{pattern || "Objects"}</h1></div>
        <div class="absent">
          <StateIcon state="none" />
          <h2>{pattern ? "No such resource" : "Which objects?"}</h2>
          <p>{pattern ? <>The cluster serves no resource called <code>{pattern}</code>, or it is not installed yet.</> : "Choose a kind."}</p>
          <p><a class="button" href={href("resources")}>All resources</a></p>
        </div>
      </div>
    );
  }
  if (!usual || usual.key !== keys) return <div class="view" />;
  return <Table key={keys + cluster} pattern={pattern} resources={chosen} usual={usual.columns} />;
}

function selectionOf(p: URLSearchParams): Selection {
  return {
    namespace: p.getAll("namespace"),
    labelSelector: p.get("labelSelector") ?? "",
    fieldSelector: p.get("fieldSelector") ?? "",
    filter: p.get("filter") ?? "",
  };
}

function Table({ pattern, resources: list, usual }: { pattern: string; resources: Resource[]; usual: Column[] }) {
  const p = params.value;
  const selection = selectionOf(p);
  const one = list.length === 1 ? list[0]! : null;
  const oneNamespace = selection.namespace!.length === 1 && !/[*?[]/.test(selection.namespace![0]!);
  const { offered, shown } = useMemo(() => frame(list, usual, oneNamespace), [list, usual, oneNamespace]);
  const memory = one ? one.name : "*";
  const ids = p.has("columns") ? splitIds(p.get("columns")!) : (remembered(memory) ?? shown);
  const columnKey = joinIds(ids);
  const columns = useMemo(() => choose(ids, offered), [columnKey, offered]);

  // A resource that becomes readable is asked anew.
  const readableKeys = useComputed(() => list.map((r) => (byKey.value.get(keyOf(r))?.state ?? "")).map((s) => (s === "live" || s === "warm" || s === "stale" ? "1" : s)).join()).value;
  const asked = selectionQuery(selection).toString();
  const model = useMemo(() => {
    const able = list.map((r) => byKey.peek().get(keyOf(r)) ?? r).filter(readable);
    return new TableModel(able, selection, columns);
  }, [list, asked, columns, readableKeys]);
  useEffect(() => () => model.close(), [model]);
  useSignalEffect(() => model.refresh(byKey.value));

  const sort = p.get("sort") ?? "";
  const order: Order = { column: columns.findIndex((c) => c.id === sort.replace(/^-/, "")), down: sort.startsWith("-") };
  const words = p.get("q") ?? "";
  const arranged = useRef<unknown[]>([]);
  const arrangement = [model, sort, words, columns];
  if (arrangement.some((v, i) => v !== arranged.current[i])) {
    arranged.current = arrangement;
    model.arrange(order, textFilter(words, columns));
  }

  useEffect(() => {
    const keys = (e: KeyboardEvent) => {
      if ((e.target as Element).closest?.("input, textarea, dialog") || e.ctrlKey || e.metaKey || e.altKey) return;
      if (e.key === "p") model.setPaused(!model.paused.peek());
    };
    addEventListener("keydown", keys);
    return () => removeEventListener("keydown", keys);
  }, [model]);

  const rows = model.view.value;
  const total = model.total.value;
  const parts = model.parts.value;
  const current = list.map((r) => byKey.value.get(keyOf(r)) ?? r);
  const absent = current.filter((r) => !readable(r));
  const loading = parts.some((x) => x.status.phase === "loading") || parts.some((x) => x.remaining > 0);
  // A page counts before its rows are drawn: what is expected does not waver.
  const expected = loading ? Math.max(total, parts.reduce((n, x) => n + x.seen + x.remaining, 0)) : total;
  const failure = parts.map((x) => x.status.error).find((e): e is ApiError => e instanceof ApiError && e.code === 400);
  const heading = one ? headingOf(one) : pattern === "*" ? "Everything" : list.map(headingOf).slice(0, 3).join(", ") + (list.length > 3 ? ` and ${list.length - 3} more` : "");
  useEffect(() => {
    document.title = heading + " · informerd";
  }, [heading]);
  const facets = p.get("facets") === "1";
  const place = `${pattern} ${p.get("cluster") ?? ""} ${asked} ${sort} ${words}`;
  const restricted = !!(asked || words);

  return (
    <div class="view">
      <div class="head">
        <h1>{heading}</h1>
        <p class="tally">
          {absent.length === list.length || failure ? "" : words ? `${count(rows.length)} of ${count(expected)}` : count(expected)}
          {loading && total > 0 && expected > total && <progress max={expected} value={total} aria-label="loading" />}
        </p>
        <Fresh parts={parts} />
        <span class="space" />
        <button type="button" class={"button" + (model.paused.value ? " active" : "")} aria-pressed={model.paused.value} title={model.paused.value ? "Go on (p)" : "Hold changes back (p)"} onClick={() => model.setPaused(!model.paused.value)}>
          <Icon name={model.paused.value ? "play" : "pause"} />
          <span class="long">{model.paused.value ? `Paused${model.held.value ? `: ${count(model.held.value)} held` : ""}` : "Pause"}</span>
        </button>
        <ColumnsMenu offered={offered} shown={shown} columns={columns} one={one} onChange={(next) => {
          remember(memory, next);
          update({ columns: next ? joinIds(next) : null });
        }} />
        <button type="button" class={"button" + (facets ? " active" : "")} aria-pressed={facets} onClick={() => update({ facets: facets ? null : "1" })} title="Values and how often they occur">
          <Icon name="filter" />
          <span class="long">Facets</span>
        </button>
        <ShareMenu list={current} selection={selection} model={model} columns={columns} />
      </div>
      <Bar one={one} list={current} selection={selection} words={words} failure={failure} />
      {failure && !["labelSelector", "fieldSelector", "filter", "namespace"].includes(failure.field) && <p class="error wide" role="alert">{failure.message}</p>}
      {list.length > 1 && absent.length > 0 && <AbsentStrip absent={absent} />}
      {parts.map((x) => x.status.filterErrors).filter((f) => !!f?.count).slice(0, 1).map((f) => (
        <p class="strip" role="note">The filter has no value for {plural(f!.count, "object")}, which are left out: {f!.message} ({f!.object})</p>
      ))}
      <div class={"table-area" + (current.some((r) => r.state === "stale") ? " old" : "")}>
        {facets && <Facets model={model} columns={columns} words={words} />}
        {one && absent.length === 1 ? (
          <Absent r={absent[0]!} />
        ) : (
          <div class="table-box">
            <Grid
              label={heading}
              rows={rows}
              columns={columns}
              order={order}
              place={place}
              busy={loading}
              onSort={(i) => {
                const id = columns[i]!.id;
                update({ sort: order.column !== i ? id : order.down ? null : "-" + id });
              }}
              hrefOf={(row) => objectOf(byKey.peek().get(row.resource) ?? list.find((r) => keyOf(r) === row.resource)!, row.ns, row.name)}
            />
            {failure && (
              <div class="absent over">
                <StateIcon state="failed" />
                <h2>The query was refused</h2>
                <p>It says above what is wrong with it.</p>
              </div>
            )}
            {rows.length === 0 && !failure && (
              <div class="absent over">
                {loading || parts.some((x) => x.status.phase === "waiting") ? (
                  <p class="soft">{parts.find((x) => x.status.error)?.status.error?.message ?? "Loading…"}</p>
                ) : (
                  <>
                    <StateIcon state="none" />
                    <h2>None</h2>
                    <p>
                      {restricted ? `No ${one ? one.kind : "object"} matches.` : `There is no ${one ? one.kind : "object"}: informerd sees all that there is.`}
                    </p>
                    {restricted && <p><button type="button" class="button" onClick={() => update({ namespace: null, labelSelector: null, fieldSelector: null, filter: null, q: null }, true)}>Clear the query</button></p>}
                  </>
                )}
              </div>
            )}
          </div>
        )}
      </div>
      <Announcer label={heading} model={model} loading={loading} />
    </div>
  );
}

/** How current the table is. */
function Fresh({ parts }: { parts: Part[] }) {
  const worst = parts.find((x) => !x.status.streaming && x.streaming && x.status.phase === "ready" && x.status.error)
    ?? parts.find((x) => { const s = byKey.value.get(keyOf(x.resource))?.state ?? x.status.fresh?.state; return s && s !== "live"; });
  if (parts.length === 0) return null;
  if (!worst) return <StateMark state="live" />;
  const r = byKey.value.get(keyOf(worst.resource)) ?? worst.resource;
  if (r.state === "live") return <span class="state state-stale" title={worst.status.error ? errorText(worst.status.error) : ""}><StateIcon state="stale" />reconnecting</span>;
  const age = r.contactTime ? (now.value - Date.parse(r.contactTime)) / 1000 : null;
  return (
    <span class="fresh">
      <StateMark state={r.state} reason={r.reason} />
      {age !== null && <small>{seconds(age)} old</small>}
    </span>
  );
}

function Absent({ r }: { r: Resource }) {
  return (
    <div class="absent">
      <StateIcon state={r.state} />
      <h2>{absence[r.state] ?? r.state}</h2>
      <p>
        {r.state === "forbidden" && "There may be objects, but informerd is not allowed to read them, so it cannot know."}
        {r.state === "unwatched" && "The configuration leaves this resource out, so informerd knows nothing of its objects."}
        {r.state === "syncing" && "informerd is reading them from the API server. They appear here by themselves."}
        {r.state === "failed" && "informerd could not read them."}
      </p>
      {r.reason && <p class="reason"><code>{r.reason}</code></p>}
      {r.state === "forbidden" && <p class="soft">It tries again by itself; grant <code>get</code>, <code>list</code> and <code>watch</code> on <code>{r.name}</code> to its user.</p>}
      {r.state === "unwatched" && <p class="soft">A rule in <code>config.yaml</code> with <code>match: [{r.name}]</code> above the one that says <code>watch: false</code> would change that.</p>}
      {r.state === "syncing" && <progress aria-label="listing" />}
    </div>
  );
}

function AbsentStrip({ absent }: { absent: Resource[] }) {
  return (
    <p class="strip" role="note">
      Not included:{" "}
      {absent.slice(0, 6).map((r, i) => (
        <>
          {i > 0 && ", "}
          <span title={r.reason || meaning[r.state]}>
            <StateIcon state={r.state} /> {r.name} ({absence[r.state]?.toLowerCase() ?? r.state})
          </span>
        </>
      ))}
      {absent.length > 6 && ` and ${absent.length - 6} more`}
    </p>
  );
}

function Bar({ one, list, selection, words, failure }: { one: Resource | null; list: Resource[]; selection: Selection; words: string; failure?: ApiError }) {
  const error = (field: string) => (failure?.field === field ? { error: failure.message.replace(new RegExp(`^${field}: `), ""), column: failure.column } : {});
  const first = one ?? list.find(readable);
  return (
    <div class="bar query" role="search">
      <div class="field narrow">
        <label for="words">In the table</label>
        <input id="words" type="search" value={words} placeholder="words, status:running, -word" autocomplete="off" spellcheck={false} data-filter onInput={(e) => update({ q: e.currentTarget.value })}
          onKeyDown={(e) => {
            if (e.key === "ArrowDown" || e.key === "Enter") {
              e.preventDefault();
              document.querySelector<HTMLElement>(".grid")?.focus();
            }
          }} />
      </div>
      {list.some((r) => r.namespaced) && <Namespaces one={first} selected={selection.namespace!} />}
      <QueryInput label="Labels" value={selection.labelSelector!} placeholder="app=web,tier in (a,b)" {...error("labelSelector")} suggest={first && readable(first) ? (t) => suggestLabels(first, t) : undefined} onSubmit={(t) => update({ labelSelector: t }, true)} />
      <QueryInput label="Fields" value={selection.fieldSelector!} placeholder="status.phase!=Running" {...error("fieldSelector")} suggest={first && readable(first) ? (t) => suggestFields(first, t) : undefined} onSubmit={(t) => update({ fieldSelector: t }, true)} />
      {(features.value.filter || selection.filter) && (
        <QueryInput grow={4} label="CEL" value={selection.filter!} placeholder="object.spec.replicas > 3" {...error("filter")} suggest={first && readable(first) && features.value.complete ? (t) => suggestExpression(first, t) : undefined} onSubmit={(t) => update({ filter: t }, true)} />
      )}
      {features.value.explain && one && readable(one) && <Plan r={one} selection={selection} />}
    </div>
  );
}

interface Explanation {
  objects: number;
  indexes: string[];
  candidates: number;
  scanned: number;
  matched: number;
  advice?: { path: string; config: string }[];
}

/** How the server answers the query, on demand. */
function Plan({ r, selection }: { r: Resource; selection: Selection }) {
  const [plan, setPlan] = useState<Explanation | null>(null);
  const [error, setError] = useState("");
  const q = selectionQuery(selection);
  q.set("explain", "true");
  return (
    <div class="field fit">
      <span class="label">Query</span>
      <Popover right wide label="Plan" title="How this query is answered" onOpen={() => {
        setPlan(null);
        setError("");
        get<List<Explanation>>(path(r, "/objects", q)).then(({ body }) => setPlan(body.items[0] ?? null), (e: Error) => setError(e.message));
      }}>
        {() =>
          error ? <p class="error">{error}</p> : !plan ? <p class="soft">Asking…</p> : (
            <>
              <dl class="pairs plan">
                <dt>Objects</dt><dd>{count(plan.objects)}</dd>
                <dt>Indexes</dt><dd>{plan.indexes.length ? plan.indexes.join(", ") : <span class="soft">none used</span>}</dd>
                <dt>Candidates</dt><dd>{count(plan.candidates)}</dd>
                <dt>Read</dt><dd>{count(plan.scanned)}</dd>
                <dt>Matched</dt><dd>{count(plan.matched)}</dd>
              </dl>
              {plan.advice?.map((a) => (
                <>
                  <p class="soft">An index on <code>{a.path}</code> would help; in config.yaml:</p>
                  <pre class="config">{a.config}</pre>
                  <button type="button" class="button quiet" onClick={() => void copy(a.config, "Rule")}><Icon name="copy" /> Copy</button>
                </>
              ))}
            </>
          )
        }
      </Popover>
    </div>
  );
}

interface IndexValue {
  value: string;
  objects: number;
}

async function indexValues(r: Resource, index: string, prefix: string, limit: number): Promise<IndexValue[]> {
  const { body } = await get<List<IndexValue>>(path(r, `/indexes/${encodeURIComponent(index)}`, { prefix, limit: String(limit) }));
  return body.items;
}

function Namespaces({ one, selected }: { one?: Resource; selected: string[] }) {
  const [values, setValues] = useState<IndexValue[] | null>(null);
  const [words, setWords] = useState("");
  const toggle = (ns: string) => update({ namespace: selected.includes(ns) ? selected.filter((s) => s !== ns) : [...selected, ns] }, true);
  const label = selected.length === 0 ? "all" : selected.length <= 2 ? selected.join(", ") : `${selected.length} of them`;
  return (
    <div class="field fit">
      <span class="label">Namespaces</span>
      <Popover label={<>{label} <Icon name="down" /></>} name={"Namespaces: " + label} title="Namespaces" active={selected.length > 0} onOpen={() => {
        if (one && readable(one)) indexValues(one, "namespace", "", 1000).then(setValues, () => setValues([]));
      }}>
        {() => (
          <>
            <input type="search" aria-label="Find a namespace, or type a glob" placeholder="find, or team-* and Enter" value={words} data-autofocus onInput={(e) => setWords(e.currentTarget.value)}
              onKeyDown={(e) => {
                const w = words.trim();
                if (e.key !== "Enter" || !w) return;
                const hits = values?.filter((v) => v.value.includes(w)) ?? [];
                toggle(/[*?[]/.test(w) || hits.length === 0 ? w : hits[0]!.value);
                setWords("");
              }} />
            <div class="choices">
              <label><input type="checkbox" checked={selected.length === 0} onChange={() => update({ namespace: null }, true)} /> all</label>
              {[...selected.filter((s) => !values?.some((v) => v.value === s)).map((value) => ({ value, objects: -1 })), ...(values ?? [])]
                .filter((v) => v.value && v.value.includes(words.replace(/\*/g, "")))
                .map((v) => (
                  <label key={v.value}>
                    <input type="checkbox" checked={selected.includes(v.value)} onChange={() => toggle(v.value)} /> <span>{v.value}</span>
                    {v.objects >= 0 && <small>{count(v.objects)}</small>}
                  </label>
                ))}
            </div>
          </>
        )}
      </Popover>
    </div>
  );
}

/** Splits a selector at its last comma outside of parentheses. */
function lastTerm(text: string): [string, string] {
  let depth = 0, cut = 0;
  for (let i = 0; i < text.length; i++) {
    if (text[i] === "(") depth++;
    else if (text[i] === ")") depth--;
    else if (text[i] === "," && depth === 0) cut = i + 1;
  }
  return [text.slice(0, cut), text.slice(cut).trimStart()];
}

async function suggestLabels(r: Resource, text: string): Promise<Suggestion[]> {
  const [before, term] = lastTerm(text);
  if (/[ !(]/.test(term)) return [];
  const values = await indexValues(r, "label", term.replace("==", "="), term ? 40 : 200);
  if (term.includes("=")) return values.map((v) => ({ value: before + v.value, label: v.value, note: count(v.objects) }));
  const keys = new Map<string, { n: number; objects: number }>();
  for (const v of values) {
    const key = v.value.split("=")[0]!;
    const k = keys.get(key) ?? { n: 0, objects: 0 };
    keys.set(key, { n: k.n + 1, objects: k.objects + v.objects });
  }
  if (keys.size === 1 && keys.has(term)) return values.map((v) => ({ value: before + v.value, label: v.value, note: count(v.objects) }));
  return [...keys].map(([key, k]) => ({ value: before + key + "=", label: key, note: plural(k.n, "value") }));
}

async function suggestFields(r: Resource, text: string): Promise<Suggestion[]> {
  const [before, term] = lastTerm(text);
  const { body } = await get<List<{ name: string; path?: string; values: number }>>(path(r, "/indexes"));
  const indexes = body.items.filter((i) => i.path);
  const m = /^([^=!]+?)(==|!=|=)(.*)$/.exec(term);
  if (m) {
    const index = indexes.find((i) => i.path === m[1]);
    if (!index && features.value.complete) {
      return (await proposals(r, { for: "values", path: m[1]!, prefix: m[3]! })).map((v) => ({ value: `${before}${m[1]}${m[2]}${v.value}`, label: v.value, note: v.objects === undefined ? "" : count(v.objects) }));
    }
    if (!index) return [];
    const values = await indexValues(r, index.name, m[3]!, 40);
    return values.map((v) => ({ value: `${before}${m[1]}${m[2]}${v.value}`, label: v.value, note: count(v.objects) }));
  }
  const known = indexes.map((i) => ({ value: `${before}${i.path}=`, label: i.path!, note: plural(i.values, "value") }));
  for (const p of ["metadata.name", "metadata.deletionTimestamp"]) known.push({ value: before + p + (p.endsWith("name") ? "=" : ""), label: p, note: p.endsWith("name") ? "" : "exists" });
  const mine = known.filter((s) => s.label.startsWith(term));
  if (!features.value.complete || !/^[\w.[\]*'"\/-]*$/.test(term)) return mine;
  for (const p of await proposals(r, { for: "paths", prefix: term })) {
    if (mine.some((s) => s.label === p.value)) continue;
    mine.push({ value: before + p.value + (p.kind === "object" || p.kind === "array" ? "" : "="), label: p.value, note: p.kind ?? "" });
  }
  return mine;
}

interface Proposal {
  value: string;
  kind?: string;
  objects?: number;
}

async function proposals(r: Resource, q: Record<string, string>): Promise<Proposal[]> {
  const p = new URLSearchParams({ ...q, resource: r.name, limit: "12" });
  if (r.cluster) p.set("cluster", r.cluster);
  return (await get<List<Proposal>>("v1/complete?" + p)).body.items;
}

/** Completes the path of a field that an expression ends in. */
async function suggestExpression(r: Resource, text: string): Promise<Suggestion[]> {
  const m = /(^|[^\w.])object\.([\w.]*)$/.exec(text);
  if (!m) return [];
  const before = text.slice(0, text.length - m[2]!.length);
  return (await proposals(r, { for: "paths", prefix: m[2]! })).filter((p) => !/[[\]]/.test(p.value)).map((p) => ({ value: before + p.value, label: p.value, note: p.kind }));
}

function ColumnsMenu({ offered, shown, columns, one, onChange }: { offered: Column[]; shown: string[]; columns: Column[]; one: Resource | null; onChange: (ids: string[] | null) => void }) {
  const [text, setText] = useState("");
  const [error, setError] = useState("");
  const ids = columns.map((c) => c.id);
  const changed = joinIds(ids) !== joinIds(shown);
  const custom = columns.filter((c) => !offered.some((o) => o.id === c.id));
  // Offered columns keep their order; those somebody added come before the age.
  const put = (next: string[]) => {
    const rank = (id: string) => (id === "age" ? 1000 : offered.findIndex((o) => o.id === id) >= 0 ? offered.findIndex((o) => o.id === id) : 500 + next.indexOf(id));
    const sorted = [...next].sort((a, b) => rank(a) - rank(b));
    onChange(joinIds(sorted) === joinIds(shown) ? null : sorted);
  };
  const add = () => {
    const t = text.trim();
    if (!t) return;
    try {
      if (!t.startsWith("label:")) parsePath(t);
    } catch (e) {
      setError(e instanceof PathError ? `column ${e.column}: ${e.message}` : errorText(e));
      return;
    }
    setError("");
    setText("");
    put([...ids, t]);
  };
  return (
    <Popover right label={<><Icon name="columns" /><span class="long">Columns</span></>} name="Columns" title="Columns" active={changed}>
      {() => (
        <>
          <div class="choices">
            {offered.filter((c) => c.id !== "name").map((c) => (
              <label key={c.id}>
                <input type="checkbox" checked={ids.includes(c.id)} onChange={() => put(ids.includes(c.id) ? ids.filter((i) => i !== c.id) : [...ids, c.id])} /> <span>{c.title}</span>
              </label>
            ))}
            {custom.map((c) => (
              <label key={c.id}>
                <input type="checkbox" checked onChange={() => put(ids.filter((i) => i !== c.id))} /> <span><code>{c.id}</code></span>
              </label>
            ))}
          </div>
          <form onSubmit={(e) => { e.preventDefault(); add(); }}>
            <input type="text" value={text} data-autofocus aria-label="Path of a field, or label:KEY" placeholder="spec.nodeName or label:app" autocomplete="off" spellcheck={false} aria-invalid={!!error} onInput={(e) => setText(e.currentTarget.value)} />
            <button type="submit" class="button">Add</button>
          </form>
          {error && <p class="error" role="alert">{error}</p>}
          {changed && <button type="button" class="button quiet" onClick={() => onChange(null)}>Back to the usual columns{one ? ` of ${one.kind}` : ""}</button>}
        </>
      )}
    </Popover>
  );
}

function quoteShell(s: string): string {
  return /^[\w@%+=:,./-]+$/.test(s) ? s : `'${s.replace(/'/g, `'\\''`)}'`;
}

export function curlOf(r: Resource, selection: Selection): string {
  return "curl -s " + quoteShell(new URL(path(r, "/objects", selectionQuery(selection)), location.href).href);
}

export function kubectlOf(list: Resource[], s: Selection): string {
  const ns = s.namespace ?? [];
  const parts = ["kubectl", "get", list.map((r) => r.name).join(",")];
  if (list.some((r) => r.namespaced)) parts.push(...(ns.length === 1 && !/[*?[]/.test(ns[0]!) ? ["-n", quoteShell(ns[0]!)] : ["-A"]));
  if (s.labelSelector) parts.push("-l", quoteShell(s.labelSelector));
  if (s.fieldSelector) parts.push("--field-selector", quoteShell(s.fieldSelector));
  return parts.join(" ");
}

export function csvOf(columns: Column[], rows: Iterable<{ cells: (string | number | null)[] }>): string {
  const quote = (v: string) => {
    // A spreadsheet would run what begins so.
    const safe = /^[=+\-@\t\r]/.test(v) && !/^-?\d/.test(v) ? "'" + v : v;
    return /[",\r\n]/.test(safe) ? `"${safe.replace(/"/g, '""')}"` : safe;
  };
  const lines = [columns.map((c) => quote(c.title)).join(",")];
  for (const r of rows) lines.push(r.cells.map((v, i) => quote(v === null ? "" : columns[i]!.type === "age" ? new Date(v as number).toISOString() : String(v))).join(","));
  return lines.join("\r\n") + "\r\n";
}

function save(name: string, type: string, text: string): void {
  const a = document.createElement("a");
  a.href = URL.createObjectURL(new Blob([text], { type }));
  a.download = name;
  a.click();
  setTimeout(() => URL.revokeObjectURL(a.href), 10_000);
}

function ShareMenu({ list, selection, model, columns }: { list: Resource[]; selection: Selection; model: TableModel; columns: Column[] }) {
  const able = list.filter(readable);
  const name = able.length === 1 ? able[0]!.name : "objects";
  return (
    <Popover right label={<><Icon name="download" /><span class="long">Export</span></>} name="Export and copy" title="Export and copy">
      {(close) => (
        <div class="menu-items">
          <button type="button" data-autofocus onClick={() => { save(name + ".csv", "text/csv", csvOf(columns, model.view.peek())); close(); }}>
            The table as CSV<small>{plural(model.view.value.length, "row")}</small>
          </button>
          {able.length === 1 && (
            <a href={path(able[0]!, "/objects", selectionQuery(selection))} download={name + ".json"} onClick={close}>
              The objects as JSON<small>whole</small>
            </a>
          )}
          {able.length >= 1 && (
            <button type="button" onClick={() => { void copy(able.map((r) => curlOf(r, selection)).join("\n"), "curl command"); close(); }}>
              Copy as curl
            </button>
          )}
          <button type="button" onClick={() => { void copy(kubectlOf(list, selection), "kubectl command"); close(); }}>
            Copy as kubectl{selection.filter ? <small>less the CEL filter</small> : null}
          </button>
          <button type="button" onClick={() => { void copy(location.href, "Link"); close(); }}>
            Copy link to this view
          </button>
        </div>
      )}
    </Popover>
  );
}

/** The values of each column and how often they occur among what is loaded. */
function Facets({ model, columns, words }: { model: TableModel; columns: Column[]; words: string }) {
  const [tick, redraw] = useState(0);
  useEffect(() => {
    const t = setInterval(() => redraw((n) => n + 1), 1500);
    return () => clearInterval(t);
  }, [model]);
  const size = model.view.value.length;
  const lists = useMemo(() => columns.map((c, i) => ({ c, values: c.type === "text" && c.id !== "name" ? facet(model.rows.view, i) : [] })), [columns, tick, size < 500 ? size : 0, words]);
  const terms: string[] = words.match(/(?:[^\s"]+|"[^"]*")+/g) ?? [];
  return (
    <aside class="facets" aria-label="Facets" tabIndex={0}>
      {lists.filter((l) => l.values.length > 1 || (l.values.length === 1 && words)).filter((l) => l.values[0]!.n > 1).map(({ c, values }) => (
        <section key={c.id}>
          <h2>{c.title}</h2>
          <ul>
            {values.map((v) => {
              const term = `${c.id}:=${/\s/.test(v.value) ? `"${v.value}"` : v.value}`.toLowerCase();
              const on = terms.includes(term);
              return (
                <li key={v.value}>
                  <button type="button" aria-pressed={on} onClick={() => update({ q: (on ? terms.filter((t) => t !== term) : [...terms, term]).join(" ") })}>
                    <i class="part" style={{ width: `${(100 * v.n) / (size || 1)}%` }} />
                    <span>{v.value || <em>none</em>}</span>
                    <small>{count(v.n)}</small>
                  </button>
                </li>
              );
            })}
          </ul>
        </section>
      ))}
    </aside>
  );
}

/** Tells those who cannot see it what the table does, not more than every 10 s. */
function Announcer({ label, model, loading }: { label: string; model: TableModel; loading: boolean }) {
  const [text, setText] = useState("");
  const last = useRef({ at: 0, n: -1 });
  useEffect(() => {
    if (loading) return;
    const tell = () => {
      const n = model.view.peek().length;
      if (n === last.current.n || Date.now() - last.current.at < 10_000) return;
      const before = last.current.n;
      last.current = { at: Date.now(), n };
      setText(before < 0 ? `${label}: ${plural(n, "row")}` : `${label}: now ${plural(n, "row")}, ${before} before`);
    };
    tell();
    const t = setInterval(tell, 2000);
    return () => clearInterval(t);
  }, [model, loading, label]);
  return <p class="hidden" role="status">{text}</p>;
}

