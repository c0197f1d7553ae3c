import { get, type KubeObject, type List } from "../api";
import { quantity } from "../format";
import { objectOf } from "../places";
import { usePolled, type Polled } from "../polled";
import { find, findKind, path, readable, type Resource } from "../resources";
import { absence, Age, NotAnswered, StateIcon, Track } from "../ui";

// What else one wants to know of a namespace: how full its quotas are, and what
// happened in it last.

function useList(r: Resource | undefined, query: Record<string, string>): Polled<KubeObject[]> {
  const url = r && readable(r) ? path(r, "/objects", query) : null;
  return usePolled(url, 5000, async (signal) => (await get<List>(url!, signal)).body.items);
}

function Unread({ r }: { r: Resource | undefined }) {
  const state = r?.state ?? "unwatched";
  return <p class="soft"><StateIcon state={state} /> {absence[state] ?? state}</p>;
}

export function Quotas({ namespace }: { namespace: string }) {
  const r = find("resourcequotas");
  const asked = useList(r, { namespace });
  const list = asked.value;
  return (
    <section class="card">
      <h2>Quotas</h2>
      <NotAnswered of={asked} />
      {!r || !readable(r) ? <Unread r={r} /> : list?.length === 0 ? <p class="soft">none: nothing limits it</p> : (
        <ul>
          {list?.flatMap((q) => Object.entries((q.status?.hard ?? {}) as Record<string, string>).map(([what, hard]) => {
            const used = ((q.status?.used ?? {}) as Record<string, string>)[what] ?? "0";
            const share = (quantity(used) ?? 0) / (quantity(hard) || 1);
            return (
              <li key={q.metadata.uid + what}>
                <a class={"bar-row " + (share >= 1 ? "bad" : share >= 0.8 ? "wait" : "")} href={objectOf(r, namespace, q.metadata.name)}>
                  <span class="label">{what}</span><small>{q.metadata.name}</small><b>{used} of {hard}</b>
                  <Track share={share} />
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
  const asked = useList(events, { namespace, sort: events?.group ? "-deprecatedLastTimestamp" : "-lastTimestamp", limit: "12" });
  const list = asked.value;
  return (
    <section class="card">
      <h2>What happened last</h2>
      <NotAnswered of={asked} />
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
