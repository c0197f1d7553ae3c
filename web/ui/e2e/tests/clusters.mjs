// Three real control planes in one page: all of them, one that is chosen, and one that is away.
import { small, startCluster, startInformerd, until } from "../cluster.mjs";
import { api, assert, cluster, live, noBadAxe, open, rows, shot } from "../world.mjs";

const namespaces = "core/namespaces";
const chooser = (page) => page.getByRole("combobox", { name: "Cluster" }).filter({ visible: true });
const options = (page) => chooser(page).locator("option").allTextContents();
const chosen = (page) => chooser(page).inputValue();
const kinds = (page) => page.getByRole("navigation", { name: "Kinds" });
const wrong = (page) => page.getByRole("region", { name: "What is wrong" });

export default {
  async "clusters: all are in the page, one can be chosen, and one that is away is told"() {
    const [east, west] = await Promise.all([startCluster(0, "", small), startCluster(0, "", small)]);
    const all = await startInformerd(cluster, { name: "clusters", clusters: { demo: cluster, east, west } });
    try {
      await west.api.create(namespaces, { metadata: { name: "only-west" } });
      const now = new Date().toISOString().replace(/\.\d+/, "");
      await west.api.create("core/nodes", { metadata: { name: "west-node" } });
      await west.api.patch("core/nodes/west-node/status", { status: { conditions: [{ type: "Ready", status: "False", reason: "KubeletNotReady", message: "container runtime is down", lastHeartbeatTime: now, lastTransitionTime: now }] } });
      const page = await open("", { at: all.url, width: 1440, height: 900 });
      await live(page);

      // What is wrong in any of them is in sight, with where it is.
      await wrong(page).getByRole("listitem").filter({ hasText: "west / Node" }).getByText("container runtime is down").waitFor();
      await wrong(page).getByRole("listitem").filter({ hasText: "demo / " }).first().waitFor();
      assert((await options(page)).join() === "3 clusters,demo,east,west", (await options(page)).join());
      await shot(page, "clusters");
      await noBadAxe(page, "an overview of several clusters");

      // One of them: nothing of the others, and its version.
      await chooser(page).selectOption("west");
      const { gitVersion } = await west.api.get("/version");
      await page.locator(".cluster-name").filter({ hasText: gitVersion, visible: true }).waitFor();
      await until(async () => (await wrong(page).getByRole("listitem").count()) === 1, "only the node of west is wrong");
      await kinds(page).getByRole("link", { name: /^Namespaces/ }).click();
      await rows(page, await west.api.count(namespaces), "namespaces of west");
      await page.reload();
      await rows(page, await west.api.count(namespaces), "namespaces of west after a reload");
      assert((await chosen(page)) === "west", "it stays chosen");

      // The same kind of all of them, with a column that says where each is.
      await chooser(page).selectOption({ label: "3 clusters" });
      const everywhere = async () => (await Promise.all([api, east.api, west.api].map((a) => a.count(namespaces)))).reduce((a, b) => a + b);
      await rows(page, everywhere, "namespaces of all clusters");
      await page.getByRole("columnheader", { name: "Cluster" }).waitFor();
      await page.getByRole("searchbox").or(page.locator("[data-filter]")).first().fill("kube-system");
      await rows(page, 3, "namespaces kube-system");
      const cells = await page.locator(".grid [role=row]").allTextContents();
      for (const name of ["demo", "east", "west"]) assert(cells.filter((c) => c.includes(name)).length === 1, `${name} has one row: ${cells}`);
      await shot(page, "clusters-table");
      await noBadAxe(page, "a table of several clusters");

      // Search finds in all of them, and leads to the one.
      await page.keyboard.press("Escape");
      await page.keyboard.press("Control+k");
      await page.keyboard.type("only-west");
      await page.getByRole("option").filter({ hasText: "of west" }).first().waitFor();
      await page.keyboard.press("Enter");
      await page.getByRole("heading", { level: 1, name: "only-west" }).waitFor();
      assert((await chosen(page)) === "west", "the object's cluster is in sight");

      // One that goes away is told, and takes nothing from the others.
      await page.goto(all.url);
      await live(page);
      await west.ctl("stop", "kube-apiserver");
      await until(async () => (await options(page)).includes("west (not live)"), "west is not live");
      await api.create(namespaces, { metadata: { name: "page-while-away" } });
      await chooser(page).selectOption("demo");
      await kinds(page).getByRole("link", { name: /^Namespaces/ }).click();
      await rows(page, () => api.count(namespaces), "namespaces of the demo");
      await page.setViewportSize({ width: 390, height: 844 });
      const box = await chooser(page).boundingBox();
      assert(box && box.width > 40 && box.x >= 0 && box.x + box.width <= 390 && box.y + box.height <= 844, `the chooser is in sight on a phone: ${JSON.stringify(box)}`);
      await shot(page, "clusters-phone");
      await page.finish();
    } finally {
      await api.delete(`${namespaces}/page-while-away`).catch(() => {});
      await all.stop();
      await Promise.all([east.stop(), west.stop()]);
    }
  },
};
