import { type Static, Type } from "@sinclair/typebox";
import { and, count, eq, inArray, ne, or } from "drizzle-orm";
import { reports, runs } from "../db/tables.ts";
import type { Deps, OrgId } from "../deps.ts";
import { badRequest } from "../errors.ts";
import { type Estimate, mean, permutationTest, welch } from "../grading/stats.ts";
import { Id, Nullable, OneOf, Time } from "../schema.ts";
import { type Ended, Repeats, rounded, sumUp } from "./repeats.ts";
import type { Reports } from "./reports.ts";
import { FrictionPoint, type Report, RunReport } from "./schema.ts";

/** Points of the score that matter to a person. */
const threshold = 5;
const alpha = 0.05;
const softAlpha = 0.2;
const maxInfraShare = 0.2;
/** Runs a side below which nothing can be told from chance. */
const minRuns = 4;

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
type Verdict = (typeof verdicts)[number];

const { fingerprint, severity, category, title, url } = FrictionPoint.properties;
const FrictionName = { fingerprint, severity, category, title, url };
const bound = Nullable(Type.Number());

export const Comparison = Type.Object({
  reports: Type.Array(
    Type.Object({
      slug: Type.String(),
      evalRequestId: Id,
      score: RunReport.properties.score,
      grade: RunReport.properties.grade,
      outcome: RunReport.properties.outcome,
      coverage: Type.Number(),
      createdAt: Time,
    }),
  ),
  dimensions: Type.Array(Type.Object({ name: Type.String(), scores: Type.Array(bound) }), {
    description: "Scores in the order of reports",
  }),
  metrics: Type.Array(Type.Object({ name: Type.String(), values: Type.Array(bound) })),
  friction: Type.Object({
    shared: Type.Array(Type.Object(FrictionName), { description: "In every report" }),
    only: Type.Array(Type.Object({ ...FrictionName, slugs: Type.Array(Type.String()) })),
    total: Type.Integer({ description: "More than listed: the rest does not fit; see get_friction_points" }),
  }),
  comparability: Type.Object({ same: Type.Boolean(), differences: Type.Array(Type.String()) }),
  verdict: Nullable(OneOf(verdicts, "Of the later evaluation; null unless both have repeats")),
  evidence: Type.Object({
    reason: Type.String(),
    method: Nullable(Type.String()),
    sides: Type.Array(
      Type.Object({
        evalRequestId: Id,
        unfinished: Type.Integer({ description: "Runs to come" }),
        ...Repeats.properties,
      }),
    ),
    delta: Nullable(Type.Object({ value: Type.Number(), low: bound, high: bound })),
    p: bound,
  }),
});
export type Comparison = Static<typeof Comparison>;

/** Reports side by side; where they are of two evaluations with repeats, whether the later is better, by all runs of both. */
export function createCompare({ db }: Pick<Deps, "db">, ofReports: Reports) {
  /** Every run of an evaluation that has ended, whether or not its report was named. */
  function sideOf(org: OrgId, evalRequestId: string) {
    return db
      .select({
        failureReason: runs.failureReason,
        report: { outcome: reports.outcome, score: reports.score },
        metrics: reports.metrics,
        dimensions: reports.dimensions,
      })
      .from(runs)
      .leftJoin(reports, eq(reports.runId, runs.id))
      .where(
        and(
          eq(runs.orgId, org),
          eq(runs.evalRequestId, evalRequestId),
          or(ne(reports.status, "archived"), eq(runs.status, "failed")),
        ),
      )
      .all()
      .map(({ failureReason, report, metrics, dimensions }) => ({
        failureReason,
        report: report && { ...report, seconds: metrics?.timeSeconds ?? null, costUsd: metrics?.costUsd ?? null },
        dimensions: dimensions ?? [],
      }));
  }

  const unfinishedOf = (org: OrgId, evalRequestId: string): number =>
    db
      .select({ n: count() })
      .from(runs)
      .where(
        and(eq(runs.orgId, org), eq(runs.evalRequestId, evalRequestId), inArray(runs.status, ["pending", "running"])),
      )
      .get()?.n ?? 0;

  /** Throws not_found for a slug that is none, bad_request for one that stands twice. */
  return function compareReports(org: OrgId, slugs: string[]): Comparison {
    const twice = slugs.find((slug, i) => slugs.indexOf(slug) !== i);
    if (twice !== undefined) throw badRequest(`slugs: ${twice} stands twice; name each report once`);
    const compared = slugs.map((slug) => ofReports.getReport(org, slug));
    const differences = differencesOf(compared);
    const evaluations = [...new Set(compared.map(({ run }) => run.evalRequestId))].sort();
    const sides = evaluations.map((id) => ({ id, runs: sideOf(org, id), unfinished: unfinishedOf(org, id) }));
    return {
      reports: compared.map((report) => ({
        slug: report.slug,
        evalRequestId: report.run.evalRequestId,
        score: report.score,
        grade: report.grade,
        outcome: report.outcome,
        coverage: report.coverage,
        createdAt: report.createdAt,
      })),
      dimensions: [...new Set(compared.flatMap(({ dimensions }) => dimensions.map(({ name }) => name)))].map(
        (name) => ({
          name,
          scores: compared.map(({ dimensions }) => dimensions.find((each) => each.name === name)?.score ?? null),
        }),
      ),
      metrics: (["timeSeconds", "errors", "toolCalls", "costUsd", "interruptions"] as const).map((name) => ({
        name,
        values: compared.map(({ metrics }) => metrics[name] ?? null),
      })),
      friction: frictionOf(compared),
      comparability: { same: differences.length === 0, differences },
      ...judge(sides, differences),
    };
  };
}

/** What keeps two numbers from meaning the same. The urlMap does not: it is what is compared. */
function differencesOf(compared: Report[]): string[] {
  const aspects: Record<string, (report: Report) => string> = {
    prompt: ({ prompt }) => prompt.id,
    agent: ({ agent }) => agent.id,
    model: ({ agent }) => agent.model ?? "none",
    methodology: ({ methodology: { id, hash, judge } }) => `${id} ${hash.slice(0, 8)}${judge ? ` ${judge}` : ""}`,
    templateArgs: ({ run }) => JSON.stringify(run.templateArgs),
  };
  return Object.entries(aspects).flatMap(([name, of]) => {
    const values = [...new Set(compared.map(of))];
    return values.length === 1 ? [] : [`${name}: ${values.join(" against ")}`];
  });
}

function frictionOf(compared: Report[]): Comparison["friction"] {
  const seen = Map.groupBy(
    compared.flatMap(({ slug, frictionPoints }) => frictionPoints.map((point) => ({ slug, point }))),
    ({ point }) => point.fingerprint,
  );
  const all = [...seen.values()].map((each) => {
    const { fingerprint, severity, category, title, url } = (each.at(-1) as (typeof each)[number]).point;
    return { fingerprint, severity, category, title, url, slugs: each.map(({ slug }) => slug) };
  });
  return {
    shared: all.filter(({ slugs }) => slugs.length === compared.length).map(({ slugs: _, ...point }) => point),
    only: all.filter(({ slugs }) => slugs.length < compared.length),
    total: all.length,
  };
}

type Side = { id: string; unfinished: number; runs: (Ended & { dimensions: Report["dimensions"] })[] };

/** The rules of a verdict, in order: the first that holds decides. */
function judge(sides: Side[], differences: string[]): Pick<Comparison, "verdict" | "evidence"> {
  const summaries = sides.map(({ id, unfinished, runs }) => ({ evalRequestId: id, unfinished, ...sumUp(runs) }));
  const evidence = { method: null, sides: summaries, delta: null, p: null };
  const without = (verdict: Verdict | null, reason: string) => ({ verdict, evidence: { ...evidence, reason } });
  const [before, after] = sides;
  if (!before || !after || sides.length !== 2)
    return without(null, `a verdict needs reports of two evaluations; these are of ${sides.length}`);
  if (summaries.some(({ n, unfinished }) => n + unfinished < 2))
    return without(null, "a single run cannot tell a change from chance");
  if (differences.length > 0) return without("not_comparable", `these differ: ${differences.join("; ")}`);
  const open = summaries.find(({ unfinished }) => unfinished > 0);
  if (open)
    return without(
      "insufficient_data",
      `${open.unfinished} runs of ${open.evalRequestId} have not ended; compare again when they have`,
    );
  const broken = summaries.find(({ infraFailures }, i) => infraFailures > maxInfraShare * (sides[i]?.runs.length ?? 0));
  if (broken) return without("insufficient_data", `over 20 % of the runs of ${broken.evalRequestId} could not be made`);
  const names = commonDimensions(sides);
  if (names?.length === 0) return without("not_comparable", "there is no dimension that all runs have");
  const [a, b] = [scoresOn(before, names), scoresOn(after, names)];
  const { p, smallest, exact, splits } = permutationTest(a, b);
  const change = mean(b) - mean(a);
  const delta = rounded(welch(a, b), 1);
  const method = `two-sided permutation test of the mean scores (${exact ? `all ${splits} splits` : `${splits} random splits`}); Welch's 95 % interval of their difference${names ? `; on the dimensions that all runs have: ${names.join(", ")}` : ""}`;
  const found = { ...evidence, method, delta, p: Number(p.toFixed(4)) };
  if (Math.min(a.length, b.length) < minRuns || smallest > alpha)
    return {
      verdict: "insufficient_data",
      evidence: {
        ...found,
        reason: `${a.length} against ${b.length} runs; it takes ${minRuns} a side to tell a change from chance`,
      },
    };
  const reason = `${change > 0 ? "+" : ""}${change.toFixed(1)} points (95 % from ${delta.low} to ${delta.high}), p ${p.toFixed(3)}; a change counts from ${threshold} points and p below ${alpha}`;
  return { verdict: verdictOf(change, delta, p), evidence: { ...found, reason } };
}

function verdictOf(change: number, { low, high }: Estimate, p: number): Verdict {
  const [from, to] = [low ?? change, high ?? change];
  const isLarge = Math.abs(change) >= threshold;
  const isBetter = change > 0;
  if (p < alpha && isLarge) return isBetter ? "improved" : "regressed";
  if (isLarge ? p < softAlpha : from * to > 0) return isBetter ? "soft_improvement" : "soft_regression";
  return from >= -threshold && to <= threshold ? "no_change" : "inconclusive";
}

/** The dimensions that every scored run has, where not all have the same; null where they do and the score itself can be compared. */
function commonDimensions(sides: Side[]): string[] | null {
  const lists = sides.flatMap(({ runs }) =>
    runs.filter(({ report }) => report?.score != null).map(({ dimensions }) => dimensions.map(({ name }) => name)),
  );
  const common = lists.reduce((left, names) => left.filter((name) => names.includes(name)));
  return lists.every((names) => names.length === common.length) ? null : common;
}

/** The scores of the runs of a side; on certain dimensions their weighted mean. */
function scoresOn({ runs }: Side, names: string[] | null): number[] {
  return runs.flatMap(({ report, dimensions }) => {
    if (report?.score == null) return [];
    if (names === null) return [report.score];
    const kept = dimensions.filter(({ name }) => names.includes(name));
    const weights = kept.map(({ weight }) => Number.parseFloat(weight));
    const sum = weights.reduce((all, weight) => all + weight, 0);
    return sum === 0 ? [] : [kept.reduce((all, { score }, i) => all + score * (weights[i] ?? 0), 0) / sum];
  });
}
