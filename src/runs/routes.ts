import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { Context } from "../context.ts";
import { mayStillRead, orgOf, requesterOf, usesCompatibilityMode } from "../http/caller.ts";
import { jsonBody } from "../http/elysia.ts";
import { streamResponse } from "../http/event-stream.ts";
import { header } from "../http/openapi.ts";
import { errors, listOf, operation } from "../http/operation.ts";
import { listResponse, pageOf, pageQuery } from "../http/paging.ts";
import { toOutputResponse } from "../reports/artifacts.ts";
import { runUrls } from "../reports/links.ts";
import { OneOf, PathId, toIso } from "../schema.ts";
import { cancelRun } from "./endings.ts";
import { Estimate } from "./estimate-schema.ts";
import { getEstimate } from "./estimates.ts";
import { getEvalRequest, listEvalRequests } from "./evals.ts";
import { followRun, formatPosition, parsePosition } from "./follow.ts";
import { type AcceptedEval, requestEval, requestRerun, sourceOf } from "./requests.ts";
import { getAttempt, getRun, listAttempts, listRuns, withGradeOfBar } from "./runs.ts";
import {
  Attempt,
  EvalRequest,
  evalStatuses,
  IdempotencyKey,
  Run,
  RunRequest,
  RunResponse,
  runsQuery,
} from "./schema.ts";

const idempotencyHeaders = Type.Object({
  "idempotency-key": Type.Optional(
    IdempotencyKey(
      "1 to 255 visible ASCII characters. Repeating a request with the same key within 24 hours returns the same run; using the key for a different request is a conflict.",
    ),
  ),
});

const runPath = Type.Object({ runId: PathId("ID of the run") });

const streamEndId = "end";

/** A run as its caller gets it. Clients that were not written for evald have keys in compatibility mode. */
const toCallerRun = (request: Request, run: Run): Run => (usesCompatibilityMode(request) ? withGradeOfBar(run) : run);

/**
 * The progress of a run as messages. There is an `event` for each event of its session, a `run` whenever the run itself changes, and an `end` at the
 * end.
 */
async function* toMessages(request: Request, progress: ReturnType<typeof followRun>) {
  for await (const { run, events, position, isOver, hasRunChanged } of progress) {
    if (!mayStillRead(request)) return;
    for (const event of events) {
      const data = JSON.stringify({ ...event, at: toIso(event.at) });
      yield { event: "event", id: formatPosition({ ...position, seq: event.seq }), data };
    }
    if (hasRunChanged)
      yield { event: "run", id: formatPosition(position), data: JSON.stringify(toCallerRun(request, run)) };
    const { runId, status } = run;
    if (isOver) yield { event: "end", id: streamEndId, data: JSON.stringify({ runId, status }) };
  }
}

const followResponses = {
  200: {
    description: "Stream of server-sent events",
    headers: { "X-Accel-Buffering": header("Unbuffered") },
    content: { "text/event-stream": { schema: { type: "string" } } },
  },
  204: { description: "The stream has ended; do not reconnect" },
  ...errors(404, 429),
};

const followOperation = operation("Runs", "followRun", "Stream the events of a run", followResponses, {
  description:
    "Server-sent events: `event` for each event of the session, as in a trace, `run` with the run whenever its status changes, and one `end` as the last message, when the run has ended and all its events were sent. Each attempt has its own events: without `attempt`, the stream follows the newest one. With Last-Event-ID it resumes after that message; without, it starts at the first event.",
});

function toRunResponse(baseUrl: string, { evalRequestId, runIds }: AcceptedEval) {
  const runs = runIds.map((runId) => ({ runId, ...runUrls(baseUrl, runId) }));
  return { ...(runs[0] as (typeof runs)[number]), ...(runs.length > 1 && { evalRequestId, runs }) };
}

/** Starts and cancels runs. */
const requestRoutes = (ctx: Context) =>
  new Elysia({ name: "run requests" })
    .post(
      "/api/v1/prompts/:promptId/run",
      async ({ request, params, headers, body }) => {
        const accepted = await requestEval(ctx, orgOf(request, "run"), params.promptId, {
          ...body,
          supersede: body.supersede ?? ((prompt) => prompt.supersedesByDefault || usesCompatibilityMode(request)),
          idempotencyKey: headers["idempotency-key"],
          ...sourceOf(request),
        });
        return toRunResponse(ctx.baseUrl(), accepted);
      },
      {
        headers: idempotencyHeaders,
        params: Type.Object({ promptId: PathId("ID of the prompt") }),
        ...jsonBody(RunRequest),
        ...operation(
          "Runs",
          "runPrompt",
          "Trigger a run of a prompt",
          { 200: RunResponse, ...errors(400, 404, 409, 413) },
          {
            description: "Once accepted, a run survives restarts. Poll its status at statusUrl.",
          },
        ),
      },
    )
    .post(
      "/api/v1/runs/:runId/cancel",
      async ({ request, params }) => {
        await cancelRun(ctx, orgOf(request, "run"), params.runId, requesterOf(request));
        return toCallerRun(request, getRun(ctx, orgOf(request, "run"), params.runId));
      },
      {
        params: runPath,
        ...operation(
          "Runs",
          "cancelRun",
          "Cancel a run",
          { 200: Run, ...errors(404, 409) },
          {
            description:
              "A session in progress stops within a second. The run becomes failed, and failureReason says who cancelled it.",
          },
        ),
      },
    )
    .post(
      "/api/v1/runs/:runId/rerun",
      async ({ request, params, headers }) => {
        const accepted = await requestRerun(ctx, orgOf(request, "run"), params.runId, {
          ...sourceOf(request),
          idempotencyKey: headers["idempotency-key"],
        });
        return toRunResponse(ctx.baseUrl(), accepted);
      },
      {
        headers: idempotencyHeaders,
        params: runPath,
        ...operation(
          "Runs",
          "rerun",
          "Retry a run",
          { 200: RunResponse, ...errors(400, 404, 409) },
          {
            description:
              "Starts a new run of the prompt in its current version, with the same urlMap, edits and templateArgs.",
          },
        ),
      },
    );

/** Lists and shows runs. */
const readRoutes = (ctx: Context) =>
  new Elysia({ name: "run reads" })
    .get(
      "/api/v1/runs",
      ({ request, query, set }) => {
        const { promptId, reportStatus } = query;
        const { items, total } = listRuns(ctx, orgOf(request), { promptId, reportStatus }, pageOf(query));
        return listResponse(set, { items: items.map((run) => toCallerRun(request, run)), total });
      },
      {
        query: Type.Object(runsQuery),
        ...operation("Runs", "listRuns", "List runs, newest first", {
          200: listOf(Run, "Runs, newest first"),
          ...errors(400),
        }),
      },
    )
    .get(
      "/api/v1/runs/:runId",
      ({ request, params }) => toCallerRun(request, getRun(ctx, orgOf(request), params.runId)),
      {
        params: runPath,
        ...operation("Runs", "getRun", "Get a run, with its report once it is completed", {
          200: Run,
          ...errors(404),
        }),
      },
    )
    .get(
      "/api/v1/runs/:runId/events",
      ({ request, params, query, headers }) => {
        const { runId } = getRun(ctx, orgOf(request), params.runId);
        const { attempt, follow } = query;
        if (attempt !== undefined) getAttempt(ctx, orgOf(request), runId, attempt);
        const lastId = headers["last-event-id"] ?? null;
        // Clients don't reconnect after this response.
        if (lastId === streamEndId) return new Response(null, { status: 204 });
        const org = orgOf(request);
        return streamResponse(ctx, org, (closeSignal) =>
          toMessages(
            request,
            followRun(ctx, org, runId, closeSignal, {
              after: parsePosition(lastId),
              ofAttempt: attempt,
              isOnce: follow === "false",
            }),
          ),
        );
      },
      {
        headers: Type.Object({
          "last-event-id": Type.Optional(Type.String({ description: "ID of the last message received" })),
        }),
        params: runPath,
        query: Type.Object({
          attempt: Type.Optional(
            Type.Integer({ minimum: 1, description: "Only the events of this attempt, from GET …/attempts" }),
          ),
          follow: Type.Optional(OneOf(["true", "false"], "false: end after the events so far")),
        }),
        ...followOperation,
      },
    )
    .get("/api/v1/runs/:runId/attempts", ({ request, params }) => listAttempts(ctx, orgOf(request), params.runId), {
      params: runPath,
      ...operation("Runs", "listAttempts", "List the attempts of a run, oldest first", {
        200: Type.Array(Attempt, { description: "Attempts, oldest first" }),
        ...errors(404),
      }),
    });

const outputResponses = {
  200: { description: "Lines of text or JSON", content: { "application/x-ndjson": { schema: { type: "string" } } } },
  ...errors(404),
};

const outputOperation = operation("Runs", "getAgentOutput", "Download the output of a coding agent", outputResponses, {
  description:
    "What the agent printed to stdout, or the messages of the Agent Client Protocol, one per line, without secrets. The first line names the agent and the format. `evald agent replay` turns it into events. It is deleted together with the session events.",
});

/** The output that coding agents printed. */
const outputRoutes = (ctx: Context) =>
  new Elysia({ name: "agent output" }).get(
    "/api/v1/runs/:runId/output",
    ({ request, params, query }) => {
      const { runId, attempt: lastAttempt } = getRun(ctx, orgOf(request), params.runId);
      return toOutputResponse(ctx, orgOf(request), { runId, attempt: query.attempt ?? lastAttempt });
    },
    {
      params: runPath,
      query: Type.Object({
        attempt: Type.Optional(
          Type.Integer({ minimum: 1, description: "An attempt, from GET …/attempts. Default: the last one" }),
        ),
      }),
      ...outputOperation,
    },
  );

/** Evaluations: runs of one prompt that were requested together. */
const evalRoutes = (ctx: Context) =>
  new Elysia({ name: "evaluations" })
    .get(
      "/api/v1/eval-requests",
      ({ request, query, set }) => {
        const { promptId, status } = query;
        return listResponse(set, listEvalRequests(ctx, orgOf(request), { promptId, status }, pageOf(query, 20)));
      },
      {
        query: Type.Object({
          promptId: Type.Optional(Type.String({ format: "uuid", description: "Only evaluations of this prompt" })),
          status: Type.Optional(OneOf(evalStatuses)),
          ...pageQuery,
          limit: Type.Optional(
            Type.Integer({ minimum: 1, maximum: 100, default: 20, description: "Maximum number of items to return" }),
          ),
        }),
        ...operation("Runs", "listEvalRequests", "List evaluations with their runs and results, newest first", {
          200: listOf(EvalRequest, "Evaluations, newest first"),
          ...errors(400),
        }),
      },
    )
    .get("/api/v1/eval-requests/:id", ({ request, params }) => getEvalRequest(ctx, orgOf(request), params.id), {
      params: Type.Object({ id: PathId("ID of the evaluation") }),
      ...operation("Runs", "getEvalRequest", "Get an evaluation with its runs and results", {
        200: EvalRequest,
        ...errors(404),
      }),
    });

/** Estimates of what runs will cost. */
const estimateRoutes = (ctx: Context) =>
  new Elysia({ name: "estimates" }).get(
    "/api/v1/prompts/:promptId/estimate",
    ({ request, params }) => getEstimate(ctx, orgOf(request), params.promptId),
    {
      params: Type.Object({ promptId: PathId("ID of the prompt") }),
      ...operation("Prompts", "getEstimate", "Estimate the duration and cost of a run", {
        200: Estimate,
        ...errors(404),
      }),
    },
  );

export const runRoutes = (ctx: Context) =>
  new Elysia({ name: "runs" })
    .use(requestRoutes(ctx))
    .use(readRoutes(ctx))
    .use(outputRoutes(ctx))
    .use(evalRoutes(ctx))
    .use(estimateRoutes(ctx));
