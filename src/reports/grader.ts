import type { SessionEvent } from "../agents/agent.ts";
import { type Context, perContext } from "../context.ts";
import { type Db, openReader } from "../db/open.ts";
import type { Grade } from "../grading/grade.ts";
import { readAnswer, splitJudging } from "../grading/judge/judge.ts";
import type { JudgePrompt } from "../grading/judge/rubric.ts";
import type { Methodology } from "../grading/methodology.ts";
import { gradeSession, judgePromptOf } from "../grading/score.ts";
import { createThread, hasThreads } from "../jobs/thread.ts";
import { readSession, type SessionId } from "./session-events.ts";

/** Work on a stored session. */
type Order = { session: SessionId } & (
  | { work: "grade"; judging: SessionEvent[] | null; methodology: Methodology }
  | { work: "askJudge"; text: string; goal: string }
  | { work: "checkAnswer"; output: unknown; goal: string }
);
type Result = Grade | JudgePrompt | ReturnType<typeof readAnswer>;

/** A large session takes seconds. A hostile one must not take forever. */
const timeoutMs = 120_000;

/** Works on one session at a time, with a database connection of its own, so that no session delays a request. */
const threadOf = perContext(({ db }) =>
  createThread<Order, Result>({ data: { work: "grade", file: db.$client.filename }, what: "grading", timeoutMs }),
);

const request = async (ctx: Context, order: Order): Promise<Result> =>
  hasThreads() ? await threadOf(ctx).ask(order) : answerTo(ctx.db, order);

/**
 * Grades a stored session in the grading thread. `judging`: the events of another judge in place of the stored ones; null: those. Throws what
 * grading throws, with the code of a database error.
 */
export const gradeStored = (
  ctx: Context,
  session: SessionId,
  judging: SessionEvent[] | null,
  methodology: Methodology,
): Promise<Grade> => request(ctx, { work: "grade", session, judging, methodology }) as Promise<Grade>;

/** What a judge is asked about a stored session. `text`, `goal`: of the task. Throws like `gradeStored`. */
export const judgePromptFor = (ctx: Context, session: SessionId, text: string, goal: string): Promise<JudgePrompt> =>
  request(ctx, { work: "askJudge", session, text, goal }) as Promise<JudgePrompt>;

/** Checks the response of a judge against the stored session. Throws like `gradeStored`. */
export const checkJudgeAnswer = (ctx: Context, session: SessionId, output: unknown, goal: string) =>
  request(ctx, { work: "checkAnswer", session, output, goal }) as Promise<ReturnType<typeof readAnswer>>;

/** Ends the grading thread. */
export const closeGrader = (ctx: Context): Promise<void> => threadOf(ctx).end();

function answerTo(db: Db, order: Order): Result {
  const stored = readSession(db, order.session);
  const { session } = splitJudging(stored);
  switch (order.work) {
    case "grade":
      return gradeSession(order.judging === null ? stored : [...session, ...order.judging], order.methodology);
    case "askJudge":
      return judgePromptOf(session, order);
    case "checkAnswer":
      return readAnswer(order.output, order.goal, session);
  }
}

/** In the grading thread: how it answers. */
export function createGradingAnswers(file: string): (order: Order) => Result {
  const db = openReader(file);
  return (order) => answerTo(db, order);
}
