import { sql } from "drizzle-orm";
import type { Context } from "../context.ts";
import type { Tx } from "../db/open.ts";
import { statement } from "../db/prepared.ts";
import { timeZoneOf } from "../db/rows.ts";
import type { runs } from "../db/tables/runs.ts";
import { listedPages, pageMonths } from "../db/tables/trends.ts";
import type { ListedPage } from "../grading/grade.ts";
import { type CountedReport, isLive } from "./lifecycle-rows.ts";

/** The calendar month of a time in a time zone. Months are stored as the start of the month in UTC, whatever the zone. */
export function monthOf(at: number, timeZone: string): number {
  const { year, month } = Temporal.Instant.fromEpochMilliseconds(at).toZonedDateTimeISO(timeZone);
  return Date.UTC(year, month - 1, 1);
}

/** Stands in place of the page in the row that counts the runs of a month. */
export const noPage = "";

type Counts = Omit<typeof pageMonths.$inferInsert, "orgId" | "promptId" | "month" | "agent" | "page" | "url">;

const noCounts = {
  runs: 0,
  reads: 0,
  misses: 0,
  guesses: 0,
  errors: 0,
  given: 0,
  llmsTxt: 0,
  sitemap: 0,
  link: 0,
  search: 0,
  guessed: 0,
};

const countNames = Object.keys(noCounts) as (keyof Counts)[];

const increments = Object.fromEntries(
  countNames.map((name) => [name, sql`${pageMonths[name]} + ${sql.raw(`excluded."${pageMonths[name].name}"`)}`]),
);

const keyNames = ["orgId", "promptId", "month", "agent", "page", "url"] as const;

const addCounts = statement((db) =>
  db
    .insert(pageMonths)
    .values(
      Object.fromEntries(
        [...keyNames, ...countNames].map((name) => [name, sql.placeholder(name)]),
      ) as unknown as typeof pageMonths.$inferInsert,
    )
    .onConflictDoUpdate({
      target: [pageMonths.orgId, pageMonths.promptId, pageMonths.month, pageMonths.agent, pageMonths.page],
      set: increments,
    }),
);

/** Adds the visits of a report on the live docs to its month, or subtracts them (`sign` -1), in the open transaction. */
export function updatePageCounts(ctx: Context, { run, exposure }: CountedReport, sign: 1 | -1): void {
  if (!exposure || !isLive(run)) return;
  const month = monthOf(run.createdAt, timeZoneOf(ctx.db, run.orgId));
  const key = { orgId: run.orgId, promptId: run.promptId, month, agent: run.agent };
  addCounts(ctx.db).run({ ...key, page: noPage, url: "", ...noCounts, runs: sign });
  for (const { page, url, reads, misses, guesses, errors, found } of exposure.visits) {
    const { "llms.txt": llmsTxt = 0, given = 0, sitemap = 0, link = 0, search = 0, guessed = 0 } = found;
    const counts = { reads, misses, guesses, errors, given, llmsTxt, sitemap, link, search, guessed };
    const signedCounts = Object.fromEntries(Object.entries(counts).map(([name, n]) => [name, sign * n]));
    addCounts(ctx.db).run({ ...key, page, url, ...signedCounts, runs: reads > 0 ? sign : 0 });
  }
}

/** Records which pages were linked or listed in a run, regardless of its report. */
export function recordListedPages(tx: Tx, run: typeof runs.$inferSelect, pages: ListedPage[]): void {
  if (!isLive(run)) return;
  const columns = { "llms.txt": "llmsTxtAt", sitemap: "sitemapAt", link: "linkAt" } as const;
  for (const { page, url, by } of pages) {
    const columnsOfRun = { [columns[by]]: run.createdAt };
    tx.insert(listedPages)
      .values({ orgId: run.orgId, promptId: run.promptId, page, url, ...columnsOfRun })
      .onConflictDoUpdate({ target: [listedPages.orgId, listedPages.promptId, listedPages.page], set: columnsOfRun })
      .run();
  }
}
