import { type Static, Type } from "@sinclair/typebox";
import { and, type Column, eq, gte, lt, ne, or, sql } from "drizzle-orm";
import type { Db, Tx } from "../db/open.ts";
import { frictionLives, frictionPoints, namedPages, pageMonths, type runs } from "../db/tables.ts";
import type { Deps, OrgId } from "../deps.ts";
import type { Listed } from "../grading/reach.ts";
import { samePage } from "../grading/words.ts";
import { Moment, OneOf, Time, toInstant } from "../schema.ts";
import { FrictionThing, type Scope } from "./frictionschema.ts";
import type { Counted } from "./lives.ts";
import { reportFilter } from "./schema.ts";
import { within } from "./scope.ts";

/** Months that are shown where nobody says since when, the present one among them. */
const monthsShown = 3;

const places = ["given", "llmsTxt", "sitemap", "link", "search", "guessed"] as const;
const count = (description: string) => Type.Integer({ description });
const { fingerprint, severity, title, state } = FrictionThing.properties;

export const mapQuery = {
  agent: reportFilter.agent,
  since: Type.Optional(Moment("From the month in which this lies; default: two months back")),
  until: Type.Optional(Moment("Up to the month in which this lies")),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000, default: 100, description: "Rows of each list" })),
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
        runs: count("Runs that read it"),
        reads: count("Times that it was read"),
        found: Type.Object(Object.fromEntries(places.map((name) => [name, Type.Integer()])), {
          description: "How its address was found, each request that was answered",
        }),
        errorsAfter: count("Reads after which something failed before the next page was read"),
        friction: Type.Array(Type.Object({ fingerprint, severity, title, state })),
      }),
      { description: "What was read, the most read first" },
    ),
    unreached: Type.Array(
      Type.Object({ url: Type.String(), namedBy: Type.Array(OneOf(["llms.txt", "sitemap", "link"])) }),
      { description: "What the docs name and no run read" },
    ),
    guessed: Type.Array(Type.Object({ url: Type.String(), misses: Type.Integer() }), {
      description: "Addresses that agents guess and that are not there, the most guessed first",
    }),
    totals: Type.Object({ pages: Type.Integer(), unreached: Type.Integer(), guessed: Type.Integer() }),
  },
  { title: "DocsMap" },
);
export type DocsMap = Static<typeof DocsMap>;

function startOfMonth(at: number): number {
  const date = new Date(at);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), 1);
}

const monthsAfter = (month: number, n: number) => {
  const date = new Date(month);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + n, 1);
};

const isLive = ({ urlMap }: { urlMap: object }) => Object.keys(urlMap).length === 0;

type Numbers = Omit<typeof pageMonths.$inferInsert, "orgId" | "promptId" | "month" | "agent" | "page" | "url">;

/** Keeps what agents did with each page, a month at a time: called in the transaction in which a published report comes or goes. */
export function createPageCounts({ db }: { db: Db }) {
  const numbers = {
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
  const names = Object.keys(numbers) as (keyof Numbers)[];
  const added = Object.fromEntries(
    names.map((name) => [name, sql`${pageMonths[name]} + ${sql.raw(`excluded."${pageMonths[name].name}"`)}`]),
  );
  const keyNames = ["orgId", "promptId", "month", "agent", "page", "url"] as const;
  const add = db
    .insert(pageMonths)
    .values(
      Object.fromEntries(
        [...keyNames, ...names].map((name) => [name, sql.placeholder(name)]),
      ) as unknown as typeof pageMonths.$inferInsert,
    )
    .onConflictDoUpdate({
      target: [pageMonths.orgId, pageMonths.promptId, pageMonths.month, pageMonths.agent, pageMonths.page],
      set: added,
    })
    .prepare();

  return function countPages(_: Tx, { run, reach }: Counted, by: 1 | -1): void {
    if (!reach || !isLive(run)) return;
    const key = { orgId: run.orgId, promptId: run.promptId, month: startOfMonth(run.createdAt), agent: run.agent };
    add.run({ ...key, page: "", url: "", ...numbers, runs: by });
    for (const { page, url, reads, misses, guesses, errors, found } of reach.visits) {
      const { "llms.txt": llmsTxt = 0, given = 0, sitemap = 0, link = 0, search = 0, guessed = 0 } = found;
      const all = { reads, misses, guesses, errors, given, llmsTxt, sitemap, link, search, guessed };
      const signed = Object.fromEntries(Object.entries(all).map(([name, n]) => [name, by * n]));
      add.run({ ...key, page, url, ...signed, runs: reads > 0 ? by : 0 });
    }
  };
}

/** Notes which pages the docs named to a run, whatever became of its report. */
export function namePages(t: Tx, run: typeof runs.$inferSelect, listed: Listed[]): void {
  if (!isLive(run)) return;
  const columns = { "llms.txt": "llmsTxtAt", sitemap: "sitemapAt", link: "linkAt" } as const;
  for (const { page, url, by } of listed) {
    const seen = { [columns[by]]: run.createdAt };
    t.insert(namedPages)
      .values({ orgId: run.orgId, promptId: run.promptId, page, url, ...seen })
      .onConflictDoUpdate({ target: [namedPages.orgId, namedPages.promptId, namedPages.page], set: seen })
      .run();
  }
}

/** How agents get around in the docs of a provider, or with one prompt: what they read, what they never reach, what they guess. Throws as `within`. */
export function getDocsMap(deps: Pick<Deps, "db" | "now">, org: OrgId, scope: Scope, query: MapQuery): DocsMap {
  const { db, now } = deps;
  const { agent, limit = 100 } = query;
  const last = startOfMonth(query.until === undefined ? now() : toInstant("until", query.until));
  const since =
    query.since === undefined ? monthsAfter(last, 1 - monthsShown) : startOfMonth(toInstant("since", query.since));
  const until = monthsAfter(last, 1);
  const sum = (column: Column) => sql<number>`sum(${column})`;
  const rows = db
    .select({
      page: pageMonths.page,
      url: sql<string>`max(${pageMonths.url})`,
      runs: sum(pageMonths.runs),
      reads: sum(pageMonths.reads),
      guesses: sum(pageMonths.guesses),
      errors: sum(pageMonths.errors),
      given: sum(pageMonths.given),
      llmsTxt: sum(pageMonths.llmsTxt),
      sitemap: sum(pageMonths.sitemap),
      link: sum(pageMonths.link),
      search: sum(pageMonths.search),
      guessed: sum(pageMonths.guessed),
    })
    .from(pageMonths)
    .where(
      and(
        eq(pageMonths.orgId, org),
        within(deps, org, scope, pageMonths.promptId),
        gte(pageMonths.month, since),
        lt(pageMonths.month, until),
        agent === undefined ? undefined : eq(pageMonths.agent, agent),
      ),
    )
    .groupBy(pageMonths.page)
    .all();
  const read = rows
    .filter(({ page, reads }) => page !== "" && reads > 0)
    .sort((a, b) => b.runs - a.runs || b.reads - a.reads || order(a, b));
  const missed = rows.filter(({ guesses }) => guesses > 0).sort((a, b) => b.guesses - a.guesses || order(a, b));
  const reached = new Set(read.map(({ page }) => page));
  const unreached = namedOf(deps, org, scope, since)
    .filter(({ page }) => !reached.has(page))
    .sort(order);
  const friction = frictionByPage(deps, org, scope);
  return {
    since: new Date(since).toISOString(),
    until: new Date(until).toISOString(),
    runs: rows.find(({ page }) => page === "")?.runs ?? 0,
    pages: read.slice(0, limit).map((row) => ({
      url: row.url,
      runs: row.runs,
      reads: row.reads,
      found: Object.fromEntries(places.map((name) => [name, row[name]])),
      errorsAfter: row.errors,
      friction: friction.get(row.page) ?? [],
    })),
    unreached: unreached.slice(0, limit).map(({ url, llmsTxtAt, sitemapAt, linkAt }) => ({
      url,
      namedBy: [
        ...(llmsTxtAt !== null && llmsTxtAt >= since ? ["llms.txt" as const] : []),
        ...(sitemapAt !== null && sitemapAt >= since ? ["sitemap" as const] : []),
        ...(linkAt !== null && linkAt >= since ? ["link" as const] : []),
      ],
    })),
    guessed: missed.slice(0, limit).map(({ url, guesses }) => ({ url, misses: guesses })),
    totals: { pages: read.length, unreached: unreached.length, guessed: missed.length },
  };
}

const order = (a: { page: string }, b: { page: string }) => (a.page < b.page ? -1 : a.page > b.page ? 1 : 0);

function namedOf(deps: Pick<Deps, "db">, org: OrgId, scope: Scope, since: number) {
  const last = (column: Column) => sql<number | null>`max(${column})`;
  return deps.db
    .select({
      page: namedPages.page,
      url: sql<string>`max(${namedPages.url})`,
      llmsTxtAt: last(namedPages.llmsTxtAt),
      sitemapAt: last(namedPages.sitemapAt),
      linkAt: last(namedPages.linkAt),
    })
    .from(namedPages)
    .where(
      and(
        eq(namedPages.orgId, org),
        within(deps, org, scope, namedPages.promptId),
        or(gte(namedPages.llmsTxtAt, since), gte(namedPages.sitemapAt, since), gte(namedPages.linkAt, since)),
      ),
    )
    .groupBy(namedPages.page)
    .all();
}

/** What stands on each page of the live docs now, each thing once. */
function frictionByPage(deps: Pick<Deps, "db">, org: OrgId, scope: Scope) {
  const rows = deps.db
    .select({
      url: frictionPoints.url,
      fingerprint: frictionLives.fingerprint,
      severity: frictionLives.severity,
      title: frictionPoints.title,
      state: frictionLives.state,
    })
    .from(frictionLives)
    .innerJoin(
      frictionPoints,
      and(
        eq(frictionPoints.reportId, frictionLives.reportId),
        eq(frictionPoints.fingerprint, frictionLives.fingerprint),
      ),
    )
    .where(
      and(
        eq(frictionLives.orgId, org),
        within(deps, org, scope, frictionLives.promptId),
        eq(frictionLives.place, ""),
        ne(frictionLives.state, "fixed"),
      ),
    )
    .all();
  const things = [...new Map(rows.map((row) => [row.fingerprint, row])).values()].filter(({ url }) => url !== null);
  const byPage = Map.groupBy(things, ({ url }) => samePage(url ?? ""));
  return new Map([...byPage].map(([page, each]) => [page, each.map(({ url: _, ...thing }) => thing)]));
}
