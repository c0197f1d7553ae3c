import { effect, useComputed } from "@preact/signals";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { ApiError, errorText, type FilterErrors } from "../api";
import { selectionQuery, type FollowStatus, type Selection } from "../follow";
import { count, plural } from "../format";
import { cellOf, followHealth, keyOfVerdict } from "../health";
import { headingOf, objectOf } from "../places";
import { asPatterns, byKey, keyOf, known, match, readable, unknownNames, type Resource } from "../resources";
import { href, params, update } from "../route";
import { manySources, oneSource } from "../source";
import { hasHealth, serverOrder, type Column } from "../table/columns";
import { Grid } from "../table/grid";
import { TableModel } from "../table/model";
import { textFilter, type Order } from "../table/rows";
import { choose, frame, joinIds, remember, remembered, splitIds, usualColumns, wrongColumns } from "../table/setup";
import { Icon, StateIcon, StateMark } from "../ui";
import { Absent, AbsentStrip } from "./absent";
import { Old } from "./age";
import { ColumnsMenu } from "./columns-menu";
import { Facets } from "./facets";
import { GroupMenu, Groups } from "./groups";
import { QueryBar } from "./query-bar";
import { ShareMenu } from "./share-menu";

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
  // A glob means what there is; a name also what cannot be had.
  const chosen = useMemo(() => (pattern.includes("*") ? list.filter((r) => r.state !== "unwatched") : list), [list]);
  const [usual, setUsual] = useState<{ key: string; columns: Column[] } | null>(null);
  useEffect(() => {
    if (new Set(chosen.map((r) => r.name)).size !== 1) {
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
  const unknown = unknownNames(pattern, p.get("cluster") ?? "");
  const { offered, shown } = useMemo(() => frame(list, usual, oneNamespace), [list, usual, oneNamespace]);
  const memory = one ? one.name : "*";
  const ids = p.has("columns") ? splitIds(p.get("columns")!) : (remembered(memory) ?? shown);
  const columnKey = joinIds(ids);
  const columns = useMemo(() => choose(ids, offered), [columnKey, offered]);

  const sort = p.get("sort") ?? "";
  // Unless somebody says otherwise, what is wrong comes first.
  const order: Order = { column: columns.findIndex((c) => c.id === (sort.replace(/^-/, "") || "health")), down: sort.startsWith("-") };
  const serverSort = serverOrder(columns[order.column], order.down);
  const current = list.map((r) => byKey.value.get(keyOf(r)) ?? r);
  const absent = current.filter((r) => !readable(r));
  const asked = selectionQuery(selection).toString();
  // Resources that become readable join a stream about many by themselves.
  const able = !one || absent.length === 0;
  const sources = useMemo(() => (!able ? [] : one ? [oneSource(one)] : manySources(list, asPatterns(pattern, list))), [list, able]);
  // Groups are counted by the server: no row is asked for.
  const grouped = p.has("group");
  const model = useMemo(() => new TableModel(grouped ? [] : sources, selection, columns, serverSort), [sources, asked, columns, grouped]);
  useEffect(() => () => model.close(), [model]);

  const unjudged = useHealth(model, pattern, list, selection);
  const words = p.get("q") ?? "";
  const arranged = useRef<unknown[]>([]);
  const arrangement = [model, sort, words, columns];
  if (arrangement.some((v, i) => v !== arranged.current[i])) {
    arranged.current = arrangement;
    model.arrange(order, textFilter(words, columns), serverSort);
  }

  useEffect(() => {
    const keys = (e: KeyboardEvent) => {
      if ((e.target as Element).closest?.("input, textarea, dialog") || e.ctrlKey || e.metaKey || e.altKey) return;
      if (e.key === "p") model.setPaused(!model.paused.peek());
    };
    addEventListener("keydown", keys);
    return () => removeEventListener("keydown", keys);
  }, [model]);

  const rows = model.view;
  const total = model.rows.all.size;
  const parts = model.parts.value;
  const loading = parts.some((x) => x.phase === "loading" || x.expected > 0);
  // A page counts before its rows are drawn: what is expected does not waver.
  const expected = Math.max(total, parts.reduce((n, x) => n + x.expected, 0));
  const faults = parts.map((x) => x.filterErrors).find((f) => f?.count);
  const late = parts.map((x) => x.lateErrors).find((f) => f?.count);
  const failure = parts.map((x) => x.error).find((e): e is ApiError => e instanceof ApiError && (e.code === 400 || e.code === 422));
  const kinds = [...new Set(list.map(headingOf))];
  const heading = pattern === "*" ? "Everything" : kinds.slice(0, 3).join(", ") + (kinds.length > 3 ? ", …" : "");
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
          {absent.length === list.length || failure || grouped ? "" : words ? `${count(rows.length)} of ${count(expected)}` : count(expected)}
          {loading && total > 0 && expected > total && <progress max={expected} value={total} aria-label="loading" />}
        </p>
        <Fresh list={current.filter(readable)} parts={parts} />
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
        <GroupMenu columns={columns} pods={one?.name === "pods"} />
        <ShareMenu list={current} sources={sources} selection={selection} model={model} columns={columns} words={words} />
      </div>
      <QueryBar one={one} list={current} selection={selection} words={words} failure={failure} />
      {failure && !["labelSelector", "fieldSelector", "filter", "namespace"].includes(failure.field) && <p class="error wide" role="alert">{failure.message}</p>}
      {unknown.length > 0 && <p class="strip" role="alert">Not served by the cluster, so not in this table: {unknown.join(", ")}</p>}
      {sort && order.column < 0 && <p class="strip" role="alert">There is no column <code>{sort.replace(/^-/, "")}</code> to sort by.</p>}
      {wrongColumns(ids).map((c) => <p class="strip" role="alert">Not a column and not a path of a field: <code>{c}</code></p>)}
      {list.length > 1 && absent.length > 0 && <AbsentStrip absent={absent} />}
      {unjudged && <p class="strip" role="note">The column Health may be old: {unjudged}</p>}
      {rows.length > 0 && faults && <p class="strip" role="note">The filter has no value for {plural(faults.count, "object")}, left out here: <Fault of={faults} /></p>}
      {late && <p class="strip" role="note">The filter has no value for {plural(late.count, "change")} that came since: <Fault of={late} /></p>}
      <div class={"table-area" + (current.some((r) => r.state === "stale") ? " old" : "")}>
        {facets && <Facets model={model} columns={columns} words={words} />}
        {one && absent.length === 1 ? (
          <Absent r={absent[0]!} />
        ) : grouped ? (
          <Groups sources={sources} selection={selection} pods={one?.name === "pods"} />
        ) : (
          <div class="table-box">
            <Grid
              label={heading}
              rows={rows}
              version={model.version.value}
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
                <p>See above.</p>
              </div>
            )}
            {rows.length === 0 && !failure && (
              <div class="absent over">
                {loading || parts.some((x) => x.phase === "waiting") ? (
                  <p class="soft">{parts.find((x) => x.error)?.error?.message ?? "Loading…"}</p>
                ) : total === 0 && faults ? (
                  <>
                    <StateIcon state="failed" />
                    <h2>Not known: the filter has no value</h2>
                    <p>It could not be worked out for {plural(faults.count, one ? one.kind : "object")}, and is true for no other: <Fault of={faults} /></p>
                    <p class="soft">Where a field may be missing, ask with <code>has(object.field)</code> or <code>object.?field.orValue(0)</code>.</p>
                  </>
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

/** Keeps the health of a table's objects current, or says why it is not. Rows of a table are told what is not
 * good; of the rest there may be a hundred thousand. */
function useHealth(model: TableModel, pattern: string, list: Resource[], selection: Selection): string {
  const namespaces = selection.namespace?.join() ?? "";
  const [error, setError] = useState("");
  useEffect(() => {
    const able = list.filter((r) => readable(byKey.peek().get(keyOf(r)) ?? r));
    if (!able.some((r) => hasHealth(r.name)) || !model.columns.some((c) => c.id === "health")) return;
    const followed = followHealth({ resources: asPatterns(pattern, able), namespace: selection.namespace ?? [], status: "bad,progressing,unknown", all: "true", limit: "5000" }, [...new Set(able.map((r) => r.cluster ?? ""))]);
    const end = effect(() => {
      setError(followed.error.value);
      const l = followed.list.value;
      if (l) model.setHealth({ of: new Map(l.items.map((v) => [keyOfVerdict({ ...v, cluster: v.cluster ?? able[0]!.cluster }), cellOf(v)])), others: l.metadata.truncated ? "" : "good" });
    });
    return () => {
      end();
      followed.close();
    };
  }, [model, pattern, namespaces]);
  return error;
}

/** Why a filter has no value for one of the objects. */
function Fault({ of }: { of: FilterErrors }) {
  return <><code>{of.first}</code>{of.object ? ` (${of.object})` : ""}</>;
}

/** How current the table is: as its least current resource. */
function Fresh({ list, parts }: { list: Resource[]; parts: FollowStatus[] }) {
  if (list.length === 0) return null;
  const r = list.find((r) => r.state !== "live");
  if (!r) {
    const broken = parts.find((x) => !x.streaming && x.phase === "ready" && x.error);
    if (!broken) return <StateMark state="live" />;
    return <span class="state state-stale" title={errorText(broken.error)}><StateIcon state="stale" />reconnecting</span>;
  }
  return (
    <span class="fresh">
      <StateMark state={r.state} reason={r.reason} />
      <Old r={r} />
    </span>
  );
}

/** Tells those who cannot see it what the table does, not more than every 5 s. */
function Announcer({ label, model, loading }: { label: string; model: TableModel; loading: boolean }) {
  const [text, setText] = useState("");
  const last = useRef({ at: 0, n: -1 });
  useEffect(() => {
    if (loading) return;
    const tell = () => {
      const n = model.rows.view.length;
      if (n === last.current.n || Date.now() - last.current.at < 5000) return;
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
