// From "something is wrong" to the cause in words, as a person sees it.
import { until } from "../cluster.mjs";
import { api, assert, informerd, live, open, rows, shot } from "../world.mjs";

const queues = "/apis/messaging.example.com/v1/namespaces/team-a/queues";
const wrong = (page, name) => page.getByRole("region", { name: "What is wrong" }).getByRole("listitem").filter({ hasText: name });
const box = async (locator) => {
  const b = await locator.boundingBox();
  assert(b && b.width > 0 && b.height > 0, "it has a place on the screen");
  return b;
};

export default {
  async "health: the overview says what is wrong and why, and one click leads there, or one key"() {
    const page = await open("", { width: 1440, height: 900 });
    await live(page);
    const line = wrong(page, "shop/recommendations");
    await line.getByText(/not found/).waitFor(); // the cause in words
    const b = await box(line);
    assert(b.y + b.height < 900, "it is in sight without scrolling");
    await shot(page, "health-light");
    const begun = Date.now();
    await line.getByRole("link", { name: /Deployment shop\/recommendations/ }).click();
    const sentence = page.getByRole("status").filter({ hasText: /ImagePullBackOff.*not found/ });
    await sentence.waitFor();
    const took = Date.now() - begun;
    assert((await box(sentence)).y < 300, "the sentence comes first");
    console.log(`    one click led to the cause in ${took} ms`);
    // What it owns, each with its health, as links.
    const row = page.getByRole("row", { name: /ImagePullBackOff Pod recommendations-/ }).first();
    for (const [width, height] of [[1200, 700], [390, 844]]) {
      await page.setViewportSize({ width, height });
      const why = row.getByText(/Back-off pulling/);
      const [text, tab] = [await box(why), await box(page.getByRole("tabpanel"))];
      assert(text.x + text.width <= tab.x + tab.width && text.width > 100, `the reason is seen whole at ${width} px: ${JSON.stringify([text, tab])}`);
    }
    await page.setViewportSize({ width: 1440, height: 900 });
    await row.getByRole("link").click();
    await page.getByRole("heading", { level: 1, name: /^recommendations-/ }).waitFor();
    const container = page.locator(".containers li", { hasText: "recommendations" });
    await container.getByText("ImagePullBackOff").first().waitFor();
    for (const what of ["Restarts", "Image", "Requests", "Limits"]) await box(container.locator("dt", { hasText: what }).first());
    await box(container.getByText(/v1\.0\.0-rc9/).first());
    // By keyboard alone.
    await page.goto(informerd.url);
    await wrong(page, "shop/recommendations").waitFor();
    for (let i = 0; i < 200 && !(await page.evaluate(() => document.activeElement?.matches(".trouble-row"))); i++) await page.keyboard.press("Tab");
    const name = await page.evaluate(() => document.activeElement.querySelector("b").textContent.split("/").at(-1));
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name, exact: true }).waitFor();
    await page.finish();
  },

  async "health: what happens is on the overview within seconds, and goes"() {
    const page = await open("");
    await live(page);
    await wrong(page, "recommendations").waitFor();
    const name = "page-degraded";
    await api.create(queues, { apiVersion: "messaging.example.com/v1", kind: "Queue", metadata: { name }, spec: { engine: "kafka", partitions: 1 } });
    const status = { status: { phase: "Degraded", conditions: [{ type: "Ready", status: "False", reason: "BrokerLost", message: "broker 3 is away", lastTransitionTime: new Date().toISOString().replace(/\.\d+/, "") }] } };
    await api.patch(`${queues}/${name}/status`, status).catch(() => api.patch(`${queues}/${name}`, status));
    const since = Date.now();
    const line = wrong(page, `team-a/${name}`);
    await line.getByText("broker 3 is away").waitFor({ timeout: 30_000 });
    console.log(`    it was named ${Date.now() - since} ms after the API server had answered`);
    await api.delete(`${queues}/${name}`);
    await line.waitFor({ state: "detached", timeout: 30_000 });
    await page.finish();
  },

  async "health: a namespace has a page, stays chosen, and is in sight with its cluster, by keys"() {
    const page = await open("");
    await live(page);
    await wrong(page, "recommendations").waitFor();
    await page.keyboard.press("n");
    const picker = page.getByRole("combobox", { name: "Namespace to work in" });
    assert(await picker.evaluate((el) => el === document.activeElement), "n goes to the namespaces");
    await picker.selectOption("team-a");
    await page.getByRole("heading", { level: 1, name: "team-a" }).waitFor();
    await wrong(page, "legacy-importer").getByText(/exit code 1|not found|restarts/).waitFor();
    assert((await wrong(page, "shop/recommendations").count()) === 0, "what is elsewhere is elsewhere");
    assert(page.url().includes("namespace=team-a"), "the address has it");
    const n = await api.count("apps/namespaces/team-a/deployments?limit=500");
    await page.getByRole("navigation", { name: "Kinds" }).getByRole("link", { name: /^Deployments/ }).click();
    await rows(page, n, "Deployments of team-a");
    await page.locator(".grid").focus();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await page.getByRole("tab", { name: "Status", selected: true }).waitFor();
    // Keys of an object: its tabs, and back to its kind.
    for (const [key, tab] of [["y", "YAML"], ["e", "Events"], ["g", "Relations"], ["1", "Status"], ["2", "YAML"]]) {
      await page.keyboard.press(key);
      await page.getByRole("tab", { name: tab, selected: true }).waitFor();
    }
    await page.keyboard.press("Escape");
    await rows(page, n, "Deployments of team-a");
    const { gitVersion } = await api.get("/version");
    for (const [width, height] of [[1280, 760], [390, 844]]) {
      await page.setViewportSize({ width, height });
      const seen = page.locator(".cluster-name").filter({ hasText: gitVersion, visible: true });
      const b = await box(seen);
      assert((await seen.count()) === 1 && b.x >= 0 && b.x + b.width <= width && b.y + b.height <= height, `cluster and version are in sight at ${width} px`);
      assert((await picker.inputValue()) === "team-a" && (await box(picker)).width > 40, "the namespace stays in sight");
    }
    await page.finish();
  },

  async "health: a node shows what its pods ask for of what it has"() {
    const { items } = await api.get("core/namespaces/shop/pods");
    const node = items.find((p) => p.spec.nodeName && p.status.phase === "Running").spec.nodeName;
    const n = items.length && (await api.get(`core/pods?fieldSelector=${encodeURIComponent(`spec.nodeName=${node},status.phase!=Succeeded,status.phase!=Failed`)}`)).items.length;
    const { status } = await api.get(`core/nodes/${node}`);
    const page = await open(`?view=object&resource=nodes&name=${node}`);
    const line = page.locator(".capacity li").filter({ has: page.locator(".label", { hasText: /^pods$/ }) });
    await until(async () => (await line.locator("b").textContent()) === String(n), `${n} pods`);
    assert((await line.textContent()).includes(`of ${status.allocatable.pods}`), await line.textContent());
    const [track, bar] = [await box(line.locator(".track")), await box(line.locator(".track i"))];
    assert(Math.abs(bar.width / track.width - n / Number(status.allocatable.pods)) < 0.02, `the bar is as long as its share: ${bar.width} of ${track.width}`);
    await page.finish();
  },

  async "health: tables show the worst first, graphs and kinds are colored and say so"() {
    const page = await open("?view=objects&resource=deployments.apps", { width: 1440, height: 900 });
    await live(page);
    await page.locator(".health-cell", { hasText: "good" }).first().waitFor();
    const cells = page.locator(".grid .rows .tr .health-cell");
    await until(async () => /^bad: /.test((await cells.first().textContent()).trim()), "what is bad comes first");
    const color = (l) => l.evaluate((el) => getComputedStyle(el).color);
    assert((await color(cells.first())) !== (await color(page.locator(".health-cell", { hasText: "good" }).first())), "it has another color");
    const b = await box(cells.first());
    assert(b.x + b.width < 1440 && (await cells.first().evaluate((el) => el.scrollWidth <= el.clientWidth + 1)), "the reason is seen whole");
    await page.getByRole("navigation", { name: "Kinds" }).getByRole("link", { name: /^Deployments \d+ bad, \d+$/ }).waitFor();
    await page.getByLabel("In the table").fill("health:bad");
    await until(async () => (await cells.allTextContents()).every((t) => t.trim().startsWith("bad")), "words find it");
    await page.goto(informerd.url + "?view=object&resource=deployments.apps&namespace=shop&name=recommendations&tab=relations");
    const node = page.locator(".picture .node.root");
    await node.locator("text", { hasText: "ImagePullBackOff" }).waitFor();
    const fill = (l) => l.locator("rect").last().evaluate((el) => getComputedStyle(el).fill);
    assert((await fill(node)) !== (await fill(page.locator(".picture .node", { hasText: "ServiceAccount" }).first())), "the box has another color");
    await page.finish();
  },
};
