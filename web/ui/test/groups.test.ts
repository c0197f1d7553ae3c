import { describe, expect, it } from "vitest";
import { termOf } from "../src/views/groups";

describe("groups", () => {
  it("lead to their rows by a term that means the value", () => {
    expect(termOf("spec.nodeName", "n1")).toBe("spec.nodeName=n1");
    expect(termOf("spec.nodeName", null)).toBe("!spec.nodeName");
    expect(termOf("metadata.labels['a.b/c']", "x,y=\\z")).toBe("metadata.labels['a.b/c']=x\\,y\\=\\\\z");
    expect(termOf("spec.replicas", 3)).toBe("spec.replicas=3");
  });
});
