import { describe, expect, test } from "bun:test";
import type { Grade } from "../src/grading/score.ts";
import { testApp } from "./support/app.ts";
import { rpc } from "./support/mcp.ts";
import { evaluation, niceGrade } from "./support/reports.ts";

const scored = (score: number, more: Partial<Grade> = {}): Grade => ({ ...niceGrade, score, ...more });

/** A prompt, and a way to compare two evaluations of it by one slug of each. */
function prompted(now?: () => number) {
  const app = testApp({ now });
  const { call } = rpc(app);
  const { id } = app.service.prompts.createPrompt(app.a.org, { text: "Upload a file. https://docs.example.com" });
  const evaluate = (ends: (Grade | string)[]) => evaluation(app, id, ends).find(({ slug }) => slug)?.slug ?? "";
  const compare = async (before: (Grade | string)[], after: (Grade | string)[]) =>
    call("compare_reports", { slugs: [evaluate(before), evaluate(after)] });
  return { app, call, promptId: id, evaluate, compare };
}

describe("the verdict over two evaluations", () => {
  const four = [70, 71, 72, 73];
  const shifted = (by: number) => four.map((score) => scored(score + by));
  const base = four.map((score) => scored(score));

  test.each<[string, (Grade | string)[], (Grade | string)[], string | null, string]>([
    ["ten points more in four runs", base, shifted(10), "improved", "+10.0 points"],
    ["ten points less in four runs", base, shifted(-10), "regressed", "-10.0 points"],
    ["four points less, for sure", base, shifted(-4), "soft_regression", "-4.0 points"],
    [
      "six points more, perhaps",
      [60, 63, 67, 70].map((s) => scored(s)),
      [66, 69, 73, 76].map((s) => scored(s)),
      "soft_improvement",
      "+6.0 points",
    ],
    ["the same again", base, base, "no_change", "0.0 points"],
    [
      "a wide spread",
      [40, 60, 70, 90].map((s) => scored(s)),
      [45, 65, 60, 92].map((s) => scored(s)),
      "inconclusive",
      "+0.5 points",
    ],
    [
      "three runs a side",
      base.slice(1),
      shifted(20).slice(1),
      "insufficient_data",
      "3 against 3 runs; it takes 4 a side",
    ],
    ["a single run", base.slice(3), base, null, "a single run cannot tell a change from chance"],
    [
      "another methodology",
      base,
      four.map((score) => scored(score, { methodology: { id: "2", hash: "ffffffffffff", judge: null } })),
      "not_comparable",
      "these differ: methodology: 1 3f9c0a17 against 2 ffffffff",
    ],
    [
      "many runs that could not be made",
      base,
      [...shifted(10), "infrastructure: the host is gone", "infrastructure: the host is gone"],
      "insufficient_data",
      "over 20 % of the runs",
    ],
  ])("%s", async (_, before, after, verdict, reason) => {
    const { compare } = prompted();
    const comparison = await compare(before, after);
    expect(comparison.verdict).toBe(verdict);
    expect(comparison.evidence.reason).toContain(reason);
  });

  test("names its method, and gives what a reader needs to compute it again", async () => {
    const { compare } = prompted();
    const { evidence } = await compare(base, shifted(10));
    // Student's t at 6 degrees of freedom is 2.447, the standard error 0.913.
    expect(evidence).toMatchObject({
      method:
        "two-sided permutation test of the mean scores (all 70 splits); Welch's 95 % interval of their difference",
      delta: { value: 10, low: 7.8, high: 12.2 },
      p: 0.0286,
    });
    expect(evidence.sides.map(({ n, score }: { n: number; score: object }) => [n, score])).toEqual([
      [4, { mean: 71.5, low: 69.4, high: 73.6 }],
      [4, { mean: 81.5, low: 79.4, high: 83.6 }],
    ]);
  });

  test("the later evaluation is judged against the earlier, in whatever order they are named", async () => {
    const { call, evaluate } = prompted();
    const [before, after] = [evaluate(base), evaluate(shifted(10))];
    expect((await call("compare_reports", { slugs: [after, before] })).verdict).toBe("improved");
  });

  test("runs that measured different dimensions are compared on those that all have", async () => {
    const { compare } = prompted();
    const [discoverability] = niceGrade.dimensions as [(typeof niceGrade.dimensions)[number]];
    const only = (score: number) => scored(10, { dimensions: [{ ...discoverability, score }] });
    const comparison = await compare([88, 88.1, 88.2, 88.3].map(only), base);
    // Both have 88.2 there, whatever their scores are.
    expect(comparison.evidence.method).toEndWith("; on the dimensions that all runs have: Docs discoverability");
    expect(comparison.verdict).toBe("no_change");
  });

  test("while runs are to come there is no verdict", async () => {
    const { app, call, evaluate } = prompted();
    const before = evaluate(base);
    const after = evaluate([...shifted(10), ...base]);
    app.db.$client.run(
      "update runs set status = 'pending', completed_at = null where id in (select id from runs order by id desc limit 3)",
    );
    app.db.$client.run("delete from friction_points");
    app.db.$client.run("delete from recommendations");
    app.db.$client.run("delete from reports where run_id in (select id from runs where status = 'pending')");
    const { verdict, evidence } = await call("compare_reports", { slugs: [before, after] });
    expect([verdict, evidence.sides.map(({ unfinished }: { unfinished: number }) => unfinished)]).toEqual([
      "insufficient_data",
      [0, 3],
    ]);
    expect(evidence.reason).toMatch(/^3 runs of \S+ have not ended; compare again when they have$/);
  });

  test("a timeout is no success, a lost host is nothing", async () => {
    const { compare } = prompted();
    const won = scored(80, { outcome: "succeeded" });
    const { evidence } = await compare(
      [won, won, scored(50, { outcome: "goal_not_met" }), "timeout: too long", "infrastructure: the host is gone"],
      base,
    );
    // Wilson: 2 of 4.
    expect(evidence.sides[0].successRate).toEqual({ value: 0.5, low: 0.15, high: 0.85, of: 4 });
    expect(evidence.sides[0].infraFailures).toBe(1);
    expect(evidence.sides[1].successRate).toBeNull();
  });
});

test("friction is told apart by who shares it, and three evaluations have no verdict", async () => {
  const { call, evaluate } = prompted();
  const [friction] = niceGrade.frictions as [(typeof niceGrade.frictions)[number]];
  const points = (...names: string[]) =>
    scored(80, {
      recommendations: [],
      frictions: names.map((name) => ({ ...friction, fingerprint: name.padEnd(16, "0"), title: name })),
    });
  const slugs = [points("all", "two"), points("all", "two", "one"), points("all")].map((grade) => evaluate([grade]));
  const comparison = await call("compare_reports", { slugs });
  expect(comparison.friction.shared.map(({ title }: { title: string }) => title)).toEqual(["all"]);
  expect(
    comparison.friction.only.map(({ title, slugs: of }: { title: string; slugs: string[] }) => [title, of]),
  ).toEqual([
    ["two", slugs.slice(0, 2)],
    ["one", slugs.slice(1, 2)],
  ]);
  expect([comparison.verdict, comparison.evidence.reason]).toEqual([
    null,
    "a verdict needs reports of two evaluations; these are of 3",
  ]);
});

test("friction that does not fit is counted", async () => {
  const { call, evaluate } = prompted();
  const [friction] = niceGrade.frictions as [(typeof niceGrade.frictions)[number]];
  const grades = Array.from({ length: 10 }, (_, i) =>
    scored(80, {
      recommendations: [],
      frictions: Array.from({ length: 50 }, (_, j) => ({
        ...friction,
        fingerprint: (j === 0 ? "all" : `${i}x${j}x`).padEnd(16, "0"),
      })),
    }),
  );
  const { friction: told } = await call("compare_reports", { slugs: grades.map((grade) => evaluate([grade])) });
  expect([told.shared.length, told.total]).toEqual([1, 491]);
  expect(JSON.stringify(told).length).toBeLessThan(41_000);
  expect(told.only.length).toBeGreaterThan(100);
});

describe("trends", () => {
  test("each span has its repeats, spans without a run are left out, and other methodologies are not mixed in", async () => {
    let now = 0;
    const { call, evaluate, promptId } = prompted(() => now);
    const at = (day: string, ends: (Grade | string)[]) => {
      now = Date.parse(`${day}T12:00:00Z`);
      evaluate(ends);
    };
    const old = { methodology: { id: "0", hash: "000000000000", judge: null } };
    at("2026-11-01", [scored(20, old)]);
    at("2026-11-02", [scored(60), scored(64), "timeout: too long"]);
    at("2026-11-08", [scored(66)]);
    at("2026-11-18", [scored(80), scored(80), "infrastructure: the host is gone"]);
    const trends = await call("get_trends", { promptId });
    expect(trends).toEqual({
      agent: "explorer",
      model: null,
      methodology: niceGrade.methodology,
      leftOut: 1,
      nextUntil: null,
      changes: [],
      points: [
        {
          // Monday to Sunday.
          from: "2026-11-02T00:00:00.000Z",
          n: 3,
          infraFailures: 0,
          score: { mean: 63.3, low: 55.7, high: 70.9 },
          successRate: { value: 0, low: 0, high: 0.793, of: 1 },
          medianSeconds: 4.2,
          medianCostUsd: 0,
        },
        {
          from: "2026-11-16T00:00:00.000Z",
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
      (await call("get_trends", args)).points.map((point: { from: string }) => point.from.slice(0, 10));
    expect(await from({ interval: "day" })).toEqual(["2026-11-02", "2026-11-08", "2026-11-18"]);
    expect(await from({ interval: "month" })).toEqual(["2026-11-01"]);
    expect(await from({ interval: "day", since: "2026-11-08", until: "2026-11-18T12:00:00Z" })).toEqual(["2026-11-08"]);
    expect(await from({ interval: "day", agent: "llm" })).toEqual([]);
    // The week, the month, in which the time shown begins is shown as a whole.
    now = Date.parse("2028-11-25T12:00:00Z");
    expect((await call("get_trends", { interval: "month" })).points[0].n).toBe(5);
    now = Date.parse("2027-06-30T00:00:00Z");
    expect(await from({})).toEqual([]);
  });

  test("what does not fit is on the pages before, each run on one of them", async () => {
    const { app, call, evaluate } = prompted(() => Date.UTC(2020, 0, 1));
    evaluate([scored(70)]);
    // Hourly runs, as ids and times say: a day has 24.
    const hours = 10_500;
    const id = "printf('%s-%s-7000-8000-000000000000', substr(hex, 1, 8), substr(hex, 9))";
    const rest = (table: string, own: string[]) =>
      app.db.$client
        .query<{ name: string }, []>(`select name from pragma_table_info('${table}')`)
        .all()
        .map(({ name }) => name)
        .filter((name) => !own.includes(name));
    const [ofRun, ofReport] = [
      rest("runs", ["id", "created_at"]).join(),
      rest("reports", ["id", "run_id", "slug", "created_at"]).join(),
    ];
    const times = `with recursive n(i) as (select 1 union all select i + 1 from n where i < ${hours}),
      t as (select i, ${Date.UTC(2020, 0, 1)} + i * 3600000 as at, printf('%012x', ${Date.UTC(2020, 0, 1)} + i * 3600000) as hex from n)`;
    app.db.$client.run(
      `insert into runs (id, created_at, ${ofRun}) ${times} select ${id}, at, ${ofRun} from t, (select * from runs limit 1)`,
    );
    app.db.$client.run(
      `insert into reports (id, run_id, slug, created_at, ${ofReport}) ${times} select ${id}, ${id}, 's' || i, at, ${ofReport} from t, (select * from reports limit 1)`,
    );
    for (const interval of ["month", "day"]) {
      const seen: { from: string; n: number }[] = [];
      let asked = 0;
      for (let until: string | null = "2022-01-01"; until !== null && asked < 5; asked++) {
        const { points, nextUntil }: { points: typeof seen; nextUntil: string | null } = await call("get_trends", {
          interval,
          since: "2020-01-01",
          until,
        });
        expect(JSON.stringify(points).length).toBeLessThan(41_000);
        seen.unshift(...points);
        until = nextUntil;
      }
      expect(asked).toBe(2);
      expect(seen.reduce((all, { n }) => all + n, 0)).toBe(hours + 1);
      expect(new Set(seen.map(({ from }) => from)).size).toBe(seen.length);
    }
  });

  test("a new version of the agent is marked", async () => {
    const { app, call, evaluate } = prompted();
    evaluate([scored(70)]);
    app.db.$client.run("update runs set agent_version = '0.1.0'");
    evaluate([scored(75)]);
    expect((await call("get_trends")).changes).toMatchObject([{ what: "agent version", from: "0.1.0", to: "test" }]);
  });
});
