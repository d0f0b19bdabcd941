import { expect, test } from "bun:test";
import { advanceExperiments } from "../src/experiments/progress.ts";
import { repeatDue } from "../src/experiments/self-comparisons.ts";
import { driftOf } from "../src/stats/aa-drift.ts";
import type { NullBlock } from "../src/stats/aa-rate.ts";
import { noisy, testApp } from "./support/app.ts";
import { normal, randomOf } from "./support/random.ts";
import { finishRuns } from "./support/reports.ts";

const design = { runs: 5, level: 0.05 };
const blocksOf = (random: () => number, n: number, sd: number, change = 0): NullBlock[] =>
  Array.from({ length: n }, () => ({ a: [normal(random, 70, sd)], b: [normal(random, 70 + change, sd)] }));

test("a grader that became noisy is seen within 20 blocks, and one that favors an arm too", () => {
  const seeds = Array.from({ length: 40 }, (_, i) => randomOf(i + 1));
  const found = (sd: number, change = 0) =>
    seeds.map((random) => driftOf(blocksOf(random, 20, sd, change), blocksOf(random, 20, 4), design));
  expect(found(14).filter((kind) => kind === "spread").length).toBeGreaterThanOrEqual(39);
  expect(found(4, 15).filter((kind) => kind === "rate").length).toBeGreaterThanOrEqual(39);
  expect(found(4).filter((kind) => kind !== null).length).toBeLessThanOrEqual(5);
});

const weekMs = 7 * 24 * 3600_000;
let now = Date.UTC(2026, 8, 1);
const app = testApp({ agents: noisy, now: () => now });
const arms = [{ name: "baseline" }, { name: "baseline again" }];
const createPrompt = async (agent: string) => {
  const body = { text: "Read https://docs.example.com/guide", agent };
  return (await app.send("POST", "/api/v1/prompts", { body })).body.id as string;
};
const request = async (body: object) => await app.send("POST", "/api/v1/experiments", { body: { arms, ...body } });
const list = async () => (await app.send("GET", "/api/v1/experiments")).body;
const alarms = async () =>
  (await app.send("GET", "/api/v1/inbox")).body.problems.filter(
    ({ kind }: { kind: string }) => kind === "false_alarms",
  );

test("a comparison with itself is repeated when it is due, and tells of a noisy grader until a later one is as before", async () => {
  const promptId = await createPrompt("noisy");
  const random = randomOf(7);
  const finish = async (sd: number) => {
    finishRuns(app, () => Math.round(normal(random, 60, sd)));
    await advanceExperiments(app.service.ctx);
  };
  const first = await request({ promptIds: [promptId], repeats: 20, everyWeeks: 2 });
  expect([first.status, first.body.everyWeeks]).toEqual([201, 2]);
  await finish(3);
  expect(await alarms()).toEqual([]);
  await repeatDue(app.service.ctx);
  expect(await list()).toHaveLength(1);

  now += 2 * weekMs;
  await repeatDue(app.service.ctx);
  await repeatDue(app.service.ctx);
  expect((await list()).map(({ everyWeeks }: { everyWeeks: number | null }) => everyWeeks)).toEqual([2, null]);
  await finish(12);
  const [second] = await list();
  expect(await alarms()).toMatchObject([{ drift: "spread", experimentId: second.id, prompt: { id: promptId } }]);

  now += 2 * weekMs;
  await repeatDue(app.service.ctx);
  await finish(3);
  expect(await alarms()).toEqual([]);
  const [third] = await list();
  const stopped = await app.send("POST", `/api/v1/experiments/${third.id}/cancel`);
  expect(stopped.body).toMatchObject({ status: "completed", everyWeeks: null });
  now += 2 * weekMs;
  await repeatDue(app.service.ctx);
  expect(await list()).toHaveLength(3);
});

test("one difference between two runs of the explorer is a problem, and other experiments are not repeated", async () => {
  const promptId = await createPrompt("explorer");
  const { body } = await request({ promptIds: [promptId] });
  let score = 80;
  finishRuns(app, () => score++);
  await advanceExperiments(app.service.ctx);
  expect(await alarms()).toMatchObject([{ drift: "explorer", experimentId: body.id }]);
  await request({ promptIds: [promptId] });
  finishRuns(app, () => 80);
  await advanceExperiments(app.service.ctx);
  expect(await alarms()).toEqual([]);
  const edits = { hidden: ["https://docs.example.com/llms.txt"], replacements: [] };
  const refused = await request({ promptIds: [promptId], arms: [arms[0], { name: "b", edits }], everyWeeks: 1 });
  expect([refused.status, refused.body.detail]).toEqual([400, expect.stringContaining("everyWeeks")]);
});
