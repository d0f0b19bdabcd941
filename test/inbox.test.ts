import { expect, test } from "bun:test";
import type { Agent, AgentEvent } from "../src/agents/agent.ts";
import { modelKeys } from "../src/db/tables/keys.ts";
import { scheduledEvaluations } from "../src/db/tables/schedules.ts";
import type { Grade } from "../src/grading/grade.ts";
import { weeklyDigestOf } from "../src/inbox/digest.ts";
import { setModelKey } from "../src/models/models.ts";
import type { AwayWorker } from "../src/places/messages.ts";
import { createPrompt, updatePrompt } from "../src/prompts/prompts.ts";
import { pausedReason } from "../src/prompts/warnings.ts";
import { instantAgent, noisy, testApp } from "./support/app.ts";
import { evaluation, niceGrade } from "./support/reports.ts";

const dayMs = 24 * 3600_000;
const start = Date.UTC(2026, 10, 2, 9);

/** Sessions don't matter here. */
const shortSession: AgentEvent[] = [{ type: "end", outcome: "not_judged", reason: "scripted" }];

type App = ReturnType<typeof testApp>;

const [deadLink] = niceGrade.frictions as [Grade["frictions"][number]];
const [fix] = niceGrade.recommendations as [Grade["recommendations"][number]];

/** A clock that moves by a second each time it is read. */
function clock() {
  let at = start;
  return () => {
    at += 1000;
    return at;
  };
}

/** A service whose clock the test moves. `more`: further parts of the service. */
function setUp(more: Parameters<typeof testApp>[0] = {}) {
  let at = start;
  const app = testApp({
    ...more,
    agents: noisy,
    now: () => at,
    env: { EVALD_SECRET_KEY: Buffer.alloc(32, 7).toString("base64") },
  });
  const inbox = async (query = "") => (await app.send("GET", `/api/v1/inbox${query}`)).body;
  const pass = (days: number) => {
    at += days * dayMs;
  };
  return { ...app, inbox, pass };
}

const promptOf = ({ service, a }: App, title: string): string =>
  createPrompt(service.ctx, a.org, { title, text: `${title}. https://docs.example.com`, agent: "noisy" }).id;

const clean = (score: number): Grade => ({ ...niceGrade, score, frictions: [], recommendations: [] });
const withDeadLink = (score: number): Grade => ({
  ...niceGrade,
  ...{ score, frictions: [{ ...deadLink, lostPoints: 8 }], recommendations: [{ ...fix, expectedGain: 8 }] },
});

/** Ten evaluations, two a day; the score falls or rises with the sixth. */
function history(app: App & { pass: (days: number) => void }, title: string, before: Grade[], after: Grade[]): string {
  const id = promptOf(app, title);
  for (const side of [before, after])
    for (let i = 0; i < 5; i++) {
      evaluation(app, id, side, {}, shortSession);
      app.pass(0.5);
    }
  return id;
}

const around = (score: number, make: (score: number) => Grade) => [score - 1, score, score, score + 1].map(make);

test("the inbox lists each prompt that got worse or better, the largest change first, with its cause", async () => {
  const app = setUp();
  const small = history(app, "Create a webhook", around(90, clean), around(80, clean));
  const large = history(app, "Refund a payment", around(92, clean), around(70, withDeadLink));
  const better = history(app, "Search", around(60, withDeadLink), around(85, clean));
  history(app, "Steady", around(80, withDeadLink), around(80, withDeadLink));
  const { problems, improvements } = await app.inbox();
  expect(problems).toMatchObject([
    {
      kind: "score_fell",
      prompt: { id: large, title: "Refund a payment" },
      delta: -22,
      cause: {
        fingerprint: deadLink.fingerprint,
        before: { met: 0, of: 20 },
        after: { met: 20, of: 20 },
        expectedGain: 8,
      },
    },
    { kind: "score_fell", prompt: { id: small }, delta: -10, cause: null },
  ]);
  expect(improvements).toMatchObject([
    { kind: "score_rose", prompt: { id: better }, delta: 25, cause: { before: { met: 20 }, after: { met: 0 } } },
  ]);
});

test("a fall is in the inbox if it consists of errors that no run before it had", async () => {
  const app = setUp();
  const [discoverability] = niceGrade.dimensions as [Grade["dimensions"][number]];
  const withoutErrors = (score: number): Grade => ({ ...clean(score), dimensions: [{ ...discoverability, score }] });
  const withErrors = (score: number): Grade => ({
    ...clean(score - 18),
    dimensions: [
      { ...discoverability, score },
      { ...discoverability, name: "Error recovery", weight: 0.15, score: 35 },
    ],
  });
  const id = history(app, "Refund a payment", around(96, withoutErrors), around(96, withErrors));
  expect((await app.inbox()).problems).toMatchObject([{ kind: "score_fell", prompt: { id }, delta: -18 }]);
});

test("a fall is in the inbox whatever the number of prompts created since", async () => {
  const app = setUp();
  const fallen = history(app, "Refund a payment", around(92, clean), around(70, clean));
  for (let i = 0; i < 30; i++) promptOf(app, `Prompt ${i}`);
  expect((await app.inbox()).problems).toMatchObject([{ prompt: { id: fallen } }]);
  const home = await app.send("GET", "/");
  expect(home.body).toMatch(/data-kind="score_fell".*Refund a payment.*See why/s);
});

test("the inbox is read without a write, as on a full disk", async () => {
  const app = setUp();
  const fallen = history(app, "Refund a payment", around(92, clean), around(70, clean));
  app.db.$client.run("pragma query_only = on");
  const answer = await app.send("GET", "/api/v1/inbox");
  expect(answer).toMatchObject({ status: 200, body: { problems: [{ prompt: { id: fallen } }] } });
});

test("runs that failed are one line, which a report makes less important and a week without failures removes", async () => {
  const app = setUp();
  const id = promptOf(app, "Charge a card");
  evaluation(app, id, [clean(80)]);
  app.pass(1);
  evaluation(app, id, Array(5).fill("timeout: no end after 30 min"));
  const [line, ...others] = (await app.inbox()).problems;
  expect(others).toEqual([]);
  expect(line).toMatchObject({ kind: "runs_failed", prompt: { id }, failed: 5, of: 5, failure: { cause: "timeout" } });
  expect(line.since).toBe(new Date(start + dayMs).toISOString());
  app.pass(1);
  evaluation(app, id, [clean(80)]);
  expect((await app.inbox()).problems).toMatchObject([{ kind: "runs_failed", failed: 5, of: 7 }]);
  app.pass(7);
  expect((await app.inbox()).problems).toEqual([]);
});

test("the numbers of failed runs follow deletions, restored runs and new attempts, by hour", async () => {
  const app = setUp();
  const { $client } = app.db;
  const id = promptOf(app, "Charge a card");
  evaluation(app, id, [clean(80), "timeout: first"]);
  const ended = [0, 1, 2].flatMap((hour) => {
    app.pass(1 / 24);
    return evaluation(app, id, hour === 2 ? ["timeout: late", "cancelled: by Nora"] : ["timeout: late"]);
  });
  evaluation(app, id, [clean(90)], { urlMap: { "docs.example.com": "https://pr-1.example.com" } });
  const numbers = async () => {
    const counted = 'select prompt_id, agent, "from", completed, failed from run_hours order by 1, 2, 3';
    const one = `select prompt_id, agent, created_at / 3600000 * 3600000 "from", sum(status = 'completed') completed, sum(status = 'failed') failed
      from runs where url_map = '{}' and edits_digest is null and (status = 'completed' or status = 'failed' and failure_cause != 'cancelled')
      group by 1, 2, 3 order by 1, 2, 3`;
    expect($client.query(counted).all()).toEqual($client.query(one).all());
    return (await app.inbox()).problems.map(({ failed, of }: { failed: number; of: number }) => [failed, of]);
  };
  expect(await numbers()).toEqual([[4, 4]]);
  const { runId = "" } = ended[1] ?? {};
  const { body: deletion } = await app.send("DELETE", `/api/v1/runs/${runId}`);
  expect(await numbers()).toEqual([[3, 3]]);
  expect((await app.send("POST", `/api/v1/deletions/${deletion.id}/restore`)).status).toBe(200);
  expect(await numbers()).toEqual([[4, 4]]);
  const { body: again } = await app.send("DELETE", `/api/v1/runs/${runId}`);
  await app.send("POST", `/api/v1/deletions/${again.id}/erase`);
  await app.service.ctx.commit(() => {});
  expect(await numbers()).toEqual([[3, 3]]);
  $client.run(`delete from runs where id = '${ended[0]?.runId}'`);
  expect(await numbers()).toEqual([[2, 2]]);
  // IDs of the same millisecond may be in any order.
  app.pass(1 / 48);
  evaluation(app, id, [clean(80)]);
  expect(await numbers()).toEqual([[2, 4]]);
});

test("failed runs on previews and cancelled runs are not in the inbox", async () => {
  const app = setUp();
  const id = promptOf(app, "Charge a card");
  evaluation(app, id, ["infrastructure: not reached"], { urlMap: { "docs.example.com": "https://pr-1.example.com" } });
  evaluation(app, id, ["cancelled: by a person"]);
  expect((await app.inbox()).problems).toEqual([]);
});

test("a line can be snoozed and assigned, and comes back with another ID when it happens again", async () => {
  const app = setUp();
  const id = promptOf(app, "Charge a card");
  evaluation(app, id, ["timeout: no end after 30 min"]);
  const [line] = (await app.inbox()).problems;
  const mark = (body: object, itemId = line.id) => app.send("PATCH", `/api/v1/inbox/${itemId}`, { body });
  const snoozedUntil = new Date(start + 7 * dayMs).toISOString();
  const answer = await mark({ snoozedUntil });
  expect(answer).toMatchObject({ status: 200, body: { id: line.id, snoozedUntil, assignee: null } });
  expect(await app.inbox()).toMatchObject({ problems: [], snoozed: 1 });
  expect((await app.inbox("?snoozed=true")).problems).toMatchObject([{ id: line.id, snoozedUntil }]);
  expect((await mark({ assignee: "nobody@example.com" })).status).toBe(400);
  expect((await mark({})).status).toBe(400);
  expect((await mark({ assignee: null }, "runs-unknown")).status).toBe(404);
  app.pass(8);
  expect((await app.inbox()).problems).toMatchObject([{ id: line.id }]);
  await mark({ snoozedUntil: new Date(start + 60 * dayMs).toISOString() });
  evaluation(app, id, [clean(80)]);
  app.pass(1);
  evaluation(app, id, ["timeout: no end after 30 min"]);
  const [again] = (await app.inbox()).problems;
  expect(again).toMatchObject({ kind: "runs_failed", snoozedUntil: null });
  expect(again.id).not.toBe(line.id);
});

test("the inbox of another organization is its own", async () => {
  const app = setUp();
  evaluation(app, promptOf(app, "Charge a card"), ["timeout: no end after 30 min"]);
  const [line] = (await app.inbox()).problems;
  const asB = { headers: { authorization: `Bearer ${app.b.key}` } };
  expect((await app.send("GET", "/api/v1/inbox", asB)).body.problems).toEqual([]);
  const answer = await app.send("PATCH", `/api/v1/inbox/${line.id}`, { ...asB, body: { assignee: null } });
  expect(answer.status).toBe(404);
});

/** A session in which the agent reads one page. */
const reading = (text: string): AgentEvent[] => [
  { type: "tool_call", id: "t1", tool: "fetch_page", input: { url: "https://docs.example.com/quickstart" } },
  {
    ...{ type: "tool_result", id: "t1", tool: "fetch_page", ok: true, ms: 1 },
    output: { url: "https://docs.example.com/quickstart", text },
  },
  { type: "end", outcome: "not_judged", reason: "scripted" },
];

test("the explanation of a change has both sides, what friction explains, and the lines that agents read differently", async () => {
  const app = setUp();
  const id = promptOf(app, "Refund a payment");
  const page = "# Quickstart\n\nFirst install the client.\n\nThen see the client.";
  for (const [make, score, text] of [
    [clean, 92, page],
    [withDeadLink, 70, page.replace("the client.", "[the client](/reference/client).")],
  ] as const)
    for (let i = 0; i < 5; i++) {
      evaluation(app, id, around(score, make), {}, reading(text));
      app.pass(0.5);
    }
  const { status, body } = await app.send("GET", `/api/v1/prompts/${id}/score-change`);
  expect(status).toBe(200);
  expect(body).toMatchObject({
    kind: "score_fell",
    delta: -22,
    before: { mean: 92, runs: 20 },
    after: { mean: 70, runs: 20 },
    causes: [{ fingerprint: deadLink.fingerprint, points: -8 }],
    unexplained: -14,
  });
  expect(body.before.evaluations).toHaveLength(5);
  expect(body.pages).toMatchObject([{ url: "https://docs.example.com/quickstart" }]);
  const changed = body.pages[0].lines.filter(({ change }: { change: string }) => change !== "none");
  expect(changed).toEqual([
    { change: "removed", text: "First install the client." },
    { change: "added", text: "First install [the client](/reference/client)." },
  ]);
  const why = await app.send("GET", `/prompts/${id}/why`);
  expect(why.status).toBe(200);
  for (const text of ["92", "70", deadLink.title, "[the client](/reference/client)"]) expect(why.body).toContain(text);
  const steady = history(app, "Steady", around(80, clean), around(80, clean));
  expect((await app.send("GET", `/api/v1/prompts/${steady}/score-change`)).status).toBe(404);
});

/** The links of a page whose address contains a text. */
const linksTo = (body: string, part: string): string[] =>
  [...body.matchAll(/href="([^"]+)"/g)]
    .map(([, href = ""]) => href.replaceAll("&amp;", "&"))
    .filter((href) => href.includes(part));

/** The change of the mean score and the numbers of runs that a comparison page shows. */
const comparedOn = (body: string) => ({
  delta: /Change in mean score: (-?[\d.]+) points/.exec(body)?.[1],
  verdict: /verdict-card verdict-(\w+)/.exec(body)?.[1],
  runs: [
    ...body.matchAll(/<tr><th scope="row">(?:Before|After) <\/th><td class="number" data-label="Runs">(\d+)/g),
  ].map(([, runs]) => runs),
});

test("every link from a change to its comparison compares all runs of both windows, with the same number", async () => {
  const app = setUp();
  const id = promptOf(app, "Refund a payment");
  let last: string | undefined;
  for (const score of [92, 91, 93, 92, 91, 93, 70, 71, 69, 70, 71, 69]) {
    last = evaluation(app, id, [clean(score)], {}, shortSession)[0]?.slug;
    app.pass(1);
  }
  const [line] = (await app.inbox()).problems;
  expect(line).toMatchObject({ kind: "score_fell", delta: -22 });
  const page = async (path: string): Promise<string> => (await app.send("GET", path)).body;
  const [why] = linksTo(await page("/"), "/why");
  const [fromWhy] = linksTo(await page(why ?? ""), "/compare?");
  const trends = await page(`/trends?promptId=${id}&interval=day`);
  expect(linksTo(trends, "/why")).toEqual([why ?? ""]);
  const [fromTrends] = linksTo(trends, "/compare?");
  const report = await page(`/reports/${last}`);
  expect(linksTo(report, "/why")).toEqual([why ?? ""]);
  // The usual range of the last ten runs would be that of both sides.
  expect(report).not.toContain("within the usual range");
  const [fromReport] = linksTo(report, "/compare?");
  for (const path of [fromWhy, fromTrends, fromReport])
    expect(comparedOn(await page(path ?? ""))).toEqual({ delta: "-22", verdict: "regressed", runs: ["6", "6"] });
});

test("a significant change of less than 5 points is a small change everywhere, and no regression", async () => {
  const app = setUp();
  const id = promptOf(app, "Refund a payment");
  const { body: hook } = await app.send("POST", "/api/v1/destinations", {
    body: { kind: "webhook", url: "https://hooks.example.com/", events: ["score.changed"] },
  });
  for (const score of [90, 90.2, 89.8, 90.1, 89.9, 90, 88.2, 88.4, 88, 88.3, 88.1, 88.2]) {
    evaluation(app, id, [clean(score)], {}, shortSession);
    app.pass(1);
  }
  expect((await app.inbox()).problems).toEqual([]);
  const list = (await app.send("GET", "/prompts")).body;
  expect(list).toContain("change-soft_regression");
  expect(list).not.toContain("change-regressed");
  const { changes } = (await app.send("GET", `/api/v1/trends?promptId=${id}`)).body;
  expect(changes).toMatchObject([{ what: "score", verdict: "soft_regression" }]);
  const { body: sent } = await app.send("GET", `/api/v1/destinations/${hook.id}/deliveries`);
  expect(sent).toEqual([]);
});

test("a large change whose interval contains 0 is no regression", async () => {
  const app = setUp();
  const id = promptOf(app, "Refund a payment");
  evaluation(app, id, [66, 66.5, 67, 67.5].map(clean), {}, shortSession);
  evaluation(app, id, [10, 66, 65.9, 65.8].map(clean), {}, shortSession);
  expect((await app.inbox()).problems).toEqual([]);
});

test("the explorer's change is on Home after one run, with the number that a gate shows", async () => {
  const app = testApp({ agents: { explorer: instantAgent }, now: clock() });
  const { id } = createPrompt(app.service.ctx, app.a.org, { agent: "explorer", text: "https://docs.example.com" });
  const graded = (score: number, quality: number): Grade => ({
    ...clean(score),
    dimensions: [
      { name: "Docs quality", weight: 0.35, score: quality, grade: "A-", parts: [], unmeasured: [] },
      { name: "Efficiency", weight: 0.1, score: 90 + (score % 3), grade: "B", parts: [], unmeasured: [] },
    ],
  });
  const evaluate = (grade: Grade) => evaluation(app, id, [grade], {}, shortSession);
  for (const score of [89.1, 89, 89.2]) evaluate(graded(score, 92));
  const problems = async () => (await app.send("GET", "/api/v1/inbox")).body.problems;
  evaluate(graded(84, 85.4));
  expect(await problems()).toMatchObject([{ kind: "score_fell", delta: -6.6 }]);
  evaluate(graded(84.1, 85.4));
  expect(await problems()).toMatchObject([{ kind: "score_fell", delta: -6.6 }]);
  evaluate(graded(89, 92));
  expect(await problems()).toEqual([]);
});

test("a site that is down for six prompts is one line", async () => {
  const app = setUp();
  const ids = Array.from({ length: 6 }, (_, i) => promptOf(app, `Prompt ${i}`));
  for (const id of ids) evaluation(app, id, ["infrastructure: could not reach https://docs.example.com/"]);
  const other = promptOf(app, "Charge a card");
  evaluation(app, other, ["timeout: no end after 30 min"]);
  const { problems } = await app.inbox();
  expect(problems).toHaveLength(2);
  expect(problems[0]).toMatchObject({ kind: "runs_failed", failed: 6, of: 6, prompt: { id: ids[0] } });
  expect(problems[0].otherPrompts.map(({ id }: { id: string }) => id)).toEqual(ids.slice(1));
  const home = (await app.send("GET", "/")).body;
  for (const id of ids) expect(home).toContain(`/prompts/${id}`);
});

test("a schedule that evald paused is a line until the prompt is resumed", async () => {
  const app = setUp();
  const { service, a, db } = app;
  const id = promptOf(app, "Nightly");
  updatePrompt(service.ctx, a.org, id, { frequency: "daily" });
  updatePrompt(service.ctx, a.org, id, { status: "paused" });
  expect((await app.inbox()).problems).toEqual([]);
  const at = service.ctx.now();
  db.insert(scheduledEvaluations)
    .values({ orgId: a.org, promptId: id, scheduledAt: at, outcome: "failed", reason: pausedReason, createdAt: at })
    .run();
  expect((await app.inbox()).problems).toMatchObject([{ kind: "schedule_paused", prompt: { id } }]);
  expect((await app.send("GET", "/")).body).toContain('data-kind="schedule_paused"');
  updatePrompt(service.ctx, a.org, id, { status: "active" });
  expect((await app.inbox()).problems).toEqual([]);
});

test("schedules that someone paused are a line until they are resumed", async () => {
  const app = setUp();
  expect((await app.send("POST", "/api/v1/schedules/pause")).status).toBe(200);
  expect((await app.inbox()).problems).toEqual([]);
  updatePrompt(app.service.ctx, app.a.org, promptOf(app, "Nightly"), { frequency: "daily" });
  expect((await app.inbox()).problems).toMatchObject([{ kind: "all_schedules_paused", schedules: 1 }]);
  expect((await app.send("GET", "/")).body).toContain('data-kind="all_schedules_paused"');
  await app.send("POST", "/api/v1/schedules/resume");
  expect((await app.inbox()).problems).toEqual([]);
});

test("secrets that can't be decrypted any more are a line of their organization only", async () => {
  const app = setUp();
  const { service, a } = app;
  setModelKey(service.ctx, a.org, "openai", "sk-of-acme-0123456789");
  expect((await app.inbox()).problems).toEqual([]);
  app.db
    .update(modelKeys)
    .set({ sealed: Buffer.alloc(60) })
    .run();
  expect((await app.inbox()).problems).toMatchObject([
    { kind: "secrets_unreadable", modelKeys: 1, destinations: 0, isKeyMissing: false },
  ]);
  const foreign = await app.send("GET", "/api/v1/inbox", { headers: { authorization: `Bearer ${app.b.key}` } });
  expect(foreign.body.problems).toEqual([]);
});

test("a worker that is away is a line if runs need what only it had", async () => {
  const away: AwayWorker[] = [];
  const executor = (agents: Record<string, Agent>) => ({ agents, waiting: new Map(), listAway: () => away });
  const app = setUp({ workers: executor as unknown as NonNullable<Parameters<typeof testApp>[0]>["workers"] });
  const kinds = async () => (await app.inbox()).problems.map(({ kind }: { kind: string }) => kind);
  const worker = { name: "worker-1", agents: ["noisy", "codex"], labels: ["gpu"], awayMs: 10 * 60_000 };
  app.db.$client.run("delete from api_keys where org_id = ?", [app.b.org]);
  app.db.$client.run("delete from orgs where id = ?", [app.b.org]);
  away.push(worker);
  expect(await kinds()).toEqual([]);
  const id = promptOf(app, "Charge a card");
  evaluation(app, id, [clean(80)], {}, shortSession);
  expect((await app.inbox()).problems).toMatchObject([
    { kind: "worker_away", worker: "worker-1", agents: ["noisy"], labels: [] },
  ]);
  expect((await app.send("GET", "/")).body).toContain("worker-1");
  Object.assign(worker, { agents: [] });
  expect(await kinds()).toEqual([]);
  updatePrompt(app.service.ctx, app.a.org, id, { workerLabels: ["gpu"] });
  expect((await app.inbox()).problems).toMatchObject([{ kind: "worker_away", agents: [], labels: ["gpu"] }]);
  // A restart of a worker is no problem.
  worker.awayMs = 60_000;
  expect(await kinds()).toEqual([]);
});

test("friction without a fix explains its points and not the network, if reports don't say whose points were lost", async () => {
  const app = setUp();
  const withSlip = (score: number): Grade => ({ ...withDeadLink(score), recommendations: [] });
  const id = history(app, "Refund a payment", around(92, clean), around(70, withSlip));
  const { body } = await app.send("GET", `/api/v1/prompts/${id}/score-change`);
  expect(body).toMatchObject({ delta: -22, causes: [{ points: -8 }], agentPoints: 0, networkPoints: 0 });
  expect(body.unexplained).toBe(-14);
});

test("two windows of evaluations are explained like the newest change", async () => {
  const app = setUp();
  const id = history(app, "Refund a payment", around(92, clean), around(70, withDeadLink));
  const explain = (query = "") => app.send("GET", `/api/v1/prompts/${id}/score-change${query}`);
  const { body: newest } = await explain();
  const ids = (side: "before" | "after", count: number) =>
    newest[side].evaluations.map((each: { evalRequestId: string }) => each.evalRequestId).slice(0, count);
  const all = await explain(`?base=${ids("before", 5)}&head=${ids("after", 5)}`);
  expect(all.body).toMatchObject({ delta: -22, causes: newest.causes, before: newest.before, after: newest.after });
  const [first, second] = ids("before", 2);
  const steady = await explain(`?base=${first}&head=${second}`);
  expect(steady.body).toMatchObject({ delta: 0, causes: [], before: { runs: 4 }, after: { runs: 4 } });
  const some = await explain(`?base=${first}&head=${ids("after", 1)}`);
  expect(some.body).toMatchObject({ delta: -22, before: { runs: 4 }, causes: [{ after: { met: 4, of: 4 } }] });
  expect((await explain(`?base=${first}&head=${crypto.randomUUID()}`)).status).toBe(400);
  const compared = (await app.send("GET", `/compare?base=${first}&head=${ids("after", 1)}`)).body;
  const [why] = linksTo(compared, "/why?");
  const page = (await app.send("GET", why ?? "")).body;
  for (const text of ["−22.0 points", deadLink.title]) expect(page).toContain(text);
});

test("the weekly digest has the lines of the inbox", async () => {
  const app = setUp();
  const fallen = history(app, "Refund a payment", around(92, clean), around(70, withDeadLink));
  history(app, "Steady", around(80, clean), around(80, clean));
  evaluation(app, promptOf(app, "Charge a card"), ["timeout: no end after 30 min"]);
  const digestOf = (days: number) =>
    weeklyDigestOf(app.service.ctx, app.a.org, app.service.ctx.now() - days * dayMs, app.service.ctx.now());
  const [line] = (await app.inbox()).problems;
  expect(line).toMatchObject({ kind: "score_fell", prompt: { id: fallen } });
  const digest = digestOf(14);
  expect(digest.scores).toMatchObject([
    { prompt: { id: fallen }, verdict: "regressed", delta: line.delta, cause: deadLink.title },
  ]);
  expect(digest.scores[0]?.whyUrl).toEndWith(`/prompts/${fallen}/why`);
  expect(digest.problems).toMatchObject([{ kind: "runs_failed", subject: "Charge a card" }]);
  // The change is older, but the runs still fail.
  expect(digestOf(1)).toMatchObject({ scores: [], problems: [{ kind: "runs_failed" }] });
  await app.send("PATCH", `/api/v1/inbox/${line.id}`, {
    body: { snoozedUntil: new Date(start + 60 * dayMs).toISOString() },
  });
  expect(digestOf(14).scores).toEqual([]);
});
