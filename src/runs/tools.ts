import { type Static, Type } from "@sinclair/typebox";
import { siteHosts } from "../agents/site/host-rules.ts";
import type { Context } from "../context.ts";
import { oneLine } from "../grading/text.ts";
import { toRequester } from "../http/caller.ts";
import {
  pageArguments,
  pageResult,
  promptIdArgument,
  readOnly,
  type Tool,
  tool,
  toPage,
  toResultPage,
  Undescribed,
} from "../mcp/tool.ts";
import { readPromptId } from "../prompts/names.ts";
import { getPromptRow, getPromptWarnings } from "../prompts/prompts.ts";
import { Id, mapOf, Nullable, OneOf } from "../schema.ts";
import { cancelRun } from "./endings.ts";
import { describeEstimate, getEstimate } from "./estimates.ts";
import { getEvalRequest, listEvalRequests, waitForEval } from "./evals.ts";
import { requestEval } from "./requests.ts";
import { getRun } from "./runs.ts";
import { EvalRequest, evalStatuses, IdempotencyKey, Run, RunRequest } from "./schema.ts";

const { urlMap, templateArgs } = RunRequest.properties;
/** The sites of a RunRequest, in fewer words. */
const sites = Type.Optional(
  mapOf(Type.Object({ archiveId: Id, host: Type.Optional(OneOf(siteHosts)) }), {
    maxProperties: 1,
    description: "Built docs in place of the live ones: their URL, with an archive uploaded as kind=site",
  }),
);
const { runId, status, statusUrl, runUrl, report, failureReason } = EvalRequest.properties.runs.items.properties;
const { slug, score, grade, outcome } = report.anyOf[0].properties;
const RequestedRuns = Type.Array(Type.Object({ runId, status, statusUrl, runUrl }));
const ListedRuns = Type.Array(
  Type.Object({ runId, status, report: Nullable(Type.Object({ slug, score, grade, outcome })), failureReason }),
);

type Runs = EvalRequest["runs"];
/** An evaluation with more runs shows less of each run, so that all of them fit into a result. */
const maxDetailedRuns = 10;
const maxReasonChars = 120;

const toRequestedRuns = (runs: Runs): Static<typeof RequestedRuns> =>
  runs.length <= maxDetailedRuns
    ? runs
    : runs.map(({ runId, status, statusUrl, runUrl }) => ({ runId, status, statusUrl, runUrl }));

const toListedRuns = (runs: Runs): Static<typeof ListedRuns> =>
  runs.length <= maxDetailedRuns
    ? runs
    : runs.map(({ runId, status, report, failureReason }) => ({
        runId,
        status,
        report,
        failureReason: failureReason === null ? null : oneLine(failureReason, maxReasonChars),
      }));

/** `agents` and `result` are not described in detail, because every word of the tool list costs tokens in every conversation. */
const BriefEvalRequest = Type.Object({
  ...EvalRequest.properties,
  runs: ListedRuns,
  agents: Type.Array(Undescribed),
  result: Type.Object({}, { description: "Of the first agent, with medians and detectable change" }),
});

export const runTools = (ctx: Context): Tool[] => [
  tool({
    name: "request_eval",
    title: "Run an evaluation",
    description:
      "Run a prompt: agents attempt its task, and each session is graded. Takes time, and money if a model is used. For docs that are not live yet, set urlMap to a preview, or sites to a build. Returns before the reports exist: pass waitSeconds or poll list_eval_requests with evalRequestId, then call get_report.",
    input: Type.Object({
      promptId: promptIdArgument,
      urlMap: Type.Optional(urlMap),
      sites,
      templateArgs,
      agent: Type.Optional(Type.String()),
      model: Type.Optional(Type.String({ description: "provider/model" })),
      runs: Type.Optional(
        Type.Integer({
          minimum: 1,
          maximum: 50,
          description: "Runs with each agent; default: the prompt's runsPerEval. A verdict needs 4 per side",
        }),
      ),
      idempotencyKey: Type.Optional(
        IdempotencyKey("For safe retries: the same key within 24 hours returns the same evaluation"),
      ),
      waitSeconds: Type.Optional(
        Type.Integer({ minimum: 0, maximum: 50, default: 0, description: "Seconds to wait for the runs to end" }),
      ),
    }),
    output: Type.Object({
      evalRequestId: Id,
      status: EvalRequest.properties.status,
      runs: RequestedRuns,
      estimate: Type.String(),
      warnings: Type.Array(Type.String()),
    }),
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: true },
    streams: true,
    async run(
      { promptId: name, urlMap = {}, sites, templateArgs, agent, model, runs, idempotencyKey, waitSeconds = 0 },
      { caller, signal, progress },
    ) {
      const promptId = readPromptId(ctx, caller.org, name);
      const estimate = describeEstimate(getEstimate(ctx, caller.org, promptId, { agent, model }));
      const { evalRequestId, runIds } = await requestEval(ctx, caller.org, promptId, {
        urlMap,
        sites,
        templateArgs,
        agent,
        model,
        runs: runs ?? null,
        idempotencyKey,
        trigger: "mcp",
        requester: toRequester(caller),
      });
      const total = runIds.length;
      progress(0, total, `queued ${total === 1 ? "1 run" : `${total} runs`}`);
      const request = await waitForEval(ctx, caller.org, evalRequestId, {
        seconds: waitSeconds,
        signal,
        onEnded: (ended) => progress(ended, total, `${ended} of ${total} runs finished`),
      });
      const { status } = request;
      const warnings = getPromptWarnings(ctx, caller.org, promptId, total);
      return { evalRequestId, status, runs: toRequestedRuns(request.runs), estimate, warnings };
    },
  }),
  tool({
    name: "list_eval_requests",
    title: "List evaluations",
    description: "List evaluations, newest first, with the status of their runs and the slugs of their reports.",
    input: Type.Object({
      evalRequestId: Type.Optional(Type.String({ description: "Only this one" })),
      promptId: Type.Optional(promptIdArgument),
      status: Type.Optional(OneOf(evalStatuses)),
      ...pageArguments,
    }),
    output: Type.Object({ evalRequests: Type.Array(BriefEvalRequest), ...pageResult }),
    annotations: readOnly,
    run({ evalRequestId, promptId: name, status, limit, offset }, { caller: { org } }) {
      const promptId = name === undefined ? undefined : getPromptRow(ctx, org, readPromptId(ctx, org, name)).id;
      const id = evalRequestId === undefined ? undefined : getEvalRequest(ctx, org, evalRequestId).id;
      const page = toPage({ limit, offset });
      const { items, total } = listEvalRequests(ctx, org, { id, promptId, status }, page);
      const brief = items.map((item) => ({ ...item, runs: toListedRuns(item.runs) }));
      return toResultPage("evalRequests", { items: brief, total }, offset);
    },
  }),
];

/** Tools for keys that may change things. */
export const runEditTools = (ctx: Context): Tool[] => [
  tool({
    name: "cancel_run",
    title: "Cancel a run",
    description: "Cancel an unfinished run. It fails without a report, and what it cost so far is not refunded.",
    input: Type.Object({ runId: Type.String({ description: "From request_eval or list_eval_requests" }) }),
    output: Type.Pick(Run, ["runId", "status", "failureReason", "completedAt"]),
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: false },
    scope: "run",
    async run({ runId }, { caller: { org, name } }) {
      await cancelRun(ctx, org, runId, `the API key ${JSON.stringify(name)}`);
      const run = getRun(ctx, org, runId);
      return { runId: run.runId, status: run.status, failureReason: run.failureReason, completedAt: run.completedAt };
    },
  }),
];
