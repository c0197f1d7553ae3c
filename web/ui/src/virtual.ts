import { elementScroll, observeElementOffset, observeElementRect, Virtualizer } from "@tanstack/virtual-core";
import type { RefObject } from "preact";
import { useLayoutEffect, useReducer, useState } from "preact/hooks";

/** Which of many rows of one height are worth drawing. */
export function useVirtual(count: number, height: number, scroller: RefObject<HTMLElement | null>, overscan = 12, margin = 0) {
  const [, redraw] = useReducer<number, void>((n) => n + 1, 0);
  const options = {
    count,
    overscan,
    paddingStart: margin,
    scrollPaddingStart: margin,
    estimateSize: () => height,
    getScrollElement: () => scroller.current,
    observeElementRect,
    observeElementOffset,
    scrollToFn: elementScroll,
    initialRect: { width: 800, height: 800 },
    onChange: () => redraw(),
  };
  const [virtual] = useState(() => new Virtualizer<HTMLElement, HTMLElement>(options));
  virtual.setOptions(options);
  useLayoutEffect(() => virtual._didMount(), []);
  useLayoutEffect(() => virtual._willUpdate());
  return virtual;
}
