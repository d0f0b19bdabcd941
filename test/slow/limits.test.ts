import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { testApp } from "../support/app.ts";
import { serveFakeModel, type Turn } from "../support/fake-model.ts";
import { call, finish, modelRuns } from "../support/model-runs.ts";

const mib = 1024 ** 2;
const command = (text: string) => call("run_command", { command: text, seconds: 60 });
const many = (n: number, turn: (i: number) => Turn) => Array.from({ length: n }, (_, i) => turn(i));
const post = (url: string, bytes: number) => call("http_request", { url, method: "POST", body: "x".repeat(bytes) });

let fake: ReturnType<typeof serveFakeModel>;
beforeAll(() => {
  const done = finish("goal_not_met", "That was all.");
  fake = serveFakeModel({
    scenarios: {
      asks: { turns: many(40, (i) => call("ask_human", { question: `Why ${i}?` })) },
      sleeps: { turns: [call("ask_human", { question: "Why?" }), command("sleep 100")] },
      thinks: { turns: [call("ask_human", { question: "Why?" }), { silent: true }] },
      roams: {
        turns: many(20, (i) =>
          i % 2 === 0
            ? command("curl -sS -o /dev/null http://notes.test/api/notes")
            : call("fetch_page", { url: `https://notes.test/?${i}` }),
        ),
      },
      uploads: { turns: many(20, () => post("https://notes.test/api/notes", 100)) },
      pours: {
        turns: [
          command("head -c 300000 /dev/zero > f; curl -sS -o /dev/null --data-binary @f http://notes.test/api/notes"),
          command("sleep 100"),
        ],
      },
      fills: {
        turns: many(12, (i) => command(`for n in 1 2 3 4; do head -c 1500000 /dev/zero > ${i}$n; done; sleep 1`)),
      },
      // There is a minute of idle time, so that the tested limit stops the run.
      hoards: {
        turns: many(6, () => command("python3 -c 'x = bytearray(400 * 1024 ** 2); import time; time.sleep(60)'")),
      },
      quick: { turns: [done] },
    },
  });
});
afterAll(() => fake.stop());

const limited = (name: string, limits: Record<string, unknown>, env = {}) =>
  modelRuns(fake).runOf(name, { prompt: { limits }, env });
type Limit = { type: string; limit: string; value: number; unit: string; source: string; near?: true };

describe("a prompt's runs are limited", () => {
  test.each<[string, string, Record<string, unknown>, unknown[]]>([
    ["total time", "sleeps", { wallClockSeconds: 3 }, ["wall_clock", 3000, "ms", "runner"]],
    ["model calls", "asks", { modelCalls: 5 }, ["model_calls", 5, "calls", "gateway"]],
    ["tokens", "asks", { tokens: 1200 }, ["model_tokens", 1200, "tokens", "gateway"]],
    ["money", "asks", { costUsd: 0.03 }, ["model_cost", 0.03, "USD", "gateway"]],
    ["tool calls", "asks", { toolCalls: 10 }, ["tool_calls", 10, "calls", "runner"]],
    ["requests of all tools", "roams", { requests: 5 }, ["requests", 5, "requests", "runner"]],
    ["bytes sent", "uploads", { bytesOut: 500 }, ["bytes_out", 500, "bytes", "runner"]],
    ["file space", "fills", { workspaceBytes: 40 * mib }, ["workspace_bytes", 40 * mib, "bytes", "runner"]],
  ])(
    "in %s: near the limit the agent is warned, beyond it the run ends with its work so far",
    async (_, name, limits, [limit, value, unit, source]) => {
      const before = fake.requests.length;
      const { run, report, events } = await limited(name, limits);
      expect([run.status, run.failureReason, report.outcome]).toEqual(["completed", null, "goal_not_met"]);
      const told: Limit[] = events.filter((event: Limit) => event.type === "limit");
      expect(told[0]).toMatchObject({ limit, value, unit, near: true });
      const reached = told.findLast((event) => !event.near);
      expect(reached).toMatchObject({ limit, value, unit, source });
      expect(events.at(-1)).toMatchObject({ type: "end", reason: expect.stringMatching(/limit/) });
      if (name === "sleeps") return;
      const asked = fake.requests.slice(before).map(({ body }) => JSON.stringify(body));
      expect(asked.some((body) => body.includes("almost used up"))).toBe(true);
      expect(asked[0]).not.toContain("almost used up");
    },
    300_000,
  );

  test("in bytes sent by a command, which are cut off before the run ends", async () => {
    const { report, events, notes } = await limited("pours", { bytesOut: 100_000 });
    expect(notes).toEqual([]);
    expect(report.outcome).toBe("goal_not_met");
    const told = events.filter((event: Limit) => event.type === "limit").map((event: Limit) => event.limit);
    expect(told).toEqual(["egress_bytes_out", "bytes_out"]);
  });

  test("in memory: a command that exceeds it is stopped, and the third one ends the run", async () => {
    const { report, events } = await limited("hoards", { memoryBytes: 256 * mib });
    expect(report.outcome).toBe("goal_not_met");
    const told = events.filter((event: Limit) => event.type === "limit");
    expect(told.map((event: Limit) => [event.limit, event.value, event.source])).toEqual([
      ...many(3, () => ({})).map(() => ["memory", 256 * mib, "agent"]),
      ["memory", 256 * mib, "runner"],
    ]);
    expect(events.at(-1).reason).toBe("The run reached its limit: 268435456 bytes (memory).");
  });

  test("in idle time: after a warning, the run fails with its cause", async () => {
    const { run } = await limited("thinks", { idleSeconds: 1 });
    expect(run).toMatchObject({
      status: "failed",
      failureReason: "timeout: the agent was idle for 1 second and was stopped",
    });
  });

  test("and have no result but the cause if no work was done", async () => {
    const { run } = await limited("quick", { tokens: 100, modelCalls: 1 });
    expect(run.status).toBe("completed");
    fake.add("dear", { turns: [{ text: "Let me think." }] });
    const dear = await limited("dear", { costUsd: 0.001 });
    expect(dear.run).toMatchObject({
      status: "failed",
      failureReason: "budget: the run has used its model budget of $0.001 before any work was done",
    });
  });
});

describe("the limits of a prompt over REST", () => {
  const app = testApp({ env: { EVALD_MAX_TOOL_CALLS: "50", EVALD_MAX_COST_USD: "0" } });
  const create = (limits: unknown) => app.send("POST", "/api/v1/prompts", { body: { text: "x", limits } });

  test("are stored, changed and removed", async () => {
    const limits = { toolCalls: 50, costUsd: 900, memoryBytes: null };
    const { status, body } = await create(limits);
    expect([status, body.limits]).toEqual([201, limits]);
    const path = `/api/v1/prompts/${body.id}`;
    expect((await app.send("PATCH", path, { body: { title: "t" } })).body.limits).toEqual(limits);
    expect((await app.send("PATCH", path, { body: { limits: { requests: 3 } } })).body.limits).toEqual({ requests: 3 });
    expect((await app.send("PATCH", path, { body: { limits: null } })).body.limits).toBeNull();
    expect((await app.send("GET", path)).body.limits).toBeNull();
  });

  test.each([
    [{ toolCalls: 51 }, "Invalid limits.toolCalls: 51 exceeds the server's maximum of 50 (EVALD_MAX_TOOL_CALLS)."],
    [
      { wallClockSeconds: 1801 },
      "Invalid limits.wallClockSeconds: 1801 exceeds the server's maximum of 1800 (EVALD_RUN_TIMEOUT_SECONDS).",
    ],
    [{ toolCalls: 0 }, "Invalid limits.toolCalls: must be"],
    [{ costUsd: -1 }, "Invalid limits.costUsd: must be"],
    [{ tokens: "many" }, "Invalid limits.tokens: must be"],
    ["none", "Invalid limits: must be"],
  ])("can't be %j", async (limits, detail) => {
    expect(await create(limits)).toMatchObject({ status: 400, body: { detail: expect.stringContaining(detail) } });
  });
});
