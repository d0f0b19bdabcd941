import { afterAll, expect, test } from "bun:test";
import type { Agent } from "../../src/agents/agent.ts";
import { createModelAgent } from "../../src/agents/llm/llm.ts";
import { advanceCalibrations, repeatCalibrations } from "../../src/calibration/progress.ts";
import type { Calibration } from "../../src/calibration/schema.ts";
import { noisy, testApp } from "../support/app.ts";
import { serveFakeModel } from "../support/fake-model.ts";
import { finish as ends, modelKey } from "../support/model-runs.ts";
import { networkedExplorer } from "../support/networked-explorer.ts";
import { signedIn } from "../support/people.ts";
import { serveSite } from "../support/site.ts";

const explorer = networkedExplorer("test");
/** Whether the explorer no longer reports what fails. */
let isBroken = false;
const breakable: Agent = {
  ...explorer,
  async *run(task, context) {
    for await (const event of explorer.run(task, context)) {
      if (isBroken && event.type === "tool_result" && event.checks)
        yield { ...event, checks: event.checks.filter(({ status }) => status !== "fail") };
      else yield event;
    }
  },
};

const model = serveFakeModel({ scenarios: { any: { turns: [ends("succeeded", "It was easy.")] } } });
const dayMs = 24 * 3600_000;
let passedMs = 0;
const app = testApp({
  agent: breakable,
  agents: { ...noisy, llm: createModelAgent({ version: "test" }) },
  env: {
    EVALD_ALLOW_PRIVATE: "127.0.0.1",
    OPENAI_COMPATIBLE_BASE_URL: model.baseUrls["openai-compatible"],
    OPENAI_COMPATIBLE_API_KEY: modelKey,
    EVALD_AGENT_MODEL: "openai-compatible/any",
    EVALD_MODEL_PRICES: '{"openai-compatible/any": {"in": 1000, "out": 1000, "cached": 1000}}',
  },
  now: () => Date.now() + passedMs,
});
afterAll(() => model.stop());
const { send, service } = app;

const list = async (): Promise<Calibration[]> => (await send("GET", "/api/v1/calibrations")).body;
/** Runs a calibration to its end, site by site. */
async function finish(id: string): Promise<Calibration> {
  for (;;) {
    await app.runJobs();
    await advanceCalibrations(service.ctx);
    const calibration = (await list()).find((each) => each.id === id) as Calibration;
    if (calibration.status !== "running") return calibration;
  }
}
async function calibrate(body: object = {}): Promise<Calibration> {
  const requested = await send("POST", "/api/v1/calibrations", { body: { sites: 2, ...body } });
  if (requested.status !== 201) throw new Error(requested.body.detail);
  return await finish(requested.body.id);
}
const newestReport = async (agent: string) => {
  const { slug } = (await send("GET", `/api/v1/reports?agent=${agent}&limit=1`)).body[0];
  return (await send("GET", `/api/v1/reports/${slug}`)).body;
};

test("the figures of planted defects are on every report of the agent, and a broken one has worse figures", async () => {
  const planned = await send("POST", "/api/v1/calibrations", { body: { agent: "explorer", dryRun: true } });
  expect([planned.status, planned.body.estimate, await list()]).toEqual([200, { runs: 36, usd: 0, maxUsd: 0 }, []]);
  const { id, figures, evidence, worse, methodology } = await calibrate({ agent: "explorer" });
  expect(figures).toMatchObject({
    found: { n: 8, of: 8, low: 0.6756, high: 1 },
    falseFindings: { n: 0, of: 2 },
    falseAlarms: { n: 0, of: 2 },
    failedRuns: 0,
  });
  expect([evidence, worse]).toEqual([[], []]);

  const report = await newestReport("explorer");
  expect([report.calibration, report.methodology.id]).toEqual([figures, methodology]);
  const owner = await signedIn(app);
  const read = async (path: string): Promise<string> => (await owner.get(path)).body;
  const sentence = "found 8 of 8 planted defects (68–100%), false findings on 0 of 2 clean sites, 0 false alarms";
  for (const path of [`/reports/${report.slug}`, `/reports/${report.slug}.md`, "/calibration"])
    expect(await read(path)).toContain(sentence);

  isBroken = true;
  const broken = await calibrate({ agent: "explorer" });
  isBroken = false;
  expect(broken.figures?.found.n).toBeLessThan(4);
  expect(broken.worse).toEqual(["found"]);
  expect(broken.evidence.filter(({ figure }) => figure === "found").length).toBeGreaterThan(4);
  const problems = (await send("GET", "/api/v1/inbox")).body.problems;
  expect(problems).toMatchObject([{ kind: "calibration_worse", calibrationId: broken.id, worse: ["found"] }]);
  expect((await newestReport("explorer")).calibration.calibrationId).toBe(broken.id);
  expect(broken.id > id).toBe(true);
});

test("its runs count in no list of prompts and no trend", async () => {
  const [newest] = await list();
  const { body: prompts } = await send("GET", "/api/v1/prompts");
  expect(prompts).toEqual([]);
  const { body: trends } = await send("GET", `/api/v1/trends?promptId=${newest?.promptId}`);
  expect(trends.points).toEqual([]);
});

test("a report of an agent that was not calibrated says how to do it", async () => {
  const { body: prompt } = await send("POST", "/api/v1/prompts", {
    body: { text: "Read https://docs.example.com/", agent: "noisy" },
  });
  await send("POST", `/api/v1/prompts/${prompt.id}/run`, { body: { urlMap: {} } });
  await app.runJobs();
  const { slug, calibration } = await newestReport("noisy");
  expect(calibration).toBeNull();
  const owner = await signedIn(app);
  for (const path of [`/reports/${slug}`, `/reports/${slug}.md`])
    expect((await owner.get(path)).body).toContain("evald calibrate --agent noisy");
  // The inbox is on the start page once there is a prompt.
  expect((await owner.get("/")).body).toContain('data-kind="calibration_worse"');
});

test("a calibration is repeated until it is stopped, and only the newest of an agent", async () => {
  const ofExplorer = { agent: "explorer", sites: 1 };
  const first = await calibrate({ ...ofExplorer, everyDays: 7 });
  const second = await calibrate({ ...ofExplorer, everyDays: 3 });
  // One that is not repeated changes nothing.
  const once = await calibrate(ofExplorer);
  const nextOf = async (id: string) => (await list()).find((each) => each.id === id)?.nextAt;
  expect([await nextOf(first.id), await nextOf(second.id)]).toEqual([null, expect.any(String)]);
  await repeatCalibrations(service.ctx);
  expect((await list())[0]?.id).toBe(once.id);
  passedMs += 3 * dayMs + 1;
  await repeatCalibrations(service.ctx);
  const [repeated] = await list();
  expect(repeated).toMatchObject({ agent: "explorer", sites: 1, everyDays: 3, status: "running" });
  expect([await nextOf(second.id), repeated?.nextAt]).toEqual([null, expect.any(String)]);
  const path = `/api/v1/calibrations/${repeated?.id}/cancel`;
  expect((await send("POST", path)).body).toMatchObject({ status: "stopped", stopReason: "cancelled", nextAt: null });
  expect((await send("POST", path)).status).toBe(409);
});

test("an agent with a model needs a budget, and a calibration ends before it exceeds it", async () => {
  const refused = await send("POST", "/api/v1/calibrations", { body: { agent: "llm" } });
  expect([refused.status, refused.body.detail]).toEqual([400, expect.stringContaining("budgetUsd")]);
  const whole = await calibrate({ agent: "llm", budgetUsd: 20 });
  // A model that reads nothing finds nothing.
  expect(whole).toMatchObject({ status: "completed", endedRuns: 6, figures: { found: { n: 0, of: 8 } } });
  const perSiteUsd = whole.spentUsd / 2;
  const cut = await calibrate({ agent: "llm", sites: 3, budgetUsd: 2.5 * perSiteUsd });
  expect(cut).toMatchObject({ status: "stopped", stopReason: "budget", endedRuns: 6, figures: { found: { of: 8 } } });
  const budgetUsd = perSiteUsd / 2;
  expect((await send("POST", "/api/v1/calibrations", { body: { agent: "llm", budgetUsd } })).status).toBe(400);
});

test("defects are planted into the docs of a prompt, in pages that it read, and only those that were met count", async () => {
  const more = "Everything that the storage keeps is kept in two places, and each file has a checksum of its own.";
  const site = serveSite({
    "/": { body: `<h1>Acme</h1><p>${more}</p><a href="/upload">Upload a file</a> <a href="/limits">Limits</a>` },
    "/upload": {
      body: `<h1>Upload a file</h1><p>${more}</p><pre><code class="language-js">const file = await store.put({ name: "a.txt", data: "hello" });\nconsole.log(file.id);</code></pre><p>See <a href="/limits">the limits</a>.</p>`,
    },
    "/limits": { body: `<h1>Limits</h1><p>${more} A file has at most 5 GB.</p>` },
  });
  try {
    const { body: prompt } = await send("POST", "/api/v1/prompts", {
      body: { text: `Upload a file with Acme: ${site.url}/`, endGoal: "Upload a file", agent: "explorer" },
    });
    const unread = await send("POST", "/api/v1/calibrations", { body: { promptId: prompt.id } });
    expect(unread.status).toBe(400);
    await send("POST", `/api/v1/prompts/${prompt.id}/run`, { body: { urlMap: {} } });
    await app.runJobs();
    const { source, figures, evidence } = await calibrate({ promptId: prompt.id });
    expect(source).toBe("docs");
    expect(figures).toMatchObject({ falseFindings: null, falseAlarms: { n: 0, of: 2 } });
    // The first dead link is the only way to the page with the other defect of its copy.
    expect([figures?.found, evidence]).toMatchObject([{ n: 3, of: 3 }, []]);
    // Neither the copies with defects nor the clean ones are runs of the prompt as it is.
    const { body: trends } = await send("GET", `/api/v1/trends?promptId=${prompt.id}`);
    expect(trends.points.length).toBe(1);
  } finally {
    site.stop();
  }
});
