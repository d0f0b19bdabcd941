import { type Static, Type } from "@sinclair/typebox";
import type { Context, OrgId } from "../context.ts";
import { badRequest } from "../errors.ts";
import { FrictionPoint } from "../friction/schema.ts";
import { type ComparedRun, listComparedRuns } from "../reports/compared-runs.ts";
import { Id } from "../schema.ts";
import { Evidence, noEvidence, VerdictWord } from "./evidence.ts";
import { byWeight, mergeFriction, readFriction } from "./friction.ts";
import { getBaselineSide, getSide, type Side, type SideQuery, sideOfEvals } from "./sides.ts";
import { judgeTogether, type Terms } from "./together.ts";

const { fingerprint, severity, category, title, url, onPath } = FrictionPoint.properties;
const seen = Type.Object({ runs: Type.Integer(), of: Type.Integer() });
const SideFriction = Type.Array(
  Type.Object({
    fingerprint,
    severity,
    category,
    title,
    url,
    onPath,
    before: seen,
    after: seen,
  }),
);
const SideName = Type.Object({ evalRequestIds: Type.Array(Id), promptIds: Type.Array(Id), runs: Type.Integer() });

/** Two sides, each with many runs: whether the head is better or worse than the base. */
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

/** Compares two sides; runs of the head are excluded from the base. Throws not_found, and bad_request for a side without runs. */
export function compareSides(
  ctx: Context,
  org: OrgId,
  base: SideQuery,
  head: SideQuery,
  terms: Terms = {},
): Comparison {
  const after = getSide(ctx, org, head);
  const isBaseline = base.of.length === 1 && base.of[0] === "baseline";
  const before = isBaseline ? getBaselineSide(ctx, org, after) : getSide(ctx, org, base);
  // A run on both sides would be compared with itself.
  const headIds = new Set(after.runs.map(({ runId }) => runId));
  const runs = before.runs.filter(({ runId }) => !headIds.has(runId));
  if (runs.length === 0 && before.runs.length > 0)
    throw badRequest("Invalid base: all of its runs also belong to the head. Choose other runs, or baseline.");
  return toComparison(ctx, { ...before, runs }, after, terms);
}

/** Compares the runs of evaluations that match with those of others and with `runIds`. */
export function compareEvals(
  ctx: Context,
  org: OrgId,
  base: { evalRequestIds?: string[]; runIds?: string[] },
  headIds: string[],
  { matches = () => true, ...terms }: Terms & { matches?: (run: ComparedRun) => boolean } = {},
): Comparison {
  const { evalRequestIds = [], runIds = [] } = base;
  const before = sideOfEvals(ctx, org, evalRequestIds);
  const after = sideOfEvals(ctx, org, headIds);
  const name = evalRequestIds.length > 0 ? before.name : "the baseline";
  const runs = [...before.runs, ...listComparedRuns(ctx, org, runIds)].filter(matches);
  return toComparison(ctx, { ...before, name, runs }, { ...after, runs: after.runs.filter(matches) }, terms);
}

function toComparison(ctx: Context, before: Side, after: Side, terms: Terms): Comparison {
  const { comparability, judged } = judgeTogether([before, after], [], terms);
  const { verdict = null, evidence = noEvidence("at least two reports are needed") } = judged ?? {};
  return {
    base: toName(before),
    head: toName(after),
    comparability,
    verdict,
    evidence,
    friction: compareFriction(ctx, [before, after]),
  };
}

function compareFriction(ctx: Context, sides: Side[]): Comparison["friction"] {
  const groups = sides.map(({ runs }) =>
    readFriction(
      ctx,
      runs.flatMap(({ reportId }) => reportId ?? []),
    ),
  );
  // Without a report on one side, nothing is gone or new.
  if (groups.some(({ of }) => of === 0)) return { shared: [], gone: [], new: [] };
  const [before, after] = groups.map(({ of }, i) => (seenIn: string[][]) => ({ runs: seenIn[i]?.length ?? 0, of }));
  const merged = mergeFriction(groups)
    .sort(byWeight)
    .flatMap(({ seenIn, ...name }) =>
      before && after ? [{ ...name, before: before(seenIn), after: after(seenIn) }] : [],
    );
  return {
    shared: merged.filter(({ before, after }) => before.runs > 0 && after.runs > 0),
    gone: merged.filter(({ after }) => after.runs === 0),
    new: merged.filter(({ before }) => before.runs === 0),
  };
}

const toName = ({ runs }: Side): Comparison["base"] => ({
  evalRequestIds: [...new Set(runs.map(({ evalRequestId }) => evalRequestId))],
  promptIds: [...new Set(runs.map(({ promptId }) => promptId))],
  runs: runs.length,
});
