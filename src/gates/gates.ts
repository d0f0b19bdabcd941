import { and, asc, count, desc, eq, inArray, isNotNull, type SQL, sql } from "drizzle-orm";
import type { Commit } from "../db/commit.ts";
import { isPassing } from "../db/fault.ts";
import type { Tx } from "../db/open.ts";
import { attempts, gates, jobs, prompts, runs, type Trigger } from "../db/tables.ts";
import type { Deps, OrgId } from "../deps.ts";
import { badRequest, notFound } from "../errors.ts";
import { looks, minRuns } from "../grading/statspower.ts";
import type { Page, Paged } from "../paging.ts";
import type { Prompts } from "../prompts/prompts.ts";
import { createBaselines } from "../reports/baseline.ts";
import type { Compare, Comparison } from "../reports/compare.ts";
import type { Evals } from "../runs/evals.ts";
import type { Requests } from "../runs/requests.ts";
import { decide } from "./decision.ts";
import type { Gate, GateRequest } from "./schema.ts";
import { firstStep, levelAt, nextStep } from "./steps.ts";

type Parts = {
  prompts: Prompts;
  requests: Requests;
  evals: Evals;
  compare: Compare;
  commit: Commit;
  onError?: (error: unknown) => void;
};
type Row = typeof gates.$inferSelect;
/** What is asked for, and by whom. */
export type GateInput = GateRequest & { trigger: Trigger; idempotencyKey?: string };

/** A gate whose runs have ended goes on this late at worst. */
const pollMs = 500;
/** Of what a run said of its failure. */
const maxReasonChars = 500;

export type Gates = ReturnType<typeof createGates>;

/** Gates: a head that runs beside its base, or against the baseline of its prompt, until one may say whether it is worse. */
export function createGates(
  { db, now, newId, log, baseUrl }: Deps,
  { prompts: ofPrompts, requests, evals, compare, commit, onError }: Parts,
) {
  const { findBaseline } = createBaselines({ db });
  let timer: ReturnType<typeof setInterval> | undefined;
  let looking: Promise<void> | null = null;

  const runsOf = (gate: Row) => {
    const ids = [gate.headRequestId, ...(gate.baseRequestId === null ? [] : [gate.baseRequestId])];
    return and(eq(runs.orgId, gate.orgId), inArray(runs.evalRequestId, ids));
  };

  function progressOf(gate: Row): Gate["progress"] {
    const found = db
      .select({ of: count(), ended: count(runs.completedAt) })
      .from(runs)
      .where(runsOf(gate))
      .get();
    return { ended: found?.ended ?? 0, of: found?.of ?? 0 };
  }

  /** What every attempt of every run has cost so far; null if one is not known. */
  function spentOf(gate: Row): number | null {
    const subjects = db.select({ id: runs.id }).from(runs).where(runsOf(gate));
    const found = db
      .select({ n: count(), known: count(attempts.costUsd), usd: sql<number>`coalesce(sum(${attempts.costUsd}), 0)` })
      .from(jobs)
      .innerJoin(attempts, eq(attempts.jobId, jobs.id))
      .where(and(eq(jobs.kind, "run"), inArray(jobs.subject, subjects), isNotNull(attempts.endedAt)))
      .get();
    return found && found.n === found.known ? found.usd : null;
  }

  /** Why most of the runs of an evaluation that failed did. */
  function lostOf(gate: Row, id: string | null): string | null {
    if (id === null) return null;
    const why = db
      .select({ reason: runs.failureReason })
      .from(runs)
      .where(and(eq(runs.orgId, gate.orgId), eq(runs.evalRequestId, id), isNotNull(runs.failureReason)))
      .groupBy(runs.failureReason)
      .orderBy(desc(count()), asc(runs.failureReason))
      .get();
    return why?.reason?.slice(0, maxReasonChars) ?? null;
  }

  /** Adds runs until there are so many a side, base and head in turn. */
  function extend(t: Tx, gate: Row, from: number, to: number): void {
    const org = gate.orgId as OrgId;
    for (let i = from; i < to; i++)
      for (const id of [gate.baseRequestId, gate.headRequestId])
        if (id !== null) requests.addRun(t, org, id, gate.model);
  }

  function comparisonOf(gate: Row, done: number): Comparison | null {
    const base = gate.baseRequestId ?? (gate.baseRunIds === null ? null : { runIds: gate.baseRunIds });
    if (base === null) return null;
    return compare.compareEvals(gate.orgId as OrgId, base, gate.headRequestId, levelAt(done, gate.adaptive));
  }

  /** Goes on with a gate whose runs have all ended: more runs, or the end. */
  function step(t: Tx, gate: Row): "waits" | "goes on" | Row["status"] {
    const { ended, of } = progressOf(gate);
    if (ended < of) return "waits";
    const done = gate.baseRequestId === null ? of : of / 2;
    const comparison = comparisonOf(gate, done);
    const head = evals.getEvalRequest(gate.orgId as OrgId, gate.headRequestId).result;
    const spentUsd = spentOf(gate);
    const next = nextStep({ ...gate, done, spentUsd, verdict: comparison?.verdict ?? null });
    const lost = { head: lostOf(gate, gate.headRequestId), base: lostOf(gate, gate.baseRequestId) };
    const decision = decide({ head, done, comparison, minScore: gate.minScore, lost });
    const isHopeless = decision.status === "error" && done >= Math.min(looks[0].runs, gate.runs);
    if (typeof next === "number" && !isHopeless) {
      extend(t, gate, done, next);
      return "goes on";
    }
    const stop = typeof next === "number" || next.stop === "" ? "" : `; ${next.stop}`;
    settle(t, gate, { status: decision.status, reason: decision.reason + stop, comparison, spentUsd });
    return decision.status;
  }

  function settle(t: Tx, { id }: Row, end: Pick<Row, "status" | "reason" | "comparison" | "spentUsd">): void {
    t.update(gates)
      .set({ ...end, decidedAt: now() })
      .where(and(eq(gates.id, id), eq(gates.status, "running")))
      .run();
  }

  /** Goes on with every gate whose runs have ended. A defect ends the gate that met it, and no other. */
  async function tick(): Promise<void> {
    for (const gate of db
      .select()
      .from(gates)
      .where(eq(gates.status, sql.raw("'running'")))
      .all()) {
      const became = await commit((t) => step(t, gate)).catch((error) => {
        if (isPassing(error)) throw error;
        log.error({ err: error, gate: gate.id }, "a gate failed");
        const reason = "a defect of the service; its log says more";
        const end = { status: "error", reason, comparison: null, spentUsd: spentOf(gate) } as const;
        return commit((t) => settle(t, gate, end)).then(() => "error");
      });
      if (became === "goes on") requests.onQueued();
      if (became !== "waits") log.info({ gate: gate.id, became }, "gate");
    }
  }

  /** Many calls of one moment are one look. */
  function look(): void {
    looking ??= tick()
      .catch((error) => {
        onError?.(error);
        log.error({ err: error }, "gates could not be looked at");
      })
      .finally(() => {
        looking = null;
      });
  }

  /** What the head is held against where it runs alone; null where nothing is there and only its own score counts. */
  function baselineFor(org: OrgId, head: typeof runs.$inferSelect, minScore: number | null): string[] | null {
    const found = findBaseline(org, { ...head, methodologyHash: null }, head.id, head.evalRequestId);
    if (!found && minScore === null)
      throw badRequest(
        "there is nothing to compare with: give urlMap, to run a preview beside what is live; or minScore; or let the prompt have two published runs, or a pinned baseline, to be the base",
      );
    return found?.runs.map(({ runId }) => runId) ?? null;
  }

  function accept(t: Tx, org: OrgId, input: GateInput): string {
    const { promptId, urlMap = {}, templateArgs, adaptive = false, minScore = null, budgetUsd = null } = input;
    const most = looks[looks.length - 1]?.runs ?? 0;
    const wanted = input.runs ?? (adaptive ? most : 5);
    if (adaptive && wanted > most) throw badRequest(`runs: an adaptive gate makes at most ${most} runs a side`);
    const { trigger, idempotencyKey } = input;
    const gate = { runs: wanted, adaptive, minScore, budgetUsd };
    const asked = { templateArgs, trigger, runs: 1 };
    const head = requests.accept(t, org, promptId, { ...asked, urlMap, idempotencyKey, gate });
    const earlier = and(eq(gates.orgId, org), eq(gates.headRequestId, head.evalRequestId));
    const known = t.select({ id: gates.id }).from(gates).where(earlier).get();
    if (known) return known.id;
    const isBeside = Object.keys(urlMap).length > 0;
    const base = isBeside ? requests.accept(t, org, promptId, { ...asked, urlMap: {} }) : null;
    const first = t
      .select()
      .from(runs)
      .where(eq(runs.id, head.runIds[0] as string))
      .get() as typeof runs.$inferSelect;
    const createdAt = now();
    const row: Row = {
      ...gate,
      id: newId(createdAt),
      orgId: org,
      promptId: first.promptId,
      headRequestId: head.evalRequestId,
      baseRequestId: base?.evalRequestId ?? null,
      baseRunIds: isBeside ? null : baselineFor(org, first, minScore),
      model: first.model,
      status: "running",
      reason: null,
      comparison: null,
      spentUsd: null,
      createdAt,
      decidedAt: null,
    };
    t.insert(gates).values(row).run();
    extend(t, row, 1, firstStep(gate));
    return row.id;
  }

  function select(where: SQL | undefined, { limit, offset }: Page): Gate[] {
    const rows = db
      .select({ gate: gates, title: prompts.title })
      .from(gates)
      .innerJoin(prompts, eq(prompts.id, gates.promptId))
      .where(where)
      .orderBy(desc(gates.id))
      .limit(limit)
      .offset(offset)
      .all();
    return rows.map(({ gate, title }) => toGate(gate, title));
  }

  function toGate(gate: Row, title: string | null): Gate {
    const { id, promptId, status, reason, adaptive, minScore, budgetUsd, baseRequestId, headRequestId } = gate;
    const own = and(eq(runs.orgId, gate.orgId), eq(runs.evalRequestId, headRequestId));
    const asked = db.select({ urlMap: runs.urlMap, templateArgs: runs.templateArgs }).from(runs).where(own).get();
    return {
      id,
      statusUrl: `${baseUrl()}/api/v1/gates/${id}`,
      prompt: { id: promptId, title },
      status,
      reason,
      urlMap: asked?.urlMap ?? {},
      templateArgs: asked?.templateArgs ?? null,
      runs: gate.runs,
      adaptive,
      minScore,
      budgetUsd,
      spentUsd: gate.decidedAt === null ? spentOf(gate) : gate.spentUsd,
      progress: progressOf(gate),
      baseRequestId,
      headRequestId,
      head: evals.getEvalRequest(gate.orgId as OrgId, headRequestId).result,
      comparison: gate.comparison as Comparison | null,
      warnings: warningsOf(gate),
      createdAt: new Date(gate.createdAt).toISOString(),
      decidedAt: gate.decidedAt === null ? null : new Date(gate.decidedAt).toISOString(),
    };
  }

  return {
    tick,
    start(): void {
      timer = setInterval(look, pollMs);
    },
    async stop(): Promise<void> {
      clearInterval(timer);
      await looking;
    },

    /** Accepts a gate with its first runs. Throws what a run of the prompt throws, and bad_request where there is nothing to compare with. */
    async requestGate(org: OrgId, input: GateInput): Promise<Gate> {
      const { id } = ofPrompts.getPromptRow(org, input.promptId);
      const gateId = await commit((t) => accept(t, org, { ...input, promptId: id }));
      requests.onQueued();
      return this.getGate(org, gateId);
    },

    /** Throws not_found. */
    getGate(org: OrgId, id: string): Gate {
      const [found] = select(and(eq(gates.orgId, org), eq(gates.id, id.toLowerCase())), { limit: 1, offset: 0 });
      if (!found) throw notFound(`no gate has the id ${id}`);
      return found;
    },

    /** Newest first. */
    listGates(org: OrgId, { promptId }: { promptId?: string }, page: Page): Paged<Gate> {
      const where = and(eq(gates.orgId, org), promptId === undefined ? undefined : eq(gates.promptId, promptId));
      return { items: select(where, page), total: db.select({ n: count() }).from(gates).where(where).get()?.n ?? 0 };
    },
  };
}

function warningsOf({ runs, baseRunIds }: Row): string[] {
  const few = (n: number, what: string) =>
    n >= minRuns
      ? []
      : [
          `${n} ${n === 1 ? "run" : "runs"} ${what}: fewer than ${minRuns} cannot tell a change from chance; only minScore can fail this gate`,
        ];
  return [...few(runs, "a side"), ...(baseRunIds ? few(baseRunIds.length, "in the baseline") : [])];
}
