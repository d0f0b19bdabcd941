import { dirname, join } from "node:path";
import type { Logger } from "pino";
import { version } from "../package.json" with { type: "json" };
import { type Agent, objectionTo } from "./agents/agent.ts";
import { createGatewayOpener } from "./agents/gateway/opener.ts";
import { createHost } from "./agents/llm/host.ts";
import { createKeys } from "./auth/keys.ts";
import { createOrgs } from "./auth/orgs.ts";
import { createPeople } from "./auth/people.ts";
import type { AllowRule, Config } from "./config.ts";
import { createCommit } from "./db/commit.ts";
import { type DiskFault, diskFault, nameFault } from "./db/fault.ts";
import type { Db } from "./db/open.ts";
import { createUpkeep } from "./db/upkeep.ts";
import type { Deps } from "./deps.ts";
import { createExports } from "./exchange/export.ts";
import { createImports } from "./exchange/import.ts";
import { createGates } from "./gates/gates.ts";
import { createQueue } from "./jobs/queue.ts";
import { createRunner } from "./jobs/runner.ts";
import { createModels } from "./models/models.ts";
import { createPromptLists } from "./prompts/lists.ts";
import { createPrompts } from "./prompts/prompts.ts";
import { createProviders } from "./providers/providers.ts";
import { createRegradeJob } from "./regrades/job.ts";
import { createRegrades } from "./regrades/regrades.ts";
import { createCompare } from "./reports/compare.ts";
import { createGradings } from "./reports/gradings.ts";
import { createLatest } from "./reports/latest.ts";
import { createRecommendations } from "./reports/recommendations.ts";
import { createReports } from "./reports/reports.ts";
import { createTimelines } from "./reports/timeline.ts";
import { createEndings } from "./runs/endings.ts";
import { createEstimates } from "./runs/estimates.ts";
import { createEvals } from "./runs/evals.ts";
import { createRunJob } from "./runs/execute.ts";
import { createFollow } from "./runs/follow.ts";
import { createJudging } from "./runs/judging.ts";
import { createRunLists } from "./runs/lists.ts";
import { createRequests } from "./runs/requests.ts";
import { createRuns } from "./runs/runs.ts";
import { createSlots } from "./runs/slots.ts";
import { createSpending } from "./runs/spending.ts";
import { createShares } from "./shares/shares.ts";
import { reportMarkdown } from "./web/markdown.ts";

const userAgent = `evald/${version} (agent-experience evaluation)`;

export type Service = ReturnType<typeof createService>;

type Options = {
  db: Db;
  config: Config;
  log: Logger;
  /** By id. */
  agents: Record<string, Agent>;
  baseUrl: () => string;
  /** Private places that runs may reach beside those of the configuration. */
  alsoAllow?: () => AllowRule[];
  now?: () => number;
  newId?: (atMs: number) => string;
  backoffMs?: (failures: number) => number;
  maxRetryAfterMs?: number;
  leaseMs?: number;
  /** Called once, when the disk can no longer be trusted: nothing more is claimed or answered, and the process should end. */
  onBroken?: (error: unknown) => void;
};

/** Every part of the service, made of one database and joined up. Nothing listens and no job runs yet. */
export function createService(options: Options) {
  const {
    db,
    config,
    log,
    agents,
    baseUrl,
    alsoAllow = () => [],
    backoffMs,
    maxRetryAfterMs,
    leaseMs,
    onBroken = () => {},
  } = options;
  const now = options.now ?? Date.now;
  const newId = options.newId ?? ((atMs) => Bun.randomUUIDv7("hex", atMs));
  const deps: Deps = { db, config, log, now, newId, baseUrl };
  const orgs = createOrgs(deps);
  const keys = createKeys(deps);
  const people = createPeople(deps);
  const providers = createProviders(deps);
  const models = createModels(deps);
  /** Every agent, with what keeps it from being sent from here. */
  const agentChoices = Object.entries(agents).map(([id, agent]) => ({
    id,
    hasModel: agent.describe().kind === "model",
    objection: objectionTo(agent),
  }));
  const prompts = createPrompts(deps, {
    agents: agentChoices.filter(({ objection }) => objection === null),
    agentModel: config.agentModel,
    checkModel: models.getModel,
    onScheduled: () => slots.wake(),
  });
  const promptLists = createPromptLists(deps);
  const reports = createReports(deps);
  const compare = createCompare(deps, reports);
  const shares = createShares(deps);
  const getTimeline = createTimelines(deps);
  const gradings = createGradings(deps, reports);
  const latest = createLatest(deps, compare);
  const runs = createRuns(deps);
  const exports = createExports(deps, { reports, models, toMarkdown: reportMarkdown });
  const imports = createImports(deps);
  const evals = createEvals(deps);
  const runLists = createRunLists(deps);
  const stopping = new AbortController();
  const follow = createFollow(deps, { runs, stopping: stopping.signal });
  const queue = createQueue(deps);
  const commit = createCommit(db);
  const { filename } = db.$client;
  let broken: string | null = null;

  /** Notes an error that may come from the disk, and tells what it means. After one that cannot be recovered from, the service is broken for good. */
  function onError(error: unknown): DiskFault | null {
    const fault = diskFault(nameFault(error, dirname(filename)));
    if (broken !== null || fault !== "broken") return fault;
    broken = error instanceof Error ? error.message : String(error);
    log.fatal({ err: error }, "the disk under the database cannot be trusted any more; the service ends");
    runner.halt();
    // Whatever is still under way can read, and write no more: a second try could make good data bad.
    db.$client.run("pragma query_only = on");
    onBroken(error);
    return fault;
  }

  const gateway = createGatewayOpener(now);
  const host = createHost({
    now,
    gateway,
    folder: filename === ":memory:" ? null : join(dirname(filename), "workspaces"),
    operatorHosts: config.egressAllow,
  });
  const money = createSpending(deps);
  const estimates = createEstimates(deps, { prompts, models, money });
  const judging = createJudging(deps, { models, queue, money, gateway });
  const runJob = createRunJob(deps, {
    judging,
    money,
    agents,
    models,
    host,
    queue,
    reports,
    allow: () => [...config.allowPrivate, ...alsoAllow()],
    userAgent,
  });
  const regradeJob = createRegradeJob(deps, { models, money, gradings, judging, queue, commit });
  const runner = createRunner({
    log,
    now,
    queue,
    commit,
    handlers: { run: runJob, regrade: regradeJob },
    concurrency: config.concurrency,
    limits: { org: (id) => money.limitsOf(id, orgs.limitsOf(id)), host: config.runsPerHost },
    onError,
    backoffMs,
    maxRetryAfterMs,
    leaseMs,
  });
  const endings = createEndings(deps, { queue, commit, costOf: runJob.costOf, onEnded: runner.dropLost });
  const requests = createRequests(deps, {
    prompts,
    providers,
    endings,
    money,
    queue,
    commit,
    onQueued: runner.wake,
  });
  const recommendations = createRecommendations(deps, { prompts, commit, ...requests });
  const regrades = createRegrades(deps, {
    costOf: regradeJob.costOf,
    models,
    queue,
    commit,
    onQueued: runner.wake,
    onEnded: runner.dropLost,
  });
  const slots = createSlots(deps, { prompts, requests, commit, onError });
  const gates = createGates(deps, { prompts, requests, evals, compare, commit, onError });
  const upkeep = createUpkeep(deps, { onError });

  let sweeping: Promise<void> | undefined;

  /** Why the service is not ready, in words; null if it is. */
  async function trouble(): Promise<string | null> {
    if (broken !== null) return `the disk under the database cannot be trusted any more: ${broken}`;
    const ofRunner = runner.trouble();
    if (ofRunner !== null) return `the runner is not taking work: ${ofRunner}`;
    try {
      // A small write that is really done: a transaction that is taken back asks nothing of the disk.
      await commit(() => db.$client.run("pragma user_version = 0"));
      return null;
    } catch (error) {
      onError(error);
      return `the database cannot be written: ${error instanceof Error ? error.message : String(error)}`;
    }
  }

  return {
    deps,
    orgs,
    keys,
    people,
    providers,
    models,
    agentChoices,
    prompts,
    promptLists,
    reports,
    compare,
    shares,
    getTimeline,
    gradings,
    latest,
    runs,
    evals,
    runLists,
    follow,
    endings,
    money,
    estimates,
    requests,
    recommendations,
    gates,
    regrades,
    exports,
    imports,
    slots,
    queue,
    runner,
    upkeep,
    commit,
    onError,
    isBroken: () => broken !== null,
    trouble,
    /** Takes up what a former process left, then runs jobs and schedules. Call it under the data lock. */
    async start(): Promise<void> {
      // What is left in temporary folders is in nobody's way meanwhile.
      sweeping = host
        .sweep()
        .catch((error) => log.warn({ err: error }, "what a killed service left could not be removed"));
      await runner.start();
      gates.start();
      slots.start();
    },
    /** Begins nothing more, and waits up to `drainMs` for what runs; what is unfinished then is given back. */
    async stop(drainMs: number): Promise<void> {
      stopping.abort();
      await Promise.all([slots.stop(), gates.stop(), runner.stop(drainMs)]);
      await Promise.all([host.close(), gateway.close(), sweeping]);
    },
  };
}
