import { get } from "../api";
import { count, plural } from "../format";
import { objectsOf } from "../places";
import { usePolled } from "../polled";
import { find, path, readable } from "../resources";
import { NotAnswered, Track } from "../ui";
import { termOf } from "./groups";

// Which images run, in which versions: what a base image or an upgrade is about.

const by = "spec.containers[*].image";
const shown = 8;

/** An image without its version. */
export function repositoryOf(image: string): string {
  return image.replace(/@.*$/, "").replace(/:[^/]*$/, "");
}

/** Its name without the registry, which many have in common. */
export function shortOf(repository: string): string {
  return repository.replace(/^[^/]*[.:][^/]*\//, "");
}

export function Images({ namespace }: { namespace: string }) {
  const pods = find("pods");
  const able = !!pods && readable(pods);
  const asked = usePolled(able ? namespace : null, 15_000, async (signal) => {
    const { body } = await get<{ items: { group: Record<string, string | null>; values: Record<string, number> }[] }>(
      path(pods!, "/objects", { groupBy: by, sort: "-count()", limit: "1000", ...(namespace && { namespace }) }), signal);
    const found = new Map<string, { n: number; images: string[] }>();
    for (const i of body.items) {
      const image = i.group[by];
      if (!image) continue;
      const r = repositoryOf(image), was = found.get(r);
      found.set(r, { n: (was?.n ?? 0) + i.values["count()"]!, images: [...(was?.images ?? []), image] });
    }
    return [...found].sort((a, b) => b[1].n - a[1].n);
  });
  const list = asked.value;
  if (!able) return null;
  return (
    <section class="card">
      <h2>Images of pods</h2>
      <NotAnswered of={asked} />
      <ul>
        {list?.slice(0, shown).map(([repository, { n, images }]) => {
          const one = images.length === 1;
          return (
            <li key={repository}>
              <a class="bar-row" title={images.slice(0, 20).join("\n")} href={objectsOf(pods!, {
                namespace: namespace || undefined,
                ...(one ? { fieldSelector: termOf(by, images[0]!) } : { group: by, filter: `object.spec.containers.exists(c, c.image.matches(${JSON.stringify("^" + repository.replace(/[.+]/g, "\\$&") + "([:@]|$)")}))` }),
              })}>
                <span class="label">{shortOf(repository)}</span><small>{one ? images[0]!.slice(repository.length + 1) : plural(images.length, "version")}</small><b>{count(n)}</b>
                <Track share={n / list[0]![1].n} />
              </a>
            </li>
          );
        })}
      </ul>
      <p class="soft">{!list ? asked.error ? "" : "looking…" : list.length ? <a href={objectsOf(pods!, { namespace: namespace || undefined, group: by })}>all {plural(list.length, "image")} and their versions</a> : "none: no pods"}</p>
    </section>
  );
}
