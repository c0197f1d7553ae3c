import { effect, signal } from "@preact/signals";
import { get } from "./api";
import { trouble } from "./health";
import { kept } from "./kept";
import { allClusters, clusters, held, known, mixed, several, within } from "./resources";
import { go, href, params, update, view } from "./route";

// Where one is: which cluster, of which version, and the namespace that somebody has
// chosen to work in. Both stay in sight whatever is looked at.

/** The namespace that tables and the overview begin with; "" is all. */
export const chosen = kept("informerd.namespace");

// The page of a namespace is opened to work in it, that of all to leave it.
effect(() => {
  const ns = params.value.get("namespace") ?? "";
  if (view.value === "overview") chosen.value = ns;
});

export function overviewOf(ns: string): string {
  return href("overview", { namespace: ns });
}

function choose(ns: string): void {
  chosen.value = ns;
  if (view.peek() === "overview") go(overviewOf(ns));
  else if (view.peek() === "objects") update({ namespace: ns }, true);
}

export function NamespacePicker() {
  const all = (trouble.value?.namespaces ?? []).map((n) => n.namespace).sort();
  const ns = chosen.value;
  if (ns && !all.includes(ns)) all.unshift(ns);
  return (
    <label class="namespace-picker" title="The namespace to work in (n)">
      <span class="hidden">Namespace to work in</span>
      <select id="namespace" value={ns} onChange={(e) => choose(e.currentTarget.value)}>
        <option value="">all namespaces</option>
        {all.map((n) => <option key={n} value={n}>{n}</option>)}
      </select>
    </label>
  );
}

const versions = signal<Record<string, string>>({});
effect(() => {
  if (!known.value || mixed.value) return;
  const cluster = clusters.value[0]!;
  get<{ gitVersion: string }>(several.value ? `clusters/${cluster}/version` : "version").then(({ body }) => (versions.value = { ...versions.peek(), [cluster]: body.gitVersion }), () => {});
});

function enter(cluster: string): void {
  within.value = cluster;
  if (view.peek() === "objects") update({ cluster }, true);
  else if (params.peek().get("cluster")) go(overviewOf(chosen.peek()));
}

/** Name and version of the cluster that is looked at; of several, one can be chosen. */
export function ClusterName() {
  if (!known.value) return null;
  const at = mixed.value ? "" : clusters.value[0]!;
  const all = allClusters.value;
  return (
    <span class="cluster-name" title={at}>
      {several.value ? (
        <select aria-label="Cluster" value={at} onChange={(e) => enter(e.currentTarget.value)}>
          <option value="">{all.length} clusters</option>
          {all.map((c) => <option key={c} value={c}>{c}{held.value.some((r) => r.cluster === c && r.state === "live") ? "" : " (not live)"}</option>)}
        </select>
      ) : <b>{at || "cluster"}</b>} {versions.value[at]}
    </span>
  );
}
