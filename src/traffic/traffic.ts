import { and, eq, gte, lt, lte, sql } from "drizzle-orm";
import { changesOf, recordAudit } from "../audit/entries.ts";
import type { Context, OrgId } from "../context.ts";
import { transaction } from "../db/open.ts";
import { type CountedKind, fieldTraffic } from "../db/tables/traffic.ts";
import { invalidField } from "../errors.ts";
import { type DocsMap, getDocsMap } from "../friction/docs-map.ts";
import { pageKey } from "../net/page-key.ts";
import { getProvider } from "../providers/providers.ts";
import type { FieldTraffic, FieldTrafficInput, ReceivedTraffic } from "./schema.ts";

type Period = { since?: string; until?: string };

/** How many months are kept, including the current one. */
const monthsKept = 25;

/** The first month that is kept at this time, such as `2024-11`. */
export const firstMonthKept = (nowMs: number): string => {
  const now = new Date(nowMs);
  return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1 - monthsKept, 1)).toISOString().slice(0, 7);
};

/** Stores the counts of an access log. If the log was stored before, its counts are replaced. Throws bad_request for impossible counts. */
export function storeTraffic(ctx: Context, org: OrgId, { log, pages }: FieldTrafficInput): ReceivedTraffic {
  pages.forEach(({ reads, markdown }, i) => {
    if (markdown > reads) throw invalidField(`pages.${i}.markdown`, "must be at most reads");
  });
  const rows = pages.map(({ url, ...counts }) => ({ ...counts, orgId: org, log, page: pageKey(url) }));
  transaction(ctx.db, (tx) => {
    for (const row of rows)
      tx.insert(fieldTraffic)
        .values(row)
        .onConflictDoUpdate({
          target: [
            fieldTraffic.orgId,
            fieldTraffic.page,
            fieldTraffic.month,
            fieldTraffic.kind,
            fieldTraffic.name,
            fieldTraffic.log,
          ],
          set: { reads: row.reads, markdown: row.markdown, missing: row.missing },
        })
        .run();
    recordAudit(ctx, org, "field_traffic.imported", {}, changesOf({}, { log, pages: rows.length }));
  });
  return { pages: rows.length };
}

type Sums = { reads: number; markdown: number; missing: number };
type Row = Sums & { page: string; kind: CountedKind; name: string };

/** The sums of the months of a period for the pages below a URL, grouped by page and visitor. */
function listSums({ db }: Context, org: OrgId, docsUrl: string, [first, last]: [string, string]): Row[] {
  const { page, month, kind, name, reads, markdown, missing } = fieldTraffic;
  const base = pageKey(new URL(".", docsUrl).href);
  return db
    .select({
      page,
      kind,
      name,
      reads: sql<number>`sum(${reads})`,
      markdown: sql<number>`sum(${markdown})`,
      missing: sql<number>`sum(${missing})`,
    })
    .from(fieldTraffic)
    .where(
      and(
        eq(fieldTraffic.orgId, org),
        // The base itself, and all pages below it: `0` is the character after `/`.
        sql`(${eq(page, base)} or ${and(gte(page, `${base}/`), lt(page, `${base}0`))})`,
        gte(month, first),
        lte(month, last),
      ),
    )
    .groupBy(page, kind, name)
    .all();
}

const groupOf = (kind: CountedKind): "coding" | "answer" | "other" =>
  kind === "coding" || kind === "answer" ? kind : "other";

const isLlmsTxt = (page: string): boolean => /\/llms(-[a-z]+)?\.txt$/.test(page);

/** A page that visitors outside of runs requested. It has their reads by group, and the number of runs that read it. */
function toPage(url: string, rows: Row[], runs: number) {
  const readers = { coding: 0, answer: 0, other: 0 };
  for (const { kind, reads } of rows) readers[groupOf(kind)] += reads;
  return { url, ...readers, ...sumOf(rows), runs };
}

const agentReadsOf = ({ coding, answer }: ReturnType<typeof toPage>): number => coding + answer;

/**
 * What agents outside of runs did with the docs of a provider, compared with what runs did. It is empty for a provider without docs. `limit`: the
 * maximum length of each list. Throws not_found.
 */
export function getFieldTraffic(
  ctx: Context,
  org: OrgId,
  providerId: string,
  { limit = 100, ...period }: Period & { limit?: number },
): FieldTraffic {
  const { docsUrl } = getProvider(ctx, org, providerId);
  const map = getDocsMap(ctx, org, { providerId }, { ...period, limit: Number.MAX_SAFE_INTEGER });
  // How many runs read a page, and how often agents in runs guessed a URL that doesn't exist.
  const runsByPage = new Map(map.pages.map(({ url, runs }) => [pageKey(url), runs]));
  const guessesByPage = new Map(map.guessed.map(({ url, misses }) => [pageKey(url), misses]));
  const sums = docsUrl === null ? [] : listSums(ctx, org, docsUrl, monthsOf(map));
  const rows = sums.map((row) => {
    // A page that doesn't exist may have a success status. In a log, it then looks as if it was read. Runs recognize such a page by its text.
    const isMissing = guessesByPage.has(row.page) && !runsByPage.has(row.page);
    return isMissing ? { ...row, reads: 0, markdown: 0, missing: row.missing + row.reads } : row;
  });
  const pages = [...Map.groupBy(rows, ({ page }) => page)].map(([url, rowsOfPage]) =>
    toPage(url, rowsOfPage, runsByPage.get(url) ?? 0),
  );
  const readPages = pages.filter(({ reads, url }) => reads > 0 && !isLlmsTxt(url));
  const pagesOfAgents = mostFirst(
    readPages.filter((page) => agentReadsOf(page) > 0),
    agentReadsOf,
  );
  const urlsOfAgents = new Set(pagesOfAgents.map(({ url }) => url));
  const visitors = sumsBy(rows, ({ kind, name }) => `${kind} ${name}`);
  const missingPages = pages.filter(({ missing }) => missing > 0);
  const llmsTxtRows = rows.filter(({ page }) => isLlmsTxt(page));
  return {
    since: map.since,
    until: map.until,
    visitors: mostFirst(visitors, timesOf).map(({ page: _, ...visitor }) => visitor),
    pages: readPages
      .toSorted((a, b) => agentReadsOf(b) - agentReadsOf(a) || b.other - a.other)
      .slice(0, limit)
      .map(({ url, coding, answer, other, markdown, runs }) => ({ url, coding, answer, other, markdown, runs })),
    untested: pagesOfAgents
      .filter(({ runs }) => runs === 0)
      .slice(0, limit)
      .map((page) => ({ url: page.url, reads: agentReadsOf(page) })),
    missing: mostFirst(missingPages, ({ missing }) => missing)
      .slice(0, limit)
      .map(({ url, missing }) => ({ url, requests: missing, guesses: guessesByPage.get(url) ?? 0 })),
    unread: map.pages
      .filter(({ url }) => !urlsOfAgents.has(pageKey(url)))
      .slice(0, limit)
      .map(({ url, runs }) => ({ url, runs })),
    llmsTxt: mostFirst(llmsTxtRows, timesOf)
      .slice(0, limit)
      .map(({ page, ...row }) => ({ url: page, ...row })),
  };
}

/** The first and the last month of the period of a docs map: from the start of a month until the start of another. */
function monthsOf({ since, until }: DocsMap): [string, string] {
  // These times are midnights in the time zone of the organization, up to 14 hours from UTC. One day further inside the period, the month is the same
  // in UTC.
  const monthAt = (time: string, days: number) =>
    new Date(Date.parse(time) + days * 86_400_000).toISOString().slice(0, 7);
  return [monthAt(since, 1), monthAt(until, -1)];
}

const timesOf = ({ reads, missing }: Sums): number => reads + missing;

const sumOf = (rows: Sums[]): Sums => ({
  reads: rows.reduce((sum, { reads }) => sum + reads, 0),
  markdown: rows.reduce((sum, { markdown }) => sum + markdown, 0),
  missing: rows.reduce((sum, { missing }) => sum + missing, 0),
});

/** The sums of groups of rows. The other fields come from the first row of each group. */
const sumsBy = (rows: Row[], keyOf: (row: Row) => string): Row[] =>
  [...Map.groupBy(rows, keyOf).values()].map((group) => ({ ...(group[0] as Row), ...sumOf(group) }));

const mostFirst = <T>(items: T[], countOf: (item: T) => number): T[] =>
  items.toSorted((a, b) => countOf(b) - countOf(a));

/** The pages of the docs at a URL that agents outside of runs read, or requested and didn't find. Each has the number of requests. */
export function listTrafficOf(ctx: Context, org: OrgId, docsUrl: string): { url: string; times: number }[] {
  const rows = listSums(ctx, org, docsUrl, [firstMonthKept(ctx.now()), "9999-12"]);
  const rowsOfAgents = rows.filter(({ kind, page }) => groupOf(kind) !== "other" && !isLlmsTxt(page));
  return sumsBy(rowsOfAgents, ({ page }) => page).map((row) => ({ url: row.page, times: timesOf(row) }));
}
