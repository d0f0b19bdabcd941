import { expect, test } from "bun:test";
import type { AgentEvent } from "../src/agents/agent.ts";
import type { Grade } from "../src/grading/grade.ts";
import { createPrompt } from "../src/prompts/prompts.ts";
import { noisy, testApp } from "./support/app.ts";
import { evaluation, niceGrade } from "./support/reports.ts";

const dayMs = 24 * 3600_000;
const start = Date.UTC(2026, 10, 2, 9);

/** Sessions don't matter here. */
const shortSession: AgentEvent[] = [{ type: "end", outcome: "not_judged", reason: "scripted" }];

type App = ReturnType<typeof testApp>;

const [deadLink] = niceGrade.frictions as [Grade["frictions"][number]];
const [fix] = niceGrade.recommendations as [Grade["recommendations"][number]];

/** A service whose clock the test moves. */
function setUp() {
  let at = start;
  const app = testApp({ agents: noisy, now: () => at });
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
