import { expect, test } from "bun:test";
import { advanceGates } from "../src/gates/progress.ts";
import { noisy, testApp } from "./support/app.ts";
import { rpc } from "./support/mcp.ts";
import { finishRuns, niceGrade } from "./support/reports.ts";

const text = "Upload a file. https://docs.example.com";

/** A prompt whose agents are the explorer, which always does the same, and one that varies. */
async function setUp() {
  const app = testApp({ agents: noisy });
  const get = async (path: string) => (await app.send("GET", path)).body;
  const agents = [{ agent: "explorer" }, { agent: "noisy" }];
  const { body: prompt } = await app.send("POST", "/api/v1/prompts", { body: { text, agents } });
  /** An evaluation of five runs per agent: those of the explorer are equal. */
  const evaluate = async (explorer: number, other: number) => {
    const { evalRequestId } = await rpc(app).call("request_eval", { promptId: prompt.id, runs: 5 });
    const counts = { nth: 0 };
    finishRuns(app, ({ agent }) => ({
      ...niceGrade,
      outcome: agent === "explorer" ? "goal_not_met" : "succeeded",
      score: agent === "explorer" ? explorer : other + (counts.nth++ % 5),
    }));
    return await get(`/api/v1/eval-requests/${evalRequestId}`);
  };
  const slugOf = (request: Awaited<ReturnType<typeof evaluate>>, agent: string) =>
    request.runs.find((run: { agent: { id: string } }) => run.agent.id === agent).report.slug as string;
  return { ...app, get, prompt, evaluate, slugOf };
}

test("equal repeats of the explorer are one observation: its change is exact and has no p", async () => {
  const app = await setUp();
  const [before, after] = [await app.evaluate(80, 60), await app.evaluate(60, 60)];
  const slugs = [app.slugOf(before, "explorer"), app.slugOf(after, "explorer")];
  const sides = `base=${before.id}&head=${after.id}&baseAgent=explorer&headAgent=explorer`;
  const untested = { p: null, smallestP: null, successP: null, withinP: null, ends: null, dimensions: [], metrics: [] };
  for (const compared of [
    await app.get(`/api/v1/compare?${sides}`),
    await app.get(`/api/v1/compare/reports?slugs=${slugs}`),
    await rpc(app).call("compare_reports", { slugs }),
  ])
    expect(compared).toMatchObject({
      verdict: "regressed",
      evidence: { ...untested, delta: { value: -20, low: -20, high: -20 } },
    });
  const { changes } = await app.get(`/api/v1/trends?promptId=${app.prompt.id}&agent=explorer`);
  expect(changes.map(({ what, p }: Record<string, unknown>) => [what, p])).toEqual([["score", null]]);
});

test("equal repeats of the explorer never outweigh the runs of another agent", async () => {
  const app = await setUp();
  const request = await app.evaluate(80, 60);
  const slugs = [app.slugOf(request, "explorer"), app.slugOf(request, "noisy")];
  const compared = await app.get(`/api/v1/compare/reports?slugs=${slugs}&acrossAgents=1`);
  expect(compared.verdict).toBe("insufficient_data");
  const { p, smallestP, ends, successP } = compared.evidence;
  // One against five runs have six splits. Counted as five, their p would be 0.008.
  expect([p, smallestP, successP]).toEqual([0.1667, 0.1667, 0.1667]);
  expect([ends.success.before, ends.success.after]).toEqual([
    { k: 0, n: 1 },
    { k: 5, n: 5 },
  ]);
});

test("a gate of the explorer makes one run per side, whatever is asked", async () => {
  const app = await setUp();
  const { body: prompt } = await app.send("POST", "/api/v1/prompts", { body: { text, agent: "explorer" } });
  const body = { promptId: prompt.id, runs: 5, urlMap: { "docs.example.com": "https://preview.example.com" } };
  const { body: asked } = await app.send("POST", "/api/v1/gates", { body });
  finishRuns(app, ({ urlMap }) => (Object.keys(urlMap).length > 0 ? 60 : 80));
  await advanceGates(app.service.ctx);
  const gate = await app.get(`/api/v1/gates/${asked.id}`);
  expect(gate).toMatchObject({
    status: "failed",
    progress: { ended: 2, of: 2 },
    comparison: { verdict: "regressed", evidence: { p: null, delta: { value: -20, low: -20, high: -20 } } },
  });
});
