import type { RefObject } from "preact";
import { useLayoutEffect, useState } from "preact/hooks";

/** So many more are drawn on either side of those in sight, for the next moment of scrolling. */
const more = 12;
/** So many are drawn until it is known how many are in sight. */
const supposed = 40;
/** After a leap the others wait so long (ms): to draw all of them in one frame would hold it up. */
const pause = 80;

/** Which of many rows of one height are worth drawing: the numbers of those in sight of
 * scroller and near it, how high all are, and a way to bring one into the middle. */
export function useVirtual(count: number, height: number, scroller: RefObject<HTMLElement | null>) {
  const [sight, setSight] = useState({ first: 0, end: supposed, margin: 0 });
  useLayoutEffect(() => {
    const el = scroller.current!;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let now = sight;
    const show = (next: typeof sight) => setSight((now = next));
    const widenSoon = () => {
      clearTimeout(timer);
      timer = setTimeout(() => show({ ...now, margin: more }), pause);
    };
    const look = () => {
      const first = Math.floor(el.scrollTop / height), end = Math.ceil((el.scrollTop + el.clientHeight) / height);
      if (first === now.first && end === now.end) return;
      const leap = first >= now.end || end <= now.first;
      if (leap) widenSoon();
      show({ first, end, margin: leap ? 0 : now.margin });
    };
    const observer = new ResizeObserver(look);
    widenSoon();
    look();
    observer.observe(el);
    el.addEventListener("scroll", look);
    return () => {
      clearTimeout(timer);
      observer.disconnect();
      el.removeEventListener("scroll", look);
    };
  }, [height]);
  // A list that has become shorter shows its end until the scroller tells where it is.
  const first = Math.max(0, Math.min(sight.first, count - (sight.end - sight.first)));
  const from = Math.max(0, first - sight.margin), end = Math.min(count, sight.end + sight.margin);
  return {
    shown: Array.from({ length: Math.max(0, end - from) }, (_, i) => from + i),
    height: count * height,
    center: (index: number) => {
      const el = scroller.current!;
      el.scrollTop = index * height - (el.clientHeight - height) / 2;
    },
  };
}
