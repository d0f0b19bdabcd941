import type { SessionEvent } from "../agents/agent.ts";
import { type Db, openReader } from "../db/open.ts";
import type { Grade } from "../grading/grade.ts";
import { readAnswer, splitJudging } from "../grading/judge/judge.ts";
import type { JudgePrompt } from "../grading/judge/rubric.ts";
import type { Methodology } from "../grading/methodology.ts";
import { gradeSession, judgePromptOf } from "../grading/score.ts";
import { createThread, hasThreads } from "../jobs/thread.ts";
import { readSession, type SessionId } from "./session-events.ts";

/** Work on a stored session. */
type Orders = {
  /** `judging`: the events of another judge in place of the stored ones; null: those. */
  grade: { session: SessionId; judging: SessionEvent[] | null; methodology: Methodology };
  /** What a judge is asked about the session. `text`, `goal`: of the task. */
  promptJudge: { session: SessionId; text: string; goal: string };
  /** Checks the response of a judge against the session. */
  checkAnswer: { session: SessionId; output: unknown; goal: string };
};
type Work = keyof Orders;
type Results = { grade: Grade; promptJudge: JudgePrompt; checkAnswer: ReturnType<typeof readAnswer> };
type Order = { [W in Work]: { work: W } & Orders[W] }[Work];

export type Grader = ReturnType<typeof createGrader>;

/** A large session takes seconds. A hostile one must not take forever. */
const timeoutMs = 120_000;

/**
 * Grades stored sessions and checks what judges say about them, one at a time, in a thread with a database connection of its own, so that no
 * session delays a request. In a program without threads, the caller's thread works. `program`: what the thread runs, if it is another one.
 * All functions throw what the work throws, with the code of a database error.
 */
export function createGrader(db: Db, program?: string) {
  const data = { work: "grade", file: db.$client.filename };
  const thread =
    program === undefined && !hasThreads()
      ? null
      : createThread<Order, Results[Work]>({ program, data, what: "grading", timeoutMs });
  const ask =
    <W extends Work>(work: W) =>
    async (order: Orders[W]): Promise<Results[W]> => {
      const whole = { work, ...order } as unknown as Order;
      return ((await thread?.ask(whole)) ?? answerTo(db, whole)) as Results[W];
    };
  return {
    grade: ask("grade"),
    promptJudge: ask("promptJudge"),
    checkAnswer: ask("checkAnswer"),
    close: async () => thread?.end(),
  };
}

function answerTo(db: Db, order: Order): Results[Work] {
  const stored = readSession(db, order.session);
  const { session } = splitJudging(stored);
  switch (order.work) {
    case "grade":
      return gradeSession(order.judging === null ? stored : [...session, ...order.judging], order.methodology);
    case "promptJudge":
      return judgePromptOf(session, order);
    case "checkAnswer":
      return readAnswer(order.output, order.goal, session);
  }
}

/** In the grading thread: how it answers. */
export function createGradingAnswers(file: string): (order: Order) => Results[Work] {
  const db = openReader(file);
  return (order) => answerTo(db, order);
}
