import type { Selection } from "./follow";
import type { Resource } from "./resources";
import { quoteShell } from "./shell";

// A table's question as a command of kubectl. What kubectl or the API server would
// refuse is not offered: their field selectors know = and != and few fields.

export interface Kubectl {
  /** What to paste; "" when no command asks the same. */
  command: string;
  /** Why there is none, or why it is informerd that has to be asked. */
  why: string;
  throughInformerd: boolean;
}

/** The fields that the API server selects by, besides name and namespace. */
const fields: Record<string, RegExp> = {
  pods: /^(spec\.(nodeName|restartPolicy|schedulerName|serviceAccountName|hostNetwork)|status\.(phase|podIP|podIPs|nominatedNodeName))$/,
  events: /^(involvedObject\.(kind|namespace|name|uid|apiVersion|resourceVersion|fieldPath)|reason|reportingComponent|source|type)$/,
  "events.events.k8s.io": /^(regarding\.(kind|namespace|name|uid|apiVersion|resourceVersion|fieldPath)|reason|reportingController|type)$/,
  secrets: /^type$/,
  services: /^spec\.(clusterIP|type)$/,
  namespaces: /^status\.phase$/,
  nodes: /^spec\.unschedulable$/,
  replicationcontrollers: /^status\.replicas$/,
  "replicasets.apps": /^status\.replicas$/,
  "jobs.batch": /^status\.successful$/,
  "certificatesigningrequests.certificates.k8s.io": /^spec\.signerName$/,
};

function selectable(r: Resource, path: string): boolean {
  if (path === "metadata.name" || (path === "metadata.namespace" && r.namespaced)) return true;
  return !!fields[r.name]?.test(path);
}

/** The parts between commas that stand in no bracket and no quotes. */
function terms(text: string): string[] {
  const out: string[] = [];
  let depth = 0, quote = "", from = 0;
  for (let i = 0; i < text.length; i++) {
    const c = text[i]!;
    if (c === "\\") i++;
    else if (quote) quote = c === quote ? "" : quote;
    else if (c === "'" || c === '"') quote = c;
    else if (c === "(" || c === "[") depth++;
    else if (c === ")" || c === "]") depth--;
    else if (c === "," && depth === 0) {
      out.push(text.slice(from, i));
      from = i + 1;
    }
  }
  return [...out, text.slice(from)].map((t) => t.trim()).filter(Boolean);
}

/** A selector in the grammar of Kubernetes: paths with = and !=. Throws what of it
 * cannot be said so. */
export function plainTerms(selector: string): { path: string; text: string }[] {
  return terms(selector).flatMap((term) => {
    const set = /^(\S+)\s+(in|notin)\s*\(([^)]*)\)$/.exec(term);
    if (set) {
      const [, path, op, list] = set as unknown as [string, string, string, string];
      const values = list.split(",").map((v) => v.trim());
      // None of several values is one after the other; any of several has no words.
      if (op === "in" && values.length > 1) throw new Error(`kubectl cannot ask for any of several values: ${term}`);
      return values.map((v) => ({ path, text: path + (op === "in" ? "=" : "!=") + v }));
    }
    const m = /^([^=!]+?)\s*(==|!=|=)\s*(.*)$/.exec(term);
    if (!m) throw new Error(`kubectl cannot ask whether there is a field: ${term}`);
    return [{ path: m[1]!, text: `${m[1]}${m[2] === "!=" ? "!=" : "="}${m[3]}` }];
  });
}

/** page is the address of the page, for what only informerd can be asked. */
export function kubectlOf(list: Resource[], s: Selection, page: string): Kubectl {
  const no = (why: string): Kubectl => ({ command: "", why, throughInformerd: false });
  const namespaces = s.namespace ?? [];
  if (s.filter) return no("kubectl knows no CEL");
  const glob = namespaces.find((n) => /[*?[]/.test(n));
  if (glob) return no(`kubectl takes no patterns for namespaces: ${glob}`);
  const asked = namespaces.length ? list.filter((r) => r.namespaced) : list;
  if (asked.length === 0) return no("there is nothing of it in a namespace");
  let selector: { path: string; text: string }[];
  try {
    selector = plainTerms(s.fieldSelector ?? "");
  } catch (e) {
    return no((e as Error).message);
  }
  const foreign = selector.find((t) => !asked.every((r) => selectable(r, t.path)));
  const base = new URL("./", page).href.replace(/\/$/, "");
  const cluster = asked[0]!.cluster && new Set(asked.map((r) => r.cluster)).size === 1 && new URL(page).searchParams.has("cluster") ? "/clusters/" + encodeURIComponent(asked[0]!.cluster) : "";
  const words = (more: string[]) => [
    "kubectl", ...(foreign ? ["--server", base + cluster] : []), "get", [...new Set(asked.map((r) => r.name))].join(","), ...more,
    ...(s.labelSelector ? ["--selector=" + s.labelSelector] : []),
    ...(selector.length ? ["--field-selector=" + selector.map((t) => t.text).join(",")] : []),
  ].map(quoteShell).join(" ");
  const all = asked.some((r) => r.namespaced) ? ["-A"] : [];
  return {
    command: (namespaces.length ? namespaces.map((n) => words(["-n", n])) : [words(all)]).join("\n"),
    why: foreign ? `the API server does not select by ${foreign.path}` : "",
    throughInformerd: !!foreign,
  };
}
