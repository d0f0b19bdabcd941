// How long another organization waits for a cheap read while 100,000 runs are erased.
import { addOrg, type Bench, probe, toText } from "./fairness.ts";
import { percentile } from "./load.ts";
import { seed } from "./seed.ts";

const runs = 100_000;
const pollMs = 500;

/** The probe before and during the erasure of all prompts of an organization. */
export async function benchDeletions({ startService, row, folder }: Bench): Promise<void> {
  const dataDir = folder();
  const { key, promptIds } = seed(dataDir, runs, { withReport: runs });
  const neighborKey = addOrg(dataDir);
  const service = await startService(dataDir, {});
  const ask = async (method: string, path: string) => {
    const response = await fetch(`${service.url}/api/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${key}` },
    });
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
    return response.json();
  };
  await probe(service.url, neighborKey);
  const alone = await probe(service.url, neighborKey);
  const startedAt = performance.now();
  for (const id of promptIds) {
    const deletion = await ask("DELETE", `/prompts/${id}`);
    await ask("POST", `/deletions/${deletion.id}/erase`);
  }
  let isErased = false;
  const watch = async () => {
    while (!isErased) {
      const deletions: { status: string }[] = await ask("GET", "/deletions");
      isErased = deletions.every(({ status }) => status === "erased");
      await Bun.sleep(pollMs);
    }
  };
  const [during] = await Promise.all([probe(service.url, neighborKey, () => isErased), watch()]);
  const seconds = (performance.now() - startedAt) / 1000;
  row(
    `Read of another organization while ${runs.toLocaleString("en")} runs are erased`,
    `${toText(during)}, max ${Math.max(...during).toFixed(0)} ms`,
    toText(alone),
    `${(percentile(during, 0.99) / percentile(alone, 0.99)).toFixed(1)} ×`,
    "p99 ≤ 50 ms",
  );
  row(`Erase ${runs.toLocaleString("en")} runs with their reports`, `${seconds.toFixed(0)} s`, "", "", "");
  await service.stop();
}
