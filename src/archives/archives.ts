import { and, desc, eq, sql } from "drizzle-orm";
import { archives, prompts } from "../db/tables.ts";
import type { Deps, OrgId } from "../deps.ts";
import { conflict, notFound } from "../errors.ts";
import { toIso } from "../schema.ts";
import type { CheckedArchive } from "./archive-check.ts";
import type { Archive } from "./schema.ts";

const maxOfOrg = 100;

export type Archives = ReturnType<typeof createArchives>;

/** Uploaded tar.gz files with the starting files of workspaces. */
export function createArchives({ db, now, newId }: Pick<Deps, "db" | "now" | "newId">) {
  const columns = {
    id: archives.id,
    digest: archives.digest,
    bytes: archives.bytes,
    files: archives.files,
    createdAt: archives.createdAt,
  };
  const toArchive = (row: Omit<Archive, "createdAt"> & { createdAt: number }): Archive => ({
    ...row,
    createdAt: toIso(row.createdAt),
  });
  const own = (org: OrgId, id: string) => and(eq(archives.orgId, org), eq(archives.id, id.toLowerCase()));
  const find = (org: OrgId, id: string) => db.select(columns).from(archives).where(own(org, id)).get();

  return {
    /** Stores a file that `checkArchive` accepted; returns the existing archive if the same file was uploaded before. Throws conflict. */
    createArchive(org: OrgId, { data, files }: CheckedArchive): Archive {
      const digest = new Bun.CryptoHasher("sha256").update(data).digest("hex");
      const findSame = () =>
        db
          .select(columns)
          .from(archives)
          .where(and(eq(archives.orgId, org), eq(archives.digest, digest)))
          .get();
      const known = findSame();
      if (known) return toArchive(known);
      const count = db.select({ n: sql<number>`count(*)` }).from(archives).where(eq(archives.orgId, org)).get()?.n ?? 0;
      if (count >= maxOfOrg)
        throw conflict(`The organization already has ${maxOfOrg} archives. Delete one that no prompt uses.`);
      const createdAt = now();
      const archive = { id: newId(createdAt), digest, bytes: data.length, files, createdAt };
      // Someone else may have uploaded the same file meanwhile.
      db.insert(archives)
        .values({ ...archive, orgId: org, data: Buffer.from(data) })
        .onConflictDoNothing()
        .run();
      return toArchive(findSame() ?? archive);
    },

    /** Newest first. */
    listArchives: (org: OrgId): Archive[] =>
      db.select(columns).from(archives).where(eq(archives.orgId, org)).orderBy(desc(archives.id)).all().map(toArchive),

    hasArchive: (org: OrgId, id: string): boolean => find(org, id) !== undefined,

    /** The SHA-256 of an archive; null if it was deleted. */
    findDigest: (org: OrgId, id: string): string | null => find(org, id)?.digest ?? null,

    /** The file itself. Throws not_found. */
    readArchive(org: OrgId, id: string): Buffer {
      const row = db.select({ data: archives.data }).from(archives).where(own(org, id)).get();
      if (!row) throw notFound(`No archive has the ID ${id}. Upload it with POST /api/v1/archives.`);
      return row.data;
    },

    /** Returns the deleted archive. Throws not_found, and conflict if a prompt uses it. */
    deleteArchive(org: OrgId, id: string): Archive {
      const archive = find(org, id);
      if (!archive) throw notFound(`No archive has the ID ${id}.`);
      const user = db
        .select({ id: prompts.id })
        .from(prompts)
        .where(
          and(
            eq(prompts.orgId, org),
            sql`${archive.id} in (json_extract(${prompts.workspace}, '$.archive'), json_extract(${prompts.workspace}, '$.skills.archive'))`,
          ),
        )
        .get();
      if (user) throw conflict(`The prompt ${user.id} uses this archive. Change its workspace first.`);
      db.delete(archives).where(own(org, id)).run();
      return toArchive(archive);
    },
  };
}
