import { describe, expect, test } from "bun:test";
import { createKey } from "../src/auth/keys.ts";
import type { Grade } from "../src/grading/grade.ts";
import { createPrompt, updatePrompt } from "../src/prompts/prompts.ts";
import { requestEval } from "../src/runs/requests.ts";
import { testApp } from "./support/app.ts";
import { fieldsOf } from "./support/form-fields.ts";
import { signedIn } from "./support/people.ts";
import { evaluation, niceGrade } from "./support/reports.ts";

const preview = { urlMap: { "docs.example.com": "https://preview.example.com" } };

function setUp() {
  const app = testApp();
  const newKey = (usesCompatibilityMode: boolean) =>
    createKey(app.service.ctx, app.a.org, "ci", { usesCompatibilityMode }).key;
  const newPrompt = (more = {}) => createPrompt(app.service.ctx, app.a.org, { text: "x {{v}}", ...more }).id;
  const using = (key: string) => async (method: string, path: string, body?: unknown) =>
    await app.send(method, path, { body, headers: { authorization: `Bearer ${key}` } });
  return { app, newKey, newPrompt, using };
}

describe("superseding by default", () => {
  test("applies to a prompt or key that is set to it, unless the request says otherwise", async () => {
    const { app, newKey, newPrompt, using } = setUp();
    const [plain, compatible] = [using(newKey(false)), using(newKey(true))];
    const args = { templateArgs: { v: "1" } };
    const start = async (ask: typeof plain, id: string, more = {}): Promise<string> =>
      (await ask("POST", `/api/v1/prompts/${id}/run`, { ...preview, ...args, ...more })).body.runId;
    const statusOf = async (runId: string) => (await plain("GET", `/api/v1/runs/${runId}`)).body.status;
    for (const [ask, id, superseded] of [
      [plain, newPrompt(), false],
      [plain, newPrompt({ supersedesByDefault: true }), true],
      [compatible, newPrompt(), true],
    ] as const) {
      const first = await start(ask, id);
      // Another preview and the live docs are not superseded.
      const others = [
        await start(ask, id, { urlMap: { "api.example.com": "https://x.example.com" } }),
        await start(ask, id, { urlMap: {} }),
      ];
      const second = await start(ask, id);
      expect(await statusOf(first)).toBe(superseded ? "superseded" : "pending");
      for (const other of [...others, second]) expect(await statusOf(other)).toBe("pending");
      const third = await start(ask, id, { supersede: false });
      expect([await statusOf(second), await statusOf(third)]).toEqual(["pending", "pending"]);
    }
    // The default applies only to runs that are requested over REST: an evaluation has several.
    const id = newPrompt({ supersedesByDefault: true });
    const { runIds } = await requestEval(app.service.ctx, app.a.org, id, { ...preview, ...args, trigger: "mcp" });
    await requestEval(app.service.ctx, app.a.org, id, { ...preview, ...args, trigger: "schedule" });
    expect(await statusOf(runIds[0] as string)).toBe("pending");
  });

  test("keeps a repeated Idempotency-Key the same request when the setting changed in between", async () => {
    const { app, newPrompt } = setUp();
    const id = newPrompt();
    const start = async () =>
      await app.send("POST", `/api/v1/prompts/${id}/run`, {
        body: { ...preview, templateArgs: { v: "1" } },
        headers: { "idempotency-key": "one" },
      });
    const first = await start();
    updatePrompt(app.service.ctx, app.a.org, id, { supersedesByDefault: true });
    expect((await start()).body).toEqual(first.body);
  });
});

describe("errors", () => {
  test("include their detail in the code for a key in compatibility mode only", async () => {
    const { newKey, newPrompt, using } = setUp();
    const id = newPrompt();
    for (const [path, body, code] of [
      [`/api/v1/prompts/${id}/run`, preview, "missing_template_vars"],
      [`/api/v1/prompts/${id}/run`, {}, "bad_request"],
      [`/api/v1/prompts/${crypto.randomUUID()}/run`, preview, "not_found"],
    ] as const) {
      const { body: plain } = await using(newKey(false))("POST", path, body);
      const { body: readable } = await using(newKey(true))("POST", path, body);
      expect(plain).toEqual({ error: code, detail: expect.any(String) });
      expect(readable).toEqual({ error: `${code}: ${plain.detail}`, detail: plain.detail });
    }
  });

  test("do so for a key that was created in compatibility mode on the settings page", async () => {
    const { app, using } = setUp();
    const person = await signedIn(app);
    const form = {
      ...fieldsOf((await person.get("/settings/keys")).body),
      name: "old CI",
      usesCompatibilityMode: "on",
    };
    const { body } = await person.post("/settings/keys", { ...form, scopes: ["read", "run"], days: "0" });
    const [key = ""] = /evals_[0-9A-Za-z]{36}/.exec(body) ?? [];
    expect((await using(key)("GET", "/api/v1/runs/none")).body.error).toStartWith("not_found: ");
  });
});

describe("the outcome of a run", () => {
  const untested: Grade = { ...niceGrade, outcome: "not_judged", scope: "docs_only", grade: null, score: 80 };
  const bar = { scope: "docs_only", minScore: 80 } as const;

  test.each<[string, Partial<Grade>, typeof bar | null, string]>([
    ["is a success if its untested goal passes the bar", {}, bar, "succeeded"],
    ["stays not judged if the score is below the bar", { score: 79.9 }, bar, "not_judged"],
    ["stays not judged if the score has another scope", { scope: "conduct_only" }, bar, "not_judged"],
    ["stays not judged if there is no score", { score: null, nullNotice: "none" }, bar, "not_judged"],
    ["stays not judged if there is no bar", {}, null, "not_judged"],
    ["stays a missed goal", { outcome: "goal_not_met", scope: "goal" }, bar, "goal_not_met"],
    [
      "stays unscored if scoring failed",
      { outcome: "scoring_failed", score: null, nullNotice: "none" },
      bar,
      "scoring_failed",
    ],
    ["stays excluded", { outcome: "excluded", score: null, nullNotice: "none" }, bar, "excluded"],
    ["stays a success if the goal was reached", { outcome: "succeeded", scope: "goal", score: 50 }, bar, "succeeded"],
  ])("%s", async (_, grade, successBar, expected) => {
    const { app } = setUp();
    const { id } = createPrompt(app.service.ctx, app.a.org, { text: "x", successBar });
    const [run] = evaluation(app, id, [{ ...untested, ...grade }]);
    const isByBar = expected === "succeeded" && grade.outcome === undefined;
    const decided = { outcome: expected, passedBar: isByBar ? bar : null };
    expect((await app.send("GET", `/api/v1/runs/${run?.runId}`)).body.report).toMatchObject(decided);
    expect((await app.send("GET", `/api/v1/runs?promptId=${id}`)).body[0].report).toMatchObject(decided);
    // The report itself says what was tested.
    const { outcome } = (await app.send("GET", `/api/v1/reports/${run?.slug}`)).body;
    expect(outcome).toBe(grade.outcome ?? "not_judged");
    // Pages don't claim that the goal was met.
    const { body } = await (await signedIn(app)).get(`/runs/${run?.runId}`);
    expect(body.includes("Succeeded with a score of at least 80 · Goal not tested")).toBe(isByBar);
  });

  test("follows the bar when it changes, and the bar must be valid", async () => {
    const { app } = setUp();
    const { id } = createPrompt(app.service.ctx, app.a.org, { text: "x" });
    const [run] = evaluation(app, id, [untested]);
    const outcomeOf = async () => (await app.send("GET", `/api/v1/runs/${run?.runId}`)).body.report.outcome;
    const change = async (successBar: unknown) =>
      (await app.send("PATCH", `/api/v1/prompts/${id}`, { body: { successBar } })).status;
    expect(await change(bar)).toBe(200);
    expect(await outcomeOf()).toBe("succeeded");
    for (const wrong of [
      { scope: "goal", minScore: 80 },
      { scope: "docs_only", minScore: 101 },
      { scope: "docs_only" },
      80,
    ])
      expect(await change(wrong)).toBe(400);
    expect(await change(null)).toBe(200);
    expect(await outcomeOf()).toBe("not_judged");
  });
});

describe("the grade of a run that passed its bar", () => {
  const untested: Grade = { ...niceGrade, outcome: "not_judged", scope: "docs_only", grade: null, score: 80 };
  const bar = { scope: "docs_only", minScore: 75 } as const;

  test("is the one of its score for a key in compatibility mode, wherever REST returns the run", async () => {
    const { app, newKey, using } = setUp();
    const [plain, compatible] = [using(newKey(false)), using(newKey(true))];
    const { id } = createPrompt(app.service.ctx, app.a.org, { text: "x", successBar: bar });
    const passed = evaluation(app, id, [untested])[0]?.runId;
    const failed = evaluation(app, id, [{ ...untested, score: 70 }])[0]?.runId;
    const reportsFor = async (ask: typeof plain, runId: unknown) => {
      const stream = String((await ask("GET", `/api/v1/runs/${runId}/events`)).body);
      const [, streamed = ""] = /^event: run\nid: .*\ndata: (.*)$/m.exec(stream) ?? [];
      const listed = (await ask("GET", `/api/v1/runs?promptId=${id}`)).body;
      return [
        (await ask("GET", `/api/v1/runs/${runId}`)).body.report,
        listed.find((run: { runId: string }) => run.runId === runId).report,
        JSON.parse(streamed).report,
      ].map(({ outcome, score, grade, nullNotice }) => [outcome, score, grade, nullNotice === null]);
    };
    expect(await reportsFor(compatible, passed)).toEqual(Array(3).fill(["succeeded", 80, "B-", true]));
    expect(await reportsFor(plain, passed)).toEqual(Array(3).fill(["succeeded", 80, null, false]));
    for (const ask of [plain, compatible])
      expect(await reportsFor(ask, failed)).toEqual(Array(3).fill(["not_judged", 70, null, false]));
  });
});
