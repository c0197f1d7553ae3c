import type { KubeObject, List } from "./api";
import { keyOf, path, type Resource } from "./resources";

// What a table asks: one resource, or many in one question. Either is a list that
// is read in pages and then one stream, however many resources it is about.

export interface Source {
  resources: Resource[];
  /** The address of a question to it. */
  url(query: URLSearchParams): string;
  /** The resource of an object in a list. */
  ofObject(o: KubeObject): Resource | undefined;
  /** The resource that an event of the stream names; streams of one name none. */
  ofEvent(name: string | undefined): Resource | undefined;
  /** The id of the event with which a stream goes on where a list ends. */
  since(list: List): string;
}

export function oneSource(r: Resource): Source {
  return {
    resources: [r],
    url: (q) => path(r, "/objects", q),
    ofObject: () => r,
    ofEvent: () => r,
    since: (list) => list.metadata.resourceVersion ?? "",
  };
}

/** Sources of many resources: one for each cluster, since objects do not say
 * where they are from. patterns are names and globs as the API takes them. */
export function manySources(resources: Resource[], patterns: string): Source[] {
  const clusters = new Map<string, Resource[]>();
  for (const r of resources) clusters.set(r.cluster ?? "", [...(clusters.get(r.cluster ?? "") ?? []), r]);
  return [...clusters].map(([cluster, list]) => manySource(list, patterns, cluster));
}

function manySource(resources: Resource[], patterns: string, cluster: string): Source {
  const kinds = new Map(resources.map((r) => [`${r.group} ${r.kind}`, r]));
  const streams = new Map(resources.map((r) => [streamName(r), r]));
  const names = new Map(resources.map((r) => [keyOf(r), r]));
  return {
    resources,
    url: (query) => {
      const q = new URLSearchParams(query);
      q.set("resources", patterns);
      if (cluster) q.set("cluster", cluster);
      return "v1/query?" + q;
    },
    ofObject: (o) => {
      const version = o.apiVersion ?? "";
      return kinds.get(`${version.includes("/") ? version.split("/")[0] : ""} ${o.kind}`);
    },
    ofEvent: (name) => streams.get(name ?? ""),
    since: (list) =>
      (list.metadata.resources ?? []).flatMap((a) => {
        const r = names.get(keyOf({ cluster: a.cluster, name: a.resource }));
        return r && a.answered && a.resourceVersion ? [`${streamName(r)}=${a.resourceVersion}`] : [];
      }).join(","),
  };
}

/** What the stream of many resources calls one of them: deployments.v1.apps. */
function streamName(r: Resource): string {
  const name = r.group ? `${r.resource}.${r.version}.${r.group}` : r.resource;
  return r.cluster ? `${r.cluster}/${name}` : name;
}
