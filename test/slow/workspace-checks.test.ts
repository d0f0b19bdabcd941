import { afterAll, beforeAll, expect, test } from "bun:test";
import { serveFakeModel } from "../support/fake-model.ts";
import { call, finish, modelRuns } from "../support/model-runs.ts";

const done = finish("succeeded", "All done.");
const command = (text: string) => call("run_command", { command: text, seconds: 60 });

let fake: ReturnType<typeof serveFakeModel>;
beforeAll(() => {
  fake = serveFakeModel({
    scenarios: {
      writes: { turns: [command("mkdir -p out && echo 'total: 3' > out/sum.txt"), done] },
      links: { turns: [command("ln -s /usr/bin/env result; ls -la"), done] },
      looks: { turns: [command("ls -a"), done] },
      hoards: { turns: [command("true"), done] },
    },
  });
});
afterAll(() => fake.stop());

const checked = (name: string, declaredChecks: object[], limits = {}) =>
  modelRuns(fake).runOf(name, { prompt: { declaredChecks, limits } });

type Result = {
  type: string;
  tool: string;
  output: { when: string; workspace: object[] };
  checks: { status: string }[];
};
const resultsOf = (events: Result[]) =>
  events.filter(({ type, tool }) => type === "tool_result" && tool === "check_declared");

test("commands and files decide whether the goal was reached, and their output is evidence", async () => {
  const { report, events } = await checked("writes", [
    { command: "cat out/sum.txt", contains: "total: 3" },
    { command: "grep -q missing out/sum.txt", exitCode: 1 },
    { file: "out/sum.txt", contains: "total" },
    { file: "out/sum.txt" },
  ]);
  expect(report.outcome).toBe("succeeded");
  const [before, after] = resultsOf(events);
  expect(before?.output.when).toBe("before");
  // `grep` exits with 2 if there is no file.
  expect(before?.checks.map(({ status }) => status)).toEqual(["fail", "fail", "fail", "fail"]);
  expect(after?.checks.map(({ status }) => status)).toEqual(["pass", "pass", "pass", "pass"]);
  expect(after?.output.workspace[0]).toEqual({ command: "cat out/sum.txt", exitCode: 0, output: "total: 3\n" });
});

test("a check that fails after the run means that the goal was missed, whatever the agent says", async () => {
  const { report, events } = await checked("writes", [{ command: "grep total: 4 out/sum.txt" }, { file: "out/other" }]);
  expect(report.outcome).toBe("goal_not_met");
  expect(resultsOf(events)[1]?.checks.map(({ status }) => status)).toEqual(["fail", "fail"]);
});

test("files that a check writes before the run are not in the agent's workspace", async () => {
  const { events } = await checked("looks", [{ command: "touch left-behind && test -f never" }]);
  const listing = events.find(({ type, tool }: Result) => type === "tool_result" && tool === "run_command");
  expect(listing.output.stdout).not.toContain("left-behind");
});

test("a link to a system file is no file of the workspace", async () => {
  const { events } = await checked("links", [{ file: "result" }]);
  expect(resultsOf(events)[1]?.checks.map(({ status }) => status)).toEqual(["fail"]);
});

test("a command that reaches a limit fails with the limit", async () => {
  const hoard = "python3 -c 'x = bytearray(400 * 1024 ** 2); import time; time.sleep(60)'";
  const { events } = await checked("hoards", [{ command: hoard }], { memoryBytes: 256 * 1024 ** 2 });
  expect(resultsOf(events)[1]?.checks).toMatchObject([{ status: "fail", message: expect.stringContaining("memory") }]);
});
