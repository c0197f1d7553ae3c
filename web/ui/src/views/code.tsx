import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { count } from "../format";
import { params, update } from "../route";
import { textOfLine, visible, type Line } from "../text";
import { Icon } from "../ui";
import { useVirtual } from "../virtual";

// A text of any length with folding and find; only the lines in sight exist.

const lineHeight = 20;

export function Code({ lines, label, children }: { lines: Line[]; label: string; children?: preact.ComponentChildren }) {
  const [folded, setFolded] = useState<ReadonlySet<number>>(new Set());
  const words = params.value.get("find") ?? "";
  const setWords = (find: string) => update({ find });
  const [hit, setHit] = useState(0);
  const scroller = useRef<HTMLDivElement>(null);
  const texts = useMemo(() => lines.map(textOfLine), [lines]);
  // An object that changes keeps its folds where its lines are the same.
  const before = useRef<{ texts: string[]; folded: ReadonlySet<number> } | null>(null);
  const folds = useMemo(() => {
    const b = before.current;
    if (!b || b.texts === texts) return folded;
    const next = new Set<number>();
    for (const i of b.folded) {
      for (let d = 0; d < 200; d++) {
        const j = [i + d, i - d].find((j) => texts[j] === b.texts[i]);
        if (j !== undefined) {
          next.add(j);
          break;
        }
      }
    }
    return next;
  }, [texts, folded]);
  useLayoutEffect(() => {
    if (folds !== folded) setFolded(folds);
    before.current = { texts, folded: folds };
  });
  const hits = useMemo(() => {
    const w = words.toLowerCase();
    return w ? texts.flatMap((t, i) => (t.toLowerCase().includes(w) ? [i] : [])) : [];
  }, [texts, words]);
  const current = hits.length ? hits[hit % hits.length]! : -1;
  const shown = useMemo(() => {
    if (current < 0) return visible(lines, folds);
    const open = new Set([...folds].filter((i) => !(i < current && lines[i]!.end >= current)));
    return visible(lines, open);
  }, [lines, folds, current]);
  const widest = useMemo(() => Math.min(2000, Math.max(40, ...texts.map((t) => t.length))), [texts]);
  const virtual = useVirtual(shown.length, lineHeight, scroller);
  useEffect(() => {
    if (current >= 0) virtual.center(shown.indexOf(current));
  }, [current, words]);
  const toggle = (i: number) => {
    const next = new Set(folds);
    if (!next.delete(i)) next.add(i);
    setFolded(next);
    before.current = { texts, folded: next };
  };
  const foldAll = () => setFolded(folds.size ? new Set() : new Set(lines.flatMap((l, i) => (l.end && /^ {0,2}\S/.test(texts[i]!) ? [i] : []))));
  return (
    <div class="code-box">
      <div class="bar code-bar">
        <input
          type="search"
          aria-label="Find in the text"
          placeholder="find"
          value={words}
          data-filter
          onInput={(e) => {
            setWords(e.currentTarget.value);
            setHit(0);
          }}
          onKeyDown={(e) => {
            if (e.key === "Enter") setHit((hit + (e.shiftKey ? hits.length - 1 : 1)) % Math.max(1, hits.length));
            else if (e.key === "Escape") {
              setWords("");
              scroller.current?.focus();
            } else return;
            e.preventDefault();
          }}
        />
        <span class="soft tally" role="status">
          {words ? (hits.length ? `${count((hit % hits.length) + 1)} of ${count(hits.length)}` : "none") : ""}
        </span>
        <span class="space" />
        {children}
        <button type="button" class="button quiet" onClick={foldAll}>
          {folds.size ? "Unfold" : "Fold"}
        </button>
      </div>
      <div class="code" ref={scroller} tabIndex={0} role="region" aria-label={label}>
        <div class="lines" style={{ height: virtual.height + "px", minWidth: `${widest + 8}ch` }}>
          {virtual.shown.map((at) => {
            const i = shown[at];
            const line = i === undefined ? undefined : lines[i];
            if (!line || i === undefined) return null;
            const closed = folds.has(i) && at + 1 < shown.length ? shown[at + 1]! > i + 1 : folds.has(i);
            return (
              <div key={i} class={"line" + (i === current ? " current" : "")} style={{ transform: `translateY(${at * lineHeight}px)` }}>
                {line.end ? (
                  <button type="button" class="fold" tabIndex={-1} aria-expanded={!closed} aria-label={`Fold line ${i + 1}`} onClick={() => toggle(i)}>
                    <Icon name={closed ? "right" : "down"} />
                  </button>
                ) : (
                  <span class="fold" />
                )}
                <span class="number" aria-hidden="true">{i + 1}</span>
                <code>
                  {(words ? marked(line.parts, texts[i]!, words) : (line.parts as [string, string, boolean?][])).map(([t, text, hit]) => {
                    const c = t ? "t-" + t : "";
                    return hit ? <mark class={c}>{text}</mark> : <span class={c}>{text}</span>;
                  })}
                  {closed && <span class="more"> … {count(line.end - i)} lines</span>}
                </code>
              </div>
            );
          })}
        </div>
      </div>
    </div>
  );
}

/** Cuts pieces of a line where what is looked for begins and ends. */
function marked(parts: Line["parts"], text: string, words: string): [string, string, boolean?][] {
  const low = text.toLowerCase();
  const w = words.toLowerCase();
  const cuts: [number, boolean][] = [];
  for (let at = low.indexOf(w); at >= 0; at = low.indexOf(w, at + w.length)) cuts.push([at, true], [at + w.length, false]);
  const out: [string, string, boolean?][] = [];
  let at = 0, on = false, next = 0;
  for (const [t, piece] of parts) {
    let from = 0;
    while (next < cuts.length && cuts[next]![0] < at + piece.length) {
      const to = cuts[next]![0] - at;
      if (to > from) out.push([t, piece.slice(from, to), on]);
      from = to;
      on = cuts[next++]![1];
    }
    if (from < piece.length) out.push([t, piece.slice(from), on]);
    at += piece.length;
  }
  return out;
}
