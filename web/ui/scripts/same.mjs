// The committed web/dist must be what these sources build, byte for byte.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const dist = join(root, "../dist");
const out = mkdtempSync(join(tmpdir(), "page-"));
try {
  execFileSync("npx", ["--no-install", "vite", "build", "--outDir", out, "--logLevel", "error"], { cwd: root, stdio: "inherit" });
  const names = (d) => readdirSync(d, { recursive: true }).map(String).sort();
  const want = names(out), have = names(dist);
  const bad = [...new Set([...want, ...have])].filter((n) => !want.includes(n) || !have.includes(n) || !readFileSync(join(out, n)).equals(readFileSync(join(dist, n))));
  if (bad.length) {
    console.error(`web/dist is not what web/ui builds: ${bad.join(", ")} differ. Run "make web" and commit the result.`);
    process.exit(1);
  }
  console.log(`web/dist is what web/ui builds: ${want.length} files`);
} finally {
  rmSync(out, { recursive: true, force: true });
}
