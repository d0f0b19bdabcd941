import { type Static, Type } from "@sinclair/typebox";
import { Nullable, OneOf } from "../schema.ts";
import { EvalResult, Interval } from "../stats/repeats.ts";
import { EndsEvidence } from "./ends.ts";

export const alpha = 0.05;

const verdicts = [
  "not_comparable",
  "insufficient_data",
  "regressed",
  "improved",
  "soft_regression",
  "soft_improvement",
  "no_change",
  "inconclusive",
] as const;
export type Verdict = (typeof verdicts)[number];

const Change = Type.Object(
  {
    name: Type.String(),
    before: Type.Number({ description: "Mean" }),
    after: Type.Number(),
    delta: Interval,
    p: Type.Number(),
    pHolm: Type.Number({ description: "Adjusted for the number of rows" }),
  },
  { title: "Change" },
);

export const Evidence = Type.Object(
  {
    reason: Type.String(),
    method: Nullable(Type.String()),
    level: Type.Number({ description: "p below which a change is significant" }),
    seed: Nullable(Type.Integer({ description: "Seed of the random splits; null if all splits were used" })),
    sides: Type.Array(EvalResult),
    score: Nullable(
      Type.Object({
        before: Type.Number({ description: "Mean" }),
        after: Type.Number(),
        without: Type.Array(Type.String(), {
          description: "Dimensions that are left out; the score of a side has them",
        }),
      }),
    ),
    delta: Nullable(Interval),
    p: Nullable(Type.Number()),
    smallestP: Nullable(Type.Number({ description: "Smallest possible p" })),
    successP: Nullable(Type.Number({ description: "Two-sided p of the success rates" })),
    withinP: Nullable(Type.Number({ description: "p within prompts, even if the prompts disagree" })),
    ends: Nullable(EndsEvidence),
    causes: Type.Array(OneOf(["score", "success", "unfinished"]), { description: "What caused a regression" }),
    dimensions: Type.Array(Change),
    metrics: Type.Array(Change),
  },
  { title: "ComparisonEvidence" },
);
export type Evidence = Static<typeof Evidence>;
export const NullableVerdict = Nullable(OneOf(verdicts, "Verdict for the later side; null unless both have repeats"));

/** For an untested comparison: why it was not tested. */
export const noEvidence = (reason: string): Evidence => ({
  reason,
  method: null,
  level: alpha,
  seed: null,
  sides: [],
  score: null,
  delta: null,
  p: null,
  smallestP: null,
  successP: null,
  withinP: null,
  ends: null,
  causes: [],
  dimensions: [],
  metrics: [],
});
