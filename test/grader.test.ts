import { afterAll, afterEach, expect, test } from "bun:test";
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { readAnswer, splitJudging } from "../src/grading/judge/judge.ts";
import { standardMethodology } from "../src/grading/methodology.ts";
import { gradeSession, judgePromptOf } from "../src/grading/score.ts";
import { enableThreads } from "../src/jobs/thread.ts";
import { checkJudgeAnswer, closeGrader, gradeStored, judgePromptFor } from "../src/reports/grader.ts";
import { readSession } from "../src/reports/session-events.ts";
import { emptyFolder } from "./support/executable.ts";
import { answer, judgedApp, says } from "./support/judged.ts";

const program = join(import.meta.dir, "..", "src", "main.ts");
const folder = emptyFolder();
afterAll(() => rmSync(folder, { recursive: true }));
afterEach(() => enableThreads(null));

/** A judged session in a database on disk. */
async function judgedSession() {
  const app = judgedApp({ turns: [says(answer())], dataDir: folder });
  const { run } = await app.run();
  await app.stop();
  return { ctx: app.service.ctx, session: { orgId: app.a.org, runId: run.runId as string, attempt: 1 } };
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
  const { ctx, session } = await judgedSession();
  const events = readSession(ctx.db, session);
  enableThreads(program);
  let turns = 0;
  const other = setInterval(() => turns++, 1);
  const grade = () => gradeStored(ctx, session, null, standardMethodology);
  const [one, two] = await Promise.all([grade(), grade()]);
  clearInterval(other);
  expect(turns).toBeGreaterThan(0);
  expect(priorities()).toEqual([0, 10]);
  expect(one).toEqual(JSON.parse(JSON.stringify(gradeSession(events))));
  expect(two).toEqual(one);
  const judging = events.filter(({ source }) => source === "runner");
  const again = await gradeStored(ctx, session, judging.slice(0, 1), standardMethodology);
  expect([one.judge?.confidence, again.judge?.notice === null]).toEqual([0.9, false]);

  // The judge's input and the check of its response come from the same thread.
  const goal = "It holds 3 rows, e.g. Ada.";
  const { session: own } = splitJudging(events);
  const asked = await judgePromptFor(ctx, session, "Fill the table", goal);
  expect(asked).toEqual(judgePromptOf(own, { text: "Fill the table", goal }));
  turns = 0;
  const others = setInterval(() => turns++, 1);
  const checks = [answer(), { ...answer(), parts: [] }, "nothing", undefined].map(async (output) => {
    expect(await checkJudgeAnswer(ctx, session, output, goal)).toEqual(readAnswer(output, goal, own));
  });
  await Promise.all(checks);
  clearInterval(others);
  expect(turns).toBeGreaterThan(0);

  // This doesn't use `rejects`, which would keep the messages of the thread from arriving.
  const failure = (wrong: Promise<unknown>) => wrong.then(() => null).catch((error: unknown) => error);
  expect(await failure(gradeStored(ctx, session, null, null as never))).toBeInstanceOf(Error);
  // A failure of one session does not affect the next.
  expect(await grade()).toEqual(one);
  await closeGrader(ctx);
  expect(await grade()).toEqual(one);
  await closeGrader(ctx);

  enableThreads(join(folder, "missing.ts"));
  expect(await failure(grade())).toBeInstanceOf(Error);
  ctx.db.$client.close();
});
