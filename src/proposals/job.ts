import { eq } from "drizzle-orm";
import { AgentFailure } from "../agents/agent.ts";
import type { ReadingRefusal } from "../agents/explorer/docs-reading.ts";
import { toFailure } from "../agents/failure.ts";
import type { Context, OrgId } from "../context.ts";
import type { Tx } from "../db/open.ts";
import { endedAt } from "../db/rows.ts";
import { proposalSets } from "../db/tables/proposals.ts";
import { AppError } from "../errors.ts";
import { JobFailure, type JobHandler } from "../jobs/handler.ts";
import type { Lease } from "../jobs/queue.ts";
import { listModelSecrets } from "../models/models.ts";
import { createRedaction } from "../redaction/redaction.ts";
import { mapTexts } from "../redaction/texts.ts";
import type { RunHost } from "../runs/attempt.ts";
import { proposeFromDemand } from "./demand.ts";
import { defaultProposals, type ProposalSource, type TaskProposal } from "./proposal.ts";
import { failedColumns, type ProposalSetRow } from "./proposal-sets.ts";
import { proposeTasks, saysSame } from "./propose.ts";
import { type ModelResult, proposeWithModel } from "./propose-with-model.ts";

const ofLease = ({ subject }: Lease) => eq(proposalSets.id, subject);

/** The maximum share of proposals that come from what agents asked for and didn't find. */
const demandShare = 0.5;

const refusalTexts: Record<ReadingRefusal, string> = {
  robots: "robots.txt of the host doesn't allow programs to read it",
  sign_in: "it asks to sign in; docs behind a sign-in can't be read",
  no_text: "it has no text, or isn't there; pages that need scripts can't be read",
  no_mcp_server: "it doesn't answer as an MCP server over HTTP, or asks to sign in",
  no_api_description: "it is no OpenAPI description in JSON or YAML, or it is too large",
};

/** The job of a set: read the docs, and propose prompts. */
export const createProposalJob = (ctx: Context, host: RunHost): JobHandler => ({
  onStart(tx, lease) {
    tx.update(proposalSets).set({ status: "running" }).where(ofLease(lease)).run();
  },
  run: (lease, stop) =>
    makeProposals(ctx, host, lease, stop).catch((error: unknown) => {
      throw toJobFailure(error);
    }),
  onRequeue(tx, lease) {
    tx.update(proposalSets).set({ status: "pending" }).where(ofLease(lease)).run();
  },
  onFailure(tx, lease, { code, detail }) {
    tx.update(proposalSets)
      .set(failedColumns(ctx, code ?? "internal_error", detail))
      .where(ofLease(lease))
      .run();
  },
  costOf: ({ subject }) => findCost(ctx, subject),
});

/** What all attempts of a set have cost so far, in USD. */
const findCost = ({ db }: Context, id: string): number =>
  db.select({ usd: proposalSets.costUsd }).from(proposalSets).where(eq(proposalSets.id, id)).get()?.usd ?? 0;

/** Returns what to store. Throws a JobFailure, AgentFailure, and AppError if the model can't be called. */
async function makeProposals(ctx: Context, host: RunHost, lease: Lease, stop: AbortSignal): Promise<(tx: Tx) => void> {
  const row = ctx.db.select().from(proposalSets).where(ofLease(lease)).get() as ProposalSetRow | undefined;
  if (!row) throw new JobFailure(toFailure("cancelled", "it was deleted"), "never");
  const { request } = row;
  const org = row.orgId as OrgId;
  const count = request.count ?? defaultProposals;
  // These are imported only when a job runs, because they load a package that reads pages. Loading it takes long.
  const { readSource, toSource } = await import("./reading.ts");
  const { tryChecks } = await import("./check-trials.ts");
  const startedAt = ctx.monotonicNow();
  const reading = await readSource(ctx, host, `${row.id}-${lease.attempt}`, request, stop);
  const readMs = Math.round(ctx.monotonicNow() - startedAt);
  if ("refusal" in reading) {
    const { refusal, url } = reading;
    const failure = failedColumns(ctx, refusal, `${url} was not read: ${refusalTexts[refusal]}.`);
    return (tx) => tx.update(proposalSets).set(failure).where(ofLease(lease)).run();
  }
  const source = toSource(request, reading, count);
  const { proposals: ofDocs, dropped, costUsd } = await proposeFromDocs(ctx, row, source, stop);
  const ofDemand = request.includeDemand === false ? [] : proposeFromDemand(ctx, org, source);
  const trialRequest = { org, id: `${row.id}-${lease.attempt}`, request, stop };
  const allProposals = mixProposals(ofDocs, ofDemand, count);
  const { proposals, droppedCount } = await tryChecks(ctx, host, allProposals, trialRequest);
  const droppedByTrials = droppedCount === 0 ? [] : [{ reason: "check_passes" as const, count: droppedCount }];
  const { clean } = createRedaction(listModelSecrets(ctx, org));
  // Files may be large, and nothing needs them anymore.
  const { files: _, ...requestWithoutFiles } = request;
  return (tx) =>
    tx
      .update(proposalSets)
      .set({
        status: "completed",
        request: requestWithoutFiles,
        pages: reading.pages.length,
        readMs,
        costUsd,
        proposals: mapTexts(proposals, clean) as TaskProposal[],
        dropped: [...dropped, ...droppedByTrials],
        completedAt: endedAt(ctx.now(), proposalSets.createdAt),
      })
      .where(ofLease(lease))
      .run();
}

/**
 * Proposes by rules, or with the model that was requested. If the model proposes too few tasks, rules add more. Throws what `proposeWithModel`
 * throws.
 */
async function proposeFromDocs(
  ctx: Context,
  row: ProposalSetRow,
  source: ProposalSource,
  stop: AbortSignal,
): Promise<ModelResult> {
  const ofRules = proposeTasks(source);
  const { model } = row.request;
  if (model === undefined) return { ...ofRules, costUsd: 0 };
  const ofModel = await proposeWithModel(ctx, row, model, source, stop);
  const others = ofRules.proposals.filter((proposal) => !ofModel.proposals.some((each) => saysSame(each, proposal)));
  return { ...ofModel, proposals: [...ofModel.proposals, ...others].slice(0, source.count) };
}

/** Adds proposals from what agents asked for at the end. They get up to half of the places, or more if `ofDocs` leaves more places free. */
function mixProposals(ofDocs: TaskProposal[], ofDemand: TaskProposal[], count: number): TaskProposal[] {
  const titles = new Set(ofDocs.map(({ title }) => title.toLowerCase()));
  const places = Math.max(count - ofDocs.length, Math.floor(count * demandShare));
  const additions = ofDemand.filter(({ title }) => !titles.has(title.toLowerCase())).slice(0, places);
  return [...ofDocs.slice(0, count - additions.length), ...additions];
}

function toJobFailure(error: unknown): unknown {
  if (error instanceof AppError) return new JobFailure(toFailure("model_key_refused", error.detail), "never");
  if (!(error instanceof AgentFailure)) return error;
  const { retryable, retryAfterMs } = error.options;
  return new JobFailure(error.failure, retryable ? "fault" : "never", retryAfterMs);
}
