import { afterEach, expect, setSystemTime, test } from "bun:test";
import { createService } from "../src/service.ts";
import { scriptedAgent, testApp } from "./support/app.ts";
import { browse, password, signedIn } from "./support/people.ts";

const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;

afterEach(() => void setSystemTime());

/** A service whose clock can be set, and everything in its database that is deleted once it is old. */
async function setUp() {
  let wallMs = Date.now();
  let monotonicMs = 5_000;
  const clocks = { now: () => wallMs, monotonicNow: () => monotonicMs };
  const app = testApp({ ...clocks, env: { EVALD_KEEP_SESSIONS_DAYS: "30" } });
  let { service } = app;
  const { id } = (await app.send("POST", "/api/v1/prompts", { body: { text: "See https://docs.test/" } })).body;
  await app.send("POST", `/api/v1/prompts/${id}/run`, { body: { urlMap: {} } });
  await app.runJobs();
  await signedIn(app);
  app.db.$client.run("insert into used_tokens (issuer, jti, expires_at) values ('ci', 'one', ?)", [wallMs + minuteMs]);
  const kept = () =>
    ["session_events", "sign_ins", "used_tokens"].map(
      (table) => app.db.$client.query<{ n: number }, []>(`select count(*) n from ${table}`).get()?.n,
    );
  return {
    kept,
    before: kept(),
    /** Sets the clock forward, without any time that passes. */
    set: (ms: number) => (wallMs += ms),
    /** Lets time pass, with maintenance each `stepMs`. */
    async pass(ms: number, stepMs = ms) {
      for (let passed = 0; passed < ms; passed += stepMs) {
        wallMs += stepMs;
        monotonicMs += stepMs;
        await service.upkeep.runOnce();
      }
    },
    /** Starts the service again, on the same database and with another monotonic clock. */
    restart() {
      monotonicMs = 70;
      const { db, config, log, agents, baseUrl } = service.ctx;
      service = createService({ ...clocks, db, config, log, agents, baseUrl });
    },
    forgetProof: () => app.db.$client.run("delete from clock"),
  };
}

test("a clock that is wrong for less than a day deletes nothing, and what is old by the right time is deleted as before", async () => {
  const { kept, before, set, pass } = await setUp();
  await pass(minuteMs);
  set(100 * dayMs);
  await pass(23 * 60 * minuteMs, 230 * minuteMs);
  // The token expired in the time that passed.
  expect(kept()).toEqual([before[0], before[1], 0]);
  set(-100 * dayMs);
  await pass(minuteMs);
  expect(kept()).toEqual([before[0], before[1], 0]);
  await pass(31 * dayMs);
  expect(kept()).toEqual([0, 0, 0]);
});

test("a clock that is set forward just after maintenance, again and again, deletes nothing", async () => {
  const { kept, before, set, pass } = await setUp();
  await pass(1000);
  for (let i = 0; i < 5; i++) {
    set(100 * dayMs);
    await pass(1000);
    expect(kept()).toEqual(before);
    set(-100 * dayMs);
    await pass(1000);
    expect(kept()).toEqual(before);
  }
});

test.each([
  ["after maintenance by the right clock", () => {}],
  ["with no earlier maintenance to compare with", (forgetProof: () => void) => forgetProof()],
])("a service that starts with a wrong clock deletes nothing, %s", async (_, prepare) => {
  const { kept, before, set, pass, restart, forgetProof } = await setUp();
  await pass(1000);
  prepare(forgetProof);
  restart();
  set(100 * dayMs);
  await pass(minuteMs);
  expect(kept()).toEqual(before);
  restart();
  await pass(minuteMs);
  expect(kept()).toEqual(before);
  set(-100 * dayMs);
  restart();
  await pass(minuteMs);
  expect(kept()).toEqual(before);
});

test("a clock that stays ahead for a day, as after a downtime, is believed, also across restarts", async () => {
  const { kept, set, pass, restart } = await setUp();
  await pass(minuteMs);
  set(100 * dayMs);
  await pass(12 * 60 * minuteMs, 120 * minuteMs);
  restart();
  expect(kept()[0]).toBeGreaterThan(0);
  await pass(14 * 60 * minuteMs, 120 * minuteMs);
  expect(kept()).toEqual([0, 0, 0]);
});

test("a clock that was set back deletes nothing", async () => {
  const { kept, before, set, pass, restart } = await setUp();
  await pass(1000);
  set(-2000 * dayMs);
  restart();
  await pass(1000);
  set(2000 * dayMs);
  await pass(1000);
  expect(kept()).toEqual(before);
});

test("a clock that is set during a run changes no duration, and nothing ends before it began", async () => {
  for (const stepMs of [40 * dayMs, -40 * dayMs]) {
    let wallMs = Date.now();
    let monotonicMs = 5_000;
    const agent = scriptedAgent(async function* () {
      yield { type: "thought", text: "before", by: "rule" };
      wallMs += stepMs + 3_000;
      monotonicMs += 3_000;
      yield { type: "thought", text: "after", by: "rule" };
      yield { type: "end", outcome: "not_judged", reason: "scripted" };
    });
    const app = testApp({ agent, now: () => wallMs, monotonicNow: () => monotonicMs });
    const { id } = (await app.send("POST", "/api/v1/prompts", { body: { text: "See https://docs.test/" } })).body;
    const { runId } = (await app.send("POST", `/api/v1/prompts/${id}/run`, { body: { urlMap: {} } })).body;
    await app.runJobs();
    const run = (await app.send("GET", `/api/v1/runs/${runId}`)).body;
    const report = (await app.send("GET", `/api/v1/reports/${run.report.slug}`)).body;
    const { events } = (await app.send("GET", `/api/v1/reports/${run.report.slug}/trace`)).body;
    const [attempt] = (await app.send("GET", `/api/v1/runs/${runId}/attempts`)).body;
    expect(report.metrics.timeSeconds).toBe(3);
    expect(events.map(({ tMs }: { tMs: number }) => tMs)).toEqual([0, 3000, 3000]);
    for (const { startedAt, completedAt } of [run, attempt])
      expect(Date.parse(completedAt)).toBeGreaterThanOrEqual(Date.parse(startedAt));
  }
});

test("a clock that is set to another year signs nobody out, and sessions end by the time that passes", async () => {
  const start = Date.now();
  let monotonicMs = 5_000;
  const app = testApp({ now: () => Date.now(), monotonicNow: () => monotonicMs });
  const person = await signedIn(app);
  const isIn = async ({ get }: Pick<typeof person, "get">) => (await get("/account")).status === 200;
  for (const days of [100, -100]) {
    setSystemTime(start + days * dayMs);
    await app.service.upkeep.runOnce();
    expect([days, await isIn(person)]).toEqual([days, true]);
    // Who signs in meanwhile stays signed in, too.
    const other = browse(app);
    expect((await other.post("/sign-in", { email: person.email, password })).status).toBe(303);
    expect(await isIn(other)).toBe(true);
    setSystemTime(start);
    await app.service.upkeep.runOnce();
    expect([days, await isIn(person), await isIn(other)]).toEqual([days, true, true]);
  }
  for (let day = 1; day <= 31; day++) {
    setSystemTime(start + day * dayMs);
    monotonicMs += dayMs;
    app.service.ctx.provenTime.now();
  }
  expect(await isIn(person)).toBe(false);
});

test("a clock that is set forward or back doesn't open the limit of sign-in attempts", async () => {
  let wallMs = Date.now();
  let monotonicMs = 5_000;
  const app = testApp({ now: () => wallMs, monotonicNow: () => monotonicMs });
  const { email } = await signedIn(app);
  const attempt = async (word: string) => (await browse(app).post("/sign-in", { email, password: word })).status;
  await Promise.all(Array.from({ length: 10 }, () => attempt("wrong password")));
  expect(await attempt(password)).toBe(429);
  for (const ms of [100 * dayMs, -200 * dayMs, 100 * dayMs]) {
    wallMs += ms;
    expect([ms, await attempt(password)]).toEqual([ms, 429]);
  }
  wallMs += 15 * minuteMs + 1;
  monotonicMs += 15 * minuteMs + 1;
  expect(await attempt(password)).toBe(303);
});
