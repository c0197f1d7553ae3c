// What every test has: a cluster, an informerd, a browser, and ways to look.
import { execFile } from "node:child_process";
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { promisify } from "node:util";
import { chromium } from "playwright-core";
import { patience, sleep, startCluster, startInformerd, until } from "./cluster.mjs";

const option = (name, fallback) => {
  const i = process.argv.indexOf("--" + name);
  return i > 0 ? process.argv[i + 1] : fallback;
};
export const screens = option("screens", "");
export const pods = Number(option("pods", "2000"));
/** How long the page is watched for leaks (s). */
export const churn = Number(option("churn", "20"));
export const only = new RegExp(option("only", ""));

export const cluster = await startCluster(pods, option("cluster", ""));
export const { api } = cluster;
export const informerd = await startInformerd(cluster);
export const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  headless: true,
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});

export function assert(ok, what) {
  if (!ok) throw new Error(what);
}

/** Opens a page on which nothing may go wrong unnoticed. */
export async function open(query, { dark = false, width = 1280, height = 760, at = informerd.url, token = "" } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: dark ? "dark" : "light", permissions: ["clipboard-read", "clipboard-write"], extraHTTPHeaders: token ? { Authorization: "Bearer " + token } : {} });
  context.setDefaultTimeout(patience);
  const page = await context.newPage();
  const troubles = [];
  page.on("pageerror", (e) => troubles.push("exception: " + e.message));
  page.on("console", (m) => {
    if (m.type() !== "error") return;
    // Chromium logs every answer that is an error; those are the page's business.
    if (/Failed to load resource/.test(m.text())) return;
    troubles.push("console: " + m.text());
  });
  await page.goto(at + query);
  page.finish = async () => {
    await context.close();
    assert(troubles.length === 0, troubles.join("; "));
  };
  return page;
}

export const rowCount = (page) => page.locator(".grid").getAttribute("aria-rowcount").then((n) => Number(n) - 1);
/** Waits for so many rows; CronJobs make pods while tests run, so n may be a question. */
export const rows = (page, n, what, ms = patience) =>
  until(async () => (await rowCount(page)) === (typeof n === "function" ? await n() : n), `${typeof n === "function" ? "all" : n} ${what}`, ms);
export const has = (page, text) => page.getByText(text, { exact: false }).first().waitFor({ timeout: patience });
export const live = (page) => page.locator("footer.status.ok").waitFor({ timeout: patience });

/** Waits until a view looks as it will. */
export async function settled(page) {
  await live(page);
  await page.waitForLoadState("load");
  await sleep(350);
}

/** Begins to note how far things move by themselves; ends with the sum. */
export async function watchShifts(page) {
  await page.evaluate(() => {
    window.shifted = 0;
    window.shifts = new PerformanceObserver((l) => l.getEntries().forEach((e) => (window.shifted += e.hadRecentInput ? 0 : e.value)));
    window.shifts.observe({ type: "layout-shift" });
  });
  return () => page.evaluate(() => {
    window.shifts.disconnect();
    return window.shifted;
  });
}

/** Begins to note the tasks of pages; ends with the longest (ms). It counts the
 * time of the processor, not of the clock: others may want the machine, too. */
export async function watchTasks() {
  const session = await browser.newBrowserCDPSession();
  const events = [];
  session.on("Tracing.dataCollected", ({ value }) => events.push(...value));
  await session.send("Tracing.start", { transferMode: "ReportEvents", traceConfig: { includedCategories: ["toplevel"], excludedCategories: ["*"] } });
  return async () => {
    const complete = new Promise((r) => session.once("Tracing.tracingComplete", r));
    await session.send("Tracing.end");
    await complete;
    await session.detach();
    const thread = (e) => `${e.pid} ${e.tid}`;
    const pages = new Set(events.filter((e) => e.name === "thread_name" && e.args.name === "CrRendererMain").map(thread));
    const tasks = events.filter((e) => e.ph === "X" && e.tdur && pages.has(thread(e)));
    assert(tasks.length > 0, "the trace has tasks");
    return tasks.reduce((longest, e) => Math.max(longest, e.tdur / 1000), 0);
  };
}

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export async function noBadAxe(page, what) {
  await page.evaluate(axe);
  const result = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  const bad = result.violations.filter((v) => v.impact === "serious" || v.impact === "critical");
  assert(bad.length === 0, `${what}: ` + bad.map((v) => `${v.id} (${v.impact}): ${v.nodes.slice(0, 3).map((n) => n.target.join(" ") + " " + (n.any[0]?.message ?? "")).join(" | ")}`).join("; "));
}

export const pod = (name, labels = {}) => ({
  metadata: { name, namespace: "team-a", labels: { app: "page-test", ...labels } },
  spec: { containers: [{ name: "main", image: "registry.example/page:1" }] },
});

const carts = await api.get("core/namespaces/shop/pods?labelSelector=app%3Dcart");
export const cartPod = carts.items[0].metadata.name;
export const objectQuery = (more = "") => `?view=object&resource=pods&namespace=shop&name=${cartPod}${more}`;

/** Every view, for what must hold on all of them. */
export const views = {
  overview: "",
  resources: "?view=resources",
  objects: "?view=objects&resource=pods&facets=1",
  many: "?view=objects&resource=deployments.apps,statefulsets.apps,services,secrets",
  forbidden: "?view=objects&resource=secrets",
  object: "?view=object&resource=deployments.apps&namespace=shop&name=recommendations",
  yaml: objectQuery("&tab=yaml"),
  groups: "?view=objects&resource=pods&group=metadata.namespace",
  changes: "?view=object&resource=deployments.apps&namespace=shop&name=cart&tab=changes",
  events: objectQuery("&tab=events"),
  relations: "?view=object&resource=deployments.apps&namespace=shop&name=cart&tab=relations&depth=2",
  compare: "?view=object&resource=deployments.apps&namespace=shop&name=cart&tab=compare&with=shop/checkout",
};

/** Takes a picture, if pictures are wanted. */
export async function shot(page, name) {
  if (!screens) return;
  mkdirSync(screens, { recursive: true });
  const file = join(screens, name + ".png");
  await page.screenshot({ path: file });
  // A palette makes them a third as large, where there is a program for it.
  await promisify(execFile)("pngquant", ["--force", "--ext", ".png", "--speed", "1", file]).catch(() => {});
}
