import { describe, expect, it } from "vitest";
import { fit, narrowOrder, type Wish } from "../src/table/widths";
import { knownColumns, nameColumn, namespaceColumn } from "../src/table/columns";

const wish = (wanted: number, least = wanted, grows = false): Wish => ({ wanted, least, grows });
const sum = (all: number[]) => all.reduce((a, b) => a + b, 0);

describe("widths", () => {
  it("cut what is longest, never what matters", () => {
    expect(fit([wish(900, 180, true), wish(120), wish(300, 110, true), wish(80)], 700)).toEqual([250, 120, 250, 80]);
    expect(fit([wish(900, 180, true), wish(120), wish(300, 110, true)], 200)).toEqual([180, 120, 110]); // it scrolls
  });
  it("fill the room", () => {
    for (const room of [400, 700, 1111, 1440, 3000]) {
      const all = fit([wish(310, 180, true), wish(90, 90, true), wish(77), wish(260, 110, true), wish(61)], room);
      expect(sum(all)).toBeLessThanOrEqual(Math.max(room, 180 + 90 + 77 + 110 + 61));
      expect(sum(all)).toBeGreaterThan(Math.min(room, 518) - 6);
    }
  });
  it("have the status next to the name where it is narrow", () => {
    const columns = [nameColumn, namespaceColumn, ...knownColumns("pods")!];
    expect(narrowOrder(columns).map((i) => columns[i]!.id).slice(0, 4)).toEqual(["name", "status", "ready", "namespace"]);
  });
});
