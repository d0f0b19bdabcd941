import { type Static, Type } from "@sinclair/typebox";
import { and, eq, gte, lt, ne, sql } from "drizzle-orm";
import type { Context, OrgId } from "../context.ts";
import { cachedResult } from "../db/cache.ts";
import type { Db } from "../db/open.ts";
import { prepared } from "../db/prepared.ts";
import { timeZoneOf } from "../db/rows.ts";
import { frictionLifecycles, frictionPoints } from "../db/tables/friction.ts";
import { listedPages, pageMonths } from "../db/tables/trends.ts";
import { Moment, OneOf, Time, toInstant, toIso } from "../schema.ts";
import { monthOf, noPage } from "./page-counts.ts";
import { FrictionSummary, type Scope } from "./schema.ts";
import { promptsWithin } from "./scope.ts";

/** Default period in months, including the current one. */
const monthsShown = 3;

const provenances = ["given", "llmsTxt", "sitemap", "link", "search", "guessed"] as const;
const count = (description: string) => Type.Integer({ description });
const { fingerprint, severity, title, state } = FrictionSummary.properties;

export const mapQuery = {
  agent: Type.Optional(Type.String({ maxLength: 100, description: "ID of the agent, such as explorer" })),
  since: Type.Optional(Moment("From the month of this time; default: two months ago")),
  until: Type.Optional(Moment("Up to the month of this time")),
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 1000, default: 100, description: "Maximum number of items per list" }),
  ),
};
const MapQuery = Type.Object(mapQuery);
type MapQuery = Static<typeof MapQuery>;

export const DocsMap = Type.Object(
  {
    since: Time,
    until: Time,
    runs: count("Published runs on the live docs"),
    pages: Type.Array(
      Type.Object({
        url: Type.String(),
        runs: count("Runs that read the page"),
        reads: count("How often the page was read"),
        found: Type.Object(Object.fromEntries(provenances.map((name) => [name, Type.Integer()])), {
          description: "How its URL was found, per answered request",
        }),
        errorsAfter: count("Reads followed by a failure before the next page was read"),
        friction: Type.Array(Type.Object({ fingerprint, severity, title, state })),
      }),
      { description: "Pages that were read, most read first" },
    ),
    unreached: Type.Array(
      Type.Object({ url: Type.String(), listedBy: Type.Array(OneOf(["llms.txt", "sitemap", "link"])) }),
      { description: "Pages linked in the docs that no run read" },
    ),
    guessed: Type.Array(Type.Object({ url: Type.String(), misses: Type.Integer() }), {
      description: "URLs that agents guessed but that do not exist, most guessed first",
    }),
    totals: Type.Object({ pages: Type.Integer(), unreached: Type.Integer(), guessed: Type.Integer() }),
  },
  { title: "DocsMap" },
);
export type DocsMap = Static<typeof DocsMap>;

const monthsAfter = (month: number, n: number) => {
  const date = new Date(month);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + n, 1);
};

/** Epoch milliseconds at which a month begins in a time zone. */
const startOf = (month: number, timeZone: string) =>
  toInstant("month", new Date(month).toISOString().slice(0, 10), timeZone);

const countNames = [
  "runs",
  "reads",
  "guesses",
  "errors",
  "given",
  "llmsTxt",
  "sitemap",
  "link",
  "search",
  "guessed",
] as const;
type PageRow = { page: string; url: string } & Record<(typeof countNames)[number], number>;

/** How agents used the docs of a provider, or with one prompt: pages read, never reached and guessed. Throws like `promptsWithin`. */
export function getDocsMap(ctx: Context, org: OrgId, scope: Scope, query: MapQuery): DocsMap {
  const { db, now } = ctx;
  const zone = timeZoneOf(db, org);
  const lastMonth = monthOf(query.until === undefined ? now() : toInstant("until", query.until, zone), zone);
  const firstMonth =
    query.since === undefined
      ? monthsAfter(lastMonth, 1 - monthsShown)
      : monthOf(toInstant("since", query.since, zone), zone);
  const { agent, limit } = query;
  const { promptId, providerId } = scope;
  const cacheKey = ["docs map", org, promptId, providerId, agent, limit, firstMonth, lastMonth, zone];
  return cachedResult(db, cacheKey, () => computeDocsMap(ctx, org, scope, query, { firstMonth, lastMonth, zone }));
}

function computeDocsMap(
  ctx: Context,
  org: OrgId,
  scope: Scope,
  { agent, limit = 100 }: MapQuery,
  { firstMonth, lastMonth, zone }: { firstMonth: number; lastMonth: number; zone: string },
): DocsMap {
  const { db } = ctx;
  const ids = promptsWithin(ctx, org, scope);
  const endMonth = monthsAfter(lastMonth, 1);
  const [since, until] = [startOf(firstMonth, zone), startOf(endMonth, zone)];
  const rows = pagesOf(db, org, ids, [firstMonth, endMonth], agent);
  const readPages = rows
    .filter(({ page, reads }) => page !== noPage && reads > 0)
    .sort((a, b) => b.runs - a.runs || b.reads - a.reads || byPage(a, b));
  const missedPages = rows.filter(({ guesses }) => guesses > 0).sort((a, b) => b.guesses - a.guesses || byPage(a, b));
  const reached = new Set(readPages.map(({ page }) => page));
  const unreached = listedPagesOf(db, org, ids, since)
    .filter(({ page }) => !reached.has(page))
    .sort(byPage);
  const shownPages = readPages.slice(0, limit);
  const friction = frictionOn(db, org, ids, new Set(shownPages.map(({ page }) => page)));
  return {
    since: toIso(since),
    until: toIso(until),
    runs: rows.find(({ page }) => page === noPage)?.runs ?? 0,
    pages: shownPages.map((row) => ({
      url: row.url,
      runs: row.runs,
      reads: row.reads,
      found: Object.fromEntries(provenances.map((name) => [name, row[name]])),
      errorsAfter: row.errors,
      friction: (friction.get(row.page) ?? []).map(({ point }) => point),
    })),
    unreached: unreached.slice(0, limit).map(({ url, listedBy }) => ({ url, listedBy })),
    guessed: missedPages.slice(0, limit).map(({ url, guesses }) => ({ url, misses: guesses })),
    totals: { pages: readPages.length, unreached: unreached.length, guessed: missedPages.length },
  };
}

const byPage = (a: { page: string }, b: { page: string }) => (a.page < b.page ? -1 : 1);

/** What agents did with each page in some months. The row of `noPage` has the number of runs. */
function pagesOf(
  db: Db,
  org: OrgId,
  promptIds: string[],
  [since, until]: [number, number],
  agent: string | undefined,
): PageRow[] {
  const sums = Object.fromEntries(countNames.map((name) => [name, sql<number>`sum(${pageMonths[name]})`]));
  const ofPrompt = prepared(
    db
      .select({ page: pageMonths.page, url: sql<string>`max(${pageMonths.url})`, ...sums })
      .from(pageMonths)
      .where(
        and(
          eq(pageMonths.orgId, org),
          eq(pageMonths.promptId, sql.placeholder("prompt")),
          gte(pageMonths.month, since),
          lt(pageMonths.month, until),
          agent === undefined ? undefined : eq(pageMonths.agent, agent),
        ),
      )
      .groupBy(pageMonths.page),
  );
  const pages = new Map<string, PageRow>();
  for (const prompt of promptIds)
    for (const row of ofPrompt.all({ prompt }) as PageRow[]) {
      const total = pages.get(row.page);
      if (!total) pages.set(row.page, row);
      else for (const name of countNames) total[name] += row[name];
    }
  return [...pages.values()];
}

/** Pages that were linked or listed since a moment, each with what linked or listed it. */
function listedPagesOf(db: Db, org: OrgId, promptIds: string[], since: number) {
  const ofPrompt = prepared(
    db
      .select()
      .from(listedPages)
      .where(and(eq(listedPages.orgId, org), eq(listedPages.promptId, sql.placeholder("prompt")))),
  );
  const pagesByKey = new Map<string, { page: string; url: string; listedBy: ("llms.txt" | "sitemap" | "link")[] }>();
  for (const prompt of promptIds)
    for (const { page, url, llmsTxtAt, sitemapAt, linkAt } of ofPrompt.all({ prompt })) {
      const earlier = pagesByKey.get(page)?.listedBy ?? [];
      const listedBy = [["llms.txt", llmsTxtAt] as const, ["sitemap", sitemapAt] as const, ["link", linkAt] as const]
        .filter(([by, at]) => earlier.includes(by) || (at !== null && at >= since))
        .map(([by]) => by);
      if (listedBy.length > 0) pagesByKey.set(page, { page, url, listedBy });
    }
  return [...pagesByKey.values()];
}

/** The current friction points of live docs pages, without duplicates. */
function frictionOn(db: Db, org: OrgId, promptIds: string[], pages: Set<string>) {
  const ofPrompt = prepared(
    db
      .select({
        page: frictionLifecycles.page,
        reportId: frictionLifecycles.reportId,
        fingerprint: frictionLifecycles.fingerprint,
        severity: frictionLifecycles.severity,
        state: frictionLifecycles.state,
      })
      .from(frictionLifecycles)
      .where(
        and(
          eq(frictionLifecycles.orgId, org),
          eq(frictionLifecycles.promptId, sql.placeholder("prompt")),
          eq(frictionLifecycles.preview, ""),
          ne(frictionLifecycles.state, "fixed"),
        ),
      ),
  );
  const titleOf = prepared(
    db
      .select({ title: frictionPoints.title })
      .from(frictionPoints)
      .where(
        and(
          eq(frictionPoints.reportId, sql.placeholder("reportId")),
          eq(frictionPoints.fingerprint, sql.placeholder("fingerprint")),
        ),
      ),
  );
  const rows = promptIds.flatMap((prompt) => ofPrompt.all({ prompt })).filter(({ page }) => pages.has(page ?? ""));
  const points = [...new Map(rows.map((row) => [row.fingerprint, row])).values()].map(
    ({ page, reportId, fingerprint, severity, state }) => {
      const title = titleOf.get({ reportId, fingerprint })?.title ?? "";
      return { page, point: { fingerprint, severity, title, state } };
    },
  );
  return Map.groupBy(points, ({ page }) => page ?? "");
}
