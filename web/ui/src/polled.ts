import { useEffect, useState } from "preact/hooks";
import { errorText } from "./api";

export interface Polled<T> {
  /** The last answer; null while there is none. */
  value: T | null;
  /** Why there is no newer one; "" if there is. */
  error: string;
}

const nothing = { value: null, error: "" };

/** What ask answers, now and every so often (ms) while the page is looked at. key is the
 * question, null is none: an answer is shown under its own question only. again is
 * something else that a newer answer is due to. Where ask gives undefined the last answer
 * is still the newest. */
export function usePolled<T>(key: string | null, every: number, ask: (signal: AbortSignal) => Promise<T | undefined>, again = ""): Polled<T> {
  const [found, setFound] = useState<(Polled<T> & { key: string }) | null>(null);
  useEffect(() => {
    if (key === null) return;
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout>;
    const load = async () => {
      if (!document.hidden) {
        try {
          const value = await ask(stop.signal);
          if (value !== undefined && !stop.signal.aborted) setFound({ key, value, error: "" });
        } catch (e) {
          if (!stop.signal.aborted) setFound((was) => ({ key, value: was?.key === key ? was.value : null, error: errorText(e) }));
        }
      }
      if (!stop.signal.aborted) timer = setTimeout(() => void load(), every);
    };
    void load();
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [key, again]);
  return found?.key === key ? found : nothing;
}
