import { and, desc, eq, gt, isNull, ne } from "drizzle-orm";
import { changesOf, recordAudit } from "../audit/entries.ts";
import type { Context, OrgId } from "../context.ts";
import { transaction } from "../db/open.ts";
import { orgs } from "../db/tables/orgs.ts";
import { reports, shareLinks } from "../db/tables/reports.ts";
import { badRequest, conflict, notFound } from "../errors.ts";
import { getReportRow, type ReportRow } from "../reports/report-row.ts";
import { toIso } from "../schema.ts";

/** The lifetimes that a link can have, in days. */
export const shareDays = [1, 7, 30, 90] as const;
export const shareStates = ["active", "expired", "revoked"] as const;
const dayMs = 24 * 3600_000;

/** A share link in lists, without the token itself. */
export type ShareLink = ReturnType<typeof toShare>;

/** What a link shows. */
type SharedReport = {
  org: OrgId;
  orgName: string;
  timeZone: string;
  slug: string;
  withSession: boolean;
  expiresAt: string;
};

const hashOf = (token: string): Buffer => new Bun.CryptoHasher("sha256").update(token).digest();

/** The shares of a report, newest first. */
export const sharesOfReport = (ctx: Context, { orgId, id }: ReportRow): ShareLink[] =>
  ctx.db
    .select()
    .from(shareLinks)
    .where(and(eq(shareLinks.orgId, orgId), eq(shareLinks.reportId, id)))
    .orderBy(desc(shareLinks.id))
    .all()
    .map((each) => toShare(ctx, each));

/**
 * Creates a link that expires after this many days. `url` is the only copy, because the database stores only a digest. Throws not_found, bad_request,
 * and conflict for an existing `id`, as when a form is submitted twice.
 */
export function createShare(
  ctx: Context,
  org: OrgId,
  slug: string,
  { days, withSession, id }: { days: number; withSession: boolean; id?: string },
): ShareLink & { url: string } {
  if (!shareDays.some((each) => each === days))
    throw badRequest(`Invalid days: must be one of ${shareDays.join(", ")}.`);
  const reportId = getReportRow(ctx.db, org, slug).id;
  const existing =
    id === undefined
      ? undefined
      : ctx.db.select({ orgId: shareLinks.orgId }).from(shareLinks).where(eq(shareLinks.id, id)).get();
  if (existing?.orgId === org)
    throw conflict("This link was already created and is shown only once. Create another one if you did not copy it.");
  const token = crypto.getRandomValues(new Uint8Array(32)).toBase64({ alphabet: "base64url", omitPadding: true });
  const createdAt = ctx.now();
  const row = {
    tokenHash: hashOf(token),
    // If the ID belongs to a link of another organization, it is ignored. Nobody may learn that such a link exists.
    id: existing || id === undefined ? ctx.newId(createdAt) : id,
    orgId: org,
    reportId,
    withSession,
    createdAt,
    expiresAt: createdAt + days * dayMs,
    revokedAt: null,
  };
  transaction(ctx.db, (tx) => {
    tx.insert(shareLinks).values(row).run();
    recordAudit(ctx, org, "share.created", { id: row.id, name: slug }, changesOf({}, { days, withSession }));
  });
  return { ...toShare(ctx, row), url: `${ctx.baseUrl()}/shared/${token}` };
}

/** Newest first. Throws not_found. */
export const listShares = (ctx: Context, org: OrgId, slug: string): ShareLink[] =>
  sharesOfReport(ctx, getReportRow(ctx.db, org, slug));

/** Revokes a link; repeating it changes nothing. Throws not_found. */
export function revokeShare(ctx: Context, org: OrgId, slug: string, id: string): ShareLink {
  const report = getReportRow(ctx.db, org, slug);
  const whereShare = and(eq(shareLinks.orgId, org), eq(shareLinks.reportId, report.id), eq(shareLinks.id, id));
  return transaction(ctx.db, (tx) => {
    const before = tx.select().from(shareLinks).where(whereShare).get();
    if (!before) throw notFound(`No share link of this report has the ID ${id}.`);
    if (before.revokedAt !== null) return toShare(ctx, before);
    const revokedAt = ctx.now();
    tx.update(shareLinks).set({ revokedAt }).where(whereShare).run();
    recordAudit(ctx, org, "share.revoked", { id: before.id, name: slug });
    return toShare(ctx, { ...before, revokedAt });
  });
}

/**
 * What a token shows. Throws not_found if there is no such link, if it has expired or was revoked, or if its report was archived. The error is the
 * same for every reason.
 */
export function getShared(ctx: Context, token: string): SharedReport {
  const row = ctx.db
    .select({
      org: shareLinks.orgId,
      orgName: orgs.name,
      timeZone: orgs.timeZone,
      slug: reports.slug,
      withSession: shareLinks.withSession,
      expiresAt: shareLinks.expiresAt,
    })
    .from(shareLinks)
    .innerJoin(orgs, eq(orgs.id, shareLinks.orgId))
    .innerJoin(reports, eq(reports.id, shareLinks.reportId))
    .where(
      and(
        eq(shareLinks.tokenHash, hashOf(token)),
        isNull(shareLinks.revokedAt),
        gt(shareLinks.expiresAt, ctx.now()),
        ne(reports.status, "archived"),
      ),
    )
    .get();
  if (!row) throw notFound("This link is not valid, or it has expired. Ask the person who sent it for a new one.");
  return { ...row, org: row.org as OrgId, expiresAt: toIso(row.expiresAt) };
}

type ShareRow = typeof shareLinks.$inferSelect;

function toShare(ctx: Context, row: ShareRow) {
  const { id, withSession, createdAt, expiresAt } = row;
  return { id, withSession, createdAt: toIso(createdAt), expiresAt: toIso(expiresAt), state: stateOf(ctx, row) };
}

function stateOf(ctx: Context, { revokedAt, expiresAt }: ShareRow): (typeof shareStates)[number] {
  if (revokedAt !== null) return "revoked";
  return expiresAt <= ctx.now() ? "expired" : "active";
}
