import { createHash } from "node:crypto";
import { and, asc, eq, exists, gt, type SQL, sql } from "drizzle-orm";
import type { SQLiteColumn } from "drizzle-orm/sqlite-core";
import { version } from "../../package.json" with { type: "json" };
import { firstIdOf } from "../db/rows.ts";
import {
  artefacts,
  evalRequests,
  fixes,
  frictionPoints,
  gradings,
  namedPages,
  orgs,
  prompts,
  providers,
  reaches,
  recommendations,
  reports,
  runs,
  sessionEvents,
} from "../db/tables.ts";
import type { Deps, OrgId } from "../deps.ts";
import { badRequest, notFound } from "../errors.ts";
import type { Models } from "../models/models.ts";
import type { Reports } from "../reports/reports.ts";
import type { Report } from "../reports/schema.ts";
import { redactKeys, redactSecrets, toInstant } from "../schema.ts";
import { createFormats } from "./formats.ts";
import { columnsOf, formatVersion, type RowType, rowTypes } from "./rows.ts";
import type { ExportFilter } from "./schema.ts";
import { inSpan, type Span } from "./span.ts";

/** Rows that are read at once. */
const pageRows = 200;

type Parts = { reports: Reports; models: Pick<Models, "secretsOf">; toMarkdown: (report: Report) => string };

export type Exports = ReturnType<typeof createExports>;

/** What an organisation has, as a file: line by line, so that neither its size nor writes that go on meanwhile matter. */
export function createExports(deps: Pick<Deps, "db" | "now">, { reports: ofReports, models, toMarkdown }: Parts) {
  const { db, now } = deps;
  const formats = createFormats(deps, ofReports, toMarkdown);

  /** A list a page at a time, by an id that only grows. */
  function* paged<T extends { id: string }>(read: (after: string) => T[]): Generator<T> {
    for (let page = read(""); ; page = read(page.at(-1)?.id ?? "")) {
      yield* page;
      if (page.length < pageRows) return;
    }
  }

  function* providersOf({ org, promptId }: Span) {
    const used =
      promptId && db.select({ id: prompts.targetProviderId }).from(prompts).where(eq(prompts.id, promptId)).get();
    yield* paged((after) =>
      db
        .select()
        .from(providers)
        .where(
          and(eq(providers.orgId, org), gt(providers.id, after), used ? eq(providers.id, used.id ?? "") : undefined),
        )
        .orderBy(asc(providers.id))
        .limit(pageRows)
        .all(),
    );
  }

  function* promptsOf({ org, promptId }: Span) {
    yield* paged((after) =>
      db
        .select()
        .from(prompts)
        .where(and(eq(prompts.orgId, org), gt(prompts.id, after), promptId ? eq(prompts.id, promptId) : undefined))
        .orderBy(asc(prompts.id))
        .limit(pageRows)
        .all(),
    );
  }

  /** Pages that the docs named to the runs of a prompt. */
  function* namedOf({ org }: Span, promptId: string) {
    const { page } = namedPages;
    for (let after = ""; ; ) {
      const own = and(eq(namedPages.orgId, org), eq(namedPages.promptId, promptId), gt(page, after));
      const some = db.select().from(namedPages).where(own).orderBy(asc(page)).limit(pageRows).all();
      yield* some;
      after = some.at(-1)?.page ?? "";
      if (some.length < pageRows) return;
    }
  }

  /** Whether an evaluation has a run that is exported. */
  const isTold = (span: Span, evalRequestId: SQLiteColumn) =>
    exists(
      db
        .select({ id: runs.id })
        .from(runs)
        .where(and(eq(runs.evalRequestId, evalRequestId), inSpan(span))),
    );

  /** Recommendations that were marked done, with an evaluation before and one after that are exported. */
  function* fixesOf(span: Span) {
    const { id, orgId, beforeId, afterId } = fixes;
    yield* paged((after) =>
      db
        .select()
        .from(fixes)
        .where(and(eq(orgId, span.org), gt(id, after), isTold(span, beforeId), isTold(span, afterId)))
        .orderBy(asc(id))
        .limit(pageRows)
        .all(),
    );
  }

  /** Requests with a run that is exported. */
  function* requestsOf(span: Span) {
    yield* paged((after) =>
      db
        .select()
        .from(evalRequests)
        .where(and(eq(evalRequests.orgId, span.org), gt(evalRequests.id, after), isTold(span, evalRequests.id)))
        .orderBy(asc(evalRequests.id))
        .limit(pageRows)
        .all(),
    );
  }

  const id = sql.placeholder("id");
  const own = <T extends typeof frictionPoints | typeof recommendations | typeof gradings>(table: T, order: SQL) =>
    db.select().from(table).where(eq(table.reportId, id)).orderBy(order).prepare();
  // Made once: for each run anew that would take longer than all reading.
  const statements = {
    report: db.select().from(reports).where(eq(reports.runId, id)).prepare(),
    reach: db.select().from(reaches).where(eq(reaches.reportId, id)).prepare(),
    artefacts: db
      .select()
      .from(artefacts)
      .where(eq(artefacts.runId, id))
      .orderBy(asc(artefacts.attempt), asc(artefacts.name))
      .prepare(),
    frictionPoints: own(frictionPoints, asc(frictionPoints.position)),
    recommendations: own(recommendations, asc(recommendations.priority)),
    gradings: own(gradings, asc(gradings.id)),
    events: db
      .select()
      .from(sessionEvents)
      .where(
        and(
          eq(sessionEvents.runId, id),
          sql`(${sessionEvents.attempt}, ${sessionEvents.seq}) > (${sql.placeholder("attempt")}, ${sql.placeholder("seq")})`,
        ),
      )
      .orderBy(asc(sessionEvents.attempt), asc(sessionEvents.seq))
      .limit(pageRows)
      .prepare(),
  };

  /** All that belongs to a run, as it is at one moment, but for its events, which do not change any more. */
  const ofRun = db.$client.transaction((run: string) => {
    const report = statements.report.get({ id: run });
    if (!report) return null;
    const [frictionPoints, recommendations, gradings] = (
      ["frictionPoints", "recommendations", "gradings"] as const
    ).map((name) => statements[name].all({ id: report.id }));
    return { report, reach: statements.reach.get({ id: report.id }), frictionPoints, recommendations, gradings };
  });

  function* eventsOf({ id: run }: typeof runs.$inferSelect) {
    for (let last = { attempt: -1, seq: -1 }; ; ) {
      const page = statements.events.all({ id: run, ...last });
      yield* page;
      const end = page.at(-1);
      if (!end || page.length < pageRows) return;
      last = { attempt: end.attempt, seq: end.seq };
    }
  }

  function* rowsOf(span: Span): Generator<[type: RowType, row: Record<string, unknown>]> {
    for (const row of providersOf(span)) yield ["provider", row];
    for (const row of promptsOf(span)) yield ["prompt", row];
    for (const { id } of promptsOf(span)) for (const row of namedOf(span, id)) yield ["named_page", row];
    for (const row of requestsOf(span)) yield ["eval_request", row];
    for (const row of fixesOf(span)) yield ["fix", row];
    for (const run of runsOf(span)) {
      yield ["run", run];
      for (const event of eventsOf(run)) yield ["event", event];
      for (const row of statements.artefacts.all({ id: run.id })) yield ["artefact", row];
      const made = ofRun(run.id);
      if (made === null) continue;
      yield ["report", made.report];
      if (made.reach) yield ["reach", made.reach];
      for (const row of made.frictionPoints ?? []) yield ["friction_point", row];
      for (const row of made.recommendations ?? []) yield ["recommendation", row];
      for (const row of made.gradings ?? []) yield ["grading", row];
    }
  }

  function* runsOf(span: Span) {
    yield* paged((after) =>
      db
        .select()
        .from(runs)
        .where(and(inSpan(span), gt(runs.id, after)))
        .orderBy(asc(runs.id))
        .limit(pageRows)
        .all(),
    );
  }

  /** A line a row, between one that says what this is and one that proves it whole. */
  function* lines(span: Span, organisation: string): Generator<string> {
    const secrets = models.secretsOf(span.org).map((secret) => JSON.stringify(secret).slice(1, -1));
    const exportedAt = new Date(span.endedBy).toISOString();
    yield `${JSON.stringify({ type: "evald export", version: formatVersion, evald: version, organisation, exportedAt })}\n`;
    const hash = createHash("sha256");
    let rows = 0;
    const columns = new Map(rowTypes.map((type) => [type, columnsOf(type).map(([name]) => name)]));
    for (const [type, row] of rowsOf(span)) {
      const kept: Record<string, unknown> = {};
      for (const name of columns.get(type) ?? [])
        kept[name] = Buffer.isBuffer(row[name]) ? row[name].toString("base64") : row[name];
      const baseline = kept.baselineRequestId;
      if (typeof baseline === "string" && (baseline < span.from || baseline >= span.to)) kept.baselineRequestId = null;
      // No secret should stand in what is stored; what a person wrote into a prompt is another thing.
      const line = `${redactSecrets(redactKeys(JSON.stringify({ type, row: kept })), secrets)}\n`;
      hash.update(line);
      rows++;
      yield line;
    }
    yield `${JSON.stringify({ type: "end", rows, sha256: hash.digest("hex") })}\n`;
  }

  return {
    /** The text of an export, in pieces. What ended before it began is in it, once. Throws bad_request, not_found before the first piece. */
    exportOrg(org: OrgId, filter: ExportFilter): Iterable<string> {
      const { format = "jsonl", since, until, minScore } = filter;
      const promptId = filter.promptId?.toLowerCase() ?? null;
      const own = and(eq(prompts.orgId, org), eq(prompts.id, promptId ?? ""));
      if (promptId !== null && !db.select({ id: prompts.id }).from(prompts).where(own).get())
        throw notFound(`no prompt has the id ${filter.promptId}`);
      if (minScore !== undefined && format !== "junit")
        throw badRequest("minScore: only the format junit tells what fails; leave it out");
      const endedBy = now();
      const from = since === undefined ? "" : firstIdOf(toInstant("since", since));
      const to = until === undefined ? "g" : firstIdOf(toInstant("until", until));
      const span = { org, promptId, from, to, endedBy };
      if (format === "csv") return formats.csv(span);
      if (format === "junit") return formats.junit(span, minScore ?? null);
      if (format === "markdown") return formats.markdown(span);
      const name = db.select({ name: orgs.name }).from(orgs).where(eq(orgs.id, org)).get()?.name ?? "";
      return lines(span, name);
    },
  };
}
