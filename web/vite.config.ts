import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { defineConfig } from "vite";

const root = import.meta.dirname;

/** Hash the sources, so that a bundle that is older than they are can be told without a build. */
function hashSources(): string {
  const files = (readdirSync(join(root, "src"), { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(root.length + 1).replaceAll("\\", "/"))
    .concat("package.json", "package-lock.json", "tsconfig.json", "vite.config.ts")
    .sort();
  const hash = createHash("sha256");
  for (const file of files) {
    hash.update(`${file}\0`).update(readFileSync(join(root, file))).update("\0");
  }
  return hash.digest("hex");
}

export default defineConfig({
  root,
  publicDir: false,
  build: {
    outDir: "../src/video2pde/report/static",
    emptyOutDir: false,
    target: "es2022",
    cssTarget: "chrome111",
    minify: true,
    cssMinify: true,
    reportCompressedSize: false,
    lib: {
      entry: "src/main.ts",
      name: "video2pdeReport",
      formats: ["iife"],
      fileName: () => "report.js",
      cssFileName: "report",
    },
    rolldownOptions: { output: { postFooter: `/* sources ${hashSources()} */` } },
  },
});
