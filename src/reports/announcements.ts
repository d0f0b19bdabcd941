import { eq } from "drizzle-orm";
import type { Context } from "../context.ts";
import type { Tx } from "../db/open.ts";
import { prompts } from "../db/tables/prompts.ts";
import type { reports } from "../db/tables/reports.ts";
import type { runs } from "../db/tables/runs.ts";
import type { CountedReport, PointRow } from "../friction/lifecycle-rows.ts";
import { cut } from "../notifications/events.ts";
import { emitEvent } from "../notifications/outbox.ts";
import { titleText } from "../prompts/lists.ts";
import { toIso } from "../schema.ts";
import { titleOf } from "./labels.ts";
import { reportUrl, runUrls } from "./links.ts";

/** Characters of a text in an event. Receivers expect small events. */
const maxText = 500;
/** Characters of a URL in an event. */
const maxUrl = 1_000;

type RunRow = typeof runs.$inferSelect;
type ReportRow = Pick<
  typeof reports.$inferSelect,
  "slug" | "status" | "outcome" | "score" | "scope" | "grade" | "keyFinding"
>;

/** A run as it appears in events of notifications. */
export const toRunEvent = (baseUrl: string, { id, evalRequestId, agent, model, createdAt }: RunRow) => ({
  id,
  url: runUrls(baseUrl, id).runUrl,
  evalRequestId,
  agent,
  model,
  requestedAt: toIso(createdAt),
});

/** A report as it appears in events of notifications. */
export const toReportEvent = (baseUrl: string, { slug, status, outcome, score, scope, grade }: ReportRow) => ({
  slug,
  url: reportUrl(baseUrl, slug),
  status,
  outcome,
  score,
  scope,
  grade,
});

/** The prompt as it appears in an event. */
export function toPromptEvent(tx: Tx, id: string): { id: string; title: string | null } {
  const row = tx.select({ title: prompts.title, text: titleText }).from(prompts).where(eq(prompts.id, id)).get();
  return { id, title: row ? titleOf(row) : null };
}

/** Emits the event that a run has a report. Call it in the transaction that stores the report. */
export function announceReport(ctx: Context, tx: Tx, run: RunRow, report: ReportRow): void {
  emitEvent(ctx, tx, run.orgId, "run.completed", () => ({
    run: toRunEvent(ctx.baseUrl(), run),
    prompt: toPromptEvent(tx, run.promptId),
    report: toReportEvent(ctx.baseUrl(), report),
    keyFinding: report.keyFinding === null ? null : cut(report.keyFinding, maxText),
  }));
}

/**
 * Emits the event that friction is new or has returned. Call it only for reports on the live docs, because on a preview all friction would be new.
 */
export function announceFriction(
  ctx: Context,
  tx: Tx,
  type: "friction.opened" | "friction.regressed",
  { report }: CountedReport,
  point: PointRow,
): void {
  const { fingerprint, severity, category, title, url, lostPoints } = point;
  emitEvent(ctx, tx, report.orgId, type, () => ({
    friction: {
      fingerprint,
      severity,
      category,
      lostPoints,
      title: cut(title, maxText),
      pageUrl: url === null ? null : cut(url, maxUrl),
    },
    prompt: toPromptEvent(tx, report.promptId),
    report: { slug: report.slug, url: reportUrl(ctx.baseUrl(), report.slug) },
  }));
}
