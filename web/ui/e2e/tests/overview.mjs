import { sleep, until } from "../cluster.mjs";
import { api, assert, has, live, open, rows, watchShifts } from "../world.mjs";

const number = async (bar) => Number((await bar.locator("b").textContent()).replaceAll(",", ""));
const card = (page, title) => page.locator(".card", { has: page.getByRole("heading", { name: title }) });

export default {
  async "overview: every bar leads to what it counts"() {
    // One that is held by its finalizer.
    await api.configMap("page-stuck", { finalizers: ["page.example/hold"] });
    await api.delete("core/namespaces/team-a/configmaps/page-stuck");
    const page = await open("");
    await live(page);
    // What is counted may change before it is looked at: then it is counted again.
    const follow = async (title, name) => {
      const bar = card(page, title).locator("a.bar-row", { hasText: name }).first();
      for (let attempt = 1; ; attempt++) {
        await bar.waitFor({ timeout: 60_000 });
        const n = await number(bar);
        assert(n > 0, `${title}, ${name}: ${n}`);
        await bar.click();
        await page.locator(".grid").waitFor();
        const same = await rows(page, n, `rows of ${title}, ${name}`, 8000).catch((e) => {
          if (attempt === 4) throw e;
        });
        await page.goBack();
        await page.locator(".cards").waitFor();
        if (same) return;
        await sleep(5000);
      }
    };
    await follow("Being deleted", "ConfigMaps");
    await follow("By kind", "Services");
    // The largest come first; all others are a click away.
    const more = card(page, "By namespace").getByRole("link", { name: "more namespaces" });
    if (await more.count()) await more.click();
    await follow("By namespace", "shop");
    await follow("Events by reason", "ScalingReplicaSet");
    await card(page, "Not seen").getByRole("link", { name: /secrets.*not allowed/ }).waitFor();
    await card(page, "Not seen").getByRole("link", { name: /leases.*not watched/ }).waitFor();
    await api.patch("core/namespaces/team-a/configmaps/page-stuck", { metadata: { finalizers: null } });
    await page.finish();
  },

  async "overview: a rollout shows how far it is, and goes when it has come"() {
    const path = "apps/namespaces/team-a/deployments", labels = { app: "page-rollout" };
    const fate = (f) => ({ spec: { template: { metadata: { labels, annotations: { "devcluster.informerd.io/fate": f } } } } });
    await api.create(path, { metadata: { name: "page-rollout" }, spec: { replicas: 3, selector: { matchLabels: labels }, template: { metadata: { labels }, spec: { containers: [{ name: "main", image: "registry.example/page:1" }] } } } });
    await until(async () => (await api.get(`${path}/page-rollout`)).status.availableReplicas === 3, "three pods are available");
    const page = await open("", { width: 1440, height: 900 });
    await live(page);
    const bar = card(page, "Rollouts").locator("a.bar-row", { hasText: "team-a/page-rollout" });
    await card(page, "Rollouts").locator("a.bar-row", { hasText: "shop/recommendations" }).waitFor({ timeout: 60_000 });
    assert((await bar.count()) === 0, "what is done is not under way");
    await api.patch(`${path}/page-rollout`, fate("image-pull-backoff"));
    await bar.getByText("1/3 updated").waitFor({ timeout: 60_000 });
    assert(/3 up/.test(await bar.textContent()), await bar.textContent());
    const [track, part] = [await bar.locator(".track").boundingBox(), await bar.locator(".track i").boundingBox()];
    assert(Math.abs(part.width / track.width - 1 / 3) < 0.02, `the bar is a third: ${JSON.stringify([track, part])}`);
    await api.patch(`${path}/page-rollout`, fate(null));
    await bar.waitFor({ state: "detached", timeout: 60_000 });
    await api.delete(`${path}/page-rollout`);
    await page.finish();
  },

  async "overview: images in all their versions, down to the pods that run one"() {
    const images = ["registry.example/page-images:1", "registry.example/page-images:2"];
    for (const [n, image] of [...images, images[0]].entries()) {
      await api.create("core/namespaces/team-a/pods", { metadata: { name: `page-image-${n}` }, spec: { containers: [{ name: "main", image }] } });
    }
    const page = await open("?namespace=team-a", { width: 1440, height: 900 });
    await live(page);
    const bar = card(page, "Images of pods").locator("a.bar-row", { hasText: "page-images" });
    await bar.waitFor({ timeout: 60_000 });
    assert((await number(bar)) === 3 && /2 versions/.test(await bar.textContent()), await bar.textContent());
    const label = await bar.locator(".label").boundingBox(), track = await bar.locator(".track").boundingBox();
    assert(label.width > 60 && track.width > label.width, `name and bar are seen: ${JSON.stringify([label, track])}`);
    await bar.click();
    const version = (image) => page.locator(".groups a.bar-row", { hasText: image });
    await version(images[0]).waitFor();
    assert((await page.locator(".groups a.bar-row").count()) === 2, "its versions and no others");
    assert((await number(version(images[0]))) === 2, "two pods have the first version");
    await version(images[0]).click();
    await rows(page, 2, "pods of the first version");
    for (let n = 0; n < 3; n++) await api.delete(`core/namespaces/team-a/pods/page-image-${n}`);
    await page.finish();
  },

  async "overview: what dangles, down to the object that names it"() {
    const page = await open("");
    const bar = card(page, "Dangling references").locator("a.bar-row", { hasText: "Service that selects nothing" });
    await bar.waitFor({ timeout: 60_000 });
    const n = await number(bar);
    await bar.click();
    const listed = card(page, "Dangling references").locator(".within li");
    await until(async () => (await listed.count()) === n, `${n} Services`);
    assert(page.url().includes("dangling="), "the address has it");
    await listed.locator("a").first().click();
    await page.getByRole("tabpanel", { name: "Relations" }).waitFor();
    await page.finish();
  },

  async "overview: updates shift nothing"() {
    const page = await open("");
    await live(page);
    await card(page, "Events by reason").locator("a.bar-row").first().waitFor({ timeout: 60_000 });
    await card(page, "Dangling references").locator("a.bar-row").first().waitFor({ timeout: 60_000 });
    await until(async () => !(await page.getByText(/counting…|looking/).count()), "everything is counted");
    const end = await watchShifts(page);
    const before = await card(page, "By kind").locator("a.bar-row", { hasText: "ConfigMaps" }).first().textContent();
    await api.configMap("page-counted");
    await until(async () => (await card(page, "By kind").locator("a.bar-row", { hasText: "ConfigMaps" }).first().textContent()) !== before, "one more ConfigMap");
    await api.delete("core/namespaces/team-a/configmaps/page-counted");
    const shift = await end();
    assert(shift < 0.01, `the layout shifted by ${shift}`);
    await has(page, "not allowed");
    await page.finish();
  },
};
