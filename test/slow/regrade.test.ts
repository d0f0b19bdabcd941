import { Database } from "bun:sqlite";
import { afterEach, describe, expect, spyOn, test } from "bun:test";
import { join } from "node:path";
import { eq } from "drizzle-orm";
import { updateOrg } from "../../src/auth/orgs.ts";
import { gradings, regrades, reports } from "../../src/db/tables/reports.ts";
import { sessionEvents } from "../../src/db/tables/runs.ts";
import { gradeSession } from "../../src/grading/score.ts";
import { createDestination } from "../../src/notifications/destinations.ts";
import { splitVariance } from "../../src/reports/judge-variance.ts";
import type { Grading, GradingList } from "../../src/reports/schema.ts";
import { readSession } from "../../src/reports/session-events.ts";
import { listAttempts } from "../../src/runs/runs.ts";
import { getSpending } from "../../src/runs/spending.ts";
import { emptyFolder } from "../support/executable.ts";
import type { Turn } from "../support/fake-model.ts";
import { answer, installation, judgedApp, modelSession, part, rows, says } from "../support/judged.ts";
import { rpc } from "../support/mcp.ts";

const weights = {
  "Goal achievement": 50,
  "Docs discoverability": 10,
  "Docs quality": 10,
  "Error recovery": 10,
  Efficiency: 10,
  Autonomy: 10,
};
const own = { EVALD_METHODOLOGY: JSON.stringify({ id: "acme-1", weights }) };
const since = "2020-01-01";
type Options = Partial<Parameters<typeof judgedApp>[0]>;

const apps: ReturnType<typeof judgedApp>[] = [];
function judged(options: Options = {}) {
  const app = judgedApp({ turns: [says(answer())], ...options });
  apps.push(app);
  return app;
}
type App = ReturnType<typeof judged>;
afterEach(async () => {
  for (const app of apps.splice(0)) await app.stop();
});

const get = async (app: App, path: string) => (await app.send("GET", path)).body;
const listed = (app: App, slug: string): Promise<GradingList> => get(app, `/api/v1/reports/${slug}/gradings`);
const ask = (app: App, body: object) => app.send("POST", "/api/v1/regrades", { body: { since, ...body } });
/** Requests a regrade, runs it, and returns its result. */
async function regrade(app: App, body: object = {}) {
  const asked = await ask(app, body);
  if (asked.status !== 200) return asked.body;
  await app.runJobs();
  return get(app, `/api/v1/regrades/${asked.body.regradeId}`);
}
/** The stored events of a report's run. */
const eventsOf = (app: App, runId: string) => readSession(app.db, { orgId: app.a.org, runId, attempt: 1 });

describe("another methodology", () => {
  test("is added to the old one, which can be read, shown again and pinned", async () => {
    const asked = { type: "interruption", question: "Which account?", url: null } as const;
    const app = judged({ env: own, sessions: [modelSession({ more: [asked, asked, asked] })] });
    const { report, run } = await app.run();
    const path = `/api/v1/reports/${report.slug}`;
    expect(report.methodology.id).toBe("acme-1");
    expect(await listed(app, report.slug)).toMatchObject({
      gradings: [{ repeat: 1, isShown: true, isPinned: false, score: report.score, createdAt: report.createdAt }],
      judgeVariance: [],
    });

    expect(await regrade(app, { methodology: "3" })).toMatchObject({
      status: "completed",
      methodology: "3",
      ...{ total: 1, graded: 1, unchanged: 0, withoutEvents: 0, failed: 0, spentUsd: 0, failureReason: null },
    });
    const now = await get(app, path);
    const { dimensions, score, coverage, methodology } = gradeSession(eventsOf(app, run.runId));
    expect(now).toMatchObject({ slug: report.slug, score, coverage, methodology });
    const scores = (all: { name: string; score: number }[]) => all.map((each) => [each.name, each.score]);
    expect(scores(now.dimensions)).toEqual(scores(dimensions));
    expect(now.methodology.id).toBe("3");
    expect(now.score).not.toBe(report.score);
    // The same friction keeps its ID, and so does its fix. Its cost in points follows the weights.
    const unpriced = ({ frictionPoints }: typeof now) =>
      frictionPoints.map((point: object) => ({ ...point, lostPoints: null }));
    expect(unpriced(now)).toEqual(unpriced(report));
    expect(now.recommendations.map(({ id }: { id: string }) => id).sort()).toEqual(
      report.recommendations.map(({ id }: { id: string }) => id).sort(),
    );
    expect(await get(app, `${path}?methodology=acme-1`)).toEqual(report);
    expect(await get(app, `${path}?methodology=${report.methodology.hash.slice(0, 8)}`)).toEqual(report);
    expect(await get(app, `${path}?methodology=3`)).toEqual(now);
    expect((await get(app, `/api/v1/runs/${run.runId}`)).report.methodology.id).toBe("3");

    const { gradings: both } = await listed(app, report.slug);
    expect(both).toMatchObject([
      { methodology: { id: "acme-1" }, score: report.score, isShown: false },
      { methodology: { id: "3" }, score, isShown: true },
    ]);
    const pin = (gradingId: string | null) => app.send("PATCH", path, { body: { gradingId } });
    expect((await pin(both[0]?.id ?? "")).body).toEqual(report);
    expect(await regrade(app, { methodology: "3" })).toMatchObject({ graded: 0, unchanged: 1 });
    expect(await get(app, path)).toEqual(report);
    expect((await listed(app, report.slug)).gradings[0]).toMatchObject({ isShown: true, isPinned: true });
    expect((await pin(null)).body).toEqual(now);
    expect(await regrade(app, { methodology: "acme-1" })).toMatchObject({ graded: 1, unchanged: 0 });
    expect(await get(app, path)).toEqual(report);
    expect((await listed(app, report.slug)).gradings).toHaveLength(2);
    // No model was called again.
    expect(app.model.requests).toHaveLength(1);
  });

  test("changes nothing, to the bit, if it is the same one", async () => {
    const app = judged();
    const { report, run } = await app.run();
    const before = JSON.stringify(await get(app, `/api/v1/reports/${report.slug}`));
    expect(await regrade(app)).toMatchObject({ graded: 0, unchanged: 1, methodology: "3" });
    expect(JSON.stringify(await get(app, `/api/v1/reports/${report.slug}`))).toBe(before);
    expect(app.db.select().from(gradings).all()).toEqual([]);
    const [one, two] = [gradeSession(eventsOf(app, run.runId)), gradeSession(eventsOf(app, run.runId))];
    expect(JSON.stringify(one)).toBe(JSON.stringify(two));
  });

  test("continues the trend, and what could not be regraded is kept apart", async () => {
    const app = judged({ env: own });
    const [first, second] = [await app.run(), await app.run()];
    app.db.delete(sessionEvents).where(eq(sessionEvents.runId, first.run.runId)).run();
    expect(await regrade(app, { methodology: "3" })).toMatchObject({ graded: 1, withoutEvents: 1 });
    expect(await get(app, `/api/v1/reports/${first.report.slug}`)).toEqual(first.report);
    const trends = await rpc(app).call("get_trends", {});
    expect(trends).toMatchObject({ methodology: { id: "3" }, series: [{ n: 1 }, { n: 1 }], points: [{ n: 1 }] });
    expect((await get(app, `/api/v1/reports/${second.report.slug}`)).methodology.id).toBe("3");
  });

  test("regrades only the selected prompt, period and organization", async () => {
    const app = judged({ env: own });
    const [first, second] = [await app.run(), await app.run()];
    const { report } = first;
    const idOf = async (slug: string) => (await get(app, `/api/v1/reports/${slug}`)).methodology.id;
    expect(await regrade(app, { methodology: "3", promptId: report.prompt.id })).toMatchObject({ total: 1, graded: 1 });
    expect([await idOf(report.slug), await idOf(second.report.slug)]).toEqual(["3", "acme-1"]);
    expect(await regrade(app, { methodology: "3", until: report.createdAt })).toMatchObject({ total: 0, graded: 0 });
    expect(await regrade(app, { methodology: "3", since: second.report.createdAt })).toMatchObject({
      total: 1,
      graded: 1,
    });
    const authorization = `Bearer ${app.b.key}`;
    const foreign = await app.send("POST", "/api/v1/regrades", { body: { since }, headers: { authorization } });
    expect(foreign.body.total).toBe(0);
    for (const [method, path, status] of [
      ["GET", `/api/v1/reports/${report.slug}/gradings`, 404],
      ["GET", `/api/v1/reports/${report.slug}?methodology=3`, 404],
      ["PATCH", `/api/v1/reports/${report.slug}`, 404],
    ] as const) {
      const body = method === "PATCH" ? { gradingId: null } : undefined;
      expect((await app.send(method, path, { headers: { authorization }, body })).status).toBe(status);
    }
    const { body: all } = await app.send("GET", "/api/v1/regrades?limit=2");
    expect(all.map(({ total }: { total: number }) => total)).toEqual([1, 0]);
    for (const path of [`/${all[0].regradeId}`, `/${all[0].regradeId}/cancel`]) {
      const method = path.endsWith("cancel") ? "POST" : "GET";
      expect((await app.send(method, `/api/v1/regrades${path}`, { headers: { authorization } })).status).toBe(404);
    }
  });
});

describe("another judge", () => {
  const harsh = answer({
    parts: [part(1, "yes", [10], installation), part(2, "no", [7], "E404 acme")],
    keyFinding: "The query never ran.",
  });

  test("has its cost stored once another writing process has finished", async () => {
    const dataDir = emptyFolder();
    const lock = () => {
      other.run("begin immediate");
      setTimeout(() => other.run("rollback"), 100);
      return JSON.stringify(harsh);
    };
    const app = judged({ dataDir, again: [says(harsh, { says: lock })] });
    const other = new Database(join(dataDir, "evald.db"));
    await app.run();
    const done = await regrade(app, { judge: "openai-compatible/agent", maxUsd: 1 });
    expect(done).toMatchObject({ status: "completed", graded: 1, spentUsd: 0.002 });
    other.close();
  });

  test("announces the monthly budget once its cost reaches it", async () => {
    const env = { EVALD_SECRET_KEY: Buffer.alloc(32, 7).toString("base64") };
    const app = judged({ again: [says(harsh)], env });
    await app.run();
    const { spentUsd } = getSpending(app.service.ctx, app.a.org);
    updateOrg(app.service.ctx, app.a.org, { maxUsdAMonth: spentUsd + 0.001 });
    createDestination(app.service.ctx, app.a.org, {
      ...{ kind: "webhook", url: "https://hooks.example.com/", events: ["budget.reached"] },
    });
    const sent = () => app.db.$client.query("select type from notifications").values().flat();
    expect(sent()).toEqual([]);
    await regrade(app, { judge: "openai-compatible/agent", maxUsd: 1 });
    expect(sent()).toEqual(["budget.reached"]);
  });

  test("judges the stored session, and its cost is separate", async () => {
    const app = judged({ again: [says(harsh)] });
    const { report, attempts } = await app.run();
    const done = await regrade(app, { judge: "openai-compatible/agent", maxUsd: 1 });
    expect(done).toMatchObject({ status: "completed", graded: 1, judge: "openai-compatible/agent", spentUsd: 0.002 });
    const now = await get(app, `/api/v1/reports/${report.slug}`);
    expect(now).toMatchObject({
      outcome: "goal_not_met",
      keyFinding: "The query never ran.",
      methodology: { id: "3", judge: "openai-compatible/agent" },
      judge: { model: "openai-compatible/agent", costUsd: 0.002, calls: 1 },
      metrics: report.metrics,
    });
    expect(report.outcome).toBe("succeeded");
    expect(await get(app, `/api/v1/reports/${report.slug}?methodology=${report.methodology.hash}`)).toEqual(report);
    // The session and the attempt of the run are unchanged.
    expect((await get(app, `/api/v1/reports/${report.slug}/trace`)).total).toBe(17);
    expect(listAttempts(app.service.ctx, app.a.org, report.run.runId)).toEqual(attempts);
    // A second time, nothing is left to judge.
    expect(await regrade(app, { judge: "openai-compatible/agent", maxUsd: 1 })).toMatchObject({
      unchanged: 1,
      spentUsd: 0,
    });
    expect(app.model.requests).toHaveLength(2);
    // Another methodology keeps the shown judgment.
    expect(await regrade(app, { methodology: "3" })).toMatchObject({ unchanged: 1 });
  });

  test("doesn't pay twice for concurrent regrades of the same sessions", async () => {
    const app = judged();
    const { run } = await app.run();
    const judge = { since: "2020-01-01", judge: "openai-compatible/agent", maxUsd: 1 };
    const ask = async (more: object) => {
      const { status, body } = await app.send("POST", "/api/v1/regrades", { body: { ...judge, ...more } });
      return [status, body.detail];
    };
    const { body: first } = await app.send("POST", "/api/v1/regrades", { body: judge });
    const refused = [409, expect.stringContaining(first.regradeId)];
    expect([await ask({}), await ask({ promptId: run.promptId })]).toEqual([refused, refused]);
    const free = [200, undefined];
    expect(await ask({ dryRun: true })).toEqual(free);
    expect(await ask({ until: "2020-01-01T00:00:01Z", since: "2019-01-01" })).toEqual(refused);
    expect(await ask({ since: "2019-01-01", until: "2020-01-01" })).toEqual(free);
    expect(await ask({ judge: "openai-compatible/judge" })).toEqual(free);
    await app.runJobs();
    expect(await ask({})).toEqual(free);
  });

  test("changes nothing with an unusable response, which is paid for", async () => {
    const app = judged({ again: [says("no JSON")] });
    const { report } = await app.run();
    const done = await regrade(app, { judge: "openai-compatible/agent", maxUsd: 1 });
    expect(done).toMatchObject({ status: "completed", graded: 0, failed: 1, spentUsd: 0.004 });
    expect(await get(app, `/api/v1/reports/${report.slug}`)).toEqual(report);
  });

  test("stops before it exceeds its limit, and continues where it stopped", async () => {
    const app = judged();
    const runs = [await app.run(), await app.run(), await app.run()];
    const judge = "openai-compatible/agent";
    const stopped = await regrade(app, { judge, maxUsd: 0.003 });
    expect(stopped).toMatchObject({ status: "failed", graded: 2, spentUsd: 0.004 });
    expect(stopped.failureReason).toEqual(
      expect.stringMatching(/^budget: the judge has cost \$0\.0040 of at most \$0\.003;/),
    );
    expect(await regrade(app, { judge, maxUsd: 1 })).toMatchObject({ graded: 1, unchanged: 2, spentUsd: 0.002 });
    for (const { report } of runs)
      expect((await get(app, `/api/v1/reports/${report.slug}`)).methodology.judge).toBe(judge);
  });

  test("counts towards the organization's month, and is limited by it too", async () => {
    const app = judged({ again: [says(answer()), says(answer())] });
    await app.run();
    await app.run();
    const spent = () => getSpending(app.service.ctx, app.a.org).spentUsd;
    const before = spent();
    updateOrg(app.service.ctx, app.a.org, { maxUsdAMonth: before + 0.001 });
    const done = await regrade(app, { judge: "openai-compatible/agent", maxUsd: 1 });
    expect(done).toMatchObject({ status: "failed", graded: 1, spentUsd: 0.002 });
    expect(done.failureReason).toMatch(
      /^budget: The organization has spent \$0\.01 of its monthly budget of \$0\.00\d+\. /,
    );
    expect(spent()).toBeCloseTo(before + 0.002, 9);
  });

  test("doesn't affect sessions of the explorer, which are graded by rules", async () => {
    const app = judged({ kind: "rules", env: own });
    await app.run();
    const done = await regrade(app, { methodology: "3", judge: "openai-compatible/agent", maxUsd: 1 });
    expect(done).toMatchObject({ graded: 1, spentUsd: 0 });
    expect(app.model.requests).toHaveLength(0);
  });
});

describe("a session judged several times", () => {
  const met = (second: "yes" | "no" | "unclear"): Turn => {
    const proof = { yes: [10, rows], no: [7, "E404 acme"], unclear: [10, rows] } as const;
    const [event, quote] = proof[second];
    return says(answer({ parts: [part(1, "yes", [10], installation), part(2, second, [event], quote)] }));
  };

  test("has the judge's variance per part, apart from the variance of runs", async () => {
    const turns = [met("yes"), met("yes"), met("no"), met("yes"), met("no"), met("unclear"), met("yes")];
    const app = judged({ turns });
    const { report } = await app.run();
    const judge = "openai-compatible/judge";
    // The judgment of the run is the first of the five.
    expect(await regrade(app, { judge, repeats: 5, maxUsd: 1 })).toMatchObject({ graded: 1, spentUsd: 0.008 });
    const { gradings: all, judgeVariance } = await listed(app, report.slug);
    expect(all.map(({ repeat, isShown }: Grading) => [repeat, isShown])).toEqual([
      [1, true],
      ...[2, 3, 4, 5].map((n) => [n, false]),
    ]);
    const scores = all.map(({ score }) => score ?? Number.NaN);
    const mean = scores.reduce((sum, score) => sum + score, 0) / 5;
    const sd = Math.sqrt(scores.reduce((sum, score) => sum + (score - mean) ** 2, 0) / 4);
    expect(judgeVariance).toEqual([
      {
        judge,
        hash: report.methodology.hash,
        n: 5,
        score: { mean: Number(mean.toFixed(1)), sd: Number(sd.toFixed(2)) },
        // The judgments are yes yes no yes no, so 4 of the 10 pairs agree.
        agreement: 0.7,
        parts: [
          { text: "The SDK was installed.", yes: 5, no: 0, unclear: 0, agreement: 1 },
          { text: "Its three rows were printed.", yes: 3, no: 2, unclear: 0, agreement: 0.4 },
        ],
      },
    ]);
    expect(sd).toBeGreaterThan(5);
    expect(await get(app, `/api/v1/reports/${report.slug}`)).toEqual(report);
    expect(await regrade(app, { judge, repeats: 5, maxUsd: 1 })).toMatchObject({ unchanged: 1, spentUsd: 0 });
    expect((await regrade(app, { judge, repeats: 6, maxUsd: 1 })).variance).toMatchObject({ sessions: 1, runSd: null });
    expect(app.model.requests).toHaveLength(6);
  });

  test.each([
    ["nothing", [], { sessions: 0, judgeSd: null, runSd: null }],
    [
      "one judging each",
      [
        ["a", [70]],
        ["a", [80]],
      ],
      { sessions: 0, judgeSd: null, runSd: null },
    ],
    // The variances within are 2 and 2, so 2 and √2. The one between the means 71 and 81 is 50, less 2 / 2.
    [
      "two sessions of one evaluation",
      [
        ["a", [70, 72]],
        ["a", [80, 82]],
      ],
      { sessions: 2, judgeSd: 1.41, runSd: 7 },
    ],
    [
      "sessions of two evaluations",
      [
        ["a", [70, 72]],
        ["b", [80, 82]],
      ],
      { sessions: 2, judgeSd: 1.41, runSd: null },
    ],
    [
      "a judge that explains everything",
      [
        ["a", [60, 80]],
        ["a", [61, 79]],
      ],
      { sessions: 2, judgeSd: 13.45, runSd: 0 },
    ],
  ] as [string, [string, number[]][], object][])(
    "has its variance split by the sessions: %s",
    (_, sessions, expected) => {
      expect(splitVariance(sessions.map(([evalRequestId, scores]) => ({ evalRequestId, scores })))).toEqual(
        expected as ReturnType<typeof splitVariance>,
      );
    },
  );
});

describe("a regrade", () => {
  test("only reports in a dry run what it would do and cost", async () => {
    const app = judged({ env: own });
    const [first] = [await app.run(), await app.run(), await app.run()];
    app.db.delete(sessionEvents).where(eq(sessionEvents.runId, first.run.runId)).run();
    const planned = { regradeId: null, statusUrl: null, status: "planned", total: 3, withoutEvents: 1 };
    const plan = async (body: object) => (await ask(app, { ...body, dryRun: true })).body;
    expect(await plan({ methodology: "3" })).toMatchObject({ ...planned, graded: 2, unchanged: 0, estimatedUsd: 0 });
    expect(await plan({ judge: "openai-compatible/judge", maxUsd: 1 })).toMatchObject({ graded: 0, unchanged: 2 });
    // Each judgment used 1,000 tokens in and 100 out: 0.002 USD at the price of the other model too.
    expect(await plan({ judge: "openai-compatible/agent", maxUsd: 1, repeats: 2 })).toMatchObject({
      graded: 2,
      estimatedUsd: 0.008,
    });
    expect(app.db.select().from(regrades).all()).toEqual([]);
  });

  test("resumes after the process ended, and does nothing twice", async () => {
    const app = judged({ again: [says(answer()), { silent: true }, says(answer())] });
    const runs = [await app.run(), await app.run(), await app.run()];
    const judge = "openai-compatible/agent";
    const { body } = await ask(app, { judge, maxUsd: 1 });
    const before = app.model.requests.length;
    // The service stops while the second session is judged.
    await app.service.runner.start();
    while (app.model.requests.length < before + 2) await new Promise((resolve) => setImmediate(resolve));
    await app.service.runner.stop(0);
    const half = await get(app, `/api/v1/regrades/${body.regradeId}`);
    expect(half).toMatchObject({ status: "pending", graded: 1, completedAt: null });
    await app.runJobs();
    const done = await get(app, `/api/v1/regrades/${body.regradeId}`);
    expect(done).toMatchObject({ status: "completed", total: 3, graded: 3, spentUsd: 0.006, unpriced: 1 });
    for (const { report } of runs) expect((await listed(app, report.slug)).gradings).toHaveLength(2);
  });

  test("stops when it is cancelled, and its results are kept", async () => {
    const app = judged();
    const { report } = await app.run();
    const { body } = await ask(app, { judge: "openai-compatible/agent", maxUsd: 1 });
    const path = `/api/v1/regrades/${body.regradeId}`;
    const cancelled = await app.send("POST", `${path}/cancel`);
    expect(cancelled.body).toMatchObject({ status: "cancelled", failureReason: 'cancelled: by the API key "test"' });
    await app.runJobs();
    expect(await get(app, path)).toMatchObject({ status: "cancelled", graded: 0 });
    expect((await app.send("POST", `${path}/cancel`)).body).toEqual({
      error: "conflict",
      detail: expect.stringContaining("cancelled"),
    });
    expect((await listed(app, report.slug)).gradings).toHaveLength(1);
  });

  test("of many sessions uses as many jobs as it needs, and runs get their turn in between", async () => {
    const app = judged({ env: own });
    await app.run();
    const { body } = await ask(app, { methodology: "3" });
    const clock = performance.now;
    // Each clock reading takes the whole time of a batch.
    let at = clock.call(performance);
    performance.now = () => (at += 3_000);
    // The job rests as long as it worked.
    const rest = spyOn(Bun, "sleep").mockImplementation(() => new Promise((resolve) => setImmediate(resolve)));
    try {
      await app.runJobs();
    } finally {
      performance.now = clock;
      rest.mockRestore();
    }
    expect(await get(app, `/api/v1/regrades/${body.regradeId}`)).toMatchObject({ status: "completed", graded: 1 });
    expect(app.db.select({ batch: regrades.batch }).from(regrades).get()).toEqual({ batch: 2 });
  });

  test.each([
    [{ since: "yesterday" }, 400, "Invalid since: must be a date"],
    [{ since: "2999-01-01" }, 400, "Invalid since: "],
    [{ methodology: "4" }, 400, 'Invalid methodology: "4" '],
    [{ repeats: 2 }, 400, "repeats"],
    [{ maxUsd: 2 }, 400, "maxUsd"],
    [{ judge: "openai-compatible/judge" }, 400, "maxUsd is required with judge"],
    [{ judge: "openai-compatible/other", maxUsd: 1 }, 400, "Invalid judge: the price of openai-compatible/other"],
    [{ judge: "openai/gpt-5", maxUsd: 1 }, 400, "OPENAI_API_KEY"],
    [{ judge: "gpt", maxUsd: 1 }, 400, 'Invalid model "gpt"'],
    [{ repeats: 21 }, 400, "Invalid repeats: must be an integer from 1 to 20"],
    [{ promptId: "0199f3a2-11b0-7c64-8a0e-5b1d3a9f7c20" }, 404, "0199f3a2-11b0-7c64-8a0e-5b1d3a9f7c20"],
  ])("is rejected with %p", async (body, status, detail) => {
    const answered = await ask(judged({ env: own }), body);
    expect([answered.status, answered.body.detail]).toEqual([status, expect.stringContaining(detail)]);
  });

  test("names in its errors an unknown grading and a methodology that the report doesn't have", async () => {
    const app = judged();
    const { report } = await app.run();
    const path = `/api/v1/reports/${report.slug}`;
    expect(await get(app, `${path}?methodology=4`)).toEqual({
      error: "not_found",
      detail: expect.stringContaining('"4"'),
    });
    const patched = await app.send("PATCH", path, { body: { gradingId: report.run.runId } });
    expect([patched.status, patched.body.error]).toEqual([404, "not_found"]);
    expect((await app.send("PATCH", path, { body: {} })).body.detail).toContain("gradingId");
    expect(app.db.select({ id: reports.gradingId }).from(reports).get()).toEqual({ id: null });
  });
});
