import { effect, signal, type Signal } from "@preact/signals";

/** What somebody has chosen in this window, "" until then. It outlives a reload where the
 * browser lets it. */
export function kept(key: string): Signal<string> {
  const value = signal("");
  try {
    value.value = sessionStorage.getItem(key) ?? "";
    effect(() => sessionStorage.setItem(key, value.value));
  } catch {
    // It stays as long as the page does.
  }
  return value;
}
