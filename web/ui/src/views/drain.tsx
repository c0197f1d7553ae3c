import { get, type KubeObject } from "../api";
import { count } from "../format";
import { placeOf } from "../health";
import { usePolled } from "../polled";
import { clusterOf, type Resource } from "../resources";
import { query } from "../route";
import { NotAnswered } from "../ui";

// What draining a node would do to its pods, before anybody does it.

interface Foreseen {
  summary: Record<string, number>;
  items: { namespace: string; name: string; fate: string; reason?: string; losesData?: boolean }[];
  partial?: boolean;
  budgetsUnknown?: boolean;
}

const words: [fate: string, tone: string][] = [["blocked", "bad"], ["lost", "bad"], ["interrupted", "wait"], ["moves", ""], ["finished", ""], ["stays", ""]];

export function Drain({ o, r }: { o: KubeObject; r: Resource }) {
  const { name } = o.metadata;
  const able = r.name === "nodes";
  const asked = usePolled(able ? name : null, 5000, async (signal) =>
    (await get<Foreseen>(`v1/drain/${encodeURIComponent(name)}?${query({ cluster: clusterOf(r) })}`, signal)).body);
  const found = asked.value;
  if (!able) return null;
  // What just moves is a number; what a person has to think of is named.
  const notable = found?.items.filter((i) => i.losesData || /^(blocked|lost|interrupted)$/.test(i.fate)) ?? [];
  return (
    <section aria-label="A drain of this node">
      <h2>A drain of this node</h2>
      <NotAnswered of={asked} />
      {found && <p>{words.filter(([w]) => found.summary[w]).map(([w, tone]) => <><span class={"word tone-" + tone}>{count(found.summary[w]!)} {w}</span> </>)}{found.items.length === 0 && "would do nothing: it has no pods"}</p>}
      {found?.budgetsUnknown && <p class="tone-wait">Not all PodDisruptionBudgets can be read: more may be blocked.</p>}
      {found?.partial && <p class="tone-wait">There may be pods that you may not see.</p>}
      <ul class="refs">
        {notable.slice(0, 50).map((i) => (
          <li key={i.namespace + i.name}>
            <span class={"word tone-" + words.find(([w]) => w === i.fate)![1]}>{i.fate}</span> <a href={placeOf({ ...i, resource: "pods", cluster: r.cluster })}>{i.namespace}/{i.name}</a>{" "}
            {i.losesData && <span class="word tone-wait">loses its emptyDir</span>} <small class="soft">{i.reason}</small>
          </li>
        ))}
      </ul>
      {notable.length > 50 && <p class="soft">and {count(notable.length - 50)} more</p>}
    </section>
  );
}
