import { describe, expect, test } from "bun:test";
import { updateOrg } from "../src/auth/orgs.ts";
import type { Grade } from "../src/grading/grade.ts";
import { createPrompt } from "../src/prompts/prompts.ts";
import { setReportStatus } from "../src/reports/reports.ts";
import { changePoints } from "../src/stats/change-points.ts";
import { getTrends } from "../src/trends/trends.ts";
import { noisy, testApp } from "./support/app.ts";
import { rpc } from "./support/mcp.ts";
import { evaluation, niceGrade } from "./support/reports.ts";

const scored = (score: number, more: Partial<Grade> = {}): Grade => ({ ...niceGrade, score, ...more });
const dayMs = 24 * 3600_000;

/** A service with a clock set by `at`, and runs with given results. */
function dated() {
  let now = Date.UTC(2026, 10, 1, 12);
  const app = testApp({ now: () => now });
  const { call } = rpc(app);
  const newPrompt = (isCanary = false) =>
    createPrompt(app.service.ctx, app.a.org, { text: "Upload. https://docs.example.com", isCanary }).id;
  const promptId = newPrompt();
  const at = (day: string | number, ends: (Grade | string)[], of = promptId) => {
    now = typeof day === "number" ? day : Date.parse(`${day}T12:00:00Z`);
    return evaluation(app, of, ends);
  };
  const trends = async (args: object = {}) => {
    const query = new URLSearchParams(Object.entries(args)).toString();
    const { body } = await app.send("GET", `/api/v1/trends?${query}`);
    if (body.error) return body;
    expect(await call("get_trends", args)).toEqual(body);
    return body;
  };
  return { app, at, trends, promptId, newPrompt, setNow: (ms: number) => (now = ms) };
}

type Change = { what: string; at: string; from: string; to: string; canary: string | null; note: string | null };

test("each interval has its repeats, intervals without a run are omitted, and other methodologies are separate", async () => {
  const { at, trends, promptId, setNow } = dated();
  const old = { methodology: { id: "0", hash: "000000000000", judge: null } };
  at("2026-11-01", [scored(20, old), "infrastructure: the host is gone"]);
  at("2026-10-31", ["timeout: too long"]);
  at("2026-11-02", [scored(60), scored(64), "timeout: too long"]);
  at("2026-11-08", [scored(66)]);
  at("2026-11-18", [scored(80), scored(80), "infrastructure: the host is gone"]);
  const line = { agentVersion: "test", contextDigest: null };
  expect(await trends({ promptId })).toEqual({
    agent: "explorer",
    agentVersion: "test",
    contextDigest: null,
    model: null,
    methodology: niceGrade.methodology,
    scope: "goal",
    timeZone: "UTC",
    nextUntil: null,
    series: [
      { agent: "explorer", ...line, model: null, methodology: old.methodology, scope: "goal", n: 1 },
      { agent: "explorer", ...line, model: null, methodology: niceGrade.methodology, scope: "goal", n: 5 },
    ],
    changes: [
      {
        at: "2026-11-02T00:00:00.000Z",
        what: "methodology",
        from: "0 00000000",
        to: "3 3f9c0a17",
        delta: null,
        verdict: null,
        p: null,
        canary: null,
        note: null,
      },
    ],
    others: [
      {
        ...line,
        methodology: old.methodology,
        scope: "goal",
        points: [
          {
            from: "2026-10-26T00:00:00.000Z",
            prompts: 1,
            n: 1,
            infraFailures: 1,
            score: { mean: 20, low: null, high: null },
            successRate: { value: 0, low: 0, high: 0.793, of: 1 },
            medianSeconds: 4.2,
            medianCostUsd: 0,
          },
        ],
      },
    ],
    points: [
      {
        // The weeks run from Monday to Sunday.
        from: "2026-11-02T00:00:00.000Z",
        prompts: 1,
        n: 3,
        infraFailures: 0,
        score: { mean: 63.3, low: 55.7, high: 70.9 },
        successRate: { value: 0, low: 0, high: 0.793, of: 1 },
        medianSeconds: 4.2,
        medianCostUsd: 0,
      },
      {
        from: "2026-11-16T00:00:00.000Z",
        prompts: 1,
        n: 2,
        infraFailures: 1,
        score: { mean: 80, low: 80, high: 80 },
        successRate: null,
        medianSeconds: 4.2,
        medianCostUsd: 0,
      },
    ],
  });
  const from = async (args: object) =>
    (await trends(args)).points.map((point: { from: string }) => point.from.slice(0, 10));
  expect(await from({ interval: "day" })).toEqual(["2026-11-02", "2026-11-08", "2026-11-18"]);
  expect(await from({ interval: "month" })).toEqual(["2026-11-01"]);
  expect(await from({ interval: "day", since: "2026-11-08", until: "2026-11-18" })).toEqual(["2026-11-08"]);
  expect(await from({ interval: "day", agent: "llm" })).toEqual([]);
  expect(await from({ promptId, interval: "eval" })).toEqual(["2026-11-02", "2026-11-08", "2026-11-18"]);
  // Failures belong to the line of their time, not to the one that began later.
  const ofEvaluations = await trends({ promptId, interval: "eval" });
  expect(ofEvaluations.others[0].points).toMatchObject([
    { from: "2026-10-31T12:00:00.000Z", n: 0, score: null },
    { from: "2026-11-01T12:00:00.000Z", n: 1, infraFailures: 1 },
  ]);
  expect((await trends({ interval: "eval" })).detail).toMatch(/^Invalid interval: .*promptId/);
  // The week or month in which the selected time begins is shown as a whole.
  setNow(Date.parse("2028-11-25T12:00:00Z"));
  expect((await trends({ interval: "month" })).points[0].n).toBe(5);
  setNow(Date.parse("2027-06-30T00:00:00Z"));
  expect(await from({})).toEqual([]);
});

test("each prompt counts the same in a trend over all prompts, and canaries are excluded", async () => {
  const { at, trends, newPrompt } = dated();
  const [other, canary] = [newPrompt(), newPrompt(true)];
  const won = (score: number) => scored(score, { outcome: "succeeded" });
  const lost = (score: number) => scored(score, { outcome: "goal_not_met" });
  at("2026-11-02", [won(50), lost(50), lost(50), lost(50)]);
  at("2026-11-03", [won(90)], other);
  at("2026-11-03", [scored(10)], canary);
  const { points } = await trends();
  // Over runs, it would be 58, and 2 of 5.
  expect(points).toMatchObject([
    { prompts: 2, n: 5, score: { mean: 70, low: 0, high: 100 }, successRate: { value: 0.625, of: 5 } },
  ]);
  expect((await trends({ promptId: canary })).points[0].score.mean).toBe(10);
});

test("each model agent has its own line; previews have none", async () => {
  const { app, at, trends, promptId } = dated();
  at("2026-11-02", [scored(40)]);
  app.db.$client.run("update score_days set agent = 'llm', model = 'openai/gpt-5'");
  at("2026-11-03", [scored(60)]);
  evaluation(app, promptId, [scored(1)], { urlMap: { "docs.example.com": "https://preview.example.com" } });
  const shown = async (args: object) => {
    const { agent, model, points, series } = await trends(args);
    return [agent, model, points.map(({ score }: { score: { mean: number } }) => score.mean), series.length];
  };
  expect(await shown({})).toEqual(["explorer", null, [60], 2]);
  expect(await shown({ agent: "llm" })).toEqual(["llm", "openai/gpt-5", [40], 2]);
  expect(await shown({ model: "openai/gpt-5" })).toEqual(["llm", "openai/gpt-5", [40], 2]);
});

test("an archived report leaves its point, and returns to it", async () => {
  const { app, at, trends } = dated();
  const [first] = at("2026-11-02", [scored(60), scored(80)]);
  const set = (status: string) => app.send("PATCH", `/api/v1/reports/${first?.slug}`, { body: { status } });
  const shown = async () => (await trends()).points.map(({ n, score }: Point) => [n, score.mean]);
  expect(await shown()).toEqual([[2, 70]]);
  await set("archived");
  expect(await shown()).toEqual([[1, 80]]);
  await set("published");
  expect(await shown()).toEqual([[2, 70]]);
});
type Point = { n: number; score: { mean: number }; from: string };

test("long results continue on earlier pages, and each run is on one of them", async () => {
  const { at, trends, promptId } = dated();
  const begin = Date.UTC(2024, 0, 1);
  for (let day = 0; day < 420; day += 7) at(begin + day * dayMs, [scored(70), scored(72)]);
  for (const interval of ["day", "eval"]) {
    const seen: Point[] = [];
    let asked = 0;
    for (let until: string | null = "2025-03-01"; until !== null && asked < 9; asked++) {
      const answer: { points: Point[]; nextUntil: string | null } = await trends({
        promptId,
        interval,
        since: "2024-01-01",
        until,
      });
      seen.unshift(...answer.points);
      until = answer.nextUntil;
    }
    expect(seen.reduce((n, point) => n + point.n, 0)).toBe(120);
    expect(new Set(seen.map(({ from }) => from)).size).toBe(60);
  }
});

describe("a change of a line", () => {
  /** Runs on each of 20 days, with another level for the last ten. `canary` gives the scores of the canary prompt. */
  function moved(canary: (i: number) => number | null) {
    const world = dated();
    const id = world.newPrompt(true);
    for (let i = 0; i < 20; i++) {
      const wave = [0, 2, -1, 1, -2][i % 5] as number;
      const at = Date.UTC(2026, 9, 1, 12) + i * dayMs;
      world.at(at, [scored((i < 10 ? 80 : 70) + wave)]);
      const score = canary(i);
      if (score !== null) world.at(at, [scored(score + wave)], id);
    }
    return world;
  }
  const only = async ({ trends, promptId }: ReturnType<typeof dated>): Promise<Change> => {
    const { changes } = await trends({ promptId, interval: "day" });
    expect(changes).toHaveLength(1);
    return changes[0];
  };

  test.each<[string, (i: number) => number | null, string | null, string]>([
    [
      "by the docs if the canary stayed",
      () => 60,
      "stayed",
      "the canary prompts did not change (+0.4 points, 8 against 8 runs, p = 0.733), so the docs are the likely cause",
    ],
    [
      "by model drift if the canary moved as well",
      (i) => (i < 10 ? 60 : 50),
      "moved",
      "the canary prompts changed too (-9.6 points, 8 against 8 runs, p < 0.001), so the model drifted",
    ],
    [
      "by neither if there are too few canary runs",
      (i) => (i < 13 ? 60 : null),
      null,
      "too few canary runs to separate docs from model: 8 against 3 runs; at least 5 per side are needed",
    ],
  ])("is explained: %s", async (_, canary, verdict, note) => {
    expect(await only(moved(canary))).toEqual({
      at: "2026-10-11T00:00:00.000Z",
      what: "score",
      from: "80.0",
      to: "70.0",
      // As compared everywhere: the explorer's runs differ only with the docs.
      delta: { value: -10, low: -10, high: -10 },
      verdict: "regressed",
      p: null,
      canary: verdict,
      note: `-10.0 points (exact), 10 against 10 runs; ${note}`,
    } as never);
  });

  test("is marked for a new version of the agent and for another model", async () => {
    const { app, at, trends } = dated();
    at("2026-11-02", [scored(70)]);
    app.db.$client.run("update score_days set model = 'openai/gpt-4'");
    at("2026-11-03", [scored(75)]);
    app.db.$client.run("update score_days set version = '0.1.0' where model = ''");
    at("2026-11-04", [scored(75)]);
    const { changes } = await trends({ interval: "day" });
    expect(changes.map(({ at, what, from, to }: Change) => [at.slice(0, 10), what, from, to])).toEqual([
      ["2026-11-03", "model", "openai/gpt-4", "none"],
      ["2026-11-04", "agent version", "0.1.0", "test"],
    ]);
  });

  test("separates two versions of an agent on one day, and two contexts of a prompt, into two series", async () => {
    const { app, at, trends, promptId } = dated();
    const ran = (score: number, column: string, value: string) => {
      const [{ slug, runId } = { slug: "", runId: "" }] = at("2026-11-02", [scored(score)]);
      // They are withdrawn and published again, so that they count with their changed properties.
      setReportStatus(app.service.ctx, app.a.org, slug, "draft");
      app.db.$client.run(`update runs set ${column} = ? where id = ?`, [value, runId]);
      setReportStatus(app.service.ctx, app.a.org, slug, "published");
      return slug;
    };
    const slugs = [ran(60, "agent_version", "0.169.0+preset.1"), ran(90, "agent_version", "0.170.0+preset.1")];
    type Series = {
      agentVersion: string;
      contextDigest: string | null;
      points: { n: number; score: { mean: number } }[];
    };
    const seriesOf = (body: Series & { others: Series[] }) =>
      [body, ...body.others].map(({ agentVersion, contextDigest, points }) => [
        ...[agentVersion, contextDigest],
        ...points.map(({ n, score }) => [n, score.mean]),
      ]);
    for (const interval of ["week", "eval"]) {
      const body = await trends({ promptId, interval });
      expect(seriesOf(body)).toEqual([
        ["0.170.0+preset.1", null, [1, 90]],
        ["0.169.0+preset.1", null, [1, 60]],
      ]);
      expect(body.changes.map(({ what, from, to }: Change) => [what, from, to])).toEqual([
        ["agent version", "0.169.0+preset.1", "0.170.0+preset.1"],
      ]);
    }
    const compared = await app.send("GET", `/api/v1/compare/reports?slugs=${slugs}`);
    expect(compared.body.comparability).toEqual({
      same: false,
      differences: ["agentVersion: 0.169.0+preset.1 vs. 0.170.0+preset.1"],
    });
    ran(50, "context_digest", "00112233aabbccdd");
    expect(seriesOf(await trends({ promptId }))[0]).toEqual(["test", "00112233aabbccdd", [1, 50]]);
    // Over several prompts, each has its own context.
    expect(seriesOf(await trends({}))[0]).toEqual(["test", null, [1, 50]]);
  });
});

describe("a change point", () => {
  /** Normal values from a fixed seed: the Box-Muller transform of a Lehmer generator. */
  function normal(seed: number) {
    let state = seed;
    const uniform = () => {
      state = (state * 48271) % 2147483647;
      return state / 2147483647;
    };
    return (centre: number, sd: number) =>
      centre + sd * Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform());
  }

  test("appears in at most one series in twenty without a change", () => {
    const draw = normal(7);
    const series = Array.from({ length: 400 }, () => Array.from({ length: 40 }, () => draw(75, 8)));
    const alarms = series.filter((values) => changePoints(values).length > 0).length;
    // Of 400 draws at .05, more than 29 come by chance in one of fifty cases.
    expect(alarms).toBeLessThan(29);
    expect(alarms).toBeGreaterThan(0);
  });

  test("appears in at most one series in twenty whose values resemble their neighbors", () => {
    const draw = normal(11);
    const series = Array.from({ length: 300 }, (_, i) => {
      let last = draw(0, 8);
      return Array.from({ length: [14, 24, 40][i % 3] ?? 0 }, () => {
        last = 0.5 * last + draw(0, 8 * Math.sqrt(0.75));
        return 75 + last;
      });
    });
    // Of 300 draws at .05, more than 23 come by chance in one of fifty cases.
    expect(series.filter((values) => changePoints(values).length > 0).length).toBeLessThan(23);
  });

  test("is found in nine of ten series that fall by two standard deviations halfway", () => {
    const draw = normal(5);
    const series = Array.from({ length: 100 }, () => Array.from({ length: 40 }, (_, i) => draw(i < 20 ? 85 : 70, 7.5)));
    expect(series.filter((values) => changePoints(values).length > 0).length).toBeGreaterThanOrEqual(90);
  });

  test("is found at each of two changes, with at least five values per side", () => {
    const draw = normal(3);
    const values = Array.from({ length: 60 }, (_, i) => draw(i < 20 ? 80 : i < 45 ? 65 : 85, 4));
    expect(changePoints(values).map(({ index }) => index)).toEqual([20, 45]);
    expect(changePoints([1, 1, 1, 1, 9, 9, 9, 9, 9])).toEqual([]);
    expect(changePoints([1, 1, 1, 1, 1, 9, 9, 9, 9, 9]).map(({ index, p }) => [index, p < 0.05])).toEqual([[5, true]]);
    expect(changePoints(Array(30).fill(70))).toEqual([]);
    expect(changePoints([])).toEqual([]);
  });
});

test("the series with the most runs is shown by default, and changes over all prompts use the scale of scores", async () => {
  let now = Date.UTC(2026, 9, 1);
  const app = testApp({ agents: noisy, now: () => now });
  const { service, a } = app;
  const ids = ["One", "Two"].map((title) => createPrompt(service.ctx, a.org, { title, text: "https://x.test" }).id);
  const [first = "", second = ""] = ids;
  for (const score of [90, 90, 90, 90, 90, 90, 70, 70, 70, 70, 70, 70]) {
    now += 86_400_000;
    for (const id of ids) evaluation(app, id, [{ ...niceGrade, score: id === first ? score : score - 40 }]);
  }
  evaluation(app, second, [{ ...niceGrade, score: 10 }], { agent: "noisy" });
  const shown = getTrends(service.ctx, a.org, {}, null);
  expect(shown.agent).toBe("explorer");
  const levels = shown.changes.filter(({ what }) => what === "score").flatMap(({ from, to }) => [from, to].map(Number));
  // On a scale centered on zero, they would be between -10 and 10.
  expect([levels.length > 0, Math.min(...levels) >= 50, Math.max(...levels) <= 70]).toEqual([true, true, true]);
});

test("days, weeks and months begin in the time zone of the organization, even after it changed", async () => {
  const { app, at, trends, promptId, setNow } = dated();
  // The times are 22:30 to 23:30 UTC on the last day before winter time in Paris, then a Sunday.
  const late = Date.UTC(2026, 9, 24, 22, 30);
  const hour = 3600_000;
  at(late - hour, [scored(60)]);
  at(late, [scored(70), "timeout: too long"]);
  at(late + 25 * hour, [scored(80)]);
  at(Date.UTC(2026, 9, 31, 23, 15), [scored(90)]);
  setNow(Date.UTC(2026, 10, 2, 12));
  const shown = async (interval: string, more = {}) =>
    (await trends({ promptId, interval, ...more })).points.map((point: { from: string; score: { mean: number } }) => [
      point.from.slice(0, 16),
      point.score?.mean,
    ]);
  expect(await shown("day")).toEqual([
    ["2026-10-24T00:00", 65],
    ["2026-10-25T00:00", 80],
    ["2026-10-31T00:00", 90],
  ]);
  updateOrg(app.service.ctx, app.a.org, { timeZone: "Europe/Paris" });
  expect((await trends({ promptId })).timeZone).toBe("Europe/Paris");
  expect(await shown("day")).toEqual([
    ["2026-10-23T22:00", 60],
    ["2026-10-24T22:00", 70],
    ["2026-10-25T23:00", 80],
    ["2026-10-31T23:00", 90],
  ]);
  expect(await shown("week")).toEqual([
    ["2026-10-18T22:00", 65],
    ["2026-10-25T23:00", 85],
  ]);
  expect(await shown("month")).toEqual([
    ["2026-09-30T22:00", 70],
    ["2026-10-31T23:00", 90],
  ]);
  // A date begins at midnight in that time zone.
  expect(await shown("day", { since: "2026-10-25", until: "2026-10-26" })).toEqual([["2026-10-24T22:00", 70]]);
  const { body: listed } = await app.send("GET", "/api/v1/reports?since=2026-10-25&until=2026-10-26");
  expect(listed.map(({ score }: { score: number }) => score)).toEqual([70]);
  updateOrg(app.service.ctx, app.a.org, { timeZone: "Asia/Kathmandu" });
  expect((await shown("day"))[0]).toEqual(["2026-10-24T18:15", 65]);
});

test("the share of reached goals says that it covers only judged runs, on each page that shows it", async () => {
  const app = testApp({ agents: noisy });
  const { id } = createPrompt(app.service.ctx, app.a.org, { agent: "noisy", text: "Add a note. https://example.com" });
  const missed: Grade = { ...niceGrade, outcome: "goal_not_met" };
  const side = () => evaluation(app, id, [missed, missed, missed, ...Array(5).fill(niceGrade)]);
  const [before, after] = [side()[0], side()[0]];
  const paths = [`/trends?promptId=${id}&interval=eval`, `/compare?slugs=${before?.slug},${after?.slug}`];
  for (const path of [...paths, `/evals/${after?.evalRequestId}`]) {
    const { body } = await app.send("GET", path);
    expect([path, /\bof 3 judged\b/.test(body), /\bof 3</.test(body)]).toEqual([path, true, false]);
  }
});
