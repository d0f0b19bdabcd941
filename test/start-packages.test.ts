import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { dependencies } from "../package.json" with { type: "json" };

type Metafile = {
  inputs: Record<string, { imports: { path: string; kind: string; external?: boolean }[] }>;
};

// Each package that is loaded at the start delays the first response, and stays in memory. One that few requests need belongs in
// src/lazy-packages.ts, or behind an import().
test("the command line and the service load only these packages when they start", async () => {
  const outdir = mkdtempSync(join(tmpdir(), "evald-test-"));
  const build = await Bun.build({
    entrypoints: [join(import.meta.dir, "..", "src", "cli", "program.ts")],
    ...{ outdir, target: "bun", packages: "external", splitting: true, metafile: true },
  });
  rmSync(outdir, { recursive: true, force: true });
  const { inputs } = build.metafile as Metafile;
  const start = Object.keys(inputs).find((file) => file.endsWith("src/cli/program.ts")) ?? "";
  const loaded = new Set([start]);
  const packages = new Set<string>();
  for (const file of loaded)
    for (const { path, kind, external } of inputs[file]?.imports ?? []) {
      // Of a WebAssembly file, only the path is imported.
      if (kind !== "import-statement" || path.endsWith(".wasm")) continue;
      if (!external) loaded.add(path);
      else packages.add(path.match(/^(@[^/]+\/)?[^/]+/)?.[0] ?? path);
    }
  expect([...packages].filter((name) => name in dependencies).sort()).toEqual([
    ...["@sinclair/typebox", "commander", "croner", "drizzle-orm", "elysia", "ipaddr.js", "pino"],
  ]);
});
