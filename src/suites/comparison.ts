import { and, desc, eq, inArray, sql } from "drizzle-orm";
import type { Context, OrgId } from "../context.ts";
import { frictionPoints } from "../db/tables/friction.ts";
import { reports } from "../db/tables/reports.ts";
import { isLiveRun, runs } from "../db/tables/runs.ts";
import { standingsOf, type TestedPair } from "../matrix/standings.ts";
import { nameOfPrompt } from "../prompts/prompts.ts";
import { fillTemplate } from "../prompts/template.ts";
import { listProviders } from "../providers/providers.ts";
import { medianInterval, wilson } from "../stats/estimates.ts";
import { minRuns } from "../stats/power.ts";
import { fisherTest } from "../stats/proportions.ts";
import { goalResultOf, round, rounded } from "../stats/repeats.ts";
import { listMembers, type Member } from "./members.ts";
import type { ProductResult, SlotResult, Suite, SuiteComparison } from "./schema.ts";
import { getSuite } from "./suites.ts";

/** How many of the newest runs of a prompt count. */
const maxRuns = 100;

type SuiteRunRow = ReturnType<typeof readRuns>[number];
type Totals = { reached: number; judged: number };

/**
 * Compares products by the runs of a suite on their live docs, separately for each agent. Only runs with declared checks are judged, by their
 * outcome. Prompts that differ from the suite are named and not compared. Throws not_found.
 */
export function compareSuite(ctx: Context, org: OrgId, suiteId: string): SuiteComparison {
  const suite = getSuite(ctx, org, suiteId);
  const members = listMembers(ctx, org, suite);
  const runsByPrompt = new Map(members.map((member) => [member.prompt.id, readRuns(ctx, org, suite, member)]));
  const products = listProviders(ctx, org).filter(({ id }) => members.some(({ providerId }) => providerId === id));
  const results = listAgents([...runsByPrompt.values()].flat()).flatMap(({ agent, model }) => {
    const rows = products.map(({ id: providerId, name }) => {
      const ownMembers = members.filter((member) => member.providerId === providerId);
      const runsOf = (member: Member | undefined) =>
        (runsByPrompt.get(member?.prompt.id ?? "") ?? []).filter((run) => run.agent === agent && run.model === model);
      return { agent, model, providerId, product: name, ...toResult(suite, ownMembers, runsOf) };
    });
    rows.sort((a, b) => totalsOf(b.slots).judged - totalsOf(a.slots).judged || (a.product < b.product ? -1 : 1));
    const standings = standingsOf(rows.length, pairsOf(rows.map(({ slots }) => slots)));
    return rows.map((row, i) => ({
      ...row,
      standing:
        standings[i] ??
        untestedStanding(
          rows.map(({ share }) => share),
          i,
        ),
    }));
  });
  return {
    suiteId: suite.id,
    version: suite.version,
    slots: suite.slots.map(({ slot }) => slot),
    products: results,
    changed: members.filter(({ isChanged }) => isChanged).map(({ prompt }) => nameOfPrompt(prompt)),
  };
}

/** The agents of some runs, each with its model, by name. */
function listAgents(rows: SuiteRunRow[]): { agent: string; model: string | null }[] {
  const agents = new Map(rows.map(({ agent, model }) => [`${agent} ${model}`, { agent, model }]));
  return [...agents].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, agent]) => agent);
}

/** The newest ended runs of a prompt with its current task, oldest first. In a suite, runs have neither a workspace nor a site of their own. */
function readRuns({ db }: Context, org: OrgId, suite: Suite, { prompt, isChanged }: Member) {
  if (isChanged) return [];
  const rows = db
    .select({
      agent: runs.agent,
      model: runs.model,
      task: runs.task,
      failureCause: runs.failureCause,
      outcome: reports.outcome,
      score: reports.score,
      scope: reports.scope,
      status: reports.status,
      seconds: sql<number | null>`json_extract(${reports.metrics}, '$.timeSeconds')`,
      costUsd: sql<number | null>`json_extract(${reports.metrics}, '$.costUsd')`,
      friction: sql<number>`(select count(*) from ${frictionPoints} where ${frictionPoints.reportId} = ${reports.id})`,
    })
    .from(runs)
    .leftJoin(reports, eq(reports.runId, runs.id))
    .where(
      and(eq(runs.orgId, org), eq(runs.promptId, prompt.id), inArray(runs.status, ["completed", "failed"]), isLiveRun),
    )
    .orderBy(desc(runs.id))
    .limit(maxRuns)
    .all();
  const text = fillTemplate(prompt.text, prompt.templateDefaults ?? {});
  return rows
    .filter(
      ({ task, status }) =>
        (status === null || status === "published") &&
        task.text === text &&
        task.site === undefined &&
        task.workspace === undefined &&
        Bun.deepEquals(task.limits, suite.limits),
    )
    .toReversed();
}

/**
 * Whether a run reached its slot. A run that crashed or hit a limit did not. null: nothing checked it, or it failed for a reason that says nothing
 * about the product.
 */
function isReached({ task, outcome, score, scope, failureCause, ...run }: SuiteRunRow): boolean | null {
  if (task.declaredChecks.length === 0) return null;
  const report = outcome === null ? null : { outcome, score, seconds: run.seconds, costUsd: run.costUsd };
  const result = goalResultOf({ report, failureCause });
  if (result === "unfinished") return false;
  const isJudged = scope === "goal" && (result === "met" || result === "missed");
  return isJudged ? result === "met" : null;
}

function toResult(suite: Suite, members: Member[], runsOf: (member: Member | undefined) => SuiteRunRow[]) {
  const slots = suite.slots.map(({ slot }) => {
    const membersOfSlot = members.filter((each) => each.slot === slot);
    // The newest prompt of the slot counts. A changed prompt counts only if there is no other.
    const member = membersOfSlot.findLast(({ isChanged }) => !isChanged) ?? membersOfSlot.at(-1);
    return { slot, member, all: runsOf(member) };
  });
  const results = slots.map(({ slot, member, all }) => toSlotResult(slot, member, all));
  const { reached, judged } = totalsOf(results);
  return {
    slots: results,
    share: judged === 0 ? null : rounded(wilson(reached, judged), 3),
    costUsd: medianToFirstSuccess(slots, "costUsd", 4),
    seconds: medianToFirstSuccess(slots, "seconds", 1),
  };
}

function toSlotResult(slot: string, member: Member | undefined, all: SuiteRunRow[]): SlotResult {
  const ends = all.map(isReached);
  const judged = ends.filter((end) => end !== null).length;
  const reported = all.filter(({ outcome }) => outcome !== null);
  const points = reported.reduce((sum, { friction }) => sum + friction, 0);
  return {
    slot,
    promptId: member?.prompt.id ?? null,
    state: stateOf(member, all.length, judged),
    judged,
    reached: ends.filter((end) => end === true).length,
    friction: reported.length === 0 ? null : round(points / reported.length, 1),
  };
}

function stateOf(member: Member | undefined, ended: number, judged: number): SlotResult["state"] {
  if (member === undefined) return "missing";
  if (member.isChanged) return "changed";
  if (judged > 0) return "judged";
  return ended > 0 ? "not_judged" : "no_runs";
}

const totalsOf = (slots: Totals[]): Totals => ({
  reached: slots.reduce((sum, { reached }) => sum + reached, 0),
  judged: slots.reduce((sum, { judged }) => sum + judged, 0),
});

/**
 * For each slot that was reached, adds up what all runs took until the first success. Returns the median of these sums. A slot with an unknown value
 * is left out.
 */
function medianToFirstSuccess(slots: { all: SuiteRunRow[] }[], name: "seconds" | "costUsd", digits: number) {
  const sums = slots.flatMap(({ all }) => {
    const firstSuccess = all.findIndex((run) => isReached(run) === true);
    if (firstSuccess < 0) return [];
    const values = all.slice(0, firstSuccess + 1).map((run) => run[name]);
    return values.includes(null) ? [] : [values.reduce<number>((sum, value) => sum + (value ?? 0), 0)];
  });
  const estimate = medianInterval(sums);
  return estimate && rounded(estimate, digits);
}

/** Products compared on the slots on which both were judged, with at least four runs each. `delta` is in percentage points. */
function pairsOf(products: ProductResult["slots"][]): TestedPair[] {
  return products.flatMap((a, i) =>
    products.flatMap((b, j): TestedPair[] => {
      if (j <= i) return [];
      const both = a.flatMap((slot, at) => {
        const other = b[at];
        return other && slot.judged > 0 && other.judged > 0 ? [[slot, other] as const] : [];
      });
      const [first, second] = [totalsOf(both.map(([slot]) => slot)), totalsOf(both.map(([, other]) => other))];
      if (Math.min(first.judged, second.judged) < minRuns) return [];
      const p = fisherTest({ k: first.reached, n: first.judged }, { k: second.reached, n: second.judged });
      const delta = 100 * (second.reached / second.judged - first.reached / first.judged);
      // A matrix compares agents, but here products are compared.
      return [{ agents: [i, j], delta, p }];
    }),
  );
}

/** Why a product was not compared with others; null: there are no others, or it was never judged. */
function untestedStanding(shares: ProductResult["share"][], own: number): ProductResult["standing"] {
  const others = shares.some((share, i) => share !== null && i !== own);
  return shares[own] && others ? "too_few_runs" : null;
}
