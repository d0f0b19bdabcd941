import type { reports } from "../db/tables.ts";
import type { OrgId } from "../deps.ts";
import type { Scope } from "../grading/grade.ts";
import { type Baselines, isAlike } from "../reports/baseline.ts";
import { comparedScope } from "../reports/differences.ts";
import { toIso } from "../schema.ts";
import { minRuns } from "../stats/power.ts";
import type { Compare, Comparison } from "./compare.ts";

/** Newest published reports of a prompt on the live docs that are looked at. */
const looked = 60;
const maxPoints = 20;
const maxKept = 2_000;

/** An evaluation of a prompt: the mean score of its runs. */
export type ScorePoint = { evalRequestId: string; slug: string; score: number; runs: number; at: string };

/** How a prompt stands: its newest report, the evaluations of the same agent, model and methodology, oldest first, and what became of it since the one before. */
export type Latest = {
  slug: string;
  score: number | null;
  scope: Scope;
  grade: string | null;
  outcome: (typeof reports.$inferSelect)["outcome"];
  at: string;
  points: ScorePoint[];
  /** Of the last of `points` against the one before; null: there are not runs enough to compare. */
  change: { verdict: NonNullable<Comparison["verdict"]>; delta: number } | null;
};

/** The scores of prompts as they stand now. */
export function createLatest({ rows }: Pick<Baselines, "rows">, { compareEvals }: Pick<Compare, "compareEvals">) {
  /** What was found, by the evaluations and how many of their runs count: comparing takes long, and does not change. */
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
    /** null: the prompt has no published report of the live docs. */
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
