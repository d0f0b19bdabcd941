import { sql } from "drizzle-orm";
import { check, index, integer, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { json, oneOf, timestamp } from "./columns.ts";

/**
 * Who did something. `key`: an API key. `trust`: a CI job with the key that a trust gave it. `operator`: a command on the machine of the service.
 * `service`: evald itself, such as a schedule. `anonymous`: someone who is not signed in.
 */
export const actorKinds = ["person", "key", "trust", "operator", "service", "anonymous"] as const;

/** A field that changed. A secret, or a text that is not kept, has neither value. */
export type AuditChange = { field: string; before?: unknown; after?: unknown };

/**
 * The audit log. Triggers refuse every update, except one that removes the name of something erased. While an organization exists, they also refuse
 * to delete an entry that is newer than `audit_retention` says. Names are stored as they were at the time, so there are no references.
 */
export const auditEntries = sqliteTable(
  "audit_entries",
  {
    id: text().primaryKey(),
    /** null: it concerns the service as a whole. */
    orgId: text("org_id"),
    createdAt: timestamp("created_at").notNull(),
    actorKind: text("actor_kind", { enum: actorKinds }).notNull(),
    /** ID of the person, API key or trust; null for the others. */
    actorId: text("actor_id"),
    actorName: text("actor_name").notNull(),
    /** Where the request came from; null: there was none. */
    ipAddress: text("ip_address"),
    userAgent: text("user_agent"),
    requestId: text("request_id"),
    action: text().notNull(),
    targetId: text("target_id"),
    targetName: text("target_name"),
    /** null: none. */
    changes: json<AuditChange[]>("changes"),
  },
  (table) => [
    index("audit_entries_newest").on(table.orgId, table.id),
    index("audit_entries_by_actor").on(table.orgId, table.actorId, table.id),
    index("audit_entries_of_target").on(table.orgId, table.targetId).where(sql`${table.targetId} is not null`),
    index("audit_entries_by_action").on(table.orgId, table.action, table.id),
    check("audit_entries_actor_kind", oneOf(table.actorKind, actorKinds)),
  ],
);

/** Entries of the audit log that were made before this time may be deleted. There is one row, or none until entries are first deleted. */
export const auditRetention = sqliteTable(
  "audit_retention",
  { id: integer().primaryKey(), deleteBefore: timestamp("delete_before").notNull() },
  (table) => [check("audit_retention_once", sql`${table.id} = 1`)],
);
