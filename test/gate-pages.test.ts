import { expect, test } from "bun:test";
import { advanceGates } from "../src/gates/progress.ts";
import { createPrompt } from "../src/prompts/prompts.ts";
import { noisy, testApp } from "./support/app.ts";
import { signedIn } from "./support/people.ts";
import { finishRuns } from "./support/reports.ts";

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
  for (const list of ["/gates", `/gates?promptId=${id}`])
    expect((await person.get(list)).body).toContain(`href="${path}"`);
  expect((await person.get(`/prompts/${id}`)).body).toContain(`href="/gates?promptId=${id}"`);
  const foreign = await signedIn(app, { org: app.b.org, email: "b@example.com" });
  expect([(await foreign.get(path)).status, (await foreign.get("/gates")).body.includes(gate.id)]).toEqual([
    404,
    false,
  ]);
});
