import { copyFileSync, existsSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { oneLine } from "../../src/agents/entities.ts";
import { buildInstant } from "./executable.ts";
import { allProcesses, processFile } from "./processes.ts";

// Runs every test and exits with 1 if one fails. Prints the slowest files and the total counts at the end.
// Each process starts with its slowest file, by the times of dist/test-timings.json, else of test/timings.json. After tests have become
// slower or faster, copy the first file over the second.
// A busy machine can make a test miss a deadline. So if only a few tests fail, their files run once more, alone. Tests that pass then are
// listed as flaky: each is to be fixed.

const root = join(import.meta.dir, "..", "..");
const timings = "dist/test-timings.json";
/** At most this many failed tests run a second time. More failures are a defect. */
const mostFlaky = 5;
const runs = [
  ["--parallel=4", "--path-ignore-patterns=test/torture/**"],
  // These put a load on the machine, so they run without the others.
  ["--parallel=2", "test/torture"],
];

/** Ends processes that failed tests left behind. They would keep the output open and use the processor during the next run. */
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
      // The process has ended.
    }
  }
}

const counts = { passed: 0, failed: 0, skipped: 0 };
const junit = join(root, "dist", "test-results.xml");
mkdirSync(join(root, "dist"), { recursive: true });
if (!existsSync(join(root, timings))) copyFileSync(join(root, "test", "timings.json"), join(root, timings));

/** Runs tests with these flags of `bun test`. Returns the exit code, the counts, and each failed test as "file: name". */
async function runTests(run: string[]) {
  rmSync(junit, { force: true });
  const flags = ["--timeout=300000", "--no-isolate", "--reporter=junit", `--reporter-outfile=${junit}`];
  const tests = Bun.spawn([process.execPath, "test", ...flags, ...run], {
    cwd: root,
    env: { ...process.env, TEST_SIZE: "full" },
    stdio: ["ignore", "inherit", "inherit"],
    // The process gets its own session.
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
  const failures = [...results.matchAll(/<testcase name="([^"]*)"[^>]* file="([^"]*)"[^>]*>\s*<failure/g)].map(
    ([, name, file]) => ({ file: file ?? "", name: oneLine(name ?? "") }),
  );
  return { code, tests: count("tests"), failed: count("failures"), skipped: count("skipped"), failures };
}

// Otherwise, two processes could build it at the same time.
await buildInstant();
const flaky: string[] = [];
for (const run of runs) {
  const first = await runTests([`--timings=${timings}`, "--update-timings", ...run]);
  counts.passed += first.tests - first.failed - first.skipped;
  counts.skipped += first.skipped;
  if (first.code === 0) continue;
  // Errors outside of tests appear only in the exit code.
  let failed = Math.max(1, first.failed);
  if (first.failed > 0 && first.failed <= mostFlaky && first.failures.length === first.failed) {
    const files = [...new Set(first.failures.map(({ file }) => file))];
    console.log(`\nRunning again, alone: ${files.join(", ")}`);
    const second = await runTests(files);
    if (second.code === 0) {
      counts.passed += failed;
      failed = 0;
      flaky.push(...first.failures.map(({ file, name }) => `${file}: ${name}`));
    }
  }
  counts.failed += failed;
}

const { files } = (await Bun.file(join(root, timings)).json()) as { files: Record<string, number> };
const slowest = Object.entries(files)
  .filter(([file]) => existsSync(join(root, file)))
  .sort(([, a], [, b]) => b - a)
  .slice(0, 10);
console.log("\nslowest test files:");
for (const [file, ms] of slowest) console.log(`${(ms / 1000).toFixed(1).padStart(7)} s  ${file}`);
if (flaky.length > 0) console.log(`\nflaky, passed the second time:\n${flaky.map((each) => `  ${each}`).join("\n")}`);
console.log(`\n${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped, ${flaky.length} flaky`);
process.exit(counts.failed === 0 ? 0 : 1);
