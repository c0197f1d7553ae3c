// The page in Chromium against a real informerd and a real API server.
//
//   node e2e/run.mjs [--pods N] [--churn SECONDS] [--screens DIR] [--only REGEXP]
//
// --screens writes pictures of every view. Without it nothing is written.
// --cluster DIR uses the devcluster that runs there, with the demo data.
import { join } from "node:path";
import { sleep } from "./cluster.mjs";
import { api, browser, churn, cluster, informerd, only, open, screens, settled, shot, views } from "./world.mjs";

const began = Date.now();
let failed = 0;

async function picture(what, query, dark) {
  const page = await open(query, { dark, width: 1200, height: 700 });
  await settled(page);
  if (what === "changes") await api.patch("apps/namespaces/shop/deployments/cart", { spec: { replicas: dark ? 3 : 4 } });
  await sleep(what === "changes" || what === "overview" || what === "relations" ? 2500 : 0);
  const name = `${what}-${dark ? "dark" : "light"}`;
  await shot(page, name);
  if (what === "overview") {
    await page.keyboard.press("/");
    await page.keyboard.type("deploy c");
    await sleep(600);
    await shot(page, name.replace(what, "search"));
  }
  await page.finish();
}

async function run(name, test) {
  const start = Date.now();
  const limit = 300 + churn;
  try {
    await Promise.race([test(), sleep(limit * 1000).then(() => Promise.reject(new Error(`not done after ${limit} s`)))]);
    console.log(`ok    ${name} (${Date.now() - start} ms)`);
  } catch (e) {
    failed++;
    console.log(`FAIL  ${name}: ${e.message.split("\n").slice(0, 4).join(" ")}`);
    for (const c of browser.contexts()) {
      const [p] = c.pages();
      if (p && process.env.SHOTS) await p.screenshot({ path: join(process.env.SHOTS, name.replace(/\W+/g, "-").slice(0, 40) + ".png") }).catch(() => {});
      await c.close();
    }
  }
}

try {
  if (screens && !only.source.trim().replace("(?:)", "")) for (const dark of [false, true]) for (const [what, query] of Object.entries(views)) await picture(what, query, dark);
  // Outages come last: what is live before must not be catching up.
  for (const area of ["resources", "objects", "sight", "health", "object", "overview", "search", "access", "handlers", "clusters", "large", "memory", "outage"]) {
    const { default: tests } = await import(`./tests/${area}.mjs`);
    for (const [name, test] of Object.entries(tests)) if (only.test(name)) await run(name, test);
  }
} catch (e) {
  failed++;
  console.log(e);
} finally {
  await browser.close();
  await informerd.stop();
  await cluster.stop();
}
console.log(`${failed ? failed + " failed" : "all passed"} in ${Math.round((Date.now() - began) / 1000)} s`);
process.exit(failed ? 1 : 0);
