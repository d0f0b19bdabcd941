import { sql } from "drizzle-orm";
import { blob, check, index, integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { json, oneOf, timestamp } from "./columns.ts";

export const deletionKinds = ["organization", "prompt", "run"] as const;
/** `pending`: hidden, and can be restored. `erasing`: hidden for good; rows are being erased. */
export const deletionStatuses = ["pending", "erasing", "erased", "restored"] as const;

/** How much was deleted. */
export type DeletionCounts = { prompts: number; runs: number; reports: number };

/**
 * Deleted organizations, prompts and runs. A row is kept, without the name, after its subject was erased, so that a restored backup can be brought up
 * to date. So it has no references.
 */
export const deletions = sqliteTable(
  "deletions",
  {
    id: text().primaryKey(),
    orgId: text("org_id").notNull(),
    kind: text({ enum: deletionKinds }).notNull(),
    subjectId: text("subject_id").notNull(),
    /** The prompt of a deleted run; null for the other kinds. */
    ofPrompt: text("of_prompt"),
    /** What lists call it; null: it was erased. */
    title: text(),
    /** The slug of the report of a deleted run. */
    slug: text(),
    counts: json<DeletionCounts>("counts").notNull(),
    status: text({ enum: deletionStatuses }).notNull(),
    deletedBy: text("deleted_by"),
    createdAt: timestamp("created_at").notNull(),
    /** When it is erased. */
    erasesAt: timestamp("erases_at").notNull(),
    completedAt: timestamp("completed_at"),
  },
  (table) => [
    index("deletions_of_org").on(table.orgId, table.id),
    // For operators, who see what a backup still has of all organizations.
    index("deletions_by_completion")
      .on(table.completedAt, table.kind, table.subjectId)
      .where(sql`${table.status} != 'restored'`),
    index("deletions_open").on(table.orgId, table.erasesAt).where(sql`${table.completedAt} is null`),
    check("deletions_kind", oneOf(table.kind, deletionKinds)),
    check("deletions_status", oneOf(table.status, deletionStatuses)),
    check("deletions_completed", sql`(${table.status} in ('erased', 'restored')) = (${table.completedAt} is not null)`),
    check("deletions_erased", sql`${table.status} != 'erased' or ${table.title} is null`),
  ],
);

/**
 * The prompts whose rows are hidden from every query. A deleted run is moved to a prompt of its own, so that this list decides alone what is
 * visible.
 */
export const deletedPrompts = sqliteTable(
  "deleted_prompts",
  { promptId: text("prompt_id").primaryKey(), deletionId: text("deletion_id").notNull() },
  (table) => [index("deleted_prompts_of_deletion").on(table.deletionId)],
);

/** The organizations whose rows are hidden from every query. */
export const deletedOrgs = sqliteTable("deleted_orgs", {
  orgId: text("org_id").primaryKey(),
  deletionId: text("deletion_id").notNull(),
});

/** People whose accounts were deleted, until their names are removed from everything that they made. */
export const deletedPeople = sqliteTable("deleted_people", {
  personId: text("person_id").primaryKey(),
  name: text().notNull(),
  email: text().notNull(),
});

/** Digests of the slugs of erased reports, which are never used again. */
export const erasedSlugs = sqliteTable("erased_slugs", { digest: blob({ mode: "buffer" }).primaryKey() });

export const keptKinds = ["sessions", "artifacts", "reports", "deliveries", "people"] as const;

/** How long an organization keeps what it stores, in days. Without a row, the default of the server applies. */
export const retention = sqliteTable(
  "retention",
  {
    orgId: text("org_id").notNull(),
    /** What is kept. */
    kind: text({ enum: keptKinds }).notNull(),
    days: integer().notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.orgId, table.kind] }),
    check("retention_kind", oneOf(table.kind, keptKinds)),
    check("retention_days", sql`${table.days} between 1 and 36500`),
  ],
);
