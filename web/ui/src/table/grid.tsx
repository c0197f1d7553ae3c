import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { count } from "../format";
import { HealthIcon, toneOfHealth, type Health } from "../health";
import { go } from "../route";
import { Age } from "../ui";
import { useVirtual } from "../virtual";
import type { Column } from "./columns";
import type { Order, Ordered, Row } from "./rows";
import { fit, matters, narrowOrder, type Wish } from "./widths";

// The rows of a table, of which only those in sight are drawn. When rows come
// and go above, what is in sight stays where it is.

export const rowHeight = 28;
const headHeight = 30;

/** Where tables were left, for those who come back. */
const left = new Map<string, { top: number; active: string }>();

export function Grid(props: {
  label: string;
  /** They may change in place; version says when. */
  rows: Ordered;
  version: number;
  columns: Column[];
  order: Order;
  /** Tables of different addresses are different tables. */
  place: string;
  busy: boolean;
  onSort: (column: number) => void;
  hrefOf: (row: Row) => string;
}) {
  const { rows } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const virtual = useVirtual(rows.length, rowHeight, scroller);
  const id = useId();
  const [active, setActive] = useState(() => left.get(props.place)?.active ?? "");
  /** The first rows in sight, and where they were. */
  const anchors = useRef<[row: Row | undefined, index: number][]>([]);
  const top = useRef(0); // a table that goes has none any more
  const layout = useRef({ shape: "", wishes: [] as Wish[] });

  const room = useRoom(scroller);
  const narrow = room < narrowest;
  // Beside a status, on a phone, a mark says how it is.
  const brief = narrow && props.columns.some((c) => c.id === "status");
  // Which column is shown where; cells and the order count them as they are given.
  const at = narrow ? narrowOrder(props.columns) : props.columns.map((_, i) => i);
  const columns = at.map((i) => props.columns[i]!);
  const shape = props.place + columns.map((c) => c.id).join() + (rows.length >= 100 ? "+" : rows.length > 0 ? "-" : "");
  if (layout.current.shape !== shape) layout.current = { shape, wishes: wishesOf(columns, at, rows, brief) };
  const widths = fit(layout.current.wishes.map((w, i) => (narrow && i === 0 ? { ...w, wanted: Math.min(w.wanted, room * 0.55), least: Math.min(w.least, room * 0.36) } : w)), room);

  // Keeps the first row in sight that is as it was in its place when rows above it come or go. Rows
  // that change may be elsewhere then, and are not followed.
  useLayoutEffect(() => {
    const el = scroller.current!;
    const a = anchors.current.find(([row]) => row && rows.indexOf(row) >= 0);
    const by = a ? rows.indexOf(a[0]!) - a[1] : 0;
    if (by && el.scrollTop) {
      el.scrollTop += by * rowHeight;
      el.dispatchEvent(new Event("scroll")); // now, not when the next frame is drawn
    }
    remark();
  }, [rows, props.version]);

  const remark = () => {
    const el = scroller.current!;
    top.current = el.scrollTop;
    const first = Math.floor(el.scrollTop / rowHeight);
    anchors.current = [0, 1, 2, 3].map((i) => [rows.at(first + i), first + i]);
  };

  // A new order or selection begins at its top, a return where it was left.
  const place = props.place;
  const restored = useRef("");
  useLayoutEffect(() => {
    const el = scroller.current!;
    if (restored.current === place) return;
    const before = left.get(place);
    if (before && rows.length * rowHeight < before.top && props.busy) return; // not long enough yet
    restored.current = place;
    el.scrollTop = before?.top ?? 0;
    anchors.current = [];
  });
  const activeRef = useRef(active);
  activeRef.current = active;
  useEffect(() => {
    return () => {
      left.set(place, { top: top.current, active: activeRef.current });
      if (left.size > 50) left.delete(left.keys().next().value!);
    };
  }, [place]);

  const move = (index: number) => {
    const to = Math.max(0, Math.min(rows.length - 1, index));
    const row = rows.at(to);
    if (!row) return;
    setActive(row.key);
    const el = scroller.current!;
    const top = to * rowHeight;
    if (top < el.scrollTop) el.scrollTop = top;
    else if (top + rowHeight + headHeight > el.scrollTop + el.clientHeight) el.scrollTop = top + rowHeight + headHeight - el.clientHeight;
  };

  const keys = (e: KeyboardEvent) => {
    if (e.target !== scroller.current || e.ctrlKey || e.metaKey || e.altKey) return;
    const now = active ? [...rows].findIndex((r) => r.key === active) : -1;
    const page = Math.max(1, Math.floor((scroller.current!.clientHeight - headHeight) / rowHeight) - 1);
    if (e.key === "ArrowDown" || e.key === "j") move(now + 1);
    else if (e.key === "ArrowUp" || e.key === "k") move(now < 0 ? 0 : now - 1);
    else if (e.key === "PageDown") move(now + page);
    else if (e.key === "PageUp") move(now - page);
    else if (e.key === "Home") move(0);
    else if (e.key === "End") move(rows.length - 1);
    else if (e.key === "Enter" && now >= 0) go(props.hrefOf(rows.at(now)!));
    else return;
    e.preventDefault();
  };

  const activeShown = active && virtual.shown.some((i) => rows.at(i)!.key === active);
  const fresh = Date.now() - 1500;
  return (
    <div
      class="grid"
      ref={scroller}
      role="grid"
      aria-label={`${props.label}, ${count(rows.length)} rows`}
      aria-rowcount={rows.length + 1}
      aria-colcount={columns.length}
      aria-busy={props.busy}
      aria-activedescendant={activeShown ? `${id}-active` : undefined}
      tabIndex={0}
      onKeyDown={keys}
      onScroll={remark}
      style={{ "--cols": widths.map((w) => w + "px").join(" ") }}
    >
      <div class="tr th" role="row" aria-rowindex={1}>
        {columns.map((c, i) => (
          <div role="columnheader" class={c.type === "text" ? "" : "number"} aria-sort={props.order.column === at[i] ? (props.order.down ? "descending" : "ascending") : "none"} key={c.id}>
            <button type="button" title={c.hint ?? c.title} onClick={() => props.onSort(at[i]!)}>
              {c.id === "health" && brief ? <span class="hidden">{c.title}</span> : c.title}
            </button>
          </div>
        ))}
      </div>
      <div class="rows" role="rowgroup" style={{ height: virtual.height + "px" }}>
        {virtual.shown.map((index) => {
          const row = rows.at(index)!;
          const on = row.key === active;
          return (
            <div
              key={row.key}
              id={on ? `${id}-active` : undefined}
              role="row"
              aria-rowindex={index + 2}
              aria-selected={on}
              class={"tr" + (on ? " on" : "") + (row.deleting ? " deleting" : "") + (row.changed > fresh ? " flash" : "")}
              style={{ top: index * rowHeight + "px" }}
              onClick={(e) => {
                setActive(row.key);
                activeRef.current = row.key;
                if (e.defaultPrevented || (e.target as Element).closest("a") || String(getSelection())) return;
                go(props.hrefOf(row));
              }}
            >
              {columns.map((c, i) => (
                <GridCell key={c.id} column={c} row={row} index={at[i]!} brief={brief} href={i === 0 ? props.hrefOf(row) : ""} />
              ))}
            </div>
          );
        })}
      </div>
    </div>
  );
}

function GridCell({ column, row, index, brief, href }: { column: Column; row: Row; index: number; brief: boolean; href: string }) {
  const v = row.cells[index] ?? null;
  if (index === 0) {
    return (
      <div role="gridcell" class="first">
        <a href={href} tabIndex={-1} title={row.name}>
          {row.name}
        </a>
      </div>
    );
  }
  if (column.type === "age") {
    return (
      <div role="gridcell" class="number" title={typeof v === "number" ? new Date(v).toISOString() : undefined}>
        {typeof v === "number" ? <Age since={v} /> : <None />}
      </div>
    );
  }
  const text = v === null ? "" : String(v);
  if (column.id === "health") return <HealthCell text={text} brief={brief} />;
  const tone = column.tone?.(text);
  return (
    <div role="gridcell" class={(column.type === "number" ? "number " : "") + (tone ? "tone-" + tone : "")} title={text.length > 8 ? text : undefined}>
      {text === "" ? <None /> : typeof v === "number" ? count(v) : text}
    </div>
  );
}

/** The reason stands in the status, too: where there is little room the word does. */
function HealthCell({ text, brief }: { text: string; brief: boolean }) {
  const [status, reason] = text.split(": ", 2) as [Health, string?];
  return (
    <div role="gridcell" class={"health-cell tone-" + (text ? toneOfHealth[status] : "off")} title={reason && text}>
      {text ? <><HealthIcon status={status} /> {brief ? <span class="hidden">{text}</span> : reason ? <><span class="hidden">{status}: </span>{reason}</> : status}</> : <None />}
    </div>
  );
}

function None() {
  return (
    <span class="none" aria-label="none">
      –
    </span>
  );
}

let ruler: CanvasRenderingContext2D | null = null;

function widthOf(text: string): number {
  if (!ruler) {
    ruler = document.createElement("canvas").getContext("2d")!;
    const style = getComputedStyle(document.body);
    ruler.font = `500 ${style.fontSize} ${style.fontFamily}`;
  }
  return ruler.measureText(text).width;
}

/** What each column needs for what the first rows show. It does not change while a
 * table is looked at: a wider value is cut and told by its title. */
function wishesOf(columns: Column[], at: number[], rows: Ordered, brief: boolean): Wish[] {
  const sample = Array.from({ length: Math.min(200, rows.length) }, (_, i) => rows.at(i)!);
  return columns.map((c, i) => {
    let longest = 0;
    if (c.type === "age") longest = widthOf("00d00h");
    // Health comes a moment later than the rows, and may change to any word.
    else if (c.id === "health") longest = widthOf("CrashLoopBackOff");
    else {
      // The longest in letters is among the widest, but need not be the widest.
      // A status may become any word, and those that are wrong may come with later pages.
      if (c.id === "status") longest = widthOf("CrashLoopBackOff");
      const texts = new Set(sample.map((r) => String(r.cells[at[i]!] ?? "")));
      for (const text of [...texts].sort((a, b) => b.length - a.length).slice(0, 6)) longest = Math.max(longest, widthOf(text));
    }
    const head = widthOf(c.title) + 29;
    const wanted = Math.ceil(Math.max(longest + (c.id === "health" ? 45 : 26), head));
    if (i === 0) return { wanted: Math.min(wanted, 520), least: Math.min(wanted, 200), grows: true };
    if (c.id === "health" && brief) return { wanted: 44, least: 44, grows: false };
    if (matters(c)) return { wanted: Math.min(wanted, 300), least: Math.min(wanted, 220), grows: false };
    return { wanted: Math.min(wanted, 420), least: Math.min(wanted, Math.max(110, head)), grows: true };
  });
}

/** Under this width the columns that matter come first. */
const narrowest = 640;

/** The width that a table has. */
function useRoom(scroller: { current: HTMLElement | null }): number {
  const [room, setRoom] = useState(0);
  useLayoutEffect(() => {
    const el = scroller.current!;
    const look = () => setRoom(el.clientWidth);
    const observer = new ResizeObserver(look);
    look();
    observer.observe(el);
    return () => observer.disconnect();
  }, []);
  return room || 1000;
}
