import { type Static, Type } from "@sinclair/typebox";
import { Spending } from "../runs/schema.ts";
import { Id, Nullable, shape, Time } from "../schema.ts";

/** What spending is broken down by. */
export const breakdownNames = ["prompt", "agent", "model", "purpose", "requester", "trigger", "day"] as const;
export type BreakdownName = (typeof breakdownNames)[number];

const SpendingRow = Type.Object(
  {
    key: Type.String({ description: "ID, name or date; other: the sum of all rows after the first 100" }),
    name: Type.String(),
    spentUsd: Type.Number(),
    estimatedUsd: Type.Number({ description: "The part of spentUsd that is an estimate" }),
    previousUsd: Type.Number({ description: "In the whole month before; of a day: on the same day of it" }),
  },
  { title: "SpendingRow" },
);
export type SpendingRow = Static<typeof SpendingRow>;

const rowsBy = (description: string) => Type.Array(SpendingRow, { description });

const Breakdown = Type.Object(
  {
    prompt: rowsBy("Most expensive first, like all but days"),
    agent: rowsBy("Judges count for the agent whose session they judged"),
    model: rowsBy("By the model that was called"),
    purpose: rowsBy("agent: calls of agents; judge: calls of judges"),
    requester: rowsBy("By person, API key or trust of CI jobs; schedule, operator and regrade have neither"),
    trigger: rowsBy("manual: web and command line; api: REST and MCP"),
    day: rowsBy("In the organization's time zone, oldest first"),
  } satisfies Record<BreakdownName, unknown>,
  { title: "SpendingBreakdown", description: "Each list adds up to spentUsd" },
);

const FailedRuns = Type.Object(
  {
    runs: Type.Integer({ description: "Failed runs that cost money, of those requested in the month" }),
    spentUsd: Type.Number(),
    mostExpensive: Type.Array(
      Type.Object({
        runId: Id,
        prompt: Type.Object({ id: Id, title: Type.String() }),
        agent: Type.String(),
        cause: Type.String(),
        spentUsd: Type.Number(),
        createdAt: Time,
      }),
      { description: "At most 10" },
    ),
  },
  { title: "SpendingOnFailedRuns" },
);

const Range = Type.Object({ low: Type.Number(), expected: Type.Number(), high: Type.Number() }, { title: "UsdRange" });

const Forecast = Type.Object(
  {
    scheduledUsd: Range,
    monthUsd: Range,
    evaluations: Type.Integer(),
    runs: Type.Integer(),
    unknownRuns: Type.Integer({ description: "Runs that are left out because no earlier run has a cost" }),
  },
  {
    title: "SpendingForecast",
    description:
      "scheduledUsd: runs that schedules will request this month, at the mean, lowest and highest cost of the last 20 runs of their prompt and agent. monthUsd: with what is spent",
  },
);
export type Forecast = Static<typeof Forecast>;

export const Budget = Type.Object(
  {
    id: Id,
    promptId: Nullable(Id),
    tag: Nullable(Type.String()),
    name: Type.String({ description: "Title of the prompt, or the tag" }),
    maxUsdAMonth: Type.Number(),
    spentUsd: Type.Number(),
    reservedUsd: Type.Number({ description: "Reserved for active runs" }),
  },
  { title: "Budget", description: "Budget per month of a prompt, or of all prompts with a tag" },
);
export type Budget = Static<typeof Budget>;

export const BudgetInput = Type.Object(
  {
    promptId: Type.Optional(Type.String({ format: "uuid" })),
    tag: Type.Optional(Type.String({ minLength: 1, maxLength: 50 })),
    maxUsdAMonth: Nullable(Type.Number({ exclusiveMinimum: 0, maximum: 1_000_000, description: "null: no budget" })),
  },
  { title: "BudgetInput", examples: [{ tag: "billing", maxUsdAMonth: 20 }] },
);
export type BudgetInput = Static<typeof BudgetInput>;

export const SpendingReport = Type.Object(
  {
    ...Spending.properties,
    previous: Type.Object(
      {
        from: Time,
        spentUsd: Type.Number(),
        sameTimeUsd: Type.Number({ description: "Until the same time of the month" }),
      },
      { description: "The month before" },
    ),
    breakdown: Breakdown,
    failedRuns: FailedRuns,
    forecast: Nullable(Forecast),
    budgets: Type.Array(Budget),
  },
  {
    title: "SpendingReport",
    description: "Model spending of one month. reservedUsd, expectedUsd and forecast are for the current month only",
  },
);
export type SpendingReport = Static<typeof SpendingReport>;

export const spendingQuery = {
  month: Type.Optional(
    Type.String({
      ...shape("^20\\d\\d-(0[1-9]|1[0-2])$", "a month such as 2026-11"),
      description: "Default: the current month in the organization's time zone",
    }),
  ),
};
