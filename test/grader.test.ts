import { afterAll, expect, test } from "bun:test";
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Db } from "../src/db/open.ts";
import { readAnswer, splitJudging } from "../src/grading/judge/judge.ts";
import { table } from "../src/grading/methodology.ts";
import { gradeSession, judgePromptOf } from "../src/grading/score.ts";
import { createGrader } from "../src/reports/grader.ts";
import { readSession } from "../src/reports/session-events.ts";
import { emptyFolder } from "./support/executable.ts";
import { answer, judgedApp, says } from "./support/judged.ts";

const program = join(import.meta.dir, "..", "src", "main.ts");
const folder = emptyFolder();
afterAll(() => rmSync(folder, { recursive: true }));

/** A judged session in a database on disk. */
async function judgedSession() {
  const app = judgedApp({ turns: [says(answer())], dataDir: folder });
  const { run } = await app.run();
  await app.stop();
  return { db: app.db as Db, session: { orgId: app.a.org, runId: run.runId as string, attempt: 1 } };
}

/** The niceness values of the threads of this process. */
const priorities = (): number[] => {
  const values = readdirSync("/proc/self/task").map((id) => {
    const afterName = readFileSync(`/proc/self/task/${id}/stat`, "latin1").replace(/^.*\) /s, "");
    return Number(afterName.split(" ")[16]);
  });
  return [...new Set(values)].sort((a, b) => a - b);
};

test("a thread grades a stored session like the service, at a lower priority, while other work continues", async () => {
  const { db, session } = await judgedSession();
  const events = readSession(db, session);
  const grader = createGrader(db, program);
  let turns = 0;
  const other = setInterval(() => turns++, 1);
  const order = { session, judging: null, methodology: table };
  const [one, two] = await Promise.all([grader.grade(order), grader.grade(order)]);
  clearInterval(other);
  expect(turns).toBeGreaterThan(0);
  expect(priorities()).toEqual([0, 10]);
  expect(one).toEqual(JSON.parse(JSON.stringify(gradeSession(events))));
  expect(two).toEqual(one);
  const judging = events.filter(({ source }) => source === "runner");
  const again = await grader.grade({ ...order, judging: judging.slice(0, 1) });
  expect([one.judge?.confidence, again.judge?.notice === null]).toEqual([0.9, false]);

  // The judge's input and the check of its response come from the same thread.
  const about = { session, goal: "It holds 3 rows, e.g. Ada." };
  const { session: own } = splitJudging(events);
  const asked = await grader.promptJudge({ ...about, text: "Fill the table" });
  expect(asked).toEqual(judgePromptOf(own, { text: "Fill the table", goal: about.goal }));
  turns = 0;
  const others = setInterval(() => turns++, 1);
  const checks = [answer(), { ...answer(), parts: [] }, "nothing", undefined].map(async (output) => {
    expect(await grader.checkAnswer({ ...about, output })).toEqual(readAnswer(output, about.goal, own));
  });
  await Promise.all(checks);
  clearInterval(others);
  expect(turns).toBeGreaterThan(0);

  // This doesn't use `rejects`, which would keep the messages of the thread from arriving.
  const failure = (wrong: Promise<unknown>) => wrong.then(() => null).catch((error: unknown) => error);
  expect(await failure(grader.grade({ ...order, methodology: null as never }))).toBeInstanceOf(Error);
  // A failure of one session does not affect the next.
  expect(await grader.grade(order)).toEqual(one);
  await grader.close();
  expect(await grader.grade(order)).toEqual(one);
  await grader.close();

  const missing = createGrader(db, join(folder, "missing.ts"));
  expect(await failure(missing.grade(order))).toBeInstanceOf(Error);
  db.$client.close();
});
