import { readFileSync } from "node:fs";
import { client, furnish } from "../support/executable.ts";
import { percentile, type SessionBench } from "./load.ts";
import { startScripted } from "./scripted.ts";

/** Sessions that run alone, one after the other. */
const singles = 5;
const sessions = 50;
const rssMb = (pid: number) => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024;

/** Sessions of the model agent at once, each a process with its own sandboxes, against a model that answers at once: what is left is our own cost. */
export async function benchSessions({ start, row, folder, env, executable }: SessionBench): Promise<void> {
  const cwd = folder();
  const scripted = await startScripted({ start, folder });
  const { key } = await furnish(cwd);
  const service = await start([executable, "serve"], {
    ...env(`${cwd}/data`),
    ...scripted.env,
    EVALD_CONCURRENCY: String(sessions),
    EVALD_RUNS_PER_ORG: String(sessions),
    EVALD_RUNS_PER_HOST: String(sessions),
  });
  const ask = client(service.url, key);
  const prompt = (await ask("POST", "/api/v1/prompts", { text: `Do what ${scripted.docs} says.` })).body;

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
    const agents: number[] = [];
    const starts: number[] = [];
    const ends: number[] = [];
    let events = 0;
    for (const { createdAt, completedAt, report } of done) {
      const { body } = await ask("GET", `/api/v1/reports/${report?.slug}/trace?limit=500`);
      const own = body.events as { type: string; source: string; at: string }[];
      events += own.length;
      const begun = own.find(({ type }) => type === "milestone");
      const usage = own.find(({ type, source }) => type === "usage" && source === "gateway");
      const end = own.find(({ type }) => type === "end");
      if (begun) agents.push(Date.parse(begun.at) - Date.parse(createdAt));
      if (usage) starts.push(Date.parse(usage.at) - Date.parse(createdAt));
      if (end) ends.push(Date.parse(completedAt) - Date.parse(end.at));
    }
    return { times, memory, lost, seconds, agents, starts, ends, rate: events / seconds };
  }

  // Until the service has prepared for the next run, as one that is up for a while has.
  const rest = () => Bun.sleep(2000);
  await watch(1);
  const alone: Awaited<ReturnType<typeof watch>>[] = [];
  while (alone.length < singles) {
    await rest();
    alone.push(await watch(1));
  }
  const one = {
    agents: alone.flatMap(({ agents }) => agents),
    starts: alone.flatMap(({ starts }) => starts),
    ends: alone.flatMap(({ ends }) => ends),
  };
  await rest();
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
  row("Request to start of the agent, 1 session", ms(one.agents, 0.5), "", "", "≤ 60 ms");
  row(`Request to start of the agent, ${sessions} sessions`, both(all.agents), "", "", "p50 ≤ 1000 ms");
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
  await scripted.stop();
}
