import { and, eq } from "drizzle-orm";
import type { Context, OrgId } from "../context.ts";
import { prompts } from "../db/tables/prompts.ts";
import { evalRequests } from "../db/tables/runs.ts";
import { badRequest, notFound } from "../errors.ts";
import { findBaseline, isSameVariant, windowRuns } from "../reports/baseline.ts";
import { argsKey } from "../reports/differences.ts";
import { getReport } from "../reports/reports.ts";
import {
  type ComparedRun,
  countUnfinishedRuns,
  type PublishedRun,
  publishedRunRows,
  runRowsOfEvals,
  runRowsOfRuns,
} from "../reports/run-rows.ts";
import { isId } from "../schema.ts";

/** One side of a comparison, as requested. */
export type SideQuery = {
  /** Slugs of reports, IDs of evaluations, IDs of prompts (their last ten published runs), or for a base only `baseline`. */
  of: string[];
  agent?: string;
  model?: string;
  templateArgs?: Record<string, string>;
};

/** Runs that are compared as one side, newest first within each evaluation. */
export type Side = { name: string; unfinished: number; runs: ComparedRun[] };

/** `agentIndex`: only the runs of one agent. */
export const sideOfEvals = (ctx: Context, org: OrgId, ids: string[], agentIndex?: number): Side => ({
  name: ids.join(", "),
  unfinished: countUnfinishedRuns(ctx, org, ids, agentIndex),
  runs: runRowsOfEvals(ctx, org, ids).filter((run) => agentIndex === undefined || run.agentIndex === agentIndex),
});

/** Throws not_found for an unknown ID or slug, and bad_request for a side without runs. */
export function sideOf(ctx: Context, org: OrgId, { of, ...filter }: SideQuery): Side {
  const evals: string[] = [];
  const runs: ComparedRun[] = [];
  for (const ref of of) {
    if (!isId(ref)) {
      runs.push(...runRowsOfRuns(ctx, org, [getReport(ctx, org, ref).run.runId]));
      continue;
    }
    const id = ref.toLowerCase();
    const isIn = (table: typeof evalRequests | typeof prompts) =>
      ctx.db
        .select({ id: table.id })
        .from(table)
        .where(and(eq(table.orgId, org), eq(table.id, id)))
        .get() !== undefined;
    if (isIn(evalRequests)) evals.push(id);
    else if (isIn(prompts)) runs.push(...latestVariantOf(ctx, org, id, filter));
    else throw notFound(`No evaluation or prompt has the ID ${ref}.`);
  }
  const side = evals.length === 0 ? { unfinished: 0, runs: [] } : sideOfEvals(ctx, org, evals);
  const runsById = new Map([...side.runs, ...runs].map((run) => [run.runId, run]));
  const matchingRuns = [...runsById.values()].filter((run) => passes(run, filter));
  if (matchingRuns.length + side.unfinished === 0)
    throw badRequest(
      `${of.join(", ")}: not measured, so there is nothing to compare. List reports with GET /api/v1/reports.`,
    );
  return { name: of.join(", "), unfinished: side.unfinished, runs: matchingRuns };
}

/** The baseline of the prompt of a head, from runs before it. Throws bad_request if there is none. */
export function baselineOf(ctx: Context, org: OrgId, head: Side): Side {
  const newest = head.runs.find(({ report }) => report?.score != null);
  if (!newest) throw badRequest("Invalid baseline: the head is not measured yet.");
  const oldest = head.runs.map(({ runId }) => runId).sort()[0] as string;
  const { evalRequestId } = newest;
  const baseline = findBaseline(ctx, org, newest, { before: oldest, exceptEvalRequestId: evalRequestId });
  if (!baseline)
    throw badRequest(
      "Invalid baseline: there are fewer than two comparable published runs before the head. Pin an evaluation as the prompt's baseline.",
    );
  return { name: `the ${baseline.kind} baseline`, unfinished: 0, runs: baseline.runs };
}

/** The last ten published runs of the prompt's most recent variant. */
function latestVariantOf(ctx: Context, org: OrgId, promptId: string, filter: Omit<SideQuery, "of">): ComparedRun[] {
  const [newest] = publishedRunRows(ctx, org, promptId, 1, { matches: (run) => passes(run, filter) });
  if (!newest) return [];
  return publishedRunRows(ctx, org, promptId, windowRuns, { matches: (run) => isSameVariant(run, newest) });
}

const passes = (run: ComparedRun | PublishedRun, { agent, model, templateArgs }: Omit<SideQuery, "of">): boolean =>
  (agent === undefined || run.agent === agent) &&
  (model === undefined || run.model === model) &&
  (templateArgs === undefined || argsKey(templateArgs) === argsKey(run.templateArgs));
