import { useEffect, useState } from "preact/hooks";
import { get, type KubeObject, type List } from "../api";
import { find, path, readable, type Resource } from "../resources";
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

export function Events({ o, r }: { o: KubeObject; r: Resource }) {
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
