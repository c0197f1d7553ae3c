import type { RefObject } from "preact";
import { useLayoutEffect, useState } from "preact/hooks";

/** So many more are drawn on either side of those in sight, for the next moment of scrolling. */
const more = 12;
/** So high is what shows them until that is known. */
const supposed = 800;

/** Which of many rows of one height are worth drawing: the numbers of those in sight of
 * scroller and near it, how high all are, and a way to bring one into the middle. */
export function useVirtual(count: number, height: number, scroller: RefObject<HTMLElement | null>) {
  const [sight, setSight] = useState({ first: 0, end: Math.ceil(supposed / height) });
  useLayoutEffect(() => {
    const el = scroller.current!;
    const look = () => {
      const first = Math.floor(el.scrollTop / height), end = Math.ceil((el.scrollTop + el.clientHeight) / height);
      setSight((before) => (before.first === first && before.end === end ? before : { first, end }));
    };
    const observer = new ResizeObserver(look);
    look();
    observer.observe(el);
    el.addEventListener("scroll", look, { passive: true });
    return () => {
      observer.disconnect();
      el.removeEventListener("scroll", look);
    };
  }, [height]);
  // A list that has become shorter shows its end until the scroller tells where it is.
  const from = Math.max(0, Math.min(sight.first, count) - more), end = Math.min(count, sight.end + more);
  return {
    shown: Array.from({ length: Math.max(0, end - from) }, (_, i) => from + i),
    height: count * height,
    center: (index: number) => {
      const el = scroller.current!;
      el.scrollTop = index * height - (el.clientHeight - height) / 2;
    },
  };
}
