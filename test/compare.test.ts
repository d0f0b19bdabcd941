import { describe, expect, test } from "bun:test";
import { findLatestResults } from "../src/comparisons/latest.ts";
import type { Grade } from "../src/grading/grade.ts";
import { createPrompt } from "../src/prompts/prompts.ts";
import { noisy, testApp } from "./support/app.ts";
import { rpc } from "./support/mcp.ts";
import { evaluation, niceGrade } from "./support/reports.ts";

const scored = (score: number, more: Partial<Grade> = {}): Grade => ({ ...niceGrade, score, ...more });

/** A prompt, and a function to compare two evaluations of it by one slug each. */
function prompted(now?: () => number) {
  const app = testApp({ now, agents: noisy });
  const { call } = rpc(app);
  const { id } = createPrompt(app.service.ctx, app.a.org, {
    agent: "noisy",
    text: "Upload a file. https://docs.example.com",
  });
  const evaluate = (ends: (Grade | string)[]) => evaluation(app, id, ends).find(({ slug }) => slug)?.slug ?? "";
  const compare = async (before: (Grade | string)[], after: (Grade | string)[]) =>
    call("compare_reports", { slugs: [evaluate(before), evaluate(after)] });
  return { app, call, promptId: id, evaluate, compare };
}

describe("the verdict on two evaluations", () => {
  const four = [70, 71, 72, 73];
  const shifted = (by: number) => four.map((score) => scored(score + by));
  const base = four.map((score) => scored(score));
  const reached = (n: number, by = 0) =>
    Array.from({ length: n }, (_, i) => scored(80 + by + (i % 2), { outcome: "succeeded" }));

  test.each<[string, (Grade | string)[], (Grade | string)[], string | null, string]>([
    ["ten points more in four runs improve", base, shifted(10), "improved", "+10.0 points"],
    ["ten points less in four runs regress", base, shifted(-10), "regressed", "-10.0 points"],
    ["a certain loss of four points is a soft regression", base, shifted(-4), "soft_regression", "-4.0 points"],
    [
      "a likely gain of six points is a soft improvement",
      [60, 63, 67, 70].map((s) => scored(s)),
      [66, 69, 73, 76].map((s) => scored(s)),
      "soft_improvement",
      "+6.0 points",
    ],
    [
      "a loss by the interval but not by the test is no change",
      [...Array(6).fill(90.8), ...Array(4).fill(94.5)].map((s) => scored(s)),
      [90.8, 90.8, 90.8, 90.8].map((s) => scored(s)),
      "no_change",
      "-1.5 points (95% CI -2.8 to -0.1), p = 0.251",
    ],
    ["the same scores are no change", base, base, "no_change", "0.0 points"],
    [
      "a wide spread is inconclusive",
      [40, 60, 70, 90].map((s) => scored(s)),
      [45, 65, 60, 92].map((s) => scored(s)),
      "inconclusive",
      "+0.5 points",
    ],
    [
      "three runs per side are insufficient",
      base.slice(1),
      shifted(20).slice(1),
      "insufficient_data",
      "3 against 3 runs; at least 4 per side are needed",
    ],
    ["a single run has no verdict", base.slice(3), base, null, "one run per side can't show a change"],
    [
      "another methodology is not comparable",
      base,
      four.map((score) => scored(score, { methodology: { id: "1", hash: "ffffffffffff", judge: null } })),
      "not_comparable",
      "these differ: methodology: 3 3f9c0a17 vs. 1 ffffffff",
    ],
    [
      "goal scores and docs scores are not comparable",
      base,
      four.map((score) => scored(score, { scope: "docs_only", grade: null })),
      "not_comparable",
      "these differ: scope: goal vs. docs_only",
    ],
    [
      "one docs score among goal scores is not comparable",
      base,
      four.map((score, i) => scored(score, i === 0 ? { scope: "docs_only", grade: null } : {})),
      "not_comparable",
      "these differ: scope: goal vs. docs_only",
    ],
    [
      "many runs with infrastructure failures are insufficient",
      base,
      [...shifted(10), "infrastructure: the host is gone", "infrastructure: the host is gone"],
      "insufficient_data",
      "more than 20% of the runs",
    ],
    [
      "a single run without an infrastructure failure is insufficient",
      base,
      [...shifted(10).slice(3), ...Array(4).fill("infrastructure: the host is gone")],
      "insufficient_data",
      "more than 20% of the runs",
    ],
    [
      "one score among many runs is insufficient",
      base,
      [...shifted(10).slice(3), ...Array(3).fill("timeout: too long")],
      "insufficient_data",
      "4 against 1 runs; at least 4 per side are needed to tell a change from chance; runs not measured (timed out, over budget or crashed): 0 of 4 before, 3 of 4 after",
    ],
    [
      "equal scores with half as many completed runs regress",
      reached(10),
      [...reached(5), ...Array(5).fill("timeout: too long")],
      "regressed",
      "the goal was reached in 5 of 10 runs, 10 of 10 before, one-sided p = 0.016; 5 of 10 runs timed out, used up their budget or crashed, 0 of 10 before, one-sided p = 0.016; -0.1 points",
    ],
    [
      "better scores with half as many completed runs regress",
      reached(10),
      [...reached(5, 12), ...Array(5).fill("budget: spent")],
      "regressed",
      "the goal was reached in 5 of 10 runs, 10 of 10 before, one-sided p = 0.016",
    ],
    [
      "equal scores with more reached goals are a soft improvement",
      [...reached(5), ...Array(5).fill("timeout: too long")],
      reached(10),
      "soft_improvement",
      "the success rate rose by 50 percentage points",
    ],
    [
      "equal scores with one run less are no change",
      reached(10),
      [...reached(9), "timeout: too long"],
      "no_change",
      "runs not measured (timed out, over budget or crashed): 0 of 10 before, 1 of 10 after",
    ],
  ])("is right: %s", async (_, before, after, verdict, reason) => {
    const { compare } = prompted();
    const comparison = await compare(before, after);
    expect(comparison.verdict).toBe(verdict);
    expect(comparison.evidence.reason).toContain(reason);
  });

  test("comes with its method and everything needed to reproduce it", async () => {
    const { compare } = prompted();
    const { evidence } = await compare(base, shifted(10));
    // Student's t at 6 degrees of freedom is 2.447, the standard error 0.913.
    expect(evidence).toMatchObject({
      method: "two-sided permutation test of the mean scores (all 70 splits); Welch's 95% interval of their difference",
      delta: { value: 10, low: 7.8, high: 12.2 },
      p: 0.0286,
    });
    expect(evidence.sides.map(({ n, score }: { n: number; score: object }) => [n, score])).toEqual([
      [4, { mean: 71.5, low: 69.4, high: 73.6 }],
      [4, { mean: 81.5, low: 79.4, high: 83.6 }],
    ]);
  });

  test("never has a p of 0", async () => {
    const { evaluate, call } = prompted();
    const twelve = (from: number) => Array.from({ length: 12 }, (_, i) => scored(from + i));
    const { verdict, evidence } = await call("compare_reports", {
      slugs: [evaluate(twelve(20)), evaluate(twelve(80))],
    });
    // 1 of 20,001 is the smallest possible p with random splits.
    expect([verdict, evidence.p, evidence.smallestP, evidence.seed]).toEqual(["improved", 0.00005, 0.00005, 1]);
    expect(evidence.reason).toContain("p < 0.001; a change needs");
  });

  test("reports incomparable runs even if the selected reports are comparable", async () => {
    const { call, evaluate } = prompted();
    const other = scored(71, { methodology: { id: "1", hash: "ffffffffffff", judge: null } });
    const { comparability, verdict } = await call("compare_reports", {
      slugs: [evaluate(base), evaluate([...shifted(1), other])],
    });
    expect(comparability).toEqual({ same: false, differences: ["methodology: 3 3f9c0a17 vs. 1 ffffffff"] });
    expect(verdict).toBe("not_comparable");
  });

  test("compares the later evaluation with the earlier one, in any order of slugs", async () => {
    const { call, evaluate } = prompted();
    const [before, after] = [evaluate(base), evaluate(shifted(10))];
    expect((await call("compare_reports", { slugs: [after, before] })).verdict).toBe("improved");
  });

  test("compares runs with different dimensions on the common ones", async () => {
    const { compare } = prompted();
    const [discoverability] = niceGrade.dimensions as [(typeof niceGrade.dimensions)[number]];
    const only = (score: number) => scored(10, { dimensions: [{ ...discoverability, score }] });
    const comparison = await compare([88, 88.1, 88.2, 88.3].map(only), base);
    // Both have 88.2 on the common dimensions, whatever their scores.
    expect(comparison.evidence.method).toEndWith("; on the dimensions common to all runs: Docs discoverability");
    expect(comparison.verdict).toBe("no_change");
  });

  test("is missing while runs are unfinished", async () => {
    const { app, call, evaluate } = prompted();
    const before = evaluate(base);
    const after = evaluate([...shifted(10), ...base]);
    app.db.$client.run(
      "update runs set status = 'pending', completed_at = null where id in (select id from runs order by id desc limit 3)",
    );
    app.db.$client.run("delete from friction_lifecycles");
    app.db.$client.run("delete from exposures");
    app.db.$client.run("delete from friction_points");
    app.db.$client.run("delete from recommendations");
    app.db.$client.run("delete from reports where run_id in (select id from runs where status = 'pending')");
    const { verdict, evidence } = await call("compare_reports", { slugs: [before, after] });
    expect([verdict, evidence.sides.map(({ unfinished }: { unfinished: number }) => unfinished)]).toEqual([
      "insufficient_data",
      [0, 3],
    ]);
    expect(evidence.reason).toMatch(/^3 runs of \S+ /);
  });

  test("counts a timeout as a failure, and ignores an unreachable host", async () => {
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

test("friction is grouped by report, and three evaluations have no verdict", async () => {
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
  expect([comparison.verdict, comparison.evidence.reason]).toEqual([null, expect.stringContaining("two evaluations")]);
});

test("a response counts the friction points that it omits", async () => {
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
  expect(JSON.stringify(told).length).toBeLessThan(16_000);
  expect(told.only.length).toBeGreaterThan(20);
});

test("a prompt's state is the state of its live docs, regardless of later previews", async () => {
  const app = testApp({ agents: noisy });
  const { id } = createPrompt(app.service.ctx, app.a.org, {
    agent: "noisy",
    title: "Upload",
    text: "https://docs.example.com",
  });
  const four = (score: number) => [0, 1, 2, 3].map((i) => scored(score + i));
  evaluation(app, id, four(80));
  evaluation(app, id, four(70));
  const previews = evaluation(app, id, four(20), { urlMap: { "docs.example.com": "https://preview.example.com" } });
  for (let i = 0; i < 15; i++) evaluation(app, id, four(20), { urlMap: { "docs.example.com": "https://p.example" } });
  expect(findLatestResults(app.service.ctx, app.a.org, id)).toMatchObject({
    score: 73,
    points: [{ score: 81.5, runs: 4 }, { score: 71.5 }],
    change: { verdict: "regressed", delta: -10 },
  });
  const { body } = await app.send("GET", "/prompts");
  expect([body.includes("73.0"), body.includes(previews.at(-1)?.slug ?? "")]).toEqual([true, false]);
});
