// Objects as lines of YAML or JSON, with what each line folds.

export type Token = "" | "key" | "str" | "num" | "lit" | "mark" | "gone";

export interface Line {
  /** Kind and text of each piece. */
  parts: [Token, string][];
  /** The last line that folds under this one; 0 when nothing does. */
  end: number;
}

export function textOfLine(l: Line): string {
  return l.parts.map((p) => p[1]).join("");
}

/** Characters that nobody sees but that change how what is around them reads:
 * directions, joiners, spaces without width. */
const invisible = /[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202f\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\u{e0000}-\u{e0fff}]/gu;

/** A text in which such characters are seen, as escapes. */
export function shown(text: string): string {
  return text.replace(invisible, escaped);
}

function escaped(c: string): string {
  const n = c.codePointAt(0)!;
  return n > 0xffff ? `\\u{${n.toString(16)}}` : "\\u" + n.toString(16).padStart(4, "0");
}

/** A string in quotes, as JSON and YAML read it alike, with nothing in it unseen. */
function quoted(s: string): string {
  return JSON.stringify(s).replace(invisible, (c) => [...Array(c.length).keys()].map((i) => "\\u" + c.charCodeAt(i).toString(16).padStart(4, "0")).join(""));
}

/** A value that the configuration redacts. It is kept, and copied, as "". */
export const redacted = { toJSON: () => "" };

type Json = unknown;
const isMap = (v: Json): v is Record<string, Json> => typeof v === "object" && v !== null && !Array.isArray(v) && v !== redacted;

export function yamlLines(value: Json): Line[] {
  const lines: Line[] = [];
  if (isMap(value) && Object.keys(value).length) yamlMap(lines, value, 0, "");
  else if (Array.isArray(value) && value.length) yamlList(lines, value, 0, "");
  else lines.push({ parts: [scalar(value)], end: 0 });
  return lines;
}

export function yaml(value: Json): string {
  return yamlLines(value).map(copied).join("\n") + "\n";
}

/** A line as it is copied: what is redacted says so where it is read again, too. */
function copied(l: Line): string {
  return textOfLine({ ...l, parts: l.parts.map(([t, text]) => [t, t === "gone" ? '"" # redacted' : text]) });
}

function yamlMap(lines: Line[], map: Record<string, Json>, indent: number, lead: string): void {
  const first = lines.length;
  for (const [k, v] of Object.entries(map)) {
    const at = lines.length;
    const parts: [Token, string][] = [];
    const before = at === first && lead ? lead : " ".repeat(indent);
    if (before) parts.push(["mark", before]);
    parts.push(["key", plain(k) ? k : quoted(k)], ["mark", ":"]);
    const line: Line = { parts, end: 0 };
    lines.push(line);
    if (isMap(v) && Object.keys(v).length) {
      yamlMap(lines, v, indent + 2, "");
      line.end = lines.length - 1;
    } else if (Array.isArray(v) && v.length) {
      // As kubectl does: the dashes stand below the key.
      yamlList(lines, v, indent, "");
      line.end = lines.length - 1;
    } else if (typeof v === "string" && block(v)) {
      yamlBlock(lines, line, v, indent + 2);
    } else {
      parts.push(["", " "], scalar(v));
    }
  }
}

function yamlList(lines: Line[], list: Json[], indent: number, lead: string): void {
  const first = lines.length;
  for (const v of list) {
    const at = lines.length;
    const dash = (at === first && lead ? lead : " ".repeat(indent)) + "- ";
    if (isMap(v) && Object.keys(v).length) yamlMap(lines, v, indent + 2, dash);
    else if (Array.isArray(v) && v.length) yamlList(lines, v, indent + 2, dash);
    else if (typeof v === "string" && block(v)) {
      const line: Line = { parts: [["mark", dash.slice(0, -1)]], end: 0 };
      lines.push(line);
      yamlBlock(lines, line, v, indent + 2);
    } else lines.push({ parts: [["mark", dash], scalar(v)], end: 0 });
    if (lines.length - 1 > at) lines[at]!.end = lines.length - 1;
  }
}

function yamlBlock(lines: Line[], head: Line, text: string, indent: number): void {
  const body = text.replace(/\n+$/, "");
  const tail = text.length - body.length;
  head.parts.push(["mark", tail === 0 ? " |-" : tail === 1 ? " |" : " |+"]);
  const rows = body.split("\n");
  for (let i = 1; i < tail; i++) rows.push("");
  for (const row of rows) lines.push({ parts: row ? [["", " ".repeat(indent)], ["str", row]] : [["", ""]], end: 0 });
  head.end = lines.length - 1;
}

/** Whether a string reads well, and exactly, as a block. */
function block(s: string): boolean {
  return s.includes("\n") && s.search(invisible) < 0 && !/^[ \t\n]/.test(s) && !/[^\n\t\x20-\x7e\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\u{10000}-\u{10ffff}]/u.test(s) && /[^\n]/.test(s);
}

function scalar(v: Json): [Token, string] {
  if (v === null || v === undefined) return ["lit", "null"];
  if (v === redacted) return ["gone", "redacted"];
  if (typeof v === "boolean") return ["lit", String(v)];
  if (typeof v === "number") return ["num", String(v)];
  if (Array.isArray(v)) return ["mark", "[]"];
  if (typeof v === "object") return ["mark", "{}"];
  return ["str", plain(v as string) ? (v as string) : quoted(v as string)];
}

const words = /^(?:null|true|false|yes|no|on|off|y|n|~)$/i;
const numberLike = /^[-+]?(?:\.?\d|\.(?:inf|nan)$)/i;

/** Whether a string means itself in YAML without quotes. */
function plain(s: string): boolean {
  if (s === "" || words.test(s) || s.search(invisible) >= 0) return false;
  // Digits may begin what is no number: 10.0.0.1 or 2fa. Dates are quoted.
  if (numberLike.test(s) && (/^[-+]?[\d._]+(?:e[-+]?\d+)?$/i.test(s) && !/^\d+\.\d+\.\d/.test(s) || /^[-+]?0[xob]/i.test(s) || /^\d{4}-\d\d/.test(s) || /^[-+]?[\d_]+(?::[0-5]?\d)+/.test(s) || /^[-+]?\./.test(s))) return false;
  if (!/^[\w./$(+\u00a1-\ud7ff]/.test(s) && !/^-[\w]/.test(s)) return false;
  return !/[\x00-\x1f\x7f-\xa0\ufeff]|: |:$| #|\s$/.test(s);
}

export function jsonLines(value: Json): Line[] {
  const lines: Line[] = [];
  json(lines, value, 0, [], "");
  return lines;
}

function json(lines: Line[], v: Json, indent: number, lead: [Token, string][], comma: string): void {
  const list = Array.isArray(v);
  const entries: [string | null, Json][] = list ? v.map((x) => [null, x]) : isMap(v) ? Object.entries(v) : [];
  if (entries.length === 0) {
    const text = list ? "[]" : isMap(v) ? "{}" : v === redacted ? "redacted" : typeof v === "string" ? quoted(v) : JSON.stringify(v);
    const token: Token = v === redacted ? "gone" : list || isMap(v) ? "mark" : typeof v === "string" ? "str" : typeof v === "number" ? "num" : "lit";
    lines.push({ parts: comma ? [...lead, [token, text], ["mark", comma]] : [...lead, [token, text]], end: 0 });
    return;
  }
  const line: Line = { parts: [...lead, ["mark", list ? "[" : "{"]], end: 0 };
  lines.push(line);
  entries.forEach(([k, x], i) => {
    const next: [Token, string][] = [["", " ".repeat(indent + 2)]];
    if (k !== null) next.push(["key", quoted(k)], ["mark", ": "]);
    json(lines, x, indent + 2, next, i < entries.length - 1 ? "," : "");
  });
  lines.push({ parts: [["mark", " ".repeat(indent) + (list ? "]" : "}") + comma]], end: 0 });
  line.end = lines.length - 1;
}

/** The numbers of the lines in sight when some are folded. */
export function visible(lines: Line[], folded: ReadonlySet<number>): number[] {
  const out: number[] = [];
  for (let i = 0; i < lines.length; i++) {
    out.push(i);
    if (folded.has(i) && lines[i]!.end) i = lines[i]!.end;
  }
  return out;
}
