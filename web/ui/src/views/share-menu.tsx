import { selectionQuery, type Selection } from "../follow";
import { plural } from "../format";
import type { Resource } from "../resources";
import { kubectlOf } from "../kubectl";
import { curlOf } from "../shell";
import type { Source } from "../source";
import type { Column } from "../table/columns";
import type { TableModel } from "../table/model";
import { copy, Icon, Popover } from "../ui";

// What a table shows, for other programs.

export function csvOf(columns: Column[], rows: Iterable<{ cells: (string | number | null)[] }>): string {
  const quote = (v: string) => {
    // A spreadsheet would run what begins so.
    const safe = /^[=+\-@\t\r]/.test(v) && !/^-\d+(\.\d+)?$/.test(v) ? "'" + v : v;
    return /[",\r\n]/.test(safe) ? `"${safe.replace(/"/g, '""')}"` : safe;
  };
  const lines = [columns.map((c) => quote(c.title)).join(",")];
  for (const r of rows) lines.push(r.cells.map((v, i) => quote(v === null ? "" : columns[i]!.type === "age" ? new Date(v as number).toISOString() : String(v))).join(","));
  return lines.join("\r\n") + "\r\n";
}

function save(name: string, type: string, text: string): void {
  const a = document.createElement("a");
  a.href = URL.createObjectURL(new Blob([text], { type }));
  a.download = name;
  a.click();
  setTimeout(() => URL.revokeObjectURL(a.href), 10_000);
}

/** The command, or why there is none: one that fails, or asks something else, helps nobody. */
function Kubectl({ list, selection, words, close }: { list: Resource[]; selection: Selection; words: string; close: () => void }) {
  const k = kubectlOf(list, selection, location.href);
  if (!k.command) return <p class="soft" role="note">No kubectl command: {k.why}</p>;
  return (
    <button type="button" title={k.why} onClick={() => { void copy(k.command, "kubectl command"); close(); }}>
      Copy as kubectl{k.throughInformerd ? " of informerd" : ""}{words ? <small>less the words</small> : k.throughInformerd ? <small>{k.why}</small> : null}
    </button>
  );
}

export function ShareMenu({ list, sources, selection, model, columns, words }: { words: string;  list: Resource[]; sources: Source[]; selection: Selection; model: TableModel; columns: Column[] }) {
  const name = list.length === 1 ? list[0]!.name : "objects";
  const addresses = sources.map((s) => s.url(selectionQuery(selection)));
  return (
    <Popover right label={<><Icon name="download" /><span class="long">Export</span></>} name="Export and copy" title="Export and copy">
      {(close) => (
        <div class="menu-items">
          <button type="button" data-autofocus onClick={() => { save(name + ".csv", "text/csv", csvOf(columns, model.rows.view)); close(); }}>
            The table as CSV<small>{plural(model.view.length, "row")}</small>
          </button>
          {addresses.map((to, i) => (
            <a href={to} download={name + ".json"} onClick={close}>
              The objects as JSON<small>{sources.length > 1 ? sources[i]!.resources[0]!.cluster : "whole"}</small>
            </a>
          ))}
          {addresses.length > 0 && (
            <button type="button" onClick={() => { void copy(addresses.map((a) => curlOf(a, location.href)).join("\n"), "curl command"); close(); }}>
              Copy as curl
            </button>
          )}
          <Kubectl list={list} selection={selection} words={words} close={close} />
          <button type="button" onClick={() => { void copy(location.href, "Link"); close(); }}>
            Copy link to this view
          </button>
        </div>
      )}
    </Popover>
  );
}
