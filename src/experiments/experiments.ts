import { and, count, desc, eq, inArray, sql } from "drizzle-orm";
import { isSkillFile } from "../agents/sandbox/skills.ts";
import type { Context, OrgId } from "../context.ts";
import { experiments } from "../db/tables/experiments.ts";
import { prompts } from "../db/tables/prompts.ts";
import { notFound } from "../errors.ts";
import type { Page, Paged } from "../http/paging.ts";
import { withoutUrlMapTokens } from "../net/mapping.ts";
import { titleText } from "../prompts/lists.ts";
import { titleOf } from "../reports/labels.ts";
import { toIso } from "../schema.ts";
import type { ExperimentAnalysis } from "./analysis.ts";
import { findEqualArm } from "./design.ts";
import { frictionOf } from "./friction.ts";
import { analyzeRuns, costOf, type ExperimentRow, falseAlarmsOf, labelOf, progressOf } from "./results.ts";
import type { Experiment, ExperimentSummary } from "./schema.ts";

/** Throws not_found. */
export function getExperimentRow({ db }: Context, org: OrgId, id: string): ExperimentRow {
  const row = db
    .select()
    .from(experiments)
    .where(and(eq(experiments.orgId, org), eq(experiments.id, id.toLowerCase())))
    .get();
  if (!row) throw notFound(`No experiment has the ID ${id}.`);
  return row;
}

/** Newest first. The analyses stay in the database, because they are large. */
export function listExperiments(ctx: Context, org: OrgId, { limit, offset }: Page): Paged<ExperimentSummary> {
  const { id, orgId, title, status, stopReason, everyWeeks, createdAt, completedAt, analysis } = experiments;
  const contrasts = sql<string>`(select json_group_array(json_object('arm', value ->> '$.arm', 'verdict', value ->> '$.verdict'))
    from json_each(${analysis}, '$.contrasts'))`;
  const where = eq(orgId, org);
  const rows = ctx.db
    .select({ id, title, status, stopReason, everyWeeks, createdAt, completedAt, contrasts })
    .from(experiments)
    .where(where)
    .orderBy(desc(id))
    .limit(limit)
    .offset(offset)
    .all();
  return {
    items: rows.map(({ contrasts, ...row }) => ({
      ...row,
      ...urlsOf(ctx, row.id),
      verdicts: JSON.parse(contrasts),
      progress: progressOf(ctx, { ...row, orgId: org }),
      createdAt: toIso(row.createdAt),
      completedAt: toIso(row.completedAt),
    })),
    total: ctx.db.select({ n: count() }).from(experiments).where(where).get()?.n ?? 0,
  };
}

const urlsOf = (ctx: Context, id: string): Pick<Experiment, "statusUrl" | "pageUrl"> => ({
  statusUrl: `${ctx.baseUrl()}/api/v1/experiments/${id}`,
  pageUrl: `${ctx.baseUrl()}/experiments/${id}`,
});

/** An experiment with the result of its ended runs. Throws not_found. */
export function getExperiment(ctx: Context, org: OrgId, experimentId: string): Experiment {
  const row = getExperimentRow(ctx, org, experimentId);
  const { id, title, status, stopReason, arms, promptIds, repeats, seed, everyWeeks, budgetUsd } = row;
  const request = { title, repeats, seed, everyWeeks, budgetUsd };
  const promptById = new Map(
    ctx.db
      .select({ id: prompts.id, title: prompts.title, text: titleText, basis: prompts.basis })
      .from(prompts)
      .where(and(eq(prompts.orgId, org), inArray(prompts.id, promptIds)))
      .all()
      .map((prompt) => [prompt.id, { title: titleOf(prompt), fromSkill: isSkillFile(prompt.basis?.url ?? "") }]),
  );
  return {
    id,
    ...request,
    status,
    stopReason,
    ...urlsOf(ctx, id),
    arms: arms.map((arm) => (arm.urlMap ? { ...arm, urlMap: withoutUrlMapTokens(arm.urlMap) } : arm)),
    prompts: promptIds.map((promptId) => ({
      ...(promptById.get(promptId) ?? { title: null, fromSkill: false }),
      id: promptId,
      shouldTrigger: labelOf(row, promptId),
    })),
    triggerOf: row.triggering?.of ?? null,
    spentUsd: row.completedAt === null ? costOf(ctx, row) : row.spentUsd,
    progress: progressOf(ctx, row),
    friction: frictionOf(ctx, row),
    falseAlarms: falseAlarmsOf(ctx, row),
    analysis: (row.analysis as ExperimentAnalysis | null) ?? analyzeRuns(ctx, row),
    createdAt: toIso(row.createdAt),
    completedAt: toIso(row.completedAt),
  };
}

/** How many experiments are searched for a comparison of the base with itself. */
const maxSearched = 200;

/** The newest completed comparison of a prompt with itself; null if none of the last 200 experiments is one. */
export function findSelfComparison(ctx: Context, org: OrgId, promptId: string): Experiment | null {
  const { id, arms, promptIds } = experiments;
  const isCompleted = and(eq(experiments.orgId, org), eq(experiments.status, "completed"));
  const row = ctx.db
    .select({ id, arms, promptIds })
    .from(experiments)
    .where(isCompleted)
    .orderBy(desc(experiments.id))
    .limit(maxSearched)
    .all()
    .find((each) => each.promptIds.includes(promptId) && findEqualArm(each.arms) >= 0);
  return row ? getExperiment(ctx, org, row.id) : null;
}
