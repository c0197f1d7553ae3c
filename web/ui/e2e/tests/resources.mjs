import { until } from "../cluster.mjs";
import { assert, has, informerd, live, open } from "../world.mjs";

export default {
  async "resources: every one with its state, what the configuration leaves out, progress"() {
    const page = await open("?view=resources");
    await live(page);
    const served = (await (await fetch(informerd.url + "v1/resources")).json()).items;
    const lines = page.locator("tbody tr");
    await until(async () => (await lines.count()) === served.length, "a row for every resource");
    const line = (name) => page.locator("tbody tr", { has: page.locator(`th a[href$="resource=${name}"]`) });
    const state = (name) => line(name).locator(".state").textContent();
    assert((await state("pods")) === "live", "pods are live");
    assert((await state("secrets")) === "forbidden", "secrets are forbidden");
    assert((await state("leases.coordination.k8s.io")) === "unwatched", "leases are not watched");
    assert((await line("pods").textContent()).includes("node, phase"), "the indexes are named");
    assert(!/\d/.test(await line("secrets").locator("td.number").first().textContent()), "no number is said of what cannot be read");
    await has(page, "start-up is complete");
    await has(page, "by the configuration: leases");
    await page.getByRole("button", { name: /forbidden/ }).click();
    await until(async () => (await lines.count()) === 1, "only what is forbidden");
    assert(page.url().includes("state=forbidden"), "the address has the state");
    await page.finish();
  },
};
