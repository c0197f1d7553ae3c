import { get, type KubeObject, type List } from "../api";
import type { Verdict } from "../health";
import { objectOf } from "../places";
import { usePolled } from "../polled";
import { find, findKind, path, readable, type Resource } from "../resources";
import { absence, Age, meaning, StateIcon } from "../ui";

// What the cluster tells of an object.

interface EventObject extends KubeObject {
  type?: string;
  reason?: string;
  message?: string;
  note?: string;
  count?: number;
  lastTimestamp?: string;
  eventTime?: string;
}

/** tree are the objects that it owns, whose events belong to it; inline is a part of something else. */
export function Events({ o, r, tree = [], inline }: { o: KubeObject; r: Resource; tree?: Verdict[]; inline?: boolean }) {
  const core = find("events", r.cluster), modern = find("events.events.k8s.io", r.cluster);
  const e = [core, modern].find((x) => x && readable(x)) ?? core ?? modern;
  const state = e?.state;
  const owners = tree.slice(0, 50).map((c) => `${c.kind}/${c.name}`).join(",");
  const { value: list, error } = usePolled(e && readable(e) ? `${o.metadata.uid} ${state}` : null, 5000, async (signal) => {
    const subject = e!.group ? "regarding" : "involvedObject";
    const owned = owners ? owners.split(",") : [];
    const q: Record<string, string> = {
      fieldSelector: owned.length ? `${subject}.name in (${[o.metadata.name, ...owned.map((x) => x.split("/")[1])].join(",")})` : `${subject}.uid=${o.metadata.uid}`,
      sort: e!.group ? "-deprecatedLastTimestamp" : "-lastTimestamp", limit: "200",
    };
    const mine = (x: EventObject) => {
      const s = (e!.group ? x.regarding : x.involvedObject) as { kind?: string; name?: string; uid?: string } | undefined;
      return s?.uid === o.metadata.uid || owned.includes(`${s?.kind}/${s?.name}`);
    };
    if (o.metadata.namespace) q.namespace = o.metadata.namespace;
    const { body } = await get<List<EventObject>>(path(e!, "/objects", q), signal);
    return body.items.filter(mine).sort((a, b) => (when(a) < when(b) ? 1 : -1));
  }, owners);
  if (!e || !readable(e)) {
    const s = e?.state ?? "unwatched";
    if (inline) return <p class="soft"><StateIcon state={s} /> {absence[s] ?? s}: {s === "unwatched" ? "the configuration leaves events out" : meaning[s]}</p>;
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
    <div class={inline ? "" : "scroll pad"} tabIndex={inline ? undefined : 0} role={inline ? undefined : "region"} aria-label={inline ? undefined : "Events"}>
      {error && <p class="error">{error}</p>}
      {list === null ? <p class="soft">Loading…</p> : list.length === 0 ? <p class="empty">None: the cluster keeps no event of this object.</p> : (
        <table class="plain">
          <thead><tr><th scope="col">Last</th><th scope="col">Type</th><th scope="col">Reason</th>{tree.length > 0 && <th scope="col">Object</th>}<th scope="col" class="number">Count</th><th scope="col">Message</th></tr></thead>
          <tbody>
            {list.map((x) => (
              <tr key={x.metadata.uid}>
                <td><Age since={Date.parse(when(x))} /></td>
                <td class={x.type === "Warning" ? "tone-wait" : ""}>{x.type}</td>
                <td>{x.reason}</td>
                {tree.length > 0 && <td><Subject x={x} o={o} r={r} /></td>}
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

/** What an event is about, as a link. */
function Subject({ x, o, r }: { x: EventObject; o: KubeObject; r: Resource }) {
  const s = (x.involvedObject ?? x.regarding) as { kind?: string; name?: string; apiVersion?: string } | undefined;
  if (!s?.kind || !s.name) return null;
  if (s.name === o.metadata.name) return <>{s.kind}</>;
  const to = findKind(s.apiVersion, s.kind, r.cluster);
  return to ? <>{s.kind} <a href={objectOf(to, o.metadata.namespace ?? "", s.name)}>{s.name}</a></> : <>{s.kind} {s.name}</>;
}

function when(e: EventObject): string {
  return e.lastTimestamp ?? e.eventTime ?? e.metadata.creationTimestamp ?? "";
}
