import type { Logger } from "pino";
import { version } from "../package.json" with { type: "json" };
import type { Agent } from "./agents/agent.ts";
import { createKeys } from "./auth/keys.ts";
import { createOrgs } from "./auth/orgs.ts";
import type { AllowRule, Config } from "./config.ts";
import type { Db } from "./db/open.ts";
import type { Deps } from "./deps.ts";
import { createQueue } from "./jobs/queue.ts";
import { createRunner } from "./jobs/runner.ts";
import { createPrompts } from "./prompts/prompts.ts";
import { createProviders } from "./providers/providers.ts";
import { createReports } from "./reports/reports.ts";
import { createRunJob } from "./runs/execute.ts";
import { createRequests } from "./runs/requests.ts";
import { createRuns } from "./runs/runs.ts";

const userAgent = `evald/${version} (agent-experience evaluation; explorer)`;

export type Service = ReturnType<typeof createService>;

type Options = {
  db: Db;
  config: Config;
  log: Logger;
  /** By id; the first is the default. */
  agents: Record<string, Agent>;
  baseUrl: () => string;
  /** Private places that runs may reach beside those of the configuration. */
  alsoAllow?: () => AllowRule[];
  now?: () => number;
  newId?: (atMs: number) => string;
  backoffMs?: (attempt: number) => number;
};

/** Every part of the service, made of one database and joined up. Nothing listens and no job runs yet. */
export function createService(options: Options) {
  const { db, config, log, agents, baseUrl, alsoAllow = () => [], backoffMs } = options;
  const now = options.now ?? Date.now;
  const newId = options.newId ?? ((atMs) => Bun.randomUUIDv7("hex", atMs));
  const deps: Deps = { db, config, log, now, newId, baseUrl };
  const agentIds = Object.keys(agents);
  const orgs = createOrgs(deps);
  const keys = createKeys(deps);
  const providers = createProviders(deps);
  const prompts = createPrompts(deps, agentIds);
  const reports = createReports(deps);
  const runs = createRuns(deps);
  const queue = createQueue(deps);
  const runJob = createRunJob(deps, {
    agents,
    queue,
    reports,
    allow: () => [...config.allowPrivate, ...alsoAllow()],
    userAgent,
  });
  const runner = createRunner({
    db,
    log,
    now,
    queue,
    handlers: { run: runJob },
    concurrency: config.concurrency,
    owner: `pid ${process.pid}`,
    backoffMs,
  });
  const requests = createRequests(deps, {
    prompts,
    providers,
    queue,
    defaultAgent: agentIds[0] ?? "explorer",
    onQueued: runner.wake,
  });

  /** Why the service is not ready, in words; null if it is. */
  function trouble(): string | null {
    const ofRunner = runner.trouble();
    if (ofRunner !== null) return `the runner is not taking work: ${ofRunner}`;
    try {
      db.$client.run("begin immediate");
      db.$client.run("rollback");
      return null;
    } catch (error) {
      return `the database cannot be written: ${error instanceof Error ? error.message : String(error)}`;
    }
  }

  return { deps, orgs, keys, providers, prompts, reports, runs, requests, queue, runner, trouble };
}
