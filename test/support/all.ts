import { existsSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";

// Runs every test and exits with 1 if one fails. Prints the slowest files and the total counts at the end.

const root = join(import.meta.dir, "..", "..");
const timings = "dist/test-timings.json";
const runs = [
  ["--parallel=2", "--no-isolate", "--path-ignore-patterns=test/torture/**"],
  // These depend on the speed of processes, so they run alone.
  ["test/torture"],
];

const counts = { passed: 0, failed: 0, skipped: 0 };
const junit = join(root, "dist", "test-results.xml");
mkdirSync(join(root, "dist"), { recursive: true });

for (const run of runs) {
  rmSync(junit, { force: true });
  const flags = ["--timeout=30000", `--timings=${timings}`, "--update-timings", "--reporter=junit"];
  const tests = Bun.spawn([process.execPath, "test", ...flags, `--reporter-outfile=${junit}`, ...run], {
    cwd: root,
    env: { ...process.env, TEST_SIZE: "full" },
    stdio: ["ignore", "inherit", "inherit"],
  });
  const code = await tests.exited;
  const results = existsSync(junit) ? await Bun.file(junit).text() : "";
  const count = (name: string) => Number(new RegExp(`<testsuites[^>]* ${name}="(\\d+)"`).exec(results)?.[1] ?? 0);
  // Errors outside of tests appear only in the exit code.
  const failed = code === 0 ? 0 : Math.max(1, count("failures"));
  counts.passed += count("tests") - count("failures") - count("skipped");
  counts.failed += failed;
  counts.skipped += count("skipped");
}

const { files } = (await Bun.file(join(root, timings)).json()) as { files: Record<string, number> };
const slowest = Object.entries(files)
  .filter(([file]) => existsSync(join(root, file)))
  .sort(([, a], [, b]) => b - a)
  .slice(0, 10);
console.log("\nslowest test files:");
for (const [file, ms] of slowest) console.log(`${(ms / 1000).toFixed(1).padStart(7)} s  ${file}`);
console.log(`\n${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`);
process.exit(counts.failed === 0 ? 0 : 1);
