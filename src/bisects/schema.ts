import { type Static, Type } from "@sinclair/typebox";
import { bisectStatuses, bisectStopReasons } from "../db/tables/bisects.ts";
import { RunRequest, runExample } from "../runs/schema.ts";
import { Id, Nullable, notBlank, OneOf, Time, Url } from "../schema.ts";

const { templateArgs, agent, model } = RunRequest.properties;

const maxCommits = 1_000;
/** The placeholder for the commit in the URL of a build. */
export const placeholder = "{commit}";

export const BisectRequest = Type.Object(
  {
    promptId: Id,
    urlTemplate: Type.String({
      maxLength: 2000,
      description: "Address of the docs of a commit, with {commit} in it",
    }),
    commits: Type.Array(Type.String({ minLength: 1, maxLength: 100, ...notBlank }), {
      minItems: 2,
      maxItems: maxCommits,
      uniqueItems: true,
      description: "Oldest first: from one that is good to one that is bad",
    }),
    agent,
    model,
    templateArgs,
    budgetUsd: Type.Optional(Type.Number({ exclusiveMinimum: 0 })),
  },
  {
    title: "BisectRequest",
    examples: [
      {
        promptId: runExample.prompt.id,
        urlTemplate: "https://{commit}.preview.example.com",
        commits: ["a1b2c3d", "e4f5a6b", "c7d8e9f"],
      },
    ],
  },
);
export type BisectRequest = Static<typeof BisectRequest>;

/** A build that was compared with the good one. */
const BisectBuild = Type.Object({
  commit: Type.String(),
  scores: Type.Array(Type.Number()),
  changed: Nullable(Type.Number({ description: "Probability; null: skipped" })),
  skipped: Nullable(OneOf(["no_answer", "http_error", "runs_failed"])),
  evalRequestId: Nullable(Id),
});

export const Bisect = Type.Object(
  {
    id: Id,
    pageUrl: Url,
    promptId: Id,
    urlTemplate: Type.String(),
    commits: Type.Array(Type.String()),
    status: OneOf(bisectStatuses),
    stopReason: Nullable(OneOf(bisectStopReasons)),
    builds: Type.Array(BisectBuild, { description: "In the order of their first runs" }),
    posterior: Type.Array(Type.Number(), { description: "Of each commit to be the first with the change" }),
    result: Nullable(
      Type.Object(
        { commits: Type.Array(Type.String()), probability: Type.Number() },
        { description: "Several commits if builds between them are skipped" },
      ),
    ),
    progress: Type.Object({ ended: Type.Integer(), of: Type.Integer() }),
    budgetUsd: Nullable(Type.Number()),
    spentUsd: Nullable(Type.Number()),
    createdAt: Time,
    completedAt: Nullable(Time),
  },
  {
    title: "Bisect",
    examples: [
      {
        id: "0199f3a6-1c2d-7e3f-8a4b-5c6d7e8f9a0b",
        pageUrl: "https://evald.example.com/bisects/0199f3a6-1c2d-7e3f-8a4b-5c6d7e8f9a0b",
        promptId: runExample.prompt.id,
        urlTemplate: "https://{commit}.preview.example.com",
        commits: ["a1b2c3d", "e4f5a6b", "c7d8e9f"],
        status: "running",
        stopReason: null,
        builds: [],
        posterior: [0, 0.5, 0.5],
        result: null,
        progress: { ended: 0, of: 2 },
        budgetUsd: null,
        spentUsd: 0,
        createdAt: "2026-11-21T09:30:00.000Z",
        completedAt: null,
      },
    ],
  },
);
export type Bisect = Static<typeof Bisect>;
