import { afterEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createExplorer } from "../src/agents/explorer/explorer.ts";
import { openDb } from "../src/db/open.ts";
import { listDoneFixes, markFixDone } from "../src/fixes/done-fixes.ts";
import type { Grade } from "../src/grading/grade.ts";
import { createPrompt } from "../src/prompts/prompts.ts";
import { requestEval } from "../src/runs/requests.ts";
import { createService } from "../src/service.ts";
import { testApp } from "./support/app.ts";
import { evaluation, niceGrade } from "./support/reports.ts";
import { type Site, serveSite } from "./support/site.ts";

const sites: Site[] = [];
const folders: string[] = [];
afterEach(() => {
  for (const site of sites.splice(0)) site.stop();
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

/** Docs with a dead link until it is fixed, and a prompt with two runs on them. */
async function evaluated(dataDir?: string) {
  const state = { isMended: false, isThere: true };
  const html = (body: string) =>
    new Response(
      `<!doctype html><html lang="en"><title>Acme</title><main><h1>Acme</h1>${"Words. ".repeat(60)}${body}</main></html>`,
      {
        headers: { "content-type": "text/html" },
      },
    );
  const site = serveSite({
    "/": () => (state.isThere ? html('<a href="/setup">Setup</a>') : new Response("", { status: 503 })),
    "/setup": () => (state.isMended ? html("<h2>Install</h2>") : new Response("gone", { status: 404 })),
  });
  sites.push(site);
  const app = testApp({
    agent: createExplorer({ version: "test" }),
    env: { EVALD_ALLOW_PRIVATE: `127.0.0.1:${site.port}` },
    dataDir,
  });
  const prompt = createPrompt(app.service.ctx, app.a.org, {
    title: "Install",
    text: `Install the client. ${site.url}/`,
    runsPerEval: 2,
  });
  const run = async () => {
    await requestEval(app.service.ctx, app.a.org, prompt.id, { urlMap: {}, runs: 2, trigger: "api" });
    await app.runJobs();
  };
  await run();
  const dead = (await app.send("GET", `/api/v1/friction?promptId=${prompt.id}`)).body.find(
    ({ category }: { category: string }) => category === "dead_link",
  );
  const mark = (more: object = {}) =>
    app.send("POST", `/api/v1/recommendations/${dead.fingerprint}/done`, { body: { promptId: prompt.id, ...more } });
  const list = async () => (await app.send("GET", `/api/v1/recommendations/done?promptId=${prompt.id}`)).body.map(told);
  return { app, state, prompt, run, dead, mark, list };
}

const told = ({ status, reason }: { status: string; reason: string }) => [status, reason];

test("a fix marked as done is verified by new runs", async () => {
  const folder = mkdtempSync(join(tmpdir(), "evald-done-"));
  folders.push(folder);
  const { app, state, prompt, run, dead, mark, list } = await evaluated(folder);
  const { status, body } = await mark({ note: "The link points to /setup now." });
  expect(status).toBe(201);
  expect(body).toMatchObject({
    promptId: prompt.id,
    title: "Fix broken links on Acme",
    fingerprints: [dead.fingerprint],
    doneBy: 'the API key "test"',
    note: "The link points to /setup now.",
    status: "running",
    reason: "2 of 2 runs still in progress",
    before: { runs: 2, met: 2 },
    after: { runs: 2, met: 0, score: null },
    delta: null,
  });
  expect((await mark()).status).toBe(409);
  await app.runJobs();
  expect(await list()).toEqual([["did_not_help", "2 of 2 runs hit it again"]]);
  state.isMended = true;
  await mark();
  await app.runJobs();
  const verified = ["verified", "2 runs reached its page without hitting it"];
  const failed = ["did_not_help", "2 of 2 runs hit it again"];
  expect(await list()).toEqual([verified, failed]);
  const { slug } = dead;
  const adviceOf = async () =>
    (await app.send("GET", `/api/v1/reports/${slug}`)).body.recommendations.find(({ title }: { title: string }) =>
      title.startsWith("Fix broken links"),
    );
  expect((await adviceOf()).done).toMatchObject({ status: "verified", doneBy: 'the API key "test"' });
  // Another process returns the same.
  const { config, log, baseUrl } = app.service.ctx;
  const again = createService({ db: openDb(folder), config, log, agents: {}, baseUrl });
  const filter = { promptId: prompt.id, status: "verified" } as const;
  expect(listDoneFixes(again.ctx, app.a.org, filter, { limit: 9, offset: 0 }).items.map(told)).toEqual([verified]);
  state.isMended = false;
  await run();
  const [[reopened, why]] = await list();
  expect([reopened, why]).toEqual(["reopened", expect.stringMatching(/^hit again at .+ in install-[0-9a-f]{8}$/)]);
  expect((await adviceOf()).done.status).toBe("reopened");
});

test("runs that failed or never reached the page decide nothing", async () => {
  const { app, state, mark, list } = await evaluated();
  state.isThere = false;
  await mark();
  await app.runJobs();
  const [[status, reason]] = await list();
  expect([status, reason]).toEqual(["undecided", expect.stringMatching(/^no run succeeded: infrastructure: .+503/)]);
});

test("a few misses of a model, which may be chance, decide nothing, nor do runs of another model", async () => {
  const app = testApp();
  const { id } = createPrompt(app.service.ctx, app.a.org, { text: "Upload. https://docs.example.com" });
  const byModel = { ...niceGrade, exposure: { ...niceGrade.exposure, byRules: false } };
  const none = { ...byModel, frictions: [], recommendations: [] };
  const [point] = niceGrade.frictions as [Grade["frictions"][number]];
  const mark = (runs: number) =>
    markFixDone(app.service.ctx, app.a.org, point.fingerprint, { promptId: id, runs }, { by: "Ada", trigger: "web" });
  /** Ends the runs of the newest evaluation with this grade, without an agent. */
  const end = (grade: Grade, model: string | null = null) => {
    const [done] = evaluation(app, id, [grade, grade, grade]);
    app.db.$client.run("update runs set model = ? where eval_request_id = ?", [model, done?.evalRequestId ?? ""]);
    app.db.$client.run("update fixes set after_id = ? where id = (select max(id) from fixes)", [
      done?.evalRequestId ?? "",
    ]);
  };
  const last = () => listDoneFixes(app.service.ctx, app.a.org, { promptId: id }, { limit: 1, offset: 0 }).items[0];
  evaluation(app, id, [byModel]);
  const asked = await mark(3);
  expect([asked.doneBy, asked.after.runs]).toEqual(["Ada", 3]);
  end(none);
  expect(last()).toMatchObject({
    status: "undecided",
    reason: expect.stringMatching(/^3 runs reached its page without hitting it, .* 1 of 1 /),
  });
  end({ ...none, exposure: { ...none.exposure, visits: [] } });
  expect(last()?.reason).toStartWith("none of 3 runs reached its page");
  end(none, "openai/gpt-5");
  expect(last()?.reason).toBe(
    "the conditions of the runs differ: explorer, methodology 3f9c0a17 before, explorer openai/gpt-5, methodology 3f9c0a17 now",
  );
  evaluation(app, id, [byModel, byModel, byModel]);
  await mark(1);
  end(none);
  expect(last()).toMatchObject({ status: "verified", before: { runs: 3 }, delta: { value: 0 } });
});

test("friction that no run hit can't be marked as done, nor can another organization's", async () => {
  const { app, prompt, dead } = await evaluated();
  const mark = async (fingerprint: string, key = app.a.key) => {
    const headers = { authorization: `Bearer ${key}` };
    const path = `/api/v1/recommendations/${fingerprint}/done`;
    const { status, body } = await app.send("POST", path, { headers, body: { promptId: prompt.id } });
    return [status, body.detail];
  };
  expect(await mark("0000")).toEqual([404, expect.stringMatching(new RegExp(`${prompt.id} .*0000`))]);
  expect(await mark(dead.fingerprint, app.b.key)).toEqual([404, `No prompt has the ID ${prompt.id}.`]);
});
