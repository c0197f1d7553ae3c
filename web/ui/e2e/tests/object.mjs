import { sleep } from "../cluster.mjs";
import { api, assert, cartPod, informerd, live, objectQuery, open, pod, shot } from "../world.mjs";

export default {
  async "object: text, find, fold, conditions, owners, labels"() {
    const page = await open(objectQuery("&tab=yaml"));
    await page.getByRole("heading", { name: cartPod }).waitFor();
    await page.locator(".line").first().waitFor();
    const text = () => page.locator(".lines").innerText();
    assert((await text()).includes("kind") && (await text()).includes("Pod"), "YAML is shown");
    const find = page.getByLabel("Find in the text");
    await find.fill("containers:");
    await find.press("Enter");
    await page.locator(".line mark").first().waitFor();
    await page.getByRole("tab", { name: "JSON" }).click();
    await page.getByText('"apiVersion"').first().waitFor();
    await page.getByRole("button", { name: "Fold", exact: true }).click();
    await page.locator(".line .more").first().waitFor();
    await page.getByRole("button", { name: "Unfold", exact: true }).click();
    await page.locator(".line .more").first().waitFor({ state: "detached" });
    await page.locator(".conditions li", { hasText: "Ready: True" }).first().waitFor();
    await page.locator(".chain a", { hasText: "Deployment cart" }).first().waitFor();
    await page.locator(".labels a", { hasText: "cart" }).first().click();
    await page.locator(".grid").waitFor();
    assert(page.url().includes("labelSelector"), "a label leads to its query");
    await page.finish();
  },

  async "object: managedFields are shown when they are wanted"() {
    const page = await open("?view=object&resource=deployments.apps&namespace=shop&name=cart&tab=yaml");
    await page.getByLabel("Find in the text").fill("fieldsV1");
    const tally = page.locator(".tally[role=status]");
    await tally.filter({ hasText: "none" }).waitFor();
    await page.getByLabel("managedFields").check();
    await tally.filter({ hasText: /^1 of \d/ }).waitFor();
    await page.reload(); // the address has both
    await tally.filter({ hasText: /^1 of \d/ }).waitFor();
    await page.getByLabel("managedFields").uncheck();
    await tally.filter({ hasText: "none" }).waitFor();
    await page.goto(informerd.url + objectQuery("&tab=yaml"));
    await page.getByText("no managedFields kept").waitFor(); // the configuration drops those of pods
    await page.finish();
  },

  async "object: changes as they arrive, with what moved, and its deletion"() {
    await api.create("core/namespaces/team-a/pods", pod("page-object", { step: "one" }));
    const page = await open("?view=object&resource=pods&namespace=team-a&name=page-object&tab=changes");
    await page.getByRole("heading", { name: "page-object" }).waitFor();
    await live(page);
    await page.getByText(/Changes appear here as they happen\.|fields?$/).first().waitFor();
    await api.patch("core/namespaces/team-a/pods/page-object", { metadata: { labels: { step: "two" } } });
    await page.locator(".changes dt", { hasText: "metadata.labels.step" }).first().waitFor();
    await page.locator(".changes del", { hasText: "one" }).first().waitFor();
    await page.locator(".changes ins", { hasText: "two" }).first().waitFor();
    await api.delete("core/namespaces/team-a/pods/page-object");
    await page.getByText(/^deleted \d/).waitFor({ timeout: 15_000 });
    await page.getByRole("heading", { name: "page-object" }).waitFor();
    await page.finish();
  },

  async "object: its events, and none of others"() {
    const { metadata: { uid } } = await api.get(`core/namespaces/shop/pods/${cartPod}`);
    await api.create("core/namespaces/shop/events", {
      metadata: { generateName: "page-" }, reason: "PageLooked", message: "somebody looked at it", type: "Normal", count: 3,
      involvedObject: { kind: "Pod", namespace: "shop", name: cartPod, uid }, lastTimestamp: new Date().toISOString().replace(/\.\d+/, ""),
    });
    const page = await open(objectQuery("&tab=events"));
    await page.getByRole("row", { name: /PageLooked.*somebody looked at it/ }).first().waitFor({ timeout: 15_000 });
    await page.goto(informerd.url + "?view=object&resource=configmaps&namespace=kube-system&name=extension-apiserver-authentication&tab=events");
    await page.getByText("None: the cluster keeps no event of this object.").waitFor();
    await page.finish();
  },

  async "object: compare with another"() {
    const page = await open("?view=object&resource=deployments.apps&namespace=shop&name=cart&tab=compare");
    await page.getByText("Choose another Deployment").waitFor();
    await page.getByLabel("with").fill("shop/checkout");
    await page.getByLabel("with").press("Enter");
    await page.locator(".diff ins", { hasText: "checkout" }).first().waitFor();
    await page.locator(".diff del", { hasText: "cart" }).first().waitFor();
    assert((await page.locator(".diff ins", { hasText: "uid:" }).count()) === 0, "identity is left out");
    await page.getByLabel("identity and status").check();
    await page.locator(".diff ins", { hasText: "uid:" }).first().waitFor();
    assert(/with=shop\/checkout&all=1/.test(page.url()), "the address has it: " + page.url());
    await page.getByLabel("with").fill("shop/nobody");
    await page.getByLabel("with").press("Enter");
    await page.locator(".diff .error").waitFor();
    await page.finish();
  },

  async "object: one that does not exist yet appears when it is created"() {
    const page = await open("?view=object&resource=configmaps&namespace=team-a&name=page-later&tab=yaml");
    await page.getByRole("heading", { name: "There is none" }).waitFor();
    await sleep(300);
    await api.configMap("page-later");
    await page.locator(".line").first().waitFor({ timeout: 15_000 });
    await api.delete("core/namespaces/team-a/configmaps/page-later");
    await page.finish();
  },

  async "relations: a graph and a list, with what does not exist"() {
    const page = await open("?view=object&resource=deployments.apps&namespace=team-a&name=legacy-importer&tab=relations");
    await page.locator(".picture .node.root").waitFor();
    await page.locator(".picture .node.missing", { hasText: "importer-mappings" }).waitFor();
    await page.locator(".picture .node.unknown", { hasText: "ftp-credentials" }).waitFor();
    await shot(page, "missing-light");
    // A graph can be walked by keyboard.
    await page.locator(".picture").focus();
    await page.keyboard.press("Tab");
    assert(await page.evaluate(() => !!document.activeElement.closest(".node")), "nodes take the focus");
    await page.getByRole("button", { name: "List" }).click();
    await page.locator(".tree li", { hasText: "importer-mappings" }).getByText("does not exist").first().waitFor();
    await page.getByText("unknown: not allowed").first().waitFor();
    assert(page.url().includes("rel=list"), "the address has it");
    await page.goto(informerd.url + "?view=object&resource=deployments.apps&namespace=shop&name=cart&tab=relations&rel=list");
    await page.locator(".tree a", { hasText: cartPod }).waitFor({ timeout: 15_000 });
    await page.finish();
  },
};
