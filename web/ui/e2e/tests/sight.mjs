// What a person sees: where things are, how large, in which color, and what a screen
// reader is told. Text that is somewhere in the document proves none of it.
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { sleep, startInformerd, until } from "../cluster.mjs";
import { api, assert, cluster, informerd, live, noBadAxe, objectQuery, open, rowCount, rows } from "../world.mjs";

/** Boxes of elements, and whether their text is cut. */
const boxes = (locator) => locator.evaluateAll((all) => all.map((el) => {
  const b = el.getBoundingClientRect();
  return { text: el.textContent, x: b.x, y: b.y, width: b.width, height: b.height, right: b.right, bottom: b.bottom, cut: el.scrollWidth > el.clientWidth + 1 };
}));

/** The row at a place in the table, and where it is. */
const rowAt = (page, y = 60) => page.evaluate((y) => {
  const b = document.querySelector(".grid").getBoundingClientRect();
  const row = document.elementFromPoint(b.left + 40, b.top + y)?.closest(".rows .tr");
  return row ? `${row.querySelector(".first").textContent} at ${Math.round(row.getBoundingClientRect().top)}` : "";
}, y);

const search = (page) => page.getByRole("combobox", { name: "Search kinds and objects" });

export default {
  async "seen: the namespaces of the picker have names"() {
    const page = await open("?view=objects&resource=pods");
    await live(page);
    await page.getByRole("button", { name: "Namespaces: all" }).click();
    await page.locator(".choices label", { hasText: "kube-system" }).waitFor();
    for (const b of await boxes(page.locator(".choices label span"))) assert(b.width > 20 && b.height > 10 && !b.cut, `a name is seen: ${JSON.stringify(b)}`);
    for (const b of await boxes(page.locator(".choices input"))) assert(b.width < 30, `a box is no wider than a box: ${b.width}`);
    // What the table counts is of all its kinds.
    await page.goto(informerd.url + "?view=objects&resource=deployments.apps,services,configmaps");
    const n = (await Promise.all(["apps/namespaces/shop/deployments", "core/namespaces/shop/services", "core/namespaces/shop/configmaps"].map((p) => api.count(p)))).reduce((a, b) => a + b);
    await page.getByRole("button", { name: "Namespaces: all" }).click();
    await page.locator(".choices label", { hasText: "shop" }).locator("small", { hasText: new RegExp(`^${n}$`) }).waitFor({ timeout: 20_000 });
    await page.finish();
  },

  async "seen: a redacted value does not look like an empty one, what turns text around is escaped, and labels show their values"() {
    const long = "example.com/" + "a-rather-long-name-of-a-label-that-fills-its-chip-whole".slice(0, 60);
    await api.create("core/namespaces/team-a/secrets", { metadata: { name: "page-secret", labels: { [long]: "the-value" }, annotations: { note: "abc\u202egnp.exe" } }, data: { "api-key": "c2VjcmV0", empty: "" } });
    const all = await startInformerd(cluster, { name: "secrets", kubeconfig: join(cluster.dir, "kubeconfig") });
    try {
      const page = await open("?view=object&resource=secrets&namespace=team-a&name=page-secret&tab=yaml", { at: all.url });
      const line = page.locator(".line", { hasText: "api-key" });
      await line.waitFor();
      const [value] = await boxes(line.locator("code > span").last());
      assert(value.text === "redacted" && value.width > 40, `it says that it is redacted: ${JSON.stringify(value)}`);
      const back = (l) => l.evaluate((el) => getComputedStyle(el).backgroundImage);
      assert((await back(line.locator("code > span").last())) !== "none", "it looks like nothing else");
      await page.getByRole("note").filter({ hasText: "2 values redacted" }).waitFor();
      const [key, chip] = await boxes(page.locator(".labels a", { hasText: "the-value" }).locator("span, b"));
      for (const b of [key, chip]) assert(!b.cut && b.width > 20 && b.right <= 1280, `a label is seen whole: ${JSON.stringify(b)}`);
      await page.locator("summary", { hasText: "Annotations" }).click();
      const note = page.locator(".annotations dd", { hasText: "abc" });
      assert((await note.innerText()) === "abc\\u202egnp.exe", `a turn of direction is shown: ${JSON.stringify(await note.innerText())}`);
      await page.finish();
    } finally {
      await all.stop();
      await api.delete("core/namespaces/team-a/secrets/page-secret");
    }
  },

  async "seen: Enter opens what was typed, however fast, and no answer is not nothing"() {
    const page = await open("");
    await live(page);
    let answer;
    const held = new Promise((r) => (answer = r));
    await page.route("**/v1/search*", async (route) => {
      await held;
      await route.continue();
    });
    await page.keyboard.press("/");
    await page.keyboard.type("payments-api ns:payments kind:deploy");
    await page.keyboard.press("Enter"); // before there is any answer
    await sleep(300);
    await search(page).waitFor();
    assert((await page.getByText("Nothing matches").count()) === 0, "nothing is said of what is not known");
    await page.getByRole("option", { name: "Searching…" }).waitFor();
    answer();
    await page.getByRole("heading", { level: 1, name: "payments-api", exact: true }).waitFor({ timeout: 20_000 });
    assert(page.url().includes("resource=deployments.apps"), page.url());
    await page.keyboard.press("/");
    await search(page).fill("no-such-thing-anywhere");
    await page.getByRole("option", { name: "Nothing matches." }).waitFor();
    await page.finish();
  },

  async "seen: Back leads to the same rows and the same focus"() {
    const page = await open("?view=objects&resource=clusterroles&sort=name", { height: 500 });
    await live(page);
    await until(async () => (await rowCount(page)) > 60, "many rows");
    await page.locator(".grid").focus();
    for (let i = 0; i < 40; i++) await page.keyboard.press("ArrowDown");
    await sleep(200);
    const before = await rowAt(page, 200);
    const active = await page.locator('.tr[aria-selected="true"] .first').textContent();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: active, exact: true }).waitFor();
    await page.goBack();
    await until(async () => (await rowAt(page, 200)) === before, `${before} is where it was`, 20_000);
    await until(() => page.evaluate(() => document.activeElement?.classList.contains("grid")), "the table has the focus", 20_000);
    assert((await page.locator('.tr[aria-selected="true"] .first').textContent()) === active, "the same row is active");
    // Views that only scroll come back, too.
    await page.goto(informerd.url + "?view=resources");
    await page.locator("tbody tr").nth(40).waitFor();
    await page.evaluate(() => (document.querySelector("main .scroll").scrollTop = 400));
    await sleep(100);
    await page.locator("tbody th a").nth(25).evaluate((a) => a.click()); // without scrolling to it
    await page.locator(".grid").waitFor();
    await page.goBack();
    await until(() => page.evaluate(() => document.querySelector("main .scroll")?.scrollTop === 400), "the list is where it was", 20_000);
    await page.finish();
  },

  async "seen: a row that changes stays in its place and in its color"() {
    await api.configMap("page-steady", { labels: { n: "1" } });
    const page = await open("?view=objects&resource=configmaps&namespace=team-a&columns=name,label:n,keys,age");
    await live(page);
    const row = page.locator(".grid .rows .tr", { hasText: "page-steady" });
    await row.waitFor();
    const look = () => row.evaluate((el) => [...el.children].map((c) => {
      const b = c.getBoundingClientRect();
      return [Math.round(b.x * 10), Math.round(b.y * 10), Math.round(b.width * 10), getComputedStyle(c).color].join(" ");
    }).join(" | "));
    const before = await look();
    await api.patch("core/namespaces/team-a/configmaps/page-steady", { metadata: { labels: { n: "2" } } });
    await row.filter({ hasText: /2/ }).and(page.locator('[class*="flash"], [class*="fresh"]')).waitFor({ timeout: 20_000 });
    const after = await look();
    await api.delete("core/namespaces/team-a/configmaps/page-steady");
    assert(before === after, `the cells were ${before} and are ${after}`);
    await page.finish();
  },

  async "seen: the graph is read without glasses, moves by hand only, and keeps its place"() {
    await api.configMap("page-graph");
    const page = await open("?view=object&resource=deployments.apps&namespace=shop&name=cart&tab=relations");
    await page.locator(".picture .node.root").waitFor();
    await sleep(300);
    const size = () => page.locator(".picture .node.root text").first().evaluate((el) => el.getBoundingClientRect().height);
    assert((await size()) >= 11, `text is ${await size()} px high`);
    const root = async () => (await boxes(page.locator(".picture .node.root rect")))[0];
    const area = (await boxes(page.locator(".picture")))[0];
    const inSight = (b) => b.x >= area.x && b.right <= area.right && b.y >= area.y && b.bottom <= area.bottom;
    assert(inSight(await root()), "it begins with the object in sight");
    // By wheel, around the pointer; by dragging; all of it by a button.
    const at = await root();
    await page.mouse.move(at.x + 5, at.y + 5);
    await page.mouse.wheel(0, -240);
    await until(async () => (await root()).width > at.width * 1.1, "the wheel makes it larger", 10_000);
    const big = await root();
    await page.mouse.move(area.x + 30, area.bottom - 30);
    await page.mouse.down();
    await page.mouse.move(area.x + 130, area.bottom - 90, { steps: 4 });
    await page.mouse.up();
    const moved = await root();
    assert(Math.abs(moved.x - big.x - 100) < 3 && Math.abs(moved.y - big.y + 60) < 3, `dragging moves it: ${JSON.stringify([big, moved])}`);
    // Another pod comes: nothing jumps.
    const n = await page.locator(".picture .node").count();
    const { spec: { replicas } } = await api.get("apps/namespaces/shop/deployments/cart");
    await api.patch("apps/namespaces/shop/deployments/cart", { spec: { replicas: replicas + 1 } });
    await until(async () => (await page.locator(".picture .node").count()) !== n, "a change is drawn", 30_000);
    const later = await root();
    await api.patch("apps/namespaces/shop/deployments/cart", { spec: { replicas } });
    assert(Math.abs(later.x - moved.x) < 2 && Math.abs(later.y - moved.y) < 2 && Math.abs(later.width - moved.width) < 2, `it stays: ${JSON.stringify([moved, later])}`);
    await page.getByRole("button", { name: "Fit" }).click();
    await until(async () => (await boxes(page.locator(".picture .node rect"))).every(inSight), "all of it is in sight", 10_000);
    await api.delete("core/namespaces/team-a/configmaps/page-graph");
    await page.finish();
  },

  async "seen: a filter without a value says why, and that nothing is known"() {
    const page = await open("?view=objects&resource=pods&namespace=shop&filter=" + encodeURIComponent("object.spec.nothing > 3"));
    const note = page.locator(".absent.over");
    await note.getByRole("heading", { name: "Not known: the filter has no value" }).waitFor();
    await note.getByText("no such key: nothing").first().waitFor();
    assert((await page.getByText("No Pod matches").count()) === 0, "it does not say that there are none");
    // Of some: in the table, and of those that come later.
    await page.goto(informerd.url + "?view=objects&resource=configmaps&namespace=team-a&filter=" + encodeURIComponent("object.metadata.labels.page == 'x' || object.metadata.name == 'kube-root-ca.crt'"));
    await rows(page, 1, "ConfigMap");
    await page.getByRole("note").filter({ hasText: /no value for .*left out here: no such key/ }).waitFor();
    await api.configMap("page-warned");
    await page.getByRole("note").filter({ hasText: /no value for 1 change that came since: no such key/ }).waitFor({ timeout: 20_000 });
    await api.delete("core/namespaces/team-a/configmaps/page-warned");
    await page.finish();
  },

  async "seen: what matters fits a wide screen, a phone and a very small one"() {
    const wide = await open("?view=objects&resource=pods&namespace=shop", { width: 1440, height: 900 });
    await live(wide);
    await until(() => rowCount(wide), "rows");
    for (const [query, titles] of [["pods", ["Health", "Status", "Ready", "Restarts"]], ["deployments.apps", ["Ready", "Health", "Images"]], ["nodes", ["Status"]]]) {
      await wide.goto(informerd.url + "?view=objects&resource=" + query);
      await wide.locator(".grid .rows .tr").first().waitFor();
      await sleep(200);
      const heads = (await boxes(wide.locator(".grid .th > div"))).map((b) => b.text);
      for (const title of titles) {
        const i = heads.indexOf(title);
        assert(i > 0, `${query} has ${title}: ${heads}`);
        for (const b of await boxes(wide.locator(`.grid .rows .tr > :nth-child(${i + 1})`))) assert(!b.cut && b.right <= 1441, `${title} of ${query} is seen: ${JSON.stringify(b)}`);
      }
      const [name] = await boxes(wide.locator(".grid .th > div"));
      assert(name.width < 600, `the name takes ${name.width} px`);
    }
    await wide.finish();
    for (const [width, height] of [[390, 844], [320, 256]]) {
      const page = await open("?view=objects&resource=pods", { width, height });
      await live(page);
      await page.locator(".grid .rows .tr").first().waitFor();
      const button = page.getByRole("button", { name: "Search kinds and objects" });
      assert((await button.count()) === 1 && (await button.boundingBox()).width > 20, "the search has a name");
      const status = (await boxes(page.getByRole("columnheader", { name: "Status" })))[0];
      assert(status.x >= 0 && status.right <= width, `the status is in sight at ${width} px: ${JSON.stringify(status)}`);
      // It can be read: scrolled to, the table shows rows.
      await page.locator(".grid").scrollIntoViewIfNeeded();
      await page.evaluate(() => document.querySelector("main").scrollTo(0, 1e6));
      const grid = (await boxes(page.locator(".grid")))[0];
      const seen = Math.min(grid.bottom, height - 26) - Math.max(grid.y, 44);
      assert(seen >= 100, `the table shows ${seen} px at ${width} x ${height}`);
      assert((await page.evaluate(() => document.documentElement.scrollWidth)) <= width, "nothing is wider than the screen");
      await noBadAxe(page, `pods at ${width} x ${height}`);
      await page.finish();
    }
  },

  async "seen: a copied kubectl command finds what the table shows, or is not offered"() {
    const page = await open("");
    await live(page);
    const program = process.env.DEVCLUSTER ?? new URL("../../../../bin/devcluster", import.meta.url).pathname;
    const run = async (command) => (await promisify(execFile)("bash", ["-c", `set -e; kubectl() { "${program}" kubectl --kubeconfig "${join(cluster.dir, "kubeconfig")}" "$@"; }; ${command} -o name`])).stdout.trim().split("\n").filter(Boolean).sort();
    for (const query of ["status.phase notin (Running,Succeeded)", "spec.containers[*].image=registry.example.com/team-a/web:v0.3.0"]) {
      await page.goto(informerd.url + "?view=objects&resource=pods&fieldSelector=" + encodeURIComponent(query));
      const n = await until(() => rowCount(page), `pods with ${query}`);
      const names = (await page.locator(".grid .first a").allTextContents()).map((name) => "pod/" + name).sort();
      await page.getByRole("button", { name: "Export and copy" }).click();
      await page.getByRole("button", { name: "Copy as kubectl" }).click();
      await page.locator(".toast.on", { hasText: "copied" }).waitFor();
      const command = await page.evaluate(() => navigator.clipboard.readText());
      const found = await run(command);
      assert(found.length === n && found.join() === names.join(), `${command} finds ${found}, the table shows ${names}`);
    }
    for (const [query, why] of [["filter=true", /No kubectl command: kubectl knows no CEL/], ["fieldSelector=" + encodeURIComponent("status.phase in (Running,Failed)"), /any of several values/]]) {
      await page.goto(informerd.url + "?view=objects&resource=pods&" + query);
      await page.getByRole("button", { name: "Export and copy" }).click();
      await page.getByRole("note").filter({ hasText: why }).waitFor();
      assert((await page.getByRole("button", { name: "Copy as kubectl" }).count()) === 0, "no command is offered");
      await page.keyboard.press("Escape");
    }
    await page.finish();
  },

  async "seen: an address that names what there is not says so; files are not sent twice"() {
    const page = await open("");
    for (const [query, what] of [["?view=compare", /no view called compare/], ["?view=wat", /no view called wat/], [objectQuery("&tab=wat"), /no tab called wat/], ["?view=objects&resource=pods,foos", /not in this table: foos/], ["?view=objects&resource=pods&sort=wat", /no column wat/]]) {
      await page.goto(informerd.url + query);
      const text = page.getByText(what).first();
      await text.waitFor({ timeout: 20_000 });
      const [b] = await boxes(text);
      assert(b.width > 40 && b.height > 10 && b.y > 0 && b.bottom < 760, `${query} says so in sight: ${JSON.stringify(b)}`);
    }
    await page.finish();
    const first = await fetch(informerd.url + "app.js");
    const again = await fetch(informerd.url + "app.js", { headers: { "If-None-Match": first.headers.get("etag") ?? "" } });
    assert(again.status === 304, `app.js again: ${again.status}`);
  },
};
