import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { client, furnish } from "../support/executable.ts";
import type { Turn } from "../support/fake-model.ts";
import { serveSite } from "../support/site.ts";

type Bench = {
  start: (
    command: string[],
    env: Record<string, string>,
  ) => Promise<{ url: string; pid: number; stop: () => Promise<void> }>;
  row: (what: string, ours: string, floor: string, ratio: string, aim: string) => void;
  folder: () => string;
  env: (dataDir: string) => Record<string, string>;
  executable: string;
};

const sessions = 50;
const use = (name: string, input: Record<string, unknown>): Turn => ({ toolCalls: [{ name, input }] });
const percentile = (values: number[], share: number) =>
  [...values].sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))] ?? Number.NaN;
const rssMb = (pid: number) => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024;

/** Sessions of the model agent at once, each a process with its own sandboxes, against a model that answers at once: what is left is our own cost. */
export async function benchSessions({ start, row, folder, env, executable }: Bench): Promise<void> {
  const docs = serveSite({ "/": { body: "<title>Acme</title><h1>Acme</h1><p>Print the word acme.</p>" } });
  const turns = [
    use("fetch_page", { url: docs.url }),
    use("write_file", { path: "acme.sh", text: "echo acme" }),
    use("run_command", { command: "sh acme.sh" }),
    use("finish", { outcome: "succeeded", summary: "It was printed." }),
  ];
  const cwd = folder();
  const scenarios = join(cwd, "scenarios.json");
  writeFileSync(scenarios, JSON.stringify({ acme: { turns } }));
  // A model in the process that asks would count its own work as the service's.
  const model = await start(["bun", join(import.meta.dir, "../support/fake-model.ts"), scenarios], {});
  const { key } = await furnish(cwd);
  const service = await start([executable, "serve"], {
    ...env(`${cwd}/data`),
    EVALD_CONCURRENCY: String(sessions),
    EVALD_RUNS_PER_ORG: String(sessions),
    EVALD_RUNS_PER_HOST: String(sessions),
    EVALD_ALLOW_PRIVATE: "127.0.0.1",
    EVALD_AGENT_MODEL: "openai-compatible/acme",
    OPENAI_COMPATIBLE_BASE_URL: `${model.url}/v1`,
  });
  const ask = client(service.url, key);
  const prompt = (await ask("POST", "/api/v1/prompts", { text: `Do what ${docs.url} says.` })).body;

  /** Asks for so many runs at once, and follows them to their end while it watches the service. */
  async function watch(runs: number) {
    const begun = performance.now();
    const asked = await Promise.all(
      Array.from({ length: runs }, () => ask("POST", `/api/v1/prompts/${prompt.id}/run`, { urlMap: {} })),
    );
    const left = new Set(asked.map(({ body }) => body.runId as string));
    const done: { createdAt: string; completedAt: string; status: string; report: { slug: string } | null }[] = [];
    const times: number[] = [];
    let memory = 0;
    while (left.size > 0)
      for (const id of [...left]) {
        const at = performance.now();
        const { body } = await ask("GET", `/api/v1/runs/${id}`);
        times.push(performance.now() - at);
        memory = Math.max(memory, rssMb(service.pid));
        if (body.completedAt) {
          left.delete(id);
          done.push(body);
        }
        await Bun.sleep(5);
      }
    const lost = done.filter(({ status, report }) => status !== "completed" || !report).length;
    const seconds = (performance.now() - begun) / 1000;
    const starts: number[] = [];
    const ends: number[] = [];
    let events = 0;
    for (const { createdAt, completedAt, report } of done) {
      const { body } = await ask("GET", `/api/v1/reports/${report?.slug}/trace?limit=500`);
      const own = body.events as { type: string; source: string; at: string }[];
      events += own.length;
      const usage = own.find(({ type, source }) => type === "usage" && source === "gateway");
      const end = own.find(({ type }) => type === "end");
      if (usage) starts.push(Date.parse(usage.at) - Date.parse(createdAt));
      if (end) ends.push(Date.parse(completedAt) - Date.parse(end.at));
    }
    return { times, memory, lost, seconds, starts, ends, rate: events / seconds };
  }

  const one = await watch(1);
  const all = await watch(sessions);
  const ms = (values: number[], share: number) => `${percentile(values, share).toFixed(0)} ms`;
  const both = (values: number[]) => `p50 ${ms(values, 0.5)}, p99 ${ms(values, 0.99)}`;
  row(`${sessions} concurrent model sessions: lost sessions`, String(all.lost), "", "", "0");
  row(
    `${sessions} concurrent model sessions: memory of the service`,
    `${all.memory.toFixed(0)} MB`,
    "",
    "",
    "< 300 MB",
  );
  row(`${sessions} concurrent model sessions: get one run`, both(all.times), "", "", "p99 < 50 ms");
  row("Request to first model response, 1 session", ms(one.starts, 0.5), "", "", "");
  row(`Request to first model response, ${sessions} sessions`, both(all.starts), "", "", "");
  row("Last event to report, 1 session", ms(one.ends, 0.5), "", "", "");
  row(`Last event to report, ${sessions} sessions`, both(all.ends), "", "", "");
  row(
    "Sessions and stored events per second",
    `${(sessions / all.seconds).toFixed(1)}, ${all.rate.toFixed(0)}`,
    "",
    "",
    "",
  );
  await service.stop();
  await model.stop();
  docs.stop();
}
