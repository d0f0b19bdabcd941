import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { analyzeExperiment } from "../../src/experiments/analysis.ts";
import type { ArmRun } from "../../src/experiments/contrast.ts";
import { intervalText, meanText, ratioText, scoreText, shareText, successText } from "../../src/experiments/labels.ts";
import { advanceExperiments } from "../../src/experiments/progress.ts";
import { runsCsv } from "../../src/experiments/runs-csv.ts";
import type { Experiment, ExperimentRun, ExperimentSummary } from "../../src/experiments/schema.ts";
import { noisy, testApp } from "../support/app.ts";
import { signedIn } from "../support/people.ts";
import { normal, randomOf } from "../support/random.ts";
import { finishRuns, niceGrade } from "../support/reports.ts";

// Every number of an experiment is the same wherever it is shown, and R computes it from the exported runs.

const folder = mkdtempSync(join(tmpdir(), "evald-oracle-"));
afterAll(() => rmSync(folder, { recursive: true }));

const app = testApp({ agents: noisy });
const { send, service, db } = app;
const hidden = (page: string) => ({ hidden: [`https://docs.example.com/${page}`], replacements: [] });

/** A completed experiment of random results. Some runs failed, some were not judged, and some met the treatment of another arm. */
async function experimentOf(seed: number, prompts: number, repeats: number, arms: string[]): Promise<Experiment> {
  const promptIds: string[] = [];
  for (let i = 0; i < prompts; i++) {
    const body = { title: `Prompt ${i}`, text: "Read https://docs.example.com/guide", agent: "noisy" };
    promptIds.push((await send("POST", "/api/v1/prompts", { body })).body.id);
  }
  const half = Math.ceil(prompts / 2);
  const { status, body } = await send("POST", "/api/v1/experiments", {
    body: {
      ...{ promptIds, repeats, seed },
      arms: arms.map((name, i) => ({ name, ...(i > 0 && { edits: hidden(`page${i}`) }) })),
      triggering: { should: promptIds.slice(0, half), shouldNot: promptIds.slice(half) },
    },
  });
  expect([status, body.detail]).toEqual([201, undefined]);
  const random = randomOf(seed);
  const armOf = new Map(
    db.$client.query("select run_id, arm from experiment_runs where experiment_id = ?").values(body.id) as [
      string,
      string,
    ][],
  );
  finishRuns(app, ({ id, promptId }) => {
    const arm = arms.indexOf(armOf.get(id) ?? "");
    const prompt = promptIds.indexOf(promptId);
    if (random() < 0.04) return "sandbox_unavailable: scripted";
    const outcome = random() < 0.05 ? "not_judged" : random() < 0.3 + 0.2 * arm ? "succeeded" : "goal_not_met";
    const metrics = {
      ...niceGrade.metrics,
      costUsd: Math.exp(normal(random, 0, 0.5)),
      timeSeconds: 40 + 20 * random(),
    };
    return { ...niceGrade, outcome, metrics, score: normal(random, 50 + 4 * arm + prompt, 6) };
  });
  await advanceExperiments(service.ctx);
  // What the gateway would have seen.
  const note = db.$client.query("update experiment_runs set treatment = ? where run_id = ?");
  for (const [runId, arm] of armOf) {
    const triggered = arm === arms[0] ? null : { skills: random() < 0.6 ? ["uploads"] : [], mcpServers: [] };
    const met = random() < 0.03 ? (arms.find((each) => each !== arm) ?? null) : null;
    note.run(JSON.stringify({ offered: null, used: null, met, triggered }), runId);
  }
  // The experiment ends again, with these facts.
  db.$client.run("update experiments set status = 'running', completed_at = null, analysis = null where id = ?", [
    body.id,
  ]);
  await advanceExperiments(service.ctx);
  return (await send("GET", `/api/v1/experiments/${body.id}`)).body;
}

/** All numbers of a value by their place. */
function numbersOf(value: unknown, place = ""): [string, number][] {
  if (typeof value === "number") return [[place, value]];
  if (value === null || typeof value !== "object") return [];
  return Object.entries(value).flatMap(([name, each]) => numbersOf(each, `${place}/${name}`));
}

/** The numbers that R computes, from a result of evald. */
const comparable = ({ contrasts, arms, triggering }: Experiment["analysis"]) => ({
  contrasts: contrasts.map(({ arm, overall: { score, success, cost, seconds } }) => {
    const { delta, low, high, p, adjustedP } = score ?? {};
    const { n: _, ...costs } = cost ?? { n: 0 };
    const { n: __, ...times } = seconds ?? { n: 0 };
    const { base: ___, arm: ____, ...rates } = success ?? {};
    return { arm, score: { delta, low, high, p, adjustedP }, success: rates, cost: costs, seconds: times };
  }),
  arms: arms.map(({ arm, n, meanScore, interval, successes, judged, successInterval }) => ({
    ...{ arm, n, meanScore, low: interval?.low, high: interval?.high, successes, judged },
    ...{ successLow: successInterval?.low, successHigh: successInterval?.high },
  })),
  triggering: triggering.map(({ agent: _, wrong: __, ...each }) => each),
});

const person = await signedIn(app);
const exported = async (id: string): Promise<string> => String((await person.get(`/experiments/${id}/runs.csv`)).body);
const runsOf = async (id: string): Promise<ExperimentRun[]> =>
  (await send("GET", `/api/v1/experiments/${id}/runs?limit=1000`)).body;

const designs: [string, number, number, number, string[]][] = [
  ["signs of the prompts", 5, 8, 4, ["baseline", "a", "b"]],
  ["signs of the blocks", 6, 3, 5, ["baseline", "a", "b", "c"]],
  ["signs of the blocks and t test of the prompts", 7, 6, 2, ["baseline", "a"]],
];

test.if(Bun.which("Rscript") !== null).each(designs)(
  "R computes the same numbers from the export, by the %s",
  async (_, seed, prompts, repeats, arms) => {
    const experiment = await experimentOf(seed, prompts, repeats, arms);
    const file = join(folder, `${seed}.csv`);
    await Bun.write(file, await exported(experiment.id));
    const script = join(import.meta.dir, "..", "oracle", "experiment.R");
    const byR = numbersOf(await Bun.$`Rscript ${script} ${file} ${arms}`.json());

    // Before rounding, to 1e-9.
    const runs = (await runsOf(experiment.id)) as ArmRun[];
    const design = { base: arms[0] ?? "", arms, seed, isDeterministic: false };
    const exact = numbersOf(comparable(analyzeExperiment(design, runs) as Experiment["analysis"]));
    expect(byR.map(([place]) => place).sort()).toEqual(exact.map(([place]) => place).sort());
    expect(byR.length).toBeGreaterThan(30);
    const ours = new Map(exact);
    expect(byR.filter(([place, value]) => !(Math.abs(value - (ours.get(place) ?? Number.NaN)) < 1e-9))).toEqual([]);

    // As the API shows them.
    const shown = new Map(numbersOf(comparable(experiment.analysis)));
    const digits = (value: number) => (value > 0 && value < 0.00005 ? Number(value.toPrecision(1)) : value);
    const differing = byR.filter(
      ([place, value]) => !(Math.abs(digits(value) - (shown.get(place) ?? Number.NaN)) < 0.500001e-4),
    );
    expect(differing).toEqual([]);
  },
  20_000,
);

test("page, API and export have the same numbers", async () => {
  const experiment = await experimentOf(8, 2, 6, ["baseline", "a", "b"]);
  const { analysis, id } = experiment;
  const runs = await runsOf(id);
  expect(runsCsv(runs)).toBe(await exported(id));
  const body = String((await person.get(`/experiments/${id}`)).body);
  const texts = [
    ...analysis.arms.flatMap((arm) => [meanText(arm), shareText(arm)]),
    ...analysis.contrasts.flatMap((contrast) => [
      ...[scoreText(contrast.overall), successText(contrast.overall)],
      ...[ratioText(contrast.overall.cost), ratioText(contrast.overall.seconds)],
    ]),
    ...analysis.triggering.flatMap(({ precision, recall, f1 }) => [precision, recall, f1].map(intervalText)),
  ];
  expect(texts.filter((text) => !body.includes(text))).toEqual([]);
  const listed: ExperimentSummary[] = (await send("GET", "/api/v1/experiments")).body;
  const verdicts = analysis.contrasts.map(({ arm, verdict }) => ({ arm, verdict }));
  expect(listed.find((each) => each.id === id)?.verdicts).toEqual(verdicts);
});
