// Field paths as the API takes them: spec.nodeName, spec.containers[*].image,
// metadata.labels['app.kubernetes.io/name'], spec.ports[0].port.

/** A step: a field's name, an element's number, or every element. */
export type Step = string | number | "*each";
export const each = "*each" as const;

export class PathError extends Error {
  constructor(
    message: string,
    readonly column: number,
  ) {
    super(message);
  }
}

export function parsePath(text: string): Step[] {
  const steps: Step[] = [];
  let i = 0;
  // A leading dot or $. is how other tools write the same.
  if (text.startsWith("$.")) i = 2;
  else if (text.startsWith(".")) i = 1;
  const name = /[^.[\]'"\s=!,]+/y;
  const bracket = /\[(?:(\*)|(\d+)|'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")\]/y;
  let wantName = true;
  while (i < text.length) {
    if (text[i] === "[") {
      bracket.lastIndex = i;
      const m = bracket.exec(text);
      if (!m) throw new PathError("want [*], [0] or ['name']", i + 1);
      if (m[1]) steps.push(each);
      else if (m[2] !== undefined) steps.push(Number(m[2]));
      else steps.push((m[3] ?? m[4] ?? "").replace(/\\(.)/g, "$1"));
      i = bracket.lastIndex;
      wantName = false;
      continue;
    }
    if (!wantName) {
      if (text[i] !== ".") throw new PathError("want . or [ here", i + 1);
      i++;
      wantName = true;
      continue;
    }
    name.lastIndex = i;
    const m = name.exec(text);
    if (!m) throw new PathError("want the name of a field here", i + 1);
    steps.push(m[0]);
    i = name.lastIndex;
    wantName = false;
  }
  if (wantName) throw new PathError("want the name of a field at the end", text.length + 1);
  return steps;
}

/** A path in the spelling that the API reads. */
export function formatPath(steps: Step[]): string {
  let out = "";
  for (const s of steps) {
    if (s === each) out += "[*]";
    else if (typeof s === "number") out += `[${s}]`;
    else if (/^[A-Za-z_][\w-]*$/.test(s)) out += (out ? "." : "") + s;
    else out += `['${s.replace(/[\\']/g, "\\$&")}']`;
  }
  return out;
}

/** What is at a path; with [*] all there is, otherwise at most one value. */
export function valuesAt(object: unknown, steps: Step[]): unknown[] {
  let now: unknown[] = [object];
  for (const s of steps) {
    const next: unknown[] = [];
    for (const v of now) {
      if (v === null || typeof v !== "object") continue;
      if (s === each) {
        if (Array.isArray(v)) next.push(...v);
      } else if (typeof s === "number") {
        if (Array.isArray(v) && s < v.length) next.push(v[s]);
      } else if (!Array.isArray(v) && Object.hasOwn(v, s)) {
        next.push((v as Record<string, unknown>)[s]);
      }
    }
    now = next;
  }
  return now.filter((v) => v !== undefined);
}

/** A value as text in a cell. */
export function textOf(v: unknown): string {
  if (v === null || v === undefined) return "";
  if (typeof v === "object") return JSON.stringify(v);
  return String(v);
}
