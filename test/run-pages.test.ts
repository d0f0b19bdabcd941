import { describe, expect, spyOn, test } from "bun:test";
import { gt } from "drizzle-orm";
import type { AgentEvent } from "../src/agents/agent.ts";
import { createKey, revokeKey } from "../src/auth/keys.ts";
import { sessionEvents } from "../src/db/tables/runs.ts";
import * as promptLists from "../src/prompts/lists.ts";
import { createPrompt } from "../src/prompts/prompts.ts";
import { requestEval } from "../src/runs/requests.ts";
import { scriptedAgent, testApp } from "./support/app.ts";
import { goal, guessedPathAnswer, guessedPathSession } from "./support/guessed-path.ts";
import { judgedApp, says } from "./support/judged.ts";
import { signedIn } from "./support/people.ts";
import { evaluation, niceGrade } from "./support/reports.ts";

type App = ReturnType<typeof testApp>;
const docs = "https://docs.example.com";
const promptOf = (app: App, title = "Upload") =>
  createPrompt(app.service.ctx, app.a.org, { title, text: `Do it. ${docs}` });
const ask = async (app: App, promptId: string, more = {}) =>
  (await requestEval(app.service.ctx, app.a.org, promptId, { urlMap: {}, trigger: "api", ...more })).runIds;

/** An agent that writes one message each time it is released, and then ends. */
function steps() {
  const gates = Array.from({ length: 10 }, () => Promise.withResolvers<void>());
  let next = 0;
  const agent = scriptedAgent(async function* (): AsyncGenerator<AgentEvent> {
    for (const [i, text] of ["one", "two <b>"].entries()) {
      yield { type: "thought", text, by: "rule" };
      await gates[i]?.promise;
    }
    yield { type: "end", outcome: "not_judged", reason: "scripted" };
  });
  return { agent, goOn: () => gates[next++]?.resolve() };
}

/** The server-sent events of a response, as they arrive. */
async function listen(app: App, path: string, headers: Record<string, string> = {}) {
  const request = new Request(new URL(path, app.baseUrl), {
    headers: { authorization: `Bearer ${app.a.key}`, ...headers },
  });
  const answer = await app.app.handle(request);
  const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
  const told: { event: string; id: string; data: string }[] = [];
  let rest = "";
  /** Reads until a message matches, or to the end. */
  async function until(matches: (message: (typeof told)[number]) => boolean) {
    for (;;) {
      const found = told.find(matches);
      if (found) return found;
      const { value, done } = (await reader?.read()) ?? { done: true };
      if (done) return null;
      rest += value;
      const parts = rest.split("\n\n");
      rest = parts.pop() ?? "";
      for (const part of parts) {
        const field = (name: string) =>
          [...part.matchAll(new RegExp(`^${name}: (.*)$`, "gm"))].map(([, text]) => text).join("\n");
        if (!part.startsWith(":")) told.push({ event: field("event"), id: field("id"), data: field("data") });
      }
    }
  }
  return { answer, told, until, leave: () => reader?.cancel() };
}

describe("the progress of a run over REST", () => {
  test("is streamed live, resumes after the last message, and ends with the run", async () => {
    const { agent, goOn } = steps();
    const app = testApp({ agent });
    const [runId] = await ask(app, promptOf(app).id);
    const path = `/api/v1/runs/${runId}/events`;
    const live = await listen(app, path);
    expect(live.answer.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
    await live.until(({ event }) => event === "run");
    await app.service.start();
    const one = await live.until(({ data }) => data.includes('"one"'));
    expect(one).toMatchObject({ event: "event", id: "1.0" });
    expect(JSON.parse(one?.data ?? "")).toMatchObject({ seq: 0, type: "thought", text: "one", source: "agent" });
    const late = await listen(app, path, { "last-event-id": "1.0" });
    goOn();
    await late.until(({ data }) => data.includes('"two <b>"'));
    goOn();
    for (const each of [live, late]) expect(await each.until(() => false)).toBeNull();
    const statuses = live.told.filter(({ event }) => event === "run").map(({ data }) => JSON.parse(data).status);
    expect([statuses[0], statuses.at(-1), live.told.at(-1)?.id]).toEqual(["pending", "completed", "end"]);
    const seqs = ({ told }: typeof live) => told.filter(({ event }) => event === "event").map(({ id }) => id);
    expect(seqs(live)).toEqual(["1.0", "1.1", "1.2"]);
    expect(seqs(late)).toEqual(["1.1", "1.2"]);
    expect((await listen(app, path, { "last-event-id": "end" })).answer.status).toBe(204);
    await app.service.stop(0);
  });

  test("of a long finished run has each event once, then the run, and `end` as its last message", async () => {
    const agent = scriptedAgent(async function* (): AsyncGenerator<AgentEvent> {
      for (let i = 0; i < 41; i++) yield { type: "thought", text: `thought ${i}`, by: "rule" };
      yield { type: "end", outcome: "not_judged", reason: "scripted" };
    });
    const app = testApp({ agent });
    const [runId] = await ask(app, promptOf(app).id);
    const path = `/api/v1/runs/${runId}/events`;
    const live = await listen(app, path);
    await app.service.start();
    await live.until(() => false);
    const kinds = ({ told }: typeof live) => told.map(({ event }) => event);
    const finished = await listen(app, path);
    await finished.until(() => false);
    expect(kinds(finished)).toEqual([...Array(42).fill("event"), "run", "end"]);
    const runs = live.told.filter(({ event }) => event === "run").map(({ data }) => JSON.parse(data));
    expect(runs.map(({ status, waitingFor }) => `${status} ${waitingFor?.what}`)).toEqual([
      ...new Set(runs.map(({ status, waitingFor }) => `${status} ${waitingFor?.what}`)),
    ]);
    for (const { told } of [live, finished]) {
      expect(told.findIndex(({ data, event }) => event === "run" && JSON.parse(data).completedAt !== null)).toBe(
        told.length - 2,
      );
      expect(told.filter(({ id, event }) => id === "end" || event === "end")).toEqual([
        { event: "end", id: "end", data: JSON.stringify({ runId, status: "completed" }) },
      ]);
    }
    for (const [at, { id }] of finished.told.slice(0, -1).entries()) {
      const resumed = await listen(app, path, { "last-event-id": id });
      await resumed.until(() => false);
      expect(kinds(resumed)).toEqual([...Array(Math.max(0, 41 - at)).fill("event"), "run", "end"]);
    }
    await app.service.stop(0);
  });

  test("is visible only to the organization of the run", async () => {
    const app = testApp();
    const [runId] = await ask(app, promptOf(app).id);
    const foreign = { authorization: `Bearer ${app.b.key}` };
    for (const path of [`/api/v1/runs/${runId}/events`, `/runs/${runId}/events`, `/runs/${runId}`])
      expect([path, (await app.send("GET", path, { headers: foreign })).status]).toEqual([path, 404]);
  });

  test("ends when the service stops", async () => {
    const app = testApp();
    const [runId] = await ask(app, promptOf(app).id);
    const paths = [`/api/v1/runs/${runId}/events`, `/runs/${runId}/events`, "/runs/live", "/live"];
    const streams = await Promise.all(paths.map((path) => listen(app, path)));
    await app.service.stop(0);
    for (const stream of streams) expect(await stream.until(() => false)).toBeNull();
    // The run goes on after a restart, and a page that reconnects with it.
    for (const stream of streams) expect(stream.told.filter(({ event }) => event === "end")).toEqual([]);
  });

  test.each(["/api/v1", ""])("is read from the database only as fast as the client reads it: %j", async (base) => {
    const app = testApp();
    const [runId = ""] = await ask(app, promptOf(app).id);
    const data = { text: "x".repeat(1000), by: "rule" };
    const row = { orgId: app.a.org, runId, attempt: 1, at: 0, tMs: 0, type: "thought", source: "agent", data } as const;
    app.db
      .insert(sessionEvents)
      .values(Array.from({ length: 1000 }, (_, seq) => ({ ...row, seq })))
      .run();
    const stream = await listen(app, `${base}/runs/${runId}/events`);
    await stream.until(({ id }) => id !== "");
    for (let i = 0; i < 50; i++) await new Promise((resolve) => setImmediate(resolve));
    // Rows deleted now were not read ahead.
    app.db.delete(sessionEvents).where(gt(sessionEvents.seq, 500)).run();
    await app.send("POST", `/api/v1/runs/${runId}/cancel`);
    await stream.until(() => false);
    const told = stream.told.map(({ data }) => data).join("");
    expect(told.match(/event-thought|"type":"thought"/g)?.length).toBe(501);
  });

  test("ends when its key is revoked", async () => {
    const { agent, goOn } = steps();
    const app = testApp({ agent });
    const [runId] = await ask(app, promptOf(app).id);
    const { key, apiKey } = createKey(app.service.ctx, app.a.org, "short");
    const stream = await listen(app, `/api/v1/runs/${runId}/events`, { authorization: `Bearer ${key}` });
    await app.service.start();
    await stream.until(({ data }) => data.includes('"one"'));
    revokeKey(app.service.ctx, app.a.org, apiKey.id);
    goOn();
    expect(await stream.until(({ data }) => data.includes('"two'))).toBeNull();
    goOn();
    await app.service.stop(0);
  });

  test("is limited to a number of streams per organization", async () => {
    const app = testApp();
    const streams = await Promise.all(Array.from({ length: 200 }, () => listen(app, "/live")));
    const [runId] = await ask(app, promptOf(app).id);
    for (const path of ["/live", `/api/v1/runs/${runId}/events`]) {
      const { status, headers } = await app.send("GET", path);
      expect([path, status, headers.get("retry-after")]).toEqual([path, 429, "60"]);
    }
    const foreign = await listen(app, "/live", { authorization: `Bearer ${app.b.key}` });
    expect(foreign.answer.status).toBe(200);
    await streams[0]?.leave();
    const again = await listen(app, "/live");
    expect(again.answer.status).toBe(200);
    for (const stream of [...streams, foreign, again]) await stream.leave();
  });

  test("is rendered once per change for all viewers, and again for later viewers", async () => {
    const app = testApp();
    promptOf(app, "First");
    const render = spyOn(promptLists, "listScheduledPrompts");
    const streams = await Promise.all(Array.from({ length: 50 }, () => listen(app, "/live")));
    for (const stream of streams) await stream.until(({ data }) => data.includes("1 prompt<"));
    expect(render).toHaveBeenCalledTimes(1);
    promptOf(app, "Second");
    for (const stream of streams) expect(await stream.until(({ data }) => data.includes("2 prompts"))).not.toBeNull();
    expect(render).toHaveBeenCalledTimes(2);
    const foreign = await listen(app, "/live", { authorization: `Bearer ${app.b.key}` });
    await foreign.until(() => true);
    expect(render.mock.calls.map(([_, org]) => org)).toEqual([app.a.org, app.a.org, app.b.org]);
    for (const stream of [...streams, foreign]) await stream.leave();
    const again = await listen(app, "/live");
    expect(await again.until(({ data }) => data.includes("2 prompts"))).not.toBeNull();
    await again.leave();
    render.mockRestore();
  });

  test("is no longer read when nobody listens", async () => {
    const app = testApp();
    const [runId] = await ask(app, promptOf(app).id);
    const stream = await listen(app, `/api/v1/runs/${runId}/events`);
    await stream.until(({ event }) => event === "run");
    await stream.leave();
    expect(stream.told).toHaveLength(1);
  });
});

describe("the page of a run", () => {
  test("gets updates as fragments, and a final message", async () => {
    const { agent, goOn } = steps();
    const app = testApp({ agent });
    const [runId] = await ask(app, promptOf(app).id);
    const page = await listen(app, `/runs/${runId}/events?after=0.-1`);
    await app.service.start();
    const first = await page.until(({ data }) => data.includes(">one<"));
    expect(first?.data).toContain('<hx-partial hx-target="#timeline" hx-swap="innerHTML"><li class="event-thought">');
    expect(first?.data).toContain('<hx-partial hx-target="#run-state" hx-swap="innerMorph">');
    goOn();
    const second = await page.until(({ data }) => data.includes("two &lt;b>"));
    expect(second?.data).toContain('hx-target="#timeline" hx-swap="beforeend"');
    expect(second?.data).not.toContain(">one<");
    goOn();
    expect(await page.until(() => false)).toBeNull();
    expect(page.told.at(-1)).toEqual({ event: "end", id: "", data: "" });
    expect(page.told.at(-2)?.data).toContain('class="report-link"');
    await app.service.stop(0);
  });

  test("shows a new attempt in place of the previous one", async () => {
    const crash = Promise.withResolvers<void>();
    let tries = 0;
    const agent = scriptedAgent(async function* (): AsyncGenerator<AgentEvent> {
      yield { type: "thought", text: `try ${++tries}`, by: "rule" };
      await crash.promise;
      if (tries === 1) throw new Error("out of memory");
      yield { type: "end", outcome: "not_judged", reason: "scripted" };
    });
    const app = testApp({ agent });
    const [runId] = await ask(app, promptOf(app).id);
    await app.service.start();
    const page = await listen(app, `/runs/${runId}/events`);
    const first = await page.until(({ data }) => data.includes(">try 1<"));
    const later = await listen(app, `/runs/${runId}/events`, { "last-event-id": first?.id ?? "" });
    crash.resolve();
    for (const each of [page, later]) {
      const second = await each.until(({ data }) => data.includes(">try 2<"));
      expect(second?.id).toStartWith("2.");
      expect(second?.data).toContain('hx-target="#timeline" hx-swap="innerHTML"');
      expect(second?.data).not.toContain(">try 1<");
      expect(await each.until(() => false)).toBeNull();
    }
    const { body } = await app.send("GET", `/runs/${runId}`);
    expect(body).toMatch(/data-outcome="retried">.*agent_crashed: out of memory/);
    expect(body).not.toContain(">try 1<");
    await app.service.stop(0);
  });

  test("can cancel and rerun it, and says what to do about a failure", async () => {
    const app = testApp();
    const person = await signedIn(app, { role: "member" });
    const [runId] = await ask(app, promptOf(app).id);
    expect((await person.post(`/runs/${runId}/cancel`, { confirmed: "1" })).location).toBe(`/runs/${runId}`);
    const { body } = await person.get(`/runs/${runId}`);
    expect(body).toMatch(/role="alert" data-code="cancelled" data-cause="cancelled">.*By A member/);
    expect((await person.post(`/runs/${runId}/cancel`, { confirmed: "1" })).status).toBe(409);
    const { location } = await person.post(`/runs/${runId}/rerun`);
    expect(location).toMatch(/^\/runs\//);
    expect(location).not.toBe(`/runs/${runId}`);
    const foreign = await signedIn(app, { org: app.b.org });
    for (const action of ["cancel", "rerun"]) expect((await foreign.post(`${location}/${action}`)).status).toBe(404);
    expect((await person.get(location ?? "")).body).toContain("run-pending");
  });

  test("shows its usage of limits", async () => {
    const app = testApp({
      env: { EVALD_MAX_REQUESTS: "50" },
      agent: scriptedAgent(async function* () {
        for (let i = 0; i < 40; i++)
          yield {
            type: "http",
            id: null,
            method: "GET",
            url: docs,
            mappedUrl: null,
            status: 200,
            ms: 1,
            bytes: 1,
            contentType: null,
            provenance: "given",
            foundOn: null,
            purpose: "task",
            error: null,
          };
        yield { type: "end", outcome: "not_judged", reason: "scripted" };
      }),
    });
    const [runId] = await ask(app, promptOf(app).id);
    await app.runJobs();
    const { body } = await app.send("GET", `/runs/${runId}`);
    expect(body).toContain('<span class="soft">40 of 50</span><svg class="track grade-d"');
    expect(body).toContain('aria-label="Time: ');
    expect(body).not.toContain("Tokens");
  });

  test("counts the judge only for the cost, as its budget does", async () => {
    const app = judgedApp({ id: "llm", turns: [says(guessedPathAnswer())], sessions: [guessedPathSession()] });
    const { report } = await app.run({ endGoal: goal, text: "Add a note. https://docs.notes.example/" });
    const { body } = await (await signedIn(app)).get(`/runs/${report.run.runId}`);
    const used = (name: string) => new RegExp(`aria-label="${name}: ([\\d,.$]+) of`).exec(body)?.[1];
    expect([used("Model calls"), used("Tokens"), used("Cost with judge")]).toEqual(["6", "25,980", "$0.06"]);
    expect(report.metrics.costDetail).toContain("6 model calls");
  });
});

describe("the list of runs", () => {
  const app = testApp();
  const [first, second] = [promptOf(app, "First"), promptOf(app, "Second")];
  const done = evaluation(app, first.id, [niceGrade, "timeout: the run took longer than 600 seconds", niceGrade]);
  const byPerson = evaluation(app, second.id, ["cancelled: by Ada"], { trigger: "web" });
  const shown = async (query = "") => {
    const { body } = await app.send("GET", `/runs${query}`);
    return [...body.matchAll(/<a class="plain" href="\/runs\/([^"]+)"/g)].map(([, id]) => id as string);
  };
  const ids = (runs: { runId: string }[]) => runs.map(({ runId }) => runId).toReversed();

  test.each([
    ["", () => [...ids(byPerson), ...ids(done)]],
    [`?promptId=${first.id}`, () => ids(done)],
    ["?status=failed", () => [...ids(byPerson), done[1]!.runId]],
    ["?status=completed", () => [done[2]!.runId, done[0]!.runId]],
    ["?status=failed&trigger=api", () => [done[1]!.runId]],
    ["?trigger=web", () => ids(byPerson)],
    ["?trigger=api&agent=explorer", () => ids(done)],
    [`?trigger=web&promptId=${first.id}`, () => []],
    ["?agent=explorer&status=pending", () => []],
    ["?agent=llm", () => []],
  ])("returns the matching runs for %s", async (query, expected) => {
    expect(await shown(query)).toEqual(expected());
  });

  test.each(["?status=gone", "?promptId=x", "?trigger=x", "?before=x", `?before=${crypto.randomUUID()}`])(
    "rejects %s",
    async (query) => {
      expect((await app.send("GET", `/runs${query}`)).status).toBe(400);
    },
  );

  test.each(["", "&trigger=mcp", "&agent=explorer", "&status=failed"])(
    "continues with a page%s where the last one ended, without gap or overlap",
    async (filter) => {
      const other = testApp();
      const { id } = promptOf(other);
      for (let i = 0; i < 4; i++) evaluation(other, id, Array(30).fill("timeout: late"), { trigger: "mcp" });
      const seen: string[] = [];
      for (let path: string | undefined = `/runs?x=1${filter}`; path; ) {
        const { body } = await other.send("GET", path);
        seen.push(...[...body.matchAll(/<a class="plain" href="\/runs\/([^"]+)"/g)].map(([, run]) => run as string));
        path = /rel="next" href="([^"]+)">/.exec(body)?.[1]?.replaceAll("&amp;", "&");
      }
      expect([seen.length, new Set(seen).size]).toEqual([120, 120]);
      if (filter !== "&trigger=mcp") expect(seen).toEqual([...seen].sort().reverse());
    },
  );

  test("updates live", async () => {
    const other = testApp();
    const { id } = promptOf(other);
    const list = await listen(other, `/runs/live?promptId=${id}`);
    await list.until(({ data }) => data.includes('class="empty"'));
    const [runId] = await ask(other, id);
    expect(await list.until(({ data }) => data.includes(`/runs/${runId}`))).not.toBeNull();
    await other.service.stop(0);
  });
});

describe("an evaluation", () => {
  test("shows its runs and their combined results", async () => {
    const app = testApp();
    const { id } = promptOf(app);
    const grades = [70, 80, 90].map((score, i) => ({
      ...niceGrade,
      score,
      outcome: i === 0 ? ("goal_not_met" as const) : ("succeeded" as const),
    }));
    const [run] = evaluation(app, id, [...grades, "infrastructure: no answer"]);
    const { body } = await app.send("GET", `/evals/${run?.evalRequestId}`);
    for (const words of [
      "<dd>80.0</dd>",
      "95% CI 55.2 to 100.0",
      "<dd>66.7%</dd>",
      "<dd>3 of 4</dd>",
      'data-cause="infrastructure"',
    ])
      expect(body).toContain(words);
    const foreign = { authorization: `Bearer ${app.b.key}` };
    for (const path of [`/evals/${run?.evalRequestId}`, `/evals/${run?.evalRequestId}/live`])
      expect((await app.send("GET", path, { headers: foreign })).status).toBe(404);
  });
});

test("pages and assets are small, however much data there is", async () => {
  const app = testApp({
    agent: scriptedAgent(async function* () {
      for (let i = 0; i < 500; i++) yield { type: "thought", text: `Step ${i}: ${"words ".repeat(80)}`, by: "rule" };
      yield { type: "end", outcome: "not_judged", reason: "scripted" };
    }),
  });
  const { id } = promptOf(app);
  const [runId] = await ask(app, id);
  await app.runJobs();
  evaluation(app, id, Array(40).fill("timeout: late"));
  evaluation(app, id, Array(40).fill(niceGrade));
  for (const path of ["/", "/prompts", `/prompts/${id}`, "/runs", `/runs/${runId}`]) {
    const { body } = await app.send("GET", path);
    expect([path, Buffer.byteLength(body) < 100 * 1024]).toEqual([path, true]);
  }
  expect(Buffer.byteLength((await app.send("GET", "/client.js")).body)).toBeLessThan(60 * 1024);
});
