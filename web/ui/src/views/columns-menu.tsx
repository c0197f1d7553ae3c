import { useState } from "preact/hooks";
import { errorText } from "../api";
import { parsePath, PathError } from "../paths";
import type { Resource } from "../resources";
import type { Column } from "../table/columns";
import { joinIds } from "../table/setup";
import { Icon, Popover } from "../ui";

// Which columns a table has.

export function ColumnsMenu({ offered, shown, columns, one, onChange }: { offered: Column[]; shown: string[]; columns: Column[]; one: Resource | null; onChange: (ids: string[] | null) => void }) {
  const [text, setText] = useState("");
  const [error, setError] = useState("");
  const ids = columns.map((c) => c.id);
  const changed = joinIds(ids) !== joinIds(shown);
  const custom = columns.filter((c) => !offered.some((o) => o.id === c.id));
  // Offered columns keep their order; those somebody added come before the age.
  const put = (next: string[]) => {
    const rank = (id: string) => (id === "age" ? 1000 : offered.findIndex((o) => o.id === id) >= 0 ? offered.findIndex((o) => o.id === id) : 500 + next.indexOf(id));
    const sorted = [...next].sort((a, b) => rank(a) - rank(b));
    onChange(joinIds(sorted) === joinIds(shown) ? null : sorted);
  };
  const add = () => {
    const t = text.trim();
    if (!t) return;
    try {
      if (!t.startsWith("label:")) parsePath(t);
    } catch (e) {
      setError(e instanceof PathError ? `column ${e.column}: ${e.message}` : errorText(e));
      return;
    }
    setError("");
    setText("");
    put([...ids, t]);
  };
  return (
    <Popover right label={<><Icon name="columns" /><span class="long">Columns</span></>} name="Columns" title="Columns" active={changed}>
      {() => (
        <>
          <div class="choices">
            {offered.filter((c) => c.id !== "name").map((c) => (
              <label key={c.id}>
                <input type="checkbox" checked={ids.includes(c.id)} onChange={() => put(ids.includes(c.id) ? ids.filter((i) => i !== c.id) : [...ids, c.id])} /> <span>{c.title}</span>
              </label>
            ))}
            {custom.map((c) => (
              <label key={c.id}>
                <input type="checkbox" checked onChange={() => put(ids.filter((i) => i !== c.id))} /> <span><code>{c.id}</code></span>
              </label>
            ))}
          </div>
          <form onSubmit={(e) => { e.preventDefault(); add(); }}>
            <input type="text" value={text} data-autofocus aria-label="Path of a field, or label:KEY" placeholder="spec.nodeName or label:app" autocomplete="off" spellcheck={false} aria-invalid={!!error} onInput={(e) => setText(e.currentTarget.value)} />
            <button type="submit" class="button">Add</button>
          </form>
          {error && <p class="error" role="alert">{error}</p>}
          {changed && <button type="button" class="button quiet" onClick={() => onChange(null)}>Back to the usual columns{one ? ` of ${one.kind}` : ""}</button>}
        </>
      )}
    </Popover>
  );
}
