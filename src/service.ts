import { dirname, join } from "node:path";
import type { Logger } from "pino";
import { version } from "../package.json" with { type: "json" };
import type { Agent } from "./agents/agent.ts";
import { toChoice } from "./agents/choice.ts";
import { createGatewayOpener } from "./agents/gateway/opener.ts";
import { createHost } from "./agents/llm/host.ts";
import { createArchives } from "./archives/archives.ts";
import { createKeys } from "./auth/keys.ts";
import { createOrgs } from "./auth/orgs.ts";
import { createPeople } from "./auth/people.ts";
import { createCompare } from "./comparisons/compare.ts";
import { createLatest } from "./comparisons/latest.ts";
import type { AllowRule } from "./config/allow-rules.ts";
import type { Config } from "./config/config.ts";
import { type Commit, createCommit } from "./db/commit.ts";
import { createDiskHealth } from "./db/disk-health.ts";
import type { Db } from "./db/open.ts";
import { createUpkeep } from "./db/upkeep.ts";
import type { Deps } from "./deps.ts";
import { createExports } from "./exchange/export.ts";
import { createImports } from "./exchange/import.ts";
import { createFriction } from "./friction/friction.ts";
import { createRecommendations } from "./friction/recommendations.ts";
import { createGates } from "./gates/gates.ts";
import { createStreams } from "./http/event-stream.ts";
import { createQueue, type Queue } from "./jobs/queue.ts";
import { createRunner } from "./jobs/runner.ts";
import { createModels } from "./models/models.ts";
import { createPrompts } from "./prompts/prompts.ts";
import { createProviders } from "./providers/providers.ts";
import { createRegradeJob } from "./regrades/job.ts";
import { createRegrades } from "./regrades/regrades.ts";
import { createBaselines } from "./reports/baseline.ts";
import { createCounts } from "./reports/counts.ts";
import { createGrader } from "./reports/grader.ts";
import { createGradings } from "./reports/gradings.ts";
import { reportMarkdown } from "./reports/markdown.ts";
import { createReports } from "./reports/reports.ts";
import { createTimelines } from "./reports/timeline.ts";
import { createEndings } from "./runs/endings.ts";
import { createEstimates } from "./runs/estimates.ts";
import { createEvals } from "./runs/evals.ts";
import { createRunJob } from "./runs/execute.ts";
import { createFollow } from "./runs/follow.ts";
import { createJudging } from "./runs/judging.ts";
import { createRequests } from "./runs/requests.ts";
import { createRuns } from "./runs/runs.ts";
import { createSlots } from "./runs/slots.ts";
import { createSpending } from "./runs/spending.ts";
import { createShares } from "./shares/shares.ts";
import { createScoreCounts } from "./trends/score-days.ts";

const userAgent = `evald/${version} (agent-experience evaluation)`;

export type Service = ReturnType<typeof createService>;

type Options = {
  db: Db;
  config: Config;
  log: Logger;
  /** By ID. */
  agents: Record<string, Agent>;
  baseUrl: () => string;
  /** Private addresses that runs may reach in addition to the configured ones. */
  alsoAllow?: () => AllowRule[];
  /** The program whose threads grade sessions. By default, sessions are graded in this thread. */
  gradeWith?: string;
  now?: () => number;
  newId?: (atMs: number) => string;
  backoffMs?: (failures: number) => number;
  maxRetryAfterMs?: number;
  leaseMs?: number;
  /** Called once, when the disk can no longer be trusted. Nothing more is claimed or answered, and the process should end. */
  onBroken?: (error: unknown) => void;
};

/** Reading and storing: everything that needs no job. */
function createFeatures(deps: Deps, { agents, onScheduled }: Pick<Options, "agents"> & { onScheduled: () => void }) {
  const { config } = deps;
  const orgs = createOrgs(deps);
  const keys = createKeys(deps);
  const people = createPeople(deps);
  const providers = createProviders(deps);
  const archives = createArchives(deps);
  const models = createModels(deps);
  /** Looked up each time: coding agents are installed and updated while the service runs. */
  const listAgents = () => Object.entries(agents).map(([id, agent]) => toChoice(id, agent));
  const prompts = createPrompts(deps, {
    listAgents,
    agentModel: config.agentModel,
    checkModel: models.getModel,
    hasArchive: archives.hasArchive,
    onScheduled,
  });
  const friction = createFriction(deps);
  const countReport = createCounts(deps, [createScoreCounts(deps)]);
  const baselines = createBaselines(deps);
  const reports = createReports(deps, { friction, baselines, countReport });
  const compare = createCompare(deps, { reports, baselines });
  const shares = createShares(deps);
  const getTimeline = createTimelines(deps);
  const gradings = createGradings(deps, reports);
  const latest = createLatest(baselines, compare);
  const runs = createRuns(deps);
  const exports = createExports(deps, { reports, models, toMarkdown: reportMarkdown });
  const imports = createImports(deps, countReport);
  const evals = createEvals(deps);
  return {
    orgs,
    keys,
    people,
    providers,
    archives,
    models,
    listAgents,
    prompts,
    friction,
    baselines,
    reports,
    compare,
    shares,
    getTimeline,
    gradings,
    latest,
    runs,
    exports,
    imports,
    evals,
  };
}

type JobParts = {
  features: ReturnType<typeof createFeatures>;
  queue: Queue;
  commit: Commit;
  onError: (error: unknown) => void;
  options: Options;
};

/** Work by jobs and by the clock: runs, regrades, schedules, gates. */
function createWork(deps: Deps, { features, queue, commit, onError, options }: JobParts) {
  const { db, config, log, now } = deps;
  const { agents, alsoAllow = () => [], backoffMs, maxRetryAfterMs, leaseMs } = options;
  const { orgs, providers, archives, models, prompts, compare, reports, gradings, baselines } = features;
  const { filename } = db.$client;
  const gateway = createGatewayOpener(now);
  const host = createHost({
    now,
    gateway,
    folder: filename === ":memory:" ? null : join(dirname(filename), "workspaces"),
    operatorHosts: config.egressAllow,
  });
  const money = createSpending(deps);
  const estimates = createEstimates(deps, { prompts, models, money });
  const grader = createGrader(db, filename === ":memory:" ? null : (options.gradeWith ?? null));
  const judging = createJudging(deps, { models, queue, money, gateway });
  const runJob = createRunJob(deps, {
    grader,
    judging,
    money,
    agents,
    models,
    archives,
    host,
    queue,
    reports,
    allow: () => [...config.allowPrivate, ...alsoAllow()],
    userAgent,
  });
  const regradeJob = createRegradeJob(deps, { grader, models, money, gradings, judging, queue, commit });
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
  const gates = createGates(deps, { prompts, requests, baselines, compare, commit, onError });
  const upkeep = createUpkeep(deps, { onError });
  return {
    grader,
    gateway,
    host,
    money,
    estimates,
    runner,
    endings,
    requests,
    recommendations,
    regrades,
    slots,
    gates,
    upkeep,
  };
}

/** All parts of the service, connected and on one database. Nothing listens and no job runs yet. */
export function createService(options: Options) {
  const { db, config, log, agents, baseUrl } = options;
  const now = options.now ?? Date.now;
  const newId = options.newId ?? ((atMs) => Bun.randomUUIDv7("hex", atMs));
  const deps: Deps = { db, config, log, now, newId, baseUrl };
  const features = createFeatures(deps, { agents, onScheduled: () => work.slots.wake() });
  const stopping = new AbortController();
  const follow = createFollow(deps, { runs: features.runs, stopping: stopping.signal });
  const queue = createQueue(deps);
  const commit = createCommit(db);
  const { onError, broken } = createDiskHealth({
    db,
    log,
    halt: () => work.runner.halt(),
    ...(options.onBroken && { onBroken: options.onBroken }),
  });
  const work = createWork(deps, { features, queue, commit, onError, options });
  const { gateway, grader, host, ...parts } = work;
  const { runner, gates, slots } = parts;

  let sweeping: Promise<void> | undefined;

  /** Why the service isn't ready, as a sentence; null if it is. */
  async function findProblem(): Promise<string | null> {
    const why = broken();
    if (why !== null) return `the database disk has failed: ${why}`;
    const ofRunner = runner.findProblem();
    if (ofRunner !== null) return `the job runner is not taking jobs: ${ofRunner}`;
    try {
      // A small write that reaches the disk: a rolled back transaction wouldn't.
      await commit(() => db.$client.run("pragma user_version = 0"));
      return null;
    } catch (error) {
      onError(error);
      return `the database is not writable: ${error instanceof Error ? error.message : String(error)}`;
    }
  }

  return {
    deps,
    ...features,
    ...parts,
    follow,
    streams: createStreams(onError),
    queue,
    commit,
    onError,
    isBroken: () => broken() !== null,
    findProblem,
    /** Recovers what a previous process left, then runs jobs and schedules. Call it under the data lock. */
    async start(): Promise<void> {
      // Old temporary folders don't matter in the meantime.
      sweeping = host
        .sweep()
        .catch((error) => log.warn({ err: error }, "could not remove leftovers of a killed process"));
      await runner.start();
      gates.start();
      slots.start();
    },
    /** Starts nothing more, waits up to `drainMs` for active work, and requeues the rest. */
    async stop(drainMs: number): Promise<void> {
      stopping.abort();
      await Promise.all([slots.stop(), gates.stop(), runner.stop(drainMs)]);
      await Promise.all([grader.close(), host.close(), gateway.close(), sweeping]);
    },
  };
}
