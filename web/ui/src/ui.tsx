import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { State } from "./api";
import { duration } from "./format";
import { now } from "./resources";

// Small parts that several views share.

/** A state is told by shape and word, not by color alone. */
const shapes: Record<State | "none", string> = {
  live: "M8 3.5a4.5 4.5 0 1 0 0 9a4.5 4.5 0 1 0 0-9z",
  warm: "M8 2.5a5.5 5.5 0 1 0 0 11a5.5 5.5 0 1 0 0-11zm0 1.7a3.8 3.8 0 0 1 0 7.6z",
  syncing: "M8 2a6 6 0 1 1-5.6 3.9l1.6.6A4.3 4.3 0 1 0 8 3.7z",
  stale: "M8 1.8l6.8 12H1.2zM7.2 6v4h1.6V6zm0 4.9v1.5h1.6v-1.5z",
  forbidden: "M8 1.5a6.5 6.5 0 1 0 0 13a6.5 6.5 0 1 0 0-13zm0 1.8c1 0 2 .3 2.7.9L4.2 10.7a4.7 4.7 0 0 1 3.8-7.4zm3.8 2L5.3 11.8a4.7 4.7 0 0 0 6.5-6.5z",
  failed: "M4.3 3L8 6.7 11.7 3 13 4.3 9.3 8l3.7 3.7-1.3 1.3L8 9.3 4.3 13 3 11.7 6.7 8 3 4.3z",
  unwatched: "M3 7h10v2H3z",
  none: "M8 6.5a1.5 1.5 0 1 0 0 3a1.5 1.5 0 1 0 0-3z",
};

export const meaning: Record<State, string> = {
  live: "live: proven current by the API server a moment ago",
  warm: "warm: from the snapshot, not yet proven current",
  syncing: "not there yet: being listed",
  stale: "stale: not proven current any more, this is the last that was seen",
  forbidden: "not allowed: the API server refuses to let informerd read it",
  failed: "failed: it could not be read",
  unwatched: "not watched: the configuration leaves it out",
};

/** What to call a state where somebody waits for objects. */
export const absence: Partial<Record<State, string>> = {
  syncing: "Not there yet",
  forbidden: "Not allowed",
  failed: "Failed",
  unwatched: "Not watched",
};

export function StateIcon({ state }: { state: State | "none" }) {
  return (
    <svg class={`icon state-${state}`} viewBox="0 0 16 16" aria-hidden="true">
      <path fill-rule="evenodd" d={shapes[state]} />
    </svg>
  );
}

export function StateMark({ state, reason }: { state: State; reason?: string }) {
  return (
    <span class={`state state-${state}`} title={reason || meaning[state]}>
      <StateIcon state={state} />
      {state}
    </span>
  );
}

/** What is said where an answer is missing, or old. */
export function NotAnswered({ of }: { of: { value: unknown; error: string } }) {
  return of.error ? <p class="error" role="alert">{of.value ? "What is shown may be old: " : "Not known: "}{of.error}</p> : null;
}

/** How much of something there is, as a bar below its numbers. */
export function Track({ share }: { share: number }) {
  return <span class="track" aria-hidden="true"><i style={{ width: `${Math.min(100, 100 * share)}%` }} /></span>;
}

const icons = {
  search: "M7 2a5 5 0 1 0 3 9l3.3 3.3 1.1-1.1L11.1 10A5 5 0 0 0 7 2zm0 1.5a3.5 3.5 0 1 1 0 7a3.5 3.5 0 0 1 0-7z",
  pause: "M4 3h3v10H4zM9 3h3v10H9z",
  play: "M4 2.5l9 5.5-9 5.5z",
  columns: "M2 3h12v10H2zm1.5 1.5v7H6v-7zm4 0v7h1.5v-7zm3 0v7h2v-7z",
  download: "M7.25 2h1.5v6.2l2.2-2.2 1.05 1.05L8 11.05 4 7.05 5.05 6l2.2 2.2zM3 12.5h10V14H3z",
  copy: "M5 2h8v9h-2v3H3V5h2zm1.5 1.5V5H11v4.5h.5v-6zM4.5 6.5v6h5v-6z",
  close: "M4.3 3.3L8 7l3.7-3.7 1 1L9 8l3.7 3.7-1 1L8 9l-3.7 3.7-1-1L7 8 3.3 4.3z",
  down: "M3.5 6l4.5 4.5L12.5 6l-1-1L8 8.5 4.5 5z",
  bars: "M2 3h12v2H2zm0 4h8v2H2zm0 4h5v2H2z",
  right: "M6 3.5L10.5 8 6 12.5l-1-1L8.5 8 5 4.5z",
  filter: "M2 3h12v1.5L9.5 9v4.5l-3-1.5V9L2 4.5z",
  compare: "M6 2L2.5 5.5 6 9V6.25h7.5v-1.5H6zm4 5v2.75H2.5v1.5H10V14l3.5-3.5z",
} as const;

export function Icon({ name }: { name: keyof typeof icons }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
      <path fill-rule="evenodd" d={icons[name]} />
    </svg>
  );
}

/** The age of something, kept current without drawing anything around it. */
export function Age({ since }: { since: number }) {
  return <>{duration(now.value - since)}</>;
}

/** A button that opens a panel below it. */
export function Popover(props: { label: ComponentChildren; title?: string; name?: string; right?: boolean; wide?: boolean; active?: boolean; children: (close: () => void) => ComponentChildren; onOpen?: () => void }) {
  const [open, setOpen] = useState(false);
  const root = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const id = useId();
  const close = () => {
    setOpen(false);
    button.current?.focus();
  };
  useEffect(() => {
    if (!open) return;
    root.current?.querySelector<HTMLElement>("[data-autofocus]")?.focus();
    const outside = (e: Event) => {
      if (!root.current?.contains(e.target as Node)) setOpen(false);
    };
    document.addEventListener("pointerdown", outside);
    return () => document.removeEventListener("pointerdown", outside);
  }, [open]);
  return (
    <div
      class="popover"
      ref={root}
      onKeyDown={(e) => {
        if (e.key === "Escape" && open) {
          e.stopPropagation();
          close();
        }
      }}
      onFocusOut={(e) => {
        if (e.relatedTarget && !root.current?.contains(e.relatedTarget as Node)) setOpen(false);
      }}
    >
      <button
        type="button"
        ref={button}
        class={"button" + (props.active ? " active" : "")}
        title={props.title}
        aria-label={props.name}
        aria-expanded={open}
        aria-controls={open ? id : undefined}
        onClick={() => {
          if (!open) props.onOpen?.();
          setOpen(!open);
        }}
      >
        {props.label}
      </button>
      {open && (
        <div id={id} class={"panel" + (props.right ? " right" : "") + (props.wide ? " wide" : "")} role="group" aria-label={props.title}>
          {props.children(close)}
        </div>
      )}
    </div>
  );
}

/** What happened, said once at the bottom of the page and to screen readers. */
export const notice = signal("");
let noticeTimer: ReturnType<typeof setTimeout> | undefined;
export function say(text: string): void {
  notice.value = text;
  clearTimeout(noticeTimer);
  noticeTimer = setTimeout(() => (notice.value = ""), 4000);
}

export async function copy(text: string, what: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    say(`${what} copied`);
  } catch {
    // Without a secure origin there is no clipboard: let it be copied by hand.
    prompt(what, text);
  }
}

export interface Suggestion {
  /** What the input becomes. */
  value: string;
  label: string;
  note?: string;
}

/** An input with suggestions and, when the server refuses it, an error that
 * points at the place. */
export function QueryInput(props: {
  label: string;
  value: string;
  placeholder: string;
  error?: string;
  column?: number;
  suggest?: (text: string) => Promise<Suggestion[]>;
  onSubmit: (text: string) => void;
  grow?: number;
  /** On a phone it is behind a button. */
  more?: boolean;
}) {
  const [text, setText] = useState(props.value);
  const [list, setList] = useState<Suggestion[]>([]);
  const [at, setAt] = useState(-1);
  const [focused, setFocused] = useState(false);
  const id = useId();
  const input = useRef<HTMLInputElement>(null);
  const turn = useRef(0);
  useEffect(() => setText(props.value), [props.value]);
  const look = (t: string) => {
    if (!props.suggest) return;
    const mine = ++turn.current;
    setTimeout(() => {
      if (mine !== turn.current) return;
      props.suggest!(t).then((s) => {
        if (mine === turn.current) {
          setList(s.slice(0, 12));
          setAt(-1);
        }
      }, () => setList([]));
    }, 120);
  };
  const submit = (t: string) => {
    turn.current++;
    setList([]);
    if (t !== props.value) props.onSubmit(t.trim());
  };
  const take = (s: Suggestion) => {
    setText(s.value);
    setList([]);
    setAt(-1);
    input.current?.focus();
    if (/[=(,]$/.test(s.value)) look(s.value);
    else submit(s.value);
  };
  const open = focused && list.length > 0;
  const wrong = !!props.error && text === props.value;
  return (
    <div class={"field" + (wrong ? " wrong" : "") + (props.more ? " more-field" : "")} style={props.grow ? { flexGrow: props.grow } : undefined}>
      <label for={id}>{props.label}</label>
      <div class="box">
        <input
          id={id}
          ref={input}
          type="text"
          value={text}
          placeholder={props.placeholder}
          autocomplete="off"
          autocapitalize="off"
          spellcheck={false}
          role="combobox"
          aria-expanded={open}
          aria-controls={open ? id + "-list" : undefined}
          aria-autocomplete="list"
          aria-activedescendant={open && at >= 0 ? `${id}-${at}` : undefined}
          aria-invalid={wrong}
          aria-describedby={wrong ? id + "-error" : undefined}
          onFocus={() => {
            setFocused(true);
            look(text);
          }}
          onBlur={() => {
            setFocused(false);
            submit(text);
          }}
          onInput={(e) => {
            setText(e.currentTarget.value);
            look(e.currentTarget.value);
          }}
          onKeyDown={(e) => {
            if (e.key === "ArrowDown" && list.length) setAt((at + 1) % list.length);
            else if (e.key === "ArrowUp" && list.length) setAt((at - 1 + list.length) % list.length);
            else if (e.key === "Tab" && open && at >= 0) take(list[at]!);
            else if (e.key === "Enter") {
              if (open && at >= 0) take(list[at]!);
              else submit(text);
            } else if (e.key === "Escape") {
              if (open) setList([]);
              else if (text !== props.value) setText(props.value);
              else input.current?.blur();
            } else return;
            if (e.key !== "Enter" || open) e.preventDefault();
            e.stopPropagation();
          }}
        />
        {wrong && !!props.column && (
          <span class="caret" aria-hidden="true">
            <span>{text.slice(0, props.column - 1)}</span>
            <mark>{text[props.column - 1] ?? " "}</mark>
          </span>
        )}
        {open && (
          <ul id={id + "-list"} class="suggestions" role="listbox" aria-label={props.label}>
            {list.map((s, i) => (
              <li
                key={s.value}
                id={`${id}-${i}`}
                role="option"
                aria-selected={i === at}
                onPointerDown={(e) => {
                  e.preventDefault();
                  take(s);
                }}
              >
                <span>{s.label}</span>
                {s.note && <small>{s.note}</small>}
              </li>
            ))}
          </ul>
        )}
      </div>
      {wrong && (
        <p class="error" id={id + "-error"} role="alert" title={props.error}>
          {props.error}
        </p>
      )}
    </div>
  );
}

/** Keeps Tab inside a dialog and gives the focus back when it closes. */
export function Dialog(props: { label: string; onClose: () => void; class?: string; children: ComponentChildren }) {
  const ref = useRef<HTMLDialogElement>(null);
  // Before the next key: what is typed at once must arrive in it.
  useLayoutEffect(() => {
    const d = ref.current!;
    const before = document.activeElement as HTMLElement | null;
    d.showModal();
    return () => {
      d.close();
      before?.focus?.();
    };
  }, []);
  return (
    <dialog
      ref={ref}
      class={props.class}
      aria-label={props.label}
      onCancel={(e) => {
        e.preventDefault();
        props.onClose();
      }}
      onClick={(e) => {
        if (e.target === e.currentTarget) props.onClose();
      }}
    >
      {props.children}
    </dialog>
  );
}
