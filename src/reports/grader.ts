import { parentPort, Worker, workerData } from "node:worker_threads";
import type { SessionEvent } from "../agents/agent.ts";
import { codeOf } from "../db/fault.ts";
import { type Db, openReader } from "../db/open.ts";
import type { Grade } from "../grading/grade.ts";
import { splitJudging } from "../grading/judge/judge.ts";
import type { Methodology } from "../grading/methodology.ts";
import { gradeSession } from "../grading/score.ts";
import { readSession, type SessionId } from "./session-events.ts";

/** A stored session to grade. `judging`: the events of another judge in place of the stored ones; null: those. */
type Order = { session: SessionId; judging: SessionEvent[] | null; methodology: Methodology };
type Answer = { grade: Grade } | { error: { message: string; code: string } };

export type Grader = ReturnType<typeof createGrader>;

/** A large session takes seconds. A hostile one must not take forever. */
const timeoutMs = 120_000;
/** Memory of a thread is returned to the system when it ends. */
const idleMs = 30_000;

/**
 * Grades stored sessions, one at a time, in a thread with a database connection of its own, so that no session delays a request.
 * `program`: the file that the thread starts with, which calls `runGraderThread`; null: grades in the caller's thread.
 */
export function createGrader(db: Db, program: string | null) {
  let worker: Worker | null = null;
  let idle: ReturnType<typeof setTimeout> | undefined;
  let turn: Promise<unknown> = Promise.resolve();

  async function end(): Promise<void> {
    clearTimeout(idle);
    const ended = worker;
    worker = null;
    await ended?.terminate();
  }

  /** Rejects if the thread fails, ends or takes too long, and ends it. */
  async function ask(file: string, order: Order): Promise<Answer> {
    clearTimeout(idle);
    worker ??= new Worker(file, { workerData: db.$client.filename });
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    const thread = worker;
    const timer = setTimeout(() => reject(new Error(`grading took longer than ${timeoutMs / 1000} s`)), timeoutMs);
    const fail = (error: unknown) =>
      reject(error instanceof Error ? error : new Error(`the grading thread ended: ${error}`));
    thread.once("message", resolve).once("error", fail).once("exit", fail);
    try {
      thread.postMessage(order);
      return await promise;
    } catch (error) {
      await end();
      throw error;
    } finally {
      clearTimeout(timer);
      thread.removeAllListeners();
      idle = setTimeout(end, idleMs);
      idle.unref();
    }
  }

  return {
    /** Throws what grading throws, with the code of a database error. */
    async grade(order: Order): Promise<Grade> {
      if (program === null) return gradeStored(db, order);
      const asked = turn.then(() => ask(program, order));
      turn = asked.catch(() => {});
      const answer = await asked;
      if ("grade" in answer) return answer.grade;
      throw Object.assign(new Error(answer.error.message), { code: answer.error.code });
    },
    close: end,
  };
}

function gradeStored(db: Db, { session, judging, methodology }: Order): Grade {
  const stored = readSession(db, session);
  return gradeSession(judging === null ? stored : [...splitJudging(stored).session, ...judging], methodology);
}

/** Answers the orders of the thread that started this one. */
export function runGraderThread(): void {
  let db: Db | undefined;
  parentPort?.on("message", (order: Order) => {
    let answer: Answer;
    try {
      db ??= openReader(workerData);
      answer = { grade: gradeStored(db, order) };
    } catch (error) {
      answer = { error: { message: error instanceof Error ? error.message : String(error), code: codeOf(error) } };
    }
    parentPort?.postMessage(answer);
  });
}
