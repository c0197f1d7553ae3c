import { afterEach, describe, expect, it, vi } from "vitest";
import type { KubeObject } from "../src/api";
import { Follower, type FollowStatus, type Handlers } from "../src/follow";
import type { Resource } from "../src/resources";
import { manySources, oneSource, type Source } from "../src/source";

const r = (name: string, kind: string, more: Partial<Resource> = {}) => {
  const [resource, ...group] = name.split(".");
  return { name, kind, resource, group: group.join("."), version: "v1", namespaced: true, ...more } as Resource;
};
const pods = r("pods", "Pod"), deployments = r("deployments.apps", "Deployment"), ours = r("deployments.example.com", "Deployment");

describe("a source of many resources", () => {
  const [source] = manySources([pods, deployments, ours], "pods,deployments.*") as [Source];
  it("is one question", () => {
    expect(source.url(new URLSearchParams({ labelSelector: "a=b" }))).toBe("v1/query?labelSelector=a%3Db&resources=pods%2Cdeployments.*");
  });
  it("knows whose an object is", () => {
    const of = (apiVersion: string, kind: string) => source.ofObject({ apiVersion, kind, metadata: { name: "x" } })?.name;
    expect([of("v1", "Pod"), of("apps/v1", "Deployment"), of("example.com/v2", "Deployment"), of("v1", "Node")]).toEqual(["pods", "deployments.apps", "deployments.example.com", undefined]);
    expect([source.ofEvent("deployments.v1.apps"), source.ofEvent("pods"), source.ofEvent("nodes")]).toEqual([deployments, pods, undefined]);
  });
  it("goes on where each of its lists ends", () => {
    expect(source.since({ items: [], metadata: { resources: [
      { resource: "pods", answered: true, resourceVersion: "7" }, { resource: "deployments.apps", answered: true, resourceVersion: "9" },
      { resource: "deployments.example.com", answered: false }, { resource: "nodes", answered: true, resourceVersion: "3" },
    ] } })).toBe("pods=7,deployments.v1.apps=9");
  });
  it("asks each cluster by itself", () => {
    const both = manySources([{ ...pods, cluster: "east" }, { ...pods, cluster: "west" }], "pods");
    expect(both.map((s) => s.url(new URLSearchParams()))).toEqual(["v1/query?resources=pods&cluster=east", "v1/query?resources=pods&cluster=west"]);
    expect(both[1]!.ofEvent("west/pods")?.cluster).toBe("west");
    expect(both[0]!.since({ items: [], metadata: { resources: [{ cluster: "east", resource: "pods", answered: true, resourceVersion: "5" }] } })).toBe("east/pods=5");
  });
});

describe("Follower", () => {
  afterEach(() => vi.unstubAllGlobals());

  /** A server of prepared answers, and what a follower told of them. */
  function open(source: Source, answers: (() => Response)[], sort = "") {
    const asked: string[] = [], told: string[] = [];
    vi.stubGlobal("document", { hidden: false });
    vi.stubGlobal("fetch", async (path: string, init: RequestInit) => {
      const url = new URL(path, "http://informerd/");
      const headers = new Headers(init.headers);
      asked.push(`${url.searchParams.get("watch") ? "watch after " + headers.get("Last-Event-ID") : "list " + (url.searchParams.get("sort") ?? "")}`);
      await Promise.resolve(); // open() has returned
      const next = answers.shift();
      if (next) return next();
      return new Promise((_, reject) => init.signal?.addEventListener("abort", () => reject(new DOMException("", "AbortError"))));
    });
    const name = (o: KubeObject) => o.metadata.name;
    const names = (rs: Resource[]) => rs.map((x) => x.name).join();
    const handlers: Handlers = {
      begin: (rs) => told.push(`begin ${names(rs)}`),
      page: (found) => told.push(...found.map((f) => `${f.resource.name} ${name(f.object)}`)),
      complete: (rs) => told.push(`complete ${names(rs)}`),
      changes: (changes) => told.push(...changes.map((c) => `${c.type} ${c.resource.name} ${name(c.object)}`)),
      status: (s) => (status = s),
    };
    let status!: FollowStatus;
    const follower = new Follower(source, {}, [], sort, handlers);
    return { follower, asked, told, status: () => status, until: (test: () => boolean) => vi.waitFor(() => expect(test()).toBe(true), { timeout: 5000, interval: 5 }) };
  }
  const object = (name: string, apiVersion = "v1", kind = "Pod") => ({ apiVersion, kind, metadata: { name } });
  const list = (items: object[], metadata: object) => () => Response.json({ items, metadata });
  const stream = (...events: [string, string, object][]) => () =>
    new Response(events.map(([type, id, data]) => `event: ${type}\n${id ? `id: ${id}\n` : ""}data: ${JSON.stringify(data)}\n\n`).join(""), { headers: { "Content-Type": "text/event-stream" } });

  it("reads pages, then the stream from where they ended", async () => {
    const t = open(oneSource(pods), [
      list([object("a"), object("b")], { resourceVersion: "5", continue: "x", remainingItemCount: 1 }),
      list([object("c")], { resourceVersion: "5" }),
      stream(["MODIFIED", "6", { object: object("b") }], ["DELETED", "7", { object: object("a") }]),
    ], "metadata.name");
    await t.until(() => t.asked.length === 4);
    expect(t.told).toEqual(["begin pods", "pods a", "pods b", "pods c", "complete pods", "MODIFIED pods b", "DELETED pods a"]);
    expect(t.asked).toEqual(["list metadata.name", "list metadata.name", "watch after 5", "watch after 7"]);
    t.follower.close();
  });

  it("begins again in another order while pages are to come", async () => {
    const t = open(oneSource(pods), [
      () => {
        t.follower.orderBy("-metadata.name");
        return list([object("a")], { resourceVersion: "5", continue: "x" })();
      },
      list([object("z"), object("a")], { resourceVersion: "6" }),
    ]);
    await t.until(() => t.asked.length === 3);
    expect(t.asked).toEqual(["list ", "list -metadata.name", "watch after 6"]);
    t.follower.orderBy("metadata.name"); // all of it is there: nothing to ask
    await new Promise((done) => setTimeout(done, 20));
    expect(t.asked).toHaveLength(3);
    t.follower.close();
  });

  it("tells one resource of many anew without touching the others", async () => {
    const [source] = manySources([pods, deployments], "pods,deployments.apps") as [Source];
    const t = open(source, [
      list([object("p"), object("d", "apps/v1", "Deployment")], { resources: [{ resource: "pods", answered: true, resourceVersion: "5" }, { resource: "deployments.apps", answered: true, resourceVersion: "6" }] }),
      stream(
        ["BOOKMARK", "deployments.v1.apps=6,pods=5", { initialEventsEnd: true }],
        ["RESYNC", "", { resource: "pods" }], ["ADDED", "", { resource: "pods", object: object("q") }], ["BOOKMARK", "deployments.v1.apps=6,pods=8", {}],
        ["ADDED", "", { resource: "deployments.v1.apps", object: object("e", "apps/v1", "Deployment") }],
        ["ADDED", "", { resource: "jobs.v1.batch", object: object("j", "batch/v1", "Job") }],
      ),
    ]);
    await t.until(() => t.asked.length === 3);
    expect(t.asked).toEqual(["list ", "watch after pods=5,deployments.v1.apps=6", "watch after deployments.v1.apps=6,pods=8"]);
    expect(t.told.slice(4)).toEqual(["begin pods", "pods q", "complete pods", "ADDED deployments.apps e"]);
    t.follower.close();
  });

  it("says what is expected while it loads, and why it failed", async () => {
    let seen = 0;
    const t = open(oneSource(pods), [
      list([object("a")], { resourceVersion: "5", continue: "x", remainingItemCount: 41 }),
      () => {
        seen = t.status().expected;
        return Response.json({ kind: "Status", code: 400, message: "limit: no" }, { status: 400 });
      },
    ]);
    await t.until(() => t.status()?.phase === "failed");
    expect([seen, t.status().error?.message]).toEqual([42, "limit: no"]);
    t.follower.close();
  });
});
