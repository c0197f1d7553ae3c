import { useMemo, useRef, useState } from "preact/hooks";
import { get, type State } from "../api";
import { count, plural } from "../format";
import { headingOf } from "../places";
import { usePolled } from "../polled";
import { askOf, changes, clusterOf, find, type Resource } from "../resources";
import { params, query, update } from "../route";
import { absence, StateIcon } from "../ui";
import { HealthIcon, placeOf, toneOfHealth, type HealthList, type Verdict } from "../health";
import { curve, height, layOut, width, type Point } from "../layout/layout";
import { collapse } from "../siblings";
import { useViewport } from "./viewport";

// What an object is related to, as a picture and as a nested list. This part of
// the page is loaded when it is opened.

interface Node {
  id: string;
  resource: string;
  kind: string;
  namespace?: string;
  name: string;
  state?: State;
  depth: number;
  missing?: boolean;
  unknown?: boolean;
  hub?: boolean;
  members?: string[];
}

interface Edge {
  from: string;
  to: string;
  edge: string;
  why: string;
}

interface GraphAnswer {
  root: string;
  truncated: boolean;
  nodes: Node[];
  edges: Edge[];
  unanswered?: { resource: string; state: State; reason?: string }[];
}

/** How an edge reads from either end. */
const words: Record<string, [string, string]> = {
  owns: ["owns", "owned by"], runsOn: ["runs on", "runs"], runsAs: ["runs as", "identity of"], mounts: ["mounts", "mounted by"], env: ["takes its environment from", "environment of"],
  pulls: ["pulls with", "pull secret of"], holds: ["holds", "held by"], servedBy: ["served by", "serves"], binds: ["binds", "bound by"], class: ["of class", "class of"],
  attaches: ["attaches", "attached by"], selects: ["selects", "selected by"], slices: ["sliced into", "slice of"], endpoint: ["leads to", "endpoint of"], routes: ["routes to", "routed to by"],
  tls: ["certificate from", "certificate of"], scales: ["scales", "scaled by"], grants: ["grants", "granted by"], subject: ["to", "bound in"], calls: ["calls", "called by"], defines: ["defines", "defined by"],
  about: ["about", "told of by"], contains: ["contains", "in"],
};

function linkOf(n: Node, r: Resource): string {
  return placeOf({ ...n, cluster: r.cluster }, "relations", params.peek().get("rel"));
}

const scopes = [
  ["lines", "needs and needed by"],
  ["out", "what it needs"],
  ["in", "what needs it"],
  ["both", "everything near"],
] as const;

export function GraphRelations({ r, ns, name }: { r: Resource; ns: string; name: string }) {
  const p = params.value;
  const scope = scopes.some((s) => s[0] === p.get("direction")) ? p.get("direction")! : "lines";
  const depth = Math.min(5, Math.max(1, Number(p.get("depth")) || (scope === "both" ? 2 : 3)));
  const list = p.get("rel") === "list";
  const [graph, setGraph] = useState<GraphAnswer | null>(null);
  const [health, setHealth] = useState<Verdicts>(new Map());
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const withEvents = p.has("events");
  const question = [r.name, r.cluster, ns, name, scope, depth].join();
  const seen = useRef("");
  const { error } = usePolled(question, 2500, async (signal) => {
    const mark = question + changes();
    if (mark === seen.current) return undefined;
    const directions = scope === "lines" ? ["out", "in"] : [scope];
    const answers = await Promise.all(directions.map((direction) => {
      return get<GraphAnswer>("v1/graph/" + askOf(r, ns, name, { depth: String(depth), direction, limit: "150" }), signal);
    }));
    setGraph((before) => {
      const next = merge(answers.map((a) => a.body));
      return before && JSON.stringify(before) === JSON.stringify(next) ? before : next;
    });
    setHealth(await verdicts(r, signal));
    seen.current = mark;
    return true;
  });
  // Events are told on their own tab; many of a kind stand for themselves when asked to.
  const shown = useMemo(() => {
    if (!graph) return null;
    const isEvent = (id: string) => /^events[./]/.test(id);
    const kept = withEvents || isEvent(graph.root) ? graph : { ...graph, nodes: graph.nodes.filter((n) => !isEvent(n.id)), edges: graph.edges.filter((e) => !isEvent(e.from) && !isEvent(e.to)) };
    return list ? kept : { ...kept, ...collapse(kept, open) };
  }, [graph, open, withEvents, list]);
  return (
    <div class="code-box">
      <div class="bar code-bar">
        <div class="segments" role="group" aria-label="Show as">
          <button type="button" aria-pressed={!list} onClick={() => update({ rel: null })}>Graph</button>
          <button type="button" aria-pressed={list} onClick={() => update({ rel: "list" })}>List</button>
        </div>
        <label class="check">
          <span class="hidden">Which relations</span>
          <select value={scope} onChange={(e) => update({ direction: e.currentTarget.value === "lines" ? null : e.currentTarget.value, depth: null })}>
            {scopes.map(([v, t]) => <option value={v}>{t}</option>)}
          </select>
        </label>
        <label class="check">
          within
          <select value={String(depth)} onChange={(e) => update({ depth: e.currentTarget.value })}>
            {[1, 2, 3, 4, 5].map((d) => <option value={String(d)}>{plural(d, "step")}</option>)}
          </select>
        </label>
        <label class="check"><input type="checkbox" checked={withEvents} onChange={() => update({ events: withEvents ? null : "1" })} /> events</label>
        <span class="space" />
        {graph && <span class="soft" role="status">{plural(graph.nodes.length, "object")}, {plural(graph.edges.length, "relation")}{graph.truncated ? ", and more" : ""}</span>}
      </div>
      {error && <p class="error pad" role="alert">{error}</p>}
      {!graph && !error && <p class="empty">Looking…</p>}
      {shown && (list ? <Nested graph={shown} r={r} health={health} /> : <Picture graph={shown} r={r} health={health} onOpen={(id) => setOpen(new Set([...open, id]))} />)}
      {graph && !!graph.unanswered?.length && (
        <p class="strip foot">
          Not looked at:{" "}
          {graph.unanswered.map((u, i) => (
            <>
              {i > 0 && ", "}
              <StateIcon state={u.state} /> {u.resource} ({absence[u.state]?.toLowerCase() ?? u.state})
            </>
          ))}
        </p>
      )}
    </div>
  );
}

function merge(all: GraphAnswer[]): GraphAnswer {
  const nodes = new Map<string, Node>();
  const edges = new Map<string, Edge>();
  for (const g of all) {
    for (const n of g.nodes) if (!nodes.has(n.id)) nodes.set(n.id, n);
    for (const e of g.edges) edges.set(`${e.from} ${e.to} ${e.edge}`, e);
  }
  const first = all[0]!;
  return { root: first.root, truncated: all.some((g) => g.truncated), nodes: [...nodes.values()], edges: [...edges.values()], unanswered: first.unanswered };
}

type Verdicts = ReadonlyMap<string, Verdict>;

/** What is not good near by, by id. */
async function verdicts(r: Resource, signal: AbortSignal): Promise<Verdicts> {
  const q = query({ all: "true", status: "bad,progressing,unknown", limit: "5000", cluster: clusterOf(r) });
  try {
    return new Map((await get<HealthList>("v1/health?" + q, signal)).body.items.map((v) => [v.id, v]));
  } catch {
    return new Map(); // the graph has no colors; the frame says what is wrong
  }
}

/** The worst of a box, and how many of those it stands for are not good. */
function worstOf(n: Node, health: Verdicts): { v?: Verdict; n: number } {
  const all = (n.members ?? [n.id]).flatMap((id) => health.get(id) ?? []);
  return { v: all.find((v) => v.status === "bad") ?? all[0], n: all.length };
}

interface Line {
  from: string;
  to: string;
  edges: Edge[];
}

/** Several relations of the same two objects are one line with several words. */
function linesOf(graph: GraphAnswer): Line[] {
  const lines = new Map<string, Line>();
  const known = new Set(graph.nodes.map((n) => n.id));
  for (const e of graph.edges) {
    if (!known.has(e.from) || !known.has(e.to) || e.from === e.to) continue;
    const key = e.from + " " + e.to;
    const line = lines.get(key);
    if (line) line.edges.push(e);
    else lines.set(key, { from: e.from, to: e.to, edges: [e] });
  }
  return [...lines.values()];
}

function Picture({ graph, r, health, onOpen }: { graph: GraphAnswer; r: Resource; health: Verdicts; onOpen: (id: string) => void }) {
  const box = useRef<HTMLDivElement>(null);
  const { lines, laid } = useMemo(() => {
    const lines = linesOf(graph);
    return { lines, laid: layOut(graph.nodes.map((n) => n.id), lines, graph.root) };
  }, [graph]);
  const root = laid.at.get(graph.root)!;
  const view = useViewport(box, laid, root, graph.root);
  const { x, y, k } = view.at;
  return (
    <div class="picture-box">
      <div class="picture" ref={box} tabIndex={0} role="region" aria-label="Graph of relations" onKeyDown={view.keys}>
        <svg role="group" aria-label={`${count(graph.nodes.length)} related objects`}>
          <defs>
            <marker id="arrow" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="7" markerHeight="7" orient="auto">
              <path d="M0 0.5L8 4 0 7.5z" />
            </marker>
          </defs>
          <g transform={`translate(${x.toFixed(1)} ${y.toFixed(1)}) scale(${k.toFixed(4)})`}>
            {lines.map((e, i) => (
              <g key={e.from + e.to} class={"edge" + (e.edges.every((x) => x.edge === "owns") ? "" : " loose")}>
                <path d={curve(laid.lines[i]!)} marker-end="url(#arrow)" />
                <title>{e.edges.map((x) => `${short(x.from)} ${words[x.edge]?.[0] ?? x.edge} ${short(x.to)}: ${x.why}`).join("\n")}</title>
              </g>
            ))}
            {graph.nodes.map((n) => <Box key={n.id} n={n} at={laid.at.get(n.id)!} root={n.id === graph.root} to={linkOf(n, r)} health={worstOf(n, health)} onFocus={() => view.show(laid.at.get(n.id)!)} onOpen={onOpen} />)}
          </g>
        </svg>
      </div>
      <div class="zoom" role="group" aria-label="Size">
        <button type="button" class="button" aria-label="Smaller" title="Smaller (-)" onClick={() => view.zoom(1 / 1.25)}>−</button>
        <button type="button" class="button" aria-label="Larger" title="Larger (+)" onClick={() => view.zoom(1.25)}>+</button>
        <button type="button" class="button" title="All of it (0)" onClick={view.fit}>Fit</button>
      </div>
    </div>
  );
}

function Box({ n, at, root, to, health, onFocus, onOpen }: { n: Node; at: Point; root: boolean; to: string; health: { v?: Verdict; n: number }; onFocus: () => void; onOpen: (id: string) => void }) {
  const { v } = health;
  const bad = v ? (n.members ? `${health.n} not good` : (v.reason ?? v.status)) : "";
  const state = n.missing ? "does not exist" : n.unknown ? "unknown" : bad || (n.hub ? "not walked through" : "");
  const of = n.members && find(n.resource);
  const name = of ? `${count(n.members!.length)} ${headingOf(of)}` : n.name;
  const kind = `${n.kind}${state ? " · " + state : ""}`;
  return (
    <a href={to} draggable={false} class={"node" + (root ? " root" : "") + (n.missing ? " missing" : "") + (n.unknown ? " unknown" : "") + (v ? " is-" + v.status : "") + (n.members ? " many" : "")} aria-expanded={n.members ? false : undefined} onFocus={onFocus} onClick={n.members ? (e: MouseEvent) => { e.preventDefault(); onOpen(n.id); } : undefined}>
      {n.members && <rect x={at.x - width / 2 + 4} y={at.y - height / 2 + 4} width={width} height={height} rx="6" />}
      <rect x={at.x - width / 2} y={at.y - height / 2} width={width} height={height} rx="6">
        <title>{`${n.kind} ${n.namespace ? n.namespace + "/" : ""}${n.name}${state ? "\n" + state : ""}${v?.message ? "\n" + v.message : ""}${n.members ? "\nopens" : ""}`}</title>
      </rect>
      <text class="kind" pointer-events="none" x={at.x - width / 2 + 10} y={at.y - 5}>{kind.length > 30 ? kind.slice(0, 29) + "…" : kind}</text>
      <text pointer-events="none" x={at.x - width / 2 + 10} y={at.y + 13}>{name.length > 24 ? name.slice(0, 11) + "…" + name.slice(-11) : name}</text>
    </a>
  );
}

function short(id: string): string {
  return id.split("/").slice(0, 1)[0]!.split(".")[0] + "/" + id.split("/").at(-1);
}

/** The same, nested: under each object what it was first reached from. */
function Nested({ graph, r, health }: { graph: GraphAnswer; r: Resource; health: Verdicts }) {
  const tree = useMemo(() => {
    const by = new Map(graph.nodes.map((n) => [n.id, n]));
    const next = new Map<string, { id: string; word: string; why: string }[]>();
    const add = (at: string, id: string, word: string, why: string) => {
      const l = next.get(at) ?? [];
      const same = l.find((x) => x.id === id);
      if (same) {
        if (!same.word.split(", ").includes(word)) same.word += ", " + word;
      } else l.push({ id, word, why });
      next.set(at, l);
    };
    for (const e of graph.edges) {
      add(e.from, e.to, words[e.edge]?.[0] ?? e.edge, e.why);
      add(e.to, e.from, words[e.edge]?.[1] ?? e.edge, e.why);
    }
    // Breadth first, so that everything stands where it is nearest.
    const children = new Map<string, { id: string; word: string; why: string }[]>();
    const seen = new Set([graph.root]);
    const queue = [graph.root];
    for (let id = queue.shift(); id !== undefined; id = queue.shift()) {
      const mine = (next.get(id) ?? []).filter((x) => by.has(x.id) && !seen.has(x.id));
      // Owners come first, so that what they own stands under them.
      const owned = (x: { word: string }) => Number(!x.word.startsWith("own"));
      mine.sort((a, b) => owned(a) - owned(b) || (a.word < b.word ? -1 : a.word > b.word ? 1 : a.id < b.id ? -1 : 1));
      for (const m of mine) {
        seen.add(m.id);
        queue.push(m.id);
      }
      children.set(id, mine);
    }
    return { by, children };
  }, [graph]);
  const draw = (id: string): preact.ComponentChildren => {
    const list = tree.children.get(id);
    if (!list?.length) return null;
    return (
      <ul class="tree">
        {list.map((x) => {
          const n = tree.by.get(x.id)!;
          return (
            <li key={x.id}>
              <span class="soft" title={x.why}>{x.word}</span> <span class="soft">{n.kind}</span> <a href={linkOf(n, r)}>{n.name}</a>{" "}
              {n.missing && <span class="word tone-bad">does not exist</span>}
              {health.get(n.id) && <span class={"word tone-" + toneOfHealth[health.get(n.id)!.status]} title={health.get(n.id)!.message}><HealthIcon status={health.get(n.id)!.status} /> {health.get(n.id)!.reason || health.get(n.id)!.status}</span>}
              {n.unknown && <span class="word tone-wait">unknown: {absence[n.state ?? find(n.resource)?.state ?? "unwatched"]?.toLowerCase() ?? "its kind is not known"}</span>}
              {draw(x.id)}
            </li>
          );
        })}
      </ul>
    );
  };
  return (
    <div class="scroll pad" tabIndex={0} role="region" aria-label="Relations">
      {draw(graph.root) ?? <p class="empty">None: nothing refers to it, and it refers to nothing.</p>}
    </div>
  );
}
