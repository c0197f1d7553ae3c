import { get, type KubeObject, type List } from "../api";
import { objectOf } from "../places";
import { usePolled } from "../polled";
import { findKind } from "../resources";
import { query } from "../route";
import { NotAnswered, Track } from "../ui";

// Workloads that do not run yet as they should: how far each is.

const question = {
  resources: "deployments.apps,statefulsets.apps,daemonsets.apps",
  filter: 'health(object) in ["progressing", "bad"]',
  fields: "metadata.name,metadata.namespace,spec.replicas,status",
  limit: "100",
};

export interface Progress {
  wanted: number;
  updated: number;
  available: number;
}

/** How many replicas are of the newest template, and how many serve. */
export function progressOf({ kind, spec, status: s = {} }: KubeObject): Progress {
  return kind === "DaemonSet"
    ? { wanted: s.desiredNumberScheduled ?? 0, updated: s.updatedNumberScheduled ?? 0, available: s.numberAvailable ?? 0 }
    : { wanted: spec?.replicas ?? 1, updated: s.updatedReplicas ?? 0, available: s.availableReplicas ?? 0 };
}

export function Rollouts({ namespace }: { namespace: string }) {
  const asked = usePolled(namespace, 4000, async (signal) => (await get<List>("v1/query?" + query({ ...question, namespace }), signal)).body.items as (KubeObject & { cluster?: string })[]);
  const list = asked.value;
  return (
    <section class="card">
      <h2>Rollouts</h2>
      <NotAnswered of={asked} />
      <ul>
        {list?.map((o) => {
          const { wanted, updated, available } = progressOf(o);
          const r = findKind(o.apiVersion, o.kind!, o.cluster);
          return r && (
            <li key={(o.cluster ?? "") + o.kind + o.metadata.namespace + o.metadata.name}>
              <a class="bar-row wait" href={objectOf(r, o.metadata.namespace!, o.metadata.name)}>
                <span class="label">{o.metadata.namespace}/{o.metadata.name}</span><small>{updated}/{wanted} updated</small><b>{available} up</b>
                <Track share={Math.min(updated, available) / (wanted || 1)} />
              </a>
            </li>
          );
        })}
      </ul>
      {!list?.length && <p class="soft">{list ? "none under way" : "looking…"}</p>}
    </section>
  );
}
