import { describe, expect, test } from "bun:test";
import type { Agent } from "../src/agents/agent.ts";
import { findLatestResults } from "../src/comparisons/latest.ts";
import { advanceGates } from "../src/gates/progress.ts";
import { gradeSession } from "../src/grading/score.ts";
import { getPrompt } from "../src/prompts/prompts.ts";
import { getEvalRequest, listEvalRequests } from "../src/runs/evals.ts";
import { requestEval } from "../src/runs/requests.ts";
import type { EvalRequest } from "../src/runs/schema.ts";
import { end, milestone, session } from "./fixtures/grading/session.ts";
import { testApp } from "./support/app.ts";
import { rpc } from "./support/mcp.ts";
import { signedIn } from "./support/people.ts";
import { finishRuns, niceGrade } from "./support/reports.ts";

const agent = (id: string): Agent => ({
  describe: () => ({ id, version: "1.0", model: null, kind: "rules" }),
  preflight: () => [],
  async *run() {
    yield { type: "end", outcome: "not_judged", reason: "Done." };
  },
});
let time = Date.UTC(2026, 10, 2, 12);
const app = testApp({ now: () => time, agents: { red: agent("red"), blue: agent("blue") } });
const { send, service, a } = app;
const text = "Upload a file. https://docs.example.com";
const both = [{ agent: "red" }, { agent: "blue" }];
const create = async (more: object = {}) =>
  await send("POST", "/api/v1/prompts", { body: { text, agents: both, ...more } });
const get = async (path: string) => (await send("GET", path)).body;

/** An evaluation of both agents, five runs each, with scores around these. */
async function evaluated(promptId: string, scores: Record<string, number>) {
  const asked = { urlMap: {}, trigger: "api", runs: 5 } as const;
  const { evalRequestId } = await requestEval(service.ctx, a.org, promptId, asked);
  const counts: Record<string, number> = {};
  finishRuns(app, ({ agent }) => {
    const nth = counts[agent] ?? 0;
    counts[agent] = nth + 1;
    return (scores[agent] ?? 0) + (nth % 3);
  });
  return getEvalRequest(service.ctx, a.org, evalRequestId);
}
const slugOf = (request: EvalRequest, id: string) =>
  request.runs.find((run) => run.agent.id === id)?.report?.slug ?? "";

describe("a prompt with two agents", () => {
  test("lists both, and agent and model are the first", async () => {
    const { body } = await create();
    expect(body).toMatchObject({ agent: "red", model: null });
    expect(body.agents).toEqual([
      { agent: "red", model: null },
      { agent: "blue", model: null },
    ]);
    const patch = async (change: object) =>
      (await send("PATCH", `/api/v1/prompts/${body.id}`, { body: change })).body as typeof body;
    expect((await patch({ title: "Kept" })).agents).toEqual(body.agents);
    // A single agent replaces the list, and a list with one agent is a single agent.
    expect(await patch({ agent: "blue" })).toMatchObject({ agent: "blue", agents: null });
    expect(await patch({ agents: [{ agent: "red" }] })).toMatchObject({ agent: "red", agents: null });
    expect(await patch({ agents: both })).toMatchObject({ agent: "red", agents: body.agents });
    expect(await patch({ agents: null })).toMatchObject({ agent: "red", agents: null });
  });

  test.each([
    [{ agents: [] }, "agents"],
    [{ agents: [{ agent: "red" }, { agent: "green" }] }, "agents.1.agent"],
    [{ agents: [{ agent: "red" }, { agent: "red" }] }, "agents.1"],
    [{ agent: "blue" }, "agents"],
  ])("can't have an invalid entry: %j", async (more, field) => {
    const { status, body } = await create(more);
    expect([status, body.error]).toEqual([400, "bad_request"]);
    expect(body.detail).toContain(field);
  });

  test("runs with each agent, and a retry keeps the agent", async () => {
    const { body: prompt } = await create({ runsPerEval: 2 });
    const { body } = await send("POST", `/api/v1/prompts/${prompt.id}/run`, { body: { urlMap: {} } });
    expect(body.runs.length).toBe(2);
    expect(body.runId).toBe(body.runs[0].runId);
    const agentOf = async (runId: string) => (await get(`/api/v1/runs/${runId}`)).agent.id;
    expect([await agentOf(body.runs[0].runId), await agentOf(body.runs[1].runId)]).toEqual(["red", "blue"]);
    const again = (await send("POST", `/api/v1/runs/${body.runs[1].runId}/rerun`, { body: {} })).body;
    expect([await agentOf(again.runId), again.runs]).toEqual(["blue", undefined]);
    const one = { urlMap: {}, agent: "blue" };
    expect((await send("POST", `/api/v1/prompts/${prompt.id}/run`, { body: one })).body.runs).toBeUndefined();
    const asked = await rpc(app).call("request_eval", { promptId: prompt.id });
    expect(asked.runs.map((run: { agent: { id: string } }) => run.agent.id)).toEqual(["red", "blue", "red", "blue"]);
    expect(asked.estimate).toMatch(/^red: .* blue: /);
    const estimate = await get(`/api/v1/prompts/${prompt.id}/estimate`);
    expect([estimate.runs, estimate.agent, estimate.others.map((each: { agent: string }) => each.agent)]).toEqual([
      2,
      "red",
      ["blue"],
    ]);
    finishRuns(app, () => 70);
  });

  test("is scheduled with each agent", async () => {
    const { body: prompt } = await create({ runsPerEval: 2, frequency: "hourly" });
    time += 3600_000;
    await service.scheduler.tick();
    const [request] = await get(`/api/v1/eval-requests?promptId=${prompt.id}`);
    expect([request.trigger, request.runs.map((run: { agent: { id: string } }) => run.agent.id)]).toEqual([
      "schedule",
      ["red", "blue", "red", "blue"],
    ]);
    await send("PATCH", `/api/v1/prompts/${prompt.id}`, { body: { status: "paused" } });
    finishRuns(app, () => 70);
  });

  test("has a result, trend, baseline and latest score for each agent, never combined", async () => {
    const { body: prompt } = await create();
    const request = await evaluated(prompt.id, { red: 40, blue: 80 });
    const of = await get(`/api/v1/eval-requests/${request.id}`);
    expect(
      of.agents.map((each: (typeof of.agents)[0]) => [each.agent.id, each.result.n, each.result.score.mean]),
    ).toEqual([
      ["red", 5, 40.8],
      ["blue", 5, 80.8],
    ]);
    expect(of.result).toEqual(of.agents[0].result);
    for (const [id, mean] of [
      ["red", 40.8],
      ["blue", 80.8],
    ] as const) {
      const trends = await get(`/api/v1/trends?promptId=${prompt.id}&agent=${id}`);
      expect(trends.points.map((point: typeof trends) => [point.n, point.score.mean])).toEqual([[5, mean]]);
      const listed = await get(`/api/v1/reports?promptId=${prompt.id}&agent=${id}&agentVersion=test`);
      expect(listed.length).toBe(5);
    }
    expect(await get(`/api/v1/reports?promptId=${prompt.id}&agentVersion=other`)).toEqual([]);
    expect(findLatestResults(service.ctx, a.org, prompt.id)?.points.map(({ score, runs }) => [score, runs])).toEqual([
      [40.8, 5],
    ]);
    const next = await evaluated(prompt.id, { red: 40, blue: 80 });
    const { baseline } = await get(`/api/v1/reports/${slugOf(next, "blue")}`);
    expect([baseline.n, baseline.score.mean]).toEqual([5, 80.8]);
    await send("PATCH", `/api/v1/prompts/${prompt.id}`, { body: { baselineRequestId: request.id } });
    const pinned = (await get(`/api/v1/reports/${slugOf(next, "blue")}`)).baseline;
    expect([pinned.kind, pinned.n, pinned.score.mean]).toEqual(["pinned", 5, 80.8]);
  });

  test("is compared agent by agent, and across agents only on request", async () => {
    const { body: prompt } = await create();
    const before = await evaluated(prompt.id, { red: 40, blue: 80 });
    const after = await evaluated(prompt.id, { red: 40, blue: 60 });
    const compared = (slugs: string[], more = "") => get(`/api/v1/compare/reports?slugs=${slugs}${more}`);
    const blue = await compared([slugOf(before, "blue"), slugOf(after, "blue")]);
    expect([blue.comparability.same, blue.verdict, blue.evidence.sides.map((side: typeof blue) => side.n)]).toEqual([
      true,
      "regressed",
      [5, 5],
    ]);
    expect((await compared([slugOf(before, "red"), slugOf(after, "red")])).verdict).toBe("no_change");

    const across = [slugOf(before, "red"), slugOf(before, "blue")];
    const refused = await compared(across);
    expect([refused.verdict, refused.comparability.differences]).toEqual(["not_comparable", ["agent: red vs. blue"]]);
    const asked = await compared(across, "&acrossAgents=1");
    expect([asked.verdict, asked.comparability.same, asked.evidence.delta.value]).toEqual(["improved", false, 40]);
    const { call } = rpc(app);
    expect((await call("compare_reports", { slugs: across })).verdict).toBe("not_comparable");
    expect((await call("compare_reports", { slugs: across, acrossAgents: true })).verdict).toBe("improved");

    // Two whole evaluations mix their agents; filters separate them.
    const sides = `base=${before.id}&head=${after.id}`;
    expect((await get(`/api/v1/compare?${sides}`)).verdict).toBe("not_comparable");
    expect((await get(`/api/v1/compare?${sides}&acrossAgents=1`)).verdict).toBe("not_comparable");
    expect((await get(`/api/v1/compare?${sides}&baseAgent=blue&headAgent=blue`)).verdict).toBe("regressed");
    const other = `${sides}&baseAgent=red&headAgent=blue`;
    expect((await get(`/api/v1/compare?${other}`)).verdict).toBe("not_comparable");
    expect((await get(`/api/v1/compare?${other}&acrossAgents=1`)).verdict).toBe("improved");
  });

  test("is not comparable across agents, even with a single run each", async () => {
    const { body: prompt } = await create();
    const { body: started } = await send("POST", `/api/v1/prompts/${prompt.id}/run`, { body: { urlMap: {} } });
    finishRuns(app, () => 70);
    const request = getEvalRequest(service.ctx, a.org, started.evalRequestId);
    const compared = (more: string) =>
      get(`/api/v1/compare/reports?slugs=${slugOf(request, "red")},${slugOf(request, "blue")}${more}`);
    expect((await compared("")).verdict).toBe("not_comparable");
    expect((await compared("&acrossAgents=1")).verdict).toBeNull();
  });

  test("has friction that lists the agents that hit it, and can be filtered by agent", async () => {
    const { body: prompt } = await create();
    await send("POST", `/api/v1/prompts/${prompt.id}/run`, { body: { urlMap: {} } });
    const [point] = niceGrade.frictions;
    if (!point) throw new Error("the grade has no friction");
    const gradeOf = (id: string) => ({
      ...niceGrade,
      recommendations: [],
      frictions: ["both", id].map((fingerprint) => ({ ...point, fingerprint })),
    });
    finishRuns(app, ({ agent }) => gradeOf(agent));
    const listed = async (more = "") => {
      const things = await get(`/api/v1/friction?promptId=${prompt.id}${more}`);
      return things
        .map((thing: { fingerprint: string; agents: string[] }) => [thing.fingerprint, thing.agents.toSorted()])
        .sort();
    };
    const both = ["both", ["blue", "red"]];
    expect(await listed()).toEqual([["blue", ["blue"]], both, ["red", ["red"]]]);
    expect(await listed("&agent=blue")).toEqual([["blue", ["blue"]], both]);
    const { frictionPoints } = await rpc(app).call("get_friction_points", { promptId: prompt.id, agent: "red" });
    expect(frictionPoints.map(({ fingerprint }: { fingerprint: string }) => fingerprint).sort()).toEqual([
      "both",
      "red",
    ]);
    const page = (await (await signedIn(app)).get(`/friction?of=${prompt.id}&agent=blue`)).body;
    expect([page.includes("/friction/blue?"), page.includes("/friction/red?")]).toEqual([true, false]);
  });

  test("has a gate that decides for each agent", async () => {
    const { body: prompt } = await create();
    const gateOf = async (head: Record<string, number>) => {
      const asked = { promptId: prompt.id, urlMap: { "docs.example.com": "https://preview.example.com" }, runs: 5 };
      const { body } = await send("POST", "/api/v1/gates", { body: asked });
      for (let i = 0; i < 3; i++) {
        finishRuns(app, (run) => (Object.keys(run.urlMap).length > 0 ? head : {})[run.agent] ?? 80);
        await advanceGates(service.ctx);
      }
      return await get(`/api/v1/gates/${body.id}`);
    };
    const worse = await gateOf({ blue: 60 });
    expect([worse.status, worse.progress.of]).toEqual(["failed", 20]);
    expect(worse.agents.map((each: typeof worse) => [each.agent, each.status, each.comparison.verdict])).toEqual([
      ["red", "passed", "no_change"],
      ["blue", "failed", "regressed"],
    ]);
    // This is the agent that decided.
    expect([worse.head.score.mean, worse.comparison.verdict]).toEqual([60, "regressed"]);
    // A gain of one agent does not hide the loss of another.
    expect((await gateOf({ red: 100, blue: 60 })).status).toBe("failed");
    expect((await gateOf({})).status).toBe("passed");
  });
});

test("a form without JavaScript sets several agents, and the pages show each", async () => {
  const person = await signedIn(app);
  const form = {
    text,
    agent: "red",
    "furtherAgent.agent": ["blue", ""],
    "furtherAgent.model": ["", ""],
    runsPerEval: "2",
  };
  const { location } = await person.post("/prompts", form);
  const id = location?.split("/").at(-1) ?? "";
  expect(getPrompt(service.ctx, a.org, id).agents?.map(({ agent }) => agent)).toEqual(["red", "blue"]);
  const { body } = await person.get(`/prompts/${id}/edit`);
  expect(body).toMatch(/<select name="furtherAgent.agent" aria-label="Agent 2">.*?<option value="blue" selected/s);
  const wrong = await person.post("/prompts", { ...form, agent: "" });
  expect([wrong.status, wrong.body.includes('id="agent-wrong"')]).toEqual([400, true]);
  const started = await person.post(`/prompts/${id}/run`, { runs: "2" });
  finishRuns(app, (run) => (run.agent === "red" ? 40 : 80));
  const shown = (await person.get(started.location ?? "")).body;
  expect([...shown.matchAll(/data-agent="(\w+)".*?<dd>([\d.]+)<\/dd>/gs)].map(([, id, mean]) => [id, mean])).toEqual([
    ["red", "40.0"],
    ["blue", "80.0"],
  ]);
  const list = (await person.get(`/runs?promptId=${id}`)).body;
  expect(["red test", "blue test"].map((label) => list.split(`>${label}<`).length - 1)).toEqual([2, 2]);
  const { runs } = listEvalRequests(service.ctx, a.org, { promptId: id }, { limit: 1, offset: 0 })
    .items[0] as EvalRequest;
  const slugs = runs.slice(0, 2).map(({ report }) => report?.slug);
  const compared = (await person.get(`/compare?slugs=${slugs}`)).body;
  expect(compared).toContain('name="acrossAgents"');
  expect(compared).toContain("verdict-not_comparable");
  expect((await person.get(`/compare?slugs=${slugs}&acrossAgents=1`)).body).toContain("verdict-insufficient_data");
});

test("a report warns about an agent version that was not tested", () => {
  const summaryOf = (isTested: boolean) => {
    const detail = {
      agent: "codex",
      version: "0.170.0",
      kind: "model" as const,
      model: null,
      goal: text,
      starts: [],
      isTested,
    };
    return gradeSession(session(milestone("started", detail), end("not_judged"))).summary.whatDidnt;
  };
  expect(summaryOf(false)).toContain("codex 0.170.0");
  expect(summaryOf(true)).not.toContain("codex 0.170.0");
});
