import { type Static, Type } from "@sinclair/typebox";
import type { Context, OrgId } from "../context.ts";
import { badRequest } from "../errors.ts";
import { FrictionPoint } from "../friction/schema.ts";
import { type ComparedRun, runRowsOfRuns } from "../reports/run-rows.ts";
import { Id } from "../schema.ts";
import { assessSides, type ComparisonOptions } from "./assessment.ts";
import { Evidence, NullableVerdict, noEvidence } from "./evidence.ts";
import { bySeverity, mergeFriction, readFriction } from "./friction.ts";
import { baselineOf, type Side, type SideQuery, sideOf, sideOfEvals } from "./sides.ts";

const { fingerprint, severity, category, title, url, onPath } = FrictionPoint.properties;
const RunShare = Type.Object({ runs: Type.Integer(), of: Type.Integer() }, { title: "RunShare" });
const SideFriction = Type.Array(
  Type.Object(
    { fingerprint, severity, category, title, url, onPath, before: RunShare, after: RunShare },
    { title: "ComparedFriction" },
  ),
);
const SideSummary = Type.Object({ evalRequestIds: Type.Array(Id), promptIds: Type.Array(Id), runs: Type.Integer() });

/** Two sides, each with many runs: whether the head is better or worse than the base. */
export const Comparison = Type.Object(
  {
    base: SideSummary,
    head: SideSummary,
    comparability: Type.Object({ same: Type.Boolean(), differences: Type.Array(Type.String()) }),
    verdict: NullableVerdict,
    evidence: Evidence,
    friction: Type.Object({ shared: SideFriction, gone: SideFriction, new: SideFriction }),
  },
  { title: "Comparison" },
);
export type Comparison = Static<typeof Comparison>;

/** Compares two sides. Runs of the head are excluded from the base. Throws not_found, and bad_request for a side without runs. */
export function compareSides(
  ctx: Context,
  org: OrgId,
  base: SideQuery,
  head: SideQuery,
  options: ComparisonOptions = {},
): Comparison {
  const after = sideOf(ctx, org, head);
  const isBaseline = base.of.length === 1 && base.of[0] === "baseline";
  const before = isBaseline ? baselineOf(ctx, org, after) : sideOf(ctx, org, base);
  // A run on both sides would be compared with itself.
  const headIds = new Set(after.runs.map(({ runId }) => runId));
  const runs = before.runs.filter(({ runId }) => !headIds.has(runId));
  if (runs.length === 0 && before.runs.length > 0)
    throw badRequest("Invalid base: all of its runs also belong to the head. Choose other runs, or baseline.");
  return compare(ctx, { ...before, runs }, after, options);
}

/**
 * Compares the runs of the evaluations `headIds` with a base: the evaluations `evalRequestIds` and the runs `runIds`. `keeps`: which runs count;
 * default: all.
 */
export function compareEvals(
  ctx: Context,
  org: OrgId,
  { evalRequestIds = [], runIds = [] }: { evalRequestIds?: string[]; runIds?: string[] },
  headIds: string[],
  { keeps = () => true, ...options }: ComparisonOptions & { keeps?: (run: ComparedRun) => boolean } = {},
): Comparison {
  const withKeptRuns = (side: Side): Side => ({ ...side, runs: side.runs.filter(keeps) });
  const evals = sideOfEvals(ctx, org, evalRequestIds);
  const base = {
    name: evalRequestIds.length > 0 ? evals.name : "the baseline",
    unfinished: evals.unfinished,
    runs: [...evals.runs, ...runRowsOfRuns(ctx, org, runIds)],
  };
  return compare(ctx, withKeptRuns(base), withKeptRuns(sideOfEvals(ctx, org, headIds)), options);
}

function frictionOf(ctx: Context, sides: [before: Side, after: Side]): Comparison["friction"] {
  const groups = sides.map(({ runs }) =>
    readFriction(
      ctx,
      runs.flatMap(({ reportId }) => reportId ?? []),
    ),
  );
  // Without a report on one side, nothing is gone or new.
  if (groups.some(({ reportCount }) => reportCount === 0)) return { shared: [], gone: [], new: [] };
  const shareOf = (seenIn: string[][], side: 0 | 1) => ({
    runs: seenIn[side]?.length ?? 0,
    of: groups[side]?.reportCount ?? 0,
  });
  const merged = mergeFriction(groups)
    .sort(bySeverity)
    .map(({ seenIn, ...point }) => ({ ...point, before: shareOf(seenIn, 0), after: shareOf(seenIn, 1) }));
  return {
    shared: merged.filter(({ before, after }) => before.runs > 0 && after.runs > 0),
    gone: merged.filter(({ after }) => after.runs === 0),
    new: merged.filter(({ before }) => before.runs === 0),
  };
}

function compare(ctx: Context, before: Side, after: Side, options: ComparisonOptions): Comparison {
  const { comparability, assessment } = assessSides([before, after], options);
  const { verdict = null, evidence = noEvidence("at least two reports are needed") } = assessment ?? {};
  return {
    base: toSideSummary(before),
    head: toSideSummary(after),
    comparability,
    verdict,
    evidence,
    friction: frictionOf(ctx, [before, after]),
  };
}

const toSideSummary = ({ runs }: Side): Comparison["base"] => ({
  evalRequestIds: [...new Set(runs.map(({ evalRequestId }) => evalRequestId))],
  promptIds: [...new Set(runs.map(({ promptId }) => promptId))],
  runs: runs.length,
});
