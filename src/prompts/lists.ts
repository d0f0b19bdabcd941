import { and, asc, count, desc, eq, isNotNull, isNull, ne, notInArray, or, type SQL, sql } from "drizzle-orm";
import type { Context, OrgId } from "../context.ts";
import { type promptStatuses, prompts } from "../db/tables/prompts.ts";
import { reports } from "../db/tables/reports.ts";
import { isLiveRun, runs } from "../db/tables/runs.ts";
import type { Page, Paged } from "../http/paging.ts";
import { columnOf, isDescending, type Sort } from "../http/sorting.ts";
import { toIso } from "../schema.ts";
import type { PromptSummary } from "./schema.ts";

type Status = (typeof promptStatuses)[number];

/** A prompt in a list. */
export type PromptItem = {
  id: string;
  title: string | null;
  /** The first 300 characters. */
  text: string;
  status: Status;
  frequency: string | null;
  nextEvaluationAt: string | null;
  tags: string[];
};

/** `status` all: all prompts with the archived ones; default: all others. `search` matches title and text, ignoring case. */
export type PromptFilter = { search?: string; status?: Status | "all"; tag?: string };

export const promptColumns = ["title", "score", "next"] as const;
export type PromptSort = Sort<(typeof promptColumns)[number]>;

/** Maximum number of prompts in a select. */
const maxChoices = 200;

export const promptSummaryColumns = {
  id: prompts.id,
  title: prompts.title,
  text: prompts.text,
  endGoal: prompts.endGoal,
  status: prompts.status,
  templateVars: prompts.templateVars,
  createdAt: prompts.createdAt,
};

/** Enough of a prompt's text to name a prompt that has no title. */
export const titleText = sql<string>`substr(${prompts.text}, 1, 300)`;

const itemColumns = {
  id: prompts.id,
  title: prompts.title,
  text: titleText,
  status: prompts.status,
  frequency: prompts.frequency,
  nextEvaluationAt: prompts.nextEvaluationAt,
  tags: prompts.tags,
};

/** A row with the fields of a summary as responses show it. */
export const toPromptSummary = (row: Omit<PromptSummary, "createdAt"> & { createdAt: number }): PromptSummary => ({
  ...row,
  createdAt: toIso(row.createdAt),
});

const toItem = (row: Omit<PromptItem, "nextEvaluationAt"> & { nextEvaluationAt: number | null }): PromptItem => ({
  ...row,
  nextEvaluationAt: toIso(row.nextEvaluationAt),
});

/** Whether a prompt has the tag. */
export const hasTag = (tag: string): SQL => sql`exists (select 1 from json_each(${prompts.tags}) where value = ${tag})`;

function promptCondition(org: OrgId, { search, status, tag }: PromptFilter): SQL | undefined {
  const contains = (column: typeof prompts.title | typeof prompts.text) =>
    sql`instr(lower(${column}), ${search?.toLowerCase()}) > 0`;
  return and(
    eq(prompts.orgId, org),
    status === undefined ? ne(prompts.status, "archived") : undefined,
    status === undefined || status === "all" ? undefined : eq(prompts.status, status),
    tag === undefined ? undefined : hasTag(tag),
    search ? or(contains(prompts.title), contains(prompts.text)) : undefined,
  );
}

const whereLive = sql`${reports.status} = 'published' and ${isLiveRun}`;

/** The score of the report that a prompt shows: the newest live report by the first agent of its evaluation. */
const latestScore = sql`(
  select ${reports.score} from ${runs} join ${reports} on ${reports.runId} = ${runs.id}
  where ${runs.orgId} = ${prompts.orgId} and ${runs.evalRequestId} = (
    select ${runs.evalRequestId} from ${reports} join ${runs} on ${runs.id} = ${reports.runId}
    where ${reports.orgId} = ${prompts.orgId} and ${reports.promptId} = ${prompts.id} and ${whereLive}
    order by ${reports.runId} desc limit 1
  ) and ${whereLive}
  order by ${runs.agentIndex} > 0, ${runs.id} desc limit 1
)`;

const sortKeys = {
  title: sql`lower(coalesce(${prompts.title}, ${prompts.text}))`,
  score: latestScore,
  next: sql`${prompts.nextEvaluationAt}`,
};

/** Prompts without a value are last in both directions. */
const orderOf = (sort: PromptSort | undefined): SQL[] => {
  if (sort === undefined) return [desc(prompts.id)];
  const key = sortKeys[columnOf(sort)];
  return [isDescending(sort) ? sql`${key} desc nulls last` : sql`${key} asc nulls last`, desc(prompts.id)];
};

/** Prompts on a results page. */
const maxResults = 100;

/** A page of the matching prompts, with the fields that lists show. */
export function listPromptItems(
  ctx: Context,
  org: OrgId,
  { sort, ...filter }: PromptFilter & { sort?: PromptSort },
  { limit, offset }: Page,
): Paged<PromptItem> {
  const where = promptCondition(org, filter);
  const rows = ctx.db
    .select(itemColumns)
    .from(prompts)
    .where(where)
    .orderBy(...orderOf(sort))
    .limit(limit)
    .offset(offset);
  return { items: rows.all().map(toItem), total: countPrompts(ctx, where) };
}

/** A page of prompts, newest first. `tag`: only prompts with it. */
export function listPrompts(
  ctx: Context,
  org: OrgId,
  { limit, offset, includeArchived, tag }: Page & { includeArchived: boolean; tag?: string },
): Paged<PromptSummary> {
  const where = promptCondition(org, { status: includeArchived ? "all" : undefined, tag });
  const rows = ctx.db
    .select(promptSummaryColumns)
    .from(prompts)
    .where(where)
    .orderBy(desc(prompts.id))
    .limit(limit)
    .offset(offset);
  return { items: rows.all().map(toPromptSummary), total: countPrompts(ctx, where) };
}

/** The prompt whose public badge has this token; null: none, or it was revoked. */
export function findPromptByBadge(ctx: Context, token: string) {
  const row = ctx.db
    .select({ org: prompts.orgId, promptId: prompts.id, status: prompts.status })
    .from(prompts)
    .where(eq(prompts.badgeToken, token))
    .get();
  return row ? { org: row.org as OrgId, promptId: row.promptId, isArchived: row.status === "archived" } : null;
}

/** The prompts on the results page of an organization, at most 100, by title. Archived prompts are left out. */
export const listPromptsOnResultsPage = (
  ctx: Context,
  org: OrgId,
): { id: string; title: string | null; text: string }[] =>
  ctx.db
    .select({ id: prompts.id, title: prompts.title, text: titleText })
    .from(prompts)
    .where(and(promptCondition(org, {}), eq(prompts.isOnResultsPage, true)))
    .orderBy(sortKeys.title, asc(prompts.id))
    .limit(maxResults)
    .all();

/** The tags of the prompts that are not archived, in alphabetical order. */
export const listTags = (ctx: Context, org: OrgId): string[] =>
  ctx.db
    .selectDistinct({ tag: sql<string>`value` })
    .from(sql`${prompts}, json_each(${prompts.tags})`)
    .where(promptCondition(org, {}))
    .orderBy(sql`value`)
    .all()
    .map(({ tag }) => tag);

/** Options of a filter by prompt: the newest 200, including archived ones. */
export const listPromptChoices = (ctx: Context, org: OrgId): PromptItem[] =>
  listPromptItems(ctx, org, { status: "all" }, { limit: maxChoices, offset: 0 }).items;

/** The ID of the first prompt that is not archived and not of one of these providers; null if there is none. */
export function findFirstPrompt(ctx: Context, org: OrgId, exceptProviders: string[]): string | null {
  const whereOther = or(isNull(prompts.targetProviderId), notInArray(prompts.targetProviderId, exceptProviders));
  const row = ctx.db
    .select({ id: prompts.id })
    .from(prompts)
    .where(and(promptCondition(org, {}), whereOther))
    .orderBy(asc(prompts.id))
    .limit(1)
    .get();
  return row?.id ?? null;
}

/** The prompts whose schedule runs next, soonest first. */
export const listScheduledPrompts = (ctx: Context, org: OrgId, limit: number): PromptItem[] =>
  ctx.db
    .select(itemColumns)
    .from(prompts)
    .where(and(eq(prompts.orgId, org), isNotNull(prompts.nextEvaluationAt)))
    .orderBy(asc(prompts.nextEvaluationAt))
    .limit(limit)
    .all()
    .map(toItem);

const countPrompts = (ctx: Context, where: SQL | undefined) =>
  ctx.db.select({ n: count() }).from(prompts).where(where).get()?.n ?? 0;
