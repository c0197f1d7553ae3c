import { defineConfig } from "vitest/config";

declare const process: { env: Record<string, string | undefined> };

// Vite's helper waits for the style sheets of a part of the page that is loaded later.
// There is one style sheet, and it comes first.
const noPreload = {
  name: "no-preload",
  enforce: "pre" as const,
  load: (id: string) => (id.endsWith("vite/preload-helper.js") ? "export const __vitePreload = (load) => load();" : null),
};

// The page is served from whatever path informerd has, so every address in it is
// relative. Names carry no hashes: the program embeds the files and serves them
// with no-cache, and a rebuilt page changes few names in the repository.
export default defineConfig({
  base: "./",
  plugins: [noPreload],
  publicDir: "static",
  build: {
    outDir: "../dist",
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0, // a data: URL would need an exception in the CSP
    modulePreload: false,
    cssCodeSplit: false,
    rollupOptions: {
      output: {
        entryFileNames: "app.js",
        // What is loaded at once is one file, also what parts share that are loaded later.
        codeSplitting: { groups: [{ name: "app", tags: ["$initial"] }] },
        chunkFileNames: "[name].js",
        assetFileNames: "[name][extname]",
      },
    },
  },
  server: { proxy: { "/v1": process.env.INFORMERD ?? "http://127.0.0.1:8080" } },
  test: { include: ["test/**/*.test.ts"], environment: "node" },
});
