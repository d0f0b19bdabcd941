import { afterAll, expect, test } from "bun:test";
import { advanceBisects } from "../src/bisects/progress.ts";
import type { Bisect } from "../src/bisects/schema.ts";
import { type BisectionStep, type BuildScore, nextStepOf } from "../src/stats/bisection.ts";
import { noisy, testApp } from "./support/app.ts";
import { networkedExplorer } from "./support/networked-explorer.ts";
import { normal, randomOf } from "./support/random.ts";
import { finishRuns } from "./support/reports.ts";
import { serveSite } from "./support/site.ts";

const builds = 64;

/** What a search finds where builds from `first` on score `change` points more, with this standard deviation. */
function search(seed: number, { sd, change, skipped = [] }: { sd: number; change: number; skipped?: number[] }) {
  const random = randomOf(seed * 7919);
  const first = 1 + Math.floor(random() * builds);
  const design = { last: builds, skipped: new Set(skipped), isDeterministic: sd === 0 };
  const scores: BuildScore[] = [];
  for (;;) {
    const step = nextStepOf(design, scores);
    const tried = new Set(scores.map(({ build }) => build));
    // The first gate compares the bad build with the good one.
    if (step.kind !== "run") return { first, step, gates: tried.size - 1, runs: scores.length };
    expect(step.builds.some((build) => design.skipped.has(build))).toBe(false);
    for (const build of step.builds)
      for (let i = 0; i < step.runs; i++) {
        const mean = build >= first ? 80 + change : 80;
        scores.push({ build, score: sd === 0 ? mean : normal(random, mean, sd) });
      }
  }
}

const seeds = Array.from({ length: 20 }, (_, i) => i + 1);
const isRight = ({ first, step }: { first: number; step: BisectionStep }) =>
  step.kind === "found" && step.builds.length === 1 && step.builds[0] === first;

test("one run of each build finds the commit among 64 for a deterministic agent, by binary search", () => {
  const found = seeds.map((seed) => search(seed, { sd: 0, change: -20 }));
  expect(found.filter(isRight)).toHaveLength(20);
  expect(Math.max(...found.map(({ gates }) => gates))).toBe(7);
  expect(Math.max(...found.map(({ runs }) => runs))).toBe(8);
});

test.each([
  [4, -20],
  [8, -24],
  [8, 24],
])("a noisy agent with a standard deviation of %d and a change of %d finds it in 8 gates", (sd, change) => {
  const found = seeds.map((seed) => search(seed, { sd, change }));
  expect(found.filter(isRight).length).toBeGreaterThanOrEqual(19);
  expect(Math.max(...found.map(({ gates }) => gates))).toBeLessThanOrEqual(8);
  expect(found.reduce((sum, { runs }) => sum + runs, 0) / 20).toBeLessThan(35);
});

test("without a difference nothing is searched, and builds without one between them are named together", () => {
  const same = seeds.map((seed) => search(seed, { sd: 5, change: 0 }));
  expect(same.filter(({ step }) => step.kind === "same").length).toBeGreaterThanOrEqual(19);
  expect(search(1, { sd: 0, change: 0 }).step).toEqual({ kind: "same" });
  const skipped = Array.from({ length: builds - 1 }, (_, i) => i + 1).filter((build) => build % 3 !== 0);
  for (const seed of seeds) {
    const { first, step, gates } = search(seed, { sd: 0, change: -9, skipped });
    expect(step.kind === "found" && step.builds.includes(first) && step.builds.length <= 3).toBe(true);
    expect(gates).toBeLessThanOrEqual(7);
  }
});

const page = (title: string, body: string) =>
  new Response(`<!doctype html><html lang="en"><title>${title}</title><main><h1>${title}</h1>${body}</main></html>`, {
    headers: { "content-type": "text/html; charset=utf-8" },
  });
const commits = Array.from({ length: 17 }, (_, i) => `c${String(i).padStart(2, "0")}`);
/** The docs of each commit below its name. From c11 on, the link to the guide is dead; c08 was never built. */
const previews = serveSite(
  Object.fromEntries(
    commits
      .filter((commit) => commit !== "c08")
      .flatMap((commit) => {
        const upload = page(
          "Upload a file",
          "<p>Upload a file with the SDK.</p><pre><code>acme.upload();</code></pre>",
        );
        const link = commit < "c11" ? "upload" : "uplaod";
        const start = page("Acme", `<p><a href="${link}">Upload a file</a></p>`);
        return [
          [`/${commit}/docs/`, () => start.clone()],
          ...(commit < "c11" ? [[`/${commit}/docs/upload`, () => upload.clone()] as const] : []),
        ] as const;
      }),
  ),
);
afterAll(() => previews.stop());

const app = testApp({
  agent: networkedExplorer("test"),
  agents: noisy,
  env: { EVALD_ALLOW_PRIVATE: "127.0.0.1", EVALD_RUNS_PER_HOST: "8" },
});
const urlTemplate = `${previews.url}/{commit}/docs`;
const createPrompt = async (agent: string) => {
  const body = { text: "Upload a file. https://docs.example.com/docs/", endGoal: "Upload a file with the SDK", agent };
  return (await app.send("POST", "/api/v1/prompts", { body })).body.id as string;
};
const request = async (body: object) =>
  await app.send("POST", "/api/v1/bisects", { body: { urlTemplate, commits, ...body } });
const get = async (id: string): Promise<Bisect> => (await app.send("GET", `/api/v1/bisects/${id}`)).body;

test("the explorer finds the commit that broke a link, skips a build without an answer, and counts in no figure", async () => {
  const promptId = await createPrompt("explorer");
  const { status, body } = await request({ promptId });
  expect([status, body.status, body.progress, body.result]).toEqual([201, "running", { ended: 0, of: 0 }, null]);
  for (let i = 0; i < 9; i++) {
    await advanceBisects(app.service.ctx);
    await app.runJobs();
  }
  await advanceBisects(app.service.ctx);
  const found = await get(body.id);
  expect([found.status, found.result]).toEqual(["found", { commits: ["c11"], probability: 1 }]);
  expect(found.builds.find(({ commit }) => commit === "c08")).toMatchObject({ skipped: "http_error", scores: [] });
  expect(found.builds.length).toBeLessThanOrEqual(7);
  expect(found.builds.every(({ scores, skipped }) => (scores.length === 1) === (skipped === null))).toBe(true);
  const figures = (await app.send("GET", `/api/v1/trends?promptId=${promptId}`)).body;
  expect(JSON.stringify(figures)).not.toContain(found.builds[0]?.evalRequestId as string);
}, 60_000);

test("a noisy agent repeats builds until it is certain, and a cancelled bisect keeps what it knows", async () => {
  const promptId = await createPrompt("noisy");
  const random = randomOf(5);
  const finish = () =>
    finishRuns(app, ({ urlMap }) => {
      const isBad = (Object.values(urlMap)[0] ?? "") >= `${previews.url}/c11`;
      return Math.round(normal(random, isBad ? 60 : 80, 4));
    });
  const { body } = await request({ promptId });
  for (let i = 0; i < 30 && (await get(body.id)).status === "running"; i++) {
    await advanceBisects(app.service.ctx);
    finish();
  }
  const found = await get(body.id);
  expect([found.status, found.result?.commits]).toEqual(["found", ["c11"]]);
  expect(found.result?.probability).toBeGreaterThanOrEqual(0.95);
  expect(found.builds.some(({ scores }) => scores.length > 1)).toBe(true);

  const second = await request({ promptId, commits: commits.slice(5) });
  for (let i = 0; i < 3; i++) {
    await advanceBisects(app.service.ctx);
    finish();
  }
  const cancelled = await app.send("POST", `/api/v1/bisects/${second.body.id}/cancel`);
  expect(cancelled.body).toMatchObject({ status: "stopped", stopReason: "cancelled" });
  expect(cancelled.body.result.probability).toBeGreaterThan(0);
  expect((await app.send("POST", `/api/v1/bisects/${second.body.id}/cancel`)).status).toBe(409);
});

test("a budget, ends without an answer and an archived prompt stop the search", async () => {
  const promptId = await createPrompt("noisy");
  const { body } = await request({ promptId, budgetUsd: 0.05 });
  await advanceBisects(app.service.ctx);
  finishRuns(app, () => 80, 0.02);
  app.db.$client.run("update runs set spent_usd = 0.02 where prompt_id = ?", [promptId]);
  await advanceBisects(app.service.ctx);
  expect(await get(body.id)).toMatchObject({ status: "stopped", stopReason: "budget", spentUsd: 0.04 });
  const missing = await request({ promptId, commits: ["c00", "c08"] });
  await advanceBisects(app.service.ctx);
  expect(await get(missing.body.id)).toMatchObject({
    stopReason: "not_measured",
    builds: [{ commit: "c08", skipped: "http_error" }],
  });
  const refusals = await Promise.all([
    request({ promptId, urlTemplate: "https://preview.example.com" }),
    request({ promptId, agent: "nobody" }),
  ]);
  expect(refusals.map(({ status, body }) => [status, String(body.detail).match(/urlTemplate|agent/)?.[0]])).toEqual([
    [400, "urlTemplate"],
    [400, "agent"],
  ]);
  const late = await request({ promptId });
  await app.send("PATCH", `/api/v1/prompts/${promptId}`, { body: { status: "archived" } });
  await advanceBisects(app.service.ctx);
  expect(await get(late.body.id)).toMatchObject({ status: "stopped", stopReason: "refused", result: null });
});
