import { expect, test } from "bun:test";
// @ts-expect-error The action is plain JavaScript.
import { ofGate } from "../src/action/summary.mjs";
import { advanceGates } from "../src/gates/progress.ts";
import { gateJunit, gateMarkdown } from "../src/gates/summary.ts";
import type { Grade } from "../src/grading/grade.ts";
import { createPrompt } from "../src/prompts/prompts.ts";
import { instantAgent, noisy, testApp } from "./support/app.ts";
import { signedIn } from "./support/people.ts";
import { finishRuns, niceGrade } from "./support/reports.ts";

test("a gate has a page with its verdict and both sides, reached from lists and its evaluations", async () => {
  const app = testApp({ agents: noisy });
  const { service, a } = app;
  const { id } = createPrompt(service.ctx, a.org, {
    title: "Upload",
    text: "https://docs.example.com",
    agent: "noisy",
  });
  const body = { promptId: id, urlMap: { "docs.example.com": "https://preview.example.com" }, runs: 5 };
  const { body: gate } = await app.send("POST", "/api/v1/gates", { body });
  const person = await signedIn(app, { role: "viewer" });
  const path = `/gates/${gate.id}`;
  expect(gate.pageUrl).toBe(app.baseUrl + path);
  expect((await person.get(path)).body).toContain('data-status="running"');
  for (let i = 0; i < 5; i++) {
    finishRuns(app, ({ urlMap }) => (Object.keys(urlMap).length > 0 ? 40 : 80));
    await advanceGates(service.ctx);
  }
  const done = (await person.get(path)).body;
  expect(done).toContain('data-status="failed"');
  expect(done).toContain("verdict-regressed");
  // The sentence of the verdict appears once.
  expect(done.split("a change needs at least")).toHaveLength(2);
  // Runs of both sides were requested in turn, and each evaluation is one group of the list.
  const groups = [...(await person.get("/runs")).body.matchAll(/data-eval="([^"]+)"/g)].map(([, of]) => of);
  expect([groups.length, new Set(groups).size]).toEqual([2, 2]);
  // The sentence isn't repeated after another reason either.
  const { body: low } = await app.send("POST", "/api/v1/gates", { body: { ...body, urlMap: {}, minScore: 95 } });
  finishRuns(app, () => 80);
  await advanceGates(service.ctx);
  const below = (await person.get(`/gates/${low.id}`)).body;
  expect(below).toContain('data-status="failed"');
  expect(below.split("a change needs at least").length).toBeLessThanOrEqual(2);
  expect(below).toContain("95");
  const [{ headRequestId, baseRequestId }] = gate.prompts;
  for (const evaluation of [headRequestId, baseRequestId]) {
    expect(done).toContain(`href="/evals/${evaluation}"`);
    expect((await person.get(`/evals/${evaluation}`)).body).toContain(`href="${path}"`);
  }
  // The reasons for the change of exactly these evaluations.
  const [, why = ""] = /href="([^"]+\/why\?[^"]+)"/.exec(done) ?? [];
  expect(why.replaceAll("&amp;", "&")).toBe(`/prompts/${id}/why?base=${baseRequestId}&head=${headRequestId}`);
  const reasons = await person.get(why.replaceAll("&amp;", "&"));
  expect(reasons.status).toBe(200);
  for (const number of ["80.0", "40.0", "−40.0 points"]) expect(reasons.body).toContain(number);
  for (const list of ["/gates", `/gates?promptId=${id}`])
    expect((await person.get(list)).body).toContain(`href="${path}"`);
  expect((await person.get(`/prompts/${id}`)).body).toContain(`href="/gates?promptId=${id}"`);
  const foreign = await signedIn(app, { org: app.b.org, email: "b@example.com" });
  expect([(await foreign.get(path)).status, (await foreign.get("/gates")).body.includes(gate.id)]).toEqual([
    404,
    false,
  ]);
});

/** The numbers of the row of a table that begins with "Score". */
const numbersOf = (row: string | undefined): number[] =>
  [
    ...(row ?? "")
      .replaceAll("−", "-")
      .replaceAll("\\", "")
      .matchAll(/(?<=[>|]\s*)[+-]?\d+(?:\.\d+)?/g),
  ].map(([number]) => Number(number));

test("the scores of a gate and their change add up on every surface, for the explorer without Efficiency", async () => {
  const app = testApp({ agents: { explorer: instantAgent } });
  const graded = (score: number, quality: number): Grade => ({
    ...niceGrade,
    ...{ score, frictions: [], recommendations: [] },
    dimensions: [
      { name: "Docs discoverability", weight: 0.2, score: 92, grade: "A-", parts: [], unmeasured: [] },
      { name: "Docs quality", weight: 0.15, score: quality, grade: "A-", parts: [], unmeasured: [] },
      { name: "Efficiency", weight: 0.1, score: quality > 90 ? 81 : 98, grade: "B", parts: [], unmeasured: [] },
    ],
  });
  const { id } = createPrompt(app.service.ctx, app.a.org, { agent: "explorer", text: "https://docs.example.com" });
  const body = { promptId: id, urlMap: { "docs.example.com": "https://preview.example.com" } };
  const { body: requested } = await app.send("POST", "/api/v1/gates", { body });
  finishRuns(app, ({ urlMap }) => (Object.keys(urlMap).length > 0 ? graded(84, 76.7) : graded(89.1, 92.1)));
  await advanceGates(app.service.ctx);
  const { body: gate } = await app.send("GET", `/api/v1/gates/${requested.id}`);
  expect([gate.status, gate.comparison.evidence.delta.value]).toEqual(["failed", -6.6]);
  const page = (await (await signedIn(app, { role: "viewer" })).get(`/gates/${gate.id}`)).body;
  const markdown = /\| Score.*/.exec(gateMarkdown(gate))?.[0];
  const junit = /\| Score.*/.exec(gateJunit(gate))?.[0];
  const scores = [...page.matchAll(/<td class="number"[^>]*>(\d+\.?\d*)[^<]*?(?:<|, single run)/g)].map(
    ([, score]) => score,
  );
  for (const row of [markdown, junit]) {
    const [base = 0, head = 0, change] = numbersOf(row);
    expect([row, Number((head - base).toFixed(1))]).toEqual([row, change ?? Number.NaN]);
  }
  const { base, head } = ofGate(gate);
  expect(Number((head - base).toFixed(1))).toBe(-6.6);
  expect(scores).toContain("92");
  expect(scores).toContain("85.4");
  // One name for each side on the whole page.
  expect(page).not.toMatch(/>(Before|After)\b/);
});
