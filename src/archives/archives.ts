import { and, desc, eq, sql } from "drizzle-orm";
import { changesOf, recordAudit } from "../audit/entries.ts";
import type { Context, OrgId } from "../context.ts";
import { type Tx, transaction } from "../db/open.ts";
import { archives, prompts } from "../db/tables/prompts.ts";
import { conflict, notFound } from "../errors.ts";
import { toIso } from "../schema.ts";
import type { CheckedArchive } from "./archive-check.ts";
import type { Archive } from "./schema.ts";

const maxArchivesPerOrg = 100;

type ArchiveRow = Omit<Archive, "createdAt"> & { createdAt: number };

type ArchiveKind = Archive["kind"];

/** All columns except the file itself. */
const columns = {
  id: archives.id,
  digest: archives.digest,
  bytes: archives.bytes,
  kind: archives.kind,
  files: archives.files,
  createdAt: archives.createdAt,
};

/** Stores a file that `checkArchive` accepted; returns the existing archive if the same file was uploaded before. Throws conflict. */
export function createArchive(
  ctx: Context,
  org: OrgId,
  { data, files }: CheckedArchive,
  kind: ArchiveKind = "workspace",
): Archive {
  const { db } = ctx;
  const digest = new Bun.CryptoHasher("sha256").update(data).digest("hex");
  const existing = findArchiveByDigest(ctx, org, digest);
  const usedAt = kind === "site" ? ctx.now() : null;
  // A site that is uploaded again is kept for another 7 days. If it is uploaded again as a workspace, it is kept for good.
  if (existing?.kind === "site")
    transaction(db, (tx) => tx.update(archives).set({ kind, usedAt }).where(whereArchive(org, existing.id)).run());
  if (existing) return toArchive(findArchive(ctx, org, existing.id) ?? existing);
  if (kind === "workspace") refuseFullOrg(ctx, org);
  const createdAt = ctx.now();
  const archive = { id: ctx.newId(createdAt), digest, bytes: data.length, files, kind, createdAt };
  // Someone else may have uploaded the same file meanwhile.
  transaction(db, (tx) => {
    const row = { ...archive, orgId: org, usedAt, data: Buffer.from(data) };
    const [inserted] = tx.insert(archives).values(row).onConflictDoNothing().returning({ id: archives.id }).all();
    if (inserted) recordAudit(ctx, org, "archive.created", inserted, changesOf({}, { digest, files, kind }));
  });
  return toArchive(findArchiveByDigest(ctx, org, digest) ?? archive);
}

/** Throws conflict if an organization has the maximum number of workspace archives. Sites need no maximum, because they are deleted after a while. */
function refuseFullOrg({ db }: Context, org: OrgId): void {
  const ofWorkspaces = and(eq(archives.orgId, org), eq(archives.kind, "workspace"));
  const count = db.select({ n: sql<number>`count(*)` }).from(archives).where(ofWorkspaces).get()?.n ?? 0;
  if (count >= maxArchivesPerOrg)
    throw conflict(`The organization already has ${maxArchivesPerOrg} archives. Delete one that no prompt uses.`);
}

/** Newest first. */
export const listArchives = ({ db }: Context, org: OrgId): Archive[] =>
  db.select(columns).from(archives).where(eq(archives.orgId, org)).orderBy(desc(archives.id)).all().map(toArchive);

/** Whether the organization has an archive with this ID. */
export const hasArchive = (ctx: Context, org: OrgId, id: string): boolean => findArchive(ctx, org, id) !== undefined;

/** Keeps a site for another 7 days. */
export function noteSiteUse(ctx: Context, tx: Tx, org: OrgId, id: string): void {
  const whereSite = and(whereArchive(org, id), eq(archives.kind, "site"));
  tx.update(archives).set({ usedAt: ctx.now() }).where(whereSite).run();
}

/** The SHA-256 of an archive; null if it was deleted. */
export const findArchiveDigest = (ctx: Context, org: OrgId, id: string): string | null =>
  findArchive(ctx, org, id)?.digest ?? null;

/** The file itself. Throws not_found. */
export function readArchive({ db }: Context, org: OrgId, id: string): Buffer {
  const row = db.select({ data: archives.data }).from(archives).where(whereArchive(org, id)).get();
  if (!row) throw notFound(`No archive has the ID ${id}. Upload it with POST /api/v1/archives.`);
  return row.data;
}

/** Returns the deleted archive. Throws not_found, and conflict if a prompt uses it. */
export function deleteArchive(ctx: Context, org: OrgId, id: string): Archive {
  const archive = findArchive(ctx, org, id);
  if (!archive) throw notFound(`No archive has the ID ${id}.`);
  const prompt = ctx.db
    .select({ id: prompts.id })
    .from(prompts)
    .where(
      and(
        eq(prompts.orgId, org),
        sql`${archive.id} in (json_extract(${prompts.workspace}, '$.archive'), json_extract(${prompts.workspace}, '$.skills.archive'))`,
      ),
    )
    .get();
  if (prompt) throw conflict(`The prompt ${prompt.id} uses this archive. Change its workspace first.`);
  transaction(ctx.db, (tx) => {
    tx.delete(archives).where(whereArchive(org, id)).run();
    recordAudit(ctx, org, "archive.deleted", { id: archive.id });
  });
  return toArchive(archive);
}

const whereArchive = (org: OrgId, id: string) => and(eq(archives.orgId, org), eq(archives.id, id.toLowerCase()));

const findArchive = ({ db }: Context, org: OrgId, id: string): ArchiveRow | undefined =>
  db.select(columns).from(archives).where(whereArchive(org, id)).get();

const findArchiveByDigest = ({ db }: Context, org: OrgId, digest: string): ArchiveRow | undefined =>
  db
    .select(columns)
    .from(archives)
    .where(and(eq(archives.orgId, org), eq(archives.digest, digest)))
    .get();

const toArchive = (row: ArchiveRow): Archive => ({ ...row, createdAt: toIso(row.createdAt) });
