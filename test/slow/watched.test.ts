import { afterAll, beforeAll, expect, test } from "bun:test";
import { serveFakeModel } from "../support/fake-model.ts";
import { call, finish, modelKey, modelRuns } from "../support/model-runs.ts";

let fake: ReturnType<typeof serveFakeModel>;
const command = (text: string) => call("run_command", { command: text, seconds: 60 });
const done = finish("goal_not_met", "That was all.");
const pem = `-----BEGIN PRIVATE KEY-----\n${"MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n".repeat(20)}`;
beforeAll(() => {
  fake = serveFakeModel({
    scenarios: {
      talks: {
        turns: [
          command(
            `echo one; printf 'sk-the-real'; sleep 1.5; echo '-key-0123456789'; echo two >&2; sleep 1.5; echo three`,
          ),
          done,
        ],
      },
      floods: { turns: [command("timeout 4 yes 'All work and no play'; true"), done] },
      keys: {
        turns: [
          command(`printf '%s' '${pem}'; sleep 1.5; echo '-----END PRIVATE KEY-----'; sleep 1.2; echo after`),
          done,
        ],
      },
    },
  });
});
afterAll(() => fake.stop());

type Event = { type: string; text: string; id?: string; source: string; seq: number };
const told = (events: Event[]) => events.filter(({ type, id }) => type === "message" && id !== undefined);

test("the output of a command is reported while it runs, in whole lines", async () => {
  const { events } = await modelRuns(fake).runOf("talks");
  const result = events.find(
    ({ type, tool }: Event & { tool?: string }) => type === "tool_result" && tool === "run_command",
  );
  const lines = told(events);
  const reported = lines.flatMap(({ text, id }) => text.split("\n").map((line) => `${id} ${line}`));
  // The last line is reported only if the command ends late. stderr has its own lines.
  expect(reported.filter((line) => line !== "t1 three").sort()).toEqual(["t1 [redacted]", "t1 one", "t1 two"]);
  expect(lines.every(({ seq }) => seq < result.seq)).toBe(true);
  expect(result.output).toMatchObject({ stdout: "one\n[redacted]\nthree\n", stderr: "two\n" });
  expect(JSON.stringify(events)).not.toContain(modelKey);
});

test("a flood of output is reported in limited parts", async () => {
  const { events } = await modelRuns(fake).runOf("floods");
  const lines = told(events);
  expect(lines.length).toBeGreaterThan(0);
  expect(lines.length).toBeLessThan(8);
  for (const { text } of lines) {
    expect(text.length).toBeLessThanOrEqual(4000);
    expect(new Set(text.split("\n"))).toEqual(new Set(["All work and no play"]));
  }
});

test("a key of several lines is never split", async () => {
  const { events } = await modelRuns(fake).runOf("keys");
  expect(JSON.stringify(events.filter(({ type }: Event) => type !== "tool_call"))).not.toContain("MIIEvQIBADAN");
});
