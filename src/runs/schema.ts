import { type Static, Type } from "@sinclair/typebox";
import { outcomes } from "../agents/agent.ts";
import { RunFailure } from "../agents/remedies.ts";
import { siteHosts } from "../agents/site/host-rules.ts";
import { attemptOutcomes } from "../db/tables/jobs.ts";
import { reportStatuses } from "../db/tables/reports.ts";
import { runStatuses, triggers, waitingReasons } from "../db/tables/runs.ts";
import { standardMethodology } from "../grading/methodology.ts";
import { pageQuery } from "../http/paging.ts";
import { Edits } from "../net/edits.ts";
import { PromptSummary, promptExample, SuccessBar } from "../prompts/schema.ts";
import { RunAgent, RunReport } from "../reports/schema.ts";
import { Id, MappedUrl, mapOf, maxMappedHosts, Nullable, OneOf, shape, Time, Url } from "../schema.ts";
import { EvalResult } from "../stats/repeats.ts";

/** Why the agent of an active run has not started. */
const WaitingFor = Type.Object(
  {
    what: OneOf(
      waitingReasons,
      "worker: no connected worker has all of the following; slot: every worker that has is busy; budget: active runs have reserved the rest of it; paused_organization, paused_agent: until an operator resumes the organization or the agent",
    ),
    agent: Type.String(),
    sandbox: Type.Boolean({ description: "Whether the run needs a sandbox" }),
    labels: Type.Array(Type.String(), { description: "Worker labels of its prompt" }),
    failsAt: Nullable(
      Type.String({ format: "date-time", description: "When the run fails; null: it waits without limit" }),
    ),
  },
  { title: "WaitingFor", description: "What an active run waits for before its agent starts" },
);

export const runExample = {
  runId: "0199f3a2-11b0-7c64-8a0e-5b1d3a9f7c20",
  status: "completed",
  report: {
    slug: "upload-a-file-7f3a91c2",
    url: "https://evald.example.com/reports/upload-a-file-7f3a91c2",
    score: 84.5,
    grade: null,
    metrics: {
      time: "1.4s",
      timeDetail: "1.4 s from the first event to the last",
      errors: 1,
      errorsDetail: "1 failed request",
      toolCalls: 9,
      toolCallsDetail: "fetch_page 4, search_docs 3, check_links 2",
      cost: "$0.00",
      costDetail: "No model was used",
      interruptions: 0,
      timeSeconds: 1.4,
      costUsd: 0,
    },
    dimensions: [
      {
        name: "Docs quality",
        weight: "15%",
        score: 82,
        grade: "B-",
        desc: "Links (100%): 82 of 100, because 82% of the links tested or followed lead to a page.",
        parts: [],
        unmeasured: ["Pages"],
      },
    ],
    status: "published",
    outcome: "not_judged",
    scope: "docs_only",
    evidence: null,
    nullNotice: "Goal not tested",
    keyFinding: "The page for the goal was found after 3 pages.",
    verdict: "Easy to find; two samples do not parse.",
    summary: { whatWorked: "llms.txt led to the page.", whatDidnt: "Two samples do not parse." },
    coverage: 0.45,
    methodology: { id: standardMethodology.id, hash: "3f9c0a17", judge: null },
    passedBar: null,
  },
  statusUrl: "https://evald.example.com/api/v1/runs/0199f3a2-11b0-7c64-8a0e-5b1d3a9f7c20",
  runUrl: "https://evald.example.com/runs/0199f3a2-11b0-7c64-8a0e-5b1d3a9f7c20",
  completedAt: "2026-11-21T09:31:02.000Z",
  createdAt: "2026-11-21T09:31:00.000Z",
  failureReason: null,
  failure: null,
  templateArgs: { language: "Python" },
  prompt: promptExample,
  agent: { id: "explorer", version: "1.0.0", model: null, contextDigest: null },
  evalRequestId: "0199f3a2-11b0-7c64-8a0e-5b1d3a9f7c1f",
  startedAt: "2026-11-21T09:31:00.100Z",
  attempt: 1,
  waitingFor: null,
};

export const Run = Type.Object(
  {
    runId: Id,
    status: OneOf(runStatuses, "completed, failed and superseded are final; a completed run always has a report"),
    // It has no title, because clients read its properties here without following a reference.
    report: Nullable(
      Type.Object({
        ...RunReport.properties,
        outcome: OneOf(outcomes, "succeeded as well if the goal was not tested and the score passed passedBar"),
        passedBar: Nullable(
          Type.Object(SuccessBar.properties, {
            description: "The successBar of the prompt, if it decided the outcome; null: the goal did",
          }),
        ),
      }),
    ),
    statusUrl: Type.String({ format: "uri", description: "URL to poll" }),
    runUrl: Type.String({ format: "uri", description: "URL of the run's page" }),
    completedAt: Nullable(Time),
    createdAt: Time,
    failureReason: Nullable(
      Type.String({
        description:
          "Cause (timeout, budget, credentials, infrastructure, agent_crashed or cancelled), a colon and a sentence",
      }),
    ),
    failure: Nullable(RunFailure),
    templateArgs: Type.Optional(
      Nullable(
        mapOf(Type.String(), {
          description: "Stored and returned unchanged; do not put secrets here",
        }),
      ),
    ),
    prompt: PromptSummary,
    agent: RunAgent,
    evalRequestId: Id,
    startedAt: Nullable(Time),
    attempt: Type.Integer({
      minimum: 0,
      description: "Number of the last attempt, as in GET …/attempts: how often the run was started; 0: not yet",
    }),
    waitingFor: Nullable(WaitingFor),
  },
  { title: "Run", examples: [runExample] },
);
export type Run = Static<typeof Run>;

const OptionalName = (description: string) => Type.Optional(Type.String({ maxLength: 200, description }));

const RequestedSite = Type.Object(
  {
    archiveId: Type.String({ format: "uuid", description: "An archive that was uploaded with kind=site" }),
    host: Type.Optional(
      OneOf(
        siteHosts,
        "Whose rules for URLs and redirects apply. Default: those that its files name, such as _redirects, else plain",
      ),
    ),
  },
  { title: "RequestedSite" },
);

export const RunRequest = Type.Object(
  {
    urlMap: mapOf(MappedUrl, {
      maxProperties: maxMappedHosts,
      description: "Host names or origins, each with the URL that replaces it in this run; {} for none",
    }),
    sites: Type.Optional(
      mapOf(RequestedSite, {
        maxProperties: 1,
        description:
          "A built docs site that the run reads in place of the live one, under the URL that it is published at, such as https://docs.example.com/latest/",
      }),
    ),
    edits: Type.Optional(Edits),
    templateArgs: Type.Optional(
      mapOf(Type.String({ maxLength: 2000 }), {
        maxProperties: 1000,
        description: "A value for each template variable of the prompt",
      }),
    ),
    agent: OptionalName("Agent, such as codex; default: the prompt's"),
    model: OptionalName("Model, such as openai/gpt-5; default: the prompt's"),
    supersede: Type.Optional(
      Type.Boolean({
        description:
          "Mark unfinished runs of the same prompt whose urlMap replaces the same hosts as superseded, such as for a newer commit of the same preview. Default: true if the prompt says so in supersedesByDefault, or for API keys in compatibility mode; otherwise false",
      }),
    ),
  },
  {
    title: "RunRequest",
    examples: [
      { urlMap: { "docs.example.com": "https://preview-42.example.com" }, templateArgs: { language: "Python" } },
    ],
  },
);
export type RunRequest = Static<typeof RunRequest>;

const runResponseExample = { runId: runExample.runId, statusUrl: runExample.statusUrl, runUrl: runExample.runUrl };

export const RunResponse = Type.Object(
  {
    runId: Id,
    statusUrl: Url,
    runUrl: Url,
    evalRequestId: Type.Optional(Id),
    runs: Type.Optional(
      Type.Array(Type.Object({ runId: Id, statusUrl: Url, runUrl: Url }), {
        description: "If the prompt names several agents: one run with each, in their order",
      }),
    ),
  },
  {
    title: "RunResponse",
    examples: [runResponseExample],
  },
);
export type RunResponse = Static<typeof RunResponse>;

/** 1 to 255 visible ASCII characters. */
export const idempotencyKeyShape = "^[\\x21-\\x7e]{1,255}$";
export const IdempotencyKey = (description: string) =>
  Type.String({ ...shape(idempotencyKeyShape, "1 to 255 visible ASCII characters"), description });

/** The statuses of an evaluation. They are the same as the statuses of runs. */
export const evalStatuses = runStatuses;
export type EvalStatus = (typeof evalStatuses)[number];

export const EvalRequest = Type.Object(
  {
    id: Id,
    prompt: Type.Object({ id: Id, title: Nullable(Type.String()) }),
    trigger: OneOf(triggers),
    status: OneOf(evalStatuses, "completed, failed and superseded are final"),
    requestedAt: Time,
    runs: Type.Array(
      Type.Object({
        runId: Id,
        status: OneOf(runStatuses),
        agent: RunAgent,
        statusUrl: Url,
        runUrl: Url,
        report: Nullable(
          Type.Object({
            slug: Type.String({ description: "Pass it to get_report" }),
            score: Nullable(Type.Number()),
            grade: Nullable(Type.String()),
            scope: RunReport.properties.scope,
            outcome: OneOf(outcomes),
          }),
        ),
        failureReason: Nullable(Type.String()),
        failure: Nullable(RunFailure),
      }),
    ),
    result: Type.Object(EvalResult.properties, {
      description: "The result of the first agent, if the prompt names several",
    }),
    agents: Type.Array(Type.Object({ agent: RunAgent, result: EvalResult }), {
      description: "The result of each agent; runs of different agents are never combined",
    }),
  },
  { title: "EvalRequest" },
);
export type EvalRequest = Static<typeof EvalRequest>;

export const Attempt = Type.Object(
  {
    attempt: Type.Integer({
      minimum: 1,
      description: "Number of the attempt, from 1; restarts of the service and infrastructure faults count too",
    }),
    startedAt: Time,
    completedAt: Nullable(Time),
    outcome: Nullable(
      OneOf(
        attemptOutcomes,
        "done: produced a report; failed: will not be retried; retried: will be retried; released: interrupted by a shutdown; lost: its process died; cancelled: cancelled by a user",
      ),
    ),
    reason: Nullable(Type.String({ description: "Why it produced no report" })),
    costUsd: Nullable(Type.Number({ description: "Model cost of this attempt in USD; null: unknown" })),
    hasOutput: Type.Boolean({ description: "Whether what its coding agent printed is stored" }),
  },
  {
    title: "Attempt",
    examples: [
      {
        attempt: 1,
        startedAt: "2026-11-21T09:31:00.100Z",
        completedAt: "2026-11-21T09:31:02.000Z",
        outcome: "done",
        reason: null,
        costUsd: 0,
        hasOutput: false,
      },
    ],
  },
);
export type Attempt = Static<typeof Attempt>;

export const Spending = Type.Object(
  {
    from: Type.String({ format: "date-time", description: "Start of the month in the organization's time zone" }),
    until: Time,
    spentUsd: Type.Number({
      description: "Model calls of agents and judges this month, also of failed runs, lost attempts and regrades",
    }),
    estimatedUsd: Type.Number({ description: "The part of spentUsd that is an estimate" }),
    expectedUsd: Nullable(
      Type.Number({ description: "For the whole month at the pace so far; null on the first day" }),
    ),
    reservedUsd: Type.Number({ description: "Reserved for active runs" }),
    unpricedCalls: Type.Integer({
      description: "Model calls of unknown cost, of which spentUsd includes an estimate, if there is one",
    }),
    maxUsdAMonth: Nullable(Type.Number()),
    maxUsdARun: Nullable(Type.Number()),
  },
  {
    title: "Spending",
    examples: [
      {
        from: "2026-11-01T00:00:00.000Z",
        until: "2026-12-01T00:00:00.000Z",
        spentUsd: 12.41,
        estimatedUsd: 0,
        expectedUsd: 24.82,
        reservedUsd: 2.25,
        unpricedCalls: 0,
        maxUsdAMonth: 50,
        maxUsdARun: 2,
      },
    ],
  },
);
export type Spending = Static<typeof Spending>;

export const runsQuery = {
  promptId: Type.Optional(Type.String({ format: "uuid", description: "Only runs of this prompt" })),
  reportStatus: Type.Optional(OneOf(reportStatuses, "Only runs whose report has this status")),
  ...pageQuery,
};
