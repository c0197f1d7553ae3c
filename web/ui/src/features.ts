import { signal } from "@preact/signals";
import { ApiError, request } from "./api";

// What this informerd can do beyond the basics, read from its description.

export interface Features {
  filter: boolean;
  explain: boolean;
  search: boolean;
  graph: boolean;
  complete: boolean;
  dangling: boolean;
}

const none: Features = { filter: false, explain: false, search: false, graph: false, complete: false, dangling: false };
export const features = signal<Features>(none);

interface Description {
  paths?: Record<string, { get?: { parameters?: ({ name?: string } | { $ref?: string })[] } }>;
}

export function featuresOf(d: Description): Features {
  const paths = Object.keys(d.paths ?? {});
  const takes = (path: string, name: string) =>
    !!d.paths?.[path]?.get?.parameters?.some((p) => ("name" in p ? p.name === name : "$ref" in p && !!p.$ref?.endsWith("/" + name)));
  const objects = "/v1/resources/{resource}/objects";
  return {
    filter: takes(objects, "filter"),
    explain: takes(objects, "explain"),
    search: paths.includes("/v1/search"),
    graph: paths.some((p) => p.startsWith("/v1/graph/{resource}/")),
    complete: paths.includes("/v1/complete"),
    dangling: paths.includes("/v1/graph/dangling"),
  };
}

/** An informerd that does not describe itself still tells by its errors: a route
 * refuses a parameter that it does not know and names those it does. */
async function probe(): Promise<Features> {
  const ask = async (path: string): Promise<string> => {
    try {
      await request(path + "?whatdoyouknow");
      return "";
    } catch (e) {
      return e instanceof ApiError && e.code === 400 ? e.message : "";
    }
  };
  const [objects, dangling, search, complete] = await Promise.all(
    ["v1/resources/namespaces/objects", "v1/graph/dangling", "v1/search", "v1/complete"].map(ask),
  );
  const knows = (name: string) => new RegExp(`\\b${name}\\b`).test(objects!);
  return { filter: knows("filter"), explain: knows("explain"), search: !!search, graph: !!dangling, complete: !!complete, dangling: !!dangling };
}

export async function discover(): Promise<void> {
  try {
    const r = await request("v1/openapi.json");
    features.value = featuresOf((await r.json()) as Description);
  } catch (e) {
    if (e instanceof ApiError) features.value = await probe();
    else setTimeout(() => void discover(), 3000); // no answer at all
  }
}
