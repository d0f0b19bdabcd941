import type { Context } from "../context.ts";
import { turnsOf } from "../http/turns.ts";
import type { Lease } from "../jobs/queue.ts";
import type { WorkerExecutor } from "../places/worker-executor.ts";
import { countAttempt, countEndedRuns, createMetrics, measureDelays } from "./metrics.ts";
import { createReleaseCheck } from "./new-release.ts";
import { createTraceExport, exportTraces, stopTraceExport } from "./traces.ts";

/**
 * Metrics, traces and the check for releases, if they are configured. They report only what has been stored. `workers` null: agents run on this
 * machine.
 */
export function createTelemetry(ctx: Context, workers: WorkerExecutor | null) {
  const { telemetry: settings } = ctx.config;
  const metrics = settings.metrics && createMetrics(ctx, workers);
  const traces = settings.otlp && createTraceExport(ctx, settings.otlp, metrics);
  const releaseCheck = settings.latestReleaseUrl === null ? null : createReleaseCheck(ctx, settings.latestReleaseUrl);
  let delays: ReturnType<typeof measureDelays> | undefined;
  // These runs ended without an attempt.
  ctx.signals.runsEnded.subscribe((runIds) => {
    if (metrics) countEndedRuns(ctx, metrics, runIds);
    if (traces) exportTraces(traces, runIds);
  });
  ctx.signals.runJudged.subscribe((isJudged) =>
    metrics?.counters.judgings.inc({ result: isJudged ? "judged" : "failed" }),
  );
  return {
    /** null: not configured. */
    metrics,
    onAttempt(lease: Lease): void {
      if (metrics) countAttempt(ctx, metrics, lease);
      if (traces && lease.kind === "run") exportTraces(traces, [lease.subject]);
    },
    start(): void {
      delays = metrics ? measureDelays(metrics) : undefined;
      if (metrics) turnsOf(ctx).measure((ms) => metrics.counters.turns.observe(ms / 1000));
      traces?.poll.start();
      releaseCheck?.start();
    },
    async stop(): Promise<void> {
      clearInterval(delays);
      if (traces) await stopTraceExport(traces);
      await releaseCheck?.stop();
    },
  };
}
