import { afterAll, beforeAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { buildExecutables, call, emptyFolder, instant, serve } from "../support/executable.ts";
import { serveSite } from "../support/site.ts";

beforeAll(buildExecutables, 300_000);

const site = serveSite({
  "/": {
    body: '<!doctype html><html lang="en"><title>Acme</title><h1>Upload a file</h1><p>Upload a file with the SDK.</p>',
  },
});
afterAll(site.stop);

/**
 * A client of the public contract, as CI actions of other services with this API are written: it knows these paths, fields and words,
 * and nothing of evald.
 */
function contractClient(apiBaseUrl: string, apiKey: string) {
  const get = async (path: string) => await request(path);
  async function request(path: string, init: RequestInit = {}) {
    const response = await fetch(`${apiBaseUrl}${path}`, {
      ...init,
      headers: { Authorization: `Bearer ${apiKey}`, "Content-Type": "application/json" },
    });
    const body = await response.json();
    if (!response.ok) throw new Error(body.error ?? body.detail ?? `HTTP ${response.status}`);
    return body;
  }
  return {
    get,
    trigger: async (promptId: string, body: object) => {
      const { runId, statusUrl, runUrl } = await request(`/prompts/${promptId}/run`, {
        method: "POST",
        body: JSON.stringify(body),
      });
      expect([runId, statusUrl, runUrl]).toEqual([expect.any(String), expect.any(String), expect.any(String)]);
      return runId as string;
    },
    poll: async (runId: string) => {
      for (;;) {
        const run = await get(`/runs/${runId}`);
        if (["completed", "failed", "superseded"].includes(run.status)) return run;
        await Bun.sleep(50);
      }
    },
    baseline: async (promptId: string, current: string) => {
      const runs: { runId: string }[] = await get(`/runs?promptId=${promptId}&reportStatus=published&limit=2`);
      return runs.find(({ runId }) => runId !== current) ?? null;
    },
  };
}

/** What such an action sets as the commit status. */
const stateOf = (run: { status: string; report: { outcome?: string } | null }) =>
  run.status === "completed" && run.report?.outcome === "succeeded" ? "success" : "failure";

async function start({ file }: { file?: string } = {}) {
  const cwd = emptyFolder();
  const env = { EVALD_ALLOW_PRIVATE: "127.0.0.1" };
  const ask = async (...args: string[]) => (await call(args, { cwd, env })).stdout.trim();
  await ask("org", "create", "Acme");
  const create = async (...more: string[]) =>
    await ask("prompt", "create", "--agent", "explorer", "--title", "Upload", ...more);
  const key = await ask("key", "create", "--name", "ci", "--scopes", "read,run", "--compatible");
  const service = await serve({ cwd, file, env: { ...env, EVALD_RUNS_PER_ORG: "1" } });
  return { service, create, client: contractClient(`${service.url}/api/v1`, key) };
}

test("a client that knows only the public contract triggers, polls, compares and reports a run", async () => {
  const { service, create, client } = await start();
  const task = ["--text", `Upload a {{what}}. ${site.url}/`, "--goal", "Upload a file with the SDK"];
  const promptId = await create(...task, "--success-bar", "docs_only=1");
  const body = { urlMap: { "docs.acme.example": site.url }, templateArgs: { what: "file" } };

  const first = await client.poll(await client.trigger(promptId, body));
  expect([first.status, stateOf(first), await client.baseline(promptId, first.runId)]).toEqual([
    "completed",
    "success",
    null,
  ]);
  const { report, prompt } = first;
  expect(prompt.title).toBe("Upload");
  expect(new URL(report.url).pathname).toEndWith(`/reports/${report.slug}`);
  expect(report).toMatchObject({
    score: expect.any(Number),
    grade: expect.any(String),
    metrics: { time: expect.any(String) },
  });
  expect(report.dimensions[0]).toMatchObject({ name: expect.any(String), weight: expect.stringMatching(/%$/) });

  const second = await client.poll(await client.trigger(promptId, body));
  expect(await client.baseline(promptId, second.runId)).toMatchObject({
    runId: first.runId,
    report: { score: report.score },
  });

  // Without a bar, nothing passed, so the status is red.
  const strict = await create(...task);
  expect(stateOf(await client.poll(await client.trigger(strict, body)))).toBe("failure");

  // The action logs only the field error.
  const error = await client.trigger(promptId, { urlMap: {} }).catch(({ message }) => message);
  expect(error).toMatch(/^missing_template_vars: .*\bwhat\b/);
  expect(await service.stop()).toBe(0);
}, 300_000);

test("a newer run of a preview supersedes the older one for a client that doesn't request it", async () => {
  const { service, create, client } = await start({ file: instant });
  const gate = join(emptyFolder(), "go");
  const promptId = await create("--text", `Upload until ${gate} ${site.url}/`, "--goal", "Upload");
  const at = (commit: string) => ({ urlMap: { "docs.acme.example": `${site.url}/${commit}` } });
  // The first is running, the second is waiting.
  const ids = [];
  for (const commit of ["a", "b", "c", "d"]) ids.push(await client.trigger(promptId, at(commit)));
  const older = await Promise.all(ids.slice(0, -1).map(async (id) => (await client.poll(id)).status));
  expect(older).toEqual(["superseded", "superseded", "superseded"]);
  writeFileSync(gate, "");
  expect((await client.poll(ids.at(-1) as string)).status).toBe("completed");
  expect(await service.stop()).toBe(0);
}, 300_000);

test("the OpenAPI document is served without a key and describes the report of a run by direct properties", async () => {
  const { service } = await start({ file: instant });
  const response = await fetch(`${service.url}/api/openapi`);
  expect(response.status).toBe(200);
  const document = await response.json();
  expect([document.openapi, document.info.version]).toEqual(["3.1.0", "1.0.0"]);
  const { Run, RunResponse, PromptSummary, Prompt, Error: ApiError } = document.components.schemas;
  const { report } = Run.properties;
  expect(Object.keys(report.properties)).toEqual(
    expect.arrayContaining(["slug", "url", "score", "grade", "metrics", "dimensions", "outcome", "nullNotice"]),
  );
  expect(Object.keys(report.properties.metrics.properties)).toEqual(
    expect.arrayContaining([
      ...["time", "timeDetail", "errors", "errorsDetail", "toolCalls", "toolCallsDetail", "cost", "costDetail"],
      ...["interruptions", "timeSeconds", "costUsd"],
    ]),
  );
  expect(Object.keys(report.properties.dimensions.items.properties)).toEqual(
    expect.arrayContaining(["name", "weight", "score", "grade", "desc"]),
  );
  expect(JSON.stringify(report)).not.toMatch(/anyOf|\$ref/);
  expect(RunResponse.required).toEqual(expect.arrayContaining(["runId", "statusUrl", "runUrl"]));
  expect(ApiError.required).toEqual(["error"]);
  for (const schema of [PromptSummary, Prompt]) expect(schema.required).toContain("templateVars");
  for (const path of ["/api/v1/prompts", "/api/v1/prompts/{promptId}", "/api/v1/runs", "/api/v1/runs/{runId}"])
    expect(document.paths[path].get).toBeDefined();
  expect(document.paths["/api/v1/prompts/{promptId}/run"].post).toBeDefined();
  expect(await service.stop()).toBe(0);
}, 300_000);
