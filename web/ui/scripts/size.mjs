// The whole page must stay under 75 KB of gzip, as the server sends it.
import { readdirSync, readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

const limit = 75 * 1024;
const dist = new URL("../../dist/", import.meta.url);
const html = readFileSync(new URL("index.html", dist), "utf8");
// What loads with the page; other scripts wait until they are wanted.
const first = new Set(["index.html", ...[...html.matchAll(/(?:src|href)="\.\/([^"]+)"/g)].map((m) => m[1])]);
let sum = 0;
let atOnce = 0;
for (const name of readdirSync(dist).sort()) {
  const size = gzipSync(readFileSync(new URL(name, dist)), { level: 9 }).length;
  sum += size;
  if (first.has(name)) atOnce += size;
  console.log(`${String(size).padStart(7)}  ${name}${first.has(name) ? "" : "  (later)"}`);
}
console.log(`${String(atOnce).padStart(7)}  at once`);
console.log(`${String(sum).padStart(7)}  in all; the limit is ${limit}`);
if (sum > limit) {
  console.error("the page has grown over its limit");
  process.exit(1);
}
