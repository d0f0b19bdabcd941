import { and, count, desc, eq, inArray, ne, not, sql } from "drizzle-orm";
import { changesOf, recordAudit } from "../audit/entries.ts";
import type { Context, OrgId } from "../context.ts";
import { transaction } from "../db/open.ts";
import { fieldFriction, fieldReports } from "../db/tables/field.ts";
import { frictionLifecycles } from "../db/tables/friction.ts";
import { invalidField, notFound } from "../errors.ts";
import { oneLine } from "../grading/text.ts";
import type { Page, Paged } from "../http/paging.ts";
import { toIso } from "../schema.ts";
import { maxReports } from "./reports.ts";
import type { FieldFilter, FieldFrictionChange, FieldFrictionDetail, FieldFriction as Friction } from "./schema.ts";

type FieldFrictionRow = typeof fieldFriction.$inferSelect;

/** Those fingerprints of a row that published runs hit. */
const hitFingerprints = sql`(select distinct hit.fingerprint from ${frictionLifecycles} hit
  where hit.org_id = ${fieldFriction.orgId} and hit.fingerprint in (select value from json_each(${fieldFriction.fingerprints})))`;

const columns = {
  row: fieldFriction,
  fingerprints: sql<string>`(select json_group_array(fingerprint) from ${hitFingerprints})`,
};

/** The most recently reported first. Dismissed ones only on request. */
export function listFieldFriction(
  ctx: Context,
  org: OrgId,
  { state, verified, category }: FieldFilter,
  { limit, offset }: Page,
): Paged<Friction> {
  const isVerified = sql`exists ${hitFingerprints}`;
  const filter = and(
    eq(fieldFriction.orgId, org),
    state ? eq(fieldFriction.state, state) : ne(fieldFriction.state, "dismissed"),
    category ? eq(fieldFriction.category, category) : undefined,
    verified === "true" ? isVerified : undefined,
    verified === "false" ? not(isVerified) : undefined,
  );
  const rows = ctx.db
    .select(columns)
    .from(fieldFriction)
    .where(filter)
    .orderBy(desc(fieldFriction.lastReportedAt), desc(fieldFriction.id))
    .limit(limit)
    .offset(offset)
    .all();
  const total = ctx.db.select({ n: count() }).from(fieldFriction).where(filter).get()?.n ?? 0;
  return { items: rows.map(toFriction), total };
}

/** With its newest reports. Throws not_found. */
export function getFieldFriction(ctx: Context, org: OrgId, id: string): FieldFrictionDetail {
  const friction = getFriction(ctx, org, id);
  const { id: reportId, tried, happened, agent, createdAt } = fieldReports;
  const reports = ctx.db
    .select({ id: reportId, tried, happened, agent, createdAt })
    .from(fieldReports)
    .where(and(eq(fieldReports.orgId, org), eq(fieldReports.frictionId, friction.id)))
    .orderBy(desc(fieldReports.id))
    .limit(maxReports)
    .all();
  return { ...friction, latest: reports.map((report) => ({ ...report, createdAt: toIso(report.createdAt) })) };
}

/** Resolves, dismisses or reopens it. Throws not_found, and bad_request if it is dismissed without a reason. */
export function changeFieldFriction(
  ctx: Context,
  org: OrgId,
  id: string,
  { state, reason = null }: FieldFrictionChange,
  by: string,
): Friction {
  const note = oneLine(reason ?? "", 2000) || null;
  if (state === "dismissed" && note === null) throw invalidField("reason", "must say why it is not a problem");
  const before = getFriction(ctx, org, id);
  transaction(ctx.db, (tx) => {
    tx.update(fieldFriction)
      .set({ state, reason: state === "open" ? null : note, changedBy: by, changedAt: ctx.now() })
      .where(whereFriction(org, id))
      .run();
    const changes = changesOf(before, { state, reason: note });
    recordAudit(ctx, org, "field_friction.changed", { id: before.id, name: before.title }, changes);
  });
  return getFriction(ctx, org, id);
}

/** The open field friction at the location of a friction point, the most recently reported first. */
export function listFieldFrictionAt(ctx: Context, org: OrgId, fingerprint: string) {
  const isAtLocation = sql`exists (select 1 from json_each(${fieldFriction.fingerprints}) where value = ${fingerprint})`;
  const rows = ctx.db
    .select(columns)
    .from(fieldFriction)
    .where(and(eq(fieldFriction.orgId, org), inArray(fieldFriction.state, ["open", "regressed"]), isAtLocation))
    .orderBy(desc(fieldFriction.lastReportedAt))
    .limit(20)
    .all();
  return rows.map(toFriction).map(({ id, title, reports, lastReportedAt }) => ({ id, title, reports, lastReportedAt }));
}

const whereFriction = (org: OrgId, id: string) =>
  and(eq(fieldFriction.orgId, org), eq(fieldFriction.id, id.toLowerCase()));

function toFriction({ row, fingerprints }: { row: FieldFrictionRow; fingerprints: string }): Friction {
  const { id, title, category, place, state, reports, reason, changedBy } = row;
  const friction: string[] = JSON.parse(fingerprints);
  return {
    id,
    title,
    category,
    where: place,
    state,
    isVerified: friction.length > 0,
    friction,
    reports,
    firstReportedAt: toIso(row.firstReportedAt),
    lastReportedAt: toIso(row.lastReportedAt),
    reason,
    changedBy,
    changedAt: toIso(row.changedAt),
  };
}

/** Throws not_found. */
function getFriction(ctx: Context, org: OrgId, id: string): Friction {
  const row = ctx.db.select(columns).from(fieldFriction).where(whereFriction(org, id)).get();
  if (!row) throw notFound(`No friction from the field has the ID ${id}.`);
  return toFriction(row);
}
