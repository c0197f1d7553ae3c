// The page as it loads, before a graph is opened, must stay under 60 KB of gzip.
import { readdirSync, readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

const limit = 60 * 1024;
const dist = new URL("../../dist/", import.meta.url);
const html = readFileSync(new URL("index.html", dist), "utf8");
// What the page loads at once; other scripts wait until they are wanted.
const first = new Set(["index.html", ...[...html.matchAll(/(?:src|href)="\.\/([^"]+)"/g)].map((m) => m[1])]);
for (const name of [...first].filter((n) => n.endsWith(".js"))) {
  for (const m of readFileSync(new URL(name, dist), "utf8").matchAll(/(?:^|[;\s])import(?:[^("'`;]*?from)?\s*["'`]\.\/([^"'`]+)["'`]/g)) first.add(m[1]);
}
let sum = 0;
for (const name of readdirSync(dist).sort()) {
  const size = gzipSync(readFileSync(new URL(name, dist)), { level: 9 }).length;
  if (first.has(name)) sum += size;
  console.log(`${String(size).padStart(7)}  ${name}${first.has(name) ? "" : "  (later)"}`);
}
console.log(`${String(sum).padStart(7)}  at once; the limit is ${limit}`);
if (sum > limit) {
  console.error("the page has grown over its limit");
  process.exit(1);
}
