import { useRef, useState } from "preact/hooks";
import { errorText, get } from "../api";
import { selectionQuery, type Selection } from "../follow";
import { count, plural, quantity } from "../format";
import { formatPath, parsePath, PathError } from "../paths";
import { usePolled } from "../polled";
import { changes } from "../resources";
import { href, params, update } from "../route";
import type { Source } from "../source";
import type { Column } from "../table/columns";
import { Icon, Popover, Track } from "../ui";

// The objects of a table by the values of a field: how many have each, and what they
// add up to. Every bar leads to its rows; the address has the question.

interface GroupList {
  metadata: { remainingItemCount?: number; continue?: string; aggErrors?: Record<string, number> };
  items: { group: Record<string, string | number | boolean | null>; values: Record<string, number | string | null> }[];
}

const sums: [title: string, path: string][] = [
  ["requested CPU", "spec.containers[*].resources.requests.cpu"],
  ["requested memory", "spec.containers[*].resources.requests.memory"],
  ["CPU limits", "spec.containers[*].resources.limits.cpu"],
  ["memory limits", "spec.containers[*].resources.limits.memory"],
  ["replicas", "spec.replicas"],
];

/** A value in a field selector: its own commas and signs are escaped. */
export function termOf(path: string, value: string | number | boolean | null): string {
  return value === null ? "!" + path : `${path}=${String(value).replace(/[\\,=]/g, "\\$&")}`;
}

/** What is in no field of an object: informerd works it out. */
const computed = /^(health|healthReason)\(\)$/;

/** The question for the rows of a group, besides what is asked already. */
export function rowsOf(path: string, value: string | number | boolean | null, { fieldSelector, filter }: { fieldSelector?: string; filter?: string }): Record<string, string> {
  if (!computed.test(path)) return { fieldSelector: [fieldSelector, termOf(path, value)].filter(Boolean).join(",") };
  const judged = `${path.replace("()", "(object)")} == ${JSON.stringify(value ?? "")}`;
  return { filter: filter ? `(${filter}) && ${judged}` : judged };
}

export function GroupMenu({ columns, pods }: { columns: Column[]; pods: boolean }) {
  const p = params.value;
  const by = p.get("group") ?? "";
  const [text, setText] = useState(by);
  const [error, setError] = useState("");
  const paths = [...new Set(["metadata.namespace", "health()", ...columns.flatMap((c) => (c.type === "text" && c.paths.length === 1 ? c.paths : [])), ...(pods ? ["spec.containers[*].image", "status.phase"] : [])])];
  const group = (path: string, close: () => void) => {
    try {
      update({ group: !path || computed.test(path) ? path || null : formatPath(parsePath(path)), sum: path ? (p.get("sum") ?? "") : null }, true);
      setError("");
      close();
    } catch (e) {
      setError(e instanceof PathError ? `column ${e.column}: ${e.message}` : errorText(e));
    }
  };
  return (
    <Popover right label={<><Icon name="bars" /><span class="long">Group</span></>} name="Group by a field" title="Group by a field" active={!!by} onOpen={() => setText(by)}>
      {(close) => (
        <>
          <div class="menu-items">
            {by && <button type="button" onClick={() => group("", close)}>No groups: the table</button>}
            {paths.map((path) => <button key={path} type="button" aria-pressed={path === by} onClick={() => group(path, close)}><code>{path}</code></button>)}
          </div>
          <form onSubmit={(e) => { e.preventDefault(); group(text.trim(), close); }}>
            <input type="text" data-autofocus value={text} aria-label="Path to group by" placeholder="metadata.labels.team" autocomplete="off" spellcheck={false} aria-invalid={!!error} onInput={(e) => setText(e.currentTarget.value)} />
            <button type="submit" class="button">Group</button>
          </form>
          {error && <p class="error" role="alert">{error}</p>}
        </>
      )}
    </Popover>
  );
}

export function Groups({ sources, selection, pods }: { sources: Source[]; selection: Selection; pods: boolean }) {
  const p = params.value;
  const path = p.get("group")!;
  const sum = p.get("sum") ?? "";
  const question = JSON.stringify([sources.map((s) => s.url(new URLSearchParams())), selectionQuery(selection).toString(), path, sum]);
  const seen = useRef("");
  const { value: lists, error } = usePolled(question, 2000, async (signal) => {
    const mark = question + changes();
    if (mark === seen.current) return undefined;
    const order = sum ? `sum(${sum})` : "count()";
    const q = selectionQuery(selection);
    for (const [k, v] of Object.entries({ groupBy: path, agg: sum ? `count(),sum(${sum})` : "count()", sort: "-" + order, limit: "200" })) q.set(k, v);
    const answers = await Promise.all(sources.map((s) => get<GroupList>(s.url(q), signal)));
    seen.current = mark;
    return answers.map((a) => a.body);
  });
  const items = lists?.flatMap((l) => l.items) ?? [];
  const numberOf = (i: GroupList["items"][number]) => (sum ? (quantity(String(i.values[`sum(${sum})`] ?? "0")) ?? 0) : Number(i.values["count()"]));
  const most = Math.max(1e-9, ...items.map(numberOf));
  const more = lists?.reduce((n, l) => n + (l.metadata.remainingItemCount ?? 0), 0) ?? 0;
  const wrong = lists?.reduce((n, l) => n + Object.values(l.metadata.aggErrors ?? {}).reduce((a, b) => a + b, 0), 0) ?? 0;
  const here = (more: Record<string, string>) => href("objects", { ...Object.fromEntries([...p.keys()].map((k) => [k, p.getAll(k)])), group: undefined, sum: undefined, view: "objects", ...more });
  return (
    <div class="scroll groups" tabIndex={0} role="region" aria-label={"Groups by " + path}>
      <div class="bar code-bar">
        <span>by <code>{path}</code></span>
        <label class="check">
          longest by
          <select value={sum} onChange={(e) => update({ sum: e.currentTarget.value })}>
            <option value="">number of objects</option>
            {sums.filter(([, s]) => pods || s === "spec.replicas").map(([title, s]) => <option key={s} value={s}>{title}</option>)}
          </select>
        </label>
        <span class="soft" role="status">{lists ? plural(items.length + more, "group") : "Counting…"}</span>
      </div>
      {error && <p class="error pad" role="alert">{error}</p>}
      {wrong > 0 && <p class="strip" role="note">{plural(wrong, "value")} could not be added: neither numbers nor quantities</p>}
      <ul>
        {items.map((i, n) => {
          const value = i.group[path] ?? null;
          return (
            <li key={n + String(value)}>
              <a class="bar-row" href={here(rowsOf(path, value, selection))}>
                <span class="label">{value === null ? <em>none</em> : String(value) || <em>empty</em>}</span>
                {sum && <small>{String(i.values[`sum(${sum})`] ?? "none")}</small>}
                <b>{count(Number(i.values["count()"]))}</b>
                <Track share={numberOf(i) / most} />
              </a>
            </li>
          );
        })}
      </ul>
      {more > 0 && <p class="soft pad">and {count(more)} more groups, smaller than these</p>}
    </div>
  );
}
