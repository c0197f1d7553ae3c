import { sleep } from "../cluster.mjs";
import { api, assert, churn, live, open, rowCount } from "../world.mjs";
import { until } from "../cluster.mjs";

/** What a page holds after a collection: its heap in MB, its nodes and listeners. */
async function probe(page) {
  const client = await page.context().newCDPSession(page);
  await client.send("Performance.enable");
  return async () => {
    await client.send("HeapProfiler.collectGarbage");
    const { usedSize } = await client.send("Runtime.getHeapUsage");
    const { metrics } = await client.send("Performance.getMetrics");
    const of = (name) => metrics.find((m) => m.name === name).value;
    return { heap: usedSize / 1e6, nodes: of("Nodes"), listeners: of("JSEventListeners") };
  };
}

const path = "core/namespaces/team-a/configmaps";

/** Ten changes a second: one object is changed all the time, others come and go. */
async function change(seconds) {
  for (let n = 0; n < seconds * 10; n++) {
    const next = sleep(100);
    if (n % 5 === 0) await api.configMap("page-churn-" + (n % 50), { labels: { n: String(n) } });
    else if (n % 5 === 4) await api.delete(`${path}/page-churn-${(n - 4) % 50}`);
    else await api.patch(`${path}/page-churn`, { data: { n: String(Math.random()) } });
    await next;
  }
}

export default {
  async "memory: stable through churn"() {
    await api.configMap("page-churn");
    const pages = {
      table: await open("?view=objects&resource=configmaps&namespace=team-a&facets=1"),
      many: await open("?view=objects&resource=configmaps,deployments.apps,services"),
      object: await open("?view=object&resource=configmaps&namespace=team-a&name=page-churn&tab=changes"),
      overview: await open(""),
    };
    const look = {};
    for (const [name, page] of Object.entries(pages)) {
      await page.bringToFront();
      await live(page);
      look[name] = await probe(page);
    }
    await until(async () => (await rowCount(pages.table)) > 0, "rows");
    await change(15); // the object keeps its last 100 changes: from here on they are replaced
    const first = {}, last = {};
    for (const name in pages) first[name] = await look[name]();
    const steps = Math.max(1, Math.round(churn / 60));
    for (let i = 1; i <= steps; i++) {
      await change(churn / steps);
      for (const name in pages) last[name] = await look[name]();
      console.log(`    after ${Math.round((churn * i) / steps)} s: ` + Object.entries(last).map(([name, l]) => `${name} ${first[name].heap.toFixed(1)}→${l.heap.toFixed(1)} MB, ${first[name].nodes}→${l.nodes} nodes`).join("; "));
    }
    await api.delete(`${path}/page-churn`);
    for (const name in pages) {
      assert(last[name].heap < first[name].heap + 2, `the heap of ${name} grew from ${first[name].heap} to ${last[name].heap} MB`);
      assert(last[name].listeners < first[name].listeners * 1.5 + 50, `the listeners of ${name} grew from ${first[name].listeners} to ${last[name].listeners}`);
      assert(last[name].nodes < first[name].nodes * 1.5 + 500, `the nodes of ${name} grew from ${first[name].nodes} to ${last[name].nodes}`);
      await pages[name].finish();
    }
  },
};
