import { dirname } from "node:path";
import type { AgentStandby } from "./agents/all.ts";
import type { Sandbox } from "./agents/sandbox/sandbox.ts";
import { workspacesIn } from "./agents/sandbox/workspace.ts";
import { limitsOfOrg } from "./auth/orgs.ts";
import { findBackupWarning } from "./backups/backups.ts";
import { canBackUp, createBackupLoop } from "./backups/loop.ts";
import { createBisectLoop } from "./bisects/progress.ts";
import { createCalibrationLoop } from "./calibration/progress.ts";
import { createHealthChecks } from "./checks/health-checks.ts";
import { listStoredProblems } from "./checks/stored-problems.ts";
import { announceScore } from "./comparisons/score-alert.ts";
import { type Context, type ContextOptions, createContext } from "./context.ts";
import { createUpkeep } from "./db/upkeep.ts";
import { cancelRunsOfDeletions } from "./deletions/cancellation.ts";
import { eraseDue } from "./deletions/erasure.ts";
import { forgetDeletedPeople, forgetFormerMembers } from "./deletions/forgetting.ts";
import { eraseOldData } from "./deletions/old-data.ts";
import { reasonOf } from "./errors.ts";
import { signingKeyOf } from "./exchange/export.ts";
import { closeExports } from "./exchange/export-thread.ts";
import { createExperimentLoop } from "./experiments/progress.ts";
import { createGateLoop } from "./gates/progress.ts";
import { weeklyDigestOf } from "./inbox/digest.ts";
import { createScoreChangeLoop } from "./inbox/score-changes.ts";
import { createRunner } from "./jobs/runner.ts";
import { gatewayOf } from "./models/models.ts";
import { createNotifier } from "./notifications/notifier.ts";
import { createLocalExecutor, sweepWorkspaces, warnWithoutSandbox } from "./places/local.ts";
import type { WorkerExecutor } from "./places/worker-executor.ts";
import { createProposalJob } from "./proposals/job.ts";
import { createRegradeJob } from "./regrades/job.ts";
import { closeGrader } from "./reports/grader.ts";
import { limitsWithinBudget } from "./runs/budgets.ts";
import { createRunJob } from "./runs/execute.ts";
import { createScheduler } from "./schedules/scheduler.ts";
import { createTelemetry } from "./telemetry/telemetry.ts";

export type Service = ReturnType<typeof createService>;

type ServiceOptions = Omit<ContextOptions, "stopping"> & {
  /** Starts the processes of agents. */
  standby?: AgentStandby;
  /** Where agents run. Default: on this machine. */
  workers?: WorkerExecutor;
  /** The environment, for the checks of the installation. */
  env?: Record<string, string | undefined>;
  backoffMs?: (failures: number) => number;
  maxRetryAfterMs?: number;
  leaseMs?: number;
  /** Variables that the process of a backup gets. */
  backupEnv?: Record<string, string>;
  /** The timeout of one try of a delivery. */
  deliveryTimeoutMs?: number;
};

/** The loops that finish requests for several runs. */
const requestLoopFactories = [createGateLoop, createExperimentLoop, createBisectLoop, createCalibrationLoop];

/** Connects everything that has state, on one database. Nothing listens yet, and no job runs yet. */
export function createService(options: ServiceOptions) {
  const { workers = null, leaseMs, env = {} } = options;
  const stopping = new AbortController();
  const awayWorkers = () => workers?.listAway() ?? [];
  const ctx = createContext({ ...options, awayWorkers, stopping: stopping.signal });
  const { config, log, disk, signals } = ctx;
  const { filename } = ctx.db.$client;

  const telemetry = createTelemetry(ctx, workers);
  const workspaces = filename === ":memory:" ? null : workspacesIn(dirname(filename));
  const local = createLocalExecutor(ctx.agents, ctx.now, workspaces, config.egressAllow);
  const host = { executor: workers ?? local, allow: ctx.allow };
  const runner = createRunner(ctx, {
    pool: "runs",
    handlers: { run: createRunJob(ctx, host), regrade: createRegradeJob(ctx), proposal: createProposalJob(ctx, host) },
    concurrency: () => workers?.slots() ?? config.concurrency,
    limits: { org: (id) => limitsWithinBudget(ctx, id, limitsOfOrg(ctx, id)), host: config.runsPerHost },
    onAttempt: telemetry.onAttempt,
    backoffMs: options.backoffMs,
    maxRetryAfterMs: options.maxRetryAfterMs,
    leaseMs,
  });
  const notifier = createNotifier(ctx, {
    digestOf: (org, from, until) => weeklyDigestOf(ctx, org, from, until),
    timeoutMs: options.deliveryTimeoutMs,
    onAttempt: telemetry.onAttempt,
    leaseMs,
  });
  const scheduler = createScheduler(ctx);
  const requestLoops = requestLoopFactories.map((create) => create(ctx));
  const loops = [...requestLoops, createScoreChangeLoop(ctx), scheduler];
  const upkeep = createUpkeep(ctx, [
    (stop) => cancelRunsOfDeletions(ctx, stop),
    (stop) => forgetDeletedPeople(ctx, stop),
    (stop) => forgetFormerMembers(ctx, stop),
    (stop) => eraseDue(ctx, stop),
    (stop) => eraseOldData(ctx, stop),
  ]);
  const backupLoop = createBackupLoop(ctx, options.backupEnv ?? {});
  const healthChecks = createHealthChecks(ctx, () => ({
    config,
    env,
    ctx,
    now: ctx.now,
    findSandbox: local.findSandbox,
    service: { ownUrl: ctx.baseUrl(), instance: ctx.instance },
    workers: workers?.list() ?? null,
  }));

  signals.jobQueued.subscribe(runner.wake);
  signals.jobCancelled.subscribe(runner.stopLostJobs);
  signals.deliveryQueued.subscribe(notifier.runner.wake);
  signals.scheduleChanged.subscribe(scheduler.wake);
  signals.erasureDue.subscribe(upkeep.wake);
  signals.evaluationEnded.subscribe(({ tx, org, promptId }) => announceScore(ctx, tx, org, promptId));
  for (const { halt } of [runner, notifier.runner]) disk.failed.subscribe(halt);

  let cleanup: Promise<void> | undefined;

  return {
    ctx,
    workers,
    telemetry,
    runner,
    notifier,
    scheduler,
    /** The loops finish what was requested, even for a command without a service. */
    requestLoops,
    backupLoop,
    upkeep,
    /** Checks of the installation. They start after the service has started. */
    healthChecks,
    /** What the checks found at their last run. */
    listProblems: () => listStoredProblems(ctx),
    /** Answers a model call of a run on a worker. */
    answerModelCall: gatewayOf(ctx).answer,
    /** What to fix about backups although the service is ready; null: nothing. */
    findWarning: () => findBackupWarning(ctx),
    /** The public key of its exports; null: they aren't signed. */
    signingKey: () => signingKeyOf(ctx),
    /** Why the service isn't ready, in a sentence; null: it is ready. */
    findProblem: () => findProblem(ctx, runner.findProblem()),

    /** Recovers what a previous process left, then runs jobs and schedules. Call it under the data lock. */
    async start(): Promise<void> {
      // The start doesn't wait for this, because old temporary folders do no harm.
      cleanup = sweepWorkspaces(workspaces).catch((error) =>
        log.warn({ err: error }, "could not remove leftovers of a killed process"),
      );
      disk.start();
      telemetry.start();
      await runner.start();
      await notifier.start();
      for (const loop of loops) loop.start();
      if (canBackUp(ctx)) backupLoop.start();
    },

    /** Prepares in advance what the next run needs. */
    prepare(): void {
      options.standby?.start(local, config.concurrency);
      if (!workers) void checkSandbox(ctx, local.findSandbox);
      // If this fails, the first run that needs it reports the error.
      if (config.agentModel !== null) local.prepare();
    },

    /** Starts nothing more, waits up to `drainMs` for active work, and requeues the rest. */
    async stop(drainMs: number): Promise<void> {
      stopping.abort();
      disk.stop();
      await Promise.all([
        options.standby?.stop(),
        ...loops.map((loop) => loop.stop()),
        backupLoop.stop(),
        runner.stop(drainMs),
        notifier.stop(drainMs),
      ]);
      await workers?.close();
      await Promise.all([
        closeGrader(ctx),
        closeExports(ctx),
        local.close(),
        gatewayOf(ctx).close(),
        telemetry.stop(),
        cleanup,
      ]);
    },
  };
}

/** Logs if agents have no sandbox on this machine. */
const checkSandbox = ({ log }: Context, findSandbox: () => Promise<Sandbox>): Promise<void> =>
  findSandbox().then(
    (sandbox) => warnWithoutSandbox(log, sandbox),
    (error) => log.warn({ err: error }, "could not check the sandbox; the next run tries again"),
  );

async function findProblem({ db, commit, disk }: Context, runnerProblem: string | null): Promise<string | null> {
  const diskProblem = disk.findProblem();
  if (diskProblem !== null) return `the database disk has failed: ${diskProblem}`;
  if (runnerProblem !== null) return `the job runner is not taking jobs: ${runnerProblem}`;
  try {
    // This write is small but reaches the disk. A transaction that is rolled back would not.
    await commit(() => db.$client.run("pragma user_version = 0"));
    return null;
  } catch (error) {
    disk.onError(error);
    return `the database is not writable: ${reasonOf(error)}`;
  }
}
