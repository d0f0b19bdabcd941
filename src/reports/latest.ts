import { and, desc, eq, sql } from "drizzle-orm";
import { reports, runs } from "../db/tables.ts";
import type { Deps, OrgId } from "../deps.ts";
import { minRuns } from "../grading/statspower.ts";
import type { Compare, Comparison } from "./compare.ts";

/** Newest published reports of a prompt that are looked at. */
const looked = 60;
const maxPoints = 20;
const maxKept = 2_000;

/** An evaluation of a prompt: the mean score of its runs. */
export type ScorePoint = { evalRequestId: string; slug: string; score: number; runs: number; at: string };

/** How a prompt stands: its newest report, the evaluations of the same agent, model and methodology, oldest first, and what became of it since the one before. */
export type Latest = {
  slug: string;
  score: number | null;
  grade: string | null;
  outcome: (typeof reports.$inferSelect)["outcome"];
  at: string;
  points: ScorePoint[];
  /** Of the last of `points` against the one before; null: there are not runs enough to compare. */
  change: { verdict: NonNullable<Comparison["verdict"]>; delta: number } | null;
};

const columns = {
  slug: reports.slug,
  score: reports.score,
  grade: reports.grade,
  outcome: reports.outcome,
  createdAt: reports.createdAt,
  method: sql<string>`json_extract(${reports.methodology}, '$.hash')`,
  evalRequestId: runs.evalRequestId,
  agent: runs.agent,
  model: runs.model,
};

/** The scores of prompts as they stand now. */
export function createLatest({ db }: Pick<Deps, "db">, { compareEvals }: Pick<Compare, "compareEvals">) {
  const newest = db
    .select(columns)
    .from(reports)
    .innerJoin(runs, eq(runs.id, reports.runId))
    .where(
      and(
        eq(reports.orgId, sql.placeholder("org")),
        eq(reports.promptId, sql.placeholder("promptId")),
        eq(reports.status, "published"),
      ),
    )
    .orderBy(desc(reports.runId))
    .limit(looked)
    .prepare();
  /** What was found, by the evaluations and how many of their runs count: comparing takes long, and does not change. */
  const kept = new Map<string, Latest["change"]>();

  function changeOf(org: OrgId, before: ScorePoint | undefined, after: ScorePoint | undefined): Latest["change"] {
    if (!before || !after || Math.min(before.runs, after.runs) < minRuns) return null;
    const key = [before, after].map(({ evalRequestId, runs }) => `${evalRequestId} ${runs}`).join(" ");
    const known = kept.get(key);
    if (known !== undefined) return known;
    const { verdict, evidence } = compareEvals(org, before.evalRequestId, after.evalRequestId);
    const found: Latest["change"] = verdict && { verdict, delta: evidence.delta?.value ?? 0 };
    if (kept.size >= maxKept) kept.clear();
    kept.set(key, found);
    return found;
  }

  return {
    /** null: the prompt has no published report. */
    findLatest(org: OrgId, promptId: string): Latest | null {
      const rows = newest.all({ org, promptId });
      const [last] = rows;
      if (!last) return null;
      const sameKind = rows.filter(
        ({ agent, model, method }) => agent === last.agent && model === last.model && method === last.method,
      );
      const points = [...Map.groupBy(sameKind, ({ evalRequestId }) => evalRequestId)].flatMap(
        ([evalRequestId, all]) => {
          const scored = all.flatMap(({ score }) => score ?? []);
          const [newest] = all;
          if (!newest || scored.length === 0) return [];
          const score = scored.reduce((sum, each) => sum + each, 0) / scored.length;
          const { slug, createdAt } = newest;
          return { evalRequestId, slug, score, runs: scored.length, at: new Date(createdAt).toISOString() };
        },
      );
      const shown = points.slice(0, maxPoints).reverse();
      const { slug, score, grade, outcome, createdAt } = last;
      return {
        slug,
        score,
        grade,
        outcome,
        at: new Date(createdAt).toISOString(),
        points: shown,
        change: changeOf(org, shown.at(-2), shown.at(-1)),
      };
    },
  };
}
