import { computed, signal } from "@preact/signals";
import { enter, entryOf, nextEntry } from "./comeback";

// The address carries the whole state of a view, in the words of the API:
// ./?view=objects&resource=pods&namespace=shop&labelSelector=app%3Dweb&sort=-age

const views = ["overview", "resources", "objects", "object", "handlers"] as const;
export type View = (typeof views)[number];

export type Value = string | string[] | undefined | null;

/** The query of the address, without the question mark. */
export const search = signal(typeof location === "undefined" ? "" : location.search.slice(1));
export const params = computed(() => new URLSearchParams(search.value));
/** The view of the address; null if there is none of that name. */
export const view = computed<View | null>(() => {
  const v = (params.value.get("view") || "overview") as View;
  return views.includes(v) ? v : null;
});

export function query(values: Record<string, Value>): string {
  const p = new URLSearchParams();
  for (const [k, v] of Object.entries(values)) {
    if (Array.isArray(v)) for (const one of v) p.append(k, one);
    else if (v) p.set(k, v);
  }
  // Commas, slashes and colons are legal in a query, and easier to read there.
  return p.toString().replace(/%2C/g, ",").replace(/%2F/g, "/").replace(/%3A/g, ":").replace(/%3D/g, "=");
}

export function href(view: View, values: Record<string, Value> = {}): string {
  return "./?" + query({ view, ...values });
}

/** Goes to another place in the page, with an entry in the history. */
export function go(to: string): void {
  const next = to.startsWith("./?") ? to.slice(3) : to;
  if (next === search.value) return;
  history.pushState({ entry: nextEntry() }, "", "./?" + next);
  search.value = next;
}

/** Changes the state of the present view. Small changes replace the entry. */
export function update(values: Record<string, Value>, push = false): void {
  const all: Record<string, Value> = {};
  for (const k of params.value.keys()) all[k] = params.value.getAll(k);
  const next = query({ ...all, ...values });
  if (next === search.value) return;
  if (push) history.pushState({ entry: nextEntry() }, "", "./?" + next);
  else history.replaceState(history.state, "", "./?" + next);
  search.value = next;
}

/** Follows the history, and plain clicks on links within the page. */
export function follow(): void {
  addEventListener("popstate", (e) => {
    enter(entryOf(e.state));
    search.value = location.search.slice(1);
  });
  document.addEventListener("click", (e) => {
    if (e.defaultPrevented || e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return;
    const a = (e.target as Element).closest?.("a");
    const to = a?.getAttribute("href");
    if (!to?.startsWith("./?") || a!.hasAttribute("download") || a!.target) return;
    e.preventDefault();
    go(to);
  });
}
