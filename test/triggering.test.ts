import { expect, test } from "bun:test";
import type { Agent, AgentEvent, Check } from "../src/agents/agent.ts";
import type { Task } from "../src/agents/task.ts";
import { advanceExperiments } from "../src/experiments/progress.ts";
import type { Experiment } from "../src/experiments/schema.ts";
import { instantAgent, testApp } from "./support/app.ts";
import { signedIn } from "./support/people.ts";

// Whether agents use a skill or an MCP server when they should: scripted agents whose every use is known.

const skill = {
  name: "uploads",
  description: "Uploads files.",
  digest: "0".repeat(64),
  opening: "Call the upload API.",
};
const server = { name: "acme", url: "https://mcp.acme.example/mcp", command: null };
const milestone = (name: string, detail: object) => ({ type: "milestone", name, detail }) as AgentEvent;

const check = (isMet: boolean): Check => ({
  ...{
    id: "declared",
    group: "declared",
    status: isMet ? "pass" : "fail",
    share: isMet ? 1 : 0,
    weight: 10,
    subject: "goal",
  },
  ...{ url: "https://docs.example.com/", line: null, message: "Checked.", fix: null, quote: null, invariant: true },
});

/** The session of an agent whose gateway saw these skills being read and these servers being called. It talks of the skill, which doesn't count. */
async function* session({ workspace }: Task, skills: string[], servers: string[]): AsyncIterable<AgentEvent> {
  const [hasSkill, hasServer] = [workspace?.skills !== undefined, workspace?.mcpServers !== undefined];
  const context = { skills: hasSkill ? [skill] : [], mcpServers: hasServer ? [server] : [] };
  const prepared = { archive: null, repository: null, setup: null, instructionChars: 0, env: [], ...context };
  yield milestone("workspace_prepared", prepared);
  const names = {
    skills: context.skills.map(({ name }) => name),
    mcpServers: context.mcpServers.map(({ name }) => name),
  };
  yield milestone("context_offered", { instructions: false, ...names });
  yield { type: "message", text: "I read the skill uploads and call acme." };
  if (hasSkill) for (const name of skills) yield milestone("skill_read", { skill: name });
  if (hasServer) for (const name of servers) yield milestone("mcp_server_called", { server: name });
  yield { type: "tool_call", id: "c1", tool: "check_declared", input: { checks: 1 } };
  yield {
    type: "tool_result",
    id: "c1",
    tool: "check_declared",
    ok: true,
    output: {},
    checks: [check(hasSkill && skills.length > 0)],
  };
  yield { type: "end", outcome: "not_judged", reason: "scripted" };
}

const scripted = (id: string, uses: (task: Task) => boolean): Agent => ({
  ...instantAgent,
  describe: () => ({ id, version: "test", model: null, kind: "rules", lacks: [] }),
  run: (task) => session(task, uses(task) ? ["uploads"] : [], uses(task) ? ["acme"] : []),
});

const numberOf = ({ text }: Task): number => Number(/Task (\d+)/.exec(text)?.[1]);
/** Tasks 1 to 20 need the skill. It misses 3 of them, and uses it for 2 of the others. */
const keen = scripted(
  "keen",
  (task) => [21, 22].includes(numberOf(task)) || (numberOf(task) > 3 && numberOf(task) <= 20),
);
/** It uses it for half of those that need it, and for nothing else. */
const shy = scripted("shy", (task) => numberOf(task) <= 10);

const app = testApp({ agents: { keen, shy } });
const { send, service, runJobs } = app;

const ids: string[] = [];
for (let n = 1; n <= 40; n++) {
  const body = { title: `Task ${n}`, text: `Task ${n}: see https://docs.example.com/`, agent: "keen" };
  const tags = [n <= 20 ? "uploads" : "other"];
  ids.push((await send("POST", "/api/v1/prompts", { body: { ...body, tags } })).body.id);
}
const packed = await new Bun.Archive({ "uploads/SKILL.md": "---\nname: uploads\n---\n" }, { compress: "gzip" }).bytes();
const headers = { "content-type": "application/gzip" };
const archive = (
  await send("POST", "/api/v1/archives", {
    body: packed,
    headers: { ...headers, authorization: `Bearer ${app.a.key}` },
  })
).body.id;
const skills = { archive };

async function experimentOf(body: object): Promise<Experiment> {
  const asked = await send("POST", "/api/v1/experiments", { body });
  expect([asked.status, asked.body.detail]).toEqual([201, undefined]);
  await runJobs();
  await advanceExperiments(service.ctx);
  return (await send("GET", `/api/v1/experiments/${asked.body.id}`)).body;
}

/** Wilson's 95 % interval, as in the API. */
function wilson(k: number, n: number) {
  const [z, p] = [1.959963984540054, k / n];
  const [center, half] = [p + z ** 2 / (2 * n), z * Math.sqrt((p * (1 - p)) / n + z ** 2 / (4 * n ** 2))];
  return { value: p, low: (center - half) / (1 + z ** 2 / n), high: (center + half) / (1 + z ** 2 / n) };
}
/** As the API rounds it. */
const about = ({ value, low, high }: ReturnType<typeof wilson>, f = (x: number) => x) => {
  const [a, b, c] = [value, low, high].map((x) => Math.round(f(x) * 1e4) / 1e4);
  return { value: a, low: b, high: c };
};
const f1 = (share: number) => (2 * share) / (1 + share);

test("40 labeled tasks give the exact precision, recall and F1 of each agent, beside the effect", async () => {
  const without = ["skills", "mcpServers"];
  const experiment = await experimentOf({
    arms: [
      { name: "baseline", without },
      { name: "+skill", without, workspace: { skills } },
      { name: "+skill, shy", without, workspace: { skills }, agent: "shy" },
    ],
    repeats: 1,
    triggering: { should: ["uploads"], shouldNot: ["other"] },
  });
  expect([experiment.status, experiment.prompts.length]).toEqual(["completed", 40]);
  const [ofKeen, ofShy, ...others] = experiment.analysis.triggering;
  // The base has no skill, so nothing can trigger.
  expect(others).toEqual([]);
  expect(ofKeen).toMatchObject({
    ...{ arm: "+skill", agent: "keen" },
    ...{ truePositives: 17, falsePositives: 2, falseNegatives: 3, trueNegatives: 18 },
    ...{ precision: about(wilson(17, 19)), recall: about(wilson(17, 20)), f1: about(wilson(17, 22), f1) },
  });
  expect(ofKeen?.f1?.value).toBeCloseTo((2 * 17) / (2 * 17 + 2 + 3), 4);
  expect(ofKeen?.wrong.map(({ promptId }) => ids.indexOf(promptId) + 1)).toEqual([1, 2, 3, 21, 22]);
  expect(ofShy).toMatchObject({
    ...{ arm: "+skill, shy", agent: "shy" },
    ...{ truePositives: 10, falsePositives: 0, falseNegatives: 10, trueNegatives: 20 },
    ...{ precision: about(wilson(10, 10)), recall: about(wilson(10, 20)), f1: about(wilson(10, 20), f1) },
  });
  expect(
    experiment.analysis.contrasts.map(({ arm, overall: { success } }) => [arm, success?.base, success?.arm]),
  ).toEqual([
    ["+skill", { n: 0, of: 40 }, { n: 19, of: 40 }],
    ["+skill, shy", { n: 0, of: 40 }, { n: 10, of: 40 }],
  ]);
  expect(experiment.analysis.arms.map(({ used }) => used)).toEqual([null, { n: 19, of: 40 }, { n: 10, of: 40 }]);

  const person = await signedIn(app);
  const { body: csv } = await person.get(`/experiments/${experiment.id}/runs.csv`);
  const [head = "", ...lines] = String(csv).trim().split("\r\n");
  const [arm, should, used] = ["arm", "shouldTrigger", "triggered"].map((name) => head.split(",").indexOf(name));
  const cells = lines.map((line) => line.split(","));
  expect(
    cells.filter(
      (cell) => cell[arm!]?.endsWith("+skill") === true && cell[should!] === "true" && cell[used!] === "true",
    ).length,
  ).toBe(17);
  const { body: page } = await person.get(`/experiments/${experiment.id}`);
  expect(page).toContain("89.5% (68.6% to 97.1%)");
});

test("repeats of a prompt count as one where they always agree, and an MCP server is used when it is called", async () => {
  const experiment = await experimentOf({
    arms: [{ name: "baseline" }, { name: "+MCP", workspace: { mcpServers: { acme: { url: server.url } } } }],
    repeats: 3,
    triggering: { of: "acme", should: ids.slice(8, 12), shouldNot: ids.slice(20, 24) },
  });
  expect(experiment.analysis.triggering).toMatchObject([
    {
      ...{ arm: "+MCP", truePositives: 12, falsePositives: 6, falseNegatives: 0, trueNegatives: 6 },
      ...{ recall: about(wilson(4, 4)), precision: about(wilson(4, 6)) },
    },
  ]);
  const otherName = await send("POST", "/api/v1/experiments", {
    body: { arms: [{ name: "a" }, { name: "b", agent: "shy" }], triggering: { should: [ids[0]], shouldNot: [ids[0]] } },
  });
  expect([otherName.status, otherName.body.detail]).toEqual([400, expect.stringContaining("triggering.shouldNot")]);
});
