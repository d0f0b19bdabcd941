import { Type } from "@sinclair/typebox";
import type { Context } from "../context.ts";
import {
  pageArguments,
  pageResult,
  readOnly,
  type Tool,
  tool,
  toPage,
  toResultPage,
  Undescribed,
} from "../mcp/tool.ts";
import { getPromptRow, getPromptWarnings } from "../prompts/prompts.ts";
import { Id, OneOf } from "../schema.ts";
import { describeEstimate, getEstimate } from "./estimates.ts";
import { listEvalRequests, waitForEval } from "./evals.ts";
import { requestEval } from "./requests.ts";
import { EvalRequest, evalStatuses, IdempotencyKey, RunRequest } from "./schema.ts";

const { urlMap, templateArgs } = RunRequest.properties;
/** `result` is not described in detail, since every word of the tool list costs tokens in every conversation. */
const BriefRuns = Type.Array(Type.Object({ ...EvalRequest.properties.runs.items.properties, agent: Undescribed }));
const BriefEvalRequest = Type.Object({
  ...EvalRequest.properties,
  runs: BriefRuns,
  agents: Type.Array(Undescribed),
  result: Type.Object({}, { description: "Of the first agent, with medians and detectable change" }),
});

export const runTools = (ctx: Context): Tool[] => [
  tool({
    name: "request_eval",
    title: "Run an evaluation",
    description:
      "Run a prompt: agents attempt its task, and each session is graded. Takes time, and costs money if a model is used. Set urlMap to a preview to evaluate docs that are not live yet. Returns before the reports exist: pass waitSeconds or poll list_eval_requests, then call get_report. Pass idempotencyKey to make retries safe.",
    input: Type.Object({
      promptId: Type.String({ description: "From list_prompts" }),
      urlMap: Type.Optional(urlMap),
      templateArgs,
      agent: Type.Optional(Type.String()),
      model: Type.Optional(Type.String({ description: "provider/model" })),
      runs: Type.Optional(
        Type.Integer({
          minimum: 1,
          maximum: 50,
          description:
            "Runs with each agent; default: the prompt's runsPerEval. A verdict of compare_reports needs 4 per side",
        }),
      ),
      idempotencyKey: Type.Optional(
        IdempotencyKey("Repeating the call with the same key within 24 hours returns the same evaluation"),
      ),
      waitSeconds: Type.Optional(
        Type.Integer({ minimum: 0, maximum: 50, default: 0, description: "Seconds to wait for the runs to end" }),
      ),
    }),
    output: Type.Object({
      evalRequestId: Id,
      status: EvalRequest.properties.status,
      runs: BriefRuns,
      estimate: Type.String({ description: "Estimated duration and cost of a run" }),
      warnings: Type.Array(Type.String()),
    }),
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: true },
    streams: true,
    async run(
      { promptId, urlMap = {}, templateArgs, agent, model, runs, idempotencyKey, waitSeconds = 0 },
      { caller, signal, progress },
    ) {
      const estimate = describeEstimate(getEstimate(ctx, caller.org, promptId, { agent, model }));
      const { evalRequestId, runIds } = await requestEval(ctx, caller.org, promptId, {
        urlMap,
        templateArgs,
        agent,
        model,
        runs: runs ?? null,
        idempotencyKey,
        trigger: "mcp",
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
      return { evalRequestId, status, runs: request.runs, estimate, warnings };
    },
  }),
  tool({
    name: "list_eval_requests",
    title: "List evaluations",
    description: "List evaluations, newest first, with the status of their runs and the slugs of their reports.",
    input: Type.Object({
      promptId: Type.Optional(Type.String({ description: "From list_prompts" })),
      status: Type.Optional(OneOf(evalStatuses)),
      ...pageArguments,
    }),
    output: Type.Object({ evalRequests: Type.Array(BriefEvalRequest), ...pageResult }),
    annotations: readOnly,
    run({ promptId, status, limit, offset }, { caller }) {
      if (promptId !== undefined) getPromptRow(ctx, caller.org, promptId);
      const page = toPage({ limit, offset });
      return toResultPage("evalRequests", listEvalRequests(ctx, caller.org, { promptId, status }, page), offset);
    },
  }),
];
