import { afterEach, describe, expect, it, vi } from "vitest";
import { ApiError } from "../src/api";
import { backoff, EventParser, Stream, type ServerEvent } from "../src/sse";

describe("EventParser", () => {
  it("reads events, ids and comments", () => {
    const p = new EventParser();
    expect(p.push(": hello\n\nevent: ADDED\nid: 7\ndata: {\"a\":1}\n\n")).toEqual([{ type: "ADDED", id: "7", data: '{"a":1}' }]);
  });
  it("does not care how the stream is cut", () => {
    const text = "event: A\r\nid: 1\r\ndata: x\r\ndata: y\r\n\r\nevent: B\ndata:z\n\ndata: half";
    for (let cut = 1; cut < text.length; cut++) {
      const p = new EventParser();
      const got: ServerEvent[] = [];
      for (let i = 0; i < text.length; i += cut) got.push(...p.push(text.slice(i, i + cut)));
      expect(got).toEqual([{ type: "A", id: "1", data: "x\ny" }, { type: "B", id: "", data: "z" }]);
    }
  });
});

describe("backoff", () => {
  it("doubles up to ten seconds, with jitter between half and whole", () => {
    expect([0, 1, 2, 5, 20].map((n) => backoff(n, () => 1))).toEqual([300, 600, 1200, 9600, 10000]);
    expect(backoff(20, () => 0)).toBe(5000);
  });
});

/** A server of prepared answers. */
function server(answers: (() => Response | Promise<Response>)[]) {
  const requests: Headers[] = [];
  vi.stubGlobal("fetch", (_url: string, init: RequestInit) => {
    requests.push(new Headers(init.headers));
    const next = answers.shift();
    if (!next) return new Promise((_, reject) => init.signal?.addEventListener("abort", () => reject(new DOMException("", "AbortError"))));
    return Promise.resolve().then(next);
  });
  return requests;
}
const stream = (text: string) => () => new Response(text, { headers: { "Content-Type": "text/event-stream" } });
const event = (type: string, id: string, data: unknown) => `event: ${type}\n${id ? `id: ${id}\n` : ""}data: ${JSON.stringify(data)}\n\n`;
const status = (code: number, reason: string) => () => new Response(JSON.stringify({ kind: "Status", code, reason, message: reason }), { status: code });

describe("Stream", () => {
  afterEach(() => vi.unstubAllGlobals());

  function open(answers: (() => Response | Promise<Response>)[]) {
    const requests = server(answers);
    const seen: string[] = [], lost: string[] = [], waits: number[] = [];
    let failure: ApiError | undefined;
    let done: () => void;
    const settled = new Promise<void>((r) => (done = r));
    const s = new Stream("v1/x", {
      events: (events) => seen.push(...events.map((e) => e.type + e.id)),
      lost: (e) => lost.push(e.message),
      failed: (e) => {
        failure = e;
        done();
      },
    }, {
      wait: async (ms) => {
        waits.push(ms);
        if (requests.length > 8) s.close();
      },
    });
    return { s, requests, seen, lost, waits, settled, failure: () => failure };
  }

  it("resumes after the last id it saw", async () => {
    const t = open([
      stream(event("ADDED", "", {}) + event("BOOKMARK", "5", {}) + event("MODIFIED", "6", {})),
      () => Promise.reject(new TypeError("refused")),
      status(503, "ServiceUnavailable"),
      stream(event("MODIFIED", "7", {})),
      status(410, "Expired"),
    ]);
    await t.settled;
    expect(t.requests.map((h) => h.get("Last-Event-ID"))).toEqual([null, "6", "6", "6", "7"]);
    expect(t.seen).toEqual(["ADDED", "BOOKMARK5", "MODIFIED6", "MODIFIED7"]);
    expect(t.failure()?.code).toBe(410);
    expect(t.lost).toHaveLength(4);
  });

  it("waits longer with every failure, and begins anew after a success", async () => {
    vi.spyOn(Math, "random").mockReturnValue(1);
    const down = () => Promise.reject(new TypeError("refused"));
    const t = open([down, down, down, stream(event("BOOKMARK", "1", {})), down, status(400, "BadRequest")]);
    await t.settled;
    expect(t.waits).toEqual([300, 600, 1200, 300, 600]);
    vi.restoreAllMocks();
  });

  it("ends with an ERROR event as with a refused request", async () => {
    const t = open([stream(event("MODIFIED", "3", {}) + event("ERROR", "", { object: { code: 410, reason: "Expired", message: "read too slowly" } }))]);
    await t.settled;
    expect(t.failure()?.message).toBe("read too slowly");
    expect(t.failure()?.code).toBe(410);
  });

  it("is quiet after close", async () => {
    const t = open([]);
    t.s.close();
    await new Promise((r) => setTimeout(r, 5));
    expect(t.lost).toEqual([]);
    expect(t.failure()).toBeUndefined();
  });

  it("pauses and goes on where it was", async () => {
    const t = open([stream(event("MODIFIED", "9", {})), status(410, "Expired")]);
    t.s.pause();
    await new Promise((r) => setTimeout(r, 5));
    t.s.resume();
    await t.settled;
    expect(t.requests.at(-1)!.get("Last-Event-ID")).toBe("9");
  });
});
