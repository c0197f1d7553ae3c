import { get, type KubeObject } from "../api";
import { find, path, readable, type Resource } from "../resources";
import { ageColumn, clusterColumn, customColumn, hasHealth, healthColumn, kindColumn, knownColumns, nameColumn, namespaceColumn, printerColumns, statusColumn, type Column } from "./columns";

// Which columns a table has: the usual ones of its kind, or what somebody chose,
// remembered per kind in this browser and carried in the address.

const crds = new Map<string, Column[]>();

/** The usual columns of a resource, between name and age. */
export async function usualColumns(r: Resource): Promise<Column[]> {
  const known = knownColumns(r.name);
  if (known) return known;
  const key = `${r.cluster ?? ""} ${r.name} ${r.version}`;
  const cached = crds.get(key);
  if (cached) return cached;
  let columns: Column[] = [];
  const crd = r.group.includes(".") ? find("customresourcedefinitions.apiextensions.k8s.io", r.cluster) : undefined;
  if (crd && readable(crd)) {
    try {
      const { body } = await get<KubeObject>(path(crd, `/objects/-/${encodeURIComponent(r.name)}`, { fields: "metadata.name,spec.versions[*].name,spec.versions[*].additionalPrinterColumns" }));
      columns = printerColumns(body, r.version);
    } catch {
      columns = []; // of an aggregated API, or not to be had: the generic ones do
    }
  }
  if (columns.length === 0) columns = [statusColumn];
  crds.set(key, columns);
  return columns;
}

/** All columns a table offers, and those it shows unless told otherwise. */
export function frame(resources: Resource[], usual: Column[], oneNamespace: boolean): { offered: Column[]; shown: string[] } {
  const many = new Set(resources.map((r) => r.name)).size !== 1;
  const clusters = new Set(resources.map((r) => r.cluster)).size > 1;
  const namespaced = resources.some((r) => r.namespaced);
  const inner = many ? [statusColumn] : usual.map((c) => (["name", "namespace", "kind", "cluster", "age"].includes(c.id) ? { ...c, id: c.id + "-2" } : c));
  const well = resources.some((r) => hasHealth(r.name));
  const offered = [nameColumn, ...(well ? [healthColumn] : []), ...(clusters ? [clusterColumn] : []), ...(many ? [kindColumn] : []), ...(namespaced ? [namespaceColumn] : []), ...inner, ageColumn];
  const shown = offered.map((c) => c.id).filter((id) => !(id === "namespace" && oneNamespace));
  return { offered, shown };
}

/** The columns of a list of ids: offered ones, paths and labels. The name leads. */
export function choose(ids: string[], offered: Column[]): Column[] {
  const out: Column[] = [nameColumn];
  for (const id of ids) {
    if (out.some((c) => c.id === id)) continue;
    const known = offered.find((c) => c.id === id);
    try {
      out.push(known ?? customColumn(id));
    } catch {
      // A path that cannot be read was mistyped in the address: leave it out.
    }
  }
  return out;
}

/** Ids that are neither a column's nor a path. */
export function wrongColumns(ids: string[]): string[] {
  return ids.filter((id) => {
    try {
      return !customColumn(id);
    } catch {
      return true;
    }
  });
}

const prefix = "informerd.columns.";

export function remembered(resource: string): string[] | null {
  try {
    const v = JSON.parse(localStorage.getItem(prefix + resource) ?? "null") as unknown;
    return Array.isArray(v) && v.every((x) => typeof x === "string") ? v : null;
  } catch {
    return null; // no storage, or somebody else's value
  }
}

export function remember(resource: string, ids: string[] | null): void {
  try {
    if (ids) localStorage.setItem(prefix + resource, JSON.stringify(ids));
    else localStorage.removeItem(prefix + resource);
  } catch {
    // Without storage the address still has them.
  }
}

/** Column ids in one parameter: commas part them, so those inside are escaped. */
export function joinIds(ids: string[]): string {
  return ids.map((i) => i.replace(/[\\,]/g, "\\$&")).join(",");
}

export function splitIds(text: string): string[] {
  return (text.match(/(?:\\.|[^,\\])+/g) ?? []).map((s) => s.replace(/\\(.)/g, "$1"));
}
