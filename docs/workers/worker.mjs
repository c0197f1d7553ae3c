// Works on what a handler of informerd has: node worker.mjs shop
const server = (process.env.INFORMERD ?? "http://127.0.0.1:8080").replace(/\/$/, "");
const handler = process.argv[2];
const headers = { "Content-Type": "application/json" };
if (process.env.INFORMERD_TOKEN) headers.Authorization = `Bearer ${process.env.INFORMERD_TOKEN}`;

const sleep = (seconds) => new Promise((done) => setTimeout(done, seconds * 1000));

class Refused extends Error {
  constructor(answer, text) {
    super(`${answer.status} ${text}`);
    this.status = answer.status;
    this.after = Number(answer.headers.get("Retry-After") ?? 1);
  }
}

// post sends a POST and returns what is answered.
async function post(what, params, body) {
  const answer = await fetch(`${server}/v1/handlers/${handler}/${what}?${new URLSearchParams(params)}`, {
    method: "POST",
    headers,
    body: body && JSON.stringify(body),
    signal: AbortSignal.timeout(90_000),
  });
  if (!answer.ok) throw new Refused(answer, await answer.text());
  return answer.json();
}

// settle acknowledges a claim, or gives it back. One that was lost is another worker's now.
async function settle(what, item, params = {}) {
  try {
    await post(what, params, { tokens: [item.token] });
  } catch (e) {
    if (e.status !== 409) throw e;
  }
}

// handle makes the world as the object says. It may be called twice with the same one.
async function handle(item) {
  const where = [item.namespace, item.name].filter(Boolean).join("/");
  if (item.transition === "leaves") console.log("gone", item.resource, where);
  else console.log(item.transition, item.resource, where, item.resourceVersion);
}

async function work(item) {
  try {
    await handle(item);
  } catch (e) {
    // Whatever it was: somebody tries again later.
    return settle("nack", item, { reason: String(e).slice(0, 500) });
  }
  return settle("ack", item);
}

for (;;) {
  try {
    const { items } = await post("claim", { max: 10, lease: "60s", wait: "30s" });
    await Promise.all(items.map(work)); // keys are independent of each other
  } catch (e) {
    if (e.status && ![429, 500, 502, 503, 504].includes(e.status)) throw e;
    console.error(e.message); // informerd restarts, is paused, or is not reached
    await sleep(e.after ?? 1);
  }
}
