import type { RefObject } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

// What part of a picture is in sight, and how large: moved by dragging, the wheel,
// keys and buttons, and by nothing else. When the picture changes, the object that
// it is about stays where it is on the screen.

interface Point {
  x: number;
  y: number;
}

export interface Extent {
  left: number;
  top: number;
  width: number;
  height: number;
}

/** A point p of the picture is at p * k + (x, y) in the box. */
interface At extends Point {
  k: number;
}

const smallest = 0.1, largest = 3;
/** So far a pointer moves before it drags instead of clicking. */
const slack = 4;

export function useViewport(box: RefObject<HTMLDivElement | null>, extent: Extent, root: Point, id: string) {
  const [at, setAt] = useState<At>({ x: 0, y: 0, k: 1 });
  const now = useRef(at);
  now.current = at;
  const set = (next: At) => setAt((now.current = next));
  const was = useRef<{ id: string; root: Point } | null>(null);

  useLayoutEffect(() => {
    const before = was.current;
    was.current = { id, root };
    const { x, y, k } = now.current;
    if (before?.id === id) {
      if (before.root.x !== root.x || before.root.y !== root.y) set({ x: x + (before.root.x - root.x) * k, y: y + (before.root.y - root.y) * k, k });
      return;
    }
    // At first text is of its own size: all of it if it fits, else around the object.
    const el = box.current!;
    const begin = (size: number, from: number, length: number, center: number) =>
      length <= size ? (size - length) / 2 - from : Math.min(-from, Math.max(size - from - length, size / 2 - center));
    set({ x: begin(el.clientWidth, extent.left, extent.width, root.x), y: begin(el.clientHeight, extent.top, extent.height, root.y), k: 1 });
  }, [id, root.x, root.y]);

  const zoom = (by: number, to?: Point) => {
    const el = box.current!;
    const c = to ?? { x: el.clientWidth / 2, y: el.clientHeight / 2 };
    const { x, y, k } = now.current;
    const next = Math.min(largest, Math.max(smallest, k * by));
    set({ x: c.x - ((c.x - x) * next) / k, y: c.y - ((c.y - y) * next) / k, k: next });
  };
  const fit = () => {
    const el = box.current!;
    const k = Math.min(1, el.clientWidth / extent.width, el.clientHeight / extent.height);
    set({ k, x: (el.clientWidth - extent.width * k) / 2 - extent.left * k, y: (el.clientHeight - extent.height * k) / 2 - extent.top * k });
  };
  const pan = (dx: number, dy: number) => set({ ...now.current, x: now.current.x + dx, y: now.current.y + dy });
  /** Brings a node into sight, for those who come to it by keyboard. */
  const show = (p: Point) => {
    const el = box.current!;
    const { x, y, k } = now.current;
    const into = (v: number, size: number, edge: number) => (v < edge ? edge - v : v > size - edge ? size - edge - v : 0);
    pan(into(p.x * k + x, el.clientWidth, 110 * k), into(p.y * k + y, el.clientHeight, 30 * k));
  };

  useEffect(() => {
    const el = box.current!;
    const wheel = (e: WheelEvent) => {
      e.preventDefault();
      const b = el.getBoundingClientRect();
      if (e.shiftKey) pan(-e.deltaY - e.deltaX, 0);
      else zoom(Math.exp(-Math.max(-120, Math.min(120, e.deltaY)) * (e.ctrlKey ? 0.01 : 0.002)), { x: e.clientX - b.left, y: e.clientY - b.top });
    };
    let from: Point | null = null;
    let dragged = false;
    const down = (e: PointerEvent) => {
      if (e.button !== 0) return;
      from = { x: e.clientX, y: e.clientY };
      dragged = false;
    };
    const move = (e: PointerEvent) => {
      if (!from) return;
      const dx = e.clientX - from.x, dy = e.clientY - from.y;
      if (!dragged && Math.hypot(dx, dy) < slack) return;
      if (!dragged) el.setPointerCapture(e.pointerId);
      dragged = true;
      el.classList.add("dragging");
      from = { x: e.clientX, y: e.clientY };
      pan(dx, dy);
    };
    const up = () => {
      from = null;
      el.classList.remove("dragging");
    };
    // The end of a drag is no click on what it began on.
    const click = (e: MouseEvent) => {
      if (!dragged) return;
      dragged = false;
      e.preventDefault();
      e.stopPropagation();
    };
    el.addEventListener("wheel", wheel, { passive: false });
    el.addEventListener("pointerdown", down);
    el.addEventListener("pointermove", move);
    el.addEventListener("pointerup", up);
    el.addEventListener("pointercancel", up);
    el.addEventListener("click", click, { capture: true });
    return () => {
      el.removeEventListener("wheel", wheel);
      el.removeEventListener("pointerdown", down);
      el.removeEventListener("pointermove", move);
      el.removeEventListener("pointerup", up);
      el.removeEventListener("pointercancel", up);
      el.removeEventListener("click", click, { capture: true });
    };
  }, []);

  const keys = (e: KeyboardEvent) => {
    if (e.ctrlKey || e.metaKey || e.altKey || e.target !== box.current) return;
    const steps: Record<string, () => void> = {
      ArrowLeft: () => pan(60, 0), ArrowRight: () => pan(-60, 0), ArrowUp: () => pan(0, 60), ArrowDown: () => pan(0, -60),
      "+": () => zoom(1.25), "=": () => zoom(1.25), "-": () => zoom(1 / 1.25), "0": fit,
    };
    if (!Object.hasOwn(steps, e.key)) return;
    steps[e.key]!();
    e.preventDefault();
    e.stopPropagation();
  };
  return { at, zoom, fit, show, keys };
}
