// More pods than a control plane on a small machine can hold: a server in front
// of informerd that answers for pods itself, in the words of the API, with as many
// as are wanted and a steady stream of changes. All else is informerd's.
import { once } from "node:events";
import { createServer } from "node:http";
import { Readable } from "node:stream";

const words = ["Running", "Running", "Running", "Pending", "Failed"];

function pod(i, version = 0) {
  const name = `crowd-${String(i).padStart(6, "0")}`;
  return {
    apiVersion: "v1", kind: "Pod",
    metadata: { name, namespace: "crowd-" + String(Math.floor(i / 5000)).padStart(2, "0"), uid: "uid-" + i, creationTimestamp: new Date(1.75e12 + ((i * 7919) % 1e6) * 1000).toISOString() },
    spec: { nodeName: "node-" + (i % 500), containers: [{ name: "main" }] },
    status: { phase: words[(i + version) % words.length], podIP: `10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`, containerStatuses: [{ ready: true, restartCount: (i + version) % 7, state: { running: {} } }] },
  };
}

/** Serves so many pods of which so many change each second. */
export async function startCrowd(informerd, pods, changes) {
  const server = createServer(async (q, a) => {
    const url = new URL(q.url, informerd.url);
    if (url.pathname === "/v1/resources/pods/objects") return url.searchParams.get("watch") ? stream(a) : list(url.searchParams, a);
    const r = await fetch(url, { headers: { accept: q.headers.accept ?? "*/*" } });
    if (url.pathname === "/v1/resources") {
      const all = await r.json();
      all.items.find((x) => x.name === "pods").objects = pods;
      return void a.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(all));
    }
    a.writeHead(r.status, { "content-type": r.headers.get("content-type") ?? "" });
    Readable.fromWeb(r.body).on("error", () => a.destroy()).pipe(a);
  });

  function list(q, a) {
    const from = Number(q.get("continue") ?? 0);
    const to = Math.min(pods, from + Number(q.get("limit")));
    const down = q.get("sort") === "-metadata.name";
    const items = Array.from({ length: to - from }, (_, i) => pod(down ? pods - 1 - from - i : from + i));
    const metadata = { resourceVersion: "1", ...(to < pods ? { continue: String(to), remainingItemCount: pods - to } : {}) };
    a.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ kind: "PodList", apiVersion: "v1", metadata, items }));
  }

  function stream(a) {
    a.writeHead(200, { "content-type": "text/event-stream" });
    let version = 1;
    const timer = setInterval(() => {
      for (let n = 0; n < changes / 10; n++) {
        version++;
        a.write(`event: MODIFIED\nid: ${version}\ndata: ${JSON.stringify({ type: "MODIFIED", object: pod((version * 7919) % pods, version) })}\n\n`);
      }
    }, 100);
    a.on("close", () => clearInterval(timer));
  }

  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return { url: `http://127.0.0.1:${server.address().port}/`, close: () => server.closeAllConnections() ?? server.close() };
}
