import { describe, expect, test } from "bun:test";
import { createPrompt } from "../src/prompts/prompts.ts";
import { testApp } from "./support/app.ts";
import { rpc } from "./support/mcp.ts";
import { evaluation, niceGrade } from "./support/reports.ts";

/** A result of this many characters has at most 6,000 tokens: JSON with IDs and URLs has 2.5 characters per token or more. */
const maxResult = 15_000;
const points = 50;
const dayMs = 24 * 3600_000;

const [friction] = niceGrade.frictions as [(typeof niceGrade.frictions)[number]];
const [recommendation] = niceGrade.recommendations as [(typeof niceGrade.recommendations)[number]];
const fingerprintOf = (i: number) => String(i).padStart(16, "0");
const words = (count: number) => "The quickstart names a flag that no release has. ".repeat(count);

/** A report as an agent gets it that failed often, with as many friction points as one can have. */
const longGrade = {
  ...niceGrade,
  keyFinding: words(2),
  verdict: words(4),
  summary: { whatWorked: words(6), whatDidnt: words(6) },
  frictions: Array.from({ length: points }, (_, i) => ({
    ...friction,
    fingerprint: fingerprintOf(i),
    title: `Point ${i}: ${words(1)}`,
    description: words(3),
    quote: words(3),
    severity: i % 10 === 0 ? ("high" as const) : ("low" as const),
    lostPoints: points - i,
  })),
  recommendations: Array.from({ length: points }, (_, i) => ({
    ...recommendation,
    priority: i + 1,
    title: `Fix ${i}`,
    action: words(5),
    frictions: [fingerprintOf(i)],
  })),
};

/** An organization with years of large results. */
function bigOrganization() {
  let now = Date.UTC(2026, 8, 1);
  const app = testApp({ now: () => now });
  const ids = Array.from(
    { length: 25 },
    (_, i) =>
      createPrompt(app.service.ctx, app.a.org, {
        title: `Prompt ${i}`,
        text: `${words(30)} https://docs.example.com`,
        endGoal: words(5),
      }).id,
  );
  const [promptId = ""] = ids;
  const slugs: string[] = [];
  const many = evaluation(
    app,
    promptId,
    Array.from({ length: 50 }, (_, i) => (i % 3 ? niceGrade : `timeout: ${words(3)}`)),
  );
  const failed = evaluation(app, promptId, Array(10).fill(`timeout: ${words(6)}`));
  for (const [i, id] of ids.entries()) {
    now += dayMs;
    const ends = [i < 10 ? longGrade : niceGrade, niceGrade, niceGrade, `timeout: ${words(3)}`, niceGrade];
    slugs.push(evaluation(app, id, ends)[0]?.slug ?? "");
  }
  for (let i = 0; i < 30; i++) {
    now += dayMs;
    evaluation(app, promptId, [{ ...niceGrade, score: 60 + i }]);
  }
  app.db.$client.run(`update session_events set data = json_set(data, '$.text', '${words(60)}')`);
  return {
    app,
    ...rpc(app),
    promptId,
    slugs,
    slug: slugs[0] ?? "",
    evaluations: [many, failed].map(([run]) => run?.evalRequestId),
  };
}

describe("by default, the result of a big organization costs an agent at most 6,000 tokens:", () => {
  const world = bigOrganization();
  const { call, promptId, slug, slugs, evaluations } = world;
  test.each<[string, object]>([
    ["list_reports", {}],
    ["get_report", { slug }],
    ["get_session_trace", { slug }],
    ["get_friction_points", { slug }],
    ["get_friction_points", { promptId }],
    ["compare_reports", { slugs: slugs.slice(0, 10) }],
    ["get_trends", {}],
    ["get_trends", { promptId, interval: "eval" }],
    ["list_prompts", {}],
    ["request_eval", { promptId }],
    ["request_eval", { promptId, runs: 50 }],
    ["list_eval_requests", {}],
    ...evaluations.map((evalRequestId): [string, object] => ["list_eval_requests", { evalRequestId }]),
  ])("%s %j", async (name, args) => {
    const result = await call(name, args);
    expect(result.error).toBeUndefined();
    const size = JSON.stringify(result).length;
    expect(size).toBeLessThan(maxResult);
  });
});
