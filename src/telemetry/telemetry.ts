import type { Context } from "../context.ts";
import type { Lease } from "../jobs/queue.ts";
import type { GaugeParts } from "./gauges.ts";
import { createMetrics } from "./metrics.ts";
import { createTraceExport } from "./traces.ts";

/** Metrics and traces, as far as they are configured. They report what has been stored. */
export function createTelemetry(
  ctx: Pick<Context, "db" | "log" | "now" | "config">,
  workers: GaugeParts["workers"] = null,
) {
  const settings = ctx.config.telemetry;
  const metrics = settings.metrics && createMetrics({ ...ctx, workers });
  const onTrace = (result: "sent" | "dropped") => metrics?.countTrace(result);
  const onRejected = (spans: number) => metrics?.countRejectedSpans(spans);
  const traces = settings.otlp && createTraceExport(ctx, { ...settings.otlp, onTrace, onRejected });
  return {
    /** null: not configured. */
    metrics,
    onAttempt(lease: Lease): void {
      metrics?.countAttempt(lease);
      if (lease.kind === "run") traces?.add([lease.subject]);
    },
    /** For runs that ended otherwise than by an attempt. */
    onEnded(runIds: string[]): void {
      metrics?.countEnded(runIds);
      traces?.add(runIds);
    },
    onJudged: (isJudged: boolean): void => metrics?.countJudging(isJudged),
    start(): void {
      metrics?.start();
      traces?.start();
    },
    async stop(): Promise<void> {
      metrics?.stop();
      await traces?.stop();
    },
  };
}
