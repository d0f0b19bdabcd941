import { expect, test } from "bun:test";
import { createExplorer } from "../src/agents/explorer/explorer.ts";
import { createReader } from "../src/agents/reader.ts";
import { createPrompt } from "../src/prompts/prompts.ts";
import { scriptedAgent, testApp } from "./support/app.ts";
import { signedIn } from "./support/people.ts";
import { evaluation, niceGrade } from "./support/reports.ts";
import { serveSite } from "./support/site.ts";

// What people met on pages once and must not meet again, where no other test covers it.

test("a guessed path is not found on a page that has it only within a longer path", () => {
  const task = { startUrls: ["https://docs.example.com/"], productUrl: null };
  const { read, sourceOf } = createReader(task as Parameters<typeof createReader>[0]);
  const guide = "https://docs.example.com/guide.md";
  const text =
    "# Guide\n\n```sh\ncurl https://api.example.com/v1/notes\ncurl $BASE_URL/v1/boards/\n```\n\nThen read `/v1/my\\_tags/all`.\n";
  read({ url: guide, answeredBy: guide, status: 200, contentType: "text/markdown", text });
  const provenanceOf = (path: string) => sourceOf(`https://api.example.com${path}`).provenance;
  expect(["/notes", "/v1", "/v1/note", "/v1/my_tags", "/v2/notes"].map(provenanceOf)).toEqual(Array(5).fill("guessed"));
  for (const path of ["/v1/notes", "/v1/boards", "/v1/my_tags/all"])
    expect([path, sourceOf(`https://api.example.com${path}`).foundOn]).toEqual([path, guide]);
});

test.each([
  ["prose", "Keep it in the environment variable FERRY_TOKEN.", false],
  ["code", "Keep it in the environment variable <code>FERRY_TOKEN</code>.", false],
  ["nothing", "Keep it to yourself.", true],
])(
  "a variable that %s explains is a missing prerequisite only if nothing does",
  async (_where, sentence, isMissing) => {
    const sample =
      '<pre><code>curl -H "Authorization: Bearer $FERRY_TOKEN" -d @file https://ferry.test/v1/files</code></pre>';
    const page = `<title>Ferry</title><h1>Upload a file to Ferry</h1><p>You need a token. ${sentence}</p><p>Upload a file:</p>${sample}`;
    const site = serveSite({ "/": { body: page } });
    const app = testApp({
      agent: createExplorer({ version: "test" }),
      env: { EVALD_ALLOW_PRIVATE: `127.0.0.1:${site.port}` },
    });
    const body = { text: `Upload a file. ${site.url}/`, endGoal: "A file was uploaded to Ferry." };
    const prompt = await app.send("POST", "/api/v1/prompts", { body });
    const run = await app.send("POST", `/api/v1/prompts/${prompt.body.id}/run`, { body: { urlMap: {} } });
    await app.runJobs();
    const { report } = (await app.send("GET", `/api/v1/runs/${run.body.runId}`)).body;
    const { body: whole } = await app.send("GET", `/api/v1/reports/${report.slug}`);
    const titles: string[] = whole.frictionPoints.map(({ title }: { title: string }) => title);
    expect(titles.filter((title) => title.includes("FERRY_TOKEN")).length).toBe(isMissing ? 1 : 0);
    site.stop();
    await app.service.stop(0);
  },
);

test("trends say that goals were not tested, in place of 0%", async () => {
  const app = testApp();
  const { id } = createPrompt(app.service.ctx, app.a.org, {
    title: "Upload",
    text: "Upload. https://docs.example.com",
  });
  evaluation(app, id, Array(5).fill(niceGrade));
  evaluation(app, id, [{ ...niceGrade, outcome: "succeeded" }, { ...niceGrade, outcome: "goal_not_met" }, niceGrade]);
  const owner = await signedIn(app);
  const html = (await owner.get(`/trends?promptId=${id}&interval=eval`)).body;
  expect(html).toContain("50% of 2 judged");
  expect(html).toContain("Goal not tested");
  expect(/>0%/.test(html)).toBe(false);
  const { body } = await app.send("GET", `/api/v1/trends?promptId=${id}&interval=eval`);
  expect(body.points.map((point: { successRate: unknown }) => point.successRate)).toMatchObject([
    null,
    { value: 0.5, of: 2 },
  ]);
});

test("a webhook to a loopback address says in one message which value of which setting allows it", async () => {
  const app = testApp({ env: { EVALD_ALLOW_PRIVATE: "10.0.0.0/8", EVALD_SECRET_KEY: "a".repeat(64) } });
  const owner = await signedIn(app);
  const form = { kind: "webhook", name: "CI", url: "http://127.0.0.1:8123/hook", events: "run.failed" };
  const { status, body } = await owner.post("/settings/notifications", form);
  expect(status).toBe(400);
  expect(body).toContain("127.0.0.1:8123");
  expect(body).toContain("EVALD_ALLOW_PRIVATE");
  // What is missing on the server is said before anything is typed.
  const keyless = testApp();
  const page = await (await signedIn(keyless)).get("/settings/notifications");
  expect(page.body).toContain("EVALD_SECRET_KEY");
});

test("the addresses of forms lead to the page that the form is on", async () => {
  const app = testApp();
  const owner = await signedIn(app);
  const [run] = evaluation(
    app,
    createPrompt(app.service.ctx, app.a.org, { title: "A", text: "A. https://docs.example.com" }).id,
    [niceGrade],
  );
  for (const [path, page] of [
    [`/runs/${run?.runId}/rerun`, `/runs/${run?.runId}`],
    ["/settings/notifications/x/deliveries/y/replay", "/settings/notifications/x/deliveries/y"],
    ["/account/leave", "/account"],
  ]) {
    const { status, location } = await owner.get(path ?? "");
    expect([path, status, new URL(location ?? "", app.baseUrl).pathname]).toEqual([path, 303, page]);
  }
});

test("the time that a run used doesn't exceed its limit, however long its end took", async () => {
  const app = testApp({
    agent: scriptedAgent(async function* (signal) {
      yield { type: "thought", text: "Let me wait.", by: "rule" };
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
    }),
  });
  const body = { text: "Wait. https://docs.example.com", limits: { wallClockSeconds: 1 } };
  const prompt = await app.send("POST", "/api/v1/prompts", { body });
  const run = await app.send("POST", `/api/v1/prompts/${prompt.body.id}/run`, { body: { urlMap: {} } });
  await app.runJobs();
  const { body: html } = await app.send("GET", `/runs/${run.body.runId}`);
  const [, used = "", limit = ""] = /aria-label="Time: ([\d.]+)s of ([\d.]+)s"/.exec(html) ?? [];
  expect([used !== "", Number(used) <= Number(limit)]).toEqual([true, true]);
});
