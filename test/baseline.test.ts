import { describe, expect, test } from "bun:test";
import { Value } from "@sinclair/typebox/value";
import { Comparison } from "../src/comparisons/compare.ts";
import { ReportsComparison } from "../src/comparisons/side-by-side.ts";
import type { Grade } from "../src/grading/grade.ts";
import { createPrompt } from "../src/prompts/prompts.ts";
import { Report } from "../src/reports/schema.ts";
import { requestEval } from "../src/runs/requests.ts";
import { EvalRequest } from "../src/runs/schema.ts";
import { noisy, testApp } from "./support/app.ts";
import { rpc } from "./support/mcp.ts";
import { evaluation, niceGrade } from "./support/reports.ts";

const scored = (score: number, more: Partial<Grade> = {}): Grade => ({ ...niceGrade, score, ...more });
const scores = (...values: number[]) => values.map((score) => scored(score));
/** Two dimensions and a time that follow the score. */
const moved = (score: number): Grade =>
  scored(score, {
    dimensions: niceGrade.dimensions.map((each, i) => ({ ...each, score: i === 0 ? score : 64.3 })),
    metrics: { ...niceGrade.metrics, timeSeconds: 200 - score },
  });

function setUp() {
  const app = testApp({ agents: noisy });
  const prompt = (text = "Upload a file. https://docs.example.com") =>
    createPrompt(app.service.ctx, app.a.org, { text, agent: "noisy" }).id;
  const promptId = prompt();
  const get = async (path: string) => (await app.send("GET", path)).body;
  const evaluate = (ends: (Grade | string)[], of = promptId, more = {}) => {
    const runs = evaluation(app, of, ends, more);
    return { id: runs[0]?.evalRequestId ?? "", slugs: runs.map(({ slug }) => slug) };
  };
  const compare = (base: string, head: string, more = "") => get(`/api/v1/compare?base=${base}&head=${head}${more}`);
  return { ...app, promptId, prompt, get, evaluate, compare };
}

const fits = (schema: Parameters<typeof Value.Errors>[0], value: unknown) =>
  [...Value.Errors(schema, value)].map(({ path, message }) => `${path}: ${message}`);

describe("the result of an evaluation", () => {
  test("is the same over REST and MCP, and in the list", async () => {
    const app = setUp();
    const won = scored(80, { outcome: "succeeded" });
    const { id } = app.evaluate([
      won,
      scored(70),
      scored(74, { outcome: "goal_not_met" }),
      scored(76),
      "timeout: too long",
      "infrastructure: the host is gone",
    ]);
    const request = await app.get(`/api/v1/eval-requests/${id}`);
    expect(fits(EvalRequest, request)).toEqual([]);
    expect(request.result).toEqual({
      label: "4 runs",
      n: 4,
      unfinished: 0,
      infraFailures: 1,
      // 3.182 × 4.163 / √4 = 6.62
      score: { mean: 75, low: 68.4, high: 81.6 },
      sd: 4.16,
      successes: 1,
      // Wilson: 1 of 3.
      successRate: { value: 0.333, low: 0.061, high: 0.792, of: 3 },
      medianSeconds: 4.2,
      medianCostUsd: 0,
      // R: power.t.test(4, power = 0.8, sd = 4.16333, strict = TRUE)
      smallestChange: 9.9,
    });
    expect((await app.get("/api/v1/eval-requests"))[0]).toEqual(request);
    expect((await rpc(app).call("list_eval_requests")).evalRequests[0]).toEqual(request);
  });

  test("of one run says so, and of no run is empty", async () => {
    const app = setUp();
    const one = await app.get(`/api/v1/eval-requests/${app.evaluate(scores(70)).id}`);
    expect(one.result).toMatchObject({
      label: "single run",
      n: 1,
      score: { mean: 70, low: null, high: null },
      sd: null,
      smallestChange: null,
    });
    const waiting = await requestEval(app.service.ctx, app.a.org, app.promptId, { urlMap: {}, trigger: "api" });
    expect((await app.get(`/api/v1/eval-requests/${waiting.evalRequestId}`)).result).toMatchObject({
      label: "0 runs",
      unfinished: 1,
      score: null,
    });
  });

  test("is visible only to its organization, and excludes archived reports", async () => {
    const app = setUp();
    const { id, slugs } = app.evaluate(scores(70, 80));
    await app.send("PATCH", `/api/v1/reports/${slugs[1]}`, { body: { status: "archived" } });
    expect((await app.get(`/api/v1/eval-requests/${id}`)).result.n).toBe(1);
    const stranger = { headers: { authorization: `Bearer ${app.b.key}` } };
    expect((await app.send("GET", `/api/v1/eval-requests/${id}`, stranger)).status).toBe(404);
    expect((await app.send("GET", "/api/v1/eval-requests", stranger)).headers.get("x-total-count")).toBe("0");
  });
});

describe("a comparison of two sides", () => {
  test("compares score, outcome, dimensions and metrics, with everything needed to reproduce the result", async () => {
    const app = setUp();
    const before = app.evaluate([80, 81, 82, 83, 84].map(moved));
    const after = app.evaluate([70, 71, 72, 73, 74].map(moved));
    const compared = await app.compare(before.id, after.id);
    expect(fits(Comparison, compared)).toEqual([]);
    expect(compared).toMatchObject({
      base: { evalRequestIds: [before.id], promptIds: [app.promptId], runs: 5 },
      head: { evalRequestIds: [after.id], runs: 5 },
      comparability: { same: true, differences: [] },
      verdict: "regressed",
      evidence: {
        method:
          "two-sided permutation test of the mean scores (all 252 splits); Welch's 95% interval of their difference",
        level: 0.05,
        seed: null,
        delta: { value: -10, low: -12.3, high: -7.7 },
        p: 0.0079,
        smallestP: 0.0079,
        successP: null,
        dimensions: [
          { name: "Docs discoverability", before: 82, after: 72, p: 0.0079, pHolm: 0.0159 },
          { name: "Docs quality", before: 64.3, after: 64.3, p: 1, pHolm: 1 },
        ],
      },
    });
    expect(compared.evidence.metrics.map(({ name, p, pHolm }: Record<string, unknown>) => [name, p, pHolm])).toEqual([
      ["timeSeconds", 0.0079, 0.0397],
      ["errors", 1, 1],
      ["toolCalls", 1, 1],
      ["costUsd", 1, 1],
      ["interruptions", 1, 1],
    ]);
  });

  test("shows no change between equal scores, whatever the last bits of their means", async () => {
    const app = setUp();
    const same = (n: number) => app.evaluate(scores(...Array(n).fill(89.4))).id;
    const { verdict, evidence } = await app.compare(same(10), same(6));
    expect([verdict, evidence.delta]).toEqual(["no_change", { value: 0, low: 0, high: 0 }]);
  });

  test("reports the seed of random splits if there are too many to try all", async () => {
    const app = setUp();
    const many = (from: number) => scores(...Array.from({ length: 12 }, (_, i) => from + i));
    const { evidence, verdict } = await app.compare(app.evaluate(many(60)).id, app.evaluate(many(80)).id);
    expect([verdict, evidence.seed, evidence.method.includes("(20000 random splits)")]).toEqual(["improved", 1, true]);
  });

  test("compares outcomes by Fisher's test, and counts a timeout as a failure", async () => {
    const app = setUp();
    const won = Array.from({ length: 5 }, () => scored(80, { outcome: "succeeded" }));
    const lost = [...Array.from({ length: 4 }, () => scored(50, { outcome: "goal_not_met" })), "timeout: too long"];
    const { evidence } = await app.compare(app.evaluate(won).id, app.evaluate(lost).id);
    expect(evidence.successP).toBe(0.0079);
  });

  test("says how many runs are needed if it is inconclusive", async () => {
    const app = setUp();
    const before = app.evaluate(scores(60, 70, 80, 90)).id;
    const { verdict, evidence } = await app.compare(before, app.evaluate(scores(62, 71, 79, 93)).id);
    expect(verdict).toBe("inconclusive");
    // R: power.t.test(delta = 5, sd = 13.15, power = 0.8, strict = TRUE)
    expect(evidence.reason).toEndWith("; with this spread, 110 runs per side are needed to detect 5 points");
  });

  test("lists shared, resolved and new friction", async () => {
    const app = setUp();
    const [friction] = niceGrade.frictions as [(typeof niceGrade.frictions)[number]];
    const meets = (...names: string[]) =>
      scored(80, {
        recommendations: [],
        frictions: names.map((name) => ({ ...friction, fingerprint: name.padEnd(16, "0"), title: name })),
      });
    const before = app.evaluate([meets("stays", "goes"), meets("stays"), meets()]);
    const after = app.evaluate([meets("stays", "comes"), meets("comes"), meets("comes")]);
    const { friction: told } = await app.compare(before.id, after.id);
    const words = (list: { title: string; before: object; after: object }[]) =>
      list.map((each) => [each.title, each.before, each.after]);
    expect([words(told.shared), words(told.gone), words(told.new)]).toEqual([
      [["stays", { runs: 2, of: 3 }, { runs: 1, of: 3 }]],
      [["goes", { runs: 1, of: 3 }, { runs: 0, of: 3 }]],
      [["comes", { runs: 0, of: 3 }, { runs: 3, of: 3 }]],
    ]);
  });

  test("accepts reports, evaluations or prompts, filtered by agent, model and arguments", async () => {
    const app = setUp();
    const { id: promptId } = createPrompt(app.service.ctx, app.a.org, {
      agent: "noisy",
      text: "Use {{language}}. https://docs.example.com",
    });
    const of = (language: string, ...values: number[]) =>
      app.evaluate(scores(...values), promptId, { templateArgs: { language } });
    const python = of("Python", 60, 61, 62, 63);
    const rust = of("Rust", 70, 71, 72, 73);
    const args = (language: string) => encodeURIComponent(JSON.stringify({ language }));
    const byArgs = await app.compare(promptId, promptId, `&baseArgs=${args("Python")}&headArgs=${args("Rust")}`);
    expect(byArgs.comparability.differences).toEqual([
      'templateArgs: [["language","Python"]] vs. [["language","Rust"]]',
    ]);
    expect(byArgs.verdict).toBe("not_comparable");
    // Equal arguments are paired, in any order of their names.
    const [mixed, again] = [of("Python", 60, 61, 62, 63), of("Rust", 70, 71, 72, 73)];
    const paired = await app.compare(`${python.id},${rust.id}`, `${again.id},${mixed.id}`);
    // Both belong to one prompt, so its runs are permuted within their arguments.
    expect([paired.comparability.same, paired.verdict]).toEqual([true, "no_change"]);
    expect(paired.evidence.method).toStartWith("two-sided permutation test of the mean scores (all 4900 splits)");
    // A run is never compared with itself.
    expect(await app.compare(rust.id, rust.id)).toMatchObject({
      error: "bad_request",
      detail: expect.stringContaining("base"),
    });
    expect((await app.compare(promptId, again.id)).base.evalRequestIds).toEqual([rust.id]);
    // The most recent variant of the prompt is Rust's.
    expect(await app.compare(python.id, promptId)).toMatchObject({
      head: { evalRequestIds: [again.id, rust.id], runs: 8 },
    });
    const bySlugs = await app.compare(rust.slugs.slice(0, 2).join(), rust.slugs.slice(2).join());
    expect([bySlugs.base.runs, bySlugs.evidence.delta.value]).toEqual([2, 2]);
    expect(await app.compare(rust.id, rust.id, "&headAgent=llm")).toEqual({
      error: "bad_request",
      detail: expect.stringContaining(rust.id),
    });
    expect(await app.compare(rust.id, rust.id, "&headArgs=x")).toMatchObject({ error: "bad_request" });
    expect(await app.compare(rust.id, "nowhere-00000000")).toMatchObject({ error: "not_found" });
    expect(await app.compare(rust.id, app.a.org)).toMatchObject({ error: "not_found" });
    const stranger = { headers: { authorization: `Bearer ${app.b.key}` } };
    expect((await app.send("GET", `/api/v1/compare?base=${rust.id}&head=${rust.id}`, stranger)).status).toBe(404);
  });

  test("pairs the prompts if there are six; with five, it permutes the runs and the prompts must agree", async () => {
    const app = setUp();
    const [before, after]: [string[], string[]] = [[], []];
    for (let i = 0; i < 6; i++) {
      const own = app.prompt(`Do ${i}. https://docs.example.com`);
      const ends = (outcome: Grade["outcome"], ...values: number[]) =>
        values.map((score) => scored(score, { outcome }));
      before.push(app.evaluate(ends("succeeded", 60 + 5 * i, 62 + 5 * i), own).id);
      after.push(app.evaluate(ends("goal_not_met", 50 + 5 * i, 54 + 5 * i - i / 2), own).id);
    }
    const six = await app.compare(before.join(), after.join());
    const { p, smallestP, successP } = six.evidence;
    expect([six.verdict, p, smallestP, successP]).toEqual(["regressed", 0.0313, 0.0313, 0.00004]);
    expect(six.evidence.method).toBe(
      "two-sided sign-flip test of the differences of 6 prompts (all 64 signs); t 95% interval of their mean",
    );
    const five = await app.compare(before.slice(1).join(), after.slice(1).join());
    // Every run of the head is worse than the base runs of its prompt. That is the most extreme of 6^5 splits, with its
    // mirror image.
    expect([five.verdict, five.evidence.withinP, five.evidence.smallestP]).toEqual(["regressed", 0.0003, 0.0003]);
    expect(five.evidence.causes).toEqual(["score", "success"]);
  });

  test("has no verdict if the prompts that both sides have were not measured", async () => {
    const app = setUp();
    const lost = ["timeout: too long", "timeout: too long"];
    const measured = () => app.evaluate(scores(70, 71), app.prompt()).id;
    const base = [measured(), measured(), app.evaluate(lost).id];
    const head = [measured(), app.evaluate(lost).id];
    const { verdict, evidence } = await app.compare(base.join(), head.join());
    expect([verdict, evidence.score, evidence.p]).toEqual(["insufficient_data", null, null]);
  });

  test("of reports gives the same result over REST and MCP", async () => {
    const app = setUp();
    const slugs = [...app.evaluate(scores(70, 71, 72, 73)).slugs, ...app.evaluate(scores(80, 81, 82, 83)).slugs];
    const compared = await app.get(`/api/v1/compare/reports?slugs=${slugs.join()}`);
    expect(fits(ReportsComparison, compared)).toEqual([]);
    expect([compared.verdict, compared.reports.length]).toEqual(["improved", 8]);
    expect(await rpc(app).call("compare_reports", { slugs })).toEqual(compared);
    expect(await app.get(`/api/v1/compare/reports?slugs=${slugs[0]}`)).toMatchObject({ error: "bad_request" });
  });
});

describe("the baseline", () => {
  const baselineOf = async (app: ReturnType<typeof setUp>, slug = "") =>
    (await app.get(`/api/v1/reports/${slug}`)).baseline;

  test("is the last ten comparable published runs before a report, and never a single run", async () => {
    const app = setUp();
    const [first = ""] = app.evaluate(scores(20)).slugs;
    const [second = ""] = app.evaluate(scores(40)).slugs;
    expect([await baselineOf(app, first), await baselineOf(app, second)]).toEqual([null, null]);
    app.evaluate(scores(...Array.from({ length: 10 }, (_, i) => 70 + (i % 2) * 2)));
    // None of these counts: they are of a preview, archived, a draft, without a score, or of another methodology.
    app.evaluate(scores(1, 1), app.promptId, { urlMap: { "docs.example.com": "https://preview.example.com" } });
    const { slugs } = app.evaluate([
      scored(2),
      scored(2),
      scored(3, { score: null, grade: null, nullNotice: "No judge.", outcome: "scoring_failed" }),
      scored(4, { methodology: { id: "0", hash: "000000000000", judge: null } }),
    ]);
    await app.send("PATCH", `/api/v1/reports/${slugs[0]}`, { body: { status: "archived" } });
    await app.send("PATCH", `/api/v1/reports/${slugs[1]}`, { body: { status: "draft" } });
    const report = await app.get(`/api/v1/reports/${app.evaluate([moved(61), moved(20)]).slugs[0]}`);
    expect(fits(Report, report)).toEqual([]);
    expect(report.baseline).toEqual({
      kind: "window",
      evalRequestId: null,
      n: 10,
      from: expect.any(String),
      to: expect.any(String),
      differences: [],
      // 2.262 × 1.054 × √(1 + 1/10) = 2.5
      score: { mean: 71, change: -10, low: 68.5, high: 73.5, isUsual: false },
      dimensions: [
        { name: "Docs discoverability", mean: 88.2, change: -27.2 },
        { name: "Docs quality", mean: 64.3, change: 0 },
      ],
      metrics: [
        { name: "timeSeconds", median: 4.2, change: 134.8 },
        { name: "errors", median: 2, change: 0 },
        { name: "toolCalls", median: 17, change: 0 },
        { name: "costUsd", median: 0, change: 0 },
        { name: "interruptions", median: 0, change: 0 },
      ],
    });
  });

  test("is the pinned evaluation, with a warning if a prompt has too few runs", async () => {
    const app = setUp();
    const pin = (id: string | null, more = {}) =>
      app.send("PATCH", `/api/v1/prompts/${app.promptId}`, { body: { baselineRequestId: id, ...more } });
    const pinned = app.evaluate(scores(50, 52, 54, 56)).id;
    app.evaluate(scores(90, 90, 90, 90));
    const patched = await pin(pinned.toUpperCase());
    const warning = expect.stringContaining("runsPerEval");
    expect([patched.body.baselineRequestId, patched.body.warnings]).toEqual([pinned, [warning]]);
    expect((await rpc(app).call("request_eval", { promptId: app.promptId, runs: 1 })).warnings).toEqual([warning]);
    expect((await rpc(app).call("request_eval", { promptId: app.promptId, runs: 4 })).warnings).toEqual([]);
    expect((await pin(pinned, { runsPerEval: 5 })).body.warnings).toEqual([]);
    const [usual = "", unlike = ""] = app.evaluate([
      scored(57),
      scored(60, { methodology: { id: "1", hash: "ffffffffffff", judge: null } }),
    ]).slugs;
    expect(await baselineOf(app, usual)).toMatchObject({
      kind: "pinned",
      evalRequestId: pinned,
      n: 4,
      score: { mean: 53, change: 4, isUsual: true },
    });
    expect(await baselineOf(app, unlike)).toMatchObject({
      differences: ["methodology: 3 3f9c0a17 vs. 1 ffffffff"],
      score: null,
      dimensions: [],
    });
    const after = app.evaluate(scores(40, 42, 44, 46)).id;
    expect((await app.compare("baseline", after)).verdict).toBe("regressed");
    expect((await pin(null)).body).toMatchObject({ baselineRequestId: null, warnings: [] });
    expect((await app.compare("baseline", after)).base.runs).toBe(9);
  });

  test("can't be a single run, a run of another prompt or nothing", async () => {
    const app = setUp();
    const refused = async (id: string) =>
      (await app.send("PATCH", `/api/v1/prompts/${app.promptId}`, { body: { baselineRequestId: id } })).body.detail;
    const one = app.evaluate(scores(50)).id;
    const other = app.evaluate(scores(50, 60), app.prompt("Another. https://docs.example.com")).id;
    expect(await refused(one)).toMatch(/^Invalid baselineRequestId: .* 1 scored runs/);
    expect(await refused(other)).toMatch(/^Invalid baselineRequestId: .* 0 scored runs/);
    expect(await refused("x")).toStartWith("Invalid baselineRequestId: must be");
    expect((await app.compare("baseline", one)).detail).toStartWith("Invalid baseline: ");
  });
});
