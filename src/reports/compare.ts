import { type Static, Type } from "@sinclair/typebox";
import { inArray } from "drizzle-orm";
import { frictionPoints } from "../db/tables.ts";
import type { Deps, OrgId } from "../deps.ts";
import { badRequest } from "../errors.ts";
import { severities } from "../grading/kinds.ts";
import { Id } from "../schema.ts";
import type { Reports } from "./reports.ts";
import { FrictionPoint } from "./schema.ts";
import { createSideBySide } from "./sidebyside.ts";
import { createSides, differencesOf, type Side, type SideQuery } from "./sides.ts";
import { Evidence, judgeSides, VerdictWord } from "./verdict.ts";

const { fingerprint, severity, category, title, url } = FrictionPoint.properties;
const seen = Type.Object({ runs: Type.Integer(), of: Type.Integer() });
const SideFriction = Type.Array(
  Type.Object({ fingerprint, severity, category, title, url, before: seen, after: seen }),
);
const SideName = Type.Object({ evalRequestIds: Type.Array(Id), promptIds: Type.Array(Id), runs: Type.Integer() });

/** Two sides, each of many runs: whether the head is better or worse than the base. */
export const Comparison = Type.Object(
  {
    base: SideName,
    head: SideName,
    comparability: Type.Object({ same: Type.Boolean(), differences: Type.Array(Type.String()) }),
    verdict: VerdictWord,
    evidence: Evidence,
    friction: Type.Object({ shared: SideFriction, gone: SideFriction, new: SideFriction }),
  },
  { title: "Comparison" },
);
export type Comparison = Static<typeof Comparison>;

export type Compare = ReturnType<typeof createCompare>;

/** Reports, evaluations and cells held against one another. */
export function createCompare({ db }: Pick<Deps, "db">, ofReports: Pick<Reports, "getReport">) {
  const sides = createSides({ db }, ofReports);
  const { sideOf, sideOfEvals, sideOfRuns, baselineOf } = sides;

  function frictionOf(before: Side, after: Side): Comparison["friction"] {
    const graded = (side: Side) => side.runs.flatMap(({ reportId }) => reportId ?? []);
    const [inBefore, inAfter] = [new Set(graded(before)), new Set(graded(after))];
    // Where nothing was seen, nothing is gone or new.
    if (inBefore.size === 0 || inAfter.size === 0) return { shared: [], gone: [], new: [] };
    const found = db
      .select({
        reportId: frictionPoints.reportId,
        fingerprint: frictionPoints.fingerprint,
        severity: frictionPoints.severity,
        category: frictionPoints.category,
        title: frictionPoints.title,
        url: frictionPoints.url,
      })
      .from(frictionPoints)
      .where(inArray(frictionPoints.reportId, [...inBefore, ...inAfter]))
      .all();
    const merged = [...Map.groupBy(found, ({ fingerprint }) => fingerprint).values()].map((points) => {
      const { reportId: _, ...name } = points.at(-1) as (typeof points)[number];
      const count = (ids: Set<string>) => ({
        runs: points.filter(({ reportId }) => ids.has(reportId)).length,
        of: ids.size,
      });
      return { ...name, before: count(inBefore), after: count(inAfter) };
    });
    const rank = ({ severity, before, after }: (typeof merged)[number]) =>
      severities.indexOf(severity) * 1000 - before.runs - after.runs;
    merged.sort((a, b) => rank(a) - rank(b));
    return {
      shared: merged.filter(({ before, after }) => before.runs > 0 && after.runs > 0),
      gone: merged.filter(({ after }) => after.runs === 0),
      new: merged.filter(({ before }) => before.runs === 0),
    };
  }

  function compare(before: Side, after: Side, level?: number): Comparison {
    const differences = differencesOf([before, after]);
    return {
      base: toName(before),
      head: toName(after),
      comparability: { same: differences.length === 0, differences },
      ...judgeSides(before, after, differences, level),
      friction: frictionOf(before, after),
    };
  }

  return {
    compareReports: createSideBySide(ofReports, sides),

    /** Runs of the head are not counted in the base too. Throws not_found, and bad_request for a side without a run. */
    compareSides(org: OrgId, base: SideQuery, head: SideQuery): Comparison {
      const after = sideOf(org, head);
      const isBaseline = base.of.length === 1 && base.of[0] === "baseline";
      const before = isBaseline ? baselineOf(org, after) : sideOf(org, base);
      // A run on both sides would be held against itself.
      const ids = new Set(after.runs.map(({ runId }) => runId));
      const runs = before.runs.filter(({ runId }) => !ids.has(runId));
      if (runs.length === 0 && before.runs.length > 0)
        throw badRequest("base: all of its runs are the head's too; name others, or baseline");
      return compare({ ...before, runs }, after);
    },

    /** The runs of an evaluation against those of another, or against these; `level`: the p below which a change counts. */
    compareEvals: (org: OrgId, base: string | { runIds: string[] }, headId: string, level?: number): Comparison =>
      compare(
        typeof base === "string" ? sideOfEvals(org, [base]) : sideOfRuns(org, "the baseline", base.runIds),
        sideOfEvals(org, [headId]),
        level,
      ),
  };
}

const toName = ({ runs }: Side): Comparison["base"] => ({
  evalRequestIds: [...new Set(runs.map(({ evalRequestId }) => evalRequestId))],
  promptIds: [...new Set(runs.map(({ promptId }) => promptId))],
  runs: runs.length,
});
