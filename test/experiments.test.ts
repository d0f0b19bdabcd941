import { expect, test } from "bun:test";
import type { AgentEvent } from "../src/agents/agent.ts";
import { unmetText } from "../src/experiments/labels.ts";
import { advanceExperiments } from "../src/experiments/progress.ts";
import type { Experiment } from "../src/experiments/schema.ts";
import { getRunRow } from "../src/runs/run-row.ts";
import { noisy, testApp } from "./support/app.ts";
import { signedIn } from "./support/people.ts";
import { endRun, finishRuns, niceGrade, storeSession } from "./support/reports.ts";

const app = testApp({ agents: noisy });
const { send, service, db } = app;

const createPrompt = async (more: object = {}) =>
  (
    await send("POST", "/api/v1/prompts", {
      body: { text: "Read https://docs.example.com/guide", agent: "noisy", ...more },
    })
  ).body.id as string;
const promptIds = [await createPrompt(), await createPrompt()];
const hidden = { hidden: ["https://docs.example.com/llms.txt"], replacements: [] };
const request = (body: object) => send("POST", "/api/v1/experiments", { body: { promptIds, ...body } });
const get = async (id: string): Promise<Experiment> => (await send("GET", `/api/v1/experiments/${id}`)).body;
const met = (score: number) => ({ ...niceGrade, score, outcome: "succeeded" }) as const;
const missed = (score: number) => ({ ...niceGrade, score, outcome: "goal_not_met" }) as const;
const armsOf = (experimentId: string) =>
  db.$client
    .query(
      "select e.arm, e.block, r.prompt_id from experiment_runs e join runs r on r.id = e.run_id where e.experiment_id = ? order by r.id",
    )
    .values(experimentId) as [string, number, string][];

const runIdsOf = (experimentId: string) =>
  db.$client
    .query("select run_id from experiment_runs where experiment_id = ? order by run_id")
    .values(experimentId)
    .flat() as string[];
const http = (url: string): AgentEvent => ({
  ...{
    type: "http",
    id: null,
    method: "GET",
    url,
    mappedUrl: null,
    status: 200,
    ms: 5,
    bytes: 9,
    contentType: "text/plain",
  },
  ...{ provenance: "link", foundOn: null, purpose: "task", error: null },
});
const storeEvents = (runId: string, events: AgentEvent[]) =>
  storeSession(service.ctx, { orgId: app.a.org, runId, attempt: 1 }, events);

test("arms are interleaved at random, and their difference is found", async () => {
  const arms = [{ name: "baseline" }, { name: "no llms.txt", edits: hidden }];
  const asked = await request({ arms, repeats: 6, seed: 7 });
  expect([asked.status, asked.body.progress]).toEqual([201, { ended: 0, of: 24 }]);
  const order = armsOf(asked.body.id);
  // Each block has both arms of its prompt, one after the other.
  for (let i = 0; i < order.length; i += 2) {
    expect(order[i]?.slice(1)).toEqual(order[i + 1]?.slice(1) as []);
    expect(new Set([order[i]?.[0], order[i + 1]?.[0]]).size).toBe(2);
  }
  const firsts = order.filter((_, i) => i % 2 === 0).map(([arm]) => arm);
  expect(new Set(firsts).size).toBe(2);

  const noise = [0, 1, -1, 2, -2, 0];
  const nth = new Map<string, number>();
  finishRuns(app, (run) => {
    const i = (nth.get(run.evalRequestId) ?? -1) + 1;
    nth.set(run.evalRequestId, i);
    return run.editsDigest === null ? met(80 + (noise[i] ?? 0)) : missed(60 + (noise[i] ?? 0));
  });
  await advanceExperiments(service.ctx);
  const ended = await get(asked.body.id);
  expect([ended.status, ended.progress]).toEqual(["completed", { ended: 24, of: 24 }]);
  const [contrast] = ended.analysis.contrasts;
  expect(contrast).toMatchObject({ arm: "no llms.txt", verdict: "worse", contaminated: 0 });
  expect(contrast?.overall.score).toMatchObject({ delta: -20, n: 12 });
  expect(contrast?.overall.success).toMatchObject({ base: { n: 12, of: 12 }, arm: { n: 0, of: 12 }, difference: -1 });
  expect(ended.analysis.uninformative).toEqual([]);
  const page = (await (await signedIn(app)).get(`/experiments/${ended.id}`)).body;
  expect(page).toContain(unmetText(ended.analysis, "no llms.txt") ?? "no notice");
});

test("a control that met the treatment of another arm is excluded and counted", async () => {
  const url = "https://skills.example.com/upload/SKILL.md";
  const arms = [{ name: "baseline" }, { name: "+skill", edits: hidden, markers: [url] }];
  const { body } = await request({ promptIds: [promptIds[0]], arms, repeats: 12 });
  // One control finds the skill by a link. What it says about it doesn't count.
  const [control, talker] = armsOf(body.id).flatMap(([arm], i) =>
    arm === "baseline" ? [runIdsOf(body.id)[i] ?? ""] : [],
  );
  storeEvents(control ?? "", [http(url)]);
  storeEvents(talker ?? "", [{ type: "message", text: `I read ${url}` }]);
  finishRuns(app, () => met(80));
  await advanceExperiments(service.ctx);
  const ended = await get(body.id);
  expect(ended.analysis.arms.map(({ arm, n, contaminated }) => [arm, n, contaminated])).toEqual([
    ["baseline", 11, 1],
    ["+skill", 12, 0],
  ]);
  expect(ended.analysis.contrasts[0]).toMatchObject({ contaminated: 1, verdict: "not_distinguishable" });
});

test("with many contaminated controls, the arms are not comparable", async () => {
  const url = "https://mcp.example.com/mcp";
  const arms = [{ name: "baseline" }, { name: "+MCP", edits: hidden, markers: [`${url}*`] }];
  const { body } = await request({ promptIds: [promptIds[0]], arms, repeats: 6 });
  for (const [i, [arm, block]] of armsOf(body.id).entries())
    if (arm === "baseline" && block < 3) storeEvents(runIdsOf(body.id)[i] ?? "", [http(`${url}/sse`)]);
  finishRuns(app, (run) => met(run.editsDigest === null ? 50 : 90));
  await advanceExperiments(service.ctx);
  const { analysis } = await get(body.id);
  expect(analysis.contrasts[0]).toMatchObject({ contaminated: 3, verdict: "not_comparable" });
});

test("a budget stops an experiment before the repeat that would exceed it", async () => {
  const arms = [{ name: "baseline" }, { name: "no llms.txt", edits: hidden }];
  const { body } = await request({ promptIds: [promptIds[0]], arms, repeats: 10, budgetUsd: 1 });
  expect(body.progress.of).toBe(2);
  for (let i = 0; i < 12; i++) {
    finishRuns(app, () => met(70), 0.15);
    db.$client.run(
      "update runs set spent_usd = 0.15 where id in (select run_id from experiment_runs where experiment_id = ?)",
      [body.id],
    );
    await advanceExperiments(service.ctx);
  }
  const ended = await get(body.id);
  expect(ended).toMatchObject({ status: "stopped", stopReason: "budget", progress: { ended: 6, of: 6 } });
  expect(ended.spentUsd).toBeCloseTo(0.9);
});

test("later repeats use the prompt as it was when the experiment began", async () => {
  const promptId = await createPrompt();
  const arms = [{ name: "baseline" }, { name: "no llms.txt", edits: hidden }];
  const { body } = await request({ promptIds: [promptId], arms, repeats: 2, budgetUsd: 9 });
  await send("PATCH", `/api/v1/prompts/${promptId}`, { body: { text: "Read https://other.example.com" } });
  const texts = new Set<string>();
  for (let i = 0; i < 3; i++) {
    finishRuns(app, (run) => {
      texts.add(run.task.text);
      return met(70);
    });
    await advanceExperiments(service.ctx);
  }
  expect([...texts]).toEqual(["Read https://docs.example.com/guide"]);
  expect(await get(body.id)).toMatchObject({ status: "completed", progress: { ended: 4, of: 4 } });
});

test("runs of arms that change something do not count for their prompt", async () => {
  const promptId = await createPrompt();
  const provider = await send("POST", "/api/v1/providers", {
    body: { name: "Other", docsUrl: "https://other.example.com/docs" },
  });
  const arms = [{ name: "baseline" }, { name: "competitor", providerId: provider.body.id }];
  const { body } = await request({ promptIds: [promptId], arms, repeats: 1 });
  const starts: string[][] = [];
  finishRuns(app, (run) => {
    starts.push(run.task.startUrls);
    return run.editsDigest === null ? met(70) : met(30);
  });
  await advanceExperiments(service.ctx);
  expect(starts.sort()).toEqual([
    ["https://docs.example.com/guide"],
    ["https://other.example.com/docs", "https://docs.example.com/guide"],
  ]);
  expect((await send("GET", `/api/v1/prompts/${promptId}`)).body.latestScore ?? 70).toBe(70);
  expect((await get(body.id)).analysis.contrasts[0]?.verdict).toBe("insufficient_data");
});

test("an agent that always does the same makes one run per arm, whose difference is exact", async () => {
  const promptId = await createPrompt({ agent: "explorer" });
  const arms = [{ name: "baseline" }, { name: "no llms.txt", edits: hidden }];
  const { body } = await request({ promptIds: [promptId], arms, repeats: 5 });
  expect(body.repeats).toBe(1);
  finishRuns(app, (run) => met(run.editsDigest === null ? 80 : 72.5));
  await advanceExperiments(service.ctx);
  const { analysis } = await get(body.id);
  expect(analysis.contrasts[0]).toMatchObject({ verdict: "worse", overall: { exact: true } });
  expect(analysis.contrasts[0]?.overall.score).toMatchObject({ delta: -7.5, p: null });
});

test("an experiment can be cancelled once, and keeps what its ended runs show", async () => {
  const arms = [{ name: "baseline" }, { name: "no llms.txt", edits: hidden }];
  const { body } = await request({ arms, repeats: 2 });
  const cancelled = await send("POST", `/api/v1/experiments/${body.id}/cancel`);
  expect([cancelled.status, cancelled.body.status, cancelled.body.stopReason]).toEqual([200, "stopped", "cancelled"]);
  expect((await send("POST", `/api/v1/experiments/${body.id}/cancel`)).status).toBe(409);
  expect((await send("GET", "/api/v1/experiments")).body[0]).toMatchObject({ id: body.id, status: "stopped" });
});

test("a cancelled experiment keeps a frozen analysis, its cost and what its ended runs met", async () => {
  const arms = [{ name: "baseline" }, { name: "no llms.txt", edits: hidden }];
  const { body } = await request({ promptIds: [promptIds[0]], arms, repeats: 6 });
  const ids = runIdsOf(body.id);
  // The last block is still running.
  for (const id of ids.slice(0, 10)) {
    const run = getRunRow(service.ctx, app.a.org, id);
    storeEvents(id, [http("https://docs.example.com/llms.txt")]);
    endRun(app, run, met(run.editsDigest === null ? 80 : 60));
  }
  db.$client.run("update runs set spent_usd = 0.5 where id in (select value from json_each(?))", [JSON.stringify(ids)]);
  const cancelled = await send("POST", `/api/v1/experiments/${body.id}/cancel`);
  expect(cancelled.body).toMatchObject({ status: "stopped", stopReason: "cancelled", spentUsd: 6 });
  const [row] = db.$client.query("select analysis, spent_usd from experiments where id = ?").values(body.id) as [
    string,
    number,
  ][];
  expect(JSON.parse(row?.[0] ?? "null")).toEqual(cancelled.body.analysis);
  expect(cancelled.body.analysis.contrasts[0].overall.score).toMatchObject({ delta: -20, n: 5 });
  const unnoted = "select count(*) from experiment_runs where experiment_id = ? and treatment is null";
  expect(db.$client.query(unnoted).values(body.id)[0]).toEqual([0]);
});

test("comparing the base with itself says how often a gate fails without a reason", async () => {
  const arms = [{ name: "baseline" }, { name: "baseline again" }];
  const { body } = await request({ promptIds: [promptIds[0]], arms, repeats: 20 });
  const armByRun = new Map(armsOf(body.id).map(([arm], i) => [runIdsOf(body.id)[i], arm]));
  // The last ten blocks differ, as if the grader favored an arm.
  const nth = new Map<string, number>();
  finishRuns(app, ({ id }) => {
    const arm = armByRun.get(id) ?? "";
    const i = (nth.get(arm) ?? -1) + 1;
    nth.set(arm, i);
    return met(70 + (i % 5) + (i >= 10 && arm !== "baseline" ? 20 : 0));
  });
  await advanceExperiments(service.ctx);
  const { falseAlarms } = await get(body.id);
  expect(falseAlarms).toMatchObject({ runsPerSide: 5, gates: 4, alarms: 2, rate: { value: 0.5 } });
  expect(falseAlarms?.excessP).toBeLessThan(0.05);
  const gate = await send("POST", "/api/v1/gates", { body: { promptId: promptIds[0], minScore: 60 } });
  const { body: page } = await (await signedIn(app)).get(`/gates/${gate.body.id}`);
  expect(page).toContain(`/experiments/${body.id}`);
});

test("the cost is estimated before anything runs", async () => {
  const arms = [{ name: "baseline" }, { name: "no llms.txt", edits: hidden }];
  const body = { promptIds, arms, repeats: 3 };
  expect((await send("POST", "/api/v1/experiments/estimate", { body })).body).toEqual({
    runs: 12,
    repeats: 3,
    usd: 0,
    maxUsd: 0,
  });
});

test("another organization sees no experiment", async () => {
  const asB = { headers: { authorization: `Bearer ${app.b.key}` } };
  const [{ id }] = (await send("GET", "/api/v1/experiments")).body;
  expect((await send("GET", "/api/v1/experiments", asB)).body).toEqual([]);
  expect((await send("GET", `/api/v1/experiments/${id}`, asB)).status).toBe(404);
  expect((await send("POST", `/api/v1/experiments/${id}/cancel`, asB)).status).toBe(404);
});

test.each([
  [{ arms: [{ name: "a" }, { name: "a", agent: "noisy" }] }, "arms.1.name"],
  [{ arms: [{ name: "a" }, { name: "b" }, { name: "c" }] }, "arms.1"],
  [{ arms: [{ name: "a" }, { name: "b", agent: "nobody" }] }, "nobody"],
  [{ arms: [{ name: "a" }, { name: "b", edits: { hidden: ["llms.txt"], replacements: [] } }] }, "edits.hidden.0"],
  [{ arms: [{ name: "a" }, { name: "b", providerId: crypto.randomUUID() }] }, "provider"],
  [
    { arms: [{ name: "a" }, { name: "b", workspace: { skills: { archive: crypto.randomUUID() } } }] },
    "workspace.skills.archive",
  ],
  [{ arms: [{ name: "a" }, { name: "b", agent: "explorer" }], tag: "x" }, "promptIds or tag"],
])("a design that can't be compared is refused by name: %j", async (body, name) => {
  const count = async () => Number((await send("GET", "/api/v1/experiments")).headers.get("x-total-count"));
  const before = await count();
  const refused = await request(body);
  expect([refused.status >= 400 && refused.status < 500, refused.body.detail]).toEqual([
    true,
    expect.stringContaining(name),
  ]);
  expect(await count()).toBe(before);
});

test("a form starts an experiment after its cost was shown, and its page has the numbers of the API", async () => {
  const person = await signedIn(app);
  const form = { promptId: promptIds[0] ?? "", llmsTxtOf: "https://docs.example.com/", repeats: "6" };
  expect((await person.post("/experiments/new", { promptId: promptIds[0] ?? "", repeats: "3" })).status).toBe(400);
  const estimated = await person.post("/experiments/new", { ...form, do: "estimate" });
  expect([estimated.status, estimated.body.includes("12 runs without cost")]).toEqual([200, true]);
  const started = await person.post("/experiments/new", form);
  expect(started.status).toBe(303);
  const id = started.location?.split("/").at(-1) ?? "";
  const noise = [0, 1, -1, 2, -2, 0];
  let n = 0;
  finishRuns(app, (run) => met((run.editsDigest === null ? 80 : 60) + (noise[n++ % 6] ?? 0)));
  await advanceExperiments(service.ctx);
  const { analysis } = await get(id);
  const score = analysis.contrasts[0]?.overall.score;
  const { body: page } = await person.get(`/experiments/${id}`);
  expect(page).toContain(`−${Math.abs(score?.delta ?? 0).toFixed(1)} points (−${Math.abs(score?.low ?? 0).toFixed(1)}`);
  const { body: csv } = await person.get(`/experiments/${id}/runs.csv`);
  const rows = String(csv)
    .trim()
    .split("\r\n")
    .slice(1)
    .map((line) => line.split(","));
  const meanOf = (arm: string) => {
    const scores = rows.filter((row) => row[2] === arm).map((row) => Number(row[3]));
    return scores.reduce((sum, each) => sum + each, 0) / scores.length;
  };
  expect(meanOf("no llms.txt") - meanOf("baseline")).toBeCloseTo(score?.delta ?? 0, 3);
  expect((await person.get("/experiments")).body).toContain(`/experiments/${id}`);
});

test("a form labels prompts by tag, sets template variables, replaces texts and withholds pages", async () => {
  const person = await signedIn(app);
  const text = "Find {{word}} at https://docs.example.com/guide";
  const should = await createPrompt({ text, tags: ["uploads"] });
  const shouldNot = await createPrompt({ text, tags: ["other"] });
  const start = async (form: Record<string, string>) => {
    const { status, location } = await person.post("/experiments/new", { repeats: "1", ...form });
    expect(status).toBe(303);
    return get(location?.split("/").at(-1) ?? "");
  };
  const edit = { editUrl: "https://docs.example.com/guide", editFind: "old", editReplacement: "new" };
  const labels = { shouldTag: "uploads", shouldNotTag: "other", triggerOf: "acme" };
  const labeled = await start({ ...edit, ...labels, templateArgs: "word=invoice" });
  expect(labeled.prompts.map(({ id, shouldTrigger }) => [id, shouldTrigger])).toEqual([
    [should, true],
    [shouldNot, false],
  ]);
  expect([labeled.triggerOf, labeled.arms[1]?.name, labeled.arms[1]?.edits?.replacements[0]?.find]).toEqual([
    ...["acme", "edited", "old"],
  ]);
  const texts = new Set<string>();
  finishRuns(app, ({ task }) => {
    texts.add(task.text);
    return met(70);
  });
  expect([...texts]).toEqual(["Find invoice at https://docs.example.com/guide"]);

  await send("POST", `/api/v1/prompts/${should}/run`, { body: { templateArgs: { word: "invoice" } } });
  finishRuns(app, () => met(70));
  const withheld = await start({ promptId: should, templateArgs: "word=invoice", withoutPages: "3" });
  // The page where runs start is never withheld.
  expect(withheld.arms.map(({ edits }) => edits?.hidden[0])).toEqual([
    undefined,
    "https://docs.example.com/quickstart",
  ]);
});
