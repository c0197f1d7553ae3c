import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Resource } from "../src/resources";
import { nameColumn, type Column } from "../src/table/columns";
import { TableModel } from "../src/table/model";

const health: Column = { id: "health", title: "Health", paths: [], type: "text", value: () => "" };
const pods = { name: "pods", resource: "pods", kind: "Pod", cluster: "" } as unknown as Resource;

describe("TableModel", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  /** What arrives, as a follower tells it. */
  const tells = (m: TableModel) => m as unknown as { take(changes: object[]): void };
  const change = (name: string) => ({ type: "ADDED", resource: pods, object: { metadata: { namespace: "a", name } } });
  const shown = (m: TableModel) => [...m.view].map((r) => `${r.name} ${r.cells[1]}`).join(", ");
  const verdicts = (of: Record<string, string>) => {
    const key = [...all.rows.all.keys()][0]!.replace(/\S+$/, "");
    return { of: new Map(Object.entries(of).map(([name, v]) => [key + "a/" + name, v])), others: "good" };
  };
  let all: TableModel;

  it("shows the health of rows that came before it, and were not drawn yet", () => {
    all = new TableModel([], {}, [nameColumn, health], "");
    tells(all).take([change("first")]);
    vi.advanceTimersByTime(1000);
    expect(shown(all)).toBe("first ");
    tells(all).take([change("second")]);
    all.setHealth(verdicts({ second: "bad" }));
    vi.advanceTimersByTime(1000);
    expect(shown(all)).toBe("first good, second bad");
    tells(all).take([change("third")]);
    all.setHealth(verdicts({ third: "bad" }));
    vi.advanceTimersByTime(1000);
    expect(shown(all)).toBe("first good, second good, third bad");
  });

  it("shows after a pause what health became meanwhile", () => {
    all = new TableModel([], {}, [nameColumn, health], "");
    tells(all).take([change("first")]);
    vi.advanceTimersByTime(1000);
    all.setHealth(verdicts({}));
    all.setPaused(true);
    all.setHealth(verdicts({ first: "bad", second: "bad" }));
    tells(all).take([change("second")]);
    all.setHealth(verdicts({}));
    expect(shown(all)).toBe("first good");
    all.setPaused(false);
    vi.advanceTimersByTime(1000);
    expect(shown(all)).toBe("first good, second good");
  });
});
