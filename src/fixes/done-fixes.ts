import { type Static, Type } from "@sinclair/typebox";
import { and, count, desc, eq } from "drizzle-orm";
import { changesOf, recordAudit } from "../audit/entries.ts";
import type { Context, OrgId } from "../context.ts";
import { fixes, frictionLifecycles, frictionPoints, recommendations } from "../db/tables/friction.ts";
import { reports } from "../db/tables/reports.ts";
import { runs } from "../db/tables/runs.ts";
import { conflict, notFound } from "../errors.ts";
import { type Fix, fixStatuses } from "../friction/fix-schema.ts";
import { fixRowsOf, toFix } from "../friction/fixes.ts";
import { type Page, type Paged, paginate } from "../http/paging.ts";
import { getPromptRow } from "../prompts/prompts.ts";
import { acceptEval, type EvalSource } from "../runs/requests.ts";
import { MappedUrl, mapOf, maxMappedHosts, Nullable, OneOf } from "../schema.ts";

export const DoneInput = Type.Object(
  {
    promptId: Type.String({ format: "uuid", description: "Prompt whose reports recommend it" }),
    note: Type.Optional(Nullable(Type.String({ maxLength: 2000, description: "What was changed" }))),
    runs: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 50,
        description: "Minimum number of verification runs; never fewer than before or than runsPerEval",
      }),
    ),
    urlMap: Type.Optional(
      mapOf(MappedUrl, {
        maxProperties: maxMappedHosts,
        description: "URL map of the verification runs; default: that of the run that hit it last",
      }),
    ),
  },
  {
    title: "DoneInput",
    examples: [
      { promptId: "0199f3a1-5d7c-7b1e-9c55-3f6a2f0d8e11", note: "The link points to /reference/clients now." },
    ],
  },
);
type DoneInput = Static<typeof DoneInput>;

export const fixFilter = {
  promptId: Type.String({ format: "uuid" }),
  status: Type.Optional(OneOf(fixStatuses)),
};

/** The number of runs that `markFixDone` requests by default; null if no published report has the friction point. */
export function countVerificationRuns(ctx: Context, org: OrgId, promptId: string, fingerprint: string): number | null {
  const latest = findLatest(ctx, org, promptId, fingerprint);
  const { runsPerEval } = getPromptRow(ctx, org, promptId);
  return latest && runsToVerify(ctx, org, latest.run.evalRequestId, runsPerEval);
}

/**
 * Marks a recommended fix as done, by the fingerprint of one of its friction points. To verify it, requests as many runs as the last evaluation had.
 * Throws not_found, conflict while the fix is being verified, and what requesting an evaluation throws.
 */
export async function markFixDone(
  ctx: Context,
  org: OrgId,
  fingerprint: string,
  input: DoneInput,
  { by, ...source }: EvalSource & { by: string },
): Promise<Fix> {
  const prompt = getPromptRow(ctx, org, input.promptId);
  const { report, run } = getLatest(ctx, org, prompt.id, fingerprint);
  const { title, fingerprints } = recommendationOf(ctx, report.id, fingerprint);
  const createdAt = ctx.now();
  const fix = await ctx.commit((tx) => {
    const unverified = fixRowsOf(ctx, org, prompt.id)
      .filter((row) => row.fingerprints.some((each) => fingerprints.includes(each)))
      .map((row) => toFix(ctx, row))
      .find(({ status }) => status === "running");
    if (unverified)
      throw conflict(
        `The fix was marked done at ${unverified.createdAt}, and the runs of ${unverified.after.evalRequestId} are still in progress.`,
      );
    const { evalRequestId } = acceptEval(ctx, tx, org, prompt.id, {
      urlMap: input.urlMap ?? run.urlMap,
      templateArgs: run.templateArgs ?? undefined,
      runs: Math.max(runsToVerify(ctx, org, run.evalRequestId, prompt.runsPerEval), input.runs ?? 1),
      ...source,
    });
    const row = {
      id: ctx.newId(createdAt),
      orgId: org,
      promptId: prompt.id,
      title,
      fingerprints,
      doneBy: by,
      note: input.note ?? null,
      createdAt,
      beforeId: run.evalRequestId,
      afterId: evalRequestId,
    };
    tx.insert(fixes).values(row).run();
    const changes = changesOf({}, { promptId: row.promptId, note: row.note });
    recordAudit(ctx, org, "fix.done", { id: row.id, name: title }, changes);
    return row;
  });
  ctx.signals.jobQueued.emit();
  return toFix(ctx, fix);
}

/** Recommended fixes of a prompt that were marked done, newest first. Throws not_found. */
export function listDoneFixes(
  ctx: Context,
  org: OrgId,
  { promptId, status }: { promptId: string; status?: Fix["status"] },
  page: Page,
): Paged<Fix> {
  const rows = fixRowsOf(ctx, org, getPromptRow(ctx, org, promptId).id);
  if (status !== undefined)
    return paginate(
      rows.map((row) => toFix(ctx, row)).filter((fix) => fix.status === status),
      page,
    );
  const { items, total } = paginate(rows, page);
  return { items: items.map((row) => toFix(ctx, row)), total };
}

/** The newest published report with a friction point, live docs first. */
function findLatest(ctx: Context, org: OrgId, promptId: string, fingerprint: string) {
  const rows = ctx.db
    .select({ preview: frictionLifecycles.preview, report: reports, run: runs })
    .from(frictionLifecycles)
    .innerJoin(reports, eq(reports.id, frictionLifecycles.reportId))
    .innerJoin(runs, eq(runs.id, reports.runId))
    .where(
      and(
        eq(frictionLifecycles.orgId, org),
        eq(frictionLifecycles.promptId, promptId),
        eq(frictionLifecycles.fingerprint, fingerprint),
      ),
    )
    .orderBy(desc(frictionLifecycles.lastSeenAt))
    .all();
  return rows.find(({ preview }) => preview === "") ?? rows[0] ?? null;
}

/** Throws not_found. */
function getLatest(ctx: Context, org: OrgId, promptId: string, fingerprint: string) {
  const latest = findLatest(ctx, org, promptId, fingerprint);
  if (!latest)
    throw notFound(
      `No published report of prompt ${promptId} has a friction point with the fingerprint ${fingerprint}.`,
    );
  return latest;
}

/** The recommended fix for a friction point in a report, and all friction points that it should remove. */
function recommendationOf(ctx: Context, reportId: string, fingerprint: string) {
  const points = ctx.db.select().from(frictionPoints).where(eq(frictionPoints.reportId, reportId)).all();
  const point = points.find((point) => point.fingerprint === fingerprint);
  const rows = ctx.db.select().from(recommendations).where(eq(recommendations.reportId, reportId)).all();
  const recommendation = rows.find(({ frictionIds }) => point && frictionIds.includes(point.id));
  if (!recommendation) return { title: point?.title ?? fingerprint, fingerprints: [fingerprint] };
  const fingerprints = points
    .filter(({ id }) => recommendation.frictionIds.includes(id))
    .map((point) => point.fingerprint);
  return { title: recommendation.title, fingerprints };
}

/** As many runs as the evaluation before the fix had, and at least the prompt's `runsPerEval`. */
const runsToVerify = (ctx: Context, org: OrgId, evalRequestId: string, runsPerEval: number | null): number =>
  Math.max(
    ctx.db
      .select({ n: count() })
      .from(runs)
      .where(and(eq(runs.orgId, org), eq(runs.evalRequestId, evalRequestId)))
      .get()?.n ?? 0,
    runsPerEval ?? 1,
  );
