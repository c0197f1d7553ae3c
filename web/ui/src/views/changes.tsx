import type { FieldChange } from "../diff";
import { count, plural, time } from "../format";
import { yaml } from "../text";
import type { ObjectModel } from "./watch-object";

// What became of an object since it was opened: which fields moved, from what to
// what.

function Value({ v }: { v: unknown }) {
  const text = typeof v === "string" ? v : typeof v === "object" && v !== null ? yaml(v).trimEnd() : String(v);
  return <code>{text.length > 2000 ? text.slice(0, 2000) + " …" : text}</code>;
}

function FieldChanges({ changes, redacted }: { changes: FieldChange[]; redacted?: string[] }) {
  if (changes.length === 0) return <p class="soft">only its version{redacted?.length ? `, or what is redacted: ${redacted.join(", ")}` : ""}</p>;
  return (
    <dl class="changes">
      {changes.slice(0, 60).map((c) => (
        <>
          <dt><code>{c.path || "the whole object"}</code></dt>
          <dd>
            {c.before !== undefined && <del><span class="hidden">was </span><Value v={c.before} /></del>}
            {c.op === "set" && <span class="soft" aria-hidden="true"> → </span>}
            {c.after !== undefined && <ins><span class="hidden">is now </span><Value v={c.after} /></ins>}
          </dd>
        </>
      ))}
      {changes.length > 60 && <dt>and {count(changes.length - 60)} more</dt>}
    </dl>
  );
}

export function Changes({ model }: { model: ObjectModel }) {
  const history = model.history.value;
  return (
    <div class="scroll pad" tabIndex={0} role="log" aria-label="Changes">
      {history.length === 0 && (
        <p class="empty">{model.streaming.value ? "No change since this page was opened. Changes appear here as they happen." : "Changes appear here as they happen, once the connection is back."}</p>
      )}
      {history.map((m) => (
        <section class="moment" key={m.version + m.type + m.at}>
          <h3>
            <time>{time(m.at)}</time>
            {m.type === "DELETED" ? <span class="word tone-bad">deleted</span> : m.type === "ADDED" ? <span class="word tone-good">created anew</span> : <span class="soft">{plural(m.changes.length, "field")}</span>}
            <span class="soft">version {m.version}</span>
          </h3>
          {m.type === "MODIFIED" && <FieldChanges changes={m.changes} redacted={model.resource.redacted} />}
        </section>
      ))}
    </div>
  );
}
