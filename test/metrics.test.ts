import { describe, expect, test } from "bun:test";
import { AgentFailure } from "../src/agents/agent.ts";
import { createPrompt } from "../src/prompts/prompts.ts";
import { requestEval } from "../src/runs/requests.ts";
import { openSession } from "../src/runs/session.ts";
import { type Metrics, respondToScrape } from "../src/telemetry/metrics.ts";
import { scriptedAgent, testApp } from "./support/app.ts";

const env = { EVALD_METRICS_ADDRESS: "127.0.0.1:0" };
const end = { type: "end", outcome: "not_judged", reason: "scripted" } as const;

/** The samples of a scrape by name and labels. */
async function scrape({ service }: ReturnType<typeof testApp>) {
  const response = await respondToScrape(
    service.telemetry.metrics as Metrics,
    new Request("http://localhost:9464/metrics"),
  );
  const lines = (await response.text()).split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return Object.fromEntries(lines.map((line) => /^(.*) (\S+)$/.exec(line)?.slice(1) ?? [])) as Record<string, string>;
}

describe("metrics", () => {
  test("exist only if their address is set", () => {
    expect(testApp().service.telemetry.metrics).toBeNull();
  });

  test("count runs by how they ended, and jobs", async () => {
    let session = 0;
    const agent = scriptedAgent(async function* () {
      if (++session === 2) throw new AgentFailure("model_key_refused", "the key was rejected");
      yield end;
    });
    const app = testApp({ env, agent });
    const { id } = createPrompt(app.service.ctx, app.a.org, { text: "See https://docs.example.com/" });
    const start = (body: object) => app.send("POST", `/api/v1/prompts/${id}/run`, { body: { urlMap: {}, ...body } });
    await start({});
    await start({});
    expect(await scrape(app)).toMatchObject({
      'evald_jobs{pool="runs",state="queued"}': "2",
      'evald_jobs{pool="runs",state="running"}': "0",
      'evald_http_requests_total{method="POST",route="/api/v1/prompts/{promptId}/run",status="200"}': "2",
    });
    await app.runJobs();
    await start({});
    await start({ supersede: true });
    const { body } = await start({});
    await app.send("POST", `/api/v1/runs/${body.runId}/cancel`);
    expect(await scrape(app)).toMatchObject({
      'evald_runs_total{status="completed",outcome="not_judged",cause=""}': "1",
      'evald_runs_total{status="failed",outcome="",cause="credentials"}': "1",
      'evald_runs_total{status="failed",outcome="",cause="cancelled"}': "1",
      'evald_runs_total{status="superseded",outcome="",cause="superseded"}': "1",
      'evald_job_attempt_seconds_count{kind="run",outcome="done"}': "1",
      'evald_job_attempt_seconds_count{kind="run",outcome="failed"}': "1",
      'evald_job_wait_seconds_count{kind="run"}': "2",
      'evald_jobs{pool="runs",state="queued"}': "1",
    });
  });

  test("measure turns of at least a millisecond", async () => {
    const app = testApp({ env });
    app.service.telemetry.start();
    const count = async () => Number((await scrape(app)).evald_turn_seconds_count);
    const before = await count();
    const body = { title: "x".repeat(150), text: "Upload a file. ".repeat(1000) };
    for (let i = 0; i < 20; i++) await app.send("POST", "/api/v1/prompts", { body });
    await new Promise(setImmediate);
    expect(await count()).toBeGreaterThan(before);
    await app.service.telemetry.stop();
  });

  test("count requests by route template, whatever the path, method and credential", async () => {
    const app = testApp({ env });
    await app.send("GET", "/api/v1/runs/unknown-1");
    await app.send("GET", "/api/v1/runs/unknown-2");
    await app.send("GET", "/api/v1/runs", { headers: { authorization: "" } });
    await app.send("GET", "/no/such/page");
    await app.send("PROPFIND", "/healthz");
    const samples = await scrape(app);
    expect(samples).toMatchObject({
      'evald_http_requests_total{method="GET",route="/api/v1/runs/{runId}",status="404"}': "2",
      'evald_http_requests_total{method="GET",route="",status="401"}': "1",
      'evald_http_requests_total{method="GET",route="",status="404"}': "1",
      'evald_http_requests_total{method="other",route="",status="404"}': "1",
    });
    expect(Object.keys(samples).filter((name) => /unknown|no\/such|PROPFIND/.test(name))).toEqual([]);
  });

  test("count spending since the start", async () => {
    const app = testApp({ env });
    const { id } = createPrompt(app.service.ctx, app.b.org, { text: "See https://docs.example.com/" });
    const { runIds } = await requestEval(app.service.ctx, app.b.org, id, { urlMap: {}, trigger: "api" });
    const session = { orgId: app.b.org, runId: runIds[0] as string, attempt: 1 };
    const writer = openSession(app.service.ctx, session, { secrets: [], mayWrite: () => true });
    const usage = { type: "usage", model: "m", inputTokens: 1, outputTokens: 1 } as const;
    writer.append({ ...usage, costUsd: 0.25 }, "gateway");
    writer.append({ ...usage, costUsd: null }, "gateway");
    await writer.close(new AbortController().signal);
    expect(await scrape(app)).toMatchObject({
      evald_model_spend_usd_total: "0.25",
      evald_model_unpriced_calls_total: "1",
    });
  });

  test("are only at /metrics, and not in the service itself", async () => {
    const app = testApp({ env });
    const answer = (path: string, method = "GET") =>
      respondToScrape(
        app.service.telemetry.metrics as Metrics,
        new Request(`http://localhost:9464${path}`, { method }),
      );
    expect((await answer("/metrics", "HEAD")).status).toBe(200);
    expect((await answer("/metrics", "POST")).status).toBe(404);
    expect((await answer("/"))?.status).toBe(404);
    expect((await app.send("GET", "/metrics")).status).toBe(404);
  });
});
