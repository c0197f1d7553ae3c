// Where somebody was in each entry of the history, so that Back leads there: how far
// what scrolls was scrolled, and what had the focus.

interface Left {
  scroll: [key: string, top: number, left: number][];
  focus: string;
}

const entries = new Map<string, Left>();
const scrollers = "main .scroll, main .grid, main .code, main .facts, main .object-area, main > .view";
let made = 0;
let current = "";

/** A new entry of the history; the present one is left. */
export function nextEntry(): string {
  leave();
  return (current = `${Date.now()}-${made++}`);
}

/** Notes how the present entry looks. To be called before anything of it changes. */
function leave(): void {
  const scroll: Left["scroll"] = [];
  document.querySelectorAll<HTMLElement>(scrollers).forEach((el, i) => {
    if (el.scrollTop || el.scrollLeft) scroll.push([`${i} ${el.className}`, el.scrollTop, el.scrollLeft]);
  });
  entries.set(current, { scroll, focus: selectorOf(document.activeElement) });
  if (entries.size > 100) entries.delete(entries.keys().next().value!);
}

/** What finds an element again when its view is made anew. */
function selectorOf(el: Element | null): string {
  if (!el?.closest("main")) return "";
  if (el.closest(".grid")) return "main .grid";
  const to = el.getAttribute("href");
  if (to) return `main a[href="${CSS.escape(to)}"]`;
  return el.id ? `#${CSS.escape(el.id)}` : "";
}

/** Goes back to an entry: it looks as it was left, as soon as it can. */
export function enter(entry: string): void {
  leave();
  current = entry;
  const was = entries.get(entry);
  if (!was) return;
  let rest = was.scroll;
  let { focus } = was;
  const deadline = Date.now() + 10_000;
  let over = false;
  const stop = () => (over = true);
  // Who moves by themselves is not moved any more.
  const own = ["wheel", "pointerdown", "keydown", "touchstart"];
  for (const e of own) addEventListener(e, stop, { capture: true, passive: true, once: true });
  const step = () => {
    if (!over && current === entry && Date.now() < deadline) {
      const now = new Map([...document.querySelectorAll<HTMLElement>(scrollers)].map((el, i) => [`${i} ${el.className}`, el]));
      rest = rest.filter(([key, top, left]) => {
        const el = now.get(key);
        if (!el || el.scrollHeight - el.clientHeight < top - 1) return true; // not long enough yet
        el.scrollTo(left, top);
        return false;
      });
      const el = focus ? document.querySelector<HTMLElement>(focus) : null;
      if (el) {
        el.focus({ preventScroll: true });
        focus = "";
      }
      if (rest.length || focus) return void setTimeout(step, 40);
    }
    for (const e of own) removeEventListener(e, stop, { capture: true });
  };
  requestAnimationFrame(step);
}

export function entryOf(state: unknown): string {
  return (state as { entry?: string } | null)?.entry ?? "";
}
