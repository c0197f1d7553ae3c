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
