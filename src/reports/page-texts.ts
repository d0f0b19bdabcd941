import { zstdCompressSync, zstdDecompressSync } from "node:zlib";
import { and, eq, sql } from "drizzle-orm";
import type { Db } from "../db/open.ts";
import { statement } from "../db/prepared.ts";
import { insertStatement } from "../db/rows.ts";
import { pageTexts, sessionPages } from "../db/tables/runs.ts";
import type { SessionId } from "./session-events.ts";

const textOfDigest = statement((db) =>
  db
    .select({ id: pageTexts.id })
    .from(pageTexts)
    .where(and(eq(pageTexts.orgId, sql.placeholder("orgId")), eq(pageTexts.digest, sql.placeholder("digest")))),
);
const insertSessionPage = insertStatement(sessionPages);

/**
 * Stores the text of a page that a session read. `seq`: the event that says so. The same text is stored only once per organization, compressed. A
 * trigger deletes the text together with the last session that read it.
 */
export function storePageText(db: Db, { orgId, runId, attempt }: SessionId, seq: number, text: string): void {
  const digest = new Bun.CryptoHasher("sha256").update(text).digest("hex");
  const textId =
    textOfDigest(db).get({ orgId, digest })?.id ??
    db
      .insert(pageTexts)
      .values({ orgId, digest, data: zstdCompressSync(text) })
      .returning({ id: pageTexts.id })
      .get().id;
  insertSessionPage(db)({ orgId, runId, attempt, seq, textId });
}

/** The stored texts of the pages that a session read. The key is the `seq` of the event that says that the page was read. */
export function pageTextsOf(db: Db, { orgId, runId, attempt }: SessionId): Map<number, string> {
  const rows = db
    .select({ seq: sessionPages.seq, data: pageTexts.data })
    .from(sessionPages)
    .innerJoin(pageTexts, and(eq(pageTexts.orgId, sessionPages.orgId), eq(pageTexts.id, sessionPages.textId)))
    .where(and(eq(sessionPages.orgId, orgId), eq(sessionPages.runId, runId), eq(sessionPages.attempt, attempt)))
    .all();
  return new Map(rows.map(({ seq, data }) => [seq, zstdDecompressSync(data).toString()]));
}
