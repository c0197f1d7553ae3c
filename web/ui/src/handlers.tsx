import { ApiError, get, type List } from "./api";
import { usePolled } from "./polled";
import { href, view } from "./route";
import { HealthIcon } from "./health";

// What delivers changes: whether there is any of it, for the frame of the page. The rest is
// loaded when it is looked at.

export interface Handler {
  name: string;
  resources: string[];
  sink: string;
  state: string;
  reason?: string;
  known: number;
  pending: number;
  oldestSeconds: number;
  inFlight: number;
  retrying: number;
  deadLetters: number;
  delivered: number;
  failed: number;
  perSecond: number;
  filterErrors?: number;
  filterError?: string;
  lastError?: string;
  lastErrorTime?: string;
  saveError?: string;
  lines?: { cluster: string; resource: string; state: string; reason?: string; known: number }[];
  /** What who asks may do with it. */
  may?: string[];
}

/** Whether somebody should look at it. */
export const troubled = (h: Handler): boolean => h.state === "down" || h.deadLetters > 0 || !!h.saveError;

/** The way to the handlers, where there are some that may be seen. */
export function HandlersLink() {
  const { value } = usePolled("handlers", 5000, async (signal) => {
    try {
      const { items } = (await get<List<Handler>>("v1/handlers", signal)).body;
      return { some: items.length > 0, bad: items.some(troubled) };
    } catch (e) {
      if (!(e instanceof ApiError)) throw e;
      // There should be some, but they do not run; or they are not for everybody to see.
      return { some: e.code === 503, bad: true };
    }
  });
  const here = view.value === "handlers";
  if (!value?.some && !here) return null;
  return (
    <a href={href("handlers")} aria-current={here ? "page" : undefined}>
      Handlers{value?.bad && <>&nbsp;<HealthIcon status="bad" /><span class="hidden"> need attention</span></>}
    </a>
  );
}
