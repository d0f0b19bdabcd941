import { and, count, eq, gt, isNull, lt, or } from "drizzle-orm";
import { hasPrice } from "../agents/gateway/prices.ts";
import type { Context, OrgId } from "../context.ts";
import { timeZoneOf } from "../db/rows.ts";
import { prompts } from "../db/tables/prompts.ts";
import { regrades, reports } from "../db/tables/reports.ts";
import { badRequest, conflict, notFound } from "../errors.ts";
import { getMethodology, listMethodologies } from "../grading/methodology.ts";
import { getModel } from "../models/models.ts";
import { toInstant } from "../schema.ts";
import { gradingMethodologyOfRegrade, type RegradeRow, reportsOfRegrade } from "./regrade-row.ts";
import type { RegradeRequest } from "./schema.ts";

/** The row of a valid request. Throws bad_request, not_found. */
export function toRegradeRow(ctx: Context, org: OrgId, input: RegradeRequest): RegradeRow {
  const { db, config } = ctx;
  const { judge = null, repeats = 1, maxUsd = null } = input;
  const createdAt = ctx.now();
  const zone = timeZoneOf(db, org);
  const since = toInstant("since", input.since, zone);
  const until = input.until === undefined ? createdAt + 1 : toInstant("until", input.until, zone);
  if (since >= until) throw badRequest("Invalid since: must be before until and not in the future.");
  const promptId = input.promptId?.toLowerCase() ?? null;
  if (promptId !== null) {
    const wherePrompt = and(eq(prompts.orgId, org), eq(prompts.id, promptId));
    if (!db.select({ id: prompts.id }).from(prompts).where(wherePrompt).get())
      throw notFound(`No prompt has the ID ${input.promptId}.`);
  }
  const [current] = listMethodologies(config.methodology);
  const methodology = getMethodology(config.methodology, input.methodology ?? current.id);
  checkJudge(ctx, org, { judge, repeats, maxUsd });
  const { hash } = gradingMethodologyOfRegrade(methodology, judge);
  const request = { promptId, since, until, methodology: methodology.id, judge, hash, repeats, maxUsd };
  const noResults = { graded: 0, unchanged: 0, withoutEvents: 0, failed: 0, spentUsd: 0, unpriced: 0 };
  const notEnded = { failureCause: null, failureDetail: null, completedAt: null };
  const row: RegradeRow = {
    id: ctx.newId(createdAt),
    orgId: org,
    createdAt,
    status: "pending",
    batch: 1,
    cursor: "",
    total: 0,
    ...request,
    ...noResults,
    ...notEnded,
  };
  return { ...row, total: db.select({ n: count() }).from(reports).where(reportsOfRegrade(row)).get()?.n ?? 0 };
}

/** Throws bad_request for a judge without an enforceable limit, and for judge settings without a judge. */
function checkJudge(
  ctx: Context,
  org: OrgId,
  { judge, repeats, maxUsd }: { judge: RegradeRow["judge"]; repeats: number; maxUsd: number | null },
): void {
  if (judge === null) {
    if (repeats > 1) throw badRequest("repeats needs a judge. Set judge, or leave repeats out.");
    if (maxUsd !== null) throw badRequest("maxUsd needs a judge. Set judge, or leave maxUsd out.");
    return;
  }
  if (maxUsd === null) throw badRequest("maxUsd is required with judge. Set the maximum total cost.");
  if (!hasPrice(getModel(ctx, org, judge)))
    throw badRequest(
      `Invalid judge: the price of ${judge} is unknown, so maxUsd cannot be enforced. Set its price in EVALD_MODEL_PRICES.`,
    );
}

/** Throws conflict if another regrade has the same judge and some of the same sessions, because both would pay for them. */
export function checkNoOverlap({ db }: Context, row: RegradeRow): void {
  if (row.judge === null) return;
  const { orgId, promptId, since, until, completedAt, hash } = regrades;
  const isActiveWithJudge = and(eq(orgId, row.orgId), isNull(completedAt), eq(hash, row.hash));
  const sharesPeriod = and(lt(since, row.until), gt(until, row.since));
  const sharesPrompt = row.promptId === null ? undefined : or(isNull(promptId), eq(promptId, row.promptId));
  const whereOverlapping = and(isActiveWithJudge, sharesPeriod, sharesPrompt);
  const other = db.select({ id: regrades.id }).from(regrades).where(whereOverlapping).get();
  if (other)
    throw conflict(
      `Regrade ${other.id} is already judging these sessions with the same judge. Wait for it to end, or cancel it.`,
    );
}
