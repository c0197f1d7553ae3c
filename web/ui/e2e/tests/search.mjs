import { until } from "../cluster.mjs";
import { api, assert, live, open, rows } from "../world.mjs";

const hit = (page, text) => page.locator("#hits li", { hasText: text }).first();

export default {
  async "search: kinds by short name, objects of any kind by words"() {
    const page = await open("");
    await live(page);
    await page.keyboard.press("Control+k");
    await page.keyboard.type("pdb");
    await hit(page, "PodDisruptionBudgets").waitFor();
    await page.getByRole("combobox", { name: "Search kinds and objects" }).fill("checkout ns:shop");
    await hit(page, "Deployment in shop").waitFor();
    await hit(page, "Service in shop").waitFor();
    await page.keyboard.press("Escape");
    await page.finish();
  },

  async "search: a view is saved, found again and forgotten"() {
    const page = await open("?view=objects&resource=pods&namespace=shop&labelSelector=app=cart");
    const n = await api.count("core/namespaces/shop/pods?labelSelector=app%3Dcart");
    await rows(page, n, "pods with app=cart");
    await page.keyboard.press("/");
    await page.keyboard.type("my carts");
    await hit(page, "Save this view as “my carts”").click();
    await page.locator(".toast.on", { hasText: "Saved" }).waitFor();
    await page.getByRole("link", { name: "Overview", exact: true }).click();
    await page.locator(".cards").waitFor();
    await page.keyboard.press("/");
    await page.keyboard.type("my carts");
    await page.locator('#hits li[aria-selected="true"]', { hasText: "my carts" }).waitFor();
    await page.keyboard.press("Enter");
    await rows(page, n, "pods of the saved view");
    assert(page.url().includes("labelSelector=app=cart"), page.url());
    await page.keyboard.press("/");
    await hit(page, "Forget this saved view").click();
    await page.keyboard.press("/");
    await page.keyboard.type("my carts");
    await until(async () => !(await page.locator("#hits li", { hasText: /^my carts/ }).count()), "it is forgotten");
    await page.finish();
  },
};
