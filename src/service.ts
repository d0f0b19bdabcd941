import { dirname } from "node:path";
import type { Logger } from "pino";
import { version } from "../package.json" with { type: "json" };
import type { Agent } from "./agents/agent.ts";
import type { AgentStandby } from "./agents/all.ts";
import { createGatewayOpener } from "./agents/gateway/opener.ts";
import { workspacesIn } from "./agents/sandbox/workspace.ts";
import { createPauseNotice } from "./auth/pause-notice.ts";
import { createScoreAlert } from "./comparisons/score-alert.ts";
import { createWeek } from "./comparisons/week.ts";
import type { AllowRule } from "./config/allow-rules.ts";
import type { Config } from "./config/config.ts";
import { type Commit, createCommit } from "./db/commit.ts";
import { createDiskHealth } from "./db/disk-health.ts";
import type { Db } from "./db/open.ts";
import { createReadiness } from "./db/readiness.ts";
import { createUpkeep } from "./db/upkeep.ts";
import type { Deps } from "./deps.ts";
import { createFeatures, type Features } from "./features.ts";
import { createRecommendations } from "./friction/recommendations.ts";
import { createGates } from "./gates/gates.ts";
import { createStreams } from "./http/event-stream.ts";
import { createQueue, type Queue } from "./jobs/queue.ts";
import { createRunner } from "./jobs/runner.ts";
import { createNotifier } from "./notifications/notifier.ts";
import { createOutbox, type Outbox } from "./notifications/outbox.ts";
import { createLocalPlace } from "./places/local.ts";
import type { WorkerPlace } from "./places/worker-place.ts";
import { createTagSchedules } from "./prompts/tag-schedules.ts";
import { createRegradeJob } from "./regrades/job.ts";
import { createRegrades } from "./regrades/regrades.ts";
import { createGrader } from "./reports/grader.ts";
import { createRunAnnouncements } from "./runs/announcements.ts";
import { createEndings } from "./runs/endings.ts";
import { createEstimates } from "./runs/estimates.ts";
import { createRunJob } from "./runs/execute.ts";
import { createFollow } from "./runs/follow.ts";
import { createJudging } from "./runs/judging.ts";
import { createRequests } from "./runs/requests.ts";
import { createSlots } from "./runs/slots.ts";
import { createSpending } from "./runs/spending.ts";
import { createTelemetry, type Telemetry } from "./telemetry/telemetry.ts";
import { createWorkers } from "./workers/workers.ts";

const userAgent = `evald/${version} (agent-experience evaluation)`;

export type Service = ReturnType<typeof createService>;

type Options = {
  db: Db;
  config: Config;
  log: Logger;
  /** By ID. */
  agents: Record<string, Agent>;
  /** Starts their processes. */
  standby?: Pick<AgentStandby, "start" | "stop">;
  /** Where agents run. Default: on this machine. */
  workers?: WorkerPlace;
  baseUrl: () => string;
  /** Private addresses that runs may reach in addition to the configured ones. */
  alsoAllow?: () => AllowRule[];
  /** The program whose threads grade sessions and write exports. By default, this thread does. */
  threadProgram?: string;
  now?: () => number;
  newId?: (atMs: number) => string;
  backoffMs?: (failures: number) => number;
  maxRetryAfterMs?: number;
  leaseMs?: number;
  /** For one try of a delivery. */
  deliveryTimeoutMs?: number;
  /** Called once, when the disk can no longer be trusted. Nothing more is claimed or answered, and the process should end. */
  onBroken?: (error: unknown) => void;
};

type JobParts = {
  features: Features;
  queue: Queue;
  outbox: Outbox;
  deliveryQueue: Queue;
  commit: Commit;
  onError: (error: unknown) => void;
  telemetry: Telemetry;
  options: Options;
};

/** Work by jobs and by the clock: runs, regrades, schedules, gates. */
function createWork(deps: Deps, parts: JobParts) {
  const { features, queue, outbox, deliveryQueue, commit, onError, telemetry, options } = parts;
  const { db, config, log, now } = deps;
  const { agents, workers, alsoAllow = () => [], backoffMs, maxRetryAfterMs, leaseMs } = options;
  const { orgs, people, providers, archives, models, prompts, compare, reports, gradings, baselines, latest } =
    features;
  const { filename } = db.$client;
  const gateway = createGatewayOpener(now);
  const place = createLocalPlace({
    agents,
    now,
    folder: filename === ":memory:" ? null : workspacesIn(dirname(filename)),
    operatorHosts: config.egressAllow,
  });
  const money = createSpending(deps);
  const estimates = createEstimates(deps, { prompts, models, money });
  const grader = createGrader(db, options.threadProgram ?? null);
  const { announceEnd, announceSpending } = createRunAnnouncements(deps, {
    ...{ outbox, money },
    onEvaluation: createScoreAlert(deps, { outbox, latest }),
  });
  const judging = createJudging(deps, { models, queue, money, gateway, grader, onJudged: telemetry.onJudged });
  const runJob = createRunJob(deps, {
    grader,
    judging,
    money,
    agents,
    models,
    archives,
    gateway,
    place: workers ?? place,
    queue,
    reports,
    announceEnd,
    allow: () => [...config.allowPrivate, ...alsoAllow()],
    userAgent,
  });
  const regradeJob = createRegradeJob(deps, {
    grader,
    models,
    money,
    gradings,
    judging,
    queue,
    commit,
    announceSpending,
  });
  const runner = createRunner({
    log,
    now,
    queue,
    commit,
    handlers: { run: runJob, regrade: regradeJob },
    concurrency: () => workers?.slots() ?? config.concurrency,
    limits: { org: (id) => money.limitsOf(id, orgs.limitsOf(id)), host: config.runsPerHost },
    onAttempt: telemetry.onAttempt,
    onError,
    backoffMs,
    maxRetryAfterMs,
    leaseMs,
  });
  const onEnded = (runIds: string[]) => {
    runner.dropLost();
    telemetry.onEnded(runIds);
  };
  const endings = createEndings(deps, { queue, commit, costOf: runJob.costOf, announceEnd, onEnded });
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
  const onPaused = createPauseNotice({ orgs, people, prompts });
  const slots = createSlots(deps, { prompts, requests, commit, emit: outbox.emit, onPaused, onError });
  const tagSchedules = createTagSchedules(deps, { commit, onScheduled: slots.wake });
  const gates = createGates(deps, { prompts, requests, baselines, compare, commit, emit: outbox.emit, onError });
  const upkeep = createUpkeep(deps, { onError });
  const notifier = createNotifier(deps, {
    ...{ queue: deliveryQueue, outbox, commit, people, orgs, userAgent, onError },
    ...{ timeoutMs: options.deliveryTimeoutMs, leaseMs, onAttempt: telemetry.onAttempt },
    digestOf: createWeek(deps, features),
  });
  return {
    grader,
    gateway,
    place,
    money,
    estimates,
    runner,
    endings,
    requests,
    recommendations,
    regrades,
    slots,
    tagSchedules,
    gates,
    upkeep,
    notifier,
    announceEnd,
  };
}

/** All parts of the service, connected and on one database. Nothing listens and no job runs yet. */
export function createService(options: Options) {
  const { db, config, log, baseUrl } = options;
  const now = options.now ?? Date.now;
  const newId = options.newId ?? ((atMs) => Bun.randomUUIDv7("hex", atMs));
  const deps: Deps = { db, config, log, now, newId, baseUrl };
  const deliveryQueue = createQueue(deps, "deliveries");
  const outbox = createOutbox(deps, { queue: deliveryQueue, onQueued: () => work.notifier.runner.wake() });
  const features = createFeatures(deps, { userAgent, ...options, outbox, onScheduled: () => work.slots.wake() });
  const stopping = new AbortController();
  const follow = createFollow(deps, { runs: features.runs, stopping: stopping.signal });
  const queue = createQueue(deps);
  const commit = createCommit(db);
  const disk = createDiskHealth({
    db,
    log,
    halt() {
      work.runner.halt();
      work.notifier.runner.halt();
    },
    ...(options.onBroken && { onBroken: options.onBroken }),
  });
  const { onError, broken } = disk;
  const telemetry = createTelemetry(deps, options.workers ?? null);
  const work = createWork(deps, { features, queue, outbox, deliveryQueue, commit, onError, telemetry, options });
  const { gateway, grader, place, ...parts } = work;
  const { runner, gates, slots, notifier } = parts;

  let sweeping: Promise<void> | undefined;

  const findProblem = createReadiness({ db, commit, broken, findRunnerProblem: runner.findProblem, onError });

  return {
    deps,
    workers: createWorkers(deps, {
      place: options.workers ?? null,
      countOrgs: () => features.orgs.listOrgs().length,
    }),
    ...features,
    ...parts,
    follow,
    streams: createStreams(onError),
    queue,
    commit,
    onError,
    telemetry,
    /** Answers a model call of a run on a worker. */
    answerModelCall: async (request: Request): Promise<Response> => (await gateway.open()).answer(request),
    isBroken: () => broken() !== null,
    findProblem,
    /** Recovers what a previous process left, then runs jobs and schedules. Call it under the data lock. */
    async start(): Promise<void> {
      // Old temporary folders don't matter in the meantime.
      sweeping = place
        .sweep()
        .catch((error) => log.warn({ err: error }, "could not remove leftovers of a killed process"));
      disk.start();
      telemetry.start();
      await runner.start();
      await notifier.start();
      gates.start();
      slots.start();
    },
    /** Does ahead what the next run would wait for. */
    prepare(): void {
      options.standby?.start(place, config.concurrency);
      if (config.agentModel === null) return;
      place.prepare();
      // The first run that needs it reports errors.
      gateway.open().catch(() => {});
    },
    /** Starts nothing more, waits up to `drainMs` for active work, and requeues the rest. */
    async stop(drainMs: number): Promise<void> {
      stopping.abort();
      disk.stop();
      await Promise.all([
        options.standby?.stop(),
        slots.stop(),
        gates.stop(),
        runner.stop(drainMs),
        notifier.stop(drainMs),
      ]);
      await options.workers?.close();
      await Promise.all([
        grader.close(),
        features.exports.close(),
        place.close(),
        gateway.close(),
        telemetry.stop(),
        sweeping,
      ]);
    },
  };
}
