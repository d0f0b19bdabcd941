import type { SessionEvent } from "../agents/agent.ts";
import { type Db, openReader } from "../db/open.ts";
import type { Grade } from "../grading/grade.ts";
import { splitJudging } from "../grading/judge/judge.ts";
import type { Methodology } from "../grading/methodology.ts";
import { gradeSession } from "../grading/score.ts";
import { createThread } from "../jobs/thread.ts";
import { readSession, type SessionId } from "./session-events.ts";

/** A stored session to grade. `judging`: the events of another judge in place of the stored ones; null: those. */
type Order = { session: SessionId; judging: SessionEvent[] | null; methodology: Methodology };

export type Grader = ReturnType<typeof createGrader>;

/** A large session takes seconds. A hostile one must not take forever. */
const timeoutMs = 120_000;

/**
 * Grades stored sessions, one at a time, in a thread with a database connection of its own, so that no session delays a request.
 * `program`: the file that the thread starts with; null: grades in the caller's thread.
 */
export function createGrader(db: Db, program: string | null) {
  const data = { work: "grade", file: db.$client.filename };
  const thread = program === null ? null : createThread<Order, Grade>({ program, data, what: "grading", timeoutMs });
  return {
    /** Throws what grading throws, with the code of a database error. */
    grade: async (order: Order): Promise<Grade> => thread?.ask(order) ?? gradeStored(db, order),
    close: async () => thread?.end(),
  };
}

function gradeStored(db: Db, { session, judging, methodology }: Order): Grade {
  const stored = readSession(db, session);
  return gradeSession(judging === null ? stored : [...splitJudging(stored).session, ...judging], methodology);
}

/** In the grading thread: how it answers. */
export function createGradingAnswers(file: string): (order: Order) => Grade {
  const db = openReader(file);
  return (order) => gradeStored(db, order);
}
