import { useEffect, useMemo, useState } from "preact/hooks";
import { get, type KubeObject, type List } from "../api";
import { fieldChanges, hunks, lineDiff } from "../diff";
import { plural } from "../format";
import { path, type Resource } from "../resources";
import { params, update } from "../route";
import { yaml } from "../text";
import { objectPath } from "./watch-object";

// What one object has and another of its kind has not.

export function Compare({ o, r }: { o: KubeObject; r: Resource }) {
  const withWhom = params.value.get("with") ?? "";
  const [typed, setTyped] = useState(withWhom);
  useEffect(() => setTyped(withWhom), [withWhom]);
  const [names, setNames] = useState<string[]>([]);
  const [other, setOther] = useState<KubeObject | null>(null);
  const [error, setError] = useState("");
  const all = params.value.has("all");
  const whole = params.value.has("equal");
  useEffect(() => {
    const q: Record<string, string> = { fields: "metadata.name,metadata.namespace", limit: "1000" };
    if (o.metadata.namespace) q.namespace = o.metadata.namespace;
    get<List>(path(r, "/objects", q)).then(({ body }) => setNames(body.items.map((i) => (i.metadata.namespace ? i.metadata.namespace + "/" : "") + i.metadata.name).filter((n) => !n.endsWith("/" + o.metadata.name) && n !== o.metadata.name)), () => setNames([]));
  }, [r.name, o.metadata.namespace]);
  useEffect(() => {
    setError("");
    if (!withWhom) return setOther(null);
    const [a, b] = withWhom.includes("/") ? withWhom.split("/", 2) : ["", withWhom];
    let current = true;
    get<KubeObject>(objectPath(r, a!, b!)).then(({ body }) => current && setOther(body), (e: Error) => current && (setOther(null), setError(e.message)));
    return () => {
      current = false;
    };
  }, [withWhom, r.name]);
  const diff = useMemo(() => {
    if (!other) return null;
    const strip = (x: KubeObject): KubeObject => {
      const c = JSON.parse(JSON.stringify(x)) as KubeObject;
      delete c.metadata.managedFields;
      if (!all) {
        for (const f of ["uid", "resourceVersion", "creationTimestamp", "generation"] as const) delete c.metadata[f];
        delete c.status;
      }
      return c;
    };
    const a = strip(o), b = strip(other);
    return { lines: lineDiff(yaml(a).trimEnd().split("\n"), yaml(b).trimEnd().split("\n")), fields: fieldChanges(a, b).length };
  }, [o, other, all]);
  return (
    <div class="code-box">
      <div class="bar code-bar">
        <label class="check">with <input type="text" list="compare-names" value={typed} placeholder={o.metadata.namespace ? "namespace/name" : "name"} autocomplete="off" spellcheck={false} data-filter onInput={(e) => setTyped(e.currentTarget.value)} onKeyDown={(e) => e.key === "Enter" && update({ with: typed.trim() })} onChange={(e) => update({ with: e.currentTarget.value.trim() })} /></label>
        <datalist id="compare-names">{names.map((n) => <option value={n} />)}</datalist>
        <label class="check"><input type="checkbox" checked={all} onChange={() => update({ all: all ? null : "1" })} /> identity and status, too</label>
        <label class="check"><input type="checkbox" checked={whole} onChange={() => update({ equal: whole ? null : "1" })} /> equal lines</label>
      </div>
      <div class="scroll diff" tabIndex={0} role="region" aria-label="Differences">
        {error && <p class="error">{error}</p>}
        {!withWhom && <p class="empty">Choose another {r.kind} to compare with.</p>}
        {diff && !!r.redacted?.length && <p class="strip" role="note">Not compared, because the configuration redacts their values: {r.redacted.join(", ")}</p>}
        {diff && diff.fields === 0 && <p class="empty">No difference{all ? "" : " in what they are meant to be"}.</p>}
        {diff && diff.fields > 0 && (
          <>
            <p class="soft pad">{plural(diff.fields, "field")} differ: <del>{o.metadata.name}</del> <ins>{other!.metadata.name}</ins></p>
            <pre>
              {(whole ? diff.lines : hunks(diff.lines)).map((l) =>
                typeof l === "number" ? <span class="skip-lines">{`⋯ ${plural(l, "equal line")}\n`}</span> : l.op === "-" ? <del>{`- ${l.text}\n`}</del> : l.op === "+" ? <ins>{`+ ${l.text}\n`}</ins> : <span>{`  ${l.text}\n`}</span>,
              )}
            </pre>
          </>
        )}
      </div>
    </div>
  );
}
