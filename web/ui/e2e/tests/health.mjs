// From "something is wrong" to the cause in words, as a person sees it.
import { join } from "node:path";
import { startInformerd, until } from "../cluster.mjs";
import { api, assert, cluster, informerd, live, open, rows, shot } from "../world.mjs";

const queues = "/apis/messaging.example.com/v1/namespaces/team-a/queues";
const wrong = (page, name) => page.getByRole("region", { name: "What is wrong" }).getByRole("listitem").filter({ hasText: name });
const box = async (locator) => {
  const b = await locator.boundingBox();
  assert(b && b.width > 0 && b.height > 0, "it has a place on the screen");
  return b;
};

// A certificate of shop.example.com that was valid until April 2020, as a Secret has it.
const expired = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUJJVENCeWFBREFnRUNBZ0VCTUFvR0NDcUdTTTQ5QkFNQ01Cc3hHVEFYQmdOVkJBTU1FSE5vYjNBdVpYaGgKYlhCc1pTNWpiMjB3SGhjTk1qQX" +
  "dNVEF4TURBd01EQXdXaGNOTWpBd05EQXhNREF3TURBd1dqQWJNUmt3RndZRApWUVFEREJCemFHOXdMbVY0WVcxd2JHVXVZMjl0TUZrd0V3WUhLb1pJemowQ0FRWUlLb1pJemowREFRY0RRZ0FFCnVQ" +
  "MmtqYXRUSDBrK2JTNTBzajhqMlF6VGhQWWlWZmhyWlViM2lURWtXZGVUTnYxVjJwaUl4V0ZaZ0xVMldzOEIKN3dNV3FEQ1ZkYjlQNVk1RE44OEdBakFLQmdncWhrak9QUVFEQWdOSEFEQkVBaUJlMD" +
  "FHbnVRM3dRN1NHV1VoTApYMGkwa283TjRySks1WXBrWXBRendBRkFVQUlnWXNqTXp4Y1JkNGFxdVJZTjFsS2RKSVhLeE1yck9aOWNici9GCmFFYkNNUWs9Ci0tLS0tRU5EIENFUlRJRklDQVRFLS0t" +
  "LS0K";

export default {
  async "health: the overview says what is wrong and why, and one click leads there, or one key"() {
    const page = await open("", { width: 1440, height: 900 });
    await live(page);
    const line = wrong(page, "shop/recommendations");
    await line.getByText(/not found/).waitFor(); // the cause in words
    const b = await box(line);
    assert(b.y + b.height < 900, "it is in sight without scrolling");
    await shot(page, "health-light");
    const begun = Date.now();
    await line.getByRole("link", { name: /Deployment shop\/recommendations/ }).click();
    const sentence = page.getByRole("status").filter({ hasText: /ImagePullBackOff.*not found/ });
    await sentence.waitFor();
    const took = Date.now() - begun;
    assert((await box(sentence)).y < 300, "the sentence comes first");
    console.log(`    one click led to the cause in ${took} ms`);
    // What it owns, each with its health, as links.
    const row = page.getByRole("row", { name: /ImagePullBackOff Pod recommendations-/ }).first();
    for (const [width, height] of [[1200, 700], [390, 844]]) {
      await page.setViewportSize({ width, height });
      const why = row.getByText(/Back-off pulling/);
      const [text, tab] = [await box(why), await box(page.getByRole("tabpanel"))];
      assert(text.x + text.width <= tab.x + tab.width && text.width > 100, `the reason is seen whole at ${width} px: ${JSON.stringify([text, tab])}`);
    }
    await page.setViewportSize({ width: 1440, height: 900 });
    await row.getByRole("link").click();
    await page.getByRole("heading", { level: 1, name: /^recommendations-/ }).waitFor();
    const container = page.locator(".containers li", { hasText: "recommendations" });
    await container.getByText("ImagePullBackOff").first().waitFor();
    for (const what of ["Restarts", "Image", "Requests", "Limits"]) await box(container.locator("dt", { hasText: what }).first());
    await box(container.getByText(/v1\.0\.0-rc9/).first());
    // By keyboard alone.
    await page.goto(informerd.url);
    await wrong(page, "shop/recommendations").waitFor();
    for (let i = 0; i < 200 && !(await page.evaluate(() => document.activeElement?.matches(".trouble-row"))); i++) await page.keyboard.press("Tab");
    const name = await page.evaluate(() => document.activeElement.querySelector("b").textContent.split("/").at(-1));
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name, exact: true }).waitFor();
    await page.finish();
  },

  async "health: what happens is on the overview within seconds, and goes"() {
    const page = await open("");
    await live(page);
    await wrong(page, "recommendations").waitFor();
    const name = "page-degraded";
    await api.create(queues, { apiVersion: "messaging.example.com/v1", kind: "Queue", metadata: { name }, spec: { engine: "kafka", partitions: 1 } });
    const status = { status: { phase: "Degraded", conditions: [{ type: "Ready", status: "False", reason: "BrokerLost", message: "broker 3 is away", lastTransitionTime: new Date().toISOString().replace(/\.\d+/, "") }] } };
    await api.patch(`${queues}/${name}/status`, status).catch(() => api.patch(`${queues}/${name}`, status));
    const since = Date.now();
    const line = wrong(page, `team-a/${name}`);
    await line.getByText("broker 3 is away").waitFor({ timeout: 30_000 });
    console.log(`    it was named ${Date.now() - since} ms after the API server had answered`);
    await api.delete(`${queues}/${name}`);
    await line.waitFor({ state: "detached", timeout: 30_000 });
    await page.finish();
  },

  async "health: each kind of trouble is named on the overview, in words, soon after it is there"() {
    const page = await open("?trouble=all");
    await live(page);
    await wrong(page, "recommendations").waitFor();
    const at = "team-a", now = new Date().toISOString().replace(/\.\d+/, "");
    const pods = `core/namespaces/${at}/pods`, apps = `apps/namespaces/${at}`;
    const labels = (app) => ({ labels: { app } });
    const workload = (kind, name, fate, more = {}) => ({
      apiVersion: "apps/v1", kind, metadata: { name, ...labels(name) },
      spec: { selector: { matchLabels: { app: name } }, template: { metadata: { ...labels(name), annotations: { "devcluster.informerd.io/fate": fate } }, spec: { containers: [{ name: "main", image: "registry.example.com/none:1" }] } }, ...more },
    });
    const pod = (name, last) => ({ name, status: { phase: "Running", containerStatuses: [{ name: "main", image: "x", imageID: "", ready: false, restartCount: 4, state: { waiting: { reason: "CrashLoopBackOff", message: "back-off 80s" } }, lastState: { terminated: { ...last, startedAt: now, finishedAt: now } } }] } });
    const onBroken = { apiVersion: "v1", kind: "Pod", spec: { nodeName: "page-broken", tolerations: [{ operator: "Exists" }], containers: [{ name: "main", image: "registry.example.com/none:1" }] } };
    // What to make, what to say of its status, and what a person is to read.
    const troubles = [
      { what: "a node that is not ready", list: "core/nodes", object: { apiVersion: "v1", kind: "Node", metadata: { name: "page-broken" }, spec: { unschedulable: true } },
        status: { conditions: [{ type: "Ready", status: "False", reason: "KubeletNotReady", message: "container runtime is down", lastHeartbeatTime: now, lastTransitionTime: now }] }, line: "page-broken", words: /container runtime is down/ },
      ...[["a crash loop", pod("page-crash", { exitCode: 3, reason: "Error" }), /exit code 3|CrashLoopBackOff/], ["a container without memory", pod("page-oom", { exitCode: 137, reason: "OOMKilled" }), /OOMKilled|out of memory/]].map(([what, p, words]) => ({
        what, list: pods, object: { ...onBroken, metadata: { name: p.name } }, status: p.status, line: `${at}/${p.name}`, words })),
      { what: "a DaemonSet with no pod ready", list: apps + "/daemonsets", object: workload("DaemonSet", "page-agents", "image-pull-backoff"), line: `${at}/page-agents`, words: /^0 of \d+ (pods|nodes)|0 of \d+/ },
      { what: "a StatefulSet with no pod ready", list: apps + "/statefulsets", object: workload("StatefulSet", "page-db", "image-pull-backoff", { serviceName: "page-db", replicas: 3 }), line: `${at}/page-db`, words: /0 of 3/ },
      { what: "a stuck rollout", list: apps + "/deployments", object: workload("Deployment", "page-stuck", "image-pull-backoff", { progressDeadlineSeconds: 1 }), line: `${at}/page-stuck`, words: /0 of 1 replicas are ready/ },
      { what: "a claim without a volume", list: `core/namespaces/${at}/persistentvolumeclaims`, object: { apiVersion: "v1", kind: "PersistentVolumeClaim", metadata: { name: "page-claim" }, spec: { storageClassName: "none-such", accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } } }, line: `${at}/page-claim`, words: /no volume is bound/ },
      // It is about nothing that there is.
      { what: "a webhook without its service", list: "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", object: { apiVersion: "admissionregistration.k8s.io/v1", kind: "ValidatingWebhookConfiguration", metadata: { name: "page-webhook" },
        webhooks: [{ name: "check.page.example.com", clientConfig: { service: { namespace: at, name: "page-none", port: 443 } }, rules: [{ apiGroups: ["page.example.com"], apiVersions: ["v1"], operations: ["CREATE"], resources: ["nothings"] }], failurePolicy: "Ignore", sideEffects: "None", admissionReviewVersions: ["v1"] }] },
        line: "page-webhook", words: /Service team-a\/page-none, which is not there/ },
      { what: "a quota that is used up", list: `core/namespaces/${at}/resourcequotas`, object: { apiVersion: "v1", kind: "ResourceQuota", metadata: { name: "page-quota" }, spec: { hard: { "count/serviceaccounts": "1" } } }, line: `${at}/page-quota`, words: /of 1 count\/serviceaccounts are used/ },
    ];
    const made = [];
    try {
      for (const t of troubles) {
        const path = `${t.list}/${t.object.metadata.name}`;
        await api.create(t.list, t.object);
        made.unshift(path);
        if (t.status) await api.patch(path + "/status", { status: t.status });
        const since = Date.now();
        const line = wrong(page, t.line);
        await line.getByText(t.words).first().waitFor({ timeout: 30_000 });
        await box(line);
        console.log(`    ${t.what}: named after ${Date.now() - since} ms`);
      }
    } finally {
      for (const path of made) await api.delete(path).catch(() => {});
    }
    for (const t of troubles) await wrong(page, t.line).first().waitFor({ state: "detached", timeout: 60_000 });
    await page.finish();
  },

  async "health: a Secret's certificate that has expired is named on the overview, where it may be seen"() {
    const rules = "  - match: [secrets]\n    redact: [\"data['tls.key']\"]\n";
    const seeing = await startInformerd(cluster, { name: "certificates", kubeconfig: join(cluster.dir, "kubeconfig"), rules });
    const path = "core/namespaces/team-a/secrets", name = "page-expired";
    try {
      const page = await open("?trouble=all", { at: seeing.url });
      await live(page);
      await wrong(page, "recommendations").waitFor();
      await api.create(path, { apiVersion: "v1", kind: "Secret", metadata: { name }, type: "kubernetes.io/tls", data: { "tls.crt": expired, "tls.key": "" } });
      const since = Date.now();
      const line = wrong(page, `team-a/${name}`);
      await line.getByText("its certificate of shop.example.com expired at 2020-04-01T00:00:00Z").waitFor({ timeout: 30_000 });
      await box(line);
      console.log(`    an expired certificate: named after ${Date.now() - since} ms`);
      await api.delete(`${path}/${name}`);
      await line.waitFor({ state: "detached", timeout: 60_000 });
      await page.finish();
    } finally {
      await api.delete(`${path}/${name}`).catch(() => {});
      await seeing.stop();
    }
  },

  async "health: a namespace has a page, stays chosen, and is in sight with its cluster, by keys"() {
    const page = await open("");
    await live(page);
    await wrong(page, "recommendations").waitFor();
    await page.keyboard.press("n");
    const picker = page.getByRole("combobox", { name: "Namespace to work in" });
    assert(await picker.evaluate((el) => el === document.activeElement), "n goes to the namespaces");
    await picker.selectOption("team-a");
    await page.getByRole("heading", { level: 1, name: "team-a" }).waitFor();
    await wrong(page, "legacy-importer").getByText(/exit code 1|not found|restarts/).waitFor();
    assert((await wrong(page, "shop/recommendations").count()) === 0, "what is elsewhere is elsewhere");
    assert(page.url().includes("namespace=team-a"), "the address has it");
    const n = await api.count("apps/namespaces/team-a/deployments?limit=500");
    await page.getByRole("navigation", { name: "Kinds" }).getByRole("link", { name: /^Deployments/ }).click();
    await rows(page, n, "Deployments of team-a");
    await page.locator(".grid").focus();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await page.getByRole("tab", { name: "Status", selected: true }).waitFor();
    // Keys of an object: its tabs, and back to its kind.
    for (const [key, tab] of [["y", "YAML"], ["e", "Events"], ["g", "Relations"], ["1", "Status"], ["2", "YAML"]]) {
      await page.keyboard.press(key);
      await page.getByRole("tab", { name: tab, selected: true }).waitFor();
    }
    await page.keyboard.press("Escape");
    await rows(page, n, "Deployments of team-a");
    const { gitVersion } = await api.get("/version");
    for (const [width, height] of [[1280, 760], [390, 844]]) {
      await page.setViewportSize({ width, height });
      const seen = page.locator(".cluster-name").filter({ hasText: gitVersion, visible: true });
      const b = await box(seen);
      assert((await seen.count()) === 1 && b.x >= 0 && b.x + b.width <= width && b.y + b.height <= height, `cluster and version are in sight at ${width} px`);
      assert((await picker.inputValue()) === "team-a" && (await box(picker)).width > 40, "the namespace stays in sight");
    }
    await page.finish();
  },

  async "health: what cannot be asked does not look like none"() {
    const page = await open("");
    await live(page);
    for (const url of ["**/v1/resources/resourcequotas/objects**", "**/v1/graph/**", "**/v1/health**"]) await page.route(url, (route) => route.fulfill({ status: 503, contentType: "application/json", body: '{"kind":"Status","message":"no data yet","code":503}' }));
    const said = async (where, what) => {
      const alert = where.getByRole("alert").filter({ hasText: "no data yet" });
      await alert.waitFor();
      assert((await box(alert)).width > 50, what + " says so");
    };
    await page.goto(informerd.url + "?namespace=shop");
    await said(page.locator("section").filter({ has: page.getByRole("heading", { name: "Quotas" }) }), "the card of quotas");
    await said(page.getByRole("region", { name: "What is wrong" }), "the overview");
    await page.goto(informerd.url + "?view=object&resource=deployments.apps&namespace=shop&name=cart");
    await said(page.locator("section").filter({ has: page.getByRole("heading", { name: "Refers to" }) }), "the references");
    await page.goto(informerd.url + "?view=objects&resource=deployments.apps&namespace=shop");
    await page.getByRole("note").filter({ hasText: "The column Health may be old: no data yet" }).waitFor();
    await page.finish();
  },

  async "health: a node shows what its pods ask for of what it has"() {
    const { items } = await api.get("core/namespaces/shop/pods");
    const node = items.find((p) => p.spec.nodeName && p.status.phase === "Running").spec.nodeName;
    const n = items.length && (await api.get(`core/pods?fieldSelector=${encodeURIComponent(`spec.nodeName=${node},status.phase!=Succeeded,status.phase!=Failed`)}`)).items.length;
    const { status } = await api.get(`core/nodes/${node}`);
    const page = await open(`?view=object&resource=nodes&name=${node}`);
    const line = page.locator(".capacity li").filter({ has: page.locator(".label", { hasText: /^pods$/ }) });
    await until(async () => (await line.locator("b").textContent()) === String(n), `${n} pods`);
    assert((await line.textContent()).includes(`of ${status.allocatable.pods}`), await line.textContent());
    const [track, bar] = [await box(line.locator(".track")), await box(line.locator(".track i"))];
    assert(Math.abs(bar.width / track.width - n / Number(status.allocatable.pods)) < 0.02, `the bar is as long as its share: ${bar.width} of ${track.width}`);
    await page.finish();
  },

  async "health: a node shows what a drain would lose, and what a budget would block, before anybody drains it"() {
    const { items } = await api.get("core/namespaces/shop/pods"); // of the nodes some are there by name only
    const node = items.find((p) => p.spec.nodeName && p.status.phase === "Running").spec.nodeName;
    const pods = "core/namespaces/team-a/pods", budgets = "/apis/policy/v1/namespaces/team-a/poddisruptionbudgets";
    const labels = { app: "page-drain" };
    await api.create(pods, { metadata: { name: "page-drain", labels }, spec: { nodeName: node, containers: [{ name: "main", image: "registry.example/page:1" }], volumes: [{ name: "tmp", emptyDir: {} }] } });
    await until(async () => (await api.get(`${pods}/page-drain`)).status.phase === "Running", "the pod runs");
    const page = await open(`?view=object&resource=nodes&name=${node}`, { width: 1440, height: 900 });
    const section = page.getByRole("region", { name: "A drain of this node" });
    const line = section.getByRole("listitem").filter({ hasText: "team-a/page-drain" });
    await line.getByText("lost", { exact: true }).waitFor();
    await line.getByText("loses its emptyDir").waitFor();
    assert((await box(line)).width > 300 && /nothing makes it again/.test(await line.textContent()), await line.textContent());
    const number = async (fate) => Number(/\d+/.exec((await section.locator("p .word", { hasText: fate }).first().textContent()))[0]);
    assert((await number("lost")) >= 1, "it is counted");
    await api.create(budgets, { metadata: { name: "page-drain" }, spec: { minAvailable: 1, selector: { matchLabels: labels } } });
    await line.getByText("blocked", { exact: true }).waitFor();
    await line.getByText(/PodDisruptionBudget page-drain allows no disruption/).waitFor();
    // The API server agrees: to evict it is refused.
    const refused = await api.create(`${pods}/page-drain/eviction`, { apiVersion: "policy/v1", kind: "Eviction", metadata: { name: "page-drain" } }).then(() => "evicted", (e) => e.message);
    assert(/429/.test(refused), refused);
    await page.setViewportSize({ width: 390, height: 844 });
    const text = await box(line);
    assert(text.x + text.width <= 390, `it is seen whole on a phone: ${JSON.stringify(text)}`);
    await shot(page, "drain-phone");
    await line.getByRole("link").click();
    await page.getByRole("heading", { level: 1, name: "page-drain" }).waitFor();
    await api.delete(`${budgets}/page-drain`);
    await api.delete(`${pods}/page-drain`);
    await page.finish();
  },

  async "health: objects are counted by how they are, and each bar leads to its rows"() {
    const page = await open("?view=objects&resource=pods&namespace=shop");
    await live(page);
    await page.getByRole("button", { name: "Group by a field" }).click();
    await page.getByRole("button", { name: "health()" }).click();
    const bar = page.locator(".groups a.bar-row", { hasText: "bad" });
    const n = Number(await bar.locator("b").textContent());
    assert(n > 0 && new URL(page.url()).searchParams.get("group") === "health()", `${n} bad: ${page.url()}`);
    await bar.click();
    await rows(page, n, "bad pods");
    assert(await page.locator(".grid .rows .tr", { hasText: "recommendations" }).count(), "those that cannot pull their image are there");
    await page.finish();
  },

  async "health: tables show the worst first, graphs and kinds are colored and say so"() {
    const page = await open("?view=objects&resource=deployments.apps", { width: 1440, height: 900 });
    await live(page);
    await page.locator(".health-cell", { hasText: "good" }).first().waitFor();
    const cells = page.locator(".grid .rows .tr .health-cell");
    await until(async () => /^bad: /.test((await cells.first().textContent()).trim()), "what is bad comes first");
    const color = (l) => l.evaluate((el) => getComputedStyle(el).color);
    assert((await color(cells.first())) !== (await color(page.locator(".health-cell", { hasText: "good" }).first())), "it has another color");
    const b = await box(cells.first());
    assert(b.x + b.width < 1440 && (await cells.first().evaluate((el) => el.scrollWidth <= el.clientWidth + 1)), "the reason is seen whole");
    await page.getByRole("navigation", { name: "Kinds" }).getByRole("link", { name: /^Deployments \d+ bad, \d+$/ }).waitFor();
    await page.getByLabel("In the table").fill("health:bad");
    await until(async () => (await cells.allTextContents()).every((t) => t.trim().startsWith("bad")), "words find it");
    await page.goto(informerd.url + "?view=object&resource=deployments.apps&namespace=shop&name=recommendations&tab=relations");
    const node = page.locator(".picture .node.root");
    await node.locator("text", { hasText: "ImagePullBackOff" }).waitFor();
    const fill = (l) => l.locator("rect").last().evaluate((el) => getComputedStyle(el).fill);
    assert((await fill(node)) !== (await fill(page.locator(".picture .node", { hasText: "ServiceAccount" }).first())), "the box has another color");
    await page.finish();
  },
};
