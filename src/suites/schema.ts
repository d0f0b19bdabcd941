import { type Static, Type } from "@sinclair/typebox";
import { Limits } from "../config/limits.ts";
import { standings } from "../matrix/schema.ts";
import { PromptAgents } from "../prompts/agent-schema.ts";
import { DeclaredCheck } from "../prompts/check-schema.ts";
import { textOf } from "../prompts/workspace-schema.ts";
import { Id, mapOf, Nullable, OneOf, shape } from "../schema.ts";
import { Interval } from "../stats/repeats.ts";

const nameShape = shape("^[a-z][a-z0-9-]{0,49}$", "1 to 50 lowercase letters, digits and hyphens");
const id = Type.String(nameShape);
const version = Type.Integer({ minimum: 1 });
const slot = Type.String(nameShape);
const slotExample = {
  slot: "upload",
  title: "Upload",
  text: "Upload a file with {{product}}.",
  endGoal: null,
  declaredChecks: [],
};
const checks = Type.Array(DeclaredCheck, { maxItems: 50 });

const SuiteSlot = Type.Object(
  {
    slot,
    title: textOf(200, "Title; {{name}} is a variable"),
    text: textOf(10_000, "Task; {{name}} is a variable"),
    endGoal: Nullable(textOf(10_000, "What must be true")),
    declaredChecks: checks,
  },
  { title: "SuiteSlot" },
);

export const Suite = Type.Object(
  {
    id,
    version,
    title: textOf(200, "Title"),
    slots: Type.Array(SuiteSlot, { minItems: 1, maxItems: 20 }),
    limits: Nullable(Limits),
    agents: Nullable(PromptAgents),
  },
  {
    title: "Suite",
    description: "Tasks that several products get in the same words. A version never changes",
    examples: [{ id: "storage", version: 1, title: "Storage", slots: [slotExample], limits: null, agents: null }],
  },
);
export type Suite = Static<typeof Suite>;

export const SuiteProduct = Type.Object(
  {
    providerId: Id,
    values: mapOf(Type.String({ minLength: 1, maxLength: 2000 }), { maxProperties: 50 }),
    checks: Type.Optional(mapOf(checks, { maxProperties: 20, description: "Further checks by slot" })),
  },
  { title: "SuiteProduct" },
);
export type SuiteProduct = Static<typeof SuiteProduct>;

export const SuiteRun = Type.Object(
  {
    providerIds: Type.Optional(Type.Array(Id, { minItems: 1, maxItems: 50, uniqueItems: true })),
    runs: Type.Optional(Type.Integer({ minimum: 1, maximum: 50, description: "Runs per prompt; default 1" })),
    agent: Type.Optional(Type.String({ maxLength: 100 })),
    model: Type.Optional(Type.String({ maxLength: 200 })),
  },
  { title: "SuiteRun" },
);
export type SuiteRun = Static<typeof SuiteRun>;

export const StartedSuite = Type.Object(
  { evalRequestIds: Type.Array(Id), runs: Type.Integer() },
  { title: "StartedSuite" },
);
export type StartedSuite = Static<typeof StartedSuite>;

const slotStates = ["judged", "not_judged", "no_runs", "changed", "missing"] as const;

const SlotResult = Type.Object(
  {
    slot,
    promptId: Nullable(Id),
    state: OneOf(slotStates, "not_judged: without a check; changed: the prompt differs from the suite"),
    judged: Type.Integer({ description: "Runs" }),
    reached: Type.Integer({ description: "Runs" }),
    friction: Nullable(Type.Number({ description: "Friction points per report" })),
  },
  { title: "SlotResult" },
);
export type SlotResult = Static<typeof SlotResult>;

const ProductResult = Type.Object(
  {
    agent: Type.String(),
    model: Nullable(Type.String()),
    providerId: Id,
    product: Type.String(),
    slots: Type.Array(SlotResult),
    share: Nullable(Interval),
    costUsd: Nullable(Interval),
    seconds: Nullable(Interval),
    standing: Nullable(OneOf(standings, "Among products with the same agent; tied: not distinguishable")),
  },
  {
    title: "ProductResult",
    description:
      "share: of judged runs that reached their slot (Wilson); costUsd, seconds: medians to the first success",
  },
);
export type ProductResult = Static<typeof ProductResult>;

export const SuiteComparison = Type.Object(
  {
    suiteId: id,
    version,
    slots: Type.Array(slot),
    products: Type.Array(ProductResult),
    changed: Type.Array(Type.String(), { description: "Titles of prompts that differ from the suite, not compared" }),
  },
  {
    title: "SuiteComparison",
    examples: [{ suiteId: "baseline", version: 1, slots: ["discover"], products: [], changed: [] }],
  },
);
export type SuiteComparison = Static<typeof SuiteComparison>;
