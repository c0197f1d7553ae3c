import { get, type KubeObject } from "../api";
import { count, plural } from "../format";
import { HealthIcon, healthOf, placeOf, Since, splitId, toneOfHealth, trouble, type Verdict } from "../health";
import { objectOf } from "../places";
import { usePolled } from "../polled";
import { askOf, find, type Resource } from "../resources";
import { NotAnswered } from "../ui";
import { Capacity } from "./capacity";
import { Drain } from "./drain";
import { Containers } from "./containers";
import { Events } from "./events";

// What an object is like, and why: a sentence, its containers, what it owns and what
// it refers to, with the events of all of them.

export function Summary({ o, r }: { o: KubeObject; r: Resource }) {
  const m = o.metadata;
  // Health is of the object and of what it owns: either may have changed.
  const mark = `${m.resourceVersion} ${JSON.stringify(trouble.value?.items.find((i) => i.resource === r.name && i.name === m.name && (i.namespace ?? "") === (m.namespace ?? "")))}`;
  const { value: found, error } = usePolled(m.uid ?? m.name, 3000, (signal) => healthOf(r, m.namespace ?? "", m.name, signal), mark);
  return (
    <div class="scroll pad summary" tabIndex={0} role="region" aria-label="Status">
      {error && <p class="error" role="alert">{found ? "Its health may be old: " : "Its health is not known: "}{error}</p>}
      {found && <Verdicts item={found.item} r={r} />}
      <Numbers o={o} />
      <Capacity o={o} r={r} />
      <Drain o={o} r={r} />
      <Containers o={o} r={r} />
      {found && found.children.length > 0 && <Children list={found.children} r={r} />}
      <References o={o} r={r} />
      <h2>Events</h2>
      <Events o={o} r={r} tree={found?.children} inline />
    </div>
  );
}

function Verdicts({ item, r }: { item: Verdict; r: Resource }) {
  const cause = item.cause && splitId(item.cause.id);
  return (
    <div class={"verdict tone-" + toneOfHealth[item.status]} role="status">
      <p>
        <HealthIcon status={item.status} /> <b>{item.status}</b>{item.reason ? ` · ${item.reason}` : ""}
        {item.since && item.status !== "good" && <span class="soft"> for <Since at={item.since} /></span>}
      </p>
      {item.message && <p class="sentence">{item.message}</p>}
      {cause && cause.name !== item.name && (
        <p>Shown by <a href={placeOf({ ...cause, cluster: r.cluster })}>{find(cause.resource, r.cluster)?.kind ?? cause.resource} {cause.name}</a>{item.affected && item.affected > 1 ? `, ${plural(item.affected, "object")} affected` : ""}</p>
      )}
    </div>
  );
}

const numbers: [label: string, of: (o: KubeObject) => unknown][] = [
  ["desired", (o) => o.spec?.replicas ?? o.status?.desiredNumberScheduled],
  ["ready", (o) => (o.spec?.replicas !== undefined ? (o.status?.readyReplicas ?? 0) : o.status?.numberReady)],
  ["updated", (o) => o.status?.updatedReplicas ?? o.status?.updatedNumberScheduled],
  ["available", (o) => o.status?.availableReplicas ?? o.status?.numberAvailable],
];

/** Replicas, and where a pod runs. */
function Numbers({ o }: { o: KubeObject }) {
  const list = numbers.flatMap(([label, of]) => {
    const n = of(o);
    return typeof n === "number" ? [{ label, n }] : [];
  });
  if (list.length < 2 || !o.status) return null;
  return <p class="numbers">Replicas: {list.map(({ label, n }, i) => <span key={label}>{i > 0 && ", "}<b>{count(n)}</b> {label}</span>)}</p>;
}

function Children({ list, r }: { list: Verdict[]; r: Resource }) {
  const bad = list.filter((c) => c.status !== "good").length;
  return (
    <section>
      <h2>Owns <span class="soft">{plural(list.length, "object")}{bad ? `, ${count(bad)} not good` : ""}</span></h2>
      <table class="plain owned">
        <thead><tr><th scope="col">Health</th><th scope="col">Object, and why</th><th scope="col" class="number">For</th></tr></thead>
        <tbody>
          {list.slice(0, 50).map((c) => (
            <tr key={c.id}>
              <td class={"tone-" + toneOfHealth[c.status]}><HealthIcon status={c.status} /> {c.reason || c.status}</td>
              <td class="wrap">
                <span class="soft">{c.kind}</span> <a href={placeOf({ ...c, cluster: r.cluster })}>{c.name}</a>
                {c.status !== "good" && c.message && <div class="soft">{c.message}</div>}
              </td>
              <td class="number"><Since at={c.since} /></td>
            </tr>
          ))}
        </tbody>
      </table>
      {list.length > 50 && <p class="soft">and {count(list.length - 50)} more</p>}
    </section>
  );
}

interface Neighbours {
  root: string;
  nodes: { id: string; resource: string; kind: string; namespace?: string; name: string; missing?: boolean; unknown?: boolean }[];
  edges: { from: string; to: string; edge: string; why: string }[];
}

/** What it names and needs: each leads to it, and what is not there is said. */
function References({ o, r }: { o: KubeObject; r: Resource }) {
  const m = o.metadata;
  const asked = usePolled(m.uid ?? m.name, 15_000, async (signal) =>
    (await get<Neighbours>("v1/graph/" + askOf(r, m.namespace, m.name, { direction: "out", depth: "1", limit: "60" }), signal)).body, String(m.generation));
  const g = asked.value;
  const by = new Map<string, { n: Neighbours["nodes"][number]; why: Set<string> }>();
  for (const e of g?.edges ?? []) {
    if (e.from !== g!.root || ["owns", "about", "contains", "runsOn"].includes(e.edge)) continue;
    const n = g!.nodes.find((n) => n.id === e.to);
    if (!n) continue;
    const line = by.get(n.id) ?? { n, why: new Set<string>() };
    line.why.add(e.why);
    by.set(n.id, line);
  }
  const named = namedSecrets(o, r).filter((s) => ![...by.values()].some(({ n }) => n.resource === "secrets" && n.name === s.name));
  if (by.size === 0 && named.length === 0 && !asked.error) return null;
  return (
    <section>
      <h2>Refers to</h2>
      <NotAnswered of={asked} />
      <ul class="refs">
        {[...by.values()].sort((a, b) => Number(b.n.missing ?? false) - Number(a.n.missing ?? false)).map(({ n, why }) => {
          const to = find(n.resource, r.cluster);
          return (
            <li key={n.id}>
              <span class="soft">{n.kind}</span> {to ? <a href={objectOf(to, n.namespace ?? "", n.name)}>{n.name}</a> : n.name}{" "}
              {n.missing && <span class="word tone-bad">does not exist</span>}
              {n.unknown && <span class="word tone-wait">not known: it cannot be read</span>}
              <small class="soft"> {[...why].slice(0, 2).join(", ")}</small>
            </li>
          );
        })}
        {named.map((s) => (
          <li key={s.path}><span class="soft">Secret</span> <a href={objectOf(find("secrets", r.cluster)!, m.namespace!, s.name)}>{s.name}</a> <small class="soft">{s.path}, by its name</small></li>
        ))}
      </ul>
    </section>
  );
}

/** References by convention, as custom resources have them: secretRef: {name}. */
export function namedSecrets(o: KubeObject, r: Resource): { path: string; name: string }[] {
  if (!o.metadata.namespace || !r.group.includes(".") || !find("secrets", r.cluster)) return [];
  const out: { path: string; name: string }[] = [];
  const walk = (v: unknown, at: string, depth: number): void => {
    if (typeof v !== "object" || v === null || depth > 6 || out.length > 20) return;
    for (const [k, x] of Object.entries(v)) {
      const here = Array.isArray(v) ? `${at}[${k}]` : `${at}.${k}`;
      const name = (x as { name?: unknown } | null)?.name;
      if (/secret(Key)?Ref$/i.test(k) && typeof name === "string") out.push({ path: here, name });
      else if (/^secretName$/.test(k) && typeof x === "string") out.push({ path: here, name: x });
      else walk(x, here, depth + 1);
    }
  };
  walk(o.spec, "spec", 0);
  return out;
}
