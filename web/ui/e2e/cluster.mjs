// A real control plane and a real informerd for the browser to look at.
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, openSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const root = fileURLToPath(new URL("../../../", import.meta.url));
const devcluster = process.env.DEVCLUSTER ?? join(root, "bin/devcluster");
const program = process.env.INFORMERD_BIN ?? join(root, "bin/informerd");
const run = promisify(execFile);

// Whatever happens here, nothing that was started stays behind.
const children = new Set();
process.on("exit", () => children.forEach((c) => c.kill("SIGTERM")));
for (const s of ["SIGINT", "SIGTERM"]) process.on(s, () => process.exit(130));
function keep(child) {
  children.add(child);
  child.once("exit", () => children.delete(child));
  return child;
}

export const sleep = (ms) => new Promise((r) => setTimeout(r, ms));

async function freePort() {
  const s = createServer().listen(0, "127.0.0.1");
  await once(s, "listening");
  const { port } = s.address();
  s.close();
  return port;
}

/** Starts a cluster with the demo data and so many quiet pods. */
export async function startCluster(pods) {
  const dir = mkdtempSync(join(tmpdir(), "page-e2e-"));
  const args = ["--dir", dir, "--seed", "demo"];
  if (pods) args.push("--pods", String(pods));
  const child = keep(spawn(devcluster, args, { stdio: ["ignore", "pipe", openSync(join(dir, "devcluster.log"), "a")] }));
  const died = once(child, "exit").then(([code]) => {
    throw new Error(`devcluster ended with ${code}; see ${dir}`);
  });
  died.catch(() => {});
  const [line] = await Promise.race([once(createInterface(child.stdout), "line"), died]);
  console.log(line.replace(dir, "DIR"));
  return {
    dir,
    kubectl: (...a) => run(devcluster, ["kubectl", "--kubeconfig", join(dir, "kubeconfig"), ...a], { maxBuffer: 1 << 28 }).then((r) => r.stdout),
    ctl: (...a) => run(devcluster, ["ctl", "--dir", dir, ...a]),
    stop: async () => {
      const end = once(child, "exit");
      child.kill("SIGTERM");
      await end;
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

/** Starts an informerd that may read everything but Secrets. */
export async function startInformerd(cluster) {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}/`;
  const config = join(cluster.dir, "config.yaml");
  writeFileSync(config, `resources:
  - match: [leases.coordination.k8s.io, events]
    watch: false
  - match: [pods]
    indexes: {node: spec.nodeName, phase: status.phase}
  - match: ["*"]
    drop: [metadata.managedFields]
`);
  let child;
  const self = {
    url,
    async start() {
      child = keep(spawn(program, ["serve", "--config", config, "--kubeconfig", join(cluster.dir, "kubeconfig-nosecrets"), "--snapshot", join(cluster.dir, "informerd.db"), "--listen", `127.0.0.1:${port}`],
        { stdio: ["ignore", "ignore", openSync(join(cluster.dir, "informerd.log"), "a")] }));
      await until(async () => (await fetch(url + "readyz")).ok, 60_000, "informerd is ready");
    },
    async stop() {
      const end = once(child, "exit");
      child.kill("SIGTERM");
      await end;
    },
  };
  await self.start();
  return self;
}

/** Waits until something holds; says what did not. */
export async function until(test, ms, what) {
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
