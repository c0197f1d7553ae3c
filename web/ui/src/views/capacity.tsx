import { get, type KubeObject } from "../api";
import { quantity } from "../format";
import { objectsOf } from "../places";
import { usePolled } from "../polled";
import { find, path, readable, type Resource } from "../resources";
import { NotAnswered, Track } from "../ui";

// What the pods of a node ask for, against what it has to give.

const amounts: [what: string, of: string, allocatable: string][] = [
  ["CPU requested", "sum(spec.containers[*].resources.requests.cpu)", "cpu"],
  ["CPU limits", "sum(spec.containers[*].resources.limits.cpu)", "cpu"],
  ["memory requested", "sum(spec.containers[*].resources.requests.memory)", "memory"],
  ["memory limits", "sum(spec.containers[*].resources.limits.memory)", "memory"],
  ["pods", "count()", "pods"],
];

export function Capacity({ o, r }: { o: KubeObject; r: Resource }) {
  const pods = find("pods", r.cluster);
  const able = r.name === "nodes" && !!pods && readable(pods);
  const mine = `spec.nodeName=${o.metadata.name},status.phase notin (Succeeded,Failed)`;
  const asked = usePolled(able ? mine : null, 5000, async (signal) => {
    const agg = [...new Set(amounts.map((a) => a[1]))].join(",");
    const { body } = await get<{ items: { values: Record<string, number | string | null> }[] }>(path(pods!, "/objects", { fieldSelector: mine, agg }), signal);
    return body.items[0]?.values ?? {};
  });
  const values = asked.value;
  if (!able) return null;
  const allocatable = (o.status?.allocatable ?? {}) as Record<string, string>;
  return (
    <section>
      <h2>Capacity <a href={objectsOf(pods!, { namespace: undefined, fieldSelector: mine })}>its pods</a></h2>
      <NotAnswered of={asked} />
      <ul class="capacity">
        {values && amounts.map(([what, of, against]) => {
          const used = String(values[of] ?? "0"), there = allocatable[against];
          const share = there ? (quantity(used) ?? 0) / (quantity(there) || 1) : 0;
          return (
            <li key={what} class={"bar-row " + (share >= 1 ? "bad" : share >= 0.9 ? "wait" : "")}>
              <span class="label">{what}</span><b>{used}</b><small>of {there ?? "an unknown amount"}{there && `, ${Math.round(100 * share)} %`}</small>
              <Track share={share} />
            </li>
          );
        })}
      </ul>
    </section>
  );
}
