import { useEffect, useMemo } from "preact/hooks";
import { count, plural } from "../format";
import { everywhere, followHealth, HealthIcon, placeOf, Since, splitId, type Counts, type Verdict } from "../health";
import { clusters, find, known, mixed } from "../resources";
import { href, params } from "../route";
import { NotAnswered } from "../ui";

// What is wrong, the worst first, with its cause in words. One click leads to the
// object, another to what shows the cause.

const shownAtMost = 12;

export function Trouble({ namespace }: { namespace: string }) {
  // Of one namespace all is asked for: what is wrong there may be beyond what is listed of all.
  const own = useMemo(() => (namespace && known.value ? followHealth({ namespace, limit: "300" }, clusters.peek(), true) : null), [namespace, known.value]);
  useEffect(() => () => own?.close(), [own]);
  const followed = own ?? everywhere.value;
  const list = followed?.list.value ?? null;
  const error = followed?.error.value;
  const items = list?.items ?? [];
  const all = params.value.get("trouble") === "all";
  const shown = all ? items : items.slice(0, shownAtMost);
  const more = items.length - shown.length + (list?.metadata.remainingItemCount ?? 0);
  return (
    <section class="card trouble" aria-label="What is wrong">
      <h2>What is wrong{list && <> <Tally c={list.summary} /></>}</h2>
      <NotAnswered of={{ value: list, error: error ?? "" }} />
      {!list && !error && <p class="soft">Looking…</p>}
      {list && items.length === 0 && <Nothing namespace={namespace} blind={list.unanswered.map((u) => u.resource)} />}
      <ol>{shown.map((v) => <Line key={(v.cluster ?? "") + v.id} v={v} />)}</ol>
      {more > 0 && (
        <p class="soft">
          {items.length > shown.length ? <a href={href("overview", { namespace, trouble: "all" })}>and {count(more)} more</a> : `and ${count(more)} more, not listed`}
        </p>
      )}
    </section>
  );
}

function Tally({ c }: { c: Counts }) {
  return (
    <small class="tally">
      {(["bad", "progressing", "unknown", "good"] as const).filter((s) => c[s] > 0).map((s) => <span key={s}><HealthIcon status={s} /> {count(c[s])} {s}</span>)}
    </small>
  );
}

/** All is well only as far as one sees. */
function Nothing({ namespace, blind }: { namespace: string; blind: string[] }) {
  return (
    <p class={blind.length ? "soft" : "tone-good"}>
      {blind.length ? `Nothing among what can be read; ${plural(blind.length, "resource")} cannot: ${blind.slice(0, 4).join(", ")}${blind.length > 4 ? ", …" : ""}` : `Nothing${namespace ? " in " + namespace : ""}: everything that is read is as it should be.`}
    </p>
  );
}

function Line({ v }: { v: Verdict }) {
  const cause = v.cause && splitId(v.cause.id);
  return (
    <li>
      <a class="trouble-row" href={placeOf(v)}>
        <HealthIcon status={v.status} />
        <span class="hidden">{v.status}: </span>
        <span class="what">
          <span class="soft">{mixed.value && v.cluster ? v.cluster + " / " : ""}{v.kind} </span>
          <b>{v.namespace ? v.namespace + "/" : ""}{v.name}</b>{" "}
          {v.reason && <span class={"word tone-" + (v.status === "bad" ? "bad" : "wait")}>{v.reason}</span>}
        </span>
        <span class="why-text">{v.message}</span>
        <span class="since soft"><Since at={v.since} /></span>
      </a>
      {cause && cause.name !== v.name && <a class="cause" href={placeOf({ ...cause, cluster: v.cluster })} title={v.cause!.message}>shown by {find(cause.resource, v.cluster)?.kind ?? cause.resource} {cause.name}{v.affected && v.affected > 1 ? ` and ${count(v.affected - 1)} more` : ""}</a>}
    </li>
  );
}
