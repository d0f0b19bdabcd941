import { sql } from "drizzle-orm";
import { index, integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
import type { Grade } from "../../grading/grade.ts";
import { scopes } from "../../grading/kinds.ts";
import { boolean, json, orgReference, timestamp } from "./columns.ts";
import { prompts } from "./prompts.ts";

/**
 * Published live results per day in UTC, one row per agent, version, context, model, methodology and scope. The lists have
 * one entry per run, in order of request, so that a row can be split at the midnight of any time zone.
 */
export const scoreDays = sqliteTable(
  "score_days",
  {
    orgId: text("org_id").notNull(),
    promptId: text("prompt_id").notNull(),
    /** Start of the day, in UTC. */
    day: timestamp("day").notNull(),
    agent: text().notNull(),
    /** Empty if there is none. */
    version: text().notNull(),
    /** Empty if there is none. */
    contextDigest: text("context_digest").notNull().default(""),
    model: text().notNull(),
    methodology: json<Grade["methodology"]>("methodology").notNull(),
    /** The scope of its scores: different scopes are separate series. */
    scope: text({ enum: scopes }).notNull().default("docs_only"),
    /** When each run was requested, in ms since the start of the day. */
    times: json<number[]>("times").notNull(),
    scores: json<(number | null)[]>("scores").notNull(),
    seconds: json<(number | null)[]>("seconds").notNull(),
    costsUsd: json<(number | null)[]>("costs_usd").notNull(),
    /** 1: the goal was met, 0: it was not, null: it was not judged. */
    met: json<(0 | 1 | null)[]>("met").notNull(),
  },
  ({ orgId, promptId, day, agent, version, contextDigest, model, methodology, scope }) => [
    primaryKey({ columns: [orgId, promptId, day, agent, version, contextDigest, model, methodology, scope] }),
    orgReference("score_days_prompt", [orgId, promptId], prompts),
  ],
);

/** The newest significant change of the scores of each prompt with published live results, so that no list has to search for it. */
export const scoreChanges = sqliteTable(
  "score_changes",
  {
    orgId: text("org_id").notNull(),
    promptId: text("prompt_id").notNull(),
    /** Whether results were added or withdrawn since it was computed. */
    isStale: boolean("is_stale").notNull(),
    /** null: none. */
    change: json<Record<string, unknown>>("change"),
  },
  (table) => [
    primaryKey({ columns: [table.orgId, table.promptId] }),
    index("score_changes_stale").on(table.orgId).where(sql`${table.isStale} = 1`),
    orgReference("score_changes_prompt", [table.orgId, table.promptId], prompts),
  ],
);

/** What agents did with docs pages per month, by published live runs. The row with an empty page counts the runs themselves. */
export const pageMonths = sqliteTable(
  "page_months",
  {
    orgId: text("org_id").notNull(),
    promptId: text("prompt_id").notNull(),
    /** The calendar month of the run in the time zone of the organization, as the start of that month in UTC. */
    month: timestamp("month").notNull(),
    agent: text().notNull(),
    page: text().notNull(),
    url: text().notNull(),
    /** Runs that read it. */
    runs: integer().notNull(),
    reads: integer().notNull(),
    /** Requests without a usable response, and how many of these had a guessed URL. */
    misses: integer().notNull(),
    guesses: integer().notNull(),
    /** Reads followed by a failure before the next page was read. */
    errors: integer().notNull(),
    /** From here on: answered requests by how their URL was found. */
    given: integer().notNull(),
    llmsTxt: integer("llms_txt").notNull(),
    sitemap: integer().notNull(),
    link: integer().notNull(),
    search: integer().notNull(),
    guessed: integer().notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.orgId, table.promptId, table.month, table.agent, table.page] }),
    orgReference("page_months_prompt", [table.orgId, table.promptId], prompts),
  ],
);

/** Pages that are linked or listed, and when each was last seen there; null: never. */
export const listedPages = sqliteTable(
  "listed_pages",
  {
    orgId: text("org_id").notNull(),
    promptId: text("prompt_id").notNull(),
    page: text().notNull(),
    url: text().notNull(),
    llmsTxtAt: timestamp("llms_txt_at"),
    sitemapAt: timestamp("sitemap_at"),
    linkAt: timestamp("link_at"),
  },
  (table) => [
    primaryKey({ columns: [table.orgId, table.promptId, table.page] }),
    orgReference("listed_pages_prompt", [table.orgId, table.promptId], prompts),
  ],
);
