import { useEffect, useState } from "preact/hooks";
import { get, type KubeObject, type List } from "../api";
import { quantity } from "../format";
import { objectOf } from "../places";
import { find, findKind, path, readable, type Resource } from "../resources";
import { absence, Age, StateIcon } from "../ui";

// What else one wants to know of a namespace: how full its quotas are, and what
// happened in it last.

/** Asks now and every few seconds while it is looked at; null is not yet. */
function usePolled<T>(r: Resource | undefined, query: Record<string, string>): T[] | null {
  const [list, setList] = useState<T[] | null>(null);
  const able = !!r && readable(r);
  useEffect(() => {
    if (!able) return;
    const stop = new AbortController();
    const load = () => document.hidden || void get<List<T>>(path(r, "/objects", query), stop.signal).then(({ body }) => setList(body.items), () => {});
    load();
    const t = setInterval(load, 5000);
    return () => {
      stop.abort();
      clearInterval(t);
    };
  }, [able, r?.name, JSON.stringify(query)]);
  return list;
}

function Unread({ r }: { r: Resource | undefined }) {
  const state = r?.state ?? "unwatched";
  return <p class="soft"><StateIcon state={state} /> {absence[state] ?? state}</p>;
}

export function Quotas({ namespace }: { namespace: string }) {
  const r = find("resourcequotas");
  const list = usePolled<KubeObject>(r, { namespace });
  return (
    <section class="card">
      <h2>Quotas</h2>
      {!r || !readable(r) ? <Unread r={r} /> : list?.length === 0 ? <p class="soft">none: nothing limits it</p> : (
        <ul>
          {list?.flatMap((q) => Object.entries((q.status?.hard ?? {}) as Record<string, string>).map(([what, hard]) => {
            const used = ((q.status?.used ?? {}) as Record<string, string>)[what] ?? "0";
            const share = (quantity(used) ?? 0) / (quantity(hard) || 1);
            return (
              <li key={q.metadata.uid + what}>
                <a class={"bar-row " + (share >= 1 ? "bad" : share >= 0.8 ? "wait" : "")} href={objectOf(r, namespace, q.metadata.name)}>
                  <span class="label">{what}</span><small>{q.metadata.name}</small><b>{used} of {hard}</b>
                  <span class="track" aria-hidden="true"><i style={{ width: `${Math.min(100, 100 * share)}%` }} /></span>
                </a>
              </li>
            );
          }))}
        </ul>
      )}
    </section>
  );
}

/** The last events, and where there are none to be had, what is youngest. */
export function Recent({ namespace }: { namespace: string }) {
  const events = [find("events"), find("events.events.k8s.io")].find((x) => x && readable(x));
  const list = usePolled<KubeObject>(events, { namespace, sort: events?.group ? "-deprecatedLastTimestamp" : "-lastTimestamp", limit: "12" });
  return (
    <section class="card">
      <h2>What happened last</h2>
      {!events ? <Unread r={find("events")} /> : list?.length === 0 ? <p class="soft">no event is kept</p> : (
        <ul class="recent">
          {list?.map((x) => {
            const s = (x.involvedObject ?? x.regarding ?? {}) as { apiVersion?: string; kind?: string; name?: string };
            const to = s.kind ? findKind(s.apiVersion, s.kind) : undefined;
            return (
              <li key={x.metadata.uid}>
                <span class="soft"><Age since={Date.parse(x.lastTimestamp ?? x.eventTime ?? x.metadata.creationTimestamp ?? "")} /></span>{" "}
                <span class={x.type === "Warning" ? "tone-wait" : ""}>{x.reason}</span>{" "}
                {to && s.name ? <a href={objectOf(to, namespace, s.name)}>{s.kind} {s.name}</a> : <>{s.kind} {s.name}</>}
                <p class="soft">{x.message ?? x.note}</p>
              </li>
            );
          })}
        </ul>
      )}
    </section>
  );
}
