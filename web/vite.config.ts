import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { defineConfig } from "vite";

const root = import.meta.dirname;

/** Hash a bundle's sources, so that one that is older than they are can be told without a build. */
function hashSources(studio: boolean): string {
  const files = (readdirSync(join(root, "src"), { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(root.length + 1).replaceAll("\\", "/"))
    .filter((file) => studio || !file.startsWith("src/studio/"))
    .concat("package.json", "package-lock.json", "tsconfig.json", "vite.config.ts")
    .sort();
  const hash = createHash("sha256");
  for (const file of files) {
    hash.update(`${file}\0`).update(readFileSync(join(root, file))).update("\0");
  }
  return hash.digest("hex");
}

/** Two bundles: the report's, and with `--mode studio` the studio's. */
export default defineConfig(({ mode }) => {
  const studio = mode === "studio";
  const name = studio ? "studio" : "report";
  return {
    root,
    publicDir: false,
    build: {
      outDir: `../src/video2pde/${name}/static`,
      emptyOutDir: false,
      target: "es2022",
      cssTarget: "chrome111",
      minify: true,
      cssMinify: true,
      reportCompressedSize: false,
      lib: {
        entry: studio ? "src/studio/main.ts" : "src/main.ts",
        name: `video2pde${studio ? "Studio" : "Report"}`,
        formats: ["iife"],
        fileName: () => `${name}.js`,
        cssFileName: name,
      },
      rolldownOptions: { output: { postFooter: `/* sources ${hashSources(studio)} */` } },
    },
  };
});
