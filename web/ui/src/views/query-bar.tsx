import { useState } from "preact/hooks";
import { get, type ApiError, type List } from "../api";
import { selectionQuery, type Selection } from "../follow";
import { count, plural } from "../format";
import { parsePath } from "../paths";
import { path, readable, type Resource } from "../resources";
import { update } from "../route";
import { copy, Icon, Popover, QueryInput, type Suggestion } from "../ui";

// What narrows a table down: words in the page, and namespaces, selectors and an
// expression that the server answers, with completion and its plan.

export function QueryBar({ one, list, selection, words, failure }: { one: Resource | null; list: Resource[]; selection: Selection; words: string; failure?: ApiError }) {
  const error = (field: string) => (failure?.field === field ? { error: failure.message.replace(new RegExp(`^${field}: `), ""), column: failure.column } : {});
  const [whole, setWhole] = useState(false);
  const used = [selection.labelSelector, selection.fieldSelector, selection.filter].filter(Boolean).length;
  return (
    <div class={"bar query" + (whole || failure ? " whole" : "")} role="search">
      <div class="field narrow">
        <label for="words">In the table</label>
        <input id="words" type="search" value={words} placeholder="words, ready:0/1" autocomplete="off" spellcheck={false} data-filter onInput={(e) => update({ q: e.currentTarget.value })}
          onKeyDown={(e) => {
            if (e.key === "ArrowDown" || e.key === "Enter") {
              e.preventDefault();
              document.querySelector<HTMLElement>(".grid")?.focus();
            }
          }} />
      </div>
      {list.some((r) => r.namespaced) && <Namespaces list={list} selected={selection.namespace!} />}
      <QueryInput more label="Labels" value={selection.labelSelector!} placeholder="app=web,tier in (a,b)" {...error("labelSelector")} suggest={ofAll(list, suggestLabels)} onSubmit={(t) => update({ labelSelector: t }, true)} />
      <QueryInput more label="Fields" value={selection.fieldSelector!} placeholder="status.phase!=Running" {...error("fieldSelector")} suggest={ofAll(list, suggestFields)} onSubmit={(t) => update({ fieldSelector: t }, true)} />
      <QueryInput more grow={4} label="CEL" value={selection.filter!} placeholder="object.spec.replicas > 3" {...error("filter")} suggest={ofAll(list, suggestExpression)} onSubmit={(t) => update({ filter: t }, true)} />
      {one && readable(one) && <Plan r={one} selection={selection} />}
      <button type="button" class={"button more-query" + (used ? " active" : "")} aria-expanded={whole} onClick={() => setWhole(!whole)}>
        {whole ? "Less" : used ? `Query: ${used} set` : "Query"}
      </button>
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
    <div class="field fit more-field">
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

/** So many kinds are asked for what they have, those with most objects first. */
const askedAtMost = 8;

function largest(list: Resource[]): Resource[] {
  return list.filter((r) => readable(r) && r.objects > 0).sort((a, b) => b.objects - a.objects).slice(0, askedAtMost);
}

/** Suggestions of all kinds of a table: what several have is one, with its objects added up. */
function ofAll(list: Resource[], suggest: (r: Resource, text: string) => Promise<Suggestion[]>): ((text: string) => Promise<Suggestion[]>) | undefined {
  const asked = largest(list);
  if (asked.length === 0) return undefined;
  return async (text) => {
    const answers = await Promise.allSettled(asked.map((r) => suggest(r, text)));
    const by = new Map<string, Suggestion>();
    for (const a of answers) {
      for (const s of a.status === "fulfilled" ? a.value : []) {
        const same = by.get(s.value);
        const number = (t?: string) => Number((t ?? "").replaceAll(",", "") || NaN);
        const sum = number(same?.note) + number(s.note);
        if (!same) by.set(s.value, { ...s });
        else if (!Number.isNaN(sum)) same.note = count(sum);
      }
    }
    return [...by.values()];
  };
}

async function namespacesOf(list: Resource[]): Promise<IndexValue[]> {
  const sums = new Map<string, number>();
  const namespaced = list.filter((r) => readable(r) && r.namespaced && r.objects > 0);
  const answers = await Promise.allSettled(namespaced.map((r) => indexValues(r, "namespace", "", 1000)));
  for (const a of answers) for (const v of a.status === "fulfilled" ? a.value : []) sums.set(v.value, (sums.get(v.value) ?? 0) + v.objects);
  return [...sums].sort((a, b) => (a[0] < b[0] ? -1 : 1)).map(([value, objects]) => ({ value, objects }));
}

async function indexValues(r: Resource, index: string, prefix: string, limit: number): Promise<IndexValue[]> {
  const { body } = await get<List<IndexValue>>(path(r, `/indexes/${encodeURIComponent(index)}`, { prefix, limit: String(limit) }));
  return body.items;
}

function Namespaces({ list, selected }: { list: Resource[]; selected: string[] }) {
  const [values, setValues] = useState<IndexValue[] | null>(null);
  const [words, setWords] = useState("");
  const toggle = (ns: string) => update({ namespace: selected.includes(ns) ? selected.filter((s) => s !== ns) : [...selected, ns] }, true);
  const label = selected.length === 0 ? "all" : selected.length <= 2 ? selected.join(", ") : `${selected.length} of them`;
  return (
    <div class="field fit">
      <span class="label">Namespaces</span>
      <Popover label={<>{label} <Icon name="down" /></>} name={"Namespaces: " + label} title="Namespaces" active={selected.length > 0} onOpen={() => {
        void namespacesOf(list).then(setValues);
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
  if (term.includes("=")) {
    const values = await indexValues(r, "label", term.replace("==", "="), 40);
    return values.map((v) => ({ value: before + v.value, label: v.value, note: count(v.objects) }));
  }
  const paths = await proposals(r, { for: "paths", prefix: "metadata.labels", limit: "1000" });
  const keys = paths.map((p) => String(parsePath(p.value)[2] ?? "")).filter((key) => key && key.startsWith(term)).sort();
  return keys.map((key) => ({ value: before + key + "=", label: key }));
}

async function suggestFields(r: Resource, text: string): Promise<Suggestion[]> {
  const [before, term] = lastTerm(text);
  const { body } = await get<List<{ name: string; path?: string; values: number }>>(path(r, "/indexes"));
  const indexes = body.items.filter((i) => i.path);
  const m = /^([^=!]+?)(==|!=|=)(.*)$/.exec(term);
  if (m) {
    const index = indexes.find((i) => i.path === m[1]);
    if (!index) {
      return (await proposals(r, { for: "values", path: m[1]!, prefix: m[3]! })).map((v) => ({ value: `${before}${m[1]}${m[2]}${v.value}`, label: v.value, note: v.objects === undefined ? "" : count(v.objects) }));
    }
    const values = await indexValues(r, index.name, m[3]!, 40);
    return values.map((v) => ({ value: `${before}${m[1]}${m[2]}${v.value}`, label: v.value, note: count(v.objects) }));
  }
  const known = indexes.map((i) => ({ value: `${before}${i.path}=`, label: i.path!, note: plural(i.values, "value") }));
  for (const p of ["metadata.name", "metadata.deletionTimestamp"]) known.push({ value: before + p + (p.endsWith("name") ? "=" : ""), label: p, note: p.endsWith("name") ? "" : "exists" });
  const mine = known.filter((s) => s.label.startsWith(term));
  if (!/^[\w.[\]*'"\/-]*$/.test(term)) return mine;
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
  const p = new URLSearchParams({ limit: "12", ...q, resource: r.name });
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
