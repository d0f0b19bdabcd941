import { sql } from "drizzle-orm";
import { check, index, integer, sqliteTable, text, unique } from "drizzle-orm/sqlite-core";
import { frictionCategories } from "../../grading/kinds.ts";
import { json, oneOf, orgReference, timestamp } from "./columns.ts";
import { orgIdColumn } from "./orgs.ts";

/** `regressed`: reported again after it was resolved. */
export const fieldStates = ["open", "regressed", "resolved", "dismissed"] as const;

/** Friction that agents outside of runs reported, one row per place and category. */
export const fieldFriction = sqliteTable(
  "field_friction",
  {
    id: text().primaryKey(),
    orgId: orgIdColumn(),
    /** The first fingerprint is its own. The others are those that a run's friction at the same place may have. */
    fingerprints: json<string[]>("fingerprints").notNull(),
    fingerprint: text().notNull(),
    category: text({ enum: frictionCategories }).notNull(),
    /** A URL, or the name of a command or function. */
    place: text().notNull(),
    title: text().notNull(),
    /** Number of reports; only the newest are kept. */
    reports: integer().notNull(),
    firstReportedAt: timestamp("first_reported_at").notNull(),
    lastReportedAt: timestamp("last_reported_at").notNull(),
    state: text({ enum: fieldStates }).notNull(),
    /** Why a person resolved or dismissed it, who, and when it was last changed. */
    reason: text(),
    changedBy: text("changed_by"),
    changedAt: timestamp("changed_at"),
  },
  (table) => [
    unique("field_friction_of_org").on(table.orgId, table.id),
    index("field_friction_by_fingerprint").on(table.orgId, table.fingerprint),
    index("field_friction_by_state").on(table.orgId, table.state, table.lastReportedAt),
    check("field_friction_state", oneOf(table.state, fieldStates)),
    check("field_friction_category", oneOf(table.category, frictionCategories)),
    check("field_friction_changed", sql`(${table.changedBy} is null) = (${table.changedAt} is null)`),
  ],
);

/** What agents wrote about field friction. Secrets are removed before it is stored. */
export const fieldReports = sqliteTable(
  "field_reports",
  {
    id: text().primaryKey(),
    orgId: text("org_id").notNull(),
    frictionId: text("friction_id").notNull(),
    tried: text().notNull(),
    happened: text().notNull(),
    agent: text(),
    createdAt: timestamp("created_at").notNull(),
  },
  (table) => [
    index("field_reports_of_friction").on(table.orgId, table.frictionId, table.id),
    orgReference("field_reports_friction", [table.orgId, table.frictionId], fieldFriction),
  ],
);
