import type { KubeObject } from "../api";
import { count } from "../format";
import { objectOf } from "../places";
import { find, type Resource } from "../resources";
import { Age } from "../ui";

// The containers of a pod and how they are, or those that a workload asks for.

interface State {
  running?: { startedAt?: string };
  waiting?: { reason?: string; message?: string };
  terminated?: { reason?: string; message?: string; exitCode?: number; signal?: number; finishedAt?: string };
}

interface Status {
  name: string;
  ready?: boolean;
  restartCount?: number;
  state?: State;
  lastState?: State;
}

interface Container {
  name: string;
  image?: string;
  resources?: { requests?: Record<string, string>; limits?: Record<string, string> };
}

interface PodSpec {
  containers?: Container[];
  initContainers?: Container[];
  nodeName?: string;
}

export function Containers({ o, r }: { o: KubeObject; r: Resource }) {
  const isPod = r.name === "pods";
  const spec = (isPod ? o.spec : (o.spec?.template?.spec ?? o.spec?.jobTemplate?.spec?.template?.spec)) as PodSpec | undefined;
  const all = [...(spec?.initContainers ?? []).map((c) => ({ c, init: true })), ...(spec?.containers ?? []).map((c) => ({ c, init: false }))].filter(({ c }) => c?.name);
  if (all.length === 0) return null;
  const statuses = new Map([...((o.status?.initContainerStatuses ?? []) as Status[]), ...((o.status?.containerStatuses ?? []) as Status[])].filter(Boolean).map((s) => [s.name, s]));
  const node = isPod && spec?.nodeName ? find("nodes", r.cluster) : undefined;
  return (
    <section>
      <h2>Containers{spec?.nodeName && <span class="soft"> on {node ? <a href={objectOf(node, "", spec.nodeName)}>{spec.nodeName}</a> : spec.nodeName}</span>}</h2>
      <ul class="containers">
        {all.map(({ c, init }) => {
          const s = statuses.get(c.name);
          return (
            <li key={c.name}>
              <p><b>{c.name}</b>{init && <span class="soft"> init</span>} {isPod && <StateOf s={s} />}</p>
              {s?.state?.waiting?.message && <p class="sentence">{s.state.waiting.message}</p>}
              {s?.state?.terminated?.message && <p class="sentence">{s.state.terminated.message}</p>}
              <dl class="pairs wide-pairs">
                {isPod && <><dt>Restarts</dt><dd>{s?.restartCount ? <b class="tone-wait">{count(s.restartCount)}</b> : "0"}{s?.lastState?.terminated && <>, last exit: <Exit t={s.lastState.terminated} /></>}</dd></>}
                <dt>Image</dt><dd class="mono">{c.image ?? "–"}</dd>
                <dt>Requests</dt><dd>{amounts(c.resources?.requests)}</dd>
                <dt>Limits</dt><dd>{amounts(c.resources?.limits)}</dd>
              </dl>
            </li>
          );
        })}
      </ul>
    </section>
  );
}

function amounts(of?: Record<string, string>): string {
  return Object.entries(of ?? {}).map(([k, v]) => `${k} ${v}`).join(", ") || "none";
}

function Exit({ t }: { t: NonNullable<State["terminated"]> }) {
  return <>{t.reason || "ended"}, {t.signal ? `signal ${t.signal}` : `code ${t.exitCode ?? "unknown"}`}{t.finishedAt && <>, <Age since={Date.parse(t.finishedAt)} /> ago</>}</>;
}

function StateOf({ s }: { s?: Status }) {
  if (!s?.state) return <span class="word tone-wait">not started</span>;
  const { running, waiting, terminated } = s.state;
  if (waiting) return <span class="word tone-bad">{waiting.reason || "waiting"}</span>;
  if (terminated) return <span class={"word tone-" + (terminated.exitCode ? "bad" : "off")}><Exit t={terminated} /></span>;
  if (!running) return <span class="word tone-wait">not started</span>;
  return <span class={"word tone-" + (s.ready ? "good" : "wait")}>{s.ready ? "running, ready" : "running, not ready"}{running.startedAt && <> for <Age since={Date.parse(running.startedAt)} /></>}</span>;
}
