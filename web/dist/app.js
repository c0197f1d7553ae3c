"use strict";

// Asks for the resources every two seconds. The request carries the last ETag,
// so an answer has a body only when something changed.
const url = "v1/resources";
const interval = 2000;
const rows = document.getElementById("rows");
const filter = document.getElementById("filter");
const unwatched = document.getElementById("unwatched");
const trouble = document.getElementById("trouble");
const order = { key: "name", down: false };
let items = [];
let several = false; // clusters
let etag = "";

function text(tag, value, name) {
  const e = document.createElement(tag);
  e.textContent = value;
  if (name) e.className = name;
  return e;
}

function link(value, href) {
  const a = text("a", value);
  a.href = href;
  return a;
}

function bytes(n) {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let i = 0;
  while (n >= 1000 && i < units.length - 1) { n /= 1000; i++; }
  return (i === 0 || n >= 100 ? n.toFixed(0) : n.toFixed(1)) + " " + units[i];
}

function ago(time) {
  if (!time) return "";
  const s = Math.max(0, (Date.now() - Date.parse(time)) / 1000);
  if (s < 60) return Math.round(s) + " s ago";
  if (s < 3600) return Math.round(s / 60) + " min ago";
  if (s < 172800) return Math.round(s / 3600) + " h ago";
  return Math.round(s / 86400) + " d ago";
}

function path(item) { return url + "/" + encodeURIComponent(item.name); }
function query(item) { return item.cluster ? "?cluster=" + encodeURIComponent(item.cluster) : ""; }

function row(item) {
  const tr = document.createElement("tr");
  const name = text("th", "");
  name.scope = "row";
  const readable = ["live", "warm", "stale"].includes(item.state);
  if (several && item.cluster) name.append(item.cluster + " / ");
  name.append(readable ? link(item.name, path(item) + "/objects" + (query(item) || "?") + (query(item) ? "&" : "") + "limit=100&pretty=true") : item.name);
  const state = text("td", "");
  state.append(text("span", item.state, item.state));
  if (item.reason) state.append(text("span", item.reason, "reason"));
  const last = text("td", ago(item.lastEventTime));
  if (item.lastEventTime) last.title = item.lastEventTime;
  const indexes = text("td", "");
  for (const index of readable ? item.indexes : []) {
    indexes.append(link(index, path(item) + "/indexes/" + encodeURIComponent(index) + query(item)), " ");
  }
  const held = item.state !== "unwatched";
  tr.append(name, text("td", item.kind), state,
    text("td", held ? item.objects.toLocaleString() : "", "number"),
    text("td", held ? bytes(item.bytes) : "", "number"),
    text("td", held ? bytes(item.rawBytes) : "", "number"),
    text("td", held ? item.counts.events.toLocaleString() : "", "number"), last, indexes);
  return tr;
}

function value(item) {
  const v = order.key === "events" ? item.counts.events : item[order.key];
  return v === undefined ? "" : v;
}

function compare(a, b) {
  const x = value(a), y = value(b);
  const c = x < y ? -1 : x > y ? 1 : a.name < b.name ? -1 : 1;
  return order.down ? -c : c;
}

function draw() {
  // Redrawing would take the focus from a link in the table.
  const focus = rows.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
  const words = filter.value.toLowerCase();
  const shown = items.filter((i) => (unwatched.checked || i.state !== "unwatched") &&
    [i.cluster || "", i.name, i.kind, i.state].some((s) => s.toLowerCase().includes(words)));
  rows.replaceChildren(...shown.sort(compare).map(row));
  if (focus) for (const a of rows.querySelectorAll("a")) if (a.getAttribute("href") === focus) a.focus();

  const watched = items.filter((i) => i.state !== "unwatched");
  const live = watched.filter((i) => i.state === "live").length;
  const objects = watched.reduce((n, i) => n + i.objects, 0);
  document.getElementById("summary").textContent =
    `${live} of ${watched.length} resources live, ${objects.toLocaleString()} objects in ${bytes(watched.reduce((n, i) => n + i.bytes, 0))}`;
}

async function poll() {
  try {
    const answer = await fetch(url, { headers: etag ? { "If-None-Match": etag } : {}, cache: "no-store" });
    if (answer.status === 200) {
      items = (await answer.json()).items;
      several = new Set(items.map((i) => i.cluster)).size > 1;
      etag = answer.headers.get("ETag") || "";
    } else if (answer.status !== 304) {
      const status = await answer.json().catch(() => ({}));
      throw new Error(status.message || "HTTP " + answer.status);
    }
    trouble.hidden = true;
    draw();
  } catch (err) {
    trouble.textContent = "informerd does not answer: " + err.message;
    trouble.hidden = false;
  }
  setTimeout(poll, document.hidden ? 5 * interval : interval);
}

for (const button of document.querySelectorAll("th button")) {
  button.addEventListener("click", () => {
    const key = button.dataset.key;
    order.down = order.key === key ? !order.down : ["objects", "bytes", "rawBytes", "events", "lastEventTime"].includes(key);
    order.key = key;
    for (const th of document.querySelectorAll("thead th")) th.removeAttribute("aria-sort");
    button.parentElement.setAttribute("aria-sort", order.down ? "descending" : "ascending");
    draw();
  });
}
filter.addEventListener("input", draw);
unwatched.addEventListener("change", draw);
document.querySelector("form").addEventListener("submit", (e) => e.preventDefault());
poll();
