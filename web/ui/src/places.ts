import { clusterOf, type Resource } from "./resources";
import { href, type Value } from "./route";
import { chosen } from "./scope";

// Addresses of what the page shows.

export function objectsOf(r: Resource, more: Record<string, Value> = {}): string {
  return href("objects", { cluster: clusterOf(r), resource: r.name, namespace: r.namespaced ? chosen.value : undefined, ...more });
}

export function objectOf(r: Resource, ns: string, name: string, more: Record<string, Value> = {}): string {
  return href("object", { cluster: clusterOf(r), resource: r.name, namespace: ns, name, ...more });
}

/** The plural of a kind as a heading: Pods, NetworkPolicies. */
export function headingOf(r: Resource): string {
  const k = r.kind;
  if (r.resource === k.toLowerCase()) return k;
  if (/[^aeiou]y$/.test(k)) return k.slice(0, -1) + "ies";
  if (/(s|x|z|ch|sh)$/.test(k)) return k + "es";
  return k + "s";
}

const sections: [string, RegExp][] = [
  ["Workloads", /^(pods|replicationcontrollers|.*\.apps|.*\.batch|horizontalpodautoscalers\.autoscaling|poddisruptionbudgets\.policy)$/],
  ["Network", /^(services|endpoints|.*\.networking\.k8s\.io|.*\.discovery\.k8s\.io|.*\.gateway\.networking\.k8s\.io)$/],
  ["Config", /^(configmaps|secrets|resourcequotas|limitranges|podtemplates|priorityclasses\.scheduling\.k8s\.io)$/],
  ["Storage", /^(persistentvolumes|persistentvolumeclaims|.*\.storage\.k8s\.io)$/],
  ["Access", /^(serviceaccounts|.*\.rbac\.authorization\.k8s\.io|.*\.certificates\.k8s\.io)$/],
  ["Cluster", /^(nodes|namespaces|events|events\.events\.k8s\.io|componentstatuses|.*\.coordination\.k8s\.io|.*\.node\.k8s\.io|.*\.resource\.k8s\.io|.*\.apiregistration\.k8s\.io|.*\.apiextensions\.k8s\.io|.*\.admissionregistration\.k8s\.io|.*\.flowcontrol\.apiserver\.k8s\.io|.*\.internal\.apiserver\.k8s\.io)$/],
];

/** The section of the side bar a resource belongs to; custom ones go by group. */
export function sectionOf(r: Resource): string {
  return sections.find(([, re]) => re.test(r.name))?.[0] ?? (r.group || "Other");
}

export const sectionNames = sections.map((s) => s[0]);
