import { type Static, Type } from "@sinclair/typebox";
import type { StoredGrade } from "../db/tables/reports.ts";
import { Nullable } from "../schema.ts";
import { mean, pooledVariance, variance } from "../stats/estimates.ts";
import { round } from "../stats/repeats.ts";

const Share = (description: string) => Nullable(Type.Number({ minimum: 0, maximum: 1, description }));
const Count = Type.Integer({ minimum: 0 });

/** How much one judge varies on one session. Differences between runs have no influence. */
export const JudgeVariance = Type.Object(
  {
    judge: Type.String(),
    hash: Type.String({ description: "Methodology of all these gradings" }),
    n: Type.Integer({ minimum: 2, description: "How often the session was judged" }),
    score: Nullable(Type.Object({ mean: Type.Number(), sd: Type.Number() })),
    agreement: Share("Share of pairs of judgments that agree on a part, averaged over the parts"),
    parts: Type.Array(
      Type.Object({
        text: Type.String(),
        yes: Count,
        no: Count,
        unclear: Count,
        agreement: Share("Agreement on this part"),
      }),
    ),
  },
  { title: "JudgeVariance" },
);
export type JudgeVariance = Static<typeof JudgeVariance>;

/** How much each judge of a session varies. The hash of a methodology includes the judge. A single grading has no variance. */
export function judgeVariancesOf(rows: { hash: string; grade: StoredGrade }[]): JudgeVariance[] {
  const groups = Map.groupBy(
    rows.filter(({ grade }) => grade.judge !== null),
    ({ hash }) => hash,
  );
  return [...groups].flatMap(([hash, group]) => {
    const judges = group.flatMap(({ grade }) => grade.judge ?? []);
    const [first] = judges;
    if (!first || judges.length < 2) return [];
    const scores = group.flatMap(({ grade }) => grade.score ?? []);
    const parts = first.parts.map(({ text }, i) => {
      const answers = judges.map((judge) => judge.parts[i]?.met ?? "unclear");
      const count = (met: string) => answers.filter((each) => each === met).length;
      const counts = { yes: count("yes"), no: count("no"), unclear: count("unclear") };
      return { text, ...counts, agreement: round(agreement(Object.values(counts)), 3) };
    });
    return {
      judge: first.model,
      hash,
      n: judges.length,
      score: scores.length < 2 ? null : { mean: round(mean(scores), 1), sd: round(Math.sqrt(variance(scores)), 2) },
      agreement: parts.length === 0 ? null : round(mean(parts.map((part) => part.agreement)), 3),
      parts,
    };
  });
}

/** The share of pairs of raters that agree on one subject (J. L. Fleiss, Psychological Bulletin 76 (1971) 378–382, equation 2). */
function agreement(counts: number[]): number {
  const raters = counts.reduce((sum, count) => sum + count, 0);
  const agreeingPairs = counts.reduce((sum, count) => sum + count * (count - 1), 0);
  return agreeingPairs / (raters * (raters - 1));
}

/** Scores that one judge gave to one run, and the evaluation that the run is a repeat of. */
type JudgedRun = { evalRequestId: string; scores: number[] };

/** The variance caused by the judge, and the variance caused by the runs. */
export const VarianceSplit = Type.Object(
  {
    sessions: Type.Integer({ description: "Sessions that were judged more than once" }),
    judgeSd: Nullable(
      Type.Number({ description: "Pooled standard deviation of the score of a session over its judgments" }),
    ),
    runSd: Nullable(
      Type.Number({
        description: "Pooled standard deviation of the score over the runs of an evaluation, without the judge's share",
      }),
    ),
  },
  { title: "VarianceSplit" },
);
type VarianceSplit = Static<typeof VarianceSplit>;

/**
 * Splits the variance of scores by a one-way analysis with random effects. Within sessions, it is σ²(judge). Between the means of sessions, it is
 * σ²(run) + σ²(judge) / k. See S. R. Searle, G. Casella, C. E. McCulloch, Variance Components (1992), chapter 3.
 */
export function splitVariance(sessions: JudgedRun[]): VarianceSplit {
  const repeated = sessions.filter(({ scores }) => scores.length >= 2);
  const within = pooledVariance(repeated.map(({ scores }) => scores));
  const evaluations = [...Map.groupBy(repeated, ({ evalRequestId }) => evalRequestId).values()];
  const between = pooledVariance(evaluations.map((runs) => runs.map(({ scores }) => mean(scores))));
  const meanInverseRepeats = mean(repeated.map(({ scores }) => 1 / scores.length));
  return {
    sessions: repeated.length,
    judgeSd: within === null ? null : round(Math.sqrt(within), 2),
    runSd:
      within === null || between === null
        ? null
        : round(Math.sqrt(Math.max(0, between - within * meanInverseRepeats)), 2),
  };
}
