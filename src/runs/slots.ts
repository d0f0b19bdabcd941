import { and, count, desc, eq, isNotNull, isNull, lte, min } from "drizzle-orm";
import type { Commit } from "../db/commit.ts";
import type { Tx } from "../db/open.ts";
import { preparedInsert } from "../db/rows.ts";
import { evalRequests, orgs, prompts, runs, slots } from "../db/tables.ts";
import type { Deps, OrgId } from "../deps.ts";
import { AppError } from "../errors.ts";
import { nextSlot } from "../jobs/schedule.ts";
import type { Page, Paged } from "../paging.ts";
import type { Prompts } from "../prompts/prompts.ts";
import type { Requests } from "./requests.ts";
import type { Slot } from "./schema.ts";

/** After a downtime the latest slot that is no older than this is made up for. */
const catchUpMs = 24 * 3600_000;
/** Slots of one prompt that are dealt with in one transaction. */
const batchSlots = 200;
/** The clock is read again at least this often: it may have been set. */
const longestSleepMs = 30_000;

type Parts = { prompts: Prompts; requests: Requests; commit: Commit; onError?: (error: unknown) => void };

export type Slots = ReturnType<typeof createSlots>;

/** Runs prompts by their schedule: each moment that was due gets one row, in the same transaction as the runs that it asks for. */
export function createSlots({ db, now, log }: Deps, { prompts: ofPrompts, requests, commit, onError }: Parts) {
  const insertSlot = preparedInsert(db, slots);
  let timer: ReturnType<typeof setTimeout> | undefined;
  let looking: Promise<void> | null = null;
  let serving = false;
  let lookedAt = Number.NEGATIVE_INFINITY;

  const scheduled = and(eq(prompts.status, "active"), isNotNull(prompts.frequency));
  const columns = {
    id: prompts.id,
    orgId: prompts.orgId,
    frequency: prompts.frequency,
    runsPerEval: prompts.runsPerEval,
    templateDefaults: prompts.templateDefaults,
    nextSlotAt: prompts.nextSlotAt,
    timeZone: orgs.timeZone,
  };
  const scheduledRows = () => db.select(columns).from(prompts).innerJoin(orgs, eq(orgs.id, prompts.orgId));
  type Scheduled = ReturnType<ReturnType<typeof scheduledRows>["all"]>[number];

  const scheduleOf = ({ id, frequency, timeZone }: Scheduled) => ({ id, frequency: frequency ?? "", timeZone });

  /** After the clock was set back, slots that were dealt with in what is the future now must not keep those before them waiting. */
  async function realign(): Promise<void> {
    const at = now();
    await commit((t) => {
      for (const row of scheduledRows().where(scheduled).all()) {
        const next = nextSlot(scheduleOf(row), at);
        if (row.nextSlotAt === null || (next !== null && next < row.nextSlotAt))
          t.update(prompts).set({ nextSlotAt: next }).where(eq(prompts.id, row.id)).run();
      }
    });
  }

  /** Whether runs that the schedule asked for before are still unfinished. */
  function isStillRunning(t: Tx, { orgId, id }: Scheduled): boolean {
    const unfinished = t
      .select({ id: runs.id })
      .from(runs)
      .innerJoin(evalRequests, eq(evalRequests.id, runs.evalRequestId))
      .where(
        and(
          eq(runs.orgId, orgId),
          eq(runs.promptId, id),
          isNull(runs.completedAt),
          eq(evalRequests.trigger, "schedule"),
        ),
      )
      .limit(1)
      .get();
    return unfinished !== undefined;
  }

  /** What becomes of a slot that is to run now. */
  function runSlot(t: Tx, row: Scheduled): Pick<Slot, "outcome" | "evalRequestId" | "reason"> {
    if (isStillRunning(t, row))
      return { outcome: "skipped_overlap", evalRequestId: null, reason: "runs of an earlier slot were not finished" };
    try {
      const { evalRequestId } = requests.accept(t, row.orgId as OrgId, row.id, {
        urlMap: {},
        templateArgs: row.templateDefaults ?? {},
        runs: row.runsPerEval ?? 1,
        trigger: "schedule",
      });
      return { outcome: "ran", evalRequestId, reason: null };
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      return { outcome: "failed", evalRequestId: null, reason: error.detail };
    }
  }

  /** Deals with the slots of a prompt that are due, oldest first, and moves on to the first that is not. */
  function settleDue(t: Tx, id: string): void {
    const row = scheduledRows()
      .where(and(eq(prompts.id, id), scheduled))
      .get();
    const at = now();
    if (row?.nextSlotAt == null || row.nextSlotAt > at) {
      if (!row) t.update(prompts).set({ nextSlotAt: null }).where(eq(prompts.id, id)).run();
      return;
    }
    const schedule = scheduleOf(row);
    let slot: number | null = row.nextSlotAt;
    for (let i = 0; i < batchSlots && slot !== null && slot <= at; i++) {
      const following: number | null = nextSlot(schedule, slot);
      const isLatest = following === null || following > at;
      const known = t
        .select({ at: slots.at })
        .from(slots)
        .where(and(eq(slots.promptId, id), eq(slots.at, slot)))
        .get();
      if (!known) {
        const missed = { outcome: "missed", evalRequestId: null, reason: "the service was not running" } as const;
        const became = isLatest && at - slot <= catchUpMs ? runSlot(t, row) : missed;
        insertSlot({ orgId: row.orgId, promptId: id, at: slot, decidedAt: at, ...became });
        log.info({ prompt: id, slot: new Date(slot).toISOString(), outcome: became.outcome }, "slot");
      }
      slot = following;
    }
    t.update(prompts).set({ nextSlotAt: slot }).where(eq(prompts.id, id)).run();
  }

  /** Deals with all that is due. Answers with the moment of the next slot, epoch ms; null if nothing is scheduled. */
  async function tick(): Promise<number | null> {
    if (now() < lookedAt) await realign();
    lookedAt = now();
    let ran = false;
    for (;;) {
      const due = db
        .select({ id: prompts.id })
        .from(prompts)
        .where(lte(prompts.nextSlotAt, now()))
        .orderBy(prompts.nextSlotAt)
        .limit(100)
        .all();
      if (due.length === 0) break;
      ran = true;
      for (const { id } of due) await commit((t) => settleDue(t, id));
    }
    if (ran) requests.onQueued();
    return (
      db
        .select({ at: min(prompts.nextSlotAt) })
        .from(prompts)
        .where(isNotNull(prompts.nextSlotAt))
        .get()?.at ?? null
    );
  }

  /** Looks at the schedules now: call it when one was changed. */
  function wake(): void {
    if (!serving || looking) return;
    clearTimeout(timer);
    looking = untilNext().then((waitMs) => {
      looking = null;
      if (serving) timer = setTimeout(wake, waitMs);
    });
  }

  async function untilNext(): Promise<number> {
    try {
      const next = await tick();
      return next === null ? longestSleepMs : Math.max(1, Math.min(longestSleepMs, next - now()));
    } catch (error) {
      onError?.(error);
      log.error({ err: error }, "due slots could not be dealt with");
      return 2_000;
    }
  }

  return {
    tick,
    realign,
    wake,
    /** Takes up the schedules where a former process left them. */
    async start(): Promise<void> {
      await realign();
      serving = true;
      wake();
    },
    async stop(): Promise<void> {
      serving = false;
      clearTimeout(timer);
      await looking;
    },

    /** What became of the slots of a prompt, newest first. Throws not_found. */
    listSlots(org: OrgId, promptId: string, { limit, offset }: Page): Paged<Slot> {
      const { id } = ofPrompts.getPromptRow(org, promptId);
      const own = and(eq(slots.orgId, org), eq(slots.promptId, id));
      const rows = db.select().from(slots).where(own).orderBy(desc(slots.at)).limit(limit).offset(offset).all();
      return {
        items: rows.map(({ at, outcome, evalRequestId, reason, decidedAt }) => ({
          at: new Date(at).toISOString(),
          outcome,
          evalRequestId,
          reason,
          decidedAt: new Date(decidedAt).toISOString(),
        })),
        total: db.select({ n: count() }).from(slots).where(own).get()?.n ?? 0,
      };
    },
  };
}
