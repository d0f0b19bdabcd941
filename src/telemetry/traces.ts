import { eq, max } from "drizzle-orm";
import type { OtlpSettings } from "../config/telemetry-settings.ts";
import type { Context } from "../context.ts";
import { reports } from "../db/tables/reports.ts";
import { runs, sessionEvents } from "../db/tables/runs.ts";
import { readTextStart } from "../net/text-start.ts";
import { openUpstream } from "../net/upstream.ts";
import { createPoll } from "../poll.ts";
import { readSessionInBatches } from "../reports/session-events.ts";
import type { Metrics } from "./metrics.ts";
import { type TracedRun, toTraceRequests } from "./spans.ts";

/** How many ended runs may wait to be exported. Only their IDs are in memory. */
const maxWaiting = 1_000;
/** Time limit of one request to the collector. */
const sendMs = 10_000;
/** The pause after a failure doubles, from `firstRetryMs` up to `maxRetryMs`. */
const firstRetryMs = 1_000;
const maxRetryMs = 60_000;
/** Delay until the next check if nothing waits; a new trace starts one immediately. */
const idleMs = 3600_000;
/** Characters of a response to read. */
const maxResponse = 64 * 1024;

/** The collector refuses a trace for good. Sending it again is useless. */
class RejectedError extends Error {}

type PartialSuccess = { rejectedSpans: number; errorMessage: string };

/** What an ExportTraceServiceResponse reports as rejected. Its 64-bit numbers are strings in JSON. */
function toPartialSuccess(text: string): PartialSuccess {
  try {
    const { rejectedSpans, errorMessage } = JSON.parse(text)?.partialSuccess ?? {};
    const n = Number(rejectedSpans ?? 0);
    return {
      rejectedSpans: Number.isSafeInteger(n) && n > 0 ? n : 0,
      errorMessage: String(errorMessage ?? "").slice(0, 500),
    };
  } catch {
    return { rejectedSpans: 0, errorMessage: "" };
  }
}

/** The export of traces: the runs that wait for it, and what failed. */
type TraceExport = ReturnType<typeof createTraceExport>;

/**
 * Exports the sessions of ended runs to an OpenTelemetry collector, one at a time. While the collector can't be reached, at most 1,000 runs wait.
 * Further runs are dropped, and so are traces that the collector rejects. Runs never wait for the export, and nothing is kept over a restart.
 * `metrics` null: not configured.
 */
export function createTraceExport(ctx: Context, settings: OtlpSettings, metrics: Metrics | null) {
  const traces = {
    ctx,
    settings,
    metrics,
    /** IDs of ended runs, the oldest first. */
    waiting: [] as string[],
    stopController: new AbortController(),
    /** How often the export of the oldest run has failed. */
    failures: 0,
    /** When the next attempt may start, by the monotonic clock. */
    notBefore: 0,
    hasWarned: false,
    poll: createPoll({
      check: (): Promise<number> => sendNext(traces),
      onError: (error) => ctx.log.error({ err: error }, "could not export traces"),
      retryMs: maxRetryMs,
    }),
  };
  return traces;
}

/** Exports runs that have ended. Other runs are ignored. */
export function exportTraces(traces: TraceExport, runIds: string[]): void {
  for (const id of runIds) {
    if (traces.waiting.length < maxWaiting) traces.waiting.push(id);
    else dropTrace(traces, id, `${maxWaiting} traces are waiting for the collector`);
  }
  traces.poll.wake();
}

/** Stops sending. */
export function stopTraceExport({ stopController, poll }: TraceExport): Promise<void> {
  stopController.abort();
  return poll.stop();
}

/** Sends the oldest trace. Returns the delay until the next one. */
async function sendNext(traces: TraceExport): Promise<number> {
  const { ctx, settings, metrics, waiting, stopController } = traces;
  // Runs that end during a pause wake the poll.
  const wait = traces.notBefore - performance.now();
  if (wait > 0) return wait;
  const [id] = waiting;
  if (id === undefined) return idleMs;
  try {
    const run = await readRun(ctx, id);
    if (run) {
      for (const body of toTraceRequests(run, settings.withContent)) await send(traces, body);
      metrics?.counters.traces.inc({ result: "sent" });
    }
  } catch (error) {
    if (stopController.signal.aborted) return idleMs;
    if (!(error instanceof RejectedError)) {
      traces.notBefore = performance.now() + Math.min(maxRetryMs, firstRetryMs * 2 ** traces.failures++);
      ctx.log.debug({ run: id, err: error }, "could not export trace");
      return traces.notBefore - performance.now();
    }
    dropTrace(traces, id, error.message);
  }
  traces.failures = 0;
  waiting.shift();
  return waiting.length > 0 ? 0 : idleMs;
}

function dropTrace({ ctx, metrics }: TraceExport, run: string, reason: string): void {
  metrics?.counters.traces.inc({ result: "dropped" });
  ctx.log.warn({ run, reason }, "trace dropped");
}

/** null: the run has not ended, or there is no session. */
async function readRun(ctx: Context, id: string): Promise<TracedRun | null> {
  const { db } = ctx;
  const row = db
    .select({ run: runs, report: reports })
    .from(runs)
    .leftJoin(reports, eq(reports.runId, runs.id))
    .where(eq(runs.id, id))
    .get();
  if (!row || row.run.completedAt === null) return null;
  const { run, report } = row;
  const last = db
    .select({ attempt: max(sessionEvents.attempt) })
    .from(sessionEvents)
    .where(eq(sessionEvents.runId, id));
  const attempt = report?.attempt ?? last.get()?.attempt ?? null;
  if (attempt === null) return null;
  const events = await readSessionInBatches(ctx, { orgId: run.orgId, runId: id, attempt });
  return events.length === 0 ? null : { ...run, text: run.task.text, attempt, report, events };
}

async function send(traces: TraceExport, body: object): Promise<void> {
  const { url, headers } = traces.settings;
  const signal = AbortSignal.any([traces.stopController.signal, AbortSignal.timeout(sendMs)]);
  const response = await openUpstream(url, { headers, body: JSON.stringify(body), signal, allow: null });
  const { status } = response;
  if (response.ok) return reportRejectedSpans(traces, toPartialSuccess(await readTextStart(response, maxResponse)));
  await response.body?.cancel();
  const reason = `the collector returned ${status}`;
  throw status === 429 || status >= 500 ? new Error(reason) : new RejectedError(reason);
}

/** The collector kept only a part of a request. It would reject the same spans again. */
function reportRejectedSpans(traces: TraceExport, { rejectedSpans, errorMessage }: PartialSuccess): void {
  const { ctx, metrics } = traces;
  if (rejectedSpans === 0) return;
  metrics?.counters.rejectedSpans.inc(rejectedSpans);
  if (!traces.hasWarned)
    ctx.log.warn({ rejectedSpans, reason: errorMessage }, "the OTLP collector rejected spans; logged once");
  traces.hasWarned = true;
}
