import { useEffect, useMemo, useState } from "preact/hooks";
import { count } from "../format";
import { update } from "../route";
import type { Column } from "../table/columns";
import type { TableModel } from "../table/model";
import { facet } from "../table/rows";

/** The values of each column and how often they occur among what is loaded. */
export function Facets({ model, columns, words }: { model: TableModel; columns: Column[]; words: string }) {
  const [tick, redraw] = useState(0);
  useEffect(() => {
    const t = setInterval(() => redraw((n) => n + 1), 1500);
    return () => clearInterval(t);
  }, [model]);
  const size = model.view.length;
  const lists = useMemo(() => columns.map((c, i) => ({ c, values: c.type === "text" && c.id !== "name" ? facet(model.rows.view, i) : [] })), [columns, tick, size < 500 ? size : 0, words]);
  const terms: string[] = words.match(/(?:[^\s"]+|"[^"]*")+/g) ?? [];
  return (
    <aside class="facets" aria-label="Facets" tabIndex={0}>
      {lists.filter((l) => l.values.length > 1 || (l.values.length === 1 && words)).filter((l) => l.values[0]!.n > 1).map(({ c, values }) => (
        <section key={c.id}>
          <h2>{c.title}</h2>
          <ul>
            {values.map((v) => {
              const term = `${c.id}:=${/\s/.test(v.value) ? `"${v.value}"` : v.value}`.toLowerCase();
              const on = terms.includes(term);
              return (
                <li key={v.value}>
                  <button type="button" aria-pressed={on} onClick={() => update({ q: (on ? terms.filter((t) => t !== term) : [...terms, term]).join(" ") })}>
                    <i class="part" style={{ width: `${(100 * v.n) / (size || 1)}%` }} />
                    <span>{v.value || <em>none</em>}</span>
                    <small>{count(v.n)}</small>
                  </button>
                </li>
              );
            })}
          </ul>
        </section>
      ))}
    </aside>
  );
}
