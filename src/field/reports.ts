import { and, count, desc, eq, inArray, lte } from "drizzle-orm";
import { type Context, type OrgId, perContext } from "../context.ts";
import { type Tx, transaction } from "../db/open.ts";
import { fieldFriction, fieldReports } from "../db/tables/field.ts";
import { AppError, invalidField } from "../errors.ts";
import { fingerprint } from "../grading/findings/finding.ts";
import { frictionCategories } from "../grading/kinds.ts";
import { normalizeUrl, oneLine } from "../grading/text.ts";
import { listModelSecrets } from "../models/models.ts";
import { createRedaction } from "../redaction/redaction.ts";
import { httpUrl, toIso } from "../schema.ts";
import type { FrictionReport, Received } from "./schema.ts";

/** How many friction rows are kept per organization. */
const maxFriction = 1000;
/** How many reports of each are kept. */
export const maxReports = 20;

type FieldFrictionRow = typeof fieldFriction.$inferSelect;

/** Control characters except line breaks and tabs, and invisible format characters. */
const controlCharacters = /[^\P{Cc}\n\t]|\p{Cf}/gu;

/** A text of several lines without control characters. */
const toText = (text: string) => text.toWellFormed().replace(/\r\n?/g, "\n").replace(controlCharacters, "").trim();

/** Reports that a key can send in a period. */
const maxSent = 60;
const periodMs = 10 * 60_000;

/** How many reports each key has sent in its current period. */
const reportCounts = perContext(() => new Map<string, { since: number; count: number }>());

/** Counts one more report of a key. Throws rate_limited at the limit. */
export function countReport(ctx: Context, keyId: string): void {
  const counts = reportCounts(ctx);
  const at = ctx.now();
  // A period that begins in the future began before the clock was set back.
  for (const [key, { since }] of counts) if (at >= since + periodMs || since > at) counts.delete(key);
  const { since, count } = counts.get(keyId) ?? { since: at, count: 0 };
  if (count >= maxSent)
    throw new AppError("rate_limited", `A key can send ${maxSent} reports in 10 minutes. Try again later.`, {
      retryAfterSeconds: Math.max(1, Math.ceil((since + periodMs - at) / 1000)),
    });
  counts.set(keyId, { since, count: count + 1 });
}

/** Prefixes of the subjects of friction at a URL: found by a rule, by an agent in a run, or by a judge. */
const subjectPrefixes = ["", "agent ", "judge "];

/** Where the friction is: a URL without credentials and fragment, or a text on one line. */
const toLocation = (where: string): string =>
  httpUrl(where.trim()) ? oneLine(normalizeUrl(where.trim()), 1000) : oneLine(where, 500);

/**
 * The fingerprint of field friction, followed by the fingerprints that a run's friction at the same location may have. Without a category, these are
 * the fingerprints of every category. Numbers in a text that is not a URL don't matter.
 */
function fingerprintsAt(location: string, category: FieldFrictionRow["category"] | undefined): string[] {
  if (!httpUrl(location)) return [fingerprint(category ?? "other", location.toLowerCase().replace(/\d+/g, "#"))];
  const ownFingerprint = fingerprint(category ?? "other", location);
  const ofRuns = (category ? [category] : frictionCategories).flatMap((each) =>
    subjectPrefixes.map((prefix) => fingerprint(each, prefix + location)),
  );
  return [...new Set([ownFingerprint, ...ofRuns])];
}

/**
 * Stores the report of an agent, without secrets. Reports of the same location and category are one friction. Throws rate_limited for a
 * key that sends too many, or if there is no room.
 */
export function reportFriction(ctx: Context, org: OrgId, keyId: string, report: FrictionReport): Received {
  countReport(ctx, keyId);
  return storeReport(ctx, org, report);
}

/** Stores a report that was counted. Throws rate_limited if there is no room. */
export function storeReport(
  ctx: Context,
  org: OrgId,
  { where, tried, happened, category, agent }: FrictionReport,
): Received {
  const clean = (text: string) => toText(createRedaction(listModelSecrets(ctx, org)).clean(text));
  const location = toLocation(clean(where));
  const texts = { tried: clean(tried), happened: clean(happened), agent: oneLine(clean(agent ?? ""), 100) || null };
  for (const [field, text] of Object.entries({ where: location, tried: texts.tried, happened: texts.happened }))
    if (text === "") throw invalidField(field, "must not be blank");
  return transaction(ctx.db, (tx) => {
    const frictionId = addToFriction(ctx, tx, org, {
      category: category ?? "other",
      place: location,
      title: oneLine(texts.happened, 160),
      fingerprints: fingerprintsAt(location, category),
    });
    const whereOfFriction = and(eq(fieldReports.orgId, org), eq(fieldReports.frictionId, frictionId));
    const createdAt = ctx.now();
    const id = ctx.newId(createdAt);
    tx.insert(fieldReports)
      .values({ id, orgId: org, frictionId, ...texts, createdAt })
      .run();
    const reports = tx.select({ id: fieldReports.id }).from(fieldReports).where(whereOfFriction);
    const firstSurplus = reports.orderBy(desc(fieldReports.id)).limit(1).offset(maxReports).get();
    if (firstSurplus)
      tx.delete(fieldReports)
        .where(and(whereOfFriction, lte(fieldReports.id, firstSurplus.id)))
        .run();
    return { id, receivedAt: toIso(createdAt) };
  });
}

/** Deletes the friction that was closed first if there is no room for more. Throws rate_limited if all of it is open. */
function makeRoom(tx: Tx, org: OrgId): void {
  const whereOfOrg = eq(fieldFriction.orgId, org);
  if ((tx.select({ n: count() }).from(fieldFriction).where(whereOfOrg).get()?.n ?? 0) < maxFriction) return;
  const oldest = tx
    .select({ id: fieldFriction.id })
    .from(fieldFriction)
    .where(and(whereOfOrg, inArray(fieldFriction.state, ["resolved", "dismissed"])))
    .orderBy(fieldFriction.lastReportedAt)
    .limit(1)
    .get();
  if (!oldest)
    throw new AppError(
      "rate_limited",
      `The organization has ${maxFriction} open reports from the field. It must resolve or dismiss some first.`,
      { retryAfterSeconds: 3600 },
    );
  tx.delete(fieldReports)
    .where(and(eq(fieldReports.orgId, org), eq(fieldReports.frictionId, oldest.id)))
    .run();
  tx.delete(fieldFriction)
    .where(and(whereOfOrg, eq(fieldFriction.id, oldest.id)))
    .run();
}

/** Adds a report to the friction with its fingerprint, or creates that friction. The report may reopen it. Returns its ID. */
function addToFriction(
  ctx: Context,
  tx: Tx,
  org: OrgId,
  draft: Pick<FieldFrictionRow, "category" | "place" | "title" | "fingerprints">,
): string {
  const at = ctx.now();
  const fingerprint = draft.fingerprints[0] ?? "";
  const whereSame = and(eq(fieldFriction.orgId, org), eq(fieldFriction.fingerprint, fingerprint));
  const friction = tx.select().from(fieldFriction).where(whereSame).orderBy(fieldFriction.id).get();
  if (friction) {
    const state = friction.state === "resolved" ? ("regressed" as const) : friction.state;
    tx.update(fieldFriction)
      .set({ reports: friction.reports + 1, lastReportedAt: at, state })
      .where(and(eq(fieldFriction.orgId, org), eq(fieldFriction.id, friction.id)))
      .run();
    return friction.id;
  }
  makeRoom(tx, org);
  const id = ctx.newId(at);
  tx.insert(fieldFriction)
    .values({
      ...draft,
      id,
      orgId: org,
      fingerprint,
      reports: 1,
      state: "open",
      firstReportedAt: at,
      lastReportedAt: at,
      reason: null,
      changedBy: null,
      changedAt: null,
    })
    .run();
  return id;
}
