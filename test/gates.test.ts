import { describe, expect, test } from "bun:test";
import { Value } from "@sinclair/typebox/value";
import { advanceGates } from "../src/gates/progress.ts";
import { Gate } from "../src/gates/schema.ts";
import type { Grade } from "../src/grading/grade.ts";
import { createPrompt, updatePrompt } from "../src/prompts/prompts.ts";
import { noisy, testApp } from "./support/app.ts";
import { rpc } from "./support/mcp.ts";
import { normal, randomOf } from "./support/random.ts";
import { evaluation, finishRuns, judge, niceGrade } from "./support/reports.ts";

const preview = { "docs.example.com": "https://preview.example.com" };

/** A prompt whose runs end as a test sets: with a score, or with a failure. The head has a urlMap. */
function setUp(
  end: (side: "base" | "head", nth: number) => number | string | Grade,
  costUsd: number | null = 0,
  agent = "noisy",
) {
  const app = testApp({ agents: noisy });
  const { id: promptId } = createPrompt(app.service.ctx, app.a.org, {
    agent,
    title: "Upload",
    text: "Upload a file. https://docs.example.com",
  });
  const counts = { base: 0, head: 0 };
  const ask = (body: object, headers = {}) =>
    app.send("POST", "/api/v1/gates", { body: { promptId, ...body }, headers });
  const get = async (id: string) => (await app.send("GET", `/api/v1/gates/${id}`)).body;
  /** Ends queued runs and advances the gates until this one is decided. */
  async function decided(id: string) {
    for (;;) {
      const gate = await get(id);
      if (gate.status !== "running") return gate;
      finishRuns(
        app,
        ({ urlMap }) => {
          const side = Object.keys(urlMap).length > 0 ? "head" : "base";
          return end(side, counts[side]++);
        },
        costUsd,
      );
      await advanceGates(app.service.ctx);
    }
  }
  const gate = async (body: object) => await decided((await ask(body)).body.id);
  return { ...app, promptId, ask, get, decided, gate, counts };
}

const steady = (base: number, head: number) => (side: string, nth: number) =>
  (side === "base" ? base : head) + (nth % 3);

describe("a gate", () => {
  test("runs head and base alternately, and fails if the head regressed", async () => {
    const app = setUp(steady(80, 70));
    const { status, body: asked } = await app.ask({ urlMap: preview });
    expect([status, asked.status, asked.progress]).toEqual([201, "running", { ended: 0, of: 10 }]);
    expect([...Value.Errors(Gate, asked)]).toEqual([]);
    const order = app.db.$client
      .query<{ url_map: string }, []>("select url_map from jobs join runs on runs.id = subject order by jobs.id")
      .all()
      .map(({ url_map }) => (url_map === "{}" ? "base" : "head"));
    expect(order).toEqual(["head", "base", "base", "head", "base", "head", "base", "head", "base", "head"]);
    const gate = await app.decided(asked.id);
    expect([...Value.Errors(Gate, gate)]).toEqual([]);
    expect(gate).toMatchObject({
      status: "failed",
      reason:
        "regressed: -10.0 points (95% CI -11.2 to -8.8), p = 0.008; a change needs at least 5 points and p below 0.05",
      progress: { ended: 10, of: 10 },
      comparison: { verdict: "regressed", base: { evalRequestIds: [asked.prompts[0].baseRequestId], runs: 5 } },
      head: { label: "5 runs", score: { mean: 70.8 } },
      warnings: [],
    });
    expect((await app.send("GET", `/api/v1/gates?promptId=${app.promptId}`)).body).toEqual([gate]);
  });

  test.each<[string, number, number, object, string, string]>([
    ["passes if nothing changed", 80, 80, {}, "passed", "no change: 0.0 points"],
    ["passes if the head is better", 70, 80, {}, "passed", "improved: +10.0 points"],
    ["passes if the head is a little worse", 80, 77, {}, "passed", "soft regression: -3.0 points"],
    [
      "fails if the score is below the minimum",
      70,
      70,
      { minScore: 75 },
      "failed",
      "the mean score 70.8 is below the minimum of 75; no change: ",
    ],
    [
      "passes if the score equals the minimum",
      70,
      70,
      { minScore: 70.8 },
      "passed",
      "the mean score 70.8 meets the minimum of 70.8; no change: ",
    ],
    ["is inconclusive with three runs", 80, 60, { runs: 3 }, "error", "insufficient data: 3 against 3 runs"],
    [
      "is decided by the minimum if the runs can't decide",
      80,
      60,
      { runs: 3, minScore: 50 },
      "passed",
      "the mean score 61 meets the minimum of 50; ",
    ],
  ])("%s", async (_, base, head, more, status, reason) => {
    const gate = await setUp(steady(base, head)).gate({ urlMap: preview, ...more });
    expect(gate.status).toBe(status);
    expect(gate.reason).toStartWith(reason);
    const { reason: found } = gate.comparison.evidence;
    expect(gate.cause).toEqual("minScore" in more ? expect.stringMatching(/^the mean score [\d. a-z]+$/) : null);
    expect(gate.reason).toEndWith(found);
  });

  test("ends without a verdict after it was cancelled", async () => {
    const { ask, get, send, b, service } = setUp(steady(80, 70));
    const { id } = (await ask({ urlMap: preview })).body;
    const cancel = (gateId: string, headers = {}) => send("POST", `/api/v1/gates/${gateId}/cancel`, { headers });
    expect((await cancel(id, { authorization: `Bearer ${b.key}` })).status).toBe(404);
    const { status, body } = await cancel(id);
    expect([status, body.id, body.progress]).toEqual([200, id, { ended: 10, of: 10 }]);
    await advanceGates(service.ctx);
    expect(await get(id)).toMatchObject({ status: "error" });
    const failures = (await send("GET", "/api/v1/runs?limit=20")).body.map(
      ({ failureReason }: { failureReason: string }) => failureReason,
    );
    expect(failures).toEqual(Array(10).fill('cancelled: by the API key "test"'));
    expect((await cancel(id)).status).toBe(409);
  });

  test("is decided by the remaining runs if a fifth fail, and inconclusive if more fail", async () => {
    const ends = (timeouts: number) => (side: string, nth: number) =>
      side === "head" && nth < timeouts + 1
        ? nth < 1
          ? "infrastructure: the host is gone"
          : "timeout: too long"
        : 70 + (nth % 5);
    expect(await setUp(ends(1)).gate({ urlMap: preview, runs: 10 })).toMatchObject({
      status: "passed",
      head: { n: 8, infraFailures: 1 },
      comparison: { verdict: "no_change" },
    });
    expect(await setUp(ends(2)).gate({ urlMap: preview, runs: 10 })).toMatchObject({
      status: "error",
      reason: expect.stringMatching(/20% of the runs of the head .*: timeout: too long$/),
    });
  });

  test("warns if it has fewer than four runs", async () => {
    const { body } = await setUp(steady(80, 80)).ask({ urlMap: preview, runs: 3 });
    expect(body.warnings).toEqual([expect.stringMatching(/^3 runs .*minScore/)]);
  });

  test("warns if evaluations of its prompt have fewer than four runs", async () => {
    const app = setUp(steady(80, 80));
    const { base, promptId, send } = { ...app, base: `/api/v1/prompts/${app.promptId}` };
    const warnings = async () => (await send("GET", base)).body.warnings;
    const request = async (more: object) => (await rpc(app).call("request_eval", { promptId, ...more })).warnings;
    expect([await warnings(), await request({})]).toEqual([[], []]);
    await app.ask({ urlMap: preview });
    const warning = expect.stringContaining("runsPerEval");
    expect([await warnings(), await request({}), await request({ runs: 4 })]).toEqual([[warning], [warning], []]);
    expect((await send("GET", `/prompts/${promptId}`)).body).toMatch(/<p class="notice">[^<]*runsPerEval/);
    await send("PATCH", base, { body: { runsPerEval: 5 } });
    expect(await warnings()).toEqual([]);
  });

  test("warns about each evaluation and baseline of its prompts that is too small", async () => {
    const app = setUp((_, nth) => 80 + (nth % 3));
    const text = "Upload a file. https://docs.example.com";
    const other = createPrompt(app.service.ctx, app.a.org, { agent: "noisy", title: "Download", text }).id;
    const promptIds = [app.promptId, other];
    const warnings = async (id: string) => (await app.send("GET", `/api/v1/prompts/${id}`)).body.warnings.length;
    // The published runs of both prompts are the baselines, two each.
    for (const id of promptIds)
      evaluation(
        app,
        id,
        [80, 81].map((score) => ({ ...niceGrade, score })),
      );
    expect([await warnings(app.promptId), await warnings(other)]).toEqual([0, 0]);
    const { body } = await app.ask({ promptId: undefined, promptIds, runs: 2 });
    expect(body.warnings).toEqual([
      expect.stringMatching(/^2 runs per side: too few/),
      expect.stringMatching(/^2 runs in the baseline of Upload: too few/),
      expect.stringMatching(/^2 runs in the baseline of Download: too few/),
    ]);
    expect([await warnings(app.promptId), await warnings(other)]).toEqual([1, 1]);
    expect((await app.ask({ promptId: undefined, promptIds, runs: 5 })).body.warnings).toEqual([]);
  });

  test("includes all prompts with a tag, and the same ones again for the same Idempotency-Key", async () => {
    const app = setUp(steady(80, 50));
    const text = "Upload a file. https://docs.example.com";
    const create = (tags: string[]) => createPrompt(app.service.ctx, app.a.org, { agent: "noisy", text, tags }).id;
    const [one, two] = [create(["sdk"]), create(["sdk", "docs"])];
    create(["docs"]);
    updatePrompt(app.service.ctx, app.a.org, create(["sdk"]), { status: "archived" });
    const headers = { "idempotency-key": "commit-1" };
    const tagged = { promptId: undefined, tag: "sdk", urlMap: preview };
    const { status, body } = await app.ask(tagged, headers);
    expect([status, body.prompts.map(({ id }: { id: string }) => id)]).toEqual([201, [one, two]]);
    create(["sdk"]);
    expect((await app.ask(tagged, headers)).body.id).toBe(body.id);
    expect((await app.decided(body.id)).status).toBe("failed");
    const refused = async (more: object) =>
      (await app.ask({ promptId: undefined, urlMap: preview, ...more })).body.detail;
    expect([
      await refused({ tag: "none" }),
      await refused({ tag: "sdk", promptIds: [one] }),
      await refused({}),
    ]).toEqual([
      expect.stringMatching(/^Invalid tag: no prompt/),
      expect.stringContaining("exactly one of"),
      expect.stringContaining("exactly one of"),
    ]);
    for (let i = 0; i < 21; i++) create(["many"]);
    expect(await refused({ tag: "many" })).toMatch(/^Invalid tag: 21 prompts .* at most 20/);
  });

  test("reports a disagreement if only one prompt got worse", async () => {
    const app = testApp({ agents: noisy });
    const text = "Upload a file. https://docs.example.com";
    const promptIds = [1, 2].map(() => createPrompt(app.service.ctx, app.a.org, { agent: "noisy", text }).id);
    const asked = await app.send("POST", "/api/v1/gates", { body: { promptIds, urlMap: preview } });
    let nth = 0;
    finishRuns(app, ({ urlMap, promptId }) => {
      const isWorse = promptId === promptIds[0] && Object.keys(urlMap).length > 0;
      return (isWorse ? 50 : 80) + (nth++ % 3);
    });
    await advanceGates(app.service.ctx);
    const { body: gate } = await app.send("GET", `/api/v1/gates/${asked.body.id}`);
    expect(gate).toMatchObject({
      status: "error",
      reason: expect.stringMatching(/^only some of the prompts got worse/),
    });
    const { withinP, p, delta } = gate.comparison.evidence;
    expect([withinP < 0.05, p >= 0.05, delta.value < -5]).toEqual([true, true, true]);
  });

  test("ends as an error, not a failure, if its runs fail", async () => {
    const lost = (side: string, nth: number) =>
      side === "head" && nth % 2 ? "infrastructure: the host is gone" : 70 + (nth % 3);
    const app = setUp(lost);
    expect(await app.gate({ urlMap: preview })).toMatchObject({
      status: "error",
      reason: expect.stringMatching(/20% of the runs of the head .*: infrastructure: the host is gone$/),
      comparison: { friction: { shared: [{ after: { runs: 3, of: 3 } }], gone: [], new: [] } },
    });
    // An adaptive gate detects it at its first interim evaluation.
    expect(await setUp(lost).gate({ urlMap: preview, adaptive: true })).toMatchObject({
      status: "error",
      progress: { of: 6 },
    });
    // If no run of a side is valid, nothing is gone or new.
    const away = setUp((side, nth) => (side === "base" ? `infrastructure: away${nth < 4 ? "" : ", and late"}` : 70));
    expect(await away.gate({ urlMap: preview })).toMatchObject({
      reason: expect.stringMatching(/20% of the runs of the base .*: infrastructure: away$/),
      comparison: { friction: { shared: [], gone: [], new: [] } },
    });
    const timeouts = setUp((side, nth) => (side === "head" ? "timeout: too long" : 70 + (nth % 3)));
    expect(await timeouts.gate({ urlMap: preview })).toMatchObject({
      status: "failed",
      comparison: { evidence: { causes: ["unfinished"] } },
    });
  });

  test("compares with the baseline at the time of the request if it has no urlMap", async () => {
    const app = setUp((_, nth) => (nth < 10 ? 80 + (nth % 3) : 60 + (nth % 3)));
    expect((await app.ask({})).body).toEqual({ error: "bad_request", detail: expect.stringContaining("urlMap") });
    await app.gate({ runs: 5, minScore: 50 });
    await app.gate({ runs: 5, minScore: 50 });
    const gate = await app.gate({ runs: 5 });
    expect(gate).toMatchObject({
      status: "failed",
      prompts: [{ baseRequestId: null }],
      progress: { of: 5 },
      comparison: { verdict: "regressed", base: { runs: 10 } },
    });
  });

  test("stops early in adaptive mode when the verdict is clear, and says after how many runs", async () => {
    const worse = await setUp(steady(80, 60)).gate({ urlMap: preview, adaptive: true });
    expect([worse.status, worse.progress.of]).toEqual(["failed", 10]);
    expect(worse.reason).toEndWith("; clear after 5 runs per side");
    expect(worse.comparison.evidence.level).toBe(0.02699);
    const random = randomOf(3);
    const wide = await setUp(() => normal(random, 70, 8)).gate({ urlMap: preview, adaptive: true });
    expect([wide.status, wide.progress.of, wide.comparison.evidence.level]).toEqual(["passed", 24, 0.02168]);
    const { body } = await setUp(steady(1, 1)).ask({ urlMap: preview, adaptive: true, runs: 13 });
    expect(body.detail).toMatch(/^Invalid runs: .*12/);
  });

  test.each<[string, number | null, object, number, string, string?]>([
    [
      "makes the runs that fit",
      0.1,
      { budgetUsd: 0.75 },
      6,
      "; 3 runs per side cost $0.60, and more would exceed the budget of $0.75",
      "error",
    ],
    ["makes all requested runs if they fit", 0.1, { budgetUsd: 5 }, 10, "p below 0.05"],
    [
      "doesn't start an interim evaluation that it can't finish",
      0.1,
      { budgetUsd: 0.9, adaptive: true },
      6,
      "the budget of $0.9",
      "error",
    ],
    ["stops if the cost of runs is unknown", null, { budgetUsd: 5 }, 2, "so the budget cannot be enforced", "error"],
    ["counts no cost if there is none", 0, { budgetUsd: 0.01 }, 10, "p below 0.05"],
  ])("with a budget %s", async (_, costUsd, more, runs, reason, status = "passed") => {
    const gate = await setUp(steady(80, 79), costUsd).gate({ urlMap: preview, ...more });
    expect([gate.progress.of, gate.status]).toEqual([runs, status]);
    expect(gate.reason).toContain(reason);
    expect(gate.spentUsd).toEqual(costUsd === null ? null : expect.closeTo(costUsd * runs, 9));
  });

  test("is accepted once per Idempotency-Key, and belongs to its organization", async () => {
    const app = setUp(steady(80, 80));
    const headers = { "idempotency-key": "commit-1" };
    const one = (await app.ask({ urlMap: preview, minScore: 60 }, headers)).body;
    expect((await app.ask({ urlMap: preview, minScore: 60 }, headers)).body.id).toBe(one.id);
    expect((await app.ask({ urlMap: preview, minScore: 70 }, headers)).status).toBe(409);
    const stranger = { headers: { authorization: `Bearer ${app.b.key}` } };
    expect((await app.send("GET", `/api/v1/gates/${one.id}`, stranger)).status).toBe(404);
    expect((await app.send("GET", "/api/v1/gates", stranger)).body).toEqual([]);
    expect((await app.send("POST", "/api/v1/gates", { ...stranger, body: { promptId: app.promptId } })).status).toBe(
      404,
    );
  });

  test("ends as an error on an internal error, and doesn't block others", async () => {
    const app = setUp(steady(80, 70));
    const broken = (await app.ask({ urlMap: preview })).body;
    const whole = (await app.ask({ urlMap: preview })).body;
    finishRuns(app, ({ urlMap }) => (Object.keys(urlMap).length > 0 ? 70 : 80));
    app.db.$client.run(
      "update reports set dimensions = 'x' where run_id in (select id from runs where eval_request_id = ?)",
      [broken.prompts[0].headRequestId],
    );
    await advanceGates(app.service.ctx);
    const defect = "internal error; see the server log";
    expect(await app.get(broken.id)).toMatchObject({ status: "error", reason: defect, comparison: null });
    expect((await app.get(whole.id)).status).toBe("failed");
  });
});

describe("a gate doesn't pass", () => {
  const stamp = { ...niceGrade.methodology, judge: "openai/gpt-5" };
  const won: Grade = { ...niceGrade, methodology: stamp, outcome: "succeeded", score: 90 };
  const missed: Grade = { ...won, outcome: "goal_not_met", score: 55 };
  const unclear: Grade = { ...won, outcome: "not_judged", scope: "conduct_only", grade: null, judge };

  test("if 5 of 5 runs reached the goal, and then 4 missed it and 1 is unclear", async () => {
    const app = setUp((side, nth) => (side === "base" ? won : nth < 4 ? missed : unclear));
    const gate = await app.gate({ urlMap: preview });
    expect([gate.status, gate.comparison.evidence.ends.success.after]).toEqual(["failed", { k: 0, n: 5 }]);
    expect(gate.comparison.evidence.causes).toContain("success");
  });

  test.each([
    ["4 of 5 runs time out", 4, 5, "failed"],
    ["7 of 10 runs time out", 7, 10, "failed"],
  ])("if %s", async (_, lost, runs, status) => {
    const app = setUp((side, nth) => (side === "head" && nth < lost ? "timeout: too long" : 80 + (nth % 3)));
    expect((await app.gate({ urlMap: preview, runs })).status).toBe(status);
  });

  test("if it is adaptive and most runs time out", async () => {
    const app = setUp((side, nth) => (side === "head" && nth % 4 > 0 ? "timeout: too long" : 80 + (nth % 3)));
    const gate = await app.gate({ urlMap: preview, adaptive: true });
    expect([gate.status, gate.comparison.evidence.causes]).toEqual(["failed", ["unfinished"]]);
  });

  test("if the explorer loses 40 points, or finds new friction", async () => {
    const explorer = (end: Parameters<typeof setUp>[0]) => setUp(end, 0, "explorer").gate({ urlMap: preview, runs: 3 });
    const fell = await explorer((side) => (side === "base" ? 90 : 50));
    expect([fell.status, fell.progress.of, fell.comparison.evidence.p]).toEqual(["failed", 2, null]);
    const [friction] = niceGrade.frictions as [Grade["frictions"][number]];
    const met = (more: Partial<Grade["frictions"][number]>) => ({
      ...niceGrade,
      ...{ recommendations: [], frictions: [friction, { ...friction, fingerprint: "b".repeat(16), ...more }] },
    });
    const added = async (more: Partial<Grade["frictions"][number]>) =>
      (await explorer((side) => (side === "base" ? niceGrade : met(more)))).status;
    expect([await added({}), await added({ severity: "medium" }), await added({ severity: "low" })]).toEqual([
      "failed",
      "failed",
      "passed",
    ]);
    // The goal doesn't depend on findings elsewhere in the docs.
    expect(await added({ onPath: false })).toBe("passed");
    expect((await explorer(() => niceGrade)).status).toBe("passed");
  });

  test("if five prompts all lose 30 points", async () => {
    const app = setUp(steady(80, 50));
    const text = "Upload a file. https://docs.example.com";
    const others = [1, 2, 3, 4].map(() => createPrompt(app.service.ctx, app.a.org, { agent: "noisy", text }).id);
    const asked = await app.ask({ promptId: undefined, promptIds: [app.promptId, ...others], urlMap: preview });
    const gate = await app.decided(asked.body.id);
    expect([gate.status, gate.prompts.length, gate.progress.of]).toEqual(["failed", 5, 50]);
  });

  test("if the minimum is for tested goals and the score covers only the docs", async () => {
    const docs: Grade = { ...niceGrade, scope: "docs_only", grade: null };
    const app = setUp(() => docs);
    expect((await app.gate({ urlMap: preview, minScore: 50 })).status).toBe("error");
    expect((await app.gate({ urlMap: preview, minScore: 50, scope: "docs_only" })).status).toBe("passed");
  });
});
