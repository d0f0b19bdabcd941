import { dirname } from "node:path";
import type { AgentStandby } from "./agents/all.ts";
import { createGatewayOpener } from "./agents/gateway/opener.ts";
import { workspacesIn } from "./agents/sandbox/workspace.ts";
import { limitsOfOrg, listOrgs } from "./auth/orgs.ts";
import { announceScore } from "./comparisons/score-alert.ts";
import { getWeeklyDigest } from "./comparisons/week.ts";
import type { AllowRule } from "./config/allow-rules.ts";
import { type Context, type ContextOptions, createContext } from "./context.ts";
import { createReadiness } from "./db/readiness.ts";
import { createUpkeep } from "./db/upkeep.ts";
import { exportThreadOf } from "./exchange/export-thread.ts";
import { createFeatures, type Features } from "./features.ts";
import { createRecommendations } from "./friction/recommendations.ts";
import { createGates } from "./gates/gates.ts";
import { createRunner } from "./jobs/runner.ts";
import { userAgent } from "./net/user-agent.ts";
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
import { createJudging } from "./runs/judging.ts";
import { createRequests } from "./runs/requests.ts";
import { createSlots } from "./runs/slots.ts";
import { limitsWithinBudget } from "./runs/spending.ts";
import { createTelemetry, type Telemetry } from "./telemetry/telemetry.ts";
import { createWorkers } from "./workers/workers.ts";

export type Service = ReturnType<typeof createService>;

type Options = Omit<ContextOptions, "stopping"> & {
  /** Starts their processes. */
  standby?: Pick<AgentStandby, "start" | "stop">;
  /** Where agents run. Default: on this machine. */
  workers?: WorkerPlace;
  /** Private addresses that runs may reach in addition to the configured ones. */
  alsoAllow?: () => AllowRule[];
  backoffMs?: (failures: number) => number;
  maxRetryAfterMs?: number;
  leaseMs?: number;
  /** For one try of a delivery. */
  deliveryTimeoutMs?: number;
};

type JobParts = {
  features: Features;
  outbox: Outbox;
  telemetry: Telemetry;
  options: Options;
};

/** Work by jobs and by the clock: runs, regrades, schedules, gates. */
function createWork(ctx: Context, parts: JobParts) {
  const { features, outbox, telemetry, options } = parts;
  const { db, config, now, agents, commit, signals } = ctx;
  const { onError } = ctx.disk;
  const { workers, alsoAllow = () => [], backoffMs, maxRetryAfterMs, leaseMs } = options;
  const { prompts } = features;
  const { filename } = db.$client;
  const gateway = createGatewayOpener(now);
  const place = createLocalPlace({
    agents,
    now,
    folder: filename === ":memory:" ? null : workspacesIn(dirname(filename)),
    operatorHosts: config.egressAllow,
  });
  const estimates = createEstimates(ctx, { prompts });
  const grader = createGrader(db);
  const { announceEnd, announceSpending } = createRunAnnouncements(ctx, {
    outbox,
    onEvaluation: (tx, org, promptId) => announceScore(ctx, tx, org, promptId),
  });
  const judging = createJudging(ctx, { gateway, grader });
  const runJob = createRunJob(ctx, {
    grader,
    judging,
    agents,
    gateway,
    place: workers ?? place,
    announceEnd,
    allow: () => [...config.allowPrivate, ...alsoAllow()],
    userAgent,
  });
  const regradeJob = createRegradeJob(ctx, {
    grader,
    judging,
    commit,
    announceSpending,
  });
  const runner = createRunner(ctx, {
    pool: "runs",
    handlers: { run: runJob, regrade: regradeJob },
    concurrency: () => workers?.slots() ?? config.concurrency,
    limits: { org: (id) => limitsWithinBudget(ctx, id, limitsOfOrg(ctx, id)), host: config.runsPerHost },
    onAttempt: telemetry.onAttempt,
    backoffMs,
    maxRetryAfterMs,
    leaseMs,
  });
  signals.jobQueued.subscribe(runner.wake);
  signals.jobCancelled.subscribe(runner.dropLost);
  signals.runsEnded.subscribe(telemetry.onEnded);
  signals.runJudged.subscribe(telemetry.onJudged);
  const endings = createEndings(ctx, { commit, costOf: runJob.costOf, announceEnd });
  const requests = createRequests(ctx, {
    prompts,
    endings,
    commit,
  });
  const recommendations = createRecommendations(ctx, { prompts, commit, ...requests });
  const regrades = createRegrades(ctx, {
    costOf: regradeJob.costOf,
    commit,
  });
  const slots = createSlots(ctx, { prompts, requests, commit, emit: outbox.emit, onError });
  signals.scheduleChanged.subscribe(slots.wake);
  const tagSchedules = createTagSchedules(ctx, { commit });
  const gates = createGates(ctx, { prompts, requests, commit, emit: outbox.emit, onError });
  const upkeep = createUpkeep(ctx, { onError });
  const notifier = createNotifier(ctx, {
    timeoutMs: options.deliveryTimeoutMs,
    leaseMs,
    onAttempt: telemetry.onAttempt,
    digestOf: (org, from, until) => getWeeklyDigest(ctx, org, from, until),
  });
  signals.deliveryQueued.subscribe(notifier.runner.wake);
  ctx.disk.failed.subscribe(runner.halt);
  ctx.disk.failed.subscribe(notifier.runner.halt);
  return {
    grader,
    gateway,
    place,
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
  const stopping = new AbortController();
  const ctx = createContext({ ...options, stopping: stopping.signal });
  const { config, log, disk } = ctx;
  const outbox = createOutbox(ctx);
  const features = createFeatures(ctx);
  const telemetry = createTelemetry(ctx, options.workers ?? null);
  const work = createWork(ctx, { features, outbox, telemetry, options });
  const { gateway, grader, place, ...parts } = work;
  const { runner, gates, slots, notifier } = parts;

  let sweeping: Promise<void> | undefined;

  const findProblem = createReadiness({ ...ctx, ...disk, findRunnerProblem: runner.findProblem });

  return {
    ctx,
    workers: createWorkers(ctx, {
      place: options.workers ?? null,
      countOrgs: () => listOrgs(ctx).length,
    }),
    ...features,
    ...parts,
    commit: ctx.commit,
    onError: disk.onError,
    telemetry,
    /** Answers a model call of a run on a worker. */
    answerModelCall: async (request: Request): Promise<Response> => (await gateway.open()).answer(request),
    isBroken: () => disk.broken() !== null,
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
    /** Prepares in advance what the next run needs. */
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
        exportThreadOf(ctx).close(),
        place.close(),
        gateway.close(),
        telemetry.stop(),
        sweeping,
      ]);
    },
  };
}
