import { expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import type { Agent } from "../src/agents/agent.ts";
import { runs } from "../src/db/tables/runs.ts";
import type { Matrix } from "../src/matrix/schema.ts";
import { standingsOf } from "../src/matrix/standings.ts";
import { medianInterval, welch } from "../src/stats/estimates.ts";
import { welchTest } from "../src/stats/hypothesis-tests.ts";
import { testApp } from "./support/app.ts";
import { signedIn } from "./support/people.ts";
import { finishRuns, niceGrade } from "./support/reports.ts";

const agent = (id: string): Agent => ({
  describe: () => ({ id, version: "1.0", model: null, kind: "rules" }),
  preflight: () => [],
  async *run() {
    yield { type: "end", outcome: "not_judged", reason: "Done." };
  },
});
const ids = ["amber", "blue", "coral"];
let time = Date.UTC(2026, 10, 2, 12);
const app = testApp({ now: () => time, agents: Object.fromEntries(ids.map((id) => [id, agent(id)])) });
const { send } = app;
const get = async (path: string): Promise<Matrix> => (await send("GET", path)).body;
const create = async (title: string, more: object = {}): Promise<string> =>
  (await send("POST", "/api/v1/prompts", { body: { title, text: "Upload a file. https://docs.example.com", ...more } }))
    .body.id;

type Ends = Record<string, (number | string)[]>;

/** Runs a prompt as often as each agent has ends, and ends its runs with these scores or failures. Returns the last evaluation. */
async function run(promptId: string, ends: Ends) {
  let evalRequestId = "";
  for (const [agent, each] of Object.entries(ends)) {
    for (const _ of each) {
      const path = `/api/v1/prompts/${promptId}/run`;
      evalRequestId = (await send("POST", path, { body: { urlMap: {}, agent } })).body.evalRequestId;
    }
    const left = [...each];
    finishRuns(app, () => left.shift() ?? 0);
  }
  return evalRequestId;
}
const around = (mean: number) => [mean - 1, mean + 1, mean - 2, mean + 2, mean];
const cellsOf = (matrix: Matrix, promptId: string) =>
  matrix.prompts
    .find((row) => row.promptId === promptId)
    ?.cells.map((cell) => cell && [cell.n, cell.score?.mean ?? null, cell.standing]);

test("each cell has the results of one agent on one prompt, with what is best, tied, missing or too little", async () => {
  const tags = ["cells"];
  const clear = await create("Clear", { tags });
  const close = await create("Close", { tags });
  const few = await create("Few", { tags });
  const failing = await create("Failing", { tags });
  const never = await create("Never run", { tags });
  await run(clear, { amber: around(50), blue: around(80), coral: around(60) });
  await run(close, { amber: around(70), blue: around(72) });
  await run(few, { amber: [90, 91], blue: around(50) });
  await run(failing, { amber: ["timeout: too slow", "infrastructure: down"] });
  const matrix = await get("/api/v1/matrix?tag=cells");
  expect(matrix.agents.map(({ agent }) => agent)).toEqual(ids);
  expect(matrix.prompts.map(({ promptId }) => promptId)).toEqual([never, failing, few, close, clear]);
  expect(cellsOf(matrix, clear)).toEqual([
    [5, 50, "behind"],
    [5, 80, "best"],
    [5, 60, "behind"],
  ]);
  // 2 points are less than what matters, and one agent never ran.
  expect(cellsOf(matrix, close)).toEqual([[5, 70, "tied"], [5, 72, "tied"], null]);
  expect(cellsOf(matrix, few)).toEqual([[2, 90.5, "too_few_runs"], [5, 50, "too_few_runs"], null]);
  expect(cellsOf(matrix, failing)).toEqual([[0, null, null], null, null]);
  expect(matrix.prompts[1]?.cells[0]).toMatchObject({ infraFailures: 1, successRate: { value: 0, of: 1 } });
  expect(cellsOf(matrix, never)).toEqual([null, null, null]);
  const [cell] = matrix.prompts[4]?.cells ?? [];
  expect([cell?.score, cell?.seconds?.value, cell?.scope]).toEqual([{ mean: 50, low: 48, high: 52 }, 4.2, "goal"]);
});

test("agents are paired by prompt: easy prompts that only one of them ran don't count for it", async () => {
  const tags = ["pairs"];
  const levels = [10, 30, 50, 70, 60, 40];
  for (const [i, level] of levels.entries()) {
    const id = await create(`Pair ${i}`, { tags });
    await run(id, { amber: [level + 10 + (i % 2), level + 10], blue: [level, level + (i % 3)] });
  }
  for (const i of [1, 2, 3]) await run(await create(`Easy ${i}`, { tags }), { blue: around(95) });
  const { agents, pairs } = await get("/api/v1/matrix?tag=pairs");
  expect(agents.map(({ agent, prompts, results }) => [agent, prompts, results.standing])).toEqual([
    ["amber", 6, "best"],
    ["blue", 9, "behind"],
  ]);
  // Although its own mean is higher.
  expect(agents[1]!.results.score!.mean).toBeGreaterThan(agents[0]!.results.score!.mean);
  expect(pairs).toMatchObject([{ agents: [0, 1], prompts: 6, delta: { value: -9.8 } }]);
  expect(pairs[0]!.delta.high!).toBeLessThan(-5);
  expect(pairs[0]!.pHolm).toBeLessThan(0.001);
});

test("scores of other scopes are neither compared nor combined", async () => {
  const tags = ["scopes"];
  const id = await create("Scopes", { tags });
  const other = await create("Other scope", { tags });
  await run(id, { amber: around(60), blue: around(60) });
  for (let i = 0; i < 5; i++)
    await send("POST", `/api/v1/prompts/${other}/run`, { body: { urlMap: {}, agent: "amber" } });
  finishRuns(app, () => ({ ...niceGrade, scope: "docs_only", grade: null, score: 99 }));
  await run(other, { blue: around(60) });
  const matrix = await get("/api/v1/matrix?tag=scopes");
  expect(cellsOf(matrix, other)).toEqual([
    [5, 99, "not_comparable"],
    [5, 60, "not_comparable"],
  ]);
  const [amber, blue] = matrix.agents;
  expect([amber?.prompts, amber?.otherPrompts, blue?.prompts, blue?.otherPrompts]).toEqual([1, 1, 2, 0]);
  expect([amber?.results.score?.mean, matrix.pairs.map(({ prompts }) => prompts)]).toEqual([60, [1]]);
});

test("an evaluation, a period and a page of prompts can be chosen, as JSON or CSV, in REST and on a page", async () => {
  const tags = ["filters"];
  const old = await create("=Old", { tags });
  await run(old, { amber: [10] });
  time += 40 * 86_400_000;
  const fresh = await create("Fresh", { tags, agents: [{ agent: "amber" }, { agent: "blue" }] });
  const { evalRequestId } = (await send("POST", `/api/v1/prompts/${fresh}/run`, { body: { urlMap: {} } })).body;
  const unfinished = await get(`/api/v1/matrix?evalRequestId=${evalRequestId}`);
  expect([unfinished.unfinished, unfinished.agents]).toEqual([2, []]);
  finishRuns(app, ({ agent }) => (agent === "amber" ? 40 : "timeout: too slow"));
  const ofEval = await get(`/api/v1/matrix?evalRequestId=${evalRequestId}`);
  expect([ofEval.total, ofEval.since, cellsOf(ofEval, fresh)]).toEqual([
    1,
    null,
    [
      [1, 40, null],
      [0, null, null],
    ],
  ]);
  expect(cellsOf(await get("/api/v1/matrix?tag=filters"), old)).toEqual([null, null]);
  const since = await get("/api/v1/matrix?tag=filters&since=2026-11-01&offset=1&limit=1");
  expect([since.total, since.prompts.map(({ promptId }) => promptId)]).toEqual([2, [old]]);
  expect(cellsOf(since, old)).toEqual([[1, 10, null], null]);
  const query = "tag=filters&since=2026-11-01&format=csv";
  const csv = await send("GET", `/api/v1/matrix?${query}`);
  expect(csv.headers.get("content-type")).toStartWith("text/csv");
  const lines = (csv.body as string)
    .trimEnd()
    .split("\r\n")
    .map((line) => line.split(","));
  expect(lines.length).toBe(1 + 2 + 4);
  expect(lines.at(-2)?.slice(0, 10)).toEqual([old, "'=Old", "amber", "", "test", "goal", "", "1", "0", "10"]);
  expect(lines.at(-1)?.slice(5)).toEqual(["", "", "0", "0", ...Array.from({ length: 13 }, () => "")]);
  const { status, body } = await send("GET", `/api/v1/matrix?tag=a&evalRequestId=${evalRequestId}`);
  expect([status, body.error]).toEqual([400, "bad_request"]);
  expect((await send("GET", `/api/v1/matrix?promptId=${evalRequestId}`)).status).toBe(404);

  const browser = await signedIn(app);
  const page = (await browser.get("/matrix?tag=filters&since=2026-11-01")).body;
  expect(page).toContain(`/runs?promptId=${old}&amp;agent=amber&amp;model=none"`);
  expect(page.match(/No runs/g)?.length).toBe(1);
  const html = (await browser.get(`/evals/${evalRequestId}`)).body;
  expect(html).toContain(`/matrix?evalRequestId=${evalRequestId}`);
  expect((await browser.get("/prompts?tag=filters")).body).toContain("/matrix?tag=filters");
  expect((await browser.get("/trends?tag=filters")).body).toContain("/matrix?tag=filters");
  expect((await browser.get(`/matrix/export?${query}`)).body).toStartWith("promptId,title,agent");
});

test("a cell leads to the runs of exactly its agent and model", async () => {
  const id = await create("Models", { tags: ["models"] });
  const runIds: string[] = [];
  for (const model of ["openai/small", "openai/large", "openai/large", null]) {
    const { runId } = (await send("POST", `/api/v1/prompts/${id}/run`, { body: { urlMap: {}, agent: "amber" } })).body;
    app.db.update(runs).set({ model }).where(eq(runs.id, runId)).run();
    runIds.push(runId);
  }
  finishRuns(app, () => 60);
  const browser = await signedIn(app);
  const page = (await browser.get("/matrix?tag=models")).body;
  const listed = [];
  for (const [, href = ""] of page.matchAll(/href="(\/runs\?promptId=[^"]+model=[^"]+)"/g))
    for (const sort of ["", "&sort=duration"]) {
      const list = (await browser.get(`${href.replaceAll("&amp;", "&")}${sort}`)).body;
      listed.push(runIds.map((runId) => list.includes(`/runs/${runId}`)));
    }
  const none = [false, false, false, true];
  const large = [false, true, true, false];
  const small = [true, false, false, false];
  expect(listed.toSorted()).toEqual([none, none, large, large, small, small]);
});

test("a leader is best only if it leads every other one", () => {
  const pair = (first: number, second: number, delta: number, p: number) => ({
    agents: [first, second] as [number, number],
    delta,
    p,
  });
  expect(standingsOf(2, [pair(0, 1, 9, 0.001)])).toEqual(["behind", "best"]);
  expect(standingsOf(2, [pair(0, 1, 4.9, 0.001)])).toEqual(["tied", "tied"]);
  // 0.02 is significant alone, but not as one of three.
  expect(standingsOf(3, [pair(0, 1, 9, 0.02), pair(0, 2, 1, 0.5), pair(1, 2, -8, 0.03)])).toEqual([
    "tied",
    "tied",
    "tied",
  ]);
  expect(standingsOf(3, [])).toEqual([null, null, null]);
});

test("Welch's p is the level at which its interval ends at 0, and the interval of a median covers 95%", () => {
  const [a, b] = [
    [61, 64, 70, 58, 66],
    [72, 69, 75, 81],
  ] as const;
  const p = welchTest([...a], [...b]);
  expect(welch([...a], [...b], p).low).toBeCloseTo(0, 6);
  expect([welchTest([1], [2, 3]), welchTest([5, 5], [5, 5]), welchTest([5, 5], [6, 6])]).toEqual([1, 1, 0]);
  const upTo = (n: number) => Array.from({ length: n }, (_, i) => i + 1);
  // Tables of the sign test: below 6 values no interval; then without 0, 1 and 5 values at each end.
  expect(medianInterval(upTo(5))).toEqual({ value: 3, low: null, high: null });
  expect(medianInterval(upTo(6))).toEqual({ value: 3.5, low: 1, high: 6 });
  expect(medianInterval(upTo(9))).toEqual({ value: 5, low: 2, high: 8 });
  expect(medianInterval(upTo(20))).toEqual({ value: 10.5, low: 6, high: 15 });
  expect(medianInterval([])).toBeNull();
});
