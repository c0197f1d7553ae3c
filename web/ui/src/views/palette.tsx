import { Fragment } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { get, type List } from "../api";
import { count } from "../format";
import { placeOf } from "../health";
import { headingOf, objectsOf } from "../places";
import { clusterOf, find, keyOf, mixed, readable, resources, type Resource } from "../resources";
import { go, href, search, view } from "../route";
import { chosen as workplace, overviewOf } from "../scope";
import { Dialog, Icon, say, StateIcon } from "../ui";
import type { State } from "../api";

// Goes anywhere by typing: to kinds by any of their names, to objects by words
// ("po cart", "cart ns:shop"), to saved views.

interface Hit {
  id: string;
  label: string;
  note: string;
  to?: string;
  run?: () => void;
  state?: State;
  group: string;
}

/** An object that the server's search found. */
interface Found {
  id: string;
  cluster?: string;
  resource: string;
  kind: string;
  namespace?: string;
  name: string;
}

interface Saved {
  title: string;
  to: string;
}

const storage = "informerd.saved";

export function saved(): Saved[] {
  try {
    const v = JSON.parse(localStorage.getItem(storage) ?? "[]") as unknown;
    return Array.isArray(v) ? v.filter((s): s is Saved => !!s && typeof (s as Saved).title === "string" && typeof (s as Saved).to === "string" && (s as Saved).to.startsWith("./?")) : [];
  } catch {
    return [];
  }
}

function keep(list: Saved[]): void {
  try {
    localStorage.setItem(storage, JSON.stringify(list.slice(0, 50)));
  } catch {
    say("This browser keeps nothing: the view was not saved");
  }
}

/** How well words name a resource: lower is better, -1 not at all. */
export function rankKind(r: Pick<Resource, "name" | "resource" | "kind" | "shortNames" | "singular">, words: string): number {
  const w = words.toLowerCase();
  if (!w) return 5;
  if (r.shortNames?.includes(w)) return 0;
  if (r.resource === w || r.singular === w || r.name === w) return 1;
  if (r.resource.startsWith(w) || r.kind.toLowerCase().startsWith(w)) return 2;
  // PodDisruptionBudget by pdb
  if (r.kind.replace(/[a-z]/g, "").toLowerCase().startsWith(w)) return 3;
  if (r.name.includes(w)) return 4;
  return -1;
}

export function Palette({ onClose }: { onClose: () => void }) {
  const [text, setText] = useState("");
  /** The hit that was chosen by hand; "" the first, whichever that is. */
  const [picked, setPicked] = useState("");
  const [objects, setObjects] = useState<{ text: string; hits: Hit[]; error?: string }>({ text: "", hits: [] });
  const [stored, setStored] = useState(saved);
  /** Enter was pressed before the answer to this text was there. */
  const entered = useRef<string | null>(null);
  const pending = objects.text !== text && text.trim().length >= 2;

  useEffect(() => {
    let q = text.trim();
    if (q.length < 2) return setObjects({ text, hits: [] });
    // "deploy cart" means Deployments with that word.
    const m = /^(\S+)\s+(.*)$/.exec(q);
    const kind = m && !m[1]!.includes(":") && find(m[1]!);
    if (kind && rankKind(kind, m[1]!) <= 1) q = `kind:${kind.name} ${m[2]}`;
    const stop = new AbortController();
    const t = setTimeout(() => {
      get<List<Found>>("v1/search?" + new URLSearchParams({ q, limit: "25" }), stop.signal).then(({ body }) => {
        const hits = body.items.map((f): Hit => ({
          id: "object " + (f.cluster ?? "") + f.id, label: f.name, group: "Objects", note: `${f.kind}${f.namespace ? " in " + f.namespace : ""}${clusterOf(f) ? " of " + f.cluster : ""}`,
          to: placeOf(f),
        }));
        setObjects({ text, hits });
      }, (e: Error) => !stop.signal.aborted && setObjects({ text, hits: [], error: e.message }));
    }, 60);
    return () => {
      clearTimeout(t);
      stop.abort();
    };
  }, [text]);

  const sure = useMemo(() => {
    const w = text.trim().toLowerCase();
    return !!w && resources.value.some((r) => rankKind(r, w) >= 0 && rankKind(r, w) <= 1);
  }, [text, resources.value]);
  const hits = useMemo(() => {
    const w = text.trim().toLowerCase();
    const out: Hit[] = [];
    for (const s of stored) if (!w || s.title.toLowerCase().includes(w)) out.push({ id: "saved " + s.to, label: s.title, note: "saved", to: s.to, group: "Saved" });
    const [first = ""] = w.split(" ");
    const kinds = resources.value
      .map((r) => ({ r, rank: rankKind(r, w.includes(" ") ? first : w) }))
      .filter((x) => x.rank >= 0 && (w || x.r.objects > 0))
      .sort((a, b) => a.rank - b.rank || b.r.objects - a.r.objects)
      .slice(0, w ? 12 : 8);
    const kindHits = kinds.map(({ r }): Hit => ({
      id: "kind " + keyOf(r), label: headingOf(r), to: objectsOf(r), group: "Kinds", state: r.state,
      note: [mixed.value ? r.cluster : "", r.name, r.shortNames?.join(" ") ?? "", readable(r) ? count(r.objects) : r.state].filter(Boolean).join("  ·  "),
    }));
    const found = objects.text === text ? objects.hits : [];
    // A kind that is meant by its own name goes before objects that have it in theirs.
    const meant = sure;
    out.push(...(meant ? [...kindHits.slice(0, 3), ...found, ...(found.length ? [] : kindHits.slice(3))] : found.length ? [...found, ...kindHits] : kindHits));
    for (const [label, to] of [["Overview", overviewOf(workplace.peek())], ["Resources", href("resources")], ["Everything in one table", href("objects", { resource: "*" })]] as const) {
      if (!w || label.toLowerCase().includes(w)) out.push({ id: "view " + label, label, note: "view", to, group: "Views" });
    }
    if (view.value === "objects" || view.value === "object") {
      const here = "./?" + search.value;
      const has = stored.some((s) => s.to === here);
      const title = text.trim() || document.title.replace(/ · informerd$/, "");
      out.push({
        id: "save", group: "This view", label: has ? "Forget this saved view" : `Save this view as “${title}”`, note: "",
        run: () => {
          const next = has ? stored.filter((s) => s.to !== here) : [{ title, to: here }, ...stored];
          keep(next);
          setStored(next);
          say(has ? "Forgotten" : "Saved: find it here");
        },
      });
    }
    return out;
  }, [text, objects, stored, resources.value]);

  const chosen = Math.max(0, hits.findIndex((h) => h.id === picked));
  const pick = (i: number) => setPicked(hits[(i + hits.length) % Math.max(1, hits.length)]?.id ?? "");
  const take = (h: Hit | undefined) => {
    if (!h) return;
    onClose();
    if (h.to) go(h.to);
    else h.run?.();
  };
  // What is first now may not be first when the answer is there: Enter waits for it,
  // unless what comes first is meant whatever else is found.
  const enter = () => {
    const first = hits[chosen];
    const settled = first?.group === "Saved" || (first?.group === "Kinds" && sure);
    if (pending && !picked && !settled) entered.current = text;
    else take(first);
  };
  useEffect(() => {
    if (entered.current !== text || pending) return;
    entered.current = null;
    if (hits[0] && hits[0].id !== "save") take(hits[0]);
  }, [pending, text, hits]);
  useEffect(() => {
    document.getElementById(`hit-${chosen}`)?.scrollIntoView({ block: "nearest" });
  }, [chosen]);
  let group = "";
  return (
    <Dialog label="Search" class="palette" onClose={onClose}>
      <div class="palette-input">
        <Icon name="search" />
        <input
          type="text"
          role="combobox"
          aria-label="Search kinds and objects"
          aria-expanded="true"
          aria-controls="hits"
          aria-activedescendant={hits.length ? `hit-${chosen}` : undefined}
          placeholder="kinds, names, labels: cart ns:shop label:team=a"
          autocomplete="off"
          autocapitalize="off"
          spellcheck={false}
          autofocus
          value={text}
          onInput={(e) => {
            setText(e.currentTarget.value);
            setPicked("");
            entered.current = null;
          }}
          onKeyDown={(e) => {
            if (e.key === "ArrowDown") pick(chosen + 1);
            else if (e.key === "ArrowUp") pick(chosen - 1);
            else if (e.key === "Enter") enter();
            else if (e.key === "Tab" && hits[chosen]?.id.startsWith("kind ") && !e.shiftKey) {
              // Completes the kind, to go on with the words of an object.
              setText(hits[chosen]!.note.split("  ·  ").find((n) => /^[a-z]/.test(n)) + " ");
              setPicked("");
            } else return;
            e.preventDefault();
          }}
        />
        <kbd>Esc</kbd>
      </div>
      <ul id="hits" role="listbox" aria-label="Results">
        {hits.map((h, i) => {
          const head = h.group !== group;
          group = h.group;
          return (
            <Fragment key={h.id}>
              {head && <li role="presentation" class="group">{h.group}</li>}
              <li id={`hit-${i}`} role="option" aria-selected={i === chosen} onPointerMove={() => setPicked(h.id)} onClick={() => take(h)}>
                {h.state && h.state !== "live" && <StateIcon state={h.state} />}
                <span>{h.label}</span>
                <small>{h.note}</small>
              </li>
            </Fragment>
          );
        })}
        {pending && <li role="option" aria-selected="false" aria-disabled="true" class="soft">Searching…</li>}
        {!pending && objects.error && <li role="option" aria-selected="false" aria-disabled="true" class="error">Objects could not be searched: {objects.error}</li>}
        {!pending && !objects.error && !hits.some((h) => h.id !== "save") && <li role="option" aria-selected="false" aria-disabled="true" class="soft">Nothing matches.</li>}
      </ul>
    </Dialog>
  );
}
