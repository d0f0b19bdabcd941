import { and, avg, count, desc, eq, gt, isNull, lt, or, sql } from "drizzle-orm";
import { hasPrice, priceOf } from "../agents/gateway/prices.ts";
import type { Commit } from "../db/commit.ts";
import type { Tx } from "../db/open.ts";
import { gradings, prompts, regrades, reports, runs, sessionEvents } from "../db/tables.ts";
import type { Deps, OrgId } from "../deps.ts";
import { badRequest, conflict, notFound } from "../errors.ts";
import { getMethodology, listMethodologies } from "../grading/methodology.ts";
import type { Lease, Queue } from "../jobs/queue.ts";
import type { Models } from "../models/models.ts";
import type { Page, Paged } from "../paging.ts";
import { splitVariance } from "../reports/judgevariance.ts";
import { toInstant } from "../schema.ts";
import { jobOf, meant, targetOf } from "./job.ts";
import type { Regrade, RegradeRequest } from "./schema.ts";

type Row = typeof regrades.$inferSelect;
type Parts = {
  models: Pick<Models, "getModel">;
  queue: Queue;
  commit: Commit;
  costOf: (lease: Lease) => number | null;
  onQueued: () => void;
  onEnded: () => void;
};

/** Sessions that variance is told of, and judgings that an estimate is made of: the newest. */
const maxSampled = 10_000;

export type Regrades = ReturnType<typeof createRegrades>;

/** Stored sessions that are graded again, by another methodology, by another judge or several times by the same one. */
export function createRegrades({ db, config, now, newId, baseUrl }: Deps, parts: Parts) {
  const { models, queue, commit, costOf, onQueued, onEnded } = parts;

  function getRow(org: OrgId, id: string): Row {
    const own = and(eq(regrades.orgId, org), eq(regrades.id, id.toLowerCase()));
    const row = db.select().from(regrades).where(own).get();
    if (!row) throw notFound(`no regrade has the id ${id}`);
    return row;
  }

  /** Checks what was asked for. Throws bad_request, not_found. */
  function toRow(org: OrgId, asked: RegradeRequest): Row {
    const { judge = null, repeats = 1, maxUsd = null } = asked;
    const createdAt = now();
    const since = toInstant("since", asked.since);
    const until = asked.until === undefined ? createdAt + 1 : toInstant("until", asked.until);
    if (since >= until) throw badRequest("since must lie before until and not in the future");
    const promptId = asked.promptId?.toLowerCase() ?? null;
    if (promptId !== null) {
      const own = and(eq(prompts.orgId, org), eq(prompts.id, promptId));
      if (!db.select({ id: prompts.id }).from(prompts).where(own).get())
        throw notFound(`no prompt has the id ${asked.promptId}`);
    }
    const [current] = listMethodologies(config.methodology);
    const methodology = getMethodology(config.methodology, asked.methodology ?? current.id);
    if (judge === null && repeats > 1)
      throw badRequest("repeats: only a judge differs from itself; name one in judge, or leave repeats out");
    if (judge === null && maxUsd !== null) throw badRequest("maxUsd: only a judge costs money; name one in judge");
    if (judge !== null) {
      if (maxUsd === null) throw badRequest("maxUsd is required with judge: say what it may cost in all");
      if (!hasPrice(models.getModel(org, judge)))
        throw badRequest(
          `judge: nobody says what ${judge} costs, so maxUsd cannot hold; state it in EVALD_MODEL_PRICES`,
        );
    }
    const counts = { graded: 0, unchanged: 0, withoutEvents: 0, failed: 0, spentUsd: 0, unpriced: 0 };
    const end = { failureReason: null, createdAt, completedAt: null };
    const { hash } = targetOf(methodology, judge);
    const request = { promptId, since, until, methodology: methodology.id, judge, hash, repeats, maxUsd };
    const row: Row = {
      id: newId(createdAt),
      orgId: org,
      ...request,
      ...counts,
      ...end,
      status: "pending",
      batch: 1,
      cursor: "",
      total: 0,
    };
    return { ...row, total: db.select({ n: count() }).from(reports).where(meant(row)).get()?.n ?? 0 };
  }

  /** Two that ask the same judge about the same sessions would both pay for it. Throws conflict. */
  function checkAlone(row: Row): void {
    if (row.judge === null) return;
    const { orgId, promptId, since, until, completedAt, hash } = regrades;
    const overlaps = and(eq(orgId, row.orgId), isNull(completedAt), eq(hash, row.hash), lt(since, row.until));
    const samePrompt = row.promptId === null ? undefined : or(isNull(promptId), eq(promptId, row.promptId));
    const own = and(overlaps, gt(until, row.since), samePrompt);
    const found = db.select({ id: regrades.id }).from(regrades).where(own).get();
    if (found)
      throw conflict(
        `the regrade ${found.id} is asking this judge about these sessions; wait for its end, or cancel it`,
      );
  }

  /** What would be done, without doing it: sessions that a judge does not read are told as graded again. */
  function plan(row: Row): Row {
    const first = and(
      eq(sessionEvents.runId, reports.runId),
      eq(sessionEvents.attempt, reports.attempt),
      eq(sessionEvents.seq, 0),
    );
    const joined = (where: ReturnType<typeof and>) =>
      db.select({ n: count() }).from(reports).leftJoin(sessionEvents, first).where(where).get()?.n ?? 0;
    const withoutEvents = joined(and(meant(row), isNull(sessionEvents.seq)));
    const known = sql`json_extract(${reports.methodology}, '$.hash') = ${row.hash}`;
    const unchanged = row.repeats > 1 ? 0 : joined(and(meant(row), known, sql`${sessionEvents.seq} is not null`));
    return { ...row, withoutEvents, unchanged, graded: row.total - withoutEvents - unchanged };
  }

  /** What it costs to judge so many sessions, by the tokens that judging took so far; null where nobody knows. */
  function estimate(org: OrgId, { judge, repeats, total }: Row, done: number): number | null {
    if (judge === null || done >= total) return 0;
    const tokens = (name: string) => avg(sql`json_extract(${reports.judge}, ${`$.${name}`})`).mapWith(Number);
    const taken = db
      .select({ input: tokens("inputTokens"), output: tokens("outputTokens"), n: count() })
      .from(reports)
      .where(and(eq(reports.orgId, org), sql`${reports.judge} is not null`))
      .get();
    if (!taken?.n) return null;
    const usage = { input: taken.input ?? 0, output: taken.output ?? 0, cached: 0, cacheWritten: 0 };
    try {
      const price = priceOf({ ...usage, cacheWrittenForHour: 0, reasoning: 0 }, null, models.getModel(org, judge));
      return price === null ? null : Number((price * repeats * (total - done)).toFixed(4));
    } catch {
      // The key is gone since then.
      return null;
    }
  }

  /** How far its judge differs from itself, and runs of one evaluation from one another. */
  function varianceOf(row: Row): Regrade["variance"] {
    const rows =
      row.judge === null || row.repeats < 2
        ? []
        : db
            .select({
              reportId: gradings.reportId,
              evalRequestId: runs.evalRequestId,
              score: sql<number | null>`json_extract(${gradings.grade}, '$.score')`,
            })
            .from(gradings)
            .innerJoin(reports, eq(reports.id, gradings.reportId))
            .innerJoin(runs, eq(runs.id, reports.runId))
            .where(and(eq(gradings.orgId, row.orgId), eq(gradings.hash, row.hash), meant(row)))
            .orderBy(desc(gradings.reportId))
            .limit(maxSampled)
            .all();
    const ofReports = Map.groupBy(rows, ({ reportId }) => reportId);
    return splitVariance(
      [...ofReports.values()].map((group) => ({
        evalRequestId: group[0]?.evalRequestId ?? "",
        scores: group.flatMap(({ score }) => score ?? []),
      })),
    );
  }

  function toRegrade(row: Row, status: Regrade["status"] = row.status): Regrade {
    const { id, orgId, batch: _, cursor: __, hash: ___, since, until, createdAt, completedAt, spentUsd, ...rest } = row;
    const iso = (at: number) => new Date(Math.max(0, at)).toISOString();
    const done = row.unchanged + row.withoutEvents + (status === "planned" ? 0 : row.graded + row.failed);
    return {
      ...rest,
      regradeId: status === "planned" ? null : id,
      statusUrl: status === "planned" ? null : `${baseUrl()}/api/v1/regrades/${id}`,
      status,
      since: iso(since),
      until: iso(until),
      spentUsd: Number(spentUsd.toFixed(6)),
      estimatedUsd: completedAt === null ? estimate(orgId as OrgId, row, done) : 0,
      variance: varianceOf(row),
      createdAt: iso(createdAt),
      completedAt: completedAt === null ? null : iso(completedAt),
    };
  }

  /** Accepts a regrade as part of a transaction; `dryRun` only says what it would do. Throws bad_request, not_found, conflict. */
  function accept(t: Tx, org: OrgId, asked: RegradeRequest): Regrade {
    const row = toRow(org, asked);
    if (asked.dryRun) return toRegrade(plan(row), "planned");
    checkAlone(row);
    t.insert(regrades).values(row).run();
    queue.enqueue(t, jobOf(row));
    return toRegrade(row);
  }

  return {
    accept,

    /** Accepts a regrade and answers once it is on the disk. Throws what `accept` throws. */
    async requestRegrade(org: OrgId, asked: RegradeRequest): Promise<Regrade> {
      const accepted = await commit((t) => accept(t, org, asked));
      onQueued();
      return accepted;
    },

    /** Throws not_found. */
    getRegrade: (org: OrgId, id: string): Regrade => toRegrade(getRow(org, id)),

    /** Newest first. */
    listRegrades(org: OrgId, { limit, offset }: Page): Paged<Regrade> {
      const own = eq(regrades.orgId, org);
      const rows = db.select().from(regrades).where(own).orderBy(desc(regrades.id)).limit(limit).offset(offset).all();
      return {
        items: rows.map((row) => toRegrade(row)),
        total: db.select({ n: count() }).from(regrades).where(own).get()?.n ?? 0,
      };
    },

    /** Ends an unfinished regrade; what it graded stays. `by` says who wants it. Throws not_found, conflict for one that has ended. */
    async cancelRegrade(org: OrgId, id: string, by: string): Promise<Regrade> {
      await commit((t) => {
        const row = getRow(org, id);
        if (row.completedAt !== null) throw conflict(`the regrade has ended already: it is ${row.status}`);
        const failureReason = `cancelled: by ${by}`;
        const { kind, subject } = jobOf(row);
        queue.cancel(t, kind, subject, failureReason, costOf);
        t.update(regrades)
          .set({ status: "cancelled", failureReason, completedAt: now() })
          .where(eq(regrades.id, row.id))
          .run();
      });
      onEnded();
      return toRegrade(getRow(org, id));
    },
  };
}
