import { and, eq, sql } from "drizzle-orm";
import type { Context, OrgId } from "../context.ts";
import { nextTime, nextTimes, type Schedule } from "../cron.ts";
import { prepared } from "../db/prepared.ts";
import { timeZoneOf } from "../db/rows.ts";
import { prompts } from "../db/tables/prompts.ts";
import { notFound } from "../errors.ts";
import { newUrlSecret, toIso } from "../schema.ts";
import type { AgentInfo } from "./agent-schema.ts";
import { chosenAgents } from "./agents.ts";
import { createPromptLists, toPromptSummary } from "./lists.ts";
import { type AgentParts, createPromptCheck, type PromptRow } from "./prompt-check.ts";
import type { Prompt, PromptInput, PromptPatch } from "./schema.ts";
import { checkedVarsOf } from "./template.ts";
import { createPromptWarnings } from "./warnings.ts";

export type Prompts = ReturnType<typeof createPrompts>;

type Parts = AgentParts & {};

const toAgentInfo = ({ version, ...agent }: ReturnType<Parts["listAgents"]>[number]): AgentInfo => ({
  ...agent,
  version: agent.objection === null ? version : null,
  providers: agent.providers ? [...agent.providers] : null,
  lacks: [...agent.lacks],
});

/** The settings that a prompt shows as they are stored. */
const choicesOf = (row: PromptRow) => ({
  wordings: row.wordings,
  frequency: row.frequency,
  runsPerEval: row.runsPerEval,
  targetProviderId: row.targetProviderId,
  additionalUrls: row.additionalUrls,
  templateDefaults: row.templateDefaults,
  declaredChecks: row.declaredChecks,
  workspace: row.workspace,
  agent: row.agent,
  model: row.model,
  agents: row.agents,
  limits: row.limits,
  reviewBeforePublishing: row.reviewBeforePublishing,
  isCanary: row.isCanary,
  tags: row.tags,
  successBar: row.successBar,
  supersedesByDefault: row.supersedesByDefault,
  isOnResultsPage: row.isOnResultsPage,
  workerLabels: row.workerLabels,
  baselineRequestId: row.baselineRequestId,
});

export function createPrompts({ db, config, now, newId, baseUrl, signals }: Context, parts: Parts) {
  const { check, agentOf, agentsOf, agentsFor } = createPromptCheck({ db, config }, parts);
  const byId = prepared(
    db
      .select()
      .from(prompts)
      .where(and(eq(prompts.orgId, sql.placeholder("org")), eq(prompts.id, sql.placeholder("id")))),
  );

  /** The row itself, for other features. Throws not_found. */
  function getPromptRow(org: OrgId, id: string): PromptRow {
    const row = byId.get({ org, id: id.toLowerCase() });
    if (!row) throw notFound(`No prompt has the ID ${id}.`);
    return row;
  }

  /** The schedule of a prompt that has one and is active; null for all others. */
  function scheduleOf({ id, orgId, status, frequency }: PromptRow): Schedule | null {
    if (frequency === null || status !== "active") return null;
    return { id, frequency, timeZone: timeZoneOf(db, orgId) };
  }

  const warningsOf = createPromptWarnings({ db }, agentsOf);

  function toPrompt(row: PromptRow): Prompt {
    const schedule = scheduleOf(row);
    return {
      ...toPromptSummary(row),
      ...choicesOf(row),
      hasPublicBadge: row.badgeToken !== null,
      badgeUrl: row.badgeToken === null ? null : `${baseUrl()}/badges/${row.badgeToken}.svg`,
      warnings: warningsOf(row, row.runsPerEval ?? 1),
      nextRunsAt: schedule ? nextTimes(schedule, now(), 3).map((at) => toIso(at)) : null,
    };
  }

  /** Restarts the schedule from now; slots that were due before are dropped. */
  function reschedule(row: PromptRow): PromptRow {
    const schedule = scheduleOf(row);
    return { ...row, nextSlotAt: schedule && nextTime(schedule, now()) };
  }

  return {
    ...createPromptLists({ db }),
    getPromptRow,
    agentOf,
    agentsOf,
    agentsFor,
    /** Every agent that this server knows, whether it can be used or not. */
    listAgents: (): AgentInfo[] => parts.listAgents().map(toAgentInfo),
    hasPrompt: (org: OrgId, id: string): boolean => byId.get({ org, id }) !== undefined,
    getPrompt: (org: OrgId, id: string): Prompt => toPrompt(getPromptRow(org, id)),
    /** Warnings about an evaluation with this many runs. Throws not_found. */
    warningsOf: (org: OrgId, id: string, runs: number): string[] => warningsOf(getPromptRow(org, id), runs),

    /**
     * Throws bad_request that names the field. `id`: a reserved ID, so that presets keep the times that were shown; if
     * it is taken, another one is created.
     */
    createPrompt(org: OrgId, input: PromptInput, id?: string): Prompt {
      const createdAt = now();
      const row = check(org, {
        id: id && !db.select({ id: prompts.id }).from(prompts).where(eq(prompts.id, id)).get() ? id : newId(createdAt),
        orgId: org,
        title: input.title ?? null,
        text: input.text,
        endGoal: input.endGoal ?? null,
        wordings: input.wordings ?? null,
        status: input.status ?? "active",
        frequency: input.frequency ?? null,
        runsPerEval: input.runsPerEval ?? null,
        targetProviderId: input.targetProviderId ?? null,
        additionalUrls: input.additionalUrls ?? null,
        templateVars: checkedVarsOf(input.text, input.endGoal ?? null),
        templateDefaults: input.templateDefaults ?? null,
        declaredChecks: input.declaredChecks ?? null,
        workspace: input.workspace ?? null,
        ...chosenAgents(input, { agent: null, model: null, agents: null }),
        limits: input.limits ?? null,
        reviewBeforePublishing: input.reviewBeforePublishing ?? false,
        isCanary: input.isCanary ?? false,
        tags: input.tags ?? [],
        successBar: input.successBar ?? null,
        supersedesByDefault: input.supersedesByDefault ?? false,
        isOnResultsPage: input.isOnResultsPage ?? false,
        workerLabels: input.workerLabels ?? [],
        badgeToken: input.hasPublicBadge ? newUrlSecret() : null,
        baselineRequestId: input.baselineRequestId ?? null,
        createdAt,
        nextSlotAt: null,
      });
      db.insert(prompts).values(reschedule(row)).run();
      signals.scheduleChanged.emit();
      return toPrompt(row);
    },

    /** Omitted fields keep their values. Throws not_found, and bad_request that names the field. */
    updatePrompt(org: OrgId, id: string, { hasPublicBadge, ...patch }: PromptPatch): Prompt {
      const before = getPromptRow(org, id);
      const { badgeToken: own } = before;
      const badgeToken = hasPublicBadge === undefined ? own : hasPublicBadge ? (own ?? newUrlSecret()) : null;
      const changed = { ...before, ...patch, badgeToken, ...chosenAgents(patch, before) };
      const isSame = changed.text === before.text && changed.endGoal === before.endGoal;
      const templateVars = isSame ? before.templateVars : checkedVarsOf(changed.text, changed.endGoal);
      const given = Object.entries(patch).flatMap(([name, value]) => (value === undefined ? [] : [name]));
      const row = check(org, { ...changed, templateVars }, given);
      const isMoved = row.frequency !== before.frequency || row.status !== before.status;
      db.update(prompts)
        .set(isMoved ? reschedule(row) : row)
        .where(and(eq(prompts.orgId, org), eq(prompts.id, row.id)))
        .run();
      if (isMoved) signals.scheduleChanged.emit();
      return toPrompt(row);
    },
  };
}
