import { type Static, type TObject, type TSchema, Type } from "@sinclair/typebox";
import { outcomes } from "../agents/agent.ts";
import { RunFailure } from "../agents/remedies.ts";
import { reportStatuses } from "../db/tables/reports.ts";
import { triggers } from "../db/tables/runs.ts";
import { frictionCategories, scopes, severities } from "../grading/kinds.ts";
import { Id, Nullable, OneOf, Time, Url } from "../schema.ts";

const Text = Type.String();
const Count = Type.Integer({ minimum: 0 });
const score = Nullable(Type.Number({ description: "0 to 100; null: not measured" }));

const prompt = Type.Object({ id: Id, title: Nullable(Text) });
const run = Type.Object({ id: Id, url: Url, evalRequestId: Id, agent: Text, model: Nullable(Text), requestedAt: Time });
const report = Type.Object({
  slug: Text,
  url: Url,
  status: OneOf(reportStatuses),
  outcome: OneOf(outcomes),
  score,
  scope: OneOf(scopes, "What the score is of; scores of different scopes can't be compared"),
  grade: Nullable(Text),
});
/** What can need attention, apart from scores. */
const problemKinds = [
  "runs_failed",
  "destination_failing",
  "budget_spent",
  "runs_waiting",
  "runs_paused",
  "worker_away",
  "schedule_paused",
  "basis_changed",
  "calibration_worse",
  "false_alarms",
  "all_schedules_paused",
  "secrets_unreadable",
  "backup_failing",
  "check_failed",
] as const;
const reportLink = Type.Object({ slug: Text, url: Url });
const frictionPoint = Type.Object({
  fingerprint: Type.String({ description: "Identifies the friction point across runs" }),
  severity: OneOf(severities),
  category: OneOf(frictionCategories),
  title: Text,
  pageUrl: Nullable(Type.String({ description: "Page of the docs; null: none" })),
  lostPoints: Nullable(Type.Number({ description: "Points of the score that it cost in this run; null: unknown" })),
});
const friction = Type.Object({ friction: frictionPoint, prompt, report: reportLink });
const evaluationStatus = OneOf(["completed", "failed", "superseded"], "completed if at least one run has a report");

const examplePrompt = { id: "0199f3a1-5d7c-7b1e-9c55-3f6a2f0d8e11", title: "Upload a file" };
const exampleReportLink = {
  slug: "upload-a-file-9f3c01ab",
  url: "https://evald.example.com/reports/upload-a-file-9f3c01ab",
};
const exampleRun = {
  id: "0199f3a2-11b0-7c64-8a0e-5b1d3a9f7c20",
  url: "https://evald.example.com/runs/0199f3a2-11b0-7c64-8a0e-5b1d3a9f7c20",
  evalRequestId: "0199f3a2-11ae-7d10-b5c2-8e4f6a7b9c01",
  agent: "llm",
  model: "anthropic/claude-opus-4-8",
  requestedAt: "2026-11-21T09:30:00.000Z",
};
const exampleReport = {
  ...exampleReportLink,
  status: "published" as const,
  outcome: "succeeded" as const,
  score: 84.2,
  scope: "goal" as const,
  grade: "B",
};
const exampleFriction = {
  friction: {
    fingerprint: "5d2c1f0a9b8e7d6c",
    severity: "high" as const,
    category: "dead_link" as const,
    title: "Dead link on Quickstart: /reference/client (404)",
    pageUrl: "https://docs.example.com/quickstart",
    lostPoints: 4.1,
  },
  prompt: examplePrompt,
  report: exampleReportLink,
};

const event = <T extends TSchema>(description: string, data: T, example: Static<T>) => ({ description, data, example });

/** Every type of event, with the schema of its data. */
export const events = {
  "run.completed": event(
    "A run ended with a report",
    Type.Object({ run, prompt, report, keyFinding: Nullable(Text) }),
    { run: exampleRun, prompt: examplePrompt, report: exampleReport, keyFinding: "6 of 41 links on the way are dead." },
  ),
  "run.failed": event(
    "A run ended without a report, or was cancelled",
    Type.Object({ run, prompt, failure: RunFailure }),
    {
      run: exampleRun,
      prompt: examplePrompt,
      failure: {
        code: "address_not_allowed",
        cause: "infrastructure",
        title: "Address not allowed",
        detail: "10.0.0.8 is a private address; the operator can allow private addresses with EVALD_ALLOW_PRIVATE.",
        subject: "10.0.0.8:8080",
        remedy: "Add the address to this setting, after a comma if it has a value, and restart the service.",
        command: "EVALD_ALLOW_PRIVATE=10.0.0.8:8080",
        action: {
          label: "How to allow an address",
          url: "https://evald.example.com/docs/configuration#allow-private-networks",
        },
        runAgainHelps: false,
      },
    },
  ),
  "gate.decided": event(
    "A gate passed, failed or was inconclusive",
    Type.Object({
      gate: Type.Object({
        id: Id,
        url: Url,
        status: OneOf(["passed", "failed", "error"]),
        reason: Text,
        minScore: Nullable(Type.Number()),
        spentUsd: Nullable(Type.Number({ description: "null: unknown" })),
        requestedAt: Time,
      }),
      prompts: Type.Array(prompt),
    }),
    {
      gate: {
        id: "0199f3a4-2b1c-7e00-9d3f-1a2b3c4d5e6f",
        url: "https://evald.example.com/gates/0199f3a4-2b1c-7e00-9d3f-1a2b3c4d5e6f",
        status: "failed",
        reason: "the score fell from 84.2 to 71.0",
        minScore: null,
        spentUsd: 1.27,
        requestedAt: "2026-11-21T09:30:00.000Z",
      },
      prompts: [examplePrompt],
    },
  ),
  "evaluation.completed": event(
    "All runs of an evaluation ended",
    Type.Object({
      evaluation: Type.Object({
        id: Id,
        url: Url,
        trigger: OneOf(triggers),
        status: evaluationStatus,
        requestedAt: Time,
        runs: Type.Object({ completed: Count, failed: Count, superseded: Count }),
      }),
      prompt,
      reports: Type.Array(report),
    }),
    {
      evaluation: {
        id: exampleRun.evalRequestId,
        url: `https://evald.example.com/evaluations/${exampleRun.evalRequestId}`,
        trigger: "schedule",
        status: "completed",
        requestedAt: "2026-11-21T09:30:00.000Z",
        runs: { completed: 1, failed: 0, superseded: 0 },
      },
      prompt: examplePrompt,
      reports: [exampleReport],
    },
  ),
  "friction.opened": event(
    "A published report shows a friction point of the live docs for the first time",
    friction,
    exampleFriction,
  ),
  "friction.regressed": event("A friction point that was fixed is back", friction, exampleFriction),
  "score.changed": event(
    "The scores of a prompt rose or fell by more than chance",
    Type.Object({
      prompt,
      verdict: OneOf(["improved", "regressed"]),
      delta: Type.Number({ description: "Difference of the mean scores, in points" }),
      before: reportLink,
      after: reportLink,
    }),
    {
      prompt: examplePrompt,
      verdict: "regressed",
      delta: -13.2,
      before: { ...exampleReportLink, slug: "upload-a-file-1c2d3e4f" },
      after: exampleReportLink,
    },
  ),
  "budget.reached": event(
    "The monthly model budget is spent. Runs with a model fail until it is raised or the month ends",
    Type.Object({ spentUsd: Type.Number(), maxUsdAMonth: Type.Number(), from: Time, until: Time }),
    { spentUsd: 50.12, maxUsdAMonth: 50, from: "2026-11-01T00:00:00.000Z", until: "2026-12-01T00:00:00.000Z" },
  ),
  "schedule.missed": event(
    "Scheduled evaluations of a prompt did not run because the service was down",
    Type.Object({ prompt, missed: Count, from: Time, until: Time }),
    { prompt: examplePrompt, missed: 3, from: "2026-11-20T06:00:00.000Z", until: "2026-11-20T18:00:00.000Z" },
  ),
  "digest.weekly": event(
    "The week of an organization: changes and problems as on Home, friction that regressed, and what to fix first. Sent on Mondays at 8:00 in its time zone",
    Type.Object({
      from: Time,
      until: Time,
      runs: Type.Object({ completed: Count, failed: Count }),
      scores: Type.Array(
        Type.Object({
          prompt,
          verdict: OneOf(["improved", "regressed"]),
          delta: Type.Number(),
          after: reportLink,
          cause: Nullable(Type.String({ description: "The friction that explains most of it" })),
          whyUrl: Type.String({ format: "uri", description: "Page that explains it" }),
        }),
      ),
      problems: Type.Array(
        Type.Object({
          kind: OneOf(problemKinds),
          subject: Nullable(Type.String({ description: "Prompt, destination, budget, agent or worker" })),
          promptId: Nullable(Id),
          since: Time,
        }),
        { description: "What needs attention besides scores, worst first" },
      ),
      regressed: Type.Array(Type.Object({ ...frictionPoint.properties, promptIds: Type.Array(Id) })),
      fixFirst: Type.Array(
        Type.Object({ title: Text, action: Text, pageUrl: Nullable(Text), prompt, report: reportLink }),
      ),
    }),
    {
      from: "2026-11-16T08:00:00.000Z",
      until: "2026-11-23T08:00:00.000Z",
      runs: { completed: 42, failed: 1 },
      scores: [
        {
          prompt: examplePrompt,
          verdict: "regressed",
          delta: -13.2,
          after: exampleReportLink,
          cause: exampleFriction.friction.title,
          whyUrl: `https://evald.example.com/prompts/${examplePrompt.id}/why`,
        },
      ],
      problems: [
        {
          kind: "schedule_paused",
          subject: "Upload a file",
          promptId: examplePrompt.id,
          since: "2026-11-20T06:00:00.000Z",
        },
      ],
      regressed: [{ ...exampleFriction.friction, promptIds: [examplePrompt.id] }],
      fixFirst: [
        {
          title: "Fix 6 dead links on Quickstart",
          action: "Point the links to /reference/clients.",
          pageUrl: "https://docs.example.com/quickstart",
          prompt: examplePrompt,
          report: exampleReportLink,
        },
      ],
    },
  ),
  "destination.test": event(
    "Someone tested the destination. Sent to every destination, regardless of its subscriptions",
    Type.Object({ destination: Type.Object({ id: Id, name: Text }) }),
    { destination: { id: "0199f3a5-7a3e-7c11-8b2d-4f5e6d7c8b9a", name: "CI" } },
  ),
} satisfies Record<string, { description: string; data: TObject; example: object }>;

export type EventType = keyof typeof events;
export type EventData<T extends EventType = EventType> = Static<(typeof events)[T]["data"]>;

export const eventTypes = Object.keys(events) as EventType[];
/** The types of event that a destination can subscribe to. */
export const subscribableTypes = eventTypes.filter((type) => type !== "destination.test");

/** What a webhook receives. */
export const payloadOf = ({ type, createdAt, data }: { type: string; createdAt: number; data: object }) =>
  JSON.stringify({ type, timestamp: new Date(createdAt).toISOString(), data });

/** Shortens a text to at most `maxLength` characters, for events and messages. It never cuts a surrogate pair in half. */
export const cut = (text: string, maxLength: number): string =>
  text.length <= maxLength ? text : `${text.slice(0, maxLength - 1).replace(/[\ud800-\udbff]$/, "")}…`;
