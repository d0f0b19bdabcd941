import { and, desc, eq, gt, isNull, ne, sql } from "drizzle-orm";
import { reports, shareLinks } from "../db/tables.ts";
import type { Deps, OrgId } from "../deps.ts";
import { badRequest, conflict, notFound } from "../errors.ts";

/** How long a link may live, in days. */
export const shareDays = [1, 7, 30, 90] as const;
export const shareStates = ["active", "expired", "revoked"] as const;
const dayMs = 24 * 3600_000;

/** A share link as it is listed: never the token itself. */
export type ShareLink = {
  id: string;
  withSession: boolean;
  createdAt: string;
  expiresAt: string;
  state: (typeof shareStates)[number];
};

export type Shares = ReturnType<typeof createShares>;

const iso = (at: number) => new Date(at).toISOString();
const hashOf = (token: string): Buffer => new Bun.CryptoHasher("sha256").update(token).digest();
const gone = () => notFound("nothing is shared under this address; ask whoever sent it for a new link");

/** Addresses under which a report can be read by whoever has them. */
export function createShares({ db, now, newId, baseUrl }: Pick<Deps, "db" | "now" | "newId" | "baseUrl">) {
  function idOf(org: OrgId, slug: string): string {
    const report = db
      .select({ id: reports.id })
      .from(reports)
      .where(and(eq(reports.orgId, org), eq(reports.slug, slug)))
      .get();
    if (!report) throw notFound(`no report has the slug ${slug}`);
    return report.id;
  }

  const toShare = ({
    id,
    withSession,
    createdAt,
    expiresAt,
    revokedAt,
  }: typeof shareLinks.$inferSelect): ShareLink => ({
    id,
    withSession,
    createdAt: iso(createdAt),
    expiresAt: iso(expiresAt),
    state: revokedAt !== null ? "revoked" : expiresAt <= now() ? "expired" : "active",
  });

  return {
    /** Makes a link that lives for so many days. `url` is its only copy: the database keeps a digest. Throws not_found, bad_request; conflict for an `id` that there is, of a form that was sent twice. */
    createShare(
      org: OrgId,
      slug: string,
      { days, withSession, id }: { days: number; withSession: boolean; id?: string },
    ): ShareLink & { url: string } {
      if (!shareDays.some((each) => each === days)) throw badRequest(`days must be one of ${shareDays.join(", ")}`);
      const reportId = idOf(org, slug);
      if (id !== undefined && db.select({ id: shareLinks.id }).from(shareLinks).where(eq(shareLinks.id, id)).get())
        throw conflict("this link was made already, and is told once; make another if it was not kept");
      const token = crypto.getRandomValues(new Uint8Array(32)).toBase64({ alphabet: "base64url", omitPadding: true });
      const createdAt = now();
      const row = {
        tokenHash: hashOf(token),
        id: id ?? newId(createdAt),
        orgId: org,
        reportId,
        withSession,
        createdAt,
        expiresAt: createdAt + days * dayMs,
        revokedAt: null,
      };
      db.insert(shareLinks).values(row).run();
      return { ...toShare(row), url: `${baseUrl()}/shared/${token}` };
    },

    /** Newest first. Throws not_found. */
    listShares: (org: OrgId, slug: string): ShareLink[] =>
      db
        .select()
        .from(shareLinks)
        .where(and(eq(shareLinks.orgId, org), eq(shareLinks.reportId, idOf(org, slug))))
        .orderBy(desc(shareLinks.id))
        .all()
        .map(toShare),

    /** Ends a link at once, and for good; twice changes nothing. Throws not_found. */
    revokeShare(org: OrgId, slug: string, id: string): ShareLink {
      const [ended] = db
        .update(shareLinks)
        .set({ revokedAt: sql`coalesce(${shareLinks.revokedAt}, ${now()})` })
        .where(and(eq(shareLinks.orgId, org), eq(shareLinks.reportId, idOf(org, slug)), eq(shareLinks.id, id)))
        .returning()
        .all();
      if (!ended) throw notFound(`no link of this report has the id ${id}`);
      return toShare(ended);
    },

    /** What a token shows, unless the link has ended or its report was archived. Throws not_found, the same for every reason. */
    getShared(token: string): { org: OrgId; slug: string; withSession: boolean } {
      const row = db
        .select({ org: shareLinks.orgId, slug: reports.slug, withSession: shareLinks.withSession })
        .from(shareLinks)
        .innerJoin(reports, eq(reports.id, shareLinks.reportId))
        .where(
          and(
            eq(shareLinks.tokenHash, hashOf(token)),
            isNull(shareLinks.revokedAt),
            gt(shareLinks.expiresAt, now()),
            ne(reports.status, "archived"),
          ),
        )
        .get();
      if (!row) throw gone();
      return { ...row, org: row.org as OrgId };
    },
  };
}
