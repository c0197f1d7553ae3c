import { expect, it } from "vitest";
import lockFile from "../package-lock.json";
import manifest from "../package.json";

it("the lock file pins every package by its hash and names no registry", () => {
  for (const [name, p] of Object.entries(lockFile.packages as Record<string, { integrity?: string; resolved?: string }>)) {
    if (!name) continue;
    expect(p.resolved, name).toBeUndefined();
    expect(p.integrity, name).toMatch(/^sha512-/);
  }
});

it("package.json pins exact versions", () => {
  for (const v of [...Object.values(manifest.dependencies), ...Object.values(manifest.devDependencies)]) expect(v).toMatch(/^\d+\.\d+\.\d+$/);
});
