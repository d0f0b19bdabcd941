import { and, count, desc, eq, inArray } from "drizzle-orm";
import { descriptionIn, isSkillFile } from "../agents/sandbox/skills.ts";
import { changesOf, recordAudit } from "../audit/entries.ts";
import type { Context, OrgId } from "../context.ts";
import { endedAt } from "../db/rows.ts";
import { proposalSets } from "../db/tables/proposals.ts";
import { AppError, invalidField, notFound } from "../errors.ts";
import type { Page, Paged } from "../http/paging.ts";
import { enqueue } from "../jobs/queue.ts";
import { getModel } from "../models/models.ts";
import { objectionToAddress } from "../providers/providers.ts";
import { checkBudget } from "../runs/budgets.ts";
import { checkHttpUrl, toIso } from "../schema.ts";
import { round } from "../stats/repeats.ts";
import type { DroppedCandidates, TaskProposal } from "./proposal.ts";
import { type AcceptedProposalRequest, maxFileChars, type ProposalRequest, type ProposalSet } from "./schema.ts";

/** How long a set is kept. */
export const proposalRetentionMs = 30 * 24 * 3600_000;
/** How many sets of an organization may be waiting or in progress. */
const maxUnfinished = 5;

/** A set as it is stored, with the types of its JSON. */
export type ProposalSetRow = Omit<typeof proposalSets.$inferSelect, "request" | "proposals" | "dropped"> & {
  request: ProposalRequest;
  proposals: TaskProposal[] | null;
  dropped: DroppedCandidates[] | null;
};

/**
 * Accepts a request for proposals, and resolves once it is on disk. A job makes the proposals. Throws bad_request, which names the field,
 * rate_limited while too many sets of the organization are unfinished, and conflict if the model can't be called or paid for.
 */
export async function requestProposals(
  ctx: Context,
  org: OrgId,
  request: ProposalRequest,
): Promise<AcceptedProposalRequest> {
  checkRequest(ctx, org, request);
  const { docsUrl, model } = request;
  const createdAt = ctx.now();
  const row: ProposalSetRow = {
    id: ctx.newId(createdAt),
    orgId: org,
    status: "pending",
    request,
    pages: null,
    readMs: null,
    costUsd: null,
    proposals: null,
    dropped: null,
    accepted: {},
    failureCode: null,
    failureDetail: null,
    createdAt,
    completedAt: null,
  };
  await ctx.commit((tx) => {
    const isUnfinished = and(eq(proposalSets.orgId, org), inArray(proposalSets.status, ["pending", "running"]));
    const unfinished = tx.select({ n: count() }).from(proposalSets).where(isUnfinished).get()?.n ?? 0;
    if (unfinished >= maxUnfinished)
      throw new AppError("rate_limited", `${maxUnfinished} requests for proposals are unfinished. Try again later.`, {
        retryAfterSeconds: 30,
      });
    tx.insert(proposalSets).values(row).run();
    recordAudit(ctx, org, "proposal_set.requested", { id: row.id }, changesOf({}, { docsUrl, model }));
    const { host } = new URL(docsUrl);
    enqueue(ctx, tx, { pool: "runs", kind: "proposal", subject: row.id, orgId: org, host, maxAttempts: 3 });
  });
  ctx.signals.jobQueued.emit();
  return { proposalSetId: row.id, statusUrl: `${ctx.baseUrl()}/api/v1/proposals/${row.id}` };
}

/** Throws bad_request, which names the field, and conflict if the model can't be called or the organization's budget is spent. */
function checkRequest(ctx: Context, org: OrgId, request: ProposalRequest): void {
  const { docsUrl, openapiUrl, mcpUrl, files = [], model, maxUsd } = request;
  for (const [field, url] of Object.entries({ docsUrl, openapiUrl, mcpUrl })) {
    if (url === undefined) continue;
    checkHttpUrl(field, url);
    const objection = objectionToAddress(ctx, url);
    if (objection) throw invalidField(field, objection);
  }
  for (const [index, { name, text }] of files.entries()) if (isSkillFile(name)) checkSkill(`files.${index}.text`, text);
  if (files.reduce((chars, { text }) => chars + text.length, 0) > maxFileChars)
    throw invalidField("files", `all texts together must have at most ${maxFileChars} characters`);
  if (model === undefined && maxUsd !== undefined)
    throw invalidField("maxUsd", "only a model has a cost; set model too");
  if (model === undefined) return;
  getModel(ctx, org, model);
  // There is no prompt, so only the budget of the organization applies.
  checkBudget(ctx, org, null);
}

/** Refuses a skill without a description, because it names no tasks. Throws bad_request, which names the field. */
export function checkSkill(field: string, text: string): void {
  if (descriptionIn(text) === "") throw invalidField(field, "has no description in its front matter");
}

/** Throws not_found. */
export const getProposalSet = (ctx: Context, org: OrgId, id: string): ProposalSet =>
  toProposalSet(getProposalSetRow(ctx, org, id));

/** Newest first. */
export function listProposalSets(ctx: Context, org: OrgId, { limit, offset }: Page): Paged<ProposalSet> {
  const ofOrg = eq(proposalSets.orgId, org);
  const rows = ctx.db
    .select()
    .from(proposalSets)
    .where(ofOrg)
    .orderBy(desc(proposalSets.id))
    .limit(limit)
    .offset(offset)
    .all();
  const total = ctx.db.select({ n: count() }).from(proposalSets).where(ofOrg).get()?.n ?? 0;
  return { items: rows.map((row) => toProposalSet(row as ProposalSetRow)), total };
}

/** The row itself. Throws not_found. */
export function getProposalSetRow({ db }: Context, org: OrgId, id: string): ProposalSetRow {
  const ofOrg = and(eq(proposalSets.orgId, org), eq(proposalSets.id, id.toLowerCase()));
  const row = db.select().from(proposalSets).where(ofOrg).get();
  if (!row) throw notFound(`No set of proposals has the ID ${id}. Sets are kept for 30 days.`);
  return row as ProposalSetRow;
}

/** The columns of `proposalSets` to update when a set fails. */
export const failedColumns = (ctx: Context, failureCode: string, failureDetail: string) => ({
  status: "failed" as const,
  failureCode,
  failureDetail,
  completedAt: endedAt(ctx.now(), proposalSets.createdAt),
});

function toProposalSet(row: ProposalSetRow): ProposalSet {
  const { id, status, request, pages, readMs, costUsd, proposals, dropped, accepted } = row;
  const { failureCode: code, failureDetail: detail, createdAt, completedAt } = row;
  return {
    proposalSetId: id,
    status,
    docsUrl: request.docsUrl,
    read: pages === null || readMs === null ? null : { pages, seconds: round(readMs / 1000, 1) },
    costUsd: round(costUsd, 6),
    proposals: proposals ?? [],
    dropped: dropped ?? [],
    prompts: accepted,
    failure: code === null || detail === null ? null : { code, detail },
    createdAt: toIso(createdAt),
    completedAt: toIso(completedAt),
    expiresAt: toIso(createdAt + proposalRetentionMs),
  };
}
