import { expect, test } from "bun:test";
import { measureClean, measureKinds } from "../truth/foreign/measure.ts";
import { rounds } from "../truth/foreign/rounds.ts";
import { measureGains } from "../truth/gains.ts";
import { goalFiles, judgeFindings, listUnproven, locate, readGoals } from "../truth/goals.ts";
import { measureRecall } from "../truth/truth.ts";

test("planted defects are found, clean sites have none, and each defect costs points", async () => {
  const { recall, falls, clean } = await measureRecall(3);
  const missed = [...recall.values()].flatMap((tally) => tally.missed);
  const planted = [...recall.values()].reduce((sum, tally) => sum + tally.planted, 0);
  expect(planted).toBeGreaterThan(12);
  expect(missed.length / planted).toBeLessThanOrEqual(0.08);
  expect(clean.flatMap(({ inventions }) => inventions)).toEqual([]);
  expect(falls.fell / falls.added).toBeGreaterThanOrEqual(0.9);
}, 300_000);

test("there are enough goals about real docs, of every kind, with answers in the stated places", () => {
  const all = goalFiles.flatMap(readGoals);
  const share = (kind: string) => all.filter((goal) => goal.kind === kind).length / all.length;
  expect(all.length).toBeGreaterThanOrEqual(60);
  expect(new Set(all.map(({ corpus }) => corpus)).size).toBeGreaterThanOrEqual(8);
  expect([share("synonyms") > 0.28, share("none") > 0.28]).toEqual([true, true]);
  expect(listUnproven(all)).toEqual([]);
});

test("every finding of medium or higher severity about real docs was reviewed, and at most 5% are false", async () => {
  const goals = readGoals("tuning").filter(
    ({ corpus }, at, all) => all.findIndex((each) => each.corpus === corpus) === at,
  );
  const { true: right, false: wrong, unknown } = judgeFindings(await locate(goals));
  expect(unknown).toEqual([]);
  expect(right.length).toBeGreaterThan(5);
  expect(wrong.length).toBeLessThanOrEqual(0.05 * (right.length + wrong.length));
}, 300_000);

test("recommended fixes bring the gain that they promise", async () => {
  const gains = await measureGains(10);
  expect(gains.length).toBeGreaterThanOrEqual(9);
  expect(gains.filter(({ kept }) => !kept).length).toBeLessThanOrEqual(1);
}, 300_000);

const foreignKinds = ["dead_link", "redirect_loop", "wall_401", "api_path", "bracket_bash", "robots_block"];

for (const round of rounds)
  test(`on foreign sites, promised kinds are found and clean sites have no findings (${round.name} round)`, async () => {
    const outcomes = await measureKinds(round, foreignKinds, 1);
    expect(outcomes.filter(({ found }) => !found)).toEqual([]);
    expect(outcomes.length).toBe(foreignKinds.length);
    expect(await measureClean(round, [1, 2])).toMatchObject({ sites: 2, findings: 0 });
  }, 300_000);
