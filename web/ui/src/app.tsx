import { computed, effect, signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { link } from "./api";
import { bytes, count, plural, seconds, time } from "./format";
import { HandlersLink } from "./handlers";
import { countsOf, HealthIcon } from "./health";
import { late } from "./late";
import { headingOf, objectsOf, sectionNames, sectionOf } from "./places";
import { ageOf, find, keyOf, known, nextTry, now, poll, readable, refused, resources, mixed, type Resource } from "./resources";
import { go, href, params, view } from "./route";
import { chosen, ClusterName, NamespacePicker, overviewOf } from "./scope";
import { retryStreams } from "./sse";
import { Dialog, Icon, meaning, notice, StateIcon } from "./ui";
import { Objects } from "./views/objects";
import { Overview } from "./views/overview";
import { Palette } from "./views/palette";
import { Resources } from "./views/resources";

const ObjectView = late(() => import("./views/later").then((m) => m.ObjectView));
const Handlers = late(() => import("./views/later").then((m) => m.Handlers));

export const paletteOpen = signal(false);
const helpOpen = signal(false);
const menuOpen = signal(false);

// When informerd answers again, whatever waits for it need not wait longer.
let wasUp = true;
effect(() => {
  const up = link.value.up;
  if (up && !wasUp) retryStreams();
  wasUp = up;
});

export function App() {
  useEffect(() => {
    const keys = (e: KeyboardEvent) => {
      const typing = (e.target as Element).closest?.("input, textarea, select, dialog");
      if (e.key === "k" && (e.ctrlKey || e.metaKey)) {
        e.preventDefault();
        paletteOpen.value = true;
      } else if (typing || e.ctrlKey || e.metaKey || e.altKey) return;
      else if (e.key === "/") {
        e.preventDefault();
        paletteOpen.value = true;
      } else if (e.key === "?") helpOpen.value = true;
      else if (e.key === "n") {
        e.preventDefault();
        document.getElementById("namespace")?.focus();
      } else if (e.key === "Escape" && view.peek() === "object") {
        const r = find(params.peek().get("resource") ?? "", params.peek().get("cluster") ?? "");
        if (r) go(objectsOf(r));
      } else if (e.key === "f") {
        const input = document.querySelector<HTMLElement>("[data-filter]");
        if (!input) return;
        e.preventDefault();
        input.focus();
      }
    };
    addEventListener("keydown", keys);
    return () => removeEventListener("keydown", keys);
  }, []);
  useEffect(() => {
    menuOpen.value = false;
  }, [params.value]);
  const v = view.value;
  const stale = !link.value.up;
  return (
    <div class={"app" + (stale ? " offline" : "")}>
      <a class="skip" href="#main">
        Skip to content
      </a>
      <a class="skip" href="#kinds">
        Skip to kinds
      </a>
      <header class="top">
        <button type="button" class="button quiet menu" aria-expanded={menuOpen.value} aria-label="Kinds" onClick={() => (menuOpen.value = !menuOpen.value)}>
          <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
            <path d="M2 3.5h12V5H2zm0 3.75h12v1.5H2zM2 11h12v1.5H2z" />
          </svg>
        </button>
        <a class="brand" href={overviewOf(chosen.value)} aria-label="informerd, overview">
          <svg viewBox="0 0 16 16" aria-hidden="true">
            <circle cx="8" cy="8" r="7" />
            <path d="M8 7.2v4.6M8 4.2v1.2" />
          </svg>
          <span class="long-brand">informerd</span>
        </a>
        <ClusterName />
        <nav aria-label="Views">
          <a href={overviewOf(chosen.value)} aria-current={v === "overview" ? "page" : undefined}>
            Overview
          </a>
          <a href={href("resources")} aria-current={v === "resources" ? "page" : undefined}>
            Resources
          </a>
          <HandlersLink />
        </nav>
        <NamespacePicker />
        <button type="button" class="search-button" aria-label="Search kinds and objects" onClick={() => (paletteOpen.value = true)} aria-keyshortcuts="Control+K /">
          <Icon name="search" />
          <span aria-hidden="true">Search kinds and objects</span>
          <kbd aria-hidden="true">/</kbd>
        </button>
        <button type="button" class="button quiet" aria-label="Keys and marks" title="Keys and marks (?)" onClick={() => (helpOpen.value = true)}>
          ?
        </button>
      </header>
      <Side open={menuOpen.value} />
      <main id="main" tabIndex={-1}>
        {v === "resources" && <Resources />}
        {v === "objects" && <Objects />}
        {v === "object" && <ObjectView />}
        {v === "overview" && <Overview />}
        {v === "handlers" && <Handlers />}
        {v === null && <NoView />}
      </main>
      <StatusLine />
      {paletteOpen.value && <Palette onClose={() => (paletteOpen.value = false)} />}
      {helpOpen.value && <Help onClose={() => (helpOpen.value = false)} />}
      <div class={"toast" + (notice.value ? " on" : "")} role="status">
        {notice.value}
      </div>
    </div>
  );
}

function NoView() {
  return (
    <div class="view">
      <div class="head"><h1>No such view</h1></div>
      <div class="absent">
        <StateIcon state="none" />
        <h2>There is no view called <code>{params.value.get("view")}</code></h2>
        <p>Go to the <a href={href("overview")}>overview</a>.</p>
      </div>
    </div>
  );
}

const sections = computed(() => {
  const by = new Map<string, Resource[]>();
  for (const r of resources.value) {
    const s = sectionOf(r);
    by.set(s, [...(by.get(s) ?? []), r]);
  }
  const order = (s: string) => (sectionNames.includes(s) ? sectionNames.indexOf(s) : 100);
  for (const list of by.values()) list.sort((a, b) => Number(a.state === "unwatched") - Number(b.state === "unwatched") || (a.kind < b.kind ? -1 : 1));
  return [...by].sort((a, b) => order(a[0]) - order(b[0]) || (a[0] < b[0] ? -1 : 1));
});

function Side({ open }: { open: boolean }) {
  const p = params.value;
  const current = view.value === "objects" || view.value === "object" ? p.get("resource") : "";
  const cluster = p.get("cluster");
  return (
    <nav class={"side" + (open ? " open" : "")} id="kinds" tabIndex={-1} aria-label="Kinds">
      {sections.value.map(([name, list]) => {
        // Kinds without objects are many and rarely wanted: they are in Resources.
        const shown = list.filter((r) => r.objects > 0 || (!readable(r) && r.state !== "unwatched") || r.name === current || /^(pods|nodes|events)$/.test(r.name));
        if (shown.length === 0) return null;
        return (
          <section key={name}>
            <h2 title={name}>{name}</h2>
            <ul>
              {shown.map((r) => {
                const here = r.name === current && (!cluster || r.cluster === cluster);
                return (
                  <li key={keyOf(r)}>
                    <a href={objectsOf(r)} aria-current={here ? "page" : undefined} title={r.name + (r.state === "live" ? "" : ": " + meaning[r.state])}>
                      <span>
                        {mixed.value && r.cluster ? r.cluster + " / " : ""}
                        {headingOf(r)}
                      </span>
                      {r.state !== "live" && <StateIcon state={r.state} />}
                      <Bad r={r} />
                      {readable(r) ? <small>{count(r.objects)}</small> : <small class="word">{r.state}</small>}
                    </a>
                  </li>
                );
              })}
            </ul>
          </section>
        );
      })}
      {!known.value && <p class="soft pad">{refused.value || "Waiting for informerd…"}</p>}
    </nav>
  );
}

/** How many of a kind are bad. */
function Bad({ r }: { r: Resource }) {
  const n = countsOf(r)?.bad ?? 0;
  if (!n) return null;
  return <small class="bad-count" title={`${n} bad`}><HealthIcon status="bad" />{count(n)}<span class="hidden"> bad,</span></small>;
}

/** How the copy as a whole is: always in the same place, so that nothing moves
 * when it changes. */
function StatusLine() {
  const l = link.value;
  const all = resources.value;
  const watched = all.filter((r) => r.state !== "unwatched");
  const of = (s: string) => watched.filter((r) => r.state === s).length;
  const stale = watched.filter((r) => r.state === "stale");
  const objects = watched.reduce((n, r) => n + r.objects, 0);
  let level = "ok";
  let text = "";
  let more = "";
  if (!l.up) {
    level = "down";
    text = l.last ? `informerd does not answer since ${time(l.since)}` : "informerd does not answer";
    more = l.last ? `what you see is ${seconds(Math.max(1, (now.value - l.last) / 1000))} old` : "";
  } else if (refused.value) {
    level = "down";
    text = refused.value;
  } else if (!known.value) {
    level = "busy";
    text = "Asking informerd…";
  } else if (stale.length > 0) {
    level = "stale";
    const ages = stale.map((r) => ageOf(r) ?? Infinity);
    // One that is current shows that the API server answers: what is wrong with the
    // others may be one server of several, or their own.
    const readable = watched.filter((r) => r.state === "live" || r.state === "stale" || r.state === "warm");
    if (stale.length === readable.length) text = "The API server does not answer informerd";
    else text = stale.length > 5 ? `${stale.length} of ${plural(readable.length, "resource")} stale` : `${stale.map((r) => r.name).join(", ")} stale`;
    const oldest = Math.max(...ages);
    more = `${oldest < Infinity ? `data is up to ${seconds(oldest)} old` : "how old data is is not known"}; it catches up by itself`;
  } else if (of("syncing") > 0) {
    level = "busy";
    text = `Starting: ${of("syncing")} of ${watched.length} resources have no data yet`;
  } else if (of("warm") > 0) {
    level = "busy";
    text = `Warm: ${of("warm")} resources from the snapshot, catching up`;
  } else {
    text = "Live";
    more = `${count(objects)} objects of ${plural(of("live"), "resource")} in ${bytes(watched.reduce((n, r) => n + r.bytes, 0))}`;
  }
  const trouble = of("forbidden") + of("failed");
  return (
    <footer class={"status " + level}>
      <span class="dot" aria-hidden="true" />
      <span role={level === "ok" ? "status" : "alert"} class="what">
        {text}
      </span>
      <span class="more">{more}</span>
      <ClusterName />
      {!l.up && (
        <button type="button" class="button small" onClick={() => void poll()}>
          Try now{nextTry.value > now.value + 900 ? ` (${Math.round((nextTry.value - now.value) / 1000)})` : ""}
        </button>
      )}
      <span class="space" />
      {trouble > 0 && (
        <a href={href("resources", { sort: "state" })}>
          <StateIcon state={of("failed") ? "failed" : "forbidden"} /> {trouble} not readable
        </a>
      )}
    </footer>
  );
}

const keyHelp: [string, string][] = [
  ["/ or Ctrl K", "search kinds and objects"],
  ["f", "go to the filter of the view"],
  ["n", "choose the namespace to work in"],
  ["1 … 7", "the tabs of an object; e its events, y its YAML, g its graph"],
  ["↑ ↓ PgUp PgDn Home End", "move in a table"],
  ["Enter", "open the row"],
  ["p", "pause a table, and go on"],
  ["Esc", "close, leave a field, or go from an object to its kind"],
  ["?", "this help"],
];

function Help({ onClose }: { onClose: () => void }) {
  return (
    <Dialog label="Keys and marks" class="help" onClose={onClose}>
      <h2>Keys</h2>
      <dl>
        {keyHelp.map(([k, what]) => (
          <>
            <dt>
              <kbd>{k}</kbd>
            </dt>
            <dd>{what}</dd>
          </>
        ))}
      </dl>
      <h2>Marks</h2>
      <dl>
        {Object.entries(meaning).map(([s, what]) => (
          <>
            <dt>
              <StateIcon state={s as keyof typeof meaning} />
            </dt>
            <dd>{what}</dd>
          </>
        ))}
      </dl>
      <button type="button" class="button" onClick={onClose}>
        Close
      </button>
    </Dialog>
  );
}
