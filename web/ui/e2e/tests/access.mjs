// For everybody: by keyboard, with a screen reader, on a phone.
import { until } from "../cluster.mjs";
import { api, assert, live, noBadAxe, open, rowCount, rows, settled, shot, views } from "../world.mjs";

export default {
  async "keyboard alone: from search to an object's graph, and on to another object"() {
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
    await page.locator(".grid .rows .tr", { hasText: "cart" }).first().waitFor({ timeout: 60_000 }); // it may be among the last to arrive
    await page.keyboard.press("ArrowDown");
    await page.locator(".grid:focus").waitFor();
    await page.keyboard.press("ArrowDown");
    await page.locator('.tr[aria-selected="true"]', { hasText: "cart" }).waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: /^cart/ }).waitFor();
    const focused = (selector) => page.evaluate((s) => !!document.activeElement?.closest(s), selector);
    const tabTo = async (selector) => {
      for (let i = 0; i < 80 && !(await focused(selector)); i++) await page.keyboard.press("Tab");
      assert(await focused(selector), `Tab comes to ${selector}`);
    };
    await tabTo('[role="tab"]');
    for (let i = 0; i < 4; i++) await page.keyboard.press("ArrowRight");
    await page.getByRole("tabpanel", { name: "Relations" }).waitFor();
    await page.locator(".picture .node.root").waitFor();
    await tabTo(".picture .node:not(.root)");
    const to = await page.evaluate(() => document.activeElement.closest(".node").textContent);
    await page.keyboard.press("Enter");
    await until(async () => to.includes(await page.locator("h1").textContent()), `Enter opens ${to}`);
    await page.keyboard.press("Control+k");
    await page.keyboard.type("deploy cart");
    await page.locator("#hits li", { hasText: "Deployment in shop" }).first().waitFor();
    await until(async () => {
      const on = await page.locator('#hits li[aria-selected="true"]').textContent();
      if (on.startsWith("cart") && on.includes("Deployment")) return true;
      await page.keyboard.press("ArrowDown");
      return false;
    }, "the Deployment is chosen");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "cart", exact: true }).waitFor();
    await page.finish();
  },

  async "screen reader: row counts, the order, and what changes is told"() {
    const page = await open("?view=objects&resource=configmaps&namespace=team-a");
    await live(page);
    const n = await until(() => rowCount(page), "rows");
    const grid = page.getByRole("grid", { name: `ConfigMaps, ${n} rows` });
    await grid.waitFor();
    assert((await grid.getAttribute("aria-rowcount")) === String(n + 1), "the heading is a row");
    assert((await grid.getByRole("row").nth(1).getAttribute("aria-rowindex")) === "2", "rows are numbered");
    const name = page.getByRole("columnheader", { name: "Name" });
    for (const order of ["none", "ascending", "descending", "none"]) {
      await until(async () => (await name.getAttribute("aria-sort")) === order, `the name is sorted: ${order}`);
      await name.getByRole("button").click();
    }
    const told = page.locator('.view > [role="status"]');
    await until(async () => (await told.textContent()) === `ConfigMaps: ${n} rows`, "the rows are told");
    await api.configMap("page-told");
    await until(async () => (await told.textContent()) === `ConfigMaps: now ${n + 1} rows, ${n} before`, "the change is told");
    await api.delete("core/namespaces/team-a/configmaps/page-told");
    await rows(page, n, "rows");
    await page.finish();
  },

  async "axe finds nothing serious on any view, light or dark, on a phone and at 200 %, and nothing is wider than the screen"() {
    for (const dark of [false, true]) {
      for (const [what, query] of Object.entries(views)) {
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
          await page.keyboard.press("Escape");
        }
        // A phone, and 200 % of a screen of 1440 x 900.
        for (const [width, height] of dark ? [] : [[390, 844], [720, 450]]) {
          await page.setViewportSize({ width, height });
          const wide = await page.evaluate(() => document.documentElement.scrollWidth);
          assert(wide <= width, `${what} is ${wide} wide on a screen of ${width}`);
          await noBadAxe(page, `${what} at ${width} x ${height}`);
        }
        await page.finish();
      }
    }
  },

  async "phone: all kinds are at hand"() {
    const page = await open("?view=objects&resource=pods", { width: 390, height: 780 });
    await settled(page);
    await page.getByRole("button", { name: "Kinds", exact: true }).click();
    await page.getByRole("navigation", { name: "Kinds" }).getByRole("link", { name: /^Deployments/ }).click();
    await page.getByRole("heading", { level: 1, name: "Deployments" }).waitFor();
    await shot(page, "phone-light");
    await page.finish();
  },
};
