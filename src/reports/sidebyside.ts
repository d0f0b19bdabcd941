import { type Static, Type } from "@sinclair/typebox";
import type { OrgId } from "../deps.ts";
import { badRequest } from "../errors.ts";
import { Id, Nullable, Time } from "../schema.ts";
import { EvalResult, resultOf } from "./repeats.ts";
import type { Reports } from "./reports.ts";
import { argsKey, methodologyWords } from "./runrows.ts";
import { FrictionPoint, type Report, RunReport } from "./schema.ts";
import { differencesOf, type Sides } from "./sides.ts";
import { Evidence, judgeSides, metricNames, noEvidence, VerdictWord } from "./verdict.ts";

const { fingerprint, severity, category, title, url } = FrictionPoint.properties;
const FrictionName = { fingerprint, severity, category, title, url };
const bound = Nullable(Type.Number());

/** Reports side by side, and the verdict where they are of two evaluations. */
export const ReportsComparison = Type.Object({
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
  verdict: VerdictWord,
  evidence: Type.Object({
    ...Evidence.properties,
    sides: Type.Array(Type.Object({ evalRequestId: Id, ...EvalResult.properties })),
  }),
});
export type ReportsComparison = Static<typeof ReportsComparison>;

/** Reports by their slugs; where they are of two evaluations with repeats, whether the later is better, by all runs of both. */
export const createSideBySide =
  (ofReports: Pick<Reports, "getReport">, { sideOfEvals }: Pick<Sides, "sideOfEvals">) =>
  /** Throws not_found for a slug that is none, bad_request for one that stands twice. */
  (org: OrgId, slugs: string[]): ReportsComparison => {
    const twice = slugs.find((slug, i) => slugs.indexOf(slug) !== i);
    if (twice !== undefined) throw badRequest(`slugs: ${twice} stands twice; name each report once`);
    const compared = slugs.map((slug) => ofReports.getReport(org, slug));
    const evaluations = [...new Set(compared.map(({ run }) => run.evalRequestId))].sort();
    const sides = evaluations.map((id) => sideOfEvals(org, [id]));
    const own = differencesBetween(compared);
    // A verdict is of all runs of both, which may differ where those that were named do not.
    const differences = own.length > 0 || sides.length !== 2 ? own : differencesOf(sides);
    const [before, after] = sides;
    const judged = before && after && sides.length === 2 ? judgeSides(before, after, differences) : null;
    const summaries = sides.map((side, i) => ({
      evalRequestId: evaluations[i] as string,
      ...resultOf(side.runs, side.unfinished),
    }));
    const nothing = `a verdict needs reports of two evaluations; these are of ${sides.length}`;
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
      metrics: metricNames.map((name) => ({ name, values: compared.map(({ metrics }) => metrics[name] ?? null) })),
      friction: frictionBetween(compared),
      comparability: { same: differences.length === 0, differences },
      verdict: judged?.verdict ?? null,
      evidence: { ...(judged?.evidence ?? noEvidence(nothing)), sides: summaries },
    };
  };

/** What keeps two numbers from meaning the same. The urlMap does not: it is what is compared. */
function differencesBetween(compared: Report[]): string[] {
  const aspects: Record<string, (report: Report) => string> = {
    prompt: ({ prompt }) => prompt.id,
    agent: ({ agent }) => agent.id,
    model: ({ agent }) => agent.model ?? "none",
    methodology: ({ methodology }) => methodologyWords(methodology),
    templateArgs: ({ run }) => argsKey(run.templateArgs),
  };
  return Object.entries(aspects).flatMap(([name, of]) => {
    const values = [...new Set(compared.map(of))];
    return values.length === 1 ? [] : [`${name}: ${values.join(" against ")}`];
  });
}

function frictionBetween(compared: Report[]): ReportsComparison["friction"] {
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
