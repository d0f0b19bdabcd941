import { sql } from "drizzle-orm";
import { check, integer, sqliteTable, text, unique } from "drizzle-orm/sqlite-core";
import type { DeclaredCheck } from "../../agents/task.ts";
import type { Limits } from "../../config/limits.ts";
import { json, timestamp } from "./columns.ts";
import { orgIdColumn } from "./orgs.ts";
import type { PromptAgent } from "./prompts.ts";

/** A task of a suite. Its texts and checks have variables, which each product fills. */
export type SuiteSlot = {
  slot: string;
  title: string;
  text: string;
  endGoal: string | null;
  declaredChecks: DeclaredCheck[];
};

/** The versions of an organization's own suites. A version never changes. */
export const suites = sqliteTable(
  "suites",
  {
    id: text().primaryKey(),
    orgId: orgIdColumn(),
    /** The same in all versions. */
    name: text().notNull(),
    version: integer().notNull(),
    title: text().notNull(),
    slots: json<SuiteSlot[]>("slots").notNull(),
    limits: json<Limits>("limits"),
    agents: json<PromptAgent[]>("agents"),
    createdAt: timestamp("created_at").notNull(),
  },
  (table) => [
    unique("suites_by_version").on(table.orgId, table.name, table.version),
    check("suites_version", sql`${table.version} > 0`),
  ],
);
