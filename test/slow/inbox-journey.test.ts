import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import type { Page } from "playwright-core";
import { createExplorer } from "../../src/agents/explorer/explorer.ts";
import { createModelAgent } from "../../src/agents/llm/llm.ts";
import { updateOrg } from "../../src/auth/orgs.ts";
import { importFile } from "../../src/exchange/import.ts";
import type { ScoreChange } from "../../src/inbox/schema.ts";
import { testApp } from "../support/app.ts";
import { openBrowser } from "../support/browser.ts";
import { faults, type PlantedChange, recordOrganization } from "../support/organization.ts";
import { signedIn } from "../support/people.ts";
import { startReceiver } from "../support/receiver.ts";
import { until } from "../support/until.ts";

// Real sessions of 44 prompts, and a history of 60 days.
setDefaultTimeout(900_000);

const port = 4883;
const base = `http://127.0.0.1:${port}`;
// A Friday, so that the week is that of the next digest.
const end = Date.UTC(2026, 10, 20, 10);
const dayMs = 86_400_000;
globalThis.AI_SDK_LOG_WARNINGS = false;

let at = end;
const receiver = startReceiver(() => new Response("down", { status: 500 }));
const app = testApp({
  agents: { explorer: createExplorer({ version: "1.4.0" }), llm: createModelAgent({ version: "2.1.0" }) },
  env: {
    EVALD_BASE_URL: base,
    EVALD_ALLOW_PRIVATE: `127.0.0.1,${receiver.host}`,
    EVALD_SECRET_KEY: Buffer.alloc(32, 7).toString("base64"),
  },
  now: () => at,
});
const server = Bun.serve({ port, hostname: "127.0.0.1", fetch: (request) => app.app.handle(request) });
const get = async (path: string) => (await app.send("GET", `/api/v1${path}`)).body;
const post = async (path: string, body: unknown) => (await app.send("POST", `/api/v1${path}`, { body })).body;

let organization: Awaited<ReturnType<typeof recordOrganization>>;
let browser: Awaited<ReturnType<typeof openBrowser>>;
let page: Page;
/** The planted changes in the order in which they should be listed, with the listed ones. */
let fell: PlantedChange[];
let rose: PlantedChange[];
let changes: Map<string, ScoreChange>;

beforeAll(async () => {
  [organization, browser] = await Promise.all([recordOrganization({ until: end }), openBrowser()]);
  const { ctx } = app.service;
  importFile(ctx, app.a.org, organization.file);
  organization.remove();
  await app.service.start();
  const isStale = app.db.$client.query("select 1 from score_changes where is_stale = 1");
  await until("all changes are found", () => isStale.get() === null);
  const owner = await signedIn(app);
  const context = await browser.newContext({ extraHTTPHeaders: { cookie: owner.cookie() } });
  page = await context.newPage();
  const inbox = await get("/inbox");
  const listed: ScoreChange[] = [...inbox.problems, ...inbox.improvements].filter(({ kind }) => /^score_/.test(kind));
  changes = new Map(listed.map((change) => [change.prompt.id, change]));
  const sizeOf = ({ promptId }: PlantedChange) => Math.abs(changes.get(promptId)?.delta ?? 0);
  const ofKind = (kind: string) =>
    organization.planted.filter((change) => change.kind === kind).sort((a, b) => sizeOf(b) - sizeOf(a));
  [fell, rose] = [ofKind("fell"), ofKind("rose")];
});

afterAll(async () => {
  await browser?.close();
  server.stop(true);
  receiver.close();
  await app.service.stop(0);
});

/** The lines of Home of one kind, in order. */
const linesOf = (kind: string) =>
  page
    .locator(`li[data-kind="${kind}"]`)
    .evaluateAll((lines) => lines.map((line) => line.querySelector("a")?.getAttribute("href")));

test("the recorded organization has 44 prompts, real sessions and changes of many causes", () => {
  expect(organization.plans).toHaveLength(44);
  expect(organization.sessions).toBeGreaterThan(80);
  expect([fell.length, rose.length]).toEqual([9, 3]);
});

test("Home lists exactly the planted changes, the largest first", async () => {
  await page.goto(`${base}/?all=1`);
  const hrefs = (planted: PlantedChange[]) => planted.map(({ promptId }) => `/prompts/${promptId}`);
  expect(await linesOf("score_fell")).toEqual(hrefs(fell));
  expect(await linesOf("score_rose")).toEqual(hrefs(rose));
  for (const { promptId, at: changedAt } of organization.planted) {
    const days = (Date.parse(changes.get(promptId)?.since ?? "") - changedAt) / dayMs;
    // The first evaluation after it.
    expect(days).toBeWithin(-0.1, 4.1);
  }
});

test("each line and its page of reasons name the planted cause first, with the page", async () => {
  for (const { promptId, path, what } of organization.planted) {
    await page.goto(`${base}/`);
    const line = page.locator(`li[data-item^="score-${promptId}"]`);
    expect([what, await line.textContent()]).toEqual([what, expect.stringContaining(path)]);
    await line.getByRole("link", { name: "See why" }).click();
    const [cause] = await page.locator("tr[data-fingerprint]").all();
    expect([what, await cause?.textContent()]).toEqual([what, expect.stringContaining(path)]);
  }
});

test("the page of reasons shows the page that changed, and leaves little unexplained", async () => {
  for (const { promptId, path, what } of organization.planted) {
    const { pages, causes, unexplained, delta } = await get(`/prompts/${promptId}/score-change`);
    expect({ what, isExplained: Math.abs(unexplained) <= 0.45 * Math.abs(delta) }).toEqual({ what, isExplained: true });
    expect({ what, pointsThatWay: causes[0].points * delta > 0 }).toEqual({ what, pointsThatWay: true });
    // The product changed, or a page outside of the agent's way.
    if (["endpoint_moved", "sample_outdated", "prerequisite_loop"].includes(what)) continue;
    expect([what, pages[0]?.url]).toEqual([what, expect.stringMatching(new RegExp(`${path}$`))]);
  }
});

test("the patch for a field that the docs lack is a valid command", async () => {
  const planted = organization.planted.find(({ what }) => what === "sample_outdated");
  const { causes } = await get(`/prompts/${planted?.promptId}/score-change`);
  const { recommendations } = await get(`/reports/${causes[0].slug}`);
  expect(recommendations[0].evidence.expected).toEndWith(`-d '{"version": 2}'`);
});

test("Home lists what fails, once each", async () => {
  const { id } = await post("/destinations", { kind: "webhook", url: receiver.url, events: ["run.completed"] });
  await post(`/destinations/${id}/test`, {});
  await until("the delivery has failed", async () =>
    (await get("/inbox")).problems.some(({ kind }: { kind: string }) => kind === "destination_failing"),
  );
  const { spending } = await get("/inbox");
  expect(spending.spentUsd).toBeGreaterThan(1);
  updateOrg(app.service.ctx, app.a.org, { maxUsdAMonth: spending.spentUsd / 0.9 });
  const { problems } = await get("/inbox");
  const others = problems.filter(({ kind }: { kind: string }) => kind !== "score_fell");
  const idOf = (title: string) => organization.failing.find((each) => each.title === title)?.promptId;
  expect(others).toHaveLength(5);
  expect(others).toContainEqual(
    expect.objectContaining({
      ...{ kind: "runs_failed", failed: 5, of: 5, prompt: { id: idOf(faults.slow), title: faults.slow } },
      failure: expect.objectContaining({ code: "prompt_time_limit" }),
    }),
  );
  expect(others).toContainEqual(expect.objectContaining({ kind: "runs_failed", failed: 5, of: 5, agent: "explorer" }));
  expect(others).toContainEqual(
    expect.objectContaining({ kind: "schedule_paused", prompt: { id: idOf(faults.down), title: faults.down } }),
  );
  expect(others).toContainEqual(expect.objectContaining({ kind: "destination_failing", status: 500 }));
  expect(others).toContainEqual(expect.objectContaining({ kind: "budget_spent", budget: null }));
});

test("one change has the same number on Home, its page of reasons, in Trends, the list and the digest", async () => {
  const { id } = await post("/destinations", { kind: "webhook", url: receiver.url, events: ["digest.weekly"] });
  await app.service.notifier.digests.tick();
  at = Date.UTC(2026, 10, 23, 8);
  await app.service.notifier.digests.tick();
  const digest = await until("the digest is sent", () =>
    receiver.received.map(({ body }) => JSON.parse(body)).find(({ type }) => type === "digest.weekly"),
  );
  const { scores } = digest.data as {
    scores: { prompt: { id: string }; delta: number; cause: string; whyUrl: string }[];
  };
  const ofWeek = organization.planted.filter(
    ({ promptId }) => (changes.get(promptId)?.since ?? "") >= digest.data.from,
  );
  expect(scores.map(({ prompt }) => prompt.id).sort()).toEqual(ofWeek.map(({ promptId }) => promptId).sort());
  for (const { promptId } of ofWeek) {
    const change = changes.get(promptId);
    const delta = change?.delta ?? 0;
    const { changes: trendChanges } = await get(`/trends?promptId=${promptId}&interval=day`);
    const explanation = await get(`/prompts/${promptId}/score-change`);
    const sent = scores.find(({ prompt }) => prompt.id === promptId);
    const scoreChange = trendChanges.findLast(({ what }: { what: string }) => what === "score");
    expect([explanation.delta, sent?.delta, scoreChange?.delta?.value]).toEqual([delta, delta, delta]);
    expect([explanation.causes[0].title, explanation.causes[0].points]).toEqual([
      change?.cause?.title,
      change?.cause?.points,
    ]);
    expect(sent?.cause).toBe(change?.cause?.title ?? "");
    const ids = (side: "before" | "after") =>
      explanation[side].evaluations.map(({ evalRequestId }: { evalRequestId: string }) => evalRequestId).join();
    const windows = await get(`/prompts/${promptId}/score-change?base=${ids("before")}&head=${ids("after")}`);
    expect([windows.delta, windows.causes]).toEqual([delta, explanation.causes]);
    const shown = delta < 0 ? `−${Math.abs(delta).toFixed(1)}` : `+${delta.toFixed(1)}`;
    await page.goto(sent?.whyUrl ?? "");
    expect(await page.locator(".lead").textContent()).toContain(`${shown} points`);
    await page.goto(`${base}/`);
    expect(await page.locator(`li[data-item^="score-${promptId}"] .size`).textContent()).toBe(shown);
    await page.goto(`${base}/prompts?search=${encodeURIComponent(change?.prompt.title ?? "")}`);
    expect(await page.locator(`a.change[href="/prompts/${promptId}/why"]`).textContent()).toContain(shown);
  }
  await app.send("DELETE", `/api/v1/destinations/${id}`);
});
