import { useEffect, useMemo } from "preact/hooks";
import { ApiError, type KubeObject } from "../api";
import { plural, time } from "../format";
import { HealthIcon, trouble } from "../health";
import { headingOf, objectsOf } from "../places";
import { byKey, find, keyOf, known, readable, type Resource } from "../resources";
import { params, update } from "../route";
import { curlOf, kubectlGet } from "../shell";
import { anyStatus, statusColumn } from "../table/columns";
import { markRedacted } from "../redact";
import { jsonLines, yaml, yamlLines } from "../text";
import { absence, copy, Icon, meaning, Popover, StateIcon, StateMark } from "../ui";
import { Old } from "./age";
import { Changes } from "./changes";
import { Code } from "./code";
import { Compare } from "./compare";
import { Events } from "./events";
import { Facts } from "./facts";
import { GraphRelations } from "./graph";
import { Summary } from "./summary";
import { objectPath, ObjectModel } from "./watch-object";

// One object: its text, what became of it, what belongs to it.

type Tab = "status" | "yaml" | "json" | "changes" | "relations" | "events" | "compare";
const tabNames: Record<Tab, string> = { status: "Status", yaml: "YAML", json: "JSON", changes: "Changes", relations: "Relations", events: "Events", compare: "Compare" };

export function ObjectView() {
  const p = params.value;
  const name = p.get("name") ?? "";
  const ns = p.get("namespace") ?? "";
  if (!known.value) return <div class="view"><p class="empty">Waiting for informerd…</p></div>;
  const r = find(p.get("resource") ?? "", p.get("cluster") ?? "");
  if (!r) {
    return (
      <div class="view">
        <div class="head"><h1>{name}</h1></div>
        <div class="absent"><StateIcon state="none" /><h2>No such resource</h2><p>The cluster serves no resource called <code>{p.get("resource")}</code>.</p></div>
      </div>
    );
  }
  return <OneObject key={`${keyOf(r)} ${ns}/${name}`} r={r} ns={ns} name={name} />;
}

function OneObject({ r: first, ns, name }: { r: Resource; ns: string; name: string }) {
  const r = byKey.value.get(keyOf(first)) ?? first;
  const able = readable(r);
  const model = useMemo(() => new ObjectModel(first, ns, name), [able]);
  useEffect(() => () => model.close(), [model]);
  useEffect(() => {
    document.title = `${name} · ${r.kind} · informerd`;
  }, [name, r.kind]);
  useEffect(() => {
    const keys = (e: KeyboardEvent) => {
      if ((e.target as Element).closest?.("input, textarea, select, dialog") || e.ctrlKey || e.metaKey || e.altKey || e.defaultPrevented) return;
      const all = Object.keys(tabNames) as Tab[];
      const to = ({ e: "events", y: "yaml", g: "relations" } as Record<string, Tab>)[e.key] ?? (/^[1-9]$/.test(e.key) ? all[Number(e.key) - 1] : undefined);
      if (!to) return;
      e.preventDefault();
      show(to);
    };
    addEventListener("keydown", keys);
    return () => removeEventListener("keydown", keys);
  }, []);
  const o = model.object.value;
  const tab = (params.value.get("tab") || "status") as Tab;
  const history = model.history.value;
  const show = (t: Tab) => update({ tab: t === "status" ? null : t });
  return (
    <div class="view object">
      <div class="head">
        <p class="crumbs">
          <a href={objectsOf(r)}>{headingOf(r)}</a>
          {ns && <> / <a href={objectsOf(r, { namespace: ns })}>{ns}</a></>}
          {" /"}
        </p>
        <h1 title={name}>{name}</h1>
        {o && <StatusWord o={o} r={r} />}
        {model.gone.value ? (
          <span class="state state-failed"><StateIcon state="failed" />deleted {time(model.gone.value)}</span>
        ) : (
          <span class="fresh">
            <StateMark state={r.state} reason={r.reason} />
            {r.state !== "live" && <Old r={r} />}
          </span>
        )}
        <span class="space" />
        {o && <ObjectMenu o={o} r={r} ns={ns} name={name} />}
      </div>
      {!o ? (
        <NoObject model={model} r={r} ns={ns} name={name} />
      ) : (
        <div class={"object-area" + (model.gone.value ? " gone" : r.state === "stale" ? " old" : "")}>
          <div class="object-main">
            <div class="tabs" role="tablist" aria-label="Parts of the object" onKeyDown={(e) => {
              if (e.key !== "ArrowLeft" && e.key !== "ArrowRight") return;
              const all = [...e.currentTarget.querySelectorAll<HTMLElement>("[role=tab]")];
              const next = all[(all.indexOf(document.activeElement as HTMLElement) + (e.key === "ArrowRight" ? 1 : all.length - 1)) % all.length];
              next?.focus();
              next?.click();
            }}>
              {(Object.keys(tabNames) as Tab[]).map((t) => (
                <button key={t} type="button" role="tab" id={"tab-" + t} aria-selected={t === tab} aria-controls="tab-panel" tabIndex={t === tab || (!Object.hasOwn(tabNames, tab) && t === "status") ? 0 : -1} onClick={() => show(t)}>
                  {tabNames[t]}
                  {t === "changes" && history.length > 0 && <small class="badge">{history.length}</small>}
                </button>
              ))}
            </div>
            <div class="tab-panel" role="tabpanel" id="tab-panel" aria-labelledby={Object.hasOwn(tabNames, tab) ? "tab-" + tab : undefined} aria-label={Object.hasOwn(tabNames, tab) ? undefined : "No such tab"}>
              {!Object.hasOwn(tabNames, tab) && <p class="empty" role="alert">There is no tab called <code>{tab}</code>. There are {Object.keys(tabNames).join(", ")}.</p>}
              {tab === "status" && <Summary o={o} r={r} />}
              {(tab === "yaml" || tab === "json") && <Text o={o} r={r} json={tab === "json"} />}
              {tab === "changes" && <Changes model={model} />}
              {tab === "relations" && <GraphRelations r={r} ns={o.metadata.namespace ?? ""} name={o.metadata.name} />}
              {tab === "events" && <Events o={o} r={r} />}
              {tab === "compare" && <Compare o={o} r={r} />}
            </div>
          </div>
          <Facts o={o} r={r} />
        </div>
      )}
    </div>
  );
}

/** How it is: what is wrong with it or with what it owns goes before its own word. */
function StatusWord({ o, r }: { o: KubeObject; r: Resource }) {
  const m = o.metadata;
  const v = trouble.value?.items.find((i) => i.resource === r.name && i.name === m.name && (i.namespace ?? "") === (m.namespace ?? "") && (!i.cluster || i.cluster === r.cluster));
  if (v) return <span class={"word tone-" + (v.status === "bad" ? "bad" : "wait")} title={v.message}><HealthIcon status={v.status} /> {v.reason || v.status}</span>;
  const word = r.name === "events" ? "" : anyStatus(o);
  if (!word) return null;
  return <span class={"word tone-" + (statusColumn.tone!(word) || "off")}>{word}</span>;
}

function NoObject({ model, r, ns, name }: { model: ObjectModel; r: Resource; ns: string; name: string }) {
  const e = model.error.value;
  if (!readable(r)) {
    return (
      <div class="absent">
        <StateIcon state={r.state} />
        <h2>{absence[r.state] ?? r.state}</h2>
        <p>{meaning[r.state]}.</p>
        {r.reason && <p class="reason"><code>{r.reason}</code></p>}
      </div>
    );
  }
  if (e instanceof ApiError && e.code === 404) {
    return (
      <div class="absent">
        <StateIcon state="none" />
        <h2>There is none</h2>
        <p>No {r.kind} {ns ? <><code>{ns}/</code></> : null}<code>{name}</code> exists{r.state === "live" ? "" : ` as far as is known (${r.state})`}. If it is created, it appears here.</p>
      </div>
    );
  }
  return <p class="empty">{e ? e.message : "Loading…"}</p>;
}

function Text({ o, r, json }: { o: KubeObject; r: Resource; json: boolean }) {
  const managed = params.value.has("managed");
  const has = !!o.metadata.managedFields;
  const marked = useMemo(() => markRedacted(o, r.redacted ?? []), [o, r.redacted?.join()]);
  const lines = useMemo(() => {
    const { object: o } = marked;
    const { managedFields, ...metadata } = o.metadata;
    const clean = managedFields && !managed ? { ...o, metadata } : o;
    return json ? jsonLines(clean) : yamlLines(clean);
  }, [marked, json, managed]);
  return (
    <Code lines={lines} label={json ? "JSON" : "YAML"}>
      {marked.n > 0 && (
        <span class="redacted" role="note" title={`The configuration redacts ${r.redacted!.join(", ")} of ${r.name}: keys are kept, values are not.`}>
          {plural(marked.n, "value")} redacted
        </span>
      )}
      {has ? (
        <label class="check"><input type="checkbox" checked={managed} onChange={() => update({ managed: managed ? null : "1" })} /> managedFields</label>
      ) : (
        <span class="soft long" title="The configuration drops metadata.managedFields before anything is stored.">no managedFields kept</span>
      )}
      <button type="button" class="button quiet" onClick={() => void copy(json ? JSON.stringify(o, null, 2) : yaml(marked.object), json ? "JSON" : "YAML")}>
        <Icon name="copy" /> Copy
      </button>
    </Code>
  );
}

function ObjectMenu({ o, r, ns, name }: { o: KubeObject; r: Resource; ns: string; name: string }) {
  const url = new URL(objectPath(r, ns, name), location.href).href;
  return (
    <Popover right label={<><Icon name="copy" /><span class="long">Copy</span></>} name="Copy" title="Copy">
      {(close) => (
        <div class="menu-items">
          <button type="button" data-autofocus onClick={() => { void copy(yaml(markRedacted(o, r.redacted ?? []).object), "YAML"); close(); }}>Copy YAML</button>
          <button type="button" onClick={() => { void copy(curlOf(url, location.href), "curl command"); close(); }}>Copy as curl</button>
          <button type="button" onClick={() => { void copy(kubectlGet(r.name, ns, name), "kubectl command"); close(); }}>Copy as kubectl</button>
          <a href={objectPath(r, ns, name)} download={name + ".json"} onClick={close}>Download JSON</a>
          <button type="button" onClick={() => { void copy(location.href, "Link"); close(); }}>Copy link to this view</button>
        </div>
      )}
    </Popover>
  );
}
