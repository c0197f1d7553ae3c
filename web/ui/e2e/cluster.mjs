// A real control plane and a real informerd for the browser to look at.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, openSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../../", import.meta.url));
const devcluster = process.env.DEVCLUSTER ?? join(root, "bin/devcluster");
const program = process.env.INFORMERD_BIN ?? join(root, "bin/informerd");

// Whatever happens here, nothing that was started stays behind.
const children = new Set();
process.on("exit", () => children.forEach((c) => c.kill("SIGTERM")));
for (const s of ["SIGINT", "SIGTERM"]) process.on(s, () => process.exit(130));

function start(command, args, stdio) {
  const child = spawn(command, args, { stdio });
  children.add(child);
  child.once("exit", () => children.delete(child));
  return child;
}

async function stop(child) {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const end = once(child, "exit");
  child.kill("SIGTERM");
  await end;
}

/** The first line that a child prints; an error if it ends without one. */
async function firstLine(child, what) {
  const died = once(child, "exit").then(([code]) => {
    throw new Error(`${what} ended with ${code}`);
  });
  died.catch(() => {});
  const [line] = await Promise.race([once(createInterface(child.stdout), "line"), died]);
  return line;
}

export const sleep = (ms) => new Promise((r) => setTimeout(r, ms));

async function freePort() {
  const s = createServer().listen(0, "127.0.0.1");
  await once(s, "listening");
  const { port } = s.address();
  s.close();
  return port;
}

/** The parts of a cluster in which nothing happens by itself. */
export const small = ["--components", "etcd,kube-apiserver"];

/** Starts a cluster with the demo data and so many quiet pods, unless one runs. */
export async function startCluster(pods, running, of = ["--seed", "demo"]) {
  const dir = running || mkdtempSync(join(tmpdir(), "page-e2e-"));
  let control;
  if (!running) {
    const args = ["--dir", dir, ...of, ...(pods ? ["--pods", String(pods)] : [])];
    control = start(devcluster, args, ["ignore", "pipe", openSync(join(dir, "devcluster.log"), "a")]);
    console.log((await firstLine(control, `devcluster in ${dir}`)).replace(dir, "DIR"));
  }
  // The API without credentials, for requests that cost no process each.
  const proxy = start(devcluster, ["kubectl", "--kubeconfig", join(dir, "kubeconfig"), "proxy", "--port=0"], ["ignore", "pipe", "ignore"]);
  const server = "http://" + /127\.0\.0\.1:\d+/.exec(await firstLine(proxy, "kubectl proxy"))[0];
  return {
    dir,
    server,
    api: new Api(server),
    /** Starts and stops components: ctl("stop", "kube-apiserver"). */
    async ctl(...a) {
      const [code] = await once(start(devcluster, ["ctl", "--dir", dir, ...a], "ignore"), "exit");
      if (code !== 0) throw new Error(`devcluster ctl ${a.join(" ")} ended with ${code}`);
    },
    async stop() {
      await stop(proxy);
      if (!control) return;
      await stop(control);
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

/** The Kubernetes API as the tests change and count things. Paths are those of
 * the API, with core/ for /api/v1/ and apps/ for /apis/apps/v1/. */
class Api {
  constructor(server) {
    this.server = server;
  }

  async ask(method, path, body, type = "application/json") {
    const url = this.server + path.replace(/^core\//, "/api/v1/").replace(/^apps\//, "/apis/apps/v1/");
    const r = await fetch(url, { method, headers: body ? { "Content-Type": type } : {}, body: body && JSON.stringify(body) });
    if (!r.ok) throw new Error(`${method} ${path}: ${r.status} ${(await r.text()).slice(0, 300)}`);
    return r.json();
  }

  get = (path) => this.ask("GET", path);
  create = (path, object) => this.ask("POST", path, object);
  patch = (path, change) => this.ask("PATCH", path, change, "application/merge-patch+json");
  delete = (path) => this.ask("DELETE", path, { gracePeriodSeconds: 0 });

  /** How many objects there are. */
  async count(path) {
    const { items, metadata } = await this.get(path + (path.includes("?") ? "" : "?limit=1"));
    return items.length + (metadata.remainingItemCount ?? 0);
  }

  /** A ConfigMap in team-a, also if a test that was cut short left it there. */
  configMap = (name, more = {}) =>
    this.ask("PATCH", `core/namespaces/team-a/configmaps/${name}?fieldManager=page&force=true`, { apiVersion: "v1", kind: "ConfigMap", metadata: { name, ...more } }, "application/apply-patch+yaml");
}

const config = (rules) => `resources:
${rules}  - match: [leases.coordination.k8s.io]
    watch: false
  - match: [pods]
    indexes: {node: spec.nodeName, phase: status.phase}
  - match: [deployments.apps]
    drop: []
  - match: ["*"]
`;

/** Starts an informerd, by default one that may read everything but Secrets. rules come before
 * those of its configuration, more after its resources. clusters are its clusters by name, if
 * they are several. */
export async function startInformerd(cluster, { name = "informerd", kubeconfig = join(cluster.dir, "kubeconfig-nosecrets"), ready = true, rules = "", more = "", clusters = undefined } = {}) {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}/`;
  const file = (suffix) => join(cluster.dir, `${name}-${process.pid}${suffix}`);
  const named = Object.entries(clusters ?? {}).map(([name, c]) => `  - {name: ${name}, kubeconfig: ${join(c.dir, "kubeconfig")}}\n`);
  writeFileSync(file(".yaml"), config(rules) + more + (named.length ? "clusters:\n" + named.join("") : ""));
  let child;
  const self = {
    url,
    async start() {
      child = start(program, ["serve", "--config", file(".yaml"), ...(clusters ? [] : ["--kubeconfig", kubeconfig]), "--snapshot", file(".db"), "--listen", `127.0.0.1:${port}`],
        ["ignore", "ignore", openSync(file(".log"), "a")]);
      await until(async () => (await fetch(url + (ready ? "readyz" : "livez"))).ok, "informerd is ready");
    },
    stop: () => stop(child),
  };
  await self.start();
  return self;
}

/** How long a noisy machine may take for what a user waits a moment for, in ms. */
export const patience = 90_000;

/** Waits until something holds; says what did not. */
export async function until(test, what, ms = patience) {
  const deadline = Date.now() + ms;
  let last = "";
  for (;;) {
    try {
      const v = await test();
      if (v) return v;
      last = JSON.stringify(v);
    } catch (e) {
      last = e.message;
    }
    if (Date.now() > deadline) throw new Error(`not within ${ms} ms: ${what} (${last})`);
    await sleep(50);
  }
}
