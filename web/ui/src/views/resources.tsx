import { useComputed } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { bytes, count, duration, plural, rate, seconds } from "../format";
import { objectsOf } from "../places";
import { ageOf, keyOf, known, now, rates, readable, resources, mixed, type Resource } from "../resources";
import { params, update } from "../route";
import { StateIcon, StateMark } from "../ui";
import type { State } from "../api";
import { AsOf } from "./age";

// Every resource that was discovered and what is held of it.

interface Col {
  id: string;
  title: string;
  number?: boolean;
  /** What it sorts by; no value sorts last. */
  by: (r: Resource) => string | number;
  cell: (r: Resource) => ComponentChildren;
}

const severity: Record<State, number> = { failed: 0, forbidden: 1, stale: 2, syncing: 3, warm: 4, live: 5, unwatched: 6 };

const columns: Col[] = [
  { id: "name", title: "Resource", by: (r) => keyOf(r), cell: (r) => <NameCell r={r} /> },
  { id: "state", title: "State", by: (r) => severity[r.state], cell: (r) => <StateMark state={r.state} reason={r.reason} /> },
  { id: "objects", title: "Objects", number: true, by: (r) => r.objects, cell: (r) => held(r, count(r.objects)) },
  { id: "bytes", title: "Held", number: true, by: (r) => r.bytes, cell: (r) => held(r, <span title={bytes(r.rawBytes) + " as JSON"}>{bytes(r.bytes)}</span>) },
  { id: "rate", title: "Events/s", number: true, by: (r) => rates.value.get(keyOf(r)) ?? 0, cell: (r) => held(r, <Rate r={r} />) },
  { id: "last", title: "Last event", number: true, by: (r) => -Date.parse(r.lastEventTime ?? "0"), cell: (r) => (r.lastEventTime ? <time dateTime={r.lastEventTime} title={r.lastEventTime}>{duration(now.value - Date.parse(r.lastEventTime))}</time> : "") },
  { id: "age", title: "As of", number: true, by: (r) => ageOf(r) ?? Number.MAX_VALUE, cell: (r) => <AsOf r={r} /> },
  { id: "indexes", title: "Indexes", by: (r) => r.indexes.length, cell: (r) => <span class="soft">{r.state === "unwatched" ? "" : r.indexes.filter((i) => !["namespace", "label", "owner"].includes(i)).join(", ")}</span> },
];

/** "0" is said only of what could have some. */
function held(r: Resource, what: ComponentChildren): ComponentChildren {
  return readable(r) ? what : <span class="soft" aria-label={`no number: ${r.state}`}>–</span>;
}

function Rate({ r }: { r: Resource }) {
  const v = rates.value.get(keyOf(r)) ?? 0;
  return <span class={v >= 0.05 ? "" : "soft"} title={count(r.counts.events) + " in all"}>{rate(v)}</span>;
}

function NameCell({ r }: { r: Resource }) {
  const [short, ...group] = r.name.split(".");
  return (
    <a href={objectsOf(r)} title={`${r.kind} ${r.shortNames?.join(" ") ?? ""}`}>
      {mixed.value && r.cluster && <span class="soft">{r.cluster} / </span>}
      {short}
      {group.length > 0 && <span class="soft">.{group.join(".")}</span>}
    </a>
  );
}

export function Resources() {
  const p = params.value;
  const words = p.get("q") ?? "";
  const state = p.get("state") ?? "";
  const sort = p.get("sort") ?? "name";
  const down = sort.startsWith("-");
  const column = columns.find((c) => c.id === sort.replace("-", "")) ?? columns[0]!;
  const all = resources.value;
  const tally = useComputed(() => {
    const t = new Map<State, number>();
    for (const r of resources.value) t.set(r.state, (t.get(r.state) ?? 0) + 1);
    return t;
  }).value;
  const shown = all
    .filter((r) => (state ? r.state === state : true) && (!words || `${keyOf(r)} ${r.kind} ${r.shortNames?.join(" ") ?? ""}`.toLowerCase().includes(words.toLowerCase())))
    .sort((a, b) => {
      const x = column.by(a), y = column.by(b);
      const c = x < y ? -1 : x > y ? 1 : keyOf(a) < keyOf(b) ? -1 : 1;
      return down ? -c : c;
    });
  return (
    <div class="view">
      <div class="head">
        <h1>Resources</h1>
        <p class="soft">
          {known.value ? `${plural(all.length, "resource")} discovered` : "not discovered yet"}
        </p>
      </div>
      <Progress all={all} />
      <div class="bar">
        <input type="search" aria-label="Narrow down by name or kind" placeholder="name, kind or short name" value={words} onInput={(e) => update({ q: e.currentTarget.value })} data-filter />
        <div class="chips" role="group" aria-label="State">
          {[...tally].sort((a, b) => severity[a[0]] - severity[b[0]]).map(([s, n]) => (
            <button type="button" class="chip" aria-pressed={state === s} onClick={() => update({ state: state === s ? null : s })}>
              <StateIcon state={s} /> {s} <b>{n}</b>
            </button>
          ))}
        </div>
      </div>
      <div class="scroll" tabIndex={0} role="region" aria-label="Resources">
        <table class="plain">
          <thead>
            <tr>
              {columns.map((c) => (
                <th scope="col" class={c.number ? "number" : ""} aria-sort={c === column ? (down ? "descending" : "ascending") : undefined}>
                  <button type="button" onClick={() => update({ sort: c === column ? (down ? c.id : "-" + c.id) : c.number ? "-" + c.id : c.id })}>
                    {c.title}
                  </button>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {shown.map((r) => (
              <Line key={keyOf(r)} r={r} />
            ))}
          </tbody>
        </table>
        {known.value && shown.length === 0 && <p class="empty">{all.length ? "No resource matches." : "informerd has not discovered any resource yet: the API server has not answered."}</p>}
      </div>
    </div>
  );
}

function Line({ r }: { r: Resource }) {
  const scope = [r.namespaces?.length ? "only namespaces " + r.namespaces.join(", ") : "", r.labelSelector && "only " + r.labelSelector, r.fieldSelector && "only " + r.fieldSelector].filter(Boolean).join("; ");
  const why = r.state === "live" ? scope : [r.reason, scope].filter(Boolean).join("; ");
  return (
    <>
      <tr class={r.state === "unwatched" ? "off" : ""}>
        {columns.map((c, i) =>
          i === 0 ? (
            <th scope="row">{c.cell(r)}</th>
          ) : (
            <td class={c.number ? "number" : ""}>
              {c.cell(r)}
              {c.id === "state" && why && r.state !== "unwatched" && <small class="why">{why}</small>}
            </td>
          ),
        )}
      </tr>
    </>
  );
}

/** What start-up is still doing, and what is not as it should be. */
function Progress({ all }: { all: Resource[] }) {
  const watched = all.filter((r) => r.state !== "unwatched");
  const there = watched.filter(readable).length;
  const syncing = watched.filter((r) => r.state === "syncing");
  const warm = watched.filter((r) => r.state === "warm");
  const trouble = watched.filter((r) => r.state === "forbidden" || r.state === "failed");
  const stale = watched.filter((r) => r.state === "stale");
  const busy = syncing.length + warm.length;
  const objects = watched.reduce((n, r) => n + r.objects, 0);
  const size = watched.reduce((n, r) => n + r.bytes, 0);
  const raw = watched.reduce((n, r) => n + r.rawBytes, 0);
  const oldest = Math.max(0, ...stale.map((r) => ageOf(r) ?? Infinity));
  return (
    <div class="facts-row">
      <div class="fact">
        <b>{count(objects)}</b> objects
        <span>{raw > 0 ? `${bytes(size)} held, ${bytes(raw)} as JSON` : " "}</span>
      </div>
      <div class="fact">
        <b>
          {there}
          <small> / {watched.length}</small>
        </b>{" "}
        with data
        {busy > 0 ? (
          <progress max={watched.length} value={watched.length - busy} aria-label="start-up">
            {there} of {watched.length}
          </progress>
        ) : null}
        <span>{syncing.length ? `listing ${names(syncing)}` : warm.length ? `catching up: ${names(warm)}` : stale.length ? `${stale.length} stale${oldest < Infinity ? `, up to ${seconds(oldest)} old` : ""}` : "start-up is complete"}</span>
      </div>
      <div class="fact">
        <b>{trouble.length}</b> not readable
        <span>{trouble.length ? names(trouble) : "nothing forbidden, nothing failed"}</span>
      </div>
      <div class="fact">
        <b>{all.length - watched.length}</b> left out
        <span>{all.length - watched.length ? "by the configuration: " + names(all.filter((r) => r.state === "unwatched")) : "the configuration watches everything"}</span>
      </div>
    </div>
  );
}

function names(list: Resource[]): string {
  const short = list.slice(0, 3).map((r) => r.name.split(".")[0]);
  return short.join(", ") + (list.length > 3 ? ` and ${list.length - 3} more` : "");
}
