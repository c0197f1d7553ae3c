import { effect, signal } from "@preact/signals";
import { get } from "./api";
import { trouble } from "./health";
import { clusters, find, known, several } from "./resources";
import { go, href, params, update, view } from "./route";

// Where one is: which cluster, of which version, and the namespace that somebody has
// chosen to work in. Both stay in sight whatever is looked at.

const storage = "informerd.namespace";

function remembered(): string {
  try {
    return sessionStorage.getItem(storage) ?? "";
  } catch {
    return "";
  }
}

/** The namespace that tables and the overview begin with; "" is all. */
export const chosen = signal(typeof sessionStorage === "undefined" ? "" : remembered());

effect(() => {
  try {
    sessionStorage.setItem(storage, chosen.value);
  } catch {
    // It stays as long as the page does.
  }
});

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

const versions = signal<ReadonlyMap<string, string>>(new Map());
effect(() => {
  if (!known.value) return;
  for (const cluster of clusters.value) {
    const at = several.value ? `clusters/${encodeURIComponent(cluster)}/version` : "version";
    get<{ gitVersion?: string }>(at).then(({ body }) => (versions.value = new Map(versions.peek()).set(cluster, body.gitVersion ?? "")), () => {});
  }
});

/** Name and version of the cluster that is looked at. */
export function ClusterName() {
  if (!known.value) return null;
  const all = clusters.value;
  const p = params.value;
  const at = all.length === 1 ? all[0]! : (p.get("cluster") ?? find(p.get("resource") ?? "")?.cluster ?? "");
  const text = all.length > 1 && !p.get("cluster") ? `${all.length} clusters` : at || "cluster";
  const version = versions.value.get(at);
  return (
    <span class="cluster-name" title={`cluster ${text}${version ? ", Kubernetes " + version : ""}`}>
      <b>{text}</b>{version && (all.length === 1 || p.get("cluster")) ? <> {version}</> : null}
    </span>
  );
}
