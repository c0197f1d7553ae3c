import { useEffect, useState } from "preact/hooks";
import { ApiError, get, type KubeObject } from "../api";
import { dateTime } from "../format";
import { headingOf, objectOf, objectsOf } from "../places";
import { findKind, readable, type Resource } from "../resources";
import { toneOf } from "../table/columns";
import { Age, StateIcon } from "../ui";
import { objectPath } from "./watch-object";

// What one wants to know of any object, beside its text.

interface Condition {
  type: string;
  status: string;
  reason?: string;
  message?: string;
  lastTransitionTime?: string;
}

/** Conditions that are well when they are False. */
const inverse = /Pressure$|^(Failed|NetworkUnavailable|Stalled|ReplicaFailure|.*Degraded|DisruptionTarget|Suspended)$/;

export function Facts({ o, r }: { o: KubeObject; r: Resource }) {
  const m = o.metadata;
  const created = m.creationTimestamp ? Date.parse(m.creationTimestamp) : 0;
  const conditions = ((o.status?.conditions ?? []) as Condition[]).filter((c) => c?.type);
  const labels = Object.entries(m.labels ?? {});
  const annotations = Object.entries(m.annotations ?? {});
  return (
    <aside class="facts" aria-label="Facts">
      <dl class="pairs">
        <dt>Kind</dt>
        <dd>{o.kind ?? r.kind} <span class="soft">{o.apiVersion ?? ""}</span></dd>
        {m.namespace && (
          <>
            <dt>Namespace</dt>
            <dd><a href={objectsOf(r, { namespace: m.namespace })}>{m.namespace}</a></dd>
          </>
        )}
        {created > 0 && (
          <>
            <dt>Age</dt>
            <dd><Age since={created} /> <span class="soft">{dateTime(created)}</span></dd>
          </>
        )}
        {m.deletionTimestamp && (
          <>
            <dt>Deleting</dt>
            <dd class="tone-wait">for <Age since={Date.parse(m.deletionTimestamp)} />{m.finalizers?.length ? <>, held by {m.finalizers.join(", ")}</> : null}</dd>
          </>
        )}
        <dt>Version</dt>
        <dd class="mono">{m.resourceVersion}</dd>
        <dt>UID</dt>
        <dd class="mono small">{m.uid}</dd>
        {m.ownerReferences?.length ? (
          <>
            <dt>Owner</dt>
            <dd><Owners o={o} r={r} /></dd>
          </>
        ) : null}
      </dl>
      {conditions.length > 0 && (
        <section>
          <h2>Conditions</h2>
          <ul class="conditions">
            {conditions.map((c) => {
              const ok = (c.status === "True") !== inverse.test(c.type);
              const tone = c.status === "Unknown" ? "wait" : ok ? "good" : toneOf(c.reason ?? "") === "off" || c.reason === "PodCompleted" ? "off" : "bad";
              return (
                <li key={c.type}>
                  <span class={"word tone-" + tone}>{c.type}: {c.status}</span>
                  {c.reason && c.reason !== c.type && <> {c.reason}</>}
                  {c.lastTransitionTime && <small class="soft"> <Age since={Date.parse(c.lastTransitionTime)} /> ago</small>}
                  {c.message && !ok && <p class="soft">{c.message}</p>}
                </li>
              );
            })}
          </ul>
        </section>
      )}
      <section>
        <h2>Labels</h2>
        {labels.length === 0 ? <p class="soft">none</p> : (
          <ul class="labels">
            {labels.map(([k, v]) => (
              <li key={k}>
                <a href={objectsOf(r, { labelSelector: `${k}=${v}` })} title={`${headingOf(r)} with ${k}=${v}`}>
                  <span>{k}</span>
                  <b>{v || "\u00a0"}</b>
                </a>
              </li>
            ))}
          </ul>
        )}
      </section>
      {annotations.length > 0 && (
        <section>
          <details>
            <summary><h2>Annotations</h2> <small class="soft">{annotations.length}</small></summary>
            <dl class="annotations">
              {annotations.map(([k, v]) => (
                <>
                  <dt>{k}</dt>
                  <dd><code>{v.length > 500 ? v.slice(0, 500) + " …" : v}</code></dd>
                </>
              ))}
            </dl>
          </details>
        </section>
      )}
    </aside>
  );
}

interface Ancestor {
  kind: string;
  name: string;
  r?: Resource;
  ns: string;
  missing?: boolean;
}

/** The controlling owner, its owner, and so on. */
async function ancestors(o: KubeObject, r: Resource): Promise<Ancestor[]> {
  const out: Ancestor[] = [];
  let at: KubeObject | null = o;
  for (let depth = 0; at && depth < 8; depth++) {
    const refs: KubeObject["metadata"]["ownerReferences"] = at.metadata.ownerReferences;
    const ref: NonNullable<typeof refs>[number] | undefined = refs?.find((x) => x.controller) ?? refs?.[0];
    if (!ref) break;
    const owner = findKind(ref.apiVersion, ref.kind, r.cluster);
    const step: Ancestor = { kind: ref.kind, name: ref.name, r: owner, ns: owner?.namespaced ? (o.metadata.namespace ?? "") : "" };
    out.push(step);
    at = null;
    if (owner && readable(owner)) {
      try {
        at = (await get<KubeObject>(objectPath(owner, step.ns, ref.name))).body;
        if (at.metadata.uid !== ref.uid) {
          step.missing = true;
          at = null;
        }
      } catch (e) {
        if (e instanceof ApiError && e.code === 404) step.missing = true;
      }
    }
  }
  return out;
}

function Owners({ o, r }: { o: KubeObject; r: Resource }) {
  const [chain, setChain] = useState<Ancestor[] | null>(null);
  useEffect(() => {
    let current = true;
    void ancestors(o, r).then((c) => current && setChain(c));
    return () => {
      current = false;
    };
  }, [o.metadata.uid, JSON.stringify(o.metadata.ownerReferences)]);
  const list: Ancestor[] = chain ?? o.metadata.ownerReferences!.slice(0, 1).map((x) => ({ kind: x.kind, name: x.name, ns: "" }));
  return (
    <ol class="chain">
      {list.map((a) => (
        <li>
          {a.r && !a.missing ? <a href={objectOf(a.r, a.ns, a.name)}>{a.kind} {a.name}</a> : <>{a.kind} {a.name}</>}
          {a.missing && <span class="word tone-bad">does not exist</span>}
          {a.r && !readable(a.r) && <StateIcon state={a.r.state} />}
        </li>
      ))}
    </ol>
  );
}
