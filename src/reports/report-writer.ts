import { eq } from "drizzle-orm";
import type { Context } from "../context.ts";
import type { Tx } from "../db/open.ts";
import { insertStatement } from "../db/rows.ts";
import { erasedSlugs } from "../db/tables/deletions.ts";
import { frictionPoints, recommendations } from "../db/tables/friction.ts";
import { reports } from "../db/tables/reports.ts";
import type { runs } from "../db/tables/runs.ts";
import { recordListedPages } from "../friction/page-counts.ts";
import type { Grade } from "../grading/grade.ts";
import { titleFromTask } from "../grading/text.ts";
import { loadTransliteration } from "../lazy-packages.ts";
import { announceReport } from "./announcements.ts";
import { countChange, writeExposure } from "./counts.ts";

const insertFrictionPoint = insertStatement(frictionPoints);
const insertRecommendation = insertStatement(recommendations);

/** Stores the report of a run with its friction points. Call it in the transaction that completes the run. */
export function insertReport(ctx: Context, tx: Tx, run: typeof runs.$inferSelect, attempt: number, grade: Grade): void {
  const createdAt = ctx.now();
  const reportId = ctx.newId(createdAt);
  const { frictions, recommendations: fixes, exposure, ...reportFields } = grade;
  const report = {
    ...reportFields,
    id: reportId,
    orgId: run.orgId,
    runId: run.id,
    promptId: run.promptId,
    attempt,
    slug: unusedSlug(tx, run.task.title ?? titleFromTask(run.task.text)),
    status: run.task.reviewBeforePublishing ? ("draft" as const) : ("published" as const),
    createdAt,
  };
  // The figures about published reports change together with the report.
  countChange(ctx, tx, reportId, () => {
    tx.insert(reports).values(report).run();
    const owner = { orgId: run.orgId, reportId };
    const ids = new Map(frictions.map(({ fingerprint }) => [fingerprint, ctx.newId(createdAt)]));
    const idOf = (fingerprint: string) => ids.get(fingerprint) as string;
    frictions.forEach((friction, position) => {
      const id = idOf(friction.fingerprint);
      insertFrictionPoint(ctx.db)({ ...friction, ...owner, id, promptId: run.promptId, position });
    });
    for (const { frictions: fingerprints, ...recommendation } of fixes)
      insertRecommendation(ctx.db)({
        ...recommendation,
        ...owner,
        id: ctx.newId(createdAt),
        frictionIds: fingerprints.map(idOf),
      });
    writeExposure(tx, owner, exposure);
    recordListedPages(tx, run, exposure.listed);
    announceReport(ctx, tx, run, report);
  });
}

/** Up to eight words of a title in Latin letters. If the title has no letters or digits, the result is `report`. */
function toSlug(title: string): string {
  const { slugify } = loadTransliteration();
  const [slug] = /^(?:[a-z0-9]+-?){0,8}/.exec(slugify(title.toWellFormed()).slice(0, 60)) ?? [];
  return slug?.replace(/-+$/, "") || "report";
}

/** The digest of a slug. It is kept when the report is erased, so that the slug is never used again. */
export const slugDigest = (slug: string): Buffer => Bun.CryptoHasher.hash("sha256", slug).subarray(0, 16) as Buffer;

function unusedSlug(tx: Tx, title: string): string {
  for (;;) {
    const slug = `${toSlug(title)}-${Buffer.from(crypto.getRandomValues(new Uint8Array(4))).toString("hex")}`;
    const whereErased = eq(erasedSlugs.digest, slugDigest(slug));
    const report = tx.select({ id: reports.id }).from(reports).where(eq(reports.slug, slug)).get();
    const erasedSlug = tx.select().from(erasedSlugs).where(whereErased).get();
    if (!report && !erasedSlug) return slug;
  }
}
