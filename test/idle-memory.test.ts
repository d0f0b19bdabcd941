import { expect, test } from "bun:test";
import { join } from "node:path";

/** Uses so many milliseconds of CPU time, rests for 20 looks, and prints how often garbage was collected. */
const script = `
  const [path, workMs] = process.argv.slice(1);
  const { collectWhenIdle } = await import(path);
  const collect = Bun.gc;
  let collected = 0;
  Bun.gc = (isNow) => {
    collected++;
    return collect(isNow);
  };
  const usedMs = ({ user, system } = process.cpuUsage()) => (user + system) / 1000;
  while (usedMs() < Number(workMs));
  collectWhenIdle(50);
  await Bun.sleep(1000);
  console.log(collected);
`;
const collectionsAfter = async (workMs: number): Promise<number> => {
  const path = join(import.meta.dir, "..", "src", "cli", "idle-memory.ts");
  const child = Bun.spawn([process.execPath, "-e", script, path, String(workMs)], { stdout: "pipe" });
  return Number(await new Response(child.stdout).text());
};

test("garbage is collected once when the process has become idle after work, and not after little work", async () => {
  expect(await Promise.all([collectionsAfter(1000), collectionsAfter(0)])).toEqual([1, 0]);
}, 60_000);
