import { and, eq } from "drizzle-orm";
import type { Context, OrgId } from "../context.ts";
import { prompts } from "../db/tables/prompts.ts";
import { evalRequests } from "../db/tables/runs.ts";
import { badRequest, notFound } from "../errors.ts";
import { findBaseline, isAlike, windowRuns } from "../reports/baseline.ts";
import {
  type ComparedRun,
  countUnfinishedRuns,
  listComparedRuns,
  listComparedRunsOfEvals,
  listScoredRuns,
} from "../reports/compared-runs.ts";
import { argsKey } from "../reports/differences.ts";
import { getReport } from "../reports/reports.ts";

type RunFilter = { agent?: string; model?: string; templateArgs?: Record<string, string> };

/** One side of a comparison, as requested. */
export type SideQuery = RunFilter & {
  /** Slugs of reports, IDs of evaluations, IDs of prompts (their last ten published runs), or for a base only `baseline`. */
  of: string[];
};

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Runs that are compared as one side. */
export type Side = { name: string; unfinished: number; runs: ComparedRun[] };

/** The runs of evaluations. `agentIndex`: only those of one agent. */
export const sideOfEvals = (ctx: Context, org: OrgId, evalRequestIds: string[], agentIndex?: number): Side => ({
  name: evalRequestIds.join(", "),
  unfinished: countUnfinishedRuns(ctx, org, evalRequestIds, agentIndex),
  runs: listComparedRunsOfEvals(ctx, org, evalRequestIds).filter(
    (run) => agentIndex === undefined || run.agentIndex === agentIndex,
  ),
});

/** The runs that a query names. Throws not_found for an unknown ID or slug, and bad_request for a side without runs. */
export function getSide(ctx: Context, org: OrgId, { of, ...filter }: SideQuery): Side {
  const evalRequestIds: string[] = [];
  const others: ComparedRun[] = [];
  for (const name of of) {
    if (!uuid.test(name)) {
      others.push(...listComparedRuns(ctx, org, [getReport(ctx, org, name).run.runId]));
      continue;
    }
    const id = name.toLowerCase();
    if (hasRow(ctx, org, evalRequests, id)) evalRequestIds.push(id);
    else if (hasRow(ctx, org, prompts, id)) others.push(...listLatestVariant(ctx, org, id, filter));
    else throw notFound(`No evaluation or prompt has the ID ${name}.`);
  }
  const side = evalRequestIds.length === 0 ? { unfinished: 0, runs: [] } : sideOfEvals(ctx, org, evalRequestIds);
  const runsById = new Map([...side.runs, ...others].map((run) => [run.runId, run]));
  const runs = [...runsById.values()].filter((run) => passes(run, filter));
  if (runs.length + side.unfinished === 0)
    throw badRequest(`${of.join(", ")}: no scored run to compare. List reports with GET /api/v1/reports.`);
  return { name: of.join(", "), unfinished: side.unfinished, runs };
}

/** The baseline of a head. Throws bad_request if there is none. */
export function getBaselineSide(ctx: Context, org: OrgId, head: Side): Side {
  const newest = head.runs.find(({ report }) => report?.score != null);
  if (!newest) throw badRequest("Invalid baseline: the head has no scored run yet.");
  const oldest = head.runs.map(({ runId }) => runId).sort()[0] as string;
  const baseline = findBaseline(ctx, org, newest, oldest, newest.evalRequestId);
  if (!baseline)
    throw badRequest(
      "Invalid baseline: there are fewer than two comparable published runs before the head. Pin an evaluation as the prompt's baseline.",
    );
  return { name: `the ${baseline.kind} baseline`, unfinished: 0, runs: baseline.runs };
}

/** The last ten published runs of the prompt's most recent variant. */
function listLatestVariant(ctx: Context, org: OrgId, promptId: string, filter: RunFilter): ComparedRun[] {
  const [newest] = listScoredRuns(ctx, org, promptId, { limit: 1, matches: (run) => passes(run, filter) });
  if (!newest) return [];
  return listScoredRuns(ctx, org, promptId, { limit: windowRuns, matches: (run) => isAlike(run, newest) });
}

const hasRow = ({ db }: Context, org: OrgId, table: typeof evalRequests | typeof prompts, id: string): boolean =>
  db
    .select({ id: table.id })
    .from(table)
    .where(and(eq(table.orgId, org), eq(table.id, id)))
    .get() !== undefined;

const passes = (
  run: Pick<ComparedRun, "agent" | "model" | "templateArgs">,
  { agent, model, templateArgs }: RunFilter,
): boolean =>
  (agent ?? run.agent) === run.agent &&
  (model ?? run.model) === run.model &&
  (templateArgs === undefined || argsKey(templateArgs) === argsKey(run.templateArgs));
