// A way to the API server that can be closed for one resource: what is behind it
// is not there yet.
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer, request } from "node:http";
import { join } from "node:path";

/** Passes requests on to the cluster; lists and watches of the resource wait for open(). */
export async function startGate(cluster, resource) {
  let open;
  const opened = new Promise((r) => (open = r));
  const server = createServer(async (q, a) => {
    if (new RegExp(`/${resource}(\\?|$)`).test(q.url)) await opened;
    const on = request(cluster.server + q.url, { method: q.method, headers: { ...q.headers, host: new URL(cluster.server).host } }, (r) => {
      a.writeHead(r.statusCode, r.headers);
      r.pipe(a);
    });
    on.on("error", () => a.destroy());
    a.on("close", () => on.destroy());
    q.pipe(on);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const kubeconfig = join(cluster.dir, "kubeconfig-gate");
  writeFileSync(kubeconfig, JSON.stringify({
    apiVersion: "v1", kind: "Config", "current-context": "gate",
    clusters: [{ name: "gate", cluster: { server: `http://127.0.0.1:${server.address().port}` } }],
    contexts: [{ name: "gate", context: { cluster: "gate", user: "" } }],
  }));
  return { kubeconfig, open, close: () => server.closeAllConnections() ?? server.close() };
}
