import { until } from "../cluster.mjs";
import { api, assert, cartPod, cluster, has, informerd, live, open, rowCount, rows, shot } from "../world.mjs";

export default {
  async "outage: with the API server away the page says so, keeps its data and catches up"() {
    const page = await open("?view=objects&resource=pods&namespace=shop", { width: 1200, height: 700 });
    await live(page);
    const n = await until(() => rowCount(page), "rows");
    await cluster.ctl("stop", "kube-apiserver");
    await page.locator("footer.status.stale").waitFor({ timeout: 60_000 });
    await has(page, "does not answer informerd");
    await has(page, "old; it catches up by itself");
    await page.locator(".head .state-stale").first().waitFor({ timeout: 30_000 });
    assert((await rowCount(page)) === n, "the rows are still there");
    assert(await page.locator(".table-area.old").count(), "they are greyed");
    await page.reload();
    await rows(page, n, "rows after a reload");
    await page.locator(".head .state-stale").first().waitFor({ timeout: 30_000 });
    await shot(page, "stale-light");
    await cluster.ctl("start", "kube-apiserver");
    await live(page);
    await api.delete(`core/namespaces/shop/pods/${cartPod}`);
    await until(async () => !(await page.getByRole("link", { name: cartPod }).count()), "changes arrive again");
    await page.finish();
  },

  async "restart: with informerd away the page greys its data, and recovers by itself"() {
    const page = await open("?view=objects&resource=configmaps&namespace=team-a", { width: 1200, height: 700 });
    await live(page);
    const n = await until(() => rowCount(page), "rows");
    await informerd.stop();
    await page.locator("footer.status.down").waitFor({ timeout: 30_000 });
    await has(page, "informerd does not answer");
    await has(page, "what you see is");
    assert((await rowCount(page)) === n, "the rows are still there");
    assert(await page.locator(".app.offline").count(), "they are greyed");
    await shot(page, "offline-light");
    await api.configMap("page-meanwhile");
    await informerd.start();
    await page.getByRole("link", { name: "page-meanwhile" }).waitFor({ timeout: 30_000 });
    await live(page);
    await api.delete("core/namespaces/team-a/configmaps/page-meanwhile");
    await rows(page, n, "rows");
    await page.finish();
  },
};
