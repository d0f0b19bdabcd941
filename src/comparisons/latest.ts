import type { reports } from "../db/tables.ts";
import type { OrgId } from "../deps.ts";
import type { Scope } from "../grading/grade.ts";
import { type Baselines, isAlike } from "../reports/baseline.ts";
import { comparedScope } from "../reports/differences.ts";
import { toIso } from "../schema.ts";
import { minRuns } from "../stats/power.ts";
import type { Compare, Comparison } from "./compare.ts";

/** Maximum number of the newest published live reports of a prompt to read. */
const looked = 60;
const maxPoints = 20;
const maxKept = 2_000;

/** An evaluation of a prompt: the mean score of its runs. */
export type ScorePoint = { evalRequestId: string; slug: string; score: number; runs: number; at: string };

/**
 * The current state of a prompt: its newest report, the evaluations with the same agent, model and methodology, oldest
 * first, and the change since the previous one.
 */
export type Latest = {
  slug: string;
  score: number | null;
  scope: Scope;
  grade: string | null;
  outcome: (typeof reports.$inferSelect)["outcome"];
  at: string;
  points: ScorePoint[];
  /** The verdict on the last of `points` against the one before; null: not enough runs. */
  change: { verdict: NonNullable<Comparison["verdict"]>; delta: number } | null;
};

/** The current scores of prompts. */
export function createLatest({ rows }: Pick<Baselines, "rows">, { compareEvals }: Pick<Compare, "compareEvals">) {
  /** Cached results, by the evaluations and how many of their runs count: comparing is slow, and the result never changes. */
  const kept = new Map<string, Latest["change"]>();

  function changeOf(org: OrgId, before: ScorePoint | undefined, after: ScorePoint | undefined): Latest["change"] {
    if (!before || !after || Math.min(before.runs, after.runs) < minRuns) return null;
    const key = [before, after].map(({ evalRequestId, runs }) => `${evalRequestId} ${runs}`).join(" ");
    const known = kept.get(key);
    if (known !== undefined) return known;
    const { verdict, evidence } = compareEvals(org, { evalRequestIds: [before.evalRequestId] }, [after.evalRequestId]);
    const found: Latest["change"] = verdict && { verdict, delta: evidence.delta?.value ?? 0 };
    if (kept.size >= maxKept) kept.clear();
    kept.set(key, found);
    return found;
  }

  return {
    /** null: the prompt has no published live report. */
    findLatest(org: OrgId, promptId: string): Latest | null {
      const found = rows.seen(org, promptId, looked, { limit: looked });
      const [last] = found;
      if (!last) return null;
      const sameKind = found.filter((run) =>
        isAlike(run, { ...last, scope: comparedScope({ scope: last.scope, judge: last.methodology.judge }) }),
      );
      const points = [...Map.groupBy(sameKind, ({ evalRequestId }) => evalRequestId)].flatMap(
        ([evalRequestId, all]) => {
          const scored = all.flatMap(({ score }) => score ?? []);
          const [newest] = all;
          if (!newest || scored.length === 0) return [];
          const score = scored.reduce((sum, each) => sum + each, 0) / scored.length;
          const { slug, createdAt } = newest;
          return { evalRequestId, slug, score, runs: scored.length, at: toIso(createdAt) };
        },
      );
      const shown = points.slice(0, maxPoints).reverse();
      const { slug, score, scope, grade, outcome, createdAt } = last;
      return {
        slug,
        score,
        scope,
        grade,
        outcome,
        at: toIso(createdAt),
        points: shown,
        change: changeOf(org, shown.at(-2), shown.at(-1)),
      };
    },
  };
}
