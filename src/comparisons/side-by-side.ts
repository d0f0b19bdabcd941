import { type Static, Type } from "@sinclair/typebox";
import { sortDimensionNames } from "../config/weights.ts";
import type { Context, OrgId } from "../context.ts";
import { badRequest } from "../errors.ts";
import { FrictionPoint } from "../friction/schema.ts";
import { comparandOf } from "../reports/baseline.ts";
import { differencesOf } from "../reports/differences.ts";
import { getReport } from "../reports/reports.ts";
import { agentIndexOf } from "../reports/run-rows.ts";
import { type Report, RunAgent, RunReport } from "../reports/schema.ts";
import { Id, Nullable, Time } from "../schema.ts";
import { EvalResult, metricNames, resultOf } from "../stats/repeats.ts";
import { assessSides, type ComparisonOptions } from "./assessment.ts";
import { Evidence, NullableVerdict, noEvidence } from "./evidence.ts";
import { mergeFriction } from "./friction.ts";
import { sideOfEvals } from "./sides.ts";

const { fingerprint, severity, category, title, url } = FrictionPoint.properties;
const frictionFields = { fingerprint, severity, category, title, url };
const NullableNumber = Nullable(Type.Number());

/** Reports side by side, with a verdict if they belong to two evaluations. */
export const ReportsComparison = Type.Object({
  reports: Type.Array(
    Type.Object({
      slug: Type.String(),
      evalRequestId: Id,
      agent: RunAgent,
      score: RunReport.properties.score,
      scope: RunReport.properties.scope,
      grade: RunReport.properties.grade,
      outcome: RunReport.properties.outcome,
      coverage: Type.Number(),
      createdAt: Time,
    }),
  ),
  dimensions: Type.Array(Type.Object({ name: Type.String(), scores: Type.Array(NullableNumber) }), {
    description: "Scores, in the same order as reports",
  }),
  metrics: Type.Array(Type.Object({ name: Type.String(), values: Type.Array(NullableNumber) })),
  friction: Type.Object({
    shared: Type.Array(Type.Object(frictionFields), { description: "In every report" }),
    only: Type.Array(Type.Object({ ...frictionFields, slugs: Type.Array(Type.String()) })),
    total: Type.Integer({ description: "Can exceed the list; see get_friction_points" }),
  }),
  comparability: Type.Object({ same: Type.Boolean(), differences: Type.Array(Type.String()) }),
  verdict: NullableVerdict,
  evidence: Type.Object({
    ...Evidence.properties,
    sides: Type.Array(Type.Object({ evalRequestId: Id, agent: Type.String(), ...EvalResult.properties })),
  }),
});
export type ReportsComparison = Static<typeof ReportsComparison>;

/** Throws not_found for an unknown slug, and bad_request for a duplicate. */
export function compareReports(
  ctx: Context,
  org: OrgId,
  slugs: string[],
  options: ComparisonOptions = {},
): ReportsComparison {
  const duplicate = slugs.find((slug, i) => slugs.indexOf(slug) !== i);
  if (duplicate !== undefined) throw badRequest(`Invalid slugs: ${duplicate} is listed twice. List each report once.`);
  const reports = slugs.map((slug) => getReport(ctx, org, slug));
  const sides = sidesOf(ctx, org, reports);
  const reportDifferences = differencesOf(reports.map((report) => [comparandOf(report)]));
  // The verdict covers all runs of both evaluations, which may differ in more than the selected reports do.
  const { assessment, comparability } = assessSides(sides, { ...options, reportDifferences });
  const summaries = sides.map(({ evalRequestId, agent, runs, unfinished }) => ({
    evalRequestId,
    agent,
    ...resultOf(runs, unfinished),
  }));
  const noVerdictReason = `a verdict needs reports of two evaluations or agents, but these belong to ${sides.length}`;
  return {
    reports: reports.map(({ slug, run, agent, score, scope, grade, outcome, coverage, createdAt }) => {
      const { evalRequestId } = run;
      return { slug, evalRequestId, agent, score, scope, grade, outcome, coverage, createdAt };
    }),
    dimensions: sortDimensionNames(reports.flatMap(({ dimensions }) => dimensions.map(({ name }) => name))).map(
      (name) => ({
        name,
        scores: reports.map(({ dimensions }) => dimensions.find((each) => each.name === name)?.score ?? null),
      }),
    ),
    metrics: metricNames.map((name) => ({ name, values: reports.map(({ metrics }) => metrics[name] ?? null) })),
    friction: frictionBetween(reports),
    comparability,
    verdict: assessment?.verdict ?? null,
    evidence: { ...(assessment?.evidence ?? noEvidence(noVerdictReason)), sides: summaries },
  };
}

/** One side for each agent of each evaluation, with only the runs of that agent. Sorted by evaluation, oldest first, then by agent. */
function sidesOf(ctx: Context, org: OrgId, reports: Report[]) {
  const agents = reports.map(({ run, agent }) => ({
    evalRequestId: run.evalRequestId,
    agentIndex: agentIndexOf(ctx, org, run.runId),
    agent: agent.id,
  }));
  const groups = Map.groupBy(agents, ({ evalRequestId, agentIndex }) => `${evalRequestId} ${agentIndex}`);
  return [...groups.values()]
    .flatMap(([first]) => first ?? [])
    .sort((a, b) => a.evalRequestId.localeCompare(b.evalRequestId) || a.agentIndex - b.agentIndex)
    .map((each) => ({ ...each, ...sideOfEvals(ctx, org, [each.evalRequestId], each.agentIndex) }));
}

function frictionBetween(reports: Report[]): ReportsComparison["friction"] {
  // Each report is a group of its own, so a point is seen at most once in each.
  const groups = reports.map(({ slug, frictionPoints }) => ({
    points: frictionPoints.map(({ fingerprint, severity, category, title, url }) => ({
      point: { fingerprint, severity, category, title, url },
      report: slug,
    })),
  }));
  const allPoints = mergeFriction(groups).map(({ seenIn, ...point }) => ({ ...point, slugs: seenIn.flat() }));
  return {
    shared: allPoints.filter(({ slugs }) => slugs.length === reports.length).map(({ slugs: _, ...point }) => point),
    only: allPoints.filter(({ slugs }) => slugs.length < reports.length),
    total: allPoints.length,
  };
}
