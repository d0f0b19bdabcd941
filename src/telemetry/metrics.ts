import { and, eq, sql } from "drizzle-orm";
import type { Registry } from "prom-client";
import type { Context } from "../context.ts";
import { statement } from "../db/prepared.ts";
import { attempts, jobs } from "../db/tables/jobs.ts";
import { reports } from "../db/tables/reports.ts";
import { runs } from "../db/tables/runs.ts";
import type { Lease } from "../jobs/queue.ts";
import { loadPromClient } from "../lazy-packages.ts";
import type { WorkerExecutor } from "../places/worker-executor.ts";
import { addGauges } from "./gauges.ts";

const responseBuckets = [0.005, 0.025, 0.1, 0.5, 2.5, 10];
const jobBuckets = [0.1, 1, 5, 15, 60, 300, 900, 3600];
const delayBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];
const turnBuckets = [0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1];
const delayEveryMs = 100;

/** HTTP methods that have their own label. A client can send any other method. */
const methods = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);

/** Counters and histograms, which count since the start of the process. */
function addCounters(registry: Registry) {
  const { Counter, Histogram } = loadPromClient();
  const registers = [registry];
  const counter = <L extends string>(name: string, help: string, labelNames: L[]) =>
    new Counter({ name: `evald_${name}`, help, labelNames, registers });
  const histogram = <L extends string>(name: string, help: string, labelNames: L[], buckets: number[]) =>
    new Histogram({ name: `evald_${name}`, help, labelNames, buckets, registers });
  return {
    runs: counter("runs_total", "Ended runs by status, outcome of the report and cause of the failure", [
      "status",
      "outcome",
      "cause",
    ]),
    waits: histogram("job_wait_seconds", "Time from the creation of a job to its first start", ["kind"], jobBuckets),
    attempts: histogram("job_attempt_seconds", "Duration of attempts of jobs", ["kind", "outcome"], jobBuckets),
    judgings: counter("judgings_total", "Sessions sent to a judge by result: judged or failed", ["result"]),
    rejectedSpans: counter(
      "otlp_rejected_spans_total",
      "Spans that the collector rejected of traces that it accepted",
      [],
    ),
    traces: counter("otlp_traces_total", "Traces by result: sent or dropped", ["result"]),
    responses: counter("http_requests_total", "HTTP requests; the route is empty if none matched", [
      "method",
      "route",
      "status",
    ]),
    seconds: histogram("http_request_duration_seconds", "Time to respond to HTTP requests", ["route"], responseBuckets),
    turns: histogram(
      "turn_seconds",
      "Time that one organization or network kept all others waiting, from 1 ms on",
      [],
      turnBuckets,
    ),
    delays: histogram("event_loop_delay_seconds", "Delay of a timer, measured 10 times a second", [], delayBuckets),
  };
}

const attemptOfJob = statement((db) =>
  db
    .select({
      createdAt: jobs.createdAt,
      startedAt: attempts.startedAt,
      completedAt: attempts.completedAt,
      outcome: attempts.outcome,
    })
    .from(attempts)
    .innerJoin(jobs, eq(jobs.id, attempts.jobId))
    .where(and(eq(attempts.jobId, sql.placeholder("job")), eq(attempts.attempt, sql.placeholder("attempt")))),
);

const endOfRun = statement((db) =>
  db
    .select({ status: runs.status, cause: runs.failureCause, outcome: reports.outcome, completedAt: runs.completedAt })
    .from(runs)
    .leftJoin(reports, eq(reports.runId, runs.id))
    .where(eq(runs.id, sql.placeholder("run"))),
);

export type Metrics = ReturnType<typeof createMetrics>;

/** Metrics in the Prometheus text format. `workers` null: agents run on this machine. */
export function createMetrics(ctx: Context, workers: WorkerExecutor | null) {
  const registry = new (loadPromClient().Registry)();
  return {
    registry,
    counters: addCounters(registry),
    readGauges: addGauges(registry, ctx, workers),
    /** By the router's template of a route, its template in the OpenAPI document. */
    routes: new Map<string, string>(),
  };
}

/** Counts runs whose end is on disk. Unfinished runs are ignored. */
export function countEndedRuns({ db }: Context, { counters }: Metrics, runIds: string[]): void {
  for (const run of runIds) {
    const { status, outcome, cause, completedAt } = endOfRun(db).get({ run }) ?? {};
    if (status && completedAt) counters.runs.inc({ status, outcome: outcome ?? "", cause: cause ?? "" });
  }
}

/** Counts an attempt whose end is on disk, and its run if the run ended too. */
export function countAttempt(ctx: Context, metrics: Metrics, { id, kind, subject, attempt }: Lease): void {
  const { counters } = metrics;
  const row = attemptOfJob(ctx.db).get({ job: id, attempt });
  if (!row?.outcome || row.completedAt === null) return;
  counters.attempts.observe({ kind, outcome: row.outcome }, secondsIn(row.completedAt - row.startedAt));
  if (attempt === 1) counters.waits.observe({ kind }, secondsIn(row.startedAt - row.createdAt));
  if (kind === "run") countEndedRuns(ctx, metrics, [subject]);
}

/** Counts a response. `path`: the router's template, such as `/runs/:runId`; empty if none matched. */
export function countResponse(
  { counters, routes }: Metrics,
  method: string,
  path: string,
  status: number,
  ms: number,
): void {
  const route = routes.get(path) ?? path.replace(/:(\w+)/g, "{$1}");
  routes.set(path, route);
  counters.responses.inc({ method: methods.has(method) ? method : "other", route, status });
  counters.seconds.observe({ route }, ms / 1000);
}

/** Measures the delay of the event loop until the timer is cleared. */
export function measureDelays({ counters }: Metrics) {
  let due = performance.now() + delayEveryMs;
  return setInterval(() => {
    counters.delays.observe(secondsIn(performance.now() - due));
    due = performance.now() + delayEveryMs;
  }, delayEveryMs);
}

/** Responds to `GET /metrics`, and with 404 to everything else. */
export async function respondToScrape({ registry, readGauges }: Metrics, { method, url }: Request): Promise<Response> {
  const isScrape = new URL(url).pathname === "/metrics" && (method === "GET" || method === "HEAD");
  if (!isScrape) return new Response("Not found. The metrics are at /metrics.\n", { status: 404 });
  readGauges();
  return new Response(await registry.metrics(), { headers: { "content-type": registry.contentType } });
}

/** The result is never negative. After a correction of the clock, it would be. */
const secondsIn = (ms: number): number => Math.max(0, ms) / 1000;
