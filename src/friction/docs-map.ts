import { type Static, Type } from "@sinclair/typebox";
import { and, eq, gte, lt, ne, sql } from "drizzle-orm";
import type { Db, Tx } from "../db/open.ts";
import { frictionLifecycles, frictionPoints, namedPages, pageMonths, type runs } from "../db/tables.ts";
import type { Deps, OrgId } from "../deps.ts";
import type { Listed } from "../grading/grade.ts";
import { Moment, OneOf, Time, toInstant, toIso } from "../schema.ts";
import type { Counted } from "./lifecycle-rows.ts";
import { FrictionThing, type Scope } from "./schema.ts";
import { promptsWithin } from "./scope.ts";

/** Default period in months, including the current one. */
const monthsShown = 3;

const places = ["given", "llmsTxt", "sitemap", "link", "search", "guessed"] as const;
const count = (description: string) => Type.Integer({ description });
const { fingerprint, severity, title, state } = FrictionThing.properties;

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
        found: Type.Object(Object.fromEntries(places.map((name) => [name, Type.Integer()])), {
          description: "How its URL was found, per answered request",
        }),
        errorsAfter: count("Reads followed by a failure before the next page was read"),
        friction: Type.Array(Type.Object({ fingerprint, severity, title, state })),
      }),
      { description: "Pages that were read, most read first" },
    ),
    unreached: Type.Array(
      Type.Object({ url: Type.String(), namedBy: Type.Array(OneOf(["llms.txt", "sitemap", "link"])) }),
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

/** Aggregates what agents did with each page, per month. Called in the transaction that publishes or withdraws a report. */
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

  return function countPages(_: Tx, { run, exposure }: Counted, by: 1 | -1): void {
    if (!exposure || !isLive(run)) return;
    const key = { orgId: run.orgId, promptId: run.promptId, month: startOfMonth(run.createdAt), agent: run.agent };
    add.run({ ...key, page: "", url: "", ...numbers, runs: by });
    for (const { page, url, reads, misses, guesses, errors, found } of exposure.visits) {
      const { "llms.txt": llmsTxt = 0, given = 0, sitemap = 0, link = 0, search = 0, guessed = 0 } = found;
      const all = { reads, misses, guesses, errors, given, llmsTxt, sitemap, link, search, guessed };
      const signed = Object.fromEntries(Object.entries(all).map(([name, n]) => [name, by * n]));
      add.run({ ...key, page, url, ...signed, runs: reads > 0 ? by : 0 });
    }
  };
}

/** Records which pages were linked or listed in a run, regardless of its report. */
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

const numberNames = [
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
type PageRow = { page: string; url: string } & Record<(typeof numberNames)[number], number>;

/** How agents used the docs of a provider, or with one prompt: pages read, never reached and guessed. Throws like `promptsWithin`. */
export function getDocsMap(deps: Pick<Deps, "db" | "now">, org: OrgId, scope: Scope, query: MapQuery): DocsMap {
  const { db, now } = deps;
  const { agent, limit = 100 } = query;
  const last = startOfMonth(query.until === undefined ? now() : toInstant("until", query.until));
  const since =
    query.since === undefined ? monthsAfter(last, 1 - monthsShown) : startOfMonth(toInstant("since", query.since));
  const until = monthsAfter(last, 1);
  const ids = promptsWithin(deps, org, scope);
  const rows = pagesOf(db, org, ids, [since, until], agent);
  const read = rows
    .filter(({ page, reads }) => page !== "" && reads > 0)
    .sort((a, b) => b.runs - a.runs || b.reads - a.reads || order(a, b));
  const missed = rows.filter(({ guesses }) => guesses > 0).sort((a, b) => b.guesses - a.guesses || order(a, b));
  const reached = new Set(read.map(({ page }) => page));
  const unreached = namedOf(db, org, ids, since)
    .filter(({ page }) => !reached.has(page))
    .sort(order);
  const shown = read.slice(0, limit);
  const friction = frictionOn(db, org, ids, new Set(shown.map(({ page }) => page)));
  return {
    since: toIso(since),
    until: toIso(until),
    runs: rows.find(({ page }) => page === "")?.runs ?? 0,
    pages: shown.map((row) => ({
      url: row.url,
      runs: row.runs,
      reads: row.reads,
      found: Object.fromEntries(places.map((name) => [name, row[name]])),
      errorsAfter: row.errors,
      friction: (friction.get(row.page) ?? []).map(({ thing }) => thing),
    })),
    unreached: unreached.slice(0, limit).map(({ url, namedBy }) => ({ url, namedBy })),
    guessed: missed.slice(0, limit).map(({ url, guesses }) => ({ url, misses: guesses })),
    totals: { pages: read.length, unreached: unreached.length, guessed: missed.length },
  };
}

const order = (a: { page: string }, b: { page: string }) => (a.page < b.page ? -1 : a.page > b.page ? 1 : 0);

const promptId = sql.placeholder("prompt");

/** What agents did with each page in some months; the empty page contains the runs. */
function pagesOf(
  db: Db,
  org: OrgId,
  promptIds: string[],
  [since, until]: [number, number],
  agent: string | undefined,
): PageRow[] {
  const sums = Object.fromEntries(numberNames.map((name) => [name, sql<number>`sum(${pageMonths[name]})`]));
  const ofPrompt = db
    .select({ page: pageMonths.page, url: sql<string>`max(${pageMonths.url})`, ...sums })
    .from(pageMonths)
    .where(
      and(
        eq(pageMonths.orgId, org),
        eq(pageMonths.promptId, promptId),
        gte(pageMonths.month, since),
        lt(pageMonths.month, until),
        agent === undefined ? undefined : eq(pageMonths.agent, agent),
      ),
    )
    .groupBy(pageMonths.page)
    .prepare();
  const pages = new Map<string, PageRow>();
  for (const prompt of promptIds)
    for (const row of ofPrompt.all({ prompt }) as PageRow[]) {
      const known = pages.get(row.page);
      if (!known) pages.set(row.page, row);
      else for (const name of numberNames) known[name] += row[name];
    }
  return [...pages.values()];
}

/** Pages that were linked or listed since a moment, and where. */
function namedOf(db: Db, org: OrgId, promptIds: string[], since: number) {
  const ofPrompt = db
    .select()
    .from(namedPages)
    .where(and(eq(namedPages.orgId, org), eq(namedPages.promptId, promptId)))
    .prepare();
  const named = new Map<string, { page: string; url: string; namedBy: ("llms.txt" | "sitemap" | "link")[] }>();
  for (const prompt of promptIds)
    for (const { page, url, llmsTxtAt, sitemapAt, linkAt } of ofPrompt.all({ prompt })) {
      const known = named.get(page)?.namedBy ?? [];
      const namedBy = [["llms.txt", llmsTxtAt] as const, ["sitemap", sitemapAt] as const, ["link", linkAt] as const]
        .filter(([by, at]) => known.includes(by) || (at !== null && at >= since))
        .map(([by]) => by);
      if (namedBy.length > 0) named.set(page, { page, url, namedBy });
    }
  return [...named.values()];
}

/** The current friction points of live docs pages, without duplicates. */
function frictionOn(db: Db, org: OrgId, promptIds: string[], pages: Set<string>) {
  const ofPrompt = db
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
        eq(frictionLifecycles.promptId, promptId),
        eq(frictionLifecycles.place, ""),
        ne(frictionLifecycles.state, "fixed"),
      ),
    )
    .prepare();
  const titleOf = db
    .select({ title: frictionPoints.title })
    .from(frictionPoints)
    .where(
      and(
        eq(frictionPoints.reportId, sql.placeholder("reportId")),
        eq(frictionPoints.fingerprint, sql.placeholder("fingerprint")),
      ),
    )
    .prepare();
  const rows = promptIds.flatMap((prompt) => ofPrompt.all({ prompt })).filter(({ page }) => pages.has(page ?? ""));
  const things = [...new Map(rows.map((row) => [row.fingerprint, row])).values()].map(
    ({ page, reportId, fingerprint, severity, state }) => {
      const title = titleOf.get({ reportId, fingerprint })?.title ?? "";
      return { page, thing: { fingerprint, severity, title, state } };
    },
  );
  return Map.groupBy(things, ({ page }) => page ?? "");
}
