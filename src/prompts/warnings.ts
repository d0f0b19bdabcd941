import { and, desc, eq, ne, sql } from "drizzle-orm";
import { isRuleBased } from "../agents/agent.ts";
import type { Context, OrgId } from "../context.ts";
import { bound, literal, statement } from "../db/prepared.ts";
import { gates } from "../db/tables/gates.ts";
import { providers } from "../db/tables/prompts.ts";
import { scheduledEvaluations } from "../db/tables/schedules.ts";
import { minRuns } from "../stats/power.ts";
import { agentsOfPrompt, type PromptRow } from "./prompt-check.ts";
import { defaultStartUrls } from "./start-urls.ts";

/** Failed scheduled evaluations in a row after which a prompt is paused. */
export const maxFailures = 5;
/** Reason of the scheduled evaluation that was not run because its prompt was paused. */
export const pausedReason = `paused, because ${maxFailures} scheduled evaluations in a row failed`;
const pausedWarning = `evald paused this prompt because ${maxFailures} scheduled evaluations in a row failed. Fix the cause, then resume it.`;

const [org, id] = [bound("org"), bound("id")];

/** A gate of a prompt. */
const gateOfPrompt = statement((db) =>
  db
    .select({ id: gates.id })
    .from(gates)
    .where(and(eq(gates.orgId, org), eq(gates.promptId, id)))
    .limit(literal(1)),
);

/** A gate of several prompts that contains a prompt. */
const multiPromptGate = statement((db) =>
  db
    .select({ id: gates.id })
    .from(gates)
    .where(
      and(
        eq(gates.orgId, org),
        sql`exists (select 1 from json_each(${gates.others}) where value ->> 'promptId' = ${id})`,
      ),
    )
    .limit(literal(1)),
);

/** The latest scheduled evaluation of a prompt. */
const latestEvaluation = statement((db) =>
  db
    .select({ reason: scheduledEvaluations.reason, at: scheduledEvaluations.createdAt })
    .from(scheduledEvaluations)
    .where(
      and(
        eq(scheduledEvaluations.orgId, org),
        eq(scheduledEvaluations.promptId, id),
        // While an evaluation waits, later ones are skipped. So they don't say how the latest one ended.
        ne(scheduledEvaluations.outcome, "skipped_overlap"),
      ),
    )
    .orderBy(desc(scheduledEvaluations.scheduledAt))
    .limit(literal(1)),
);

/** The URLs of a provider. */
const providerOf = statement((db) =>
  db
    .select({ docsUrl: providers.docsUrl, productUrl: providers.productUrl })
    .from(providers)
    .where(and(eq(providers.orgId, org), eq(providers.id, id))),
);

/** When evald paused the schedule of a prompt, epoch ms; null: it didn't, or the prompt was evaluated since. */
export function findPausedAt(ctx: Context, org: string, promptId: string): number | null {
  const latest = latestEvaluation(ctx.db).get({ org, id: promptId });
  return latest?.reason === pausedReason ? latest.at : null;
}

/** What may go wrong with an evaluation of a prompt, in sentences. `runs`: the number of its runs. */
export function warningsOfPrompt(ctx: Context, row: PromptRow, runs: number): string[] {
  const isPausedByEvald =
    row.frequency !== null && row.status === "paused" && findPausedAt(ctx, row.orgId, row.id) !== null;
  const scheduleWarnings = isPausedByEvald ? [pausedWarning] : startUrlWarnings(ctx, row);
  return [...scheduleWarnings, ...agentWarnings(ctx, row, runs)];
}

/**
 * Warns if runs have no address. A prompt without an address is accepted if it has no schedule, because a urlMap or the value of a variable may give
 * its runs one. A scheduled prompt may lose its address together with its provider.
 */
function startUrlWarnings(ctx: Context, row: PromptRow): string[] {
  if (row.frequency === null && row.templateVars !== null) return [];
  const provider = providerOf(ctx.db).get({ org: row.orgId, id: row.targetProviderId ?? "" }) ?? null;
  if (defaultStartUrls(row, provider).length > 0) return [];
  const which = row.frequency === null ? "Runs without a urlMap" : "Scheduled runs";
  return [
    `${which} will fail, because they have no start URL. Set additionalUrls or a targetProviderId whose provider has a docsUrl, or name a URL in text.`,
  ];
}

function agentWarnings(ctx: Context, row: PromptRow, runs: number): string[] {
  const key = { org: row.orgId, id: row.id };
  const agents = agentsOfPrompt(ctx, row.orgId as OrgId, row).map(({ agent }) => agent);
  return [
    ...(agents.some(isRuleBased) ? explorerWarnings(row) : []),
    ...(agents.every(isRuleBased) ? [] : runCountWarnings(ctx, row, key, runs)),
  ];
}

function runCountWarnings(ctx: Context, row: PromptRow, key: { org: string; id: string }, runs: number): string[] {
  if (runs >= minRuns) return [];
  const isCompared =
    row.baselineRequestId !== null || gateOfPrompt(ctx.db).get(key) || multiPromptGate(ctx.db).get(key);
  if (!isCompared) return [];
  return [
    `Comparisons need at least ${minRuns} runs per evaluation, and this prompt makes ${runs}. Set runsPerEval to 5.`,
  ];
}

function explorerWarnings({ workspace, declaredChecks }: PromptRow): string[] {
  const ignoredFields = [
    ...(workspace ? ["workspace"] : []),
    ...(declaredChecks?.some(({ url }) => url === undefined) ? ["declaredChecks with a command or file"] : []),
  ];
  if (ignoredFields.length === 0) return [];
  return [`The explorer has no workspace and ignores ${ignoredFields.join(" and ")}. Use an agent with a model.`];
}
