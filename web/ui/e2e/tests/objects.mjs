import { readFileSync } from "node:fs";
import { sleep, startInformerd, until } from "../cluster.mjs";
import { startGate } from "../gate.mjs";
import { api, assert, cluster, has, informerd, live, noBadAxe, open, pod, rowCount, rows, watchShifts } from "../world.mjs";

const inShop = () => api.count("core/namespaces/shop/pods?limit=500");
const allPods = () => api.count("core/pods");
const carts = await api.count("core/namespaces/shop/pods?labelSelector=app%3Dcart");
const firstNames = (page, n) => page.locator(".grid .first a").evaluateAll((all, n) => all.slice(0, n).map((a) => a.textContent), n);

export default {
  async "objects: a pod created at the API server appears within 2 s, and goes"() {
    for (let attempt = 1; ; attempt++) {
      const name = `page-live-${attempt}`;
      const page = await open("?view=objects&resource=pods&labelSelector=app=page-test");
      await live(page);
      await page.getByText("No Pod matches").waitFor();
      await api.create("core/namespaces/team-a/pods", pod(name));
      const created = Date.now();
      await page.getByRole("link", { name }).waitFor({ timeout: 20_000 });
      const took = Date.now() - created;
      console.log(`    it took ${took} ms after the API server had answered`);
      await api.delete(`core/namespaces/team-a/pods/${name}`);
      await page.getByText("No Pod matches").waitFor({ timeout: 20_000 });
      await page.finish();
      if (took <= 2000) return;
      assert(attempt < 3, `a pod took ${took} ms to appear`);
    }
  },

  async "objects: selectors, columns, sorting and the address"() {
    const page = await open("?view=objects&resource=pods&namespace=shop");
    await live(page);
    await rows(page, inShop, "pods in shop");
    await page.getByLabel("Labels").fill("app=cart");
    await page.getByLabel("Labels").press("Enter");
    await rows(page, carts, "pods with app=cart");
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
    await rows(page, carts, "pods after a reload");
    await page.getByRole("columnheader", { name: "app" }).waitFor();
    // The columns are remembered for the kind, also without the address.
    await page.goto(informerd.url + "?view=objects&resource=pods&namespace=shop");
    await page.getByRole("columnheader", { name: "app" }).waitFor();
    await page.goto(informerd.url + "?view=objects&resource=services");
    await page.getByRole("columnheader", { name: "Cluster IP" }).waitFor();
    assert((await page.getByRole("columnheader", { name: "app" }).count()) === 0, "other kinds keep theirs");
    await page.goBack();
    await rows(page, inShop, "pods after going back");
    await page.finish();
  },

  async "objects: the server sorts, so that the first page has what comes first"() {
    const page = await open("?view=overview");
    await live(page);
    // The first list passes through the test, which reads it before the page
    // does: Chromium may have let go of a body by the time that it is asked
    // for it afterwards.
    const asked = [];
    await page.route(
      (u) => u.pathname.endsWith("v1/resources/pods/objects") && u.searchParams.has("sort") && !u.searchParams.has("watch"),
      async (route) => {
        const response = await route.fetch();
        asked.push([new URL(route.request().url()).searchParams.get("sort"), (await response.json()).items[0].metadata.name]);
        await route.fulfill({ response });
      },
      { times: 1 },
    );
    await page.goto(informerd.url + "?view=objects&resource=pods&sort=-name");
    await page.locator('[aria-sort="descending"]').waitFor();
    await rows(page, allPods, "pods");
    await until(async () => asked.length > 0, "a list");
    const [sort, first] = asked[0];
    assert(sort === "-metadata.name", `the list was asked with sort=${sort}`);
    const [top] = await firstNames(page, 1);
    assert(top === first, `the page shows ${top} first, the server's list begins with ${first}`);
    await page.finish();
  },

  async "objects: several namespaces at once"() {
    const page = await open("?view=objects&resource=pods&namespace=shop");
    await rows(page, inShop, "pods in shop");
    await page.getByRole("button", { name: "Namespaces: shop" }).click();
    await page.locator(".choices label", { hasText: "team-a" }).getByRole("checkbox").check();
    await rows(page, async () => (await inShop()) + (await api.count("core/namespaces/team-a/pods?limit=500")), "pods in shop and team-a");
    assert(page.url().includes("namespace=shop&namespace=team-a"), "the address has both");
    await page.getByLabel("Find a namespace").fill("team-*");
    await page.getByLabel("Find a namespace").press("Enter");
    await page.getByRole("button", { name: "Namespaces: 3 of them" }).waitFor();
    await page.locator(".choices label", { hasText: /^ ?all/ }).getByRole("checkbox").check();
    await page.getByRole("button", { name: "Namespaces: all" }).waitFor();
    await page.finish();
  },

  async "objects: the bar completes labels, paths, values and expressions"() {
    const page = await open("?view=objects&resource=pods&namespace=shop");
    await rows(page, inShop, "pods in shop");
    const complete = async (label, text, option) => {
      const input = page.getByRole("combobox", { name: label, exact: true });
      await input.fill(text);
      const proposed = page.getByRole("option").filter({ has: page.locator(`span:text-is("${option}")`) });
      await proposed.waitFor();
      for (let i = 0; i < 12 && (await proposed.getAttribute("aria-selected")) !== "true"; i++) await input.press("ArrowDown");
      await input.press("Enter");
      return input.inputValue();
    };
    assert((await complete("Labels", "ap", "app")) === "app=", "a label's key");
    assert((await complete("Labels", "app=ca", "app=cart")) === "app=cart", "a label's value");
    await rows(page, carts, "pods with app=cart");
    assert((await complete("Fields", "status.ph", "status.phase")) === "status.phase=", "an indexed path");
    assert((await complete("Fields", "status.phase=Run", "Running")) === "status.phase=Running", "its value");
    assert((await complete("Fields", "spec.restartP", "spec.restartPolicy")) === "spec.restartPolicy=", "a path without an index");
    await page.getByRole("combobox", { name: "Fields", exact: true }).press("Escape");
    assert((await complete("CEL", "object.spec.nodeN", "spec.nodeName")) === "object.spec.nodeName", "a path in an expression");
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

  async "objects: CEL, with the error at its column and the plan"() {
    const page = await open("?view=objects&resource=pods&namespace=shop");
    await live(page);
    const input = page.getByLabel("CEL");
    await input.fill("object.metadata.name.startsWith('cart') &&");
    await input.press("Enter");
    await page.locator(".field.wrong .caret mark").waitFor();
    await page.getByRole("heading", { name: "The query was refused" }).waitFor();
    await input.fill("object.metadata.name.startsWith('cart')");
    await input.press("Enter");
    await rows(page, carts, "pods called cart");
    for (const name of await firstNames(page, 50)) assert(name.startsWith("cart"), name);
    await page.getByRole("button", { name: "Plan" }).click();
    const plan = page.locator(".plan");
    await until(async () => /Matched\s*\d/.test(await plan.textContent()), "the plan");
    assert((await plan.textContent()).includes("namespace"), "the plan names the index it used");
    await page.finish();
  },

  async "objects: not allowed, not watched, none and unknown do not look alike"() {
    const seen = new Set();
    for (const [query, heading] of [
      ["?view=objects&resource=secrets", "Not allowed"],
      ["?view=objects&resource=leases", "Not watched"],
      ["?view=objects&resource=pods&labelSelector=no=such", "None"],
      ["?view=objects&resource=unicorns", "No such resource"],
    ]) {
      const page = await open(query);
      await page.getByRole("heading", { name: heading }).waitFor();
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

  async "objects: what is not there yet is said so, and appears by itself"() {
    const gate = await startGate(cluster, "configmaps");
    const slow = await startInformerd(cluster, { name: "gated", kubeconfig: gate.kubeconfig, ready: false });
    try {
      await until(async () => (await (await fetch(slow.url + "v1/resources/deployments.apps")).json()).state === "live", "all else is live");
      const page = await open("?view=objects&resource=configmaps", { at: slow.url });
      await page.getByRole("heading", { name: "Not there yet" }).waitFor({ timeout: 30_000 });
      assert((await page.locator(".head .tally").textContent()) === "", "no number is said");
      await page.locator("footer.status.busy", { hasText: "Starting: 1 of" }).waitFor({ timeout: 30_000 });
      await noBadAxe(page, "not there yet");
      await page.goto(slow.url + "?view=resources");
      await has(page, "listing configmaps");
      await page.goto(slow.url + "?view=objects&resource=configmaps,deployments.apps");
      await has(page, "configmaps (not there yet)");
      const before = await until(() => rowCount(page), "Deployments");
      gate.open();
      await until(async () => (await rowCount(page)) > before, "ConfigMaps join the table");
      await page.getByText("configmaps (not there yet)").waitFor({ state: "detached" });
      await page.finish();
    } finally {
      gate.open();
      await slow.stop();
      gate.close();
    }
  },

  async "objects: many kinds in one stream, custom resources with their own columns"() {
    const page = await open("");
    await live(page);
    const streams = [];
    page.on("request", (r) => /watch=true/.test(r.url()) && !r.url().includes("v1/health") && streams.push(r.url()));
    await page.goto(informerd.url + "?view=objects&resource=deployments.apps,statefulsets.apps,services,configmaps");
    let n = 0;
    for (const kind of ["apps/deployments", "apps/statefulsets", "core/services", "core/configmaps"]) n += await api.count(kind);
    await rows(page, n, "objects of four kinds");
    await api.create("core/namespaces/team-a/services", { metadata: { name: "page-many" }, spec: { ports: [{ port: 80 }] } });
    await api.configMap("page-many");
    await rows(page, n + 2, "objects with two new ones");
    await api.delete("core/namespaces/team-a/services/page-many");
    await api.delete("core/namespaces/team-a/configmaps/page-many");
    await rows(page, n, "objects when they are gone");
    assert(streams.length === 1 && streams[0].includes("/v1/query?"), `one stream, not ${streams.join(" ")}`);
    // Words narrow down what is there; nothing is asked for them.
    await page.goto(informerd.url + "?view=objects&resource=*.apps,mq");
    await until(async () => streams.length === 2, "its stream");
    const all = await until(() => rowCount(page), "rows");
    await page.getByLabel("In the table").fill("kind:statefulset");
    await until(async () => (await rowCount(page)) < all, "StatefulSets");
    await sleep(300);
    assert(streams.length === 2, "no other stream is opened");
    await page.goto(informerd.url + "?view=objects&resource=mq");
    await page.getByRole("columnheader", { name: "Engine" }).waitFor();
    await page.finish();
  },

  async "objects: pause holds changes back"() {
    const page = await open("?view=objects&resource=configmaps&namespace=team-a");
    await live(page);
    await until(() => rowCount(page), "rows");
    await page.getByRole("button", { name: "Pause" }).click();
    await page.getByRole("button", { name: /Paused/ }).waitFor();
    const n = await rowCount(page);
    await api.configMap("page-paused");
    await page.getByText("1 held").waitFor();
    assert((await rowCount(page)) === n, "nothing moves while paused");
    await page.getByRole("button", { name: /Paused/ }).click();
    await rows(page, n + 1, "rows afterwards");
    await api.delete("core/namespaces/team-a/configmaps/page-paused");
    await rows(page, n, "rows when it is gone");
    await page.finish();
  },

  async "objects: facets count values and narrow the table"() {
    const page = await open("?view=objects&resource=pods&facets=1");
    await rows(page, allPods, "pods");
    const broken = (await api.get("core/pods?fieldSelector=status.phase%3DPending")).items.filter((p) => p.status.containerStatuses?.some((c) => c.state.waiting?.reason === "ImagePullBackOff")).length;
    const facet = page.locator(".facets section", { has: page.getByRole("heading", { name: "Status" }) }).locator("button", { hasText: "ImagePullBackOff" });
    await until(async () => Number(await facet.locator("small").textContent()) === broken, `${broken} pods that cannot pull their image`);
    await facet.click();
    await rows(page, broken, "pods of the facet");
    assert(new URL(page.url()).searchParams.get("q") === "status:=imagepullbackoff", "the address has it: " + page.url());
    await page.locator('.facets button[aria-pressed="true"]').click();
    await until(async () => (await rowCount(page)) > broken, "all again");
    await page.finish();
  },

  async "objects: exports as CSV and JSON, copies as curl and kubectl"() {
    const page = await open("?view=objects&resource=pods&namespace=shop&labelSelector=app=cart");
    await rows(page, carts, "pods with app=cart");
    const menu = (name) => page.getByRole("button", { name: "Export and copy" }).click().then(() => page.locator(".menu-items > *", { hasText: name }));
    const download = async (name) => {
      const item = await menu(name);
      const [file] = await Promise.all([page.waitForEvent("download"), item.click()]);
      return [file.suggestedFilename(), readFileSync(await file.path(), "utf8")];
    };
    const copied = async (name) => {
      await (await menu(name)).click();
      await page.locator(".toast.on", { hasText: "copied" }).waitFor();
      return page.evaluate(() => navigator.clipboard.readText());
    };
    const [csvName, csv] = await download("as CSV");
    assert(csvName === "pods.csv" && csv.startsWith("Name,") && csv.trim().split("\r\n").length === carts + 1, `${csvName}: ${csv}`);
    const [jsonName, json] = await download("as JSON");
    assert(jsonName === "pods.json" && JSON.parse(json).items.length === carts, `${jsonName} has ${carts} pods`);
    const curl = await copied("Copy as curl");
    const url = /^curl -s '?([^']+)'?$/.exec(curl)[1];
    assert((await (await fetch(url)).json()).items.length === carts, `${curl} finds ${carts} pods`);
    const kubectl = await copied("Copy as kubectl");
    assert(kubectl === "kubectl get pods -n shop --selector=app=cart", kubectl);
    await page.goto(informerd.url + "?view=objects&resource=deployments.apps,services&namespace=shop&labelSelector=app=cart");
    await rows(page, 2, "objects of two kinds");
    assert(JSON.parse((await download("as JSON"))[1]).items.length === 2, "JSON of many kinds");
    await page.finish();
  },

  async "objects: groups are bars that lead to their rows"() {
    const page = await open("?view=objects&resource=pods&namespace=shop");
    await rows(page, inShop, "pods in shop");
    await page.getByRole("button", { name: "Group by a field" }).click();
    await page.getByRole("button", { name: "spec.nodeName" }).click();
    const groups = page.getByRole("region", { name: "Groups by spec.nodeName" });
    await groups.getByLabel("longest by").selectOption({ label: "requested CPU" });
    await until(() => groups.locator("a.bar-row small").count(), "sums");
    assert(page.url().includes("group=spec.nodeName") && page.url().includes("sum=spec.containers"), "the address has both: " + page.url());
    const bars = groups.locator("a.bar-row");
    const widths = await bars.locator(".track i").evaluateAll((all) => all.map((el) => el.getBoundingClientRect().width));
    assert(widths[0] > 100 && widths.every((w, i) => i === 0 || w <= widths[i - 1] + 0.5), `the longest first: ${widths}`);
    const bar = bars.filter({ hasNotText: "none" }).first();
    const n = Number(await bar.locator("b").textContent());
    const node = await bar.locator(".label").textContent();
    await bar.click();
    await rows(page, n, `pods on ${node}`);
    await page.goBack();
    await groups.waitFor();
    await page.finish();
  },

  async "objects: rows in sight stay while others come above them"() {
    const page = await open("?view=objects&resource=configmaps&sort=name", { height: 500 });
    await live(page);
    await until(async () => (await rowCount(page)) > 60, "many rows");
    await page.evaluate(() => (document.querySelector(".grid").scrollTop = 28 * 30 + 5));
    await sleep(300);
    const look = () => page.evaluate(() => {
      const box = document.querySelector(".grid").getBoundingClientRect();
      const row = document.elementFromPoint(box.left + 40, box.top + 60).closest(".tr");
      return row.querySelector("a").title + " at " + Math.round(row.getBoundingClientRect().top);
    });
    const before = await look();
    const n = await rowCount(page);
    await api.configMap("aaa-page-1");
    await api.configMap("aaa-page-2");
    await rows(page, n + 2, "rows");
    await until(async () => (await look()) === before, `${before} stays`);
    await api.delete("core/namespaces/team-a/configmaps/aaa-page-1");
    await api.delete("core/namespaces/team-a/configmaps/aaa-page-2");
    await rows(page, n, "rows again");
    await until(async () => (await look()) === before, `${before} stays`);
    await page.finish();
  },

  async "objects: updates shift nothing"() {
    await api.configMap("page-still", { labels: { n: "0" } });
    const page = await open("?view=objects&resource=configmaps&namespace=team-a&columns=name,label:n,keys,age&facets=1");
    await live(page);
    await page.getByRole("link", { name: "page-still" }).waitFor();
    await sleep(2000); // the facets have their numbers
    const end = await watchShifts(page);
    for (let n = 1; n <= 10; n++) {
      await api.patch("core/namespaces/team-a/configmaps/page-still", { metadata: { labels: { n: "9".repeat(n) } } });
      await sleep(150);
    }
    await page.locator(".grid .tr", { hasText: "9999999999" }).waitFor();
    const shift = await end();
    await api.delete("core/namespaces/team-a/configmaps/page-still");
    assert(shift < 0.001, `the layout shifted by ${shift}`);
    await page.finish();
  },
};
