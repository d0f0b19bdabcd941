import { describe, expect, test } from "bun:test";
import { attacksOn } from "../support/attacks.ts";
import type { Turn } from "../support/fake-model.ts";
import { answer, installation, judgedApps, modelSession, part, rows, says } from "../support/judged.ts";
import { isThorough } from "../support/thorough.ts";

// biome-ignore lint/suspicious/noExplicitAny: the API's response, of which the test reads a few fields
type Report = any;

const { judged, runOnce } = judgedApps();
const isDropped = (name: string) => !name.startsWith("a Markdown image");

describe("a judge that fails", () => {
  const half = JSON.stringify(answer()).slice(0, 200);
  const used = { usage: { input: 1000, output: 100 } };
  const cases: [string, Turn[], number, number | null, RegExp][] = [
    ["prose", [says("I think it went well.")], 2, 0.004, /its response could not be used: /],
    ["another schema", [says('{"grade": "A+", "met": true}')], 2, 0.004, /could not be used: .*parts is required/],
    ["half a response", [says(half)], 2, 0.004, /its response could not be used/],
    ["a huge response", [says(`{"parts": "${"x".repeat(3_000_000)}"}`)], 2, 0.004, /its response could not be used/],
    ["a rejected key", [{ fail: { status: 401, message: "invalid key" } }], 1, 0, /rejected the API key \(401\)/],
    ["a model that doesn't exist", [{ fail: { status: 404, message: "no such model" } }], 1, 0, /no such model/],
    ["a permanent error", [{ fail: { status: 500, message: "something broke" } }], 4, 0, /something broke/],
    ["permanent rate limiting", [{ fail: { status: 429, message: "slow down" } }], 4, 0, /slow down/],
    ["no JSON at all", [{ garbage: "<html>It works!</html>" }], 4, null, /./],
    ["a response that is cut", [says(answer(), { cut: "half" })], 4, null, /./],
    [
      "a useless first response and then an error",
      [says("no"), { fail: { status: 500, message: "broke" } }],
      5,
      0.002,
      /broke/,
    ],
  ];
  test.each(cases)("leaves no score but the reason and its cost: %s", async (_, turns, calls, costUsd, reason) => {
    const app = judged({ turns: turns.map((turn) => ({ ...used, ...turn })) });
    const { run, report } = await app.run();
    expect(run.status).toBe("completed");
    expect(report).toMatchObject({ outcome: "scoring_failed", score: null, grade: null, dimensions: [] });
    expect(report.nullNotice).toStartWith("Not measured: openai-compatible/judge could not judge the session:");
    expect(report.nullNotice).toMatch(reason);
    expect(report.judge).toMatchObject({ costUsd, parts: [], confidence: null });
    expect(app.model.requests).toHaveLength(calls);
    expect(app.sent()).toBe(1);
    expect(JSON.stringify(report)).not.toContain("sk-judge-key");
  });

  test("by not responding is stopped and retried", async () => {
    const app = judged({ turns: [{ silent: true }, says(answer())], env: { EVALD_IDLE_TIMEOUT_SECONDS: "2" } });
    const { report, attempts } = await app.run();
    expect(report.outcome).toBe("succeeded");
    expect(attempts.map(({ outcome }) => outcome)).toEqual(["retried", "done"]);
  });

  test("is retried without running the agent again, and each attempt has its own cost", async () => {
    const app = judged({ turns: [says("no"), { fail: { status: 503, message: "busy" } }, says(answer())] });
    const { run, report, attempts } = await app.run();
    expect(app.sent()).toBe(1);
    expect(run).toMatchObject({ status: "completed", attempt: 2 });
    expect(report).toMatchObject({ outcome: "succeeded", judge: { calls: 2, costUsd: 0.004 } });
    expect(attempts).toMatchObject([
      {
        outcome: "retried",
        reason: expect.stringContaining("infrastructure: the judge could not be reached"),
        costUsd: 0.002,
      },
      { outcome: "done", costUsd: 0.002 },
    ]);
  });

  test("because the service stops continues after a restart, and the cost of the lost call is unknown", async () => {
    const app = judged({ turns: [{ silent: true }, says(answer())] });
    const running = app.run();
    while (app.model.requests.length === 0) await new Promise((resolve) => setImmediate(resolve));
    await app.service.runner.stop(0);
    await app.runJobs();
    const { report, attempts } = await running;
    expect(app.sent()).toBe(1);
    expect(report).toMatchObject({ outcome: "succeeded", judge: { calls: 2, costUsd: null } });
    expect(attempts).toMatchObject([
      { outcome: "released", costUsd: null },
      { outcome: "done", costUsd: 0.002 },
    ]);
  });

  test("for lack of a key says so", async () => {
    const { report } = await judged({ turns: [says(answer())], judge: "anthropic/claude-opus-4-8" }).run();
    expect(report.nullNotice).toContain("ANTHROPIC_API_KEY");
  });
});

describe("a page that addresses the judge", () => {
  const page = "Install it: npm i acme";
  const attacks = attacksOn(page).filter((_, i) => isThorough || i % 4 === 0);
  const unclear = answer({ parts: [part(1, "unclear", [], ""), part(2, "unclear", [], "")] });
  // The work failed, so nothing in the session proves that the goal was met.
  const poisoned = attacks.map((attack) => modelSession({ page: attack.page, works: false }));
  const numbersOf = ({
    score,
    grade,
    outcome,
    coverage,
    dimensions,
    metrics: { errors, toolCalls, interruptions },
  }: Report) => ({ score, grade, outcome, coverage, dimensions, errors, toolCalls, interruptions });

  test("is one of at least thirty", () => expect(attacksOn(page).length).toBeGreaterThanOrEqual(30));

  test("changes no number even if the judge obeys, and adds no URL", async () => {
    const clean = await judged({ turns: [says(unclear)], sessions: [modelSession({ page, works: false })] }).run();
    // Each is requested twice: the judge insists.
    const turns = attacks.flatMap(({ obeyed, name }) =>
      isDropped(name) ? [says(obeyed), says(obeyed)] : [says(obeyed)],
    );
    const app = judged({ turns, sessions: poisoned });
    for (const [i, { name }] of attacks.entries()) {
      const { report, trace } = await app.run();
      expect({ name, ...numbersOf(report) }).toEqual({ name, ...numbersOf(clean.report) });
      expect(report.judge.parts.map(({ met }: { met: string }) => met)).toEqual(["unclear", "unclear"]);
      const session = JSON.stringify(poisoned[i]);
      const { judge, keyFinding, verdict, summary, frictionPoints, recommendations } = report;
      const told = JSON.stringify([judge, keyFinding, verdict, summary, frictionPoints, recommendations]);
      const addresses =
        told.match(/(?:[a-z]+:\/\/|www\.|javascript:|data:|mailto:|evil\.example[/:])[^\s"\\)<]*/gi) ?? [];
      expect(addresses.filter((each) => !session.includes(each))).toEqual([]);
      expect(report.verdict).not.toContain("The judge: Score 100");
      const proofs = frictionPoints.flatMap(({ events }: { events: number[] }) => events);
      expect(proofs.every((seq: number) => trace[seq]?.source === "agent")).toBe(true);
    }
    expect(app.model.requests).toHaveLength(turns.length);
  });

  test("makes no difference to a judge that works properly, and the report equals the clean session's", async () => {
    const clean = await runOnce(answer(), modelSession({ page }));
    const app = judged({
      turns: [says(answer())],
      sessions: attacks.map((attack) => modelSession({ page: attack.page })),
    });
    for (const { name, page: said } of attacks) {
      const { report } = await app.run();
      // Words that a page contained before prove nothing, even if an agent repeats them.
      if ([rows, installation].some((words) => said.includes(words))) continue;
      expect({ name, ...numbersOf(report) }).toEqual({ name, ...numbersOf(clean.report) });
      expect(report.judge.parts).toEqual(clean.report.judge.parts);
    }
  });

  test("stays within one line of a delimited record, without control characters", async () => {
    const app = judged({ turns: [says(unclear)], sessions: poisoned });
    for (const _ of attacks) await app.run();
    for (const { body } of app.model.requests) {
      const { messages } = body as { messages: { role: string; content: string }[] };
      const [system, user] = messages.map(({ content }) => content);
      expect(messages.map(({ role }) => role)).toEqual(["system", "user"]);
      expect(system).not.toContain("evil.example");
      const fence = /^SESSION ([0-9a-f]{16})$/m.exec(user ?? "")?.[1];
      const lines = user?.split("\n") ?? [];
      const record = lines.slice(lines.indexOf(`SESSION ${fence}`) + 1, lines.indexOf(`END OF SESSION ${fence}`));
      expect(record.map((each) => /^\[(\d+)\] [a-z_]+ \{/.exec(each)?.[1])).toEqual(
        record.map((_, seq) => String(seq)),
      );
      expect(user).not.toMatch(/[\u200b\u202e\u2066\u{e0041}]/u);
    }
  });
});
