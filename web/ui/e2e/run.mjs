// The page in Chromium against a real informerd and a real API server.
//
//   node e2e/run.mjs [--screens DIR] [--pods N] [--only REGEXP]
//
// --screens writes pictures of every view. Without it nothing is written.
import { mkdirSync, readFileSync } from "node:fs";
import { execFile } from "node:child_process";
import { createRequire } from "node:module";
import { join } from "node:path";
import { promisify } from "node:util";
import { chromium } from "playwright-core";
import { sleep, startCluster, startInformerd, until } from "./cluster.mjs";

const option = (name, fallback) => {
  const i = process.argv.indexOf("--" + name);
  return i > 0 ? process.argv[i + 1] : fallback;
};
const screens = option("screens", "");
const pods = Number(option("pods", process.env.PODS ?? "2000"));
const only = option("only", "");
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

const began = Date.now();
const cluster = await startCluster(pods);
const informerd = await startInformerd(cluster);
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  headless: true,
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--js-flags=--expose-gc", "--enable-precise-memory-info"],
});

function assert(ok, what) {
  if (!ok) throw new Error(what);
}

/** Opens a page on which nothing may go wrong unnoticed. */
async function open(query, { dark = false, width = 1280, height = 760, mayFail = false } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: dark ? "dark" : "light" });
  const page = await context.newPage();
  page.troubles = [];
  page.on("pageerror", (e) => page.troubles.push("exception: " + e.message));
  page.on("console", (m) => {
    if (m.type() !== "error") return;
    // Chromium logs every answer that is an error; those are the page's business.
    if (/Failed to load resource/.test(m.text())) return;
    page.troubles.push("console: " + m.text());
  });
  await page.goto(informerd.url + query);
  page.finish = async () => {
    const t = page.troubles;
    await context.close();
    assert(mayFail || t.length === 0, t.join("; "));
  };
  return page;
}

const rowCount = (page) => page.locator(".grid").getAttribute("aria-rowcount").then((n) => Number(n) - 1);
const has = (page, text) => page.getByText(text, { exact: false }).first().waitFor({ timeout: 10_000 });
const live = (page) => page.locator("footer.status.ok").waitFor({ timeout: 30_000 });

async function noBadAxe(page, what) {
  await page.evaluate(axe);
  const result = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  const bad = result.violations.filter((v) => v.impact === "serious" || v.impact === "critical");
  assert(bad.length === 0, `${what}: ` + bad.map((v) => `${v.id} (${v.impact}): ${v.nodes.slice(0, 3).map((n) => n.target.join(" ") + " " + (n.any[0]?.message ?? "")).join(" | ")}`).join("; "));
}

// What this informerd can do; tests of what it cannot are left out.
const description = await fetch(informerd.url + "v1/openapi.json").then((r) => (r.ok ? r.text() : ""));
const routed = async (path) => (await fetch(informerd.url + path + "?whatdoyouknow")).status === 400;
const can = {
  graph: await routed("v1/graph/dangling"),
  search: await routed("v1/search"),
  filter: description.includes('"filter"') || (await fetch(informerd.url + "v1/resources/pods/objects?limit=1&filter=true")).ok,
};
console.log("beyond the basics:", Object.keys(can).filter((k) => can[k]).join(", ") || "nothing");

const pod = (name, labels = {}) => JSON.stringify({
  apiVersion: "v1", kind: "Pod", metadata: { name, namespace: "team-a", labels: { app: "page-test", ...labels } },
  spec: { containers: [{ name: "main", image: "registry.example/page:1" }] },
});
async function create(json) {
  const { writeFileSync } = await import("node:fs");
  const file = join(cluster.dir, "object.json");
  writeFileSync(file, json);
  await cluster.kubectl("apply", "-f", file);
}
const cartPod = (await cluster.kubectl("get", "pods", "-n", "shop", "-l", "app=cart", "-o", "jsonpath={.items[0].metadata.name}")).trim();
const objectQuery = (more = "") => `?view=object&resource=pods&namespace=shop&name=${cartPod}${more}`;

const tests = {
  async "resources: every one with its state"() {
    const page = await open("?view=resources");
    await live(page);
    const served = (await (await fetch(informerd.url + "v1/resources")).json()).items;
    await until(async () => (await page.locator("tbody tr").count()) === served.length, 5000, "a row for every resource");
    const state = (name) => page.locator("tbody tr", { has: page.locator(`th a:text-is("${name}")`) }).locator(".state").textContent();
    assert((await state("pods")) === "live", "pods are live");
    assert((await state("secrets")) === "forbidden", "secrets are forbidden");
    assert((await state("events")) === "unwatched", "events are not watched");
    await page.getByRole("button", { name: /forbidden/ }).click();
    await until(async () => (await page.locator("tbody tr").count()) === 1, 2000, "only what is forbidden");
    assert(page.url().includes("state=forbidden"), "the address has the state");
    await page.finish();
  },

  async "objects: a pod created at the API server appears within 2 s, and goes"() {
    for (let attempt = 1; ; attempt++) {
      const name = `page-live-${attempt}`;
      const page = await open("?view=objects&resource=pods&labelSelector=app=page-test");
      await live(page);
      await page.getByText("No Pod matches").waitFor();
      await create(pod(name));
      const applied = Date.now();
      await page.getByRole("link", { name }).waitFor({ timeout: 10_000 });
      const took = Date.now() - applied;
      console.log(`    it took ${took} ms after kubectl returned`);
      await cluster.kubectl("delete", "pod", name, "-n", "team-a", "--grace-period=0", "--force");
      await page.getByText("No Pod matches").waitFor({ timeout: 10_000 });
      await page.finish();
      if (took <= 2000) return;
      assert(attempt < 3, `a pod took ${took} ms to appear`);
    }
  },

  async "objects: selectors, columns, sorting and the address"() {
    const page = await open("?view=objects&resource=pods&namespace=shop");
    await live(page);
    const inShop = (await cluster.kubectl("get", "pods", "-n", "shop", "-o", "name")).trim().split("\n").length;
    await until(async () => (await rowCount(page)) === inShop, 5000, `${inShop} pods in shop`);
    await page.getByLabel("Labels").fill("app=cart");
    await page.getByLabel("Labels").press("Enter");
    const carts = (await cluster.kubectl("get", "pods", "-n", "shop", "-l", "app=cart", "-o", "name")).trim().split("\n").length;
    await until(async () => (await rowCount(page)) === carts, 5000, `${carts} pods with app=cart`);
    await page.getByRole("button", { name: "Columns" }).click();
    await page.getByLabel("Path of a field").fill("label:app");
    await page.getByRole("button", { name: "Add" }).click();
    await page.getByRole("columnheader", { name: "app" }).waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("columnheader", { name: "Name" }).getByRole("button").click();
    await page.locator('[aria-sort="ascending"]').waitFor();
    const url = page.url();
    assert(url.includes("labelSelector=app=cart") && url.includes("sort=name") && url.includes("label:app"), "the address carries the view: " + url);
    await page.reload();
    await until(async () => (await rowCount(page)) === carts, 5000, "the same after a reload");
    await page.getByRole("columnheader", { name: "app" }).waitFor();
    // The columns are remembered for the kind, also without the address.
    await page.goto(informerd.url + "?view=objects&resource=pods&namespace=shop");
    await page.getByRole("columnheader", { name: "app" }).waitFor();
    await page.goBack();
    await until(async () => (await rowCount(page)) === carts, 5000, "back");
    await page.finish();
  },

  async "objects: the server's error is shown where it belongs"() {
    const page = await open("?view=objects&resource=pods&labelSelector=a%3D%3D%3Db");
    await page.locator(".field.wrong .error").waitFor();
    assert((await page.getByLabel("Labels").getAttribute("aria-invalid")) === "true", "the input is marked");
    await page.getByLabel("Labels").fill("app=cart");
    await page.getByLabel("Labels").press("Enter");
    await page.getByRole("link", { name: /^cart-/ }).first().waitFor();
    await page.finish();
  },

  async "objects: not allowed, not watched, none and unknown do not look alike"() {
    const seen = new Set();
    for (const [query, heading] of [
      ["?view=objects&resource=secrets", "Not allowed"],
      ["?view=objects&resource=events", "Not watched"],
      ["?view=objects&resource=pods&labelSelector=no=such", "None"],
      ["?view=objects&resource=unicorns", "No such resource"],
    ]) {
      const page = await open(query);
      const h = page.getByRole("heading", { name: heading });
      await h.waitFor();
      seen.add(await page.locator(".absent").innerHTML());
      assert((await page.locator(".grid .rows .tr").count()) === 0, "no rows");
      await page.finish();
    }
    assert(seen.size === 4, "each looks different");
    const page = await open("?view=objects&resource=deployments.apps,secrets");
    await has(page, "secrets (not allowed)");
    await page.getByRole("link", { name: "cart" }).first().waitFor();
    await page.finish();
  },

  async "objects: many kinds, custom resources with their own columns"() {
    const page = await open("?view=objects&resource=deployments.apps,statefulsets.apps,services");
    const n = (await cluster.kubectl("get", "deployments,statefulsets,services", "-A", "-o", "name")).trim().split("\n").length;
    await until(async () => (await rowCount(page)) === n, 8000, `${n} objects of three kinds`);
    // The third kind has no stream of its own.
    await cluster.kubectl("create", "service", "clusterip", "page-third", "-n", "team-a", "--tcp=80:80");
    await until(async () => (await rowCount(page)) === n + 1, 8000, "a new Service is seen");
    await cluster.kubectl("delete", "service", "page-third", "-n", "team-a");
    await until(async () => (await rowCount(page)) === n, 8000, "it goes");
    await page.goto(informerd.url + "?view=objects&resource=mq");
    await page.getByRole("columnheader", { name: "Engine" }).waitFor();
    await page.finish();
  },

  async "objects: pause holds changes back"() {
    const page = await open("?view=objects&resource=configmaps&namespace=team-a");
    await live(page);
    await until(async () => (await rowCount(page)) > 0, 5000, "rows");
    const n = await rowCount(page);
    await page.getByRole("button", { name: "Pause" }).click();
    await cluster.kubectl("create", "configmap", "page-paused", "-n", "team-a");
    await page.getByText("1 held").waitFor();
    assert((await rowCount(page)) === n, "nothing moves while paused");
    await page.getByRole("button", { name: /Paused/ }).click();
    await until(async () => (await rowCount(page)) === n + 1, 2000, "it comes afterwards");
    await cluster.kubectl("delete", "configmap", "page-paused", "-n", "team-a");
    await page.finish();
  },

  async "objects: opened tables show their first rows soon, and scroll without gaps"() {
    const limit = pods >= 20_000 ? 1000 : 1500;
    let message = "";
    for (let attempt = 0; attempt < 3; attempt++) {
      const page = await open("?view=overview");
      await live(page);
      const start = Date.now();
      await page.evaluate(() => {
        window.longest = 0;
        new PerformanceObserver((l) => l.getEntries().forEach((e) => (window.longest = Math.max(window.longest, e.duration)))).observe({ type: "longtask" });
      });
      await page.goto(informerd.url + "?view=objects&resource=pods");
      await page.locator(".grid .rows .tr").first().waitFor();
      const first = Date.now() - start;
      const total = (await cluster.kubectl("get", "pods", "-A", "-o", "name")).trim().split("\n").length;
      await until(async () => (await rowCount(page)) === total, 60_000, `${total} rows`);
      const result = await page.evaluate(async () => {
        let longest = 0;
        const o = new PerformanceObserver((l) => l.getEntries().forEach((e) => (longest = Math.max(longest, e.duration))));
        o.observe({ type: "longtask" });
        const grid = document.querySelector(".grid");
        const frame = () => new Promise((r) => requestAnimationFrame(() => setTimeout(r)));
        let blank = 0;
        const look = async (top) => {
          grid.scrollTop = top;
          await frame();
          await frame();
          const box = grid.getBoundingClientRect();
          for (const y of [box.top + 45, box.top + box.height / 2, box.bottom - 20]) {
            if (!document.elementFromPoint(box.left + 40, y)?.closest(".rows .tr")) blank++;
          }
        };
        const end = grid.scrollHeight - grid.clientHeight;
        for (let i = 0; i <= 60; i++) await look((end * i) / 60);
        const last = [...document.querySelectorAll(".rows .tr")].at(-1).getAttribute("aria-rowindex");
        for (let i = 60; i >= 0; i--) await look((end * i) / 60);
        o.disconnect();
        return { blank, longest, last: Number(last), drawn: document.querySelectorAll(".rows .tr").length };
      });
      console.log(`    ${total} rows: the first after ${first} ms, longest task ${Math.round(result.longest)} ms, ${result.drawn} drawn`);
      assert(result.blank === 0, `${result.blank} looks found no row`);
      assert(result.last === total + 1, `the last row is ${result.last} of ${total + 1}`);
      assert(result.drawn < 120, "only what is in sight is drawn");
      await page.finish();
      if (first <= limit && result.longest <= 200) return;
      message = `first rows after ${first} ms, longest task ${result.longest} ms`;
    }
    throw new Error(message);
  },

  async "objects: rows in sight stay while others come above them"() {
    const page = await open("?view=objects&resource=configmaps&sort=name", { height: 500 });
    await live(page);
    await until(async () => (await rowCount(page)) > 60, 8000, "many rows");
    await page.evaluate(() => (document.querySelector(".grid").scrollTop = 28 * 30 + 5));
    await sleep(300);
    const look = () => page.evaluate(() => {
      const box = document.querySelector(".grid").getBoundingClientRect();
      const row = document.elementFromPoint(box.left + 40, box.top + 60).closest(".tr");
      return row.querySelector("a").title + " at " + Math.round(row.getBoundingClientRect().top);
    });
    const before = await look();
    const n = await rowCount(page);
    await cluster.kubectl("create", "configmap", "aaa-page-1", "-n", "team-a");
    await cluster.kubectl("create", "configmap", "aaa-page-2", "-n", "team-a");
    await until(async () => (await rowCount(page)) === n + 2, 5000, "two more rows");
    await sleep(200);
    assert((await look()) === before, `${before} became ${await look()}`);
    await cluster.kubectl("delete", "configmap", "aaa-page-1", "aaa-page-2", "-n", "team-a");
    await until(async () => (await rowCount(page)) === n, 5000, "gone again");
    await sleep(200);
    assert((await look()) === before, `${before} became ${await look()}`);
    await page.finish();
  },

  async "object: text, find, fold, facts"() {
    const page = await open(objectQuery());
    await page.getByRole("heading", { name: cartPod }).waitFor();
    await page.locator(".line").first().waitFor();
    const text = await page.locator(".lines").innerText();
    assert(text.includes("kind") && text.includes("Pod"), "YAML is shown");
    await page.getByLabel("Find in the text").fill("containers:");
    await page.getByLabel("Find in the text").press("Enter");
    await page.locator(".line mark").first().waitFor();
    await page.getByRole("tab", { name: "JSON" }).click();
    await page.getByText('"apiVersion"').first().waitFor();
    await page.getByRole("button", { name: "Fold", exact: true }).click();
    await page.locator(".line .more").first().waitFor();
    await page.locator(".chain a", { hasText: "Deployment cart" }).first().waitFor();
    await page.locator(".labels a", { hasText: "cart" }).first().click();
    await page.locator(".grid").waitFor();
    assert(page.url().includes("labelSelector"), "a label leads to its query");
    await page.finish();
  },

  async "object: changes as they arrive, deletion, compare, relations, events"() {
    await create(pod("page-object", { step: "one" }));
    const page = await open("?view=object&resource=pods&namespace=team-a&name=page-object&tab=changes");
    await page.getByRole("heading", { name: "page-object" }).waitFor();
    await live(page);
    await sleep(500);
    await cluster.kubectl("label", "pod", "page-object", "-n", "team-a", "--overwrite", "step=two");
    await page.locator(".changes dt", { hasText: "metadata.labels.step" }).first().waitFor({ timeout: 5000 });
    await page.locator(".changes ins", { hasText: "two" }).first().waitFor();
    await page.getByRole("tab", { name: "Compare" }).click();
    await page.getByLabel("with").fill(`shop/${cartPod}`);
    await page.getByLabel("with").press("Enter");
    await page.locator(".diff ins").first().waitFor();
    await page.getByRole("tab", { name: "Events" }).click();
    await page.locator(".tab-panel").getByText(/None: the cluster keeps|Scheduled|Not watched|Started/).first().waitFor();
    await cluster.kubectl("delete", "pod", "page-object", "-n", "team-a", "--grace-period=0", "--force");
    await page.getByText(/^deleted \d/).waitFor({ timeout: 5000 });
    await page.getByRole("heading", { name: "page-object" }).waitFor();
    await page.goto(informerd.url + "?view=object&resource=deployments.apps&namespace=shop&name=cart&tab=relations&rel=list");
    await page.locator(".tree a", { hasText: cartPod }).waitFor({ timeout: 15_000 });
    await page.goto(informerd.url + "?view=object&resource=pods&namespace=shop&name=nobody");
    await page.getByRole("heading", { name: "There is none" }).waitFor();
    await page.finish();
  },

  async "overview: bars lead to what they count"() {
    const page = await open("");
    await live(page);
    const bar = page.locator("a.bar-row", { hasText: "Deployments with replicas missing" });
    await bar.waitFor({ timeout: 15_000 });
    const n = Number(await bar.locator("b").textContent());
    await bar.click();
    await until(async () => (await rowCount(page)) === n, 5000, `${n} deployments`);
    await page.goBack();
    await page.locator("a.bar-row", { hasText: "ConfigMaps" }).first().waitFor();
    await has(page, "not allowed");
    await page.finish();
  },

  async "keyboard alone: from search to an object's relations"() {
    const page = await open("");
    await live(page);
    await page.keyboard.press("/");
    await page.getByRole("combobox", { name: "Search kinds and objects" }).waitFor();
    await page.keyboard.type("po");
    await page.locator('#hits li[aria-selected="true"]', { hasText: "Pods" }).waitFor();
    await page.keyboard.press("Enter");
    await page.locator(".grid .rows .tr").first().waitFor();
    await page.keyboard.press("f");
    await page.keyboard.type("cart");
    await page.locator(".grid .rows .tr", { hasText: "cart" }).first().waitFor(); // it may be among the last to arrive
    await page.keyboard.press("ArrowDown");
    await page.locator(".grid:focus").waitFor();
    await page.keyboard.press("ArrowDown");
    await page.locator('.tr[aria-selected="true"]', { hasText: "cart" }).waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: /^cart/ }).waitFor();
    for (let i = 0; i < 60 && !(await page.evaluate(() => document.activeElement?.getAttribute("role") === "tab")); i++) await page.keyboard.press("Tab");
    for (let i = 0; i < 3; i++) await page.keyboard.press("ArrowRight");
    await page.getByRole("tabpanel", { name: "Relations" }).waitFor();
    await page.locator(".tab-panel a", { hasText: /cart-/ }).first().waitFor();
    await page.keyboard.press("Control+k");
    await page.keyboard.type("deploy cart");
    await page.locator("#hits li", { hasText: "Deployment in shop" }).first().waitFor();
    await until(async () => {
      const on = await page.locator('#hits li[aria-selected="true"]').textContent();
      if (on.startsWith("cart") && on.includes("Deployment")) return true;
      await page.keyboard.press("ArrowDown");
      return false;
    }, 5000, "the Deployment is chosen");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "cart", exact: true }).waitFor();
    await page.finish();
  },

  async "relations: a graph and a list, with what does not exist"() {
    if (!can.graph) return "left out";
    const page = await open("?view=object&resource=deployments.apps&namespace=team-a&name=legacy-importer&tab=relations");
    await page.locator(".picture .node.root").waitFor();
    await page.locator(".picture .node.missing", { hasText: "importer-mappings" }).waitFor();
    await page.locator(".picture .node.unknown", { hasText: "ftp-credentials" }).waitFor();
    // A graph can be walked by keyboard.
    await page.locator(".picture").focus();
    await page.keyboard.press("Tab");
    assert(await page.evaluate(() => !!document.activeElement.closest(".node")), "nodes take the focus");
    await page.getByRole("button", { name: "List" }).click();
    await page.locator(".tree li", { hasText: "importer-mappings" }).getByText("does not exist").first().waitFor();
    await page.getByText("unknown: not allowed").first().waitFor();
    assert(page.url().includes("rel=list"), "the address has it");
    await page.goto(informerd.url);
    await page.locator(".dangling", { hasText: "Service that selects nothing" }).waitFor({ timeout: 15_000 });
    await page.finish();
  },

  async "objects: CEL, with the error at its column and the plan"() {
    if (!can.filter) return "left out";
    const page = await open("?view=objects&resource=pods&namespace=shop");
    await live(page);
    const input = page.getByLabel("CEL");
    await input.fill("object.metadata.name.startsWith('cart') &&");
    await input.press("Enter");
    await page.locator(".field.wrong .caret mark").waitFor();
    await page.getByRole("heading", { name: "The query was refused" }).waitFor();
    await input.fill("object.metadata.name.startsWith('cart')");
    await input.press("Enter");
    await page.getByRole("link", { name: /^cart-/ }).first().waitFor();
    await until(async () => (await page.locator(".grid .rows .tr").count()) > 0, 3000, "rows");
    for (const name of await page.locator(".grid .first a").allTextContents()) assert(name.startsWith("cart"), name);
    if (await page.getByRole("button", { name: "Plan" }).count()) {
      await page.getByRole("button", { name: "Plan" }).click();
      await page.locator(".plan dd").first().waitFor();
    }
    await page.finish();
  },

  async "search: objects of any kind by words"() {
    if (!can.search) return "left out";
    const page = await open("");
    await live(page);
    await page.keyboard.press("Control+k");
    await page.keyboard.type("checkout ns:shop");
    await page.locator("#hits li", { hasText: "Deployment in shop" }).first().waitFor();
    await page.locator("#hits li", { hasText: "Service in shop" }).first().waitFor();
    await page.keyboard.press("Escape");
    await page.finish();
  },

  async "accessibility: axe finds nothing serious on any view"() {
    for (const dark of [false, true]) {
      for (const [what, query] of Object.entries(views())) {
        const page = await open(query, { dark });
        await settled(page);
        await noBadAxe(page, what + (dark ? " (dark)" : ""));
        if (what === "overview") {
          await page.keyboard.press("/");
          await page.locator("#hits li").first().waitFor();
          await noBadAxe(page, "search");
          await page.keyboard.press("Escape");
          await page.keyboard.press("?");
          await noBadAxe(page, "help");
        }
        await page.finish();
      }
    }
  },

  async "phone: nothing wider than the screen"() {
    for (const [what, query] of Object.entries(views())) {
      const page = await open(query, { width: 390, height: 780 });
      await settled(page);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      assert(wide <= 390, `${what} is ${wide} wide`);
      await page.finish();
    }
  },

  async "memory: stable through churn"() {
    const page = await open("?view=objects&resource=configmaps&namespace=team-a");
    await live(page);
    const client = await page.context().newCDPSession(page);
    const heap = async () => {
      await client.send("HeapProfiler.collectGarbage");
      return (await client.send("Runtime.getHeapUsage")).usedSize / 1e6;
    };
    await cluster.kubectl("create", "configmap", "page-churn", "-n", "team-a");
    const churn = async (n) => {
      for (let i = 0; i < n; i++) await cluster.kubectl("annotate", "configmap", "page-churn", "-n", "team-a", "--overwrite", `n=${Math.random()}`);
    };
    await churn(5);
    await sleep(1000);
    const before = await heap();
    await churn(Number(process.env.CHURN ?? 40));
    await sleep(1000);
    const after = await heap();
    await cluster.kubectl("delete", "configmap", "page-churn", "-n", "team-a");
    console.log(`    ${before.toFixed(1)} MB, then ${after.toFixed(1)} MB`);
    assert(after < before + 3, `the heap grew from ${before} to ${after} MB`);
    await page.finish();
  },

  async "outage: with the API server away the page says so, keeps its data and catches up"() {
    const page = await open("?view=objects&resource=pods&namespace=shop", { width: 1200, height: 700 });
    await live(page);
    const n = await until(() => rowCount(page), 5000, "rows");
    await cluster.ctl("stop", "kube-apiserver");
    await page.locator("footer.status.stale").waitFor({ timeout: 30_000 });
    await has(page, "does not answer informerd");
    await page.locator(".head .state-stale").first().waitFor({ timeout: 20_000 });
    assert((await rowCount(page)) === n, "the rows are still there");
    await page.reload();
    await until(async () => (await rowCount(page)) === n, 10_000, "also after a reload");
    if (screens) await shot(page, "stale-light");
    await cluster.ctl("start", "kube-apiserver");
    await live(page);
    await cluster.kubectl("delete", "pod", cartPod, "-n", "shop", "--wait=false");
    await until(async () => !(await page.getByRole("link", { name: cartPod }).count()), 15_000, "changes arrive again");
    await page.finish();
  },

  async "restart: with informerd away the page greys its data, and recovers by itself"() {
    const page = await open("?view=objects&resource=configmaps&namespace=team-a", { mayFail: true, width: 1200, height: 700 });
    await live(page);
    const n = await until(() => rowCount(page), 5000, "rows");
    await informerd.stop();
    await page.locator("footer.status.down").waitFor({ timeout: 15_000 });
    await has(page, "informerd does not answer");
    assert((await rowCount(page)) === n, "the rows are still there");
    assert(await page.locator(".app.offline").count(), "they are greyed");
    if (screens) await shot(page, "offline-light");
    await cluster.kubectl("create", "configmap", "page-meanwhile", "-n", "team-a");
    await informerd.start();
    await page.getByRole("link", { name: "page-meanwhile" }).waitFor({ timeout: 20_000 });
    await live(page);
    await cluster.kubectl("delete", "configmap", "page-meanwhile", "-n", "team-a");
    await until(async () => (await rowCount(page)) === n, 10_000, "changes arrive again");
    await page.finish();
  },
};

function views() {
  return {
    overview: "",
    resources: "?view=resources",
    objects: "?view=objects&resource=pods&facets=1",
    many: "?view=objects&resource=deployments.apps,statefulsets.apps,services,secrets",
    forbidden: "?view=objects&resource=secrets",
    object: objectQuery(),
    relations: "?view=object&resource=deployments.apps&namespace=shop&name=cart&tab=relations",
    compare: "?view=object&resource=deployments.apps&namespace=shop&name=cart&tab=compare&with=shop/checkout",
  };
}

async function settled(page) {
  await live(page);
  await page.waitForLoadState("load");
  await sleep(600);
}

async function shot(page, name) {
  mkdirSync(screens, { recursive: true });
  const file = join(screens, name + ".png");
  await page.screenshot({ path: file });
  // A palette makes them a third as large, where there is a program for it.
  await promisify(execFile)("pngquant", ["--force", "--ext", ".png", "--speed", "1", file]).catch(() => {});
}

let failed = 0;
try {
  if (screens) {
    for (const dark of [false, true]) {
      for (const [what, query] of Object.entries(views())) {
        if (["many", "compare"].includes(what)) continue;
        const page = await open(query, { dark, width: 1200, height: 700 });
        await settled(page);
        if (what === "overview") await sleep(2500);
        await sleep(what === "relations" ? 1500 : 0);
        await shot(page, `${what}-${dark ? "dark" : "light"}`);
        if (what === "overview") {
          await page.keyboard.press("/");
          await page.keyboard.type("deploy c");
          await sleep(600);
          await shot(page, `search-${dark ? "dark" : "light"}`);
        }
        await page.finish();
      }
    }
    const page = await open("?view=objects&resource=pods&namespace=shop", { width: 390, height: 780 });
    await settled(page);
    await shot(page, "phone-light");
    await page.finish();
  }
  for (const [name, test] of Object.entries(tests)) {
    if (only && !new RegExp(only).test(name)) continue;
    const start = Date.now();
    try {
      const left = await test();
      console.log(`${left ? "skip " : "ok   "} ${name} (${left ?? Date.now() - start + " ms"})`);
    } catch (e) {
      failed++;
      console.log(`FAIL  ${name}: ${e.message.split("\n").slice(0, 4).join(" ")}`);
      for (const c of browser.contexts()) {
        const p = c.pages()[0];
        if (p && process.env.SHOTS) await p.screenshot({ path: join(process.env.SHOTS, name.replace(/\W+/g, "-").slice(0, 40) + ".png") }).catch(() => {});
        await c.close();
      }
    }
  }
} catch (e) {
  failed++;
  console.log(e);
} finally {
  await browser.close();
  await informerd.stop().catch(() => {});
  await cluster.stop();
}
console.log(`${failed ? failed + " failed" : "all passed"} in ${Math.round((Date.now() - began) / 1000)} s`);
process.exit(failed ? 1 : 0);
