import { type Static, Type } from "@sinclair/typebox";
import { RunReport, reportFilter } from "../reports/schema.ts";
import { Id, Nullable, OneOf, Time } from "../schema.ts";
import { Interval, Repeats } from "../stats/repeats.ts";
import { trendFilter } from "../trends/trends.ts";

export const standings = ["best", "tied", "behind", "too_few_runs", "not_comparable"] as const;
export type Standing = (typeof standings)[number];

export const matrixFilter = {
  tag: trendFilter.tag,
  promptId: reportFilter.promptId,
  evalRequestId: Type.Optional(
    Type.String({ format: "uuid", description: "Only the runs of this evaluation, also of previews" }),
  ),
  since: Type.Optional({ ...reportFilter.since, description: "Default: 30 days before until" }),
  until: reportFilter.until,
};
const MatrixFilter = Type.Object(matrixFilter);
export type MatrixFilter = Static<typeof MatrixFilter>;

const { n, infraFailures, score, successRate } = Repeats.properties;

const Cell = Type.Object(
  {
    n,
    infraFailures,
    score,
    successRate,
    seconds: Nullable(Interval),
    costUsd: Nullable(Interval),
    scope: Nullable(RunReport.properties.scope),
    methodology: Nullable(Type.String({ description: "Hash" })),
    agentVersion: Nullable(Type.String()),
    standing: Nullable(OneOf(standings, "Among the agents, by score; null without a score or another agent")),
  },
  { title: "MatrixCell" },
);
export type Cell = Static<typeof Cell>;

const MatrixAgent = Type.Object(
  {
    agent: Type.String(),
    model: Nullable(Type.String()),
    prompts: Type.Integer({ description: "Prompts with a score; each counts equally in results" }),
    otherPrompts: Type.Integer({ description: "Those with another scope or methodology, which don’t count" }),
    results: Cell,
  },
  { title: "MatrixAgent" },
);
export type MatrixAgent = Static<typeof MatrixAgent>;

const MatrixRow = Type.Object(
  {
    promptId: Id,
    title: Type.String(),
    cells: Type.Array(Nullable(Cell), { description: "In the order of agents; null: no runs" }),
  },
  { title: "MatrixRow" },
);

const MatrixPair = Type.Object(
  {
    agents: Type.Array(Type.Integer(), {
      minItems: 2,
      maxItems: 2,
      description: "Positions in agents; delta is the second minus the first",
    }),
    prompts: Type.Integer({ description: "Prompts with comparable scores of both" }),
    delta: Interval,
    p: Type.Number(),
    pHolm: Type.Number({ description: "Adjusted for the number of pairs" }),
  },
  { title: "MatrixPair" },
);
export type MatrixPair = Static<typeof MatrixPair>;

/** The results of agents on prompts, side by side. */
export const Matrix = Type.Object(
  {
    since: Nullable(Time),
    until: Nullable(Time),
    unfinished: Type.Integer({ description: "Unfinished runs of the evaluation" }),
    agents: Type.Array(MatrixAgent),
    pairs: Type.Array(MatrixPair, { description: "Agents compared prompt by prompt" }),
    prompts: Type.Array(MatrixRow, { description: "Newest first" }),
    total: Type.Integer({ description: "Prompts on all pages" }),
  },
  { title: "Matrix" },
);
export type Matrix = Static<typeof Matrix>;
