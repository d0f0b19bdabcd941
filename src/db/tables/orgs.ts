import { sql } from "drizzle-orm";
import { check, integer, real, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { json, timestamp } from "./columns.ts";

/** How members of an organization must sign in. `emailDomains`: of their addresses, in lower case; empty: any. */
export type SignInPolicy = { requiresSso: boolean; requiresSecondFactor: boolean; emailDomains: string[] };

export const orgs = sqliteTable(
  "orgs",
  {
    id: text().primaryKey(),
    name: text().notNull().unique(),
    timeZone: text("time_zone").notNull(),
    /** Concurrent runs, and runs within 24 hours; null: the configured limit. */
    maxRunsAtOnce: integer("max_runs_at_once"),
    maxRunsADay: integer("max_runs_a_day"),
    /** Maximum model cost per calendar month in its time zone, and per run; null: no own limit. */
    maxUsdAMonth: real("max_usd_a_month"),
    maxUsdARun: real("max_usd_a_run"),
    /** Models that judge its sessions, best first; null: the configured ones. */
    judgeModels: json<string[]>("judge_models"),
    /** Secret part of the URL of its results page, which is shown without signing in; null: there is none. */
    resultsToken: text("results_token").unique(),
    /** Since then no schedule of the organization runs; null: they run. */
    schedulesPausedAt: timestamp("schedules_paused_at"),
    /** What members must fulfill to see anything of it; null: nothing. */
    signInPolicy: json<SignInPolicy>("sign_in_policy"),
    createdAt: timestamp("created_at").notNull(),
  },
  (table) => [check("orgs_name", sql`length(${table.name}) between 1 and 200`)],
);

/** The column of the organization in tables whose rows refer to nothing else. */
export const orgIdColumn = () =>
  text("org_id")
    .notNull()
    .references(() => orgs.id);
