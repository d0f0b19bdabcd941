import { expect, test } from "bun:test";
import type { AgentEvent } from "../src/agents/agent.ts";
import { sessionEvents } from "../src/db/tables/runs.ts";
import { getRunTask } from "../src/runs/runs.ts";
import { scriptedAgent, testApp } from "./support/app.ts";
import { rpc } from "./support/mcp.ts";

const token = "vJ8s-bypass-token-of-a-preview";
const urlMap = { "docs.test": `https://preview.test/base?x-bypass=${token}` };

/** Repeats the token like a page that links to itself. */
const agent = scriptedAgent(async function* (): AsyncGenerator<AgentEvent> {
  yield { type: "thought", text: `Read https://preview.test/base/a?x-bypass=${token}`, by: "rule" };
  yield { type: "end", outcome: "not_judged", reason: `token ${encodeURIComponent(token)}` };
});

test("a token in the query of a urlMap value is used, but not shown or stored in sessions", async () => {
  const app = testApp({ agent });
  const { send, db } = app;
  const prompt = (await send("POST", "/api/v1/prompts", { body: { text: "See https://docs.test/" } })).body;
  const run = (await send("POST", `/api/v1/prompts/${prompt.id}/run`, { body: { urlMap } })).body;
  await app.runJobs();
  const { slug } = (await send("GET", `/api/v1/runs/${run.runId}`)).body.report;
  const report = await send("GET", `/api/v1/reports/${slug}`);
  expect(report.body.run.urlMap).toEqual({ "docs.test": "https://preview.test/base?redacted" });
  const gate = await send("POST", "/api/v1/gates", { body: { promptId: prompt.id, urlMap, minScore: 10 } });
  expect(gate.body.urlMap).toEqual({ "docs.test": "https://preview.test/base?redacted" });

  const shown = await Promise.all(
    [
      `/api/v1/reports/${slug}`,
      `/api/v1/reports/${slug}/trace`,
      `/api/v1/runs/${run.runId}`,
      `/api/v1/gates/${gate.body.id}`,
      "/api/v1/eval-requests",
      "/api/v1/export",
      "/api/v1/export?format=csv",
      "/api/v1/export?format=markdown",
      `/runs/${run.runId}`,
      `/reports/${slug}`,
      `/reports/${slug}.md`,
      `/reports/${slug}/session`,
    ].map(async (path) => ({ path, ...(await send("GET", path)) })),
  );
  for (const { path, status, body } of shown) {
    expect([path, status]).toEqual([path, 200]);
    expect([path, JSON.stringify(body).includes(token)]).toEqual([path, false]);
  }
  expect(JSON.stringify(await rpc(app).call("get_report", { slug }))).not.toContain(token);
  expect(JSON.stringify(db.select().from(sessionEvents).all())).not.toContain(token);

  // A retry uses the token again.
  const again = (await send("POST", `/api/v1/runs/${run.runId}/rerun`)).body;
  expect(getRunTask(app.service.ctx, app.a.org, again.runId).urlMap).toEqual(urlMap);
});
