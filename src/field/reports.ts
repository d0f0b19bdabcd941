import { and, count, desc, eq, inArray, lte } from "drizzle-orm";
import type { Context, OrgId } from "../context.ts";
import { perContext } from "../context.ts";
import { type Tx, transaction } from "../db/open.ts";
import { fieldFriction, fieldReports } from "../db/tables/field.ts";
import { AppError, invalidField } from "../errors.ts";
import { line } from "../grading/text.ts";
import { listModelSecrets } from "../models/models.ts";
import { createRedaction } from "../redaction/redaction.ts";
import { toIso } from "../schema.ts";
import { fingerprintsAt, toPlace } from "./fingerprints.ts";
import { createReportRate } from "./rate.ts";
import type { FrictionReport, Received } from "./schema.ts";

/** Friction kept per organization. */
const maxFriction = 1000;
/** Reports kept of each. */
export const maxReports = 20;

type Row = typeof fieldFriction.$inferSelect;

/** A text of several lines without control characters. */
const toText = (text: string) =>
  text
    .toWellFormed()
    .replace(/\r\n?/g, "\n")
    .replace(/[^\P{Cc}\n\t]|\p{Cf}/gu, "")
    .trim();

/** How many reports each key has sent lately. */
const reportRates = perContext((ctx) => ({ count: createReportRate(ctx.now) }));

/**
 * Stores the report of an agent, without secrets. Reports of the same place and category are one friction. Throws rate_limited for a
 * key that sends too many, or if there is no room.
 */
export function reportFriction(
  ctx: Context,
  org: OrgId,
  keyId: string,
  { where, tried, happened, category, agent }: FrictionReport,
): Received {
  reportRates(ctx).count(keyId);
  const clean = (text: string) => toText(createRedaction(listModelSecrets(ctx, org)).clean(text));
  const place = toPlace(clean(where));
  const texts = { tried: clean(tried), happened: clean(happened), agent: line(clean(agent ?? ""), 100) || null };
  for (const [field, text] of Object.entries({ where: place, tried: texts.tried, happened: texts.happened }))
    if (text === "") throw invalidField(field, "must not be blank");
  return transaction(ctx.db, (tx) => {
    const fingerprints = fingerprintsAt(place, category);
    const title = line(texts.happened, 160);
    const frictionId = addToFriction(ctx, tx, org, { category: category ?? "other", place, title, fingerprints });
    const ofFriction = and(eq(fieldReports.orgId, org), eq(fieldReports.frictionId, frictionId));
    const createdAt = ctx.now();
    const id = ctx.newId(createdAt);
    tx.insert(fieldReports)
      .values({ id, orgId: org, frictionId, ...texts, createdAt })
      .run();
    const kept = tx.select({ id: fieldReports.id }).from(fieldReports).where(ofFriction);
    const last = kept.orderBy(desc(fieldReports.id)).limit(1).offset(maxReports).get();
    if (last)
      tx.delete(fieldReports)
        .where(and(ofFriction, lte(fieldReports.id, last.id)))
        .run();
    return { id, receivedAt: toIso(createdAt) };
  });
}

/** Deletes the friction that was closed first if there is no room for more. Throws rate_limited if all of it is open. */
function makeRoom(tx: Tx, org: OrgId): void {
  const ofOrg = eq(fieldFriction.orgId, org);
  if ((tx.select({ n: count() }).from(fieldFriction).where(ofOrg).get()?.n ?? 0) < maxFriction) return;
  const oldest = tx
    .select({ id: fieldFriction.id })
    .from(fieldFriction)
    .where(and(ofOrg, inArray(fieldFriction.state, ["resolved", "dismissed"])))
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
    .where(and(ofOrg, eq(fieldFriction.id, oldest.id)))
    .run();
}

/** Adds a report to the friction with its fingerprint, which it may reopen, or creates it. Returns the ID. */
function addToFriction(
  ctx: Context,
  tx: Tx,
  org: OrgId,
  draft: Pick<Row, "category" | "place" | "title" | "fingerprints">,
): string {
  const at = ctx.now();
  const fingerprint = draft.fingerprints[0] ?? "";
  const same = and(eq(fieldFriction.orgId, org), eq(fieldFriction.fingerprint, fingerprint));
  const known = tx.select().from(fieldFriction).where(same).orderBy(fieldFriction.id).get();
  if (known) {
    const state = known.state === "resolved" ? ("regressed" as const) : known.state;
    tx.update(fieldFriction)
      .set({ reports: known.reports + 1, lastReportedAt: at, state })
      .where(and(eq(fieldFriction.orgId, org), eq(fieldFriction.id, known.id)))
      .run();
    return known.id;
  }
  makeRoom(tx, org);
  const id = ctx.newId(at);
  tx.insert(fieldFriction)
    .values({
      ...{ ...draft, id, orgId: org, fingerprint, reports: 1, state: "open" },
      ...{ firstReportedAt: at, lastReportedAt: at, reason: null, changedBy: null, changedAt: null },
    })
    .run();
  return id;
}
