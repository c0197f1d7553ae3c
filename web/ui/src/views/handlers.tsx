import type { ComponentChildren } from "preact";
import { get, type List } from "../api";
import { count, plural, rate, seconds } from "../format";
import { troubled, type Handler } from "../handlers";
import { Since } from "../health";
import { usePolled } from "../polled";
import { find } from "../resources";
import { href, params } from "../route";
import { NotAnswered, StateIcon } from "../ui";
import { OneHandler } from "./handler";

// What delivers changes: how far it is, and what went wrong last.

const columns: [title: string, cell: (h: Handler) => ComponentChildren][] = [
  ["Pending", (h) => count(h.pending)],
  ["Oldest", (h) => oldest(h)],
  ["In flight", (h) => count(h.inFlight)],
  ["Rate", (h) => rate(h.perSecond) + "/s"],
  ["Attempts", (h) => <Attempts h={h} />],
  ["Dead letters", (h) => <span class={h.deadLetters ? "tone-bad" : ""}>{count(h.deadLetters)}</span>],
];

export function Handlers() {
  const name = params.value.get("handler");
  return name ? <OneHandler key={name} name={name} /> : <AllHandlers />;
}

function AllHandlers() {
  const asked = usePolled("handlers", 2000, async (signal) => (await get<List<Handler>>("v1/handlers", signal)).body.items);
  const all = asked.value;
  return (
    <div class="view">
      <div class="head">
        <h1>Handlers</h1>
        {all && <p class="soft">{plural(all.length, "handler")}{all.some(troubled) ? `, ${count(all.filter(troubled).length)} in need of attention` : ""}</p>}
      </div>
      <div class="scroll" tabIndex={0} role="region" aria-label="Handlers">
        {asked.error && <div class="pad"><NotAnswered of={asked} /></div>}
        {all?.length === 0 && <p class="empty">None that you may see. They are declared in the configuration, under <code>handlers</code>.</p>}
        {!!all?.length && (
          <table class="plain">
            <thead><tr><th scope="col">Handler</th><th scope="col">State</th>{columns.map(([title]) => <th scope="col" class="number">{title}</th>)}</tr></thead>
            <tbody>
              {all.map((h) => (
                <tr key={h.name}>
                  <th scope="row">
                    <a href={href("handlers", { handler: h.name })}>{h.name}</a>
                    <small class="why">{h.sink} of {h.resources.join(", ")}</small>
                  </th>
                  <td><HandlerState h={h} /><Why h={h} /></td>
                  {columns.map(([, cell]) => <td class="number">{cell(h)}</td>)}
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </div>
    </div>
  );
}

const icons = { active: "live", waiting: "syncing", paused: "unwatched", down: "failed", following: "live", forbidden: "forbidden" } as const;

export function HandlerState({ h }: { h: { state: string } }) {
  const icon = icons[h.state as keyof typeof icons] ?? "none";
  return <span class={"state state-" + icon}><StateIcon state={icon} />{h.state}</span>;
}

/** Why it is as it is, and what went wrong last. */
export function Why({ h }: { h: Handler }) {
  return (
    <>
      {h.reason && <small class="why">{h.reason}</small>}
      {h.saveError && <small class="why tone-bad">what was delivered cannot be saved: {h.saveError}</small>}
      {h.lastError && <small class="why">last error, <Since at={h.lastErrorTime} /> ago: {h.lastError}</small>}
      {!!h.filterErrors && <small class="why tone-wait">the filter has no value for {plural(h.filterErrors, "object")}: {h.filterError}</small>}
    </>
  );
}

export const oldest = (h: Handler): string => (h.pending ? seconds(h.oldestSeconds) : "–");

export function Attempts({ h }: { h: Handler }) {
  return <>{count(h.delivered + h.failed)}{h.failed > 0 && <small class="why">{count(h.failed)} failed{h.retrying > 0 && `, ${plural(h.retrying, "key")} tried again`}</small>}</>;
}

/** The resource of a line or a dead letter, if the page knows it. */
export const resourceOf = (l: { cluster: string; resource: string }) => find(l.resource, l.cluster) ?? find(l.resource);
