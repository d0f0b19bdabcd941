import { Database } from "bun:sqlite";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { AgentEvent } from "../../src/agents/agent.ts";
import { call, client } from "../support/executable.ts";
import { startRedis } from "../support/redis.ts";
import { until } from "../support/until.ts";
import type { Step } from "./light-workers.ts";
import type { SessionBench } from "./load.ts";
import { startScripted } from "./scripted.ts";

/** Organizations, because each can have 64 concurrent runs. */
const orgs = 4;
/** Pause before each block of an answer. A session waits for its model for about six seconds. */
const paceMs = 200;
/** Longest pause between two events that is repeated. */
const maxPauseMs = 1_000;
const ticksPerSecond = 100;

const statOf = (pid: number): string[] => readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
const isOver = (pid: number): boolean => !existsSync(`/proc/${pid}`) || statOf(pid)[0] === "Z";

/** CPU time of a process, in ms. */
function cpuMs(pid: number): number {
  const fields = statOf(pid);
  return ((Number(fields[11]) + Number(fields[12])) / ticksPerSecond) * 1000;
}

/** A service with Redis, a model and several organizations, whose workers are real or repeat a recorded session. */
export async function openStage({ start, folder, env, executable }: SessionBench) {
  const scripted = await startScripted({ start, folder }, paceMs);
  const cwd = folder();
  const redis = await startRedis();
  const keys = await Promise.all(
    Array.from({ length: orgs }, async (_, i) => {
      const org = `Acme ${i}`;
      await call(["org", "create", org], { cwd });
      return (await call(["key", "create", "--org", org, "--name", "bench"], { cwd })).stdout.trim();
    }),
  );
  const service = await start([executable, "serve"], {
    ...env(`${cwd}/data`),
    ...scripted.env,
    EVALD_RUNS_PER_ORG: "64",
    EVALD_RUNS_PER_HOST: "64",
    EVALD_REDIS_URL: redis.url,
  });
  const workerEnv = { EVALD_REDIS_URL: redis.url, EVALD_GATEWAY_URL: `${service.url}/gateway` };
  const prompts = await Promise.all(
    keys.map(async (key, i) => {
      const ask = client(service.url, key);
      // A host for each organization, because runs per host are limited, too.
      const text = i === 0 ? `Do what ${scripted.docs} says.` : `Do what https://docs-${i}.test/ says.`;
      const { body } = await ask("POST", "/api/v1/prompts", { text, agent: "llm" });
      return { ask, path: `/api/v1/prompts/${body.id}/run` };
    }),
  );
  // Read past the service, which would count this as its work.
  const db = new Database(`${cwd}/data/evald.db`, { readonly: true });
  const left = db.query<{ n: number }, []>("select count(*) n from runs where completed_at is null");
  const failed = db.query<{ n: number }, []>("select count(*) n from runs where status = 'failed'");
  const redisBytes = async () => {
    const stats = await redis.command("info", "stats");
    return ["input", "output"].reduce(
      (sum, way) => sum + Number(new RegExp(`total_net_${way}_bytes:(\\d+)`).exec(stats)?.[1]),
      0,
    );
  };

  /**
   * Runs so many sessions of the first `among` organizations. `cpuMs` and `bytes`: what each one took from the service and sent through Redis;
   * `share`: of a core that the service used.
   */
  async function measure(sessions: number, among = orgs) {
    const before = { at: performance.now(), cpu: cpuMs(service.pid), bytes: await redisBytes() };
    const each = async (i: number) => {
      const { ask, path } = prompts[i % among] as (typeof prompts)[number];
      return (await ask("POST", path, { urlMap: {} })).body.runId as string;
    };
    const ids = await Promise.all(Array.from({ length: sessions }, (_, i) => each(i)));
    while ((left.get()?.n ?? 0) > 0) await Bun.sleep(50);
    const seconds = (performance.now() - before.at) / 1000;
    const cpu = cpuMs(service.pid) - before.cpu;
    if (failed.get()?.n) throw new Error("a session failed");
    return {
      ids,
      seconds,
      perMinute: (sessions / seconds) * 60,
      cpuMs: cpu / sessions,
      bytes: ((await redisBytes()) - before.bytes) / sessions,
      share: cpu / 1000 / seconds,
    };
  }

  /** Runs `work` with a real worker. */
  async function withWorker<T>(slots: number, work: () => Promise<T>): Promise<T> {
    const worker = Bun.spawn([executable, "worker", "--slots", String(slots)], {
      env: { PATH: process.env.PATH ?? "", ...workerEnv },
      ...{ stdin: "ignore", stdout: "ignore", stderr: "ignore" },
    });
    const result = await work();
    worker.kill();
    await worker.exited;
    return result;
  }

  // The first session, by a real worker, is what simulated ones repeat.
  const [id = ""] = (await withWorker(1, () => measure(1, 1))).ids;
  const steps = join(cwd, "steps.json");
  writeFileSync(
    steps,
    JSON.stringify(await recordOf(prompts[0]?.ask as ReturnType<typeof client>, id, scripted.model)),
  );
  const herd: Awaited<ReturnType<typeof start>>[] = [];

  return {
    measure,
    withWorker,
    /** Starts a process with so many simulated workers. */
    async simulate(workers: number, slots: number): Promise<void> {
      const script = [join(import.meta.dir, "light-workers.ts"), steps, String(workers), String(slots)];
      herd.push(await start(["bun", ...script], workerEnv));
    },
    /** Stops all simulated workers. */
    async disperse(): Promise<void> {
      for (const { pid, stop } of herd.splice(0)) {
        process.kill(pid, "SIGTERM");
        await until("its workers have stopped", () => isOver(pid));
        await stop();
      }
    },
    async close(): Promise<void> {
      db.close();
      await service.stop();
      await scripted.stop();
      await redis.kill();
    },
  };
}

/** What the agent of a completed run did, as its session and the model have it. */
async function recordOf(ask: ReturnType<typeof client>, runId: string, modelUrl: string): Promise<Step[]> {
  const { body: run } = await ask("GET", `/api/v1/runs/${runId}`);
  const { body: trace } = await ask("GET", `/api/v1/reports/${run.report.slug}/trace?limit=500`);
  const asked: { body: unknown }[] = await (await fetch(`${modelUrl}/requests`)).json();
  const events = trace.events as (AgentEvent & { seq: number; at: string; source: string })[];
  // All sessions ask the same.
  const calls = asked.slice(0, events.filter(({ type, source }) => type === "usage" && source === "gateway").length);
  let last = Date.parse(events[0]?.at ?? "");
  return events.flatMap(({ seq: _, at, source, ...event }): Step[] => {
    const afterMs = Math.min(Date.parse(at) - last, maxPauseMs);
    last = Date.parse(at);
    if (source === "gateway") return event.type === "usage" ? [{ call: calls.shift()?.body }] : [];
    if (source === "runner") return [];
    const { artifact: __, ...rest } = { artifact: null, ...event };
    return [{ event: rest as AgentEvent, source: source as "agent" | "egress", afterMs }];
  });
}
