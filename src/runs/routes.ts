import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { errors, listOf, type OrgOf, operation } from "../api.ts";
import { jsonBody } from "../body.ts";
import { pageQuery } from "../paging.ts";
import { runUrls } from "../reports/reports.ts";
import { OneOf, PathId } from "../schema.ts";
import { streamAnswer } from "../web/live.ts";
import type { Endings } from "./endings.ts";
import type { Estimates } from "./estimates.ts";
import type { Evals } from "./evals.ts";
import { type Follow, placeWords, toPlace } from "./follow.ts";
import type { Requests } from "./requests.ts";
import type { Runs } from "./runs.ts";
import {
  Attempt,
  Estimate,
  EvalRequest,
  evalStatuses,
  idempotencyKeyShape,
  Run,
  RunRequest,
  RunResponse,
  runsQuery,
  Slot,
  Spending,
} from "./schema.ts";
import type { Slots } from "./slots.ts";
import type { Money } from "./spending.ts";

type Parts = {
  runs: Runs;
  evals: Evals;
  requests: Requests;
  endings: Endings;
  slots: Slots;
  money: Money;
  estimates: Estimates;
  follow: Follow;
  baseUrl: () => string;
  /** Who asks, for a person who reads it later. */
  nameOf: (request: Request) => string;
};

const IdempotencyKey = Type.String({
  pattern: idempotencyKeyShape,
  description:
    "1 to 255 visible ASCII characters. The same key within 24 hours answers with the same run; with another request it is refused.",
});

const idempotent = Type.Object({ "idempotency-key": Type.Optional(IdempotencyKey) });

const path = Type.Object({ runId: PathId("uuid of the run") });

const ended = "end";

/** The progress of a run as messages: `event` for each event of its session, `run` whenever the run itself has moved on. */
async function* toMessages(progress: ReturnType<Follow["follow"]>) {
  for await (const { run, events, place } of progress) {
    for (const event of events) {
      const data = JSON.stringify({ ...event, at: new Date(event.at).toISOString() });
      yield { event: "event", id: placeWords({ ...place, seq: event.seq }), data };
    }
    yield { event: "run", id: run.completedAt === null ? placeWords(place) : ended, data: JSON.stringify(run) };
  }
}

const followOperation = operation("Runs", "followRun", "Follow a run while it goes on", errors(404), {
  description:
    "Server-sent events: `event` for each event of the session, as in a trace; `run` with the run whenever it has moved on. The stream ends after the run has. Asked again with Last-Event-ID it goes on behind that message; without, it begins at the first event.",
});
Object.assign(followOperation.detail.responses, {
  200: {
    description: "Messages as they come",
    content: { "text/event-stream": { schema: { type: "string" } } },
  },
  204: { description: "All has been told" },
});

export const runRoutes = (
  { runs, evals, requests, endings, slots, money, estimates, follow, baseUrl, nameOf }: Parts,
  orgOf: OrgOf,
) =>
  new Elysia({ name: "runs" })
    .post(
      "/api/v1/prompts/:promptId/run",
      async ({ request, params, headers, body }) => {
        const { runIds } = await requests.requestEval(orgOf(request, "run"), params.promptId, {
          ...body,
          idempotencyKey: headers["idempotency-key"],
          trigger: "api",
        });
        const runId = runIds[0] as string;
        return { runId, ...runUrls(baseUrl(), runId) };
      },
      {
        headers: idempotent,
        params: Type.Object({ promptId: PathId("uuid of the prompt") }),
        ...jsonBody(RunRequest),
        ...operation(
          "Runs",
          "runPrompt",
          "Trigger a run of a prompt",
          { 200: RunResponse, ...errors(400, 404, 409, 413) },
          {
            description: "An accepted run is never lost. Follow it at statusUrl.",
          },
        ),
      },
    )
    .get(
      "/api/v1/prompts/:promptId/slots",
      ({ request, params, query, set }) => {
        const { limit = 100, offset } = query;
        const { items, total } = slots.listSlots(orgOf(request), params.promptId, { limit, offset: offset ?? 0 });
        set.headers["x-total-count"] = String(total);
        return items;
      },
      {
        params: Type.Object({ promptId: PathId("uuid of the prompt") }),
        query: Type.Object(pageQuery),
        ...operation("Prompts", "listSlots", "List what became of the slots of a prompt's schedule, newest first", {
          200: listOf(Slot, "Slots, newest first"),
          ...errors(400, 404),
        }),
      },
    )
    .get(
      "/api/v1/runs",
      ({ request, query, set }) => {
        const { promptId, reportStatus, limit = 100, offset } = query;
        const { items, total } = runs.listRuns(
          orgOf(request),
          { promptId, reportStatus },
          { limit, offset: offset ?? 0 },
        );
        set.headers["x-total-count"] = String(total);
        return items;
      },
      {
        query: Type.Object(runsQuery),
        ...operation("Runs", "listRuns", "List the runs of the organisation, newest first", {
          200: listOf(Run, "Runs, newest first"),
          ...errors(400),
        }),
      },
    )
    .get(
      "/api/v1/eval-requests",
      ({ request, query, set }) => {
        const { promptId, status, limit = 20, offset } = query;
        const page = { limit, offset: offset ?? 0 };
        const { items, total } = evals.listEvalRequests(orgOf(request), { promptId, status }, page);
        set.headers["x-total-count"] = String(total);
        return items;
      },
      {
        query: Type.Object({
          promptId: Type.Optional(Type.String({ format: "uuid", description: "Only evaluations of this prompt" })),
          status: Type.Optional(OneOf(evalStatuses)),
          ...pageQuery,
          limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: 20, description: "Rows at most" })),
        }),
        ...operation("Runs", "listEvalRequests", "List evaluations with their runs and results, newest first", {
          200: listOf(EvalRequest, "Eval requests, newest first"),
          ...errors(400),
        }),
      },
    )
    .get("/api/v1/eval-requests/:id", ({ request, params }) => evals.getEvalRequest(orgOf(request), params.id), {
      params: Type.Object({ id: PathId("uuid of the eval request") }),
      ...operation("Runs", "getEvalRequest", "Get one evaluation: its runs, and what they came to", {
        200: EvalRequest,
        ...errors(404),
      }),
    })
    .get("/api/v1/runs/:runId", ({ request, params }) => runs.getRun(orgOf(request), params.runId), {
      params: path,
      ...operation("Runs", "getRun", "Get the status of a run, and its report once it is completed", {
        200: Run,
        ...errors(404),
      }),
    })
    .post(
      "/api/v1/runs/:runId/cancel",
      async ({ request, params }) => {
        await endings.cancelRun(orgOf(request, "run"), params.runId, nameOf(request));
        return runs.getRun(orgOf(request, "run"), params.runId);
      },
      {
        params: path,
        ...operation(
          "Runs",
          "cancelRun",
          "End a run that has not ended, as failed",
          { 200: Run, ...errors(404, 409) },
          { description: "A session in progress stops within a second. failureReason says who cancelled." },
        ),
      },
    )
    .post(
      "/api/v1/runs/:runId/rerun",
      async ({ request, params, headers }) => {
        const { runIds } = await requests.requestAgain(
          orgOf(request, "run"),
          params.runId,
          "api",
          headers["idempotency-key"],
        );
        const runId = runIds[0] as string;
        return { runId, ...runUrls(baseUrl(), runId) };
      },
      {
        headers: idempotent,
        params: path,
        ...operation(
          "Runs",
          "rerun",
          "Run again what a run was about",
          { 200: RunResponse, ...errors(400, 404, 409) },
          { description: "A new run of the same prompt, as it is now, with the same urlMap and templateArgs." },
        ),
      },
    )
    .get(
      "/api/v1/runs/:runId/events",
      ({ request, params, headers }) => {
        const { runId } = runs.getRun(orgOf(request), params.runId);
        const last = headers["last-event-id"] ?? null;
        // What keeps a browser from asking again for what has ended.
        if (last === ended) return new Response(null, { status: 204 });
        return streamAnswer((gone) => toMessages(follow.follow(orgOf(request), runId, toPlace(last), gone)));
      },
      {
        headers: Type.Object({
          "last-event-id": Type.Optional(Type.String({ description: "id of the last message that was read" })),
        }),
        params: path,
        ...followOperation,
      },
    )
    .get("/api/v1/runs/:runId/attempts", ({ request, params }) => endings.listAttempts(orgOf(request), params.runId), {
      params: path,
      ...operation("Runs", "listAttempts", "List the times that a run was begun, oldest first", {
        200: Type.Array(Attempt, { description: "Attempts, oldest first" }),
        ...errors(404),
      }),
    })
    .get(
      "/api/v1/prompts/:promptId/estimate",
      ({ request, params }) => estimates.getEstimate(orgOf(request), params.promptId),
      {
        params: Type.Object({ promptId: PathId("uuid of the prompt") }),
        ...operation("Prompts", "getEstimate", "Tell how long a run of a prompt will take, and what it will cost", {
          200: Estimate,
          ...errors(404),
        }),
      },
    )
    .get("/api/v1/spending", ({ request }) => money.getSpending(orgOf(request)), {
      ...operation(
        "System",
        "getSpending",
        "Tell what models have cost the organisation this month, and what they may",
        {
          200: Spending,
          ...errors(),
        },
      ),
    });
