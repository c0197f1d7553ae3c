import { useState } from "preact/hooks";
import { errorText, get, request, type List } from "../api";
import { count, plural, rate } from "../format";
import type { Handler } from "../handlers";
import { Since } from "../health";
import { objectOf, objectsOf } from "../places";
import { usePolled } from "../polled";
import { several } from "../resources";
import { href } from "../route";
import { Icon, NotAnswered, say } from "../ui";
import { Attempts, HandlerState, oldest, resourceOf, Why } from "./handlers";

// One handler: what it follows, the keys that it gave up, and what may be done about it.

interface DeadLetter {
  cluster: string;
  resource: string;
  namespace?: string;
  name: string;
  attempts: number;
  error: string;
  since: string;
}

const at = (name: string, below = ""): string => `v1/handlers/${encodeURIComponent(name)}${below}`;

/** What can be done, and what the page says when it was. */
type Steer = (what: string, done: (answer: { redriven?: number }) => string, keys?: DeadLetter[]) => void;

export function OneHandler({ name }: { name: string }) {
  const [doing, setDoing] = useState("");
  const [again, setAgain] = useState(0);
  const [refused, setRefused] = useState("");
  const asked = usePolled(name, 2000, async (signal) => (await get<Handler>(at(name), signal)).body, String(again));
  const h = asked.value;
  const steer: Steer = async (what, done, keys) => {
    setDoing(what);
    setRefused("");
    try {
      const body = keys && JSON.stringify({ keys: keys.map(({ cluster, resource, namespace, name }) => ({ cluster, resource, namespace, name })) });
      const r = await request(at(name, "/" + what), { method: "POST", body, headers: body ? { "Content-Type": "application/json" } : {} });
      say(done((await r.json()) as { redriven?: number }));
    } catch (e) {
      setRefused(errorText(e));
    }
    setDoing("");
    setAgain((n) => n + 1);
  };
  const button = (what: string, label: string, icon: "pause" | "play", done: () => string) =>
    h?.may?.includes(what) && <button type="button" class="button" disabled={!!doing} onClick={() => steer(what, done)}><Icon name={icon} /> {label}</button>;
  return (
    <div class="view">
      <div class="head">
        <p class="crumbs"><a href={href("handlers")}>Handlers</a> /</p>
        <h1>{name}</h1>
        {h && <HandlerState h={h} />}
        <span class="space" />
        {h && (h.state === "paused" ? button("resume", "Resume", "play", () => name + " delivers again") : button("pause", "Pause", "pause", () => name + " is paused"))}
      </div>
      <div class="pad" role="status"><NotAnswered of={asked} />{refused && <p class="error">{refused}</p>}{h && <Why h={h} />}</div>
      {h && (
        <div class="scroll" tabIndex={0} role="region" aria-label="The handler">
          <Figures h={h} />
          <Lines h={h} />
          <DeadLetters h={h} again={again} busy={!!doing} steer={steer} />
        </div>
      )}
    </div>
  );
}

function Figures({ h }: { h: Handler }) {
  return (
    <div class="facts-row">
      <div class="fact"><b>{count(h.pending)}</b> pending<span>{h.pending ? `the oldest for ${oldest(h)}` : "nothing waits"}</span></div>
      <div class="fact"><b>{count(h.inFlight)}</b> in flight<span>{rate(h.perSecond)}/s in the last minute</span></div>
      <div class="fact"><b><Attempts h={{ ...h, failed: 0, delivered: h.delivered + h.failed }} /></b> attempts<span>{h.failed ? `${count(h.failed)} failed, ${plural(h.retrying, "key")} tried again` : "since informerd started"}</span></div>
      <div class="fact"><b>{count(h.deadLetters)}</b> dead letters<span>of {plural(h.known, "key")} known</span></div>
    </div>
  );
}

function Lines({ h }: { h: Handler }) {
  return (
    <table class="plain">
      <thead><tr><th scope="col">It follows</th><th scope="col">State</th><th scope="col" class="number">Keys known</th></tr></thead>
      <tbody>
        {h.lines?.map((l) => {
          const r = resourceOf(l);
          return (
            <tr key={l.cluster + l.resource}>
              <th scope="row">{several.value && <span class="soft">{l.cluster} / </span>}{r ? <a href={objectsOf(r)}>{r.name}</a> : l.resource}</th>
              <td><HandlerState h={l} />{l.reason && <small class="why">{l.reason}</small>}</td>
              <td class="number">{count(l.known)}</td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

const shownAtFirst = 100;
const atMost = 1000;

function DeadLetters({ h, again, busy, steer }: { h: Handler; again: number; busy: boolean; steer: Steer }) {
  const [limit, setLimit] = useState(shownAtFirst);
  const asked = usePolled(h.deadLetters ? h.name + limit : null, 5000, async (signal) => (await get<List<DeadLetter>>(at(h.name, "/deadletters?limit=" + limit), signal)).body.items, `${again} ${h.deadLetters}`);
  if (!h.deadLetters) return <p class="empty">No dead letters: nothing was given up.</p>;
  const may = h.may?.includes("redrive");
  const done = (a: { redriven?: number }) => `${count(a.redriven ?? 0)} sent again`;
  const list = asked.value;
  return (
    <>
      <div class="head">
        <h2>Dead letters</h2>
        <p class="soft">given up until they change{may ? " or are sent again" : ""}</p>
        <span class="space" />
        {may && <button type="button" class="button" disabled={busy} onClick={() => steer("redrive", done)}>Redrive all {count(h.deadLetters)}</button>}
      </div>
      {asked.error && <div class="pad"><NotAnswered of={asked} /></div>}
      {list && (
        <table class="plain">
          <thead><tr><th scope="col">Object</th><th scope="col" class="number">Attempts</th><th scope="col" class="number">Since</th><th scope="col">Last error</th>{may && <th scope="col"><span class="hidden">What can be done</span></th>}</tr></thead>
          <tbody>
            {list.map((d) => {
              const r = resourceOf(d);
              const name = (d.namespace ? d.namespace + "/" : "") + d.name;
              return (
                <tr key={d.cluster + d.resource + name}>
                  <th scope="row"><span class="soft">{several.value && d.cluster + " / "}{r?.kind ?? d.resource} </span>{r ? <a href={objectOf(r, d.namespace ?? "", d.name)}>{name}</a> : name}</th>
                  <td class="number">{count(d.attempts)}</td>
                  <td class="number"><Since at={d.since} /></td>
                  <td class="wrap">{d.error}</td>
                  {may && <td><button type="button" class="button small" disabled={busy} aria-label={"Redrive " + name} onClick={() => steer("redrive", done, [d])}>Redrive</button></td>}
                </tr>
              );
            })}
          </tbody>
        </table>
      )}
      {list && h.deadLetters > list.length && (
        <p class="pad soft">
          {count(h.deadLetters - list.length)} more{" "}
          {limit < atMost ? <button type="button" class="button small" onClick={() => setLimit(atMost)}>Show up to {count(atMost)}</button> : <>are listed by <code>informerd handlers dead {h.name}</code></>}
        </p>
      )}
    </>
  );
}
