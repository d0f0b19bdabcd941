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

/** A task that works on a stored session. */
type SessionTask = { session: SessionId } & (
  | { work: "grade"; judging: SessionEvent[] | null; methodology: Methodology }
  | { work: "askJudge"; text: string; goal: string }
  | { work: "checkAnswer"; output: unknown; goal: string }
);
type SessionTaskResult = Grade | JudgePrompt | ReturnType<typeof readAnswer>;

/** A large session takes seconds. A malicious session must not take forever. */
const timeoutMs = 120_000;

/** Processes one session at a time, with its own database connection, so that no session delays a request. */
const threadOf = perContext(({ db }) =>
  createThread<SessionTask, SessionTaskResult>({
    data: () => ({ thread: "grading", file: db.$client.filename }),
    what: "grading",
    timeoutMs,
  }),
);

const runTask = async (ctx: Context, task: SessionTask): Promise<SessionTaskResult> =>
  hasThreads() ? await threadOf(ctx).call(task) : runTaskHere(ctx.db, task);

/**
 * Grades a stored session in the grading thread. `judging`: the events of another judge, which replace the stored ones; null: the stored events are
 * used. Throws what grading throws. A database error keeps its code.
 */
export const gradeStored = (
  ctx: Context,
  session: SessionId,
  judging: SessionEvent[] | null,
  methodology: Methodology,
): Promise<Grade> => runTask(ctx, { work: "grade", session, judging, methodology }) as Promise<Grade>;

/** The prompt that asks a judge about a stored session. `text`, `goal`: the text and the goal of the task. Throws like `gradeStored`. */
export const judgePromptFor = (ctx: Context, session: SessionId, text: string, goal: string): Promise<JudgePrompt> =>
  runTask(ctx, { work: "askJudge", session, text, goal }) as Promise<JudgePrompt>;

/** Checks the response of a judge against the stored session. Throws like `gradeStored`. */
export const checkJudgeAnswer = (ctx: Context, session: SessionId, output: unknown, goal: string) =>
  runTask(ctx, { work: "checkAnswer", session, output, goal }) as Promise<ReturnType<typeof readAnswer>>;

/** Stops the grading thread. */
export const closeGrader = (ctx: Context): Promise<void> => threadOf(ctx).end();

function runTaskHere(db: Db, task: SessionTask): SessionTaskResult {
  const storedEvents = readSession(db, task.session);
  const { session } = splitJudging(storedEvents);
  switch (task.work) {
    case "grade":
      return gradeSession(task.judging === null ? storedEvents : [...session, ...task.judging], task.methodology);
    case "askJudge":
      return judgePromptOf(session, task);
    case "checkAnswer":
      return readAnswer(task.output, task.goal, session);
  }
}

/** Creates the function that handles calls in the grading thread. */
export function createTaskRunner(file: string): (task: SessionTask) => SessionTaskResult {
  const db = openReader(file);
  return (task) => runTaskHere(db, task);
}
