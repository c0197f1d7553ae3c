import { options } from "preact";
import { shown } from "./text";

// All text of the page passes here: characters that turn the direction of what
// follows, or cannot be seen, are shown as escapes. Whoever makes objects chooses
// their texts, and what is read must be what is there.

const before = options.vnode;
options.vnode = (v) => {
  // A piece of text has its text for properties.
  if (typeof v.props === "string") (v as unknown as { props: string }).props = shown(v.props);
  else if (v.props) {
    const p = v.props as { title?: unknown; "aria-label"?: unknown };
    if (typeof p.title === "string") p.title = shown(p.title);
    if (typeof p["aria-label"] === "string") p["aria-label"] = shown(p["aria-label"]);
  }
  before?.(v);
};
