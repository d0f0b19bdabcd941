import { and, eq } from "drizzle-orm";
import { evalRequests, prompts } from "../db/tables.ts";
import type { Deps, OrgId } from "../deps.ts";
import { badRequest, notFound } from "../errors.ts";
import { createBaselines, isAlike, windowRuns } from "./baseline.ts";
import type { Reports } from "./reports.ts";
import { argsKey, type RunRow } from "./runrows.ts";

/** One side as a caller names it. */
export type SideQuery = {
  /** Slugs of reports, ids of eval requests, ids of prompts (their last ten published runs), or for a base only `baseline`. */
  of: string[];
  agent?: string;
  model?: string;
  templateArgs?: Record<string, string>;
};
const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Runs that are compared as one. */
export type Side = { name: string; unfinished: number; runs: RunRow[] };

export type Sides = ReturnType<typeof createSides>;

/** Finds the runs of a side. */
export function createSides({ db }: Pick<Deps, "db">, ofReports: Pick<Reports, "getReport">) {
  const { rows, findBaseline } = createBaselines({ db });

  const sideOfEvals = (org: OrgId, ids: string[]): Side => ({
    name: ids.join(", "),
    unfinished: rows.countUnfinished(org, ids),
    runs: rows.ofEvals(org, ids),
  });

  /** The last ten published runs of the cell of a prompt that has the newest one. */
  function cellOf(org: OrgId, promptId: string, filter: Omit<SideQuery, "of">): RunRow[] {
    const [newest] = rows.published(org, promptId, 1, (run) => passes(run, filter));
    return newest ? rows.published(org, promptId, windowRuns, (run) => isAlike(run, newest)) : [];
  }

  /** Throws not_found for what names nothing of the organisation, bad_request for a side without a run. */
  function sideOf(org: OrgId, { of, ...filter }: SideQuery): Side {
    const evals: string[] = [];
    const named: RunRow[] = [];
    for (const ref of of) {
      if (!uuid.test(ref)) {
        named.push(...rows.ofRuns(org, [ofReports.getReport(org, ref).run.runId]));
        continue;
      }
      const id = ref.toLowerCase();
      const isIn = (table: typeof evalRequests | typeof prompts) =>
        db
          .select({ id: table.id })
          .from(table)
          .where(and(eq(table.orgId, org), eq(table.id, id)))
          .get() !== undefined;
      if (isIn(evalRequests)) evals.push(id);
      else if (isIn(prompts)) named.push(...cellOf(org, id, filter));
      else throw notFound(`no eval request and no prompt has the id ${ref}`);
    }
    const side = evals.length === 0 ? { unfinished: 0, runs: [] } : sideOfEvals(org, evals);
    const found = new Map([...side.runs, ...named].map((run) => [run.runId, run]));
    const all = [...found.values()].filter((run) => passes(run, filter));
    if (all.length + side.unfinished === 0)
      throw badRequest(`${of.join(", ")}: no run that counts; see GET /api/v1/reports`);
    return { name: of.join(", "), unfinished: side.unfinished, runs: all };
  }

  /** What the runs of a head are held against. Throws bad_request where there is nothing. */
  function baselineOf(org: OrgId, head: Side): Side {
    const newest = head.runs.find(({ report }) => report?.score != null);
    if (!newest) throw badRequest("baseline: the head has no run with a score yet");
    const oldest = head.runs.map(({ runId }) => runId).sort()[0] as string;
    const found = findBaseline(org, newest, oldest, newest.evalRequestId);
    if (!found)
      throw badRequest(
        "baseline: there are not two comparable published runs before these; pin an evaluation to the prompt",
      );
    return { name: `the ${found.kind} baseline`, unfinished: 0, runs: found.runs };
  }

  return {
    sideOf,
    sideOfEvals,
    baselineOf,
    sideOfRuns: (org: OrgId, name: string, ids: string[]): Side => ({
      name,
      unfinished: 0,
      runs: rows.ofRuns(org, ids),
    }),
  };
}

const passes = (
  run: Pick<RunRow, "agent" | "model" | "templateArgs">,
  { agent, model, templateArgs }: Omit<SideQuery, "of">,
): boolean =>
  (agent ?? run.agent) === run.agent &&
  (model ?? run.model) === run.model &&
  (templateArgs === undefined || argsKey(templateArgs) === argsKey(run.templateArgs));

/** What keeps the runs of two sides from meaning the same. The urlMap does not: it is what is compared. Several prompts are paired. */
export function differencesOf(sides: Side[]): string[] {
  const all = sides.flatMap(({ runs }) => runs.filter(({ report }) => report !== null));
  const prompts = (side: Side) => new Set(side.runs.map(({ promptId }) => promptId)).size;
  const argsOf = ({ runs }: Side) => String([...new Set(runs.map(({ templateArgs }) => argsKey(templateArgs)))].sort());
  // Both with the same several, they are paired as prompts are.
  const isPaired = new Set(sides.map(argsOf)).size === 1;
  const isOne = sides.every((side) => prompts(side) <= 1);
  const aspects: [string, (row: RunRow) => string | null][] = [
    ["agent", ({ agent }) => agent],
    ["model", ({ model }) => model ?? "none"],
    ["methodology", ({ methodology }) => methodology],
    ...(isOne
      ? ([
          ["prompt", ({ promptId }) => promptId],
          ["templateArgs", ({ templateArgs }) => argsKey(templateArgs)],
        ] satisfies [string, (row: RunRow) => string][])
      : []),
  ];
  return aspects.flatMap(([name, of]) => {
    const values = [...new Set(all.map(of))].filter((value) => value !== null);
    return values.length < 2 || (name === "templateArgs" && isPaired) ? [] : [`${name}: ${values.join(" against ")}`];
  });
}
