import { readFileSync } from "node:fs";
import { expect, it } from "vitest";

it("the lock file pins every package by its hash and names no registry", () => {
  const lock = JSON.parse(readFileSync(new URL("../package-lock.json", import.meta.url), "utf8")) as { packages: Record<string, { integrity?: string; resolved?: string }> };
  for (const [name, p] of Object.entries(lock.packages)) {
    if (!name) continue;
    expect(p.resolved, name).toBeUndefined();
    expect(p.integrity, name).toMatch(/^sha512-/);
  }
});

it("package.json pins exact versions", () => {
  const p = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")) as { dependencies: Record<string, string>; devDependencies: Record<string, string> };
  for (const v of [...Object.values(p.dependencies), ...Object.values(p.devDependencies)]) expect(v).toMatch(/^\d+\.\d+\.\d+$/);
});
