import { expect, test } from "bun:test";
import { join } from "node:path";

/** Uses so many milliseconds of CPU time, rests for 20 looks, and prints how often memory was released. */
const script = `
  const [path, workMs] = process.argv.slice(1);
  const { releaseMemoryWhenIdle } = await import(path);
  let released = 0;
  const usedMs = ({ user, system } = process.cpuUsage()) => (user + system) / 1000;
  while (usedMs() < Number(workMs));
  releaseMemoryWhenIdle(() => released++, 50);
  await Bun.sleep(1000);
  console.log(released);
`;
const releasesAfter = async (workMs: number): Promise<number> => {
  const path = join(import.meta.dir, "..", "src", "cli", "idle-memory.ts");
  const child = Bun.spawn([process.execPath, "-e", script, path, String(workMs)], { stdout: "pipe" });
  return Number(await new Response(child.stdout).text());
};

test("memory is released once when the process has become idle after work, and not after little work", async () => {
  expect(await Promise.all([releasesAfter(1000), releasesAfter(0)])).toEqual([1, 0]);
}, 60_000);
