import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";

/** A part of the page that is loaded when it is first shown. */
export function late<P extends object>(load: () => Promise<ComponentType<P>>): ComponentType<P> {
  let part: ComponentType<P> | null = null;
  return function Late(props: P) {
    const [loaded, setLoaded] = useState({ part, failed: false });
    useEffect(() => {
      if (part) return;
      let current = true;
      load().then((c) => {
        part = c;
        if (current) setLoaded({ part, failed: false });
      }, () => current && setLoaded({ part, failed: true }));
      return () => {
        current = false;
      };
    }, []);
    if (loaded.part) return <loaded.part {...props} />;
    return <p class="empty">{loaded.failed ? "This part of the page could not be loaded; reload the page to try again." : "Loading…"}</p>;
  };
}
