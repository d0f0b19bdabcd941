import { copyFileSync, existsSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { allProcesses, processFile } from "./processes.ts";

// Runs every test and exits with 1 if one fails. Prints the slowest files and the total counts at the end.
// Each process starts with its slowest file, by the times of dist/test-timings.json, else of test/timings.json. After tests have become
// slower or faster, copy the first file over the second.

const root = join(import.meta.dir, "..", "..");
const timings = "dist/test-timings.json";
const runs = [
  // More processes than cores of a small machine, because many tests wait for something else.
  ["--parallel=3", "--path-ignore-patterns=test/torture/**"],
  // These put a load on the machine, so they run without the others.
  ["--parallel=2", "test/torture"],
];

/** Ends what failed tests left behind, which would keep the output open and use the processor during the next run. */
function endSession(session: number): void {
  const sessionOf = (pid: number) =>
    Number(
      processFile(pid, "stat")
        .replace(/^.*\) /s, "")
        .split(" ")[3],
    );
  for (const pid of allProcesses().filter((each) => sessionOf(each) === session)) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // It has ended.
    }
  }
}

const counts = { passed: 0, failed: 0, skipped: 0 };
const junit = join(root, "dist", "test-results.xml");
mkdirSync(join(root, "dist"), { recursive: true });
if (!existsSync(join(root, timings))) copyFileSync(join(root, "test", "timings.json"), join(root, timings));

for (const run of runs) {
  rmSync(junit, { force: true });
  const flags = ["--timeout=120000", "--no-isolate", `--timings=${timings}`, "--update-timings", "--reporter=junit"];
  const tests = Bun.spawn([process.execPath, "test", ...flags, `--reporter-outfile=${junit}`, ...run], {
    cwd: root,
    env: { ...process.env, TEST_SIZE: "full" },
    stdio: ["ignore", "inherit", "inherit"],
    // A session of its own.
    detached: true,
  });
  const end = () => endSession(tests.pid);
  const stop = () => {
    end();
    process.exit(130);
  };
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, stop);
  const code = await tests.exited;
  end();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.off(signal, stop);
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
