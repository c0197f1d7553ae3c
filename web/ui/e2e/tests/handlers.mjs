// What delivers changes, as who runs it sees it: real webhooks that fail, and what is done about it.
import { once } from "node:events";
import { createServer } from "node:http";
import { join } from "node:path";
import { sleep, startInformerd, until } from "../cluster.mjs";
import { api, assert, cluster, informerd, live, noBadAxe, open, settled, shot } from "../world.mjs";

/** A webhook that refuses whatever is about objects of these names. */
async function startHook() {
  const refused = new Set(), taken = [];
  const server = createServer((q, a) => {
    let text = "";
    q.on("data", (d) => (text += d)).on("end", () => {
      const name = JSON.parse(text).subject?.split("/").at(-1) ?? "";
      if (![...refused].some((r) => name.startsWith(r))) taken.push(name);
      else a.writeHead(500);
      a.end(a.statusCode === 500 ? `the shop is closed for ${name}` : "");
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return { url: `http://127.0.0.1:${server.address().port}/orders`, refused, taken, close: () => (server.closeAllConnections(), server.close()) };
}

const handlers = (hook) => `handlers:
  - name: orders
    resources: [configmaps]
    namespaces: [team-a]
    labelSelector: handlers=page
    from: beginning
    as: informerd
    retry: {base: 10ms, max: 20ms, attempts: 3}
    webhook: {url: "${hook.url}", allowPrivate: [127.0.0.1]}
  - name: worked-on
    resources: [deployments.apps, services]
    as: informerd
`;

const labelled = { labels: { handlers: "page" } };
const spoiled = ["page-bad-1", "page-bad-2"];

/** An informerd with handlers of which one has given up two keys. */
async function withHandlers(name, more, test) {
  const hook = await startHook();
  hook.refused.add("page-bad");
  for (const n of [...spoiled, "page-fine"]) await api.configMap(n, labelled);
  const other = await startInformerd(cluster, { name, kubeconfig: join(cluster.dir, "kubeconfig"), more: handlers(hook) + more });
  try {
    await test(other, hook);
  } finally {
    await other.stop();
    hook.close();
    for (const n of [...spoiled, "page-fine"]) await api.delete("core/namespaces/team-a/configmaps/" + n).catch(() => {});
  }
}

const box = async (locator) => {
  const b = await locator.boundingBox();
  assert(b && b.width > 0 && b.height > 0, "it has a place on the screen");
  return b;
};

/** A view is accessible light and dark, wide, on a phone and at 200 %; with pictures of it. */
async function everywhere(page, what) {
  for (const scheme of ["dark", "light"]) {
    await page.emulateMedia({ colorScheme: scheme });
    for (const [width, height] of [[1440, 900], [390, 844], [720, 450]]) {
      await page.setViewportSize({ width, height });
      await noBadAxe(page, `${what} at ${width} x ${height}, ${scheme}`);
      if (width === 390) await shot(page, `${what}-phone-${scheme}`);
    }
    await page.setViewportSize({ width: 1200, height: 700 });
    await shot(page, `${what}-${scheme}`);
  }
}

const link = (page) => page.getByRole("navigation", { name: "Views" }).getByRole("link", { name: /^Handlers/ });
const cells = async (row) => (await row.getByRole("cell").allTextContents()).map((t) => t.trim());

export default {
  async "handlers: nobody is led to a page of what there is not"() {
    const page = await open("", {});
    await settled(page);
    assert((await link(page).count()) === 0, "there is no link without handlers");
    await page.goto(informerd.url + "?view=handlers");
    await page.getByText("None that you may see.").waitFor();
    await page.finish();
  },

  async "handlers: what is wrong with one is seen, and dead letters are sent again, by key and all"() {
    await withHandlers("handlers", "", async (other, hook) => {
      const page = await open("", { at: other.url, width: 1440, height: 900 });
      const asked = [];
      page.on("request", (q) => asked.push(new URL(q.url()).pathname));
      await live(page);
      await page.getByRole("link", { name: "Handlers need attention" }).waitFor(); // a dead letter is there
      assert(!asked.some((p) => p.includes("later.js")), "what is not looked at is not loaded");
      await link(page).click();
      await page.getByRole("heading", { level: 1, name: "Handlers" }).waitFor();
      const row = page.getByRole("row", { name: /^orders/ });
      await until(async () => (await cells(row)).at(-1) === "2", "two dead letters");
      const of = await cells(row);
      assert(/active/.test(of[0]) && /last error, .* ago: .*500/.test(of[0]), `state and last error: ${of[0]}`);
      assert(of[1] === "0" && of[2] === "–" && /^7\s*6 failed/.test(of[5]), `pending, oldest, attempts: ${of}`);
      for (const [width, height] of [[1440, 900], [390, 844], [320, 568]]) {
        await page.setViewportSize({ width, height });
        const state = await box(row.getByText("active"));
        assert(state.x + state.width <= width, `the state is in sight at ${width} px: ${JSON.stringify(state)}`);
        const wide = await page.evaluate(() => document.documentElement.scrollWidth);
        assert(wide <= width, `the page is ${wide} px wide on a screen of ${width}`);
        const [to, search] = [await box(link(page)), await box(page.getByRole("button", { name: /^Search/ }))];
        assert(to.x >= 0 && to.x + to.width <= width && search.x + search.width <= width, `the way there is in sight at ${width} px: ${JSON.stringify([to, search])}`);
      }
      await everywhere(page, "handlers");
      await page.setViewportSize({ width: 1440, height: 900 });
      await row.getByRole("link").focus();
      await page.keyboard.press("Enter");
      await page.getByRole("heading", { level: 1, name: "orders" }).waitFor();
      const letter = (name) => page.getByRole("row", { name: new RegExp(`^ConfigMap team-a/${name}`) });
      await letter("page-bad-2").waitFor();
      assert(/the shop is closed for page-bad-1/.test(await letter("page-bad-1").textContent()), "the last error is told");
      assert((await cells(letter("page-bad-1")))[0] === "3", "and the attempts");
      const to = await letter("page-bad-1").getByRole("link").getAttribute("href");
      assert(to === "./?view=object&resource=configmaps&namespace=team-a&name=page-bad-1", `the object is a link: ${to}`);
      await everywhere(page, "handler");
      // One is mended, and sent again by its own button; the other stays.
      hook.refused.delete("page-bad");
      hook.refused.add("page-bad-2");
      await page.getByRole("button", { name: "Redrive team-a/page-bad-1" }).click();
      await page.getByText("1 sent again").waitFor();
      await letter("page-bad-1").waitFor({ state: "detached" });
      await until(() => hook.taken.includes("page-bad-1"), "it was delivered");
      assert(!hook.taken.includes("page-bad-2"), "and nothing else was");
      hook.refused.clear();
      await page.getByRole("button", { name: "Redrive all 1" }).click();
      await page.getByText("No dead letters: nothing was given up.").waitFor();
      await until(() => hook.taken.includes("page-bad-2"), "all were delivered");
      // What it follows is a link.
      await page.locator("main").getByRole("link", { name: "configmaps" }).click();
      await page.getByRole("heading", { level: 1, name: "ConfigMaps" }).waitFor();
      await page.finish();
    });
  },

  async "handlers: one is paused and resumed, by keyboard too, and a refusal is told"() {
    await withHandlers("handlers-steered", "", async (other, hook) => {
      const page = await open("?view=handlers&handler=orders", { at: other.url });
      await live(page);
      const head = page.locator(".head").first();
      const fact = (what, count) => page.locator(".fact", { hasText: what }).getByText(count, { exact: true }).waitFor();
      // All that was there at the start is done with, so that what is pending later is what was changed.
      await fact("dead letters", "2");
      await fact("pending", "0");
      await page.getByRole("button", { name: "Pause" }).focus();
      await page.keyboard.press("Enter");
      await page.getByText("orders is paused").waitFor();
      await head.getByText("paused", { exact: true }).waitFor();
      await api.configMap("page-fine", { ...labelled, annotations: { again: "1" } });
      await fact("pending", "1");
      const before = hook.taken.length;
      await sleep(300);
      assert(hook.taken.length === before, "nothing is delivered while it is paused");
      await page.getByRole("button", { name: "Resume" }).click();
      await until(() => hook.taken.length > before, "it delivers again");
      await page.getByRole("button", { name: "Pause" }).waitFor();
      await page.route("**/pause", (r) => r.fulfill({ status: 500, contentType: "application/json", body: JSON.stringify({ kind: "Status", message: "it cannot be saved: the disk is full" }) }));
      await page.getByRole("button", { name: "Pause" }).click();
      await page.getByRole("status").getByText("the disk is full").waitFor();
      await page.goto(other.url + "?view=handlers&handler=nobody");
      await page.getByText('there is no handler "nobody"').waitFor();
      await page.finish();
    });
  },

  async "handlers: who may only look is offered nothing that would be refused"() {
    const roles = "/apis/rbac.authorization.k8s.io/v1/";
    const rules = [{ nonResourceURLs: ["/v1/handlers", "/v1/handlers/*"], verbs: ["get"] }, { nonResourceURLs: ["/v1/handlers/orders/resume", "/v1/handlers/orders/pause"], verbs: ["post"] }];
    const subject = (name) => ({ kind: "ServiceAccount", namespace: "team-a", name });
    const names = ["page-looks", "page-steers"];
    const remove = async () => {
      for (const [n, name] of names.entries()) {
        await api.delete(`core/namespaces/team-a/serviceaccounts/${name}`).catch(() => {});
        await api.delete(`${roles}clusterroles/${name}`).catch(() => {});
        await api.delete(`${roles}clusterrolebindings/${name}`).catch(() => {});
      }
    };
    await remove();
    const tokens = [];
    for (const [n, name] of names.entries()) {
      await api.create("core/namespaces/team-a/serviceaccounts", { metadata: { name } });
      await api.create(roles + "clusterroles", { metadata: { name }, rules: rules.slice(0, n + 1) });
      await api.create(roles + "clusterrolebindings", { metadata: { name }, roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name }, subjects: [subject(name)] });
      tokens.push((await api.create(`core/namespaces/team-a/serviceaccounts/${name}/token`, { spec: {} })).status.token);
    }
    await withHandlers("handlers-rights", "authentication: {}\n", async (other) => {
      const offered = async (token) => {
        const page = await open("?view=handlers&handler=orders", { at: other.url, token });
        await page.getByRole("heading", { name: "Dead letters" }).waitFor();
        const all = await page.locator("main button").allTextContents();
        await page.finish();
        return all.map((t) => t.trim()).join();
      };
      await until(async () => (await offered(tokens[0])) === "", "who only looks has no buttons");
      await until(async () => (await offered(tokens[1])) === "Pause", "who may pause has that one");
    });
    await remove();
  },
};
