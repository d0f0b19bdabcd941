import { afterAll, describe, expect, jest, spyOn, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join as joinPath } from "node:path";
import { eq, sql } from "drizzle-orm";
import { updateOrg } from "../../src/auth/orgs.ts";
import { openDb } from "../../src/db/open.ts";
import { jobs } from "../../src/db/tables/jobs.ts";
import { prompts } from "../../src/db/tables/prompts.ts";
import { evalRequests, runs } from "../../src/db/tables/runs.ts";
import { scheduledEvaluations } from "../../src/db/tables/schedules.ts";
import { createPrompt } from "../../src/prompts/prompts.ts";
import { createProvider, updateProvider } from "../../src/providers/providers.ts";
import { createService } from "../../src/service.ts";
import { instantAgent } from "../support/app.ts";
import { join } from "../support/people.ts";
import { scheduledApp } from "../support/schedules.ts";
import { startSmtp } from "../support/smtp.ts";
import { isThorough } from "../support/thorough.ts";

const folder = mkdtempSync(joinPath(tmpdir(), "evald-schedule-"));
afterAll(() => rmSync(folder, { recursive: true }));

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;
const iso = (at: number) => new Date(at).toISOString();

/** Every time of a frequency between two moments. */
async function timesBetween(frequency: string, zone: string, from: string, to: string): Promise<string[]> {
  const { create, nextRuns, clock } = scheduledApp(from, { zone });
  const id = await create({ frequency });
  const found: string[] = [];
  for (;;) {
    const next = (await nextRuns(id)) ?? [];
    // Otherwise the loop would not end.
    if (next.length === 0) throw new Error(`${frequency} has no next time.`);
    for (const at of next) {
      if (at >= to) return found;
      found.push(at);
    }
    clock.at = Date.parse(found.at(-1) ?? to);
  }
}

describe("the times of a schedule", () => {
  const spring = ["2026-03-28T23:00:00.000Z", "2026-03-29T22:00:00.000Z"] as const;
  const autumn = ["2026-10-24T22:00:00.000Z", "2026-10-25T23:00:00.000Z"] as const;
  const times = (date: string, ...clock: string[]) => clock.map((time) => `2026-${date}T${time}:00.000Z`);
  const everyHour = ([from, to]: readonly [string, string]) => {
    const hours: string[] = [];
    for (let at = Date.parse(from) + hour; at < Date.parse(to); at += hour) hours.push(iso(at));
    return hours;
  };
  const twiceTwo = times("10-25", "00:00", "00:15", "00:30", "00:45", "01:00", "01:15", "01:30", "01:45");
  const cases: [frequency: string, when: string, day: readonly [string, string], times: string[]][] = [
    ["30 2 * * *", "a time that the clock skips comes at the end of the gap", spring, times("03-29", "01:00")],
    ["30 2 * * *", "a time that occurs twice is used once, the first time", autumn, times("10-25", "00:30")],
    ["15,45 2 * * *", "several skipped times come once", spring, times("03-29", "01:00")],
    ["0 2,14 * * *", "a list has times of day, in spring", spring, times("03-29", "01:00", "12:00")],
    ["0 2,14 * * *", "a list has times of day, in autumn", autumn, times("10-25", "00:00", "13:00")],
    [
      "0 1-3 * * *",
      "a range has times of day, too",
      autumn,
      [...times("10-24", "23:00"), ...times("10-25", "00:00", "02:00")],
    ],
    ["0 * * * *", "every hour, in spring", spring, everyHour(spring)],
    ["0 * * * *", "every hour, in autumn", autumn, everyHour(autumn)],
    ["*/15 2 * * *", "steps follow the wall clock: not at all in spring", spring, []],
    ["*/15 2 * * *", "steps follow the wall clock: in both hours in autumn", autumn, twiceTwo],
  ];
  test.each(cases)("follow the clock changes in Berlin (%s): %s", async (frequency, _, [from, to], expected) => {
    expect(await timesBetween(frequency, "Europe/Berlin", from, to)).toEqual(expected);
  });

  test("skip a day that a month doesn't have, and one that never occurs is rejected", async () => {
    const found = await timesBetween("0 0 31 * *", "UTC", "2026-01-01T00:00:00.000Z", "2027-01-01T00:00:00.000Z");
    expect(found.map((at) => at.slice(5, 10))).toEqual(["01-31", "03-31", "05-31", "07-31", "08-31", "10-31", "12-31"]);
    const { send } = scheduledApp("2026-01-01");
    expect(
      (await send("POST", "/api/v1/prompts", { body: { text: "x", frequency: "0 0 30 2 *" } })).body.detail,
    ).toStartWith('Invalid frequency: "0 0 30 2 *" ');
  });

  test("stay the same for a preset: the same minute, hour, weekday or day in its time zone", async () => {
    const { create, nextRuns, clock, change } = scheduledApp("2026-01-05T00:00:00Z", { zone: "America/New_York" });
    const id = await create({ frequency: "hourly" });
    const local = (at: string) => {
      const [date = "", time = ""] = new Date(at).toLocaleString("sv", { timeZone: "America/New_York" }).split(" ");
      return { time, minute: time.slice(3), day: date.slice(8), weekday: new Date(date).getUTCDay() };
    };
    // The time may be in the hour that the clock skips on this day.
    const hasAllHours = (at: string) => !at.startsWith("2026-03-08");
    const seen: Record<string, ReturnType<typeof local>[]> = {};
    for (const frequency of ["hourly", "daily", "weekly", "monthly"]) {
      await change(id, { frequency });
      for (clock.at = Date.parse("2026-01-05"); clock.at < Date.parse("2026-12-20"); clock.at += 31 * day)
        seen[frequency] = [...(seen[frequency] ?? []), ...((await nextRuns(id)) ?? []).filter(hasAllHours).map(local)];
    }
    const different = (frequency: string, part: keyof ReturnType<typeof local>) =>
      new Set(seen[frequency]?.map((at) => at[part]));
    const minutes = Object.keys(seen).map((frequency) => [...different(frequency, "minute")]);
    expect(new Set(minutes.flat()).size).toBe(1);
    expect([different("daily", "time").size, different("weekly", "time").size]).toEqual([1, 1]);
    expect([different("weekly", "weekday").size, different("monthly", "day").size]).toEqual([1, 1]);
    expect(different("monthly", "time").size).toBe(1);
  });
});

describe("a scheduled evaluation", () => {
  test("is one row with its runs, which use the prompt at that time", async () => {
    const { create, change, tickAt, send, db } = scheduledApp("2026-01-01T00:30:00Z");
    const id = await create({
      text: "Use {{language}}. https://x.test/",
      templateDefaults: { language: "Python" },
      frequency: "0 * * * *",
      runsPerEval: 3,
    });
    expect(await tickAt("2026-01-01T00:59:59.999Z")).toBe(Date.parse("2026-01-01T01:00:00Z"));
    await change(id, { text: "Use {{language}} now. https://x.test/" });
    expect(await tickAt("2026-01-01T01:00:00.250Z")).toBe(Date.parse("2026-01-01T02:00:00Z"));
    await change(id, { text: "Something else. https://x.test/" });
    const { body, headers } = await send("GET", `/api/v1/prompts/${id}/scheduled-evaluations`);
    expect(body).toEqual([
      {
        scheduledAt: "2026-01-01T01:00:00.000Z",
        outcome: "ran",
        evalRequestId: expect.any(String),
        reason: null,
        createdAt: "2026-01-01T01:00:00.250Z",
      },
    ]);
    expect(headers.get("x-total-count")).toBe("1");
    const [request] = db.select().from(evalRequests).all();
    expect(request).toMatchObject({ id: body[0].evalRequestId, promptId: id, trigger: "schedule" });
    const made = db.select().from(runs).all();
    expect(made.map((run) => [run.evalRequestId, run.task.text, run.templateArgs])).toEqual(
      Array(3).fill([request?.id, "Use Python now. https://x.test/", { language: "Python" }]),
    );
    expect(db.select().from(jobs).all().length).toBe(3);
  });

  test("isn't stored, nor its runs, if the disk fills up, and runs once there is room", async () => {
    const { create, tickAt, outcomes, service, db } = scheduledApp("2026-01-01T00:30:00Z");
    const id = await create({ frequency: "0 * * * *", runsPerEval: 2 });
    const { newId } = service.ctx;
    // These are the IDs of the evaluation, its two runs, their jobs, and the entry in the audit log.
    let left = 5;
    service.ctx.newId = (at) => {
      if (left-- === 0) throw Object.assign(new Error("database or disk is full"), { code: "SQLITE_FULL" });
      return newId(at);
    };
    const rows = () =>
      [scheduledEvaluations, evalRequests, runs, jobs].map((table) => db.select().from(table).all().length);
    await expect(tickAt("2026-01-01T01:00:00Z")).rejects.toThrow("disk is full");
    expect(rows()).toEqual([0, 0, 0, 0]);
    left = 6;
    await tickAt("2026-01-01T01:05:00Z");
    expect([rows(), await outcomes(id)]).toEqual([[1, 1, 2, 2], ["2026-01-01T01:00 ran"]]);
  });

  test("fails on an internal error, stores nothing else, and doesn't delay others", async () => {
    const { create, tickAt, outcomes, send, db } = scheduledApp("2026-01-01T00:30:00Z");
    const bad = await create({
      frequency: "0 * * * *",
      runsPerEval: 2,
      additionalUrls: [{ url: "https://bad.test/" }],
    });
    const good = await create({ frequency: "5 * * * *" });
    db.run(sql`create temp trigger broken before insert on jobs
      when new.host = 'bad.test' and exists (select 1 from jobs where host = 'bad.test')
      begin select raise(abort, 'broken'); end`);
    await tickAt("2026-01-01T01:30:00Z");
    expect(await outcomes(bad)).toEqual(["2026-01-01T01:00 failed"]);
    expect(await outcomes(good)).toEqual(["2026-01-01T01:05 ran"]);
    const [evaluation] = (await send("GET", `/api/v1/prompts/${bad}/scheduled-evaluations`)).body;
    expect(evaluation).toMatchObject({ evalRequestId: null, reason: "internal error; see the server log" });
    expect(db.select().from(runs).all().length).toBe(1);
  });

  test("whose request fails is stored with the reason, and retried at the next time", async () => {
    const { create, tickAt, send, service, a, db, outcomes } = scheduledApp("2026-01-01T00:30:00Z");
    const provider = createProvider(service.ctx, a.org, { name: "Tool", docsUrl: "https://x.test/" });
    const id = await create({
      text: "{{language}}",
      templateDefaults: { language: "Go" },
      targetProviderId: provider.id,
      frequency: "0 * * * *",
    });
    const set = (values: Partial<typeof prompts.$inferInsert>) => db.update(prompts).set(values).run();
    const latest = async () =>
      (await send("GET", `/api/v1/prompts/${id}/scheduled-evaluations?limit=1`)).body[0].reason;
    set({ templateDefaults: {} });
    await tickAt("2026-01-01T01:00:00Z");
    expect(await latest()).toMatch(/ language\.$/);
    db.$client.run("pragma foreign_keys = off");
    set({ templateDefaults: { language: "Go" }, targetProviderId: "0199f3a1-0000-7000-8000-000000000000" });
    await tickAt("2026-01-01T02:00:00Z");
    expect(await latest()).toBe("No provider has the ID 0199f3a1-0000-7000-8000-000000000000.");
    set({ targetProviderId: provider.id });
    await tickAt("2026-01-01T03:00:00Z");
    expect((await outcomes(id)).map((line) => line.slice(11))).toEqual(["01:00 failed", "02:00 failed", "03:00 ran"]);
  });

  test("is skipped while runs of the last scheduled evaluation are unfinished; other runs don't count", async () => {
    const { create, tickAt, finish, outcomes, send, db } = scheduledApp("2026-01-01T00:30:00Z");
    const id = await create({ frequency: "0 * * * *", runsPerEval: 2 });
    await send("POST", `/api/v1/prompts/${id}/run`, { body: { urlMap: {} } });
    await tickAt("2026-01-01T01:00:00Z");
    const first = db.select().from(runs).where(eq(runs.promptId, id)).all().at(-1)?.id;
    await send("POST", `/api/v1/runs/${first}/cancel`);
    await tickAt("2026-01-01T02:00:00Z");
    await finish(id);
    await tickAt("2026-01-01T03:00:00Z");
    expect((await outcomes(id)).map((line) => line.slice(11))).toEqual([
      "01:00 ran",
      "02:00 skipped_overlap",
      "03:00 ran",
    ]);
    const [, skipped] = (await send("GET", `/api/v1/prompts/${id}/scheduled-evaluations`)).body;
    expect(skipped).toMatchObject({
      evalRequestId: null,
      reason: "runs of the previous scheduled evaluation were still active",
    });
  });

  test("runs after a downtime if it is the latest and at most half of its period old, 1 to 7 days; all others are missed", async () => {
    const { create, change, tickAt, restart, outcomes, send, finish } = scheduledApp("2026-01-01T00:00:00Z");
    const minutely = await create({ frequency: "* * * * *" });
    const daily = await create({ frequency: "0 6 * * *" });
    const yearly = await create({ frequency: "30 6 1 1 *" });
    const weekly = await create({ frequency: "0 6 * * 5" });
    await restart();
    // There are more evaluations than one transaction processes.
    await tickAt("2026-01-02T06:30:00.000Z");
    const ofMinutes = await Promise.all([
      outcomes(minutely),
      send("GET", `/api/v1/prompts/${minutely}/scheduled-evaluations?limit=3`),
    ]);
    expect(ofMinutes[1].headers.get("x-total-count")).toBe("1830");
    expect(
      ofMinutes[1].body.map(({ scheduledAt, outcome, reason }: Record<string, string>) => [
        scheduledAt,
        outcome,
        reason,
      ]),
    ).toEqual([
      ["2026-01-02T06:30:00.000Z", "ran", null],
      ...["29", "28"].map((past) => [
        `2026-01-02T06:${past}:00.000Z`,
        "missed",
        expect.stringContaining("only the latest missed evaluation"),
      ]),
    ]);
    expect(await outcomes(daily)).toEqual(["2026-01-01T06:00 missed", "2026-01-02T06:00 ran"]);
    // This was exactly 24 hours ago.
    expect(await outcomes(yearly)).toEqual(["2026-01-01T06:30 ran"]);
    await change(minutely, { status: "paused" });
    await finish(yearly);
    expect(await outcomes(weekly)).toEqual(["2026-01-02T06:00 ran"]);
    await finish(weekly);
    for (const at of ["2026-01-12T18:00:00.000Z", "2026-01-19T18:00:00.001Z"]) {
      await restart();
      await tickAt(at);
    }
    expect(await outcomes(weekly)).toEqual(["2026-01-02T06:00 ran", "2026-01-09T06:00 ran", "2026-01-16T06:00 missed"]);
    await change(weekly, { status: "paused" });
    await restart();
    await tickAt("2027-01-08T06:30:00.001Z");
    const [evaluation] = (await send("GET", `/api/v1/prompts/${yearly}/scheduled-evaluations`)).body;
    expect(evaluation).toMatchObject({
      scheduledAt: "2027-01-01T06:30:00.000Z",
      outcome: "missed",
      reason: expect.stringContaining("soon enough"),
    });
    expect((await outcomes(daily)).length).toBe(373);
  });
});

test("a prompt with thousands of missed evaluations doesn't delay others", async () => {
  const { create, tickAt, outcomes, db, send } = scheduledApp("2026-01-01T00:00:00Z");
  const minutely = await create({ frequency: "* * * * *" });
  const daily = await create({ frequency: "0 6 * * *", additionalUrls: [{ url: "https://daily.test/" }] });
  db.run(sql`create temp table earlier as select 0 n`);
  db.run(
    sql.raw(`create temp trigger counting before insert on jobs when new.host = 'daily.test'
    begin update earlier set n = (select count(*) from scheduled_evaluations where prompt_id = '${minutely}'); end`),
  );
  await tickAt("2026-01-06T06:00:00Z");
  expect(db.$client.query("select n from earlier").get()).toEqual({ n: 200 });
  expect((await outcomes(daily)).at(-1)).toBe("2026-01-06T06:00 ran");
  const { body, headers } = await send("GET", `/api/v1/prompts/${minutely}/scheduled-evaluations?limit=1`);
  expect([body[0].outcome, headers.get("x-total-count")]).toEqual(["ran", String(5 * 1440 + 360)]);
});

describe("a change of a schedule", () => {
  test("shows its next three times while it is active", async () => {
    const { create, change, nextRuns, tickAt } = scheduledApp("2026-01-01T05:00:00Z", { zone: "Asia/Kolkata" });
    const id = await create({ frequency: "0 6 * * *" });
    const days = (...dates: string[]) => dates.map((date) => `2026-01-${date}T00:30:00.000Z`);
    expect(await nextRuns(id)).toEqual(days("02", "03", "04"));
    await tickAt("2026-01-02T00:30:00Z");
    expect(await nextRuns(id)).toEqual(days("03", "04", "05"));
    for (const status of ["paused", "archived"]) {
      expect((await change(id, { status })).body.nextRunsAt).toBeNull();
      expect((await change(id, { status: "active" })).body.nextRunsAt).toEqual(days("03", "04", "05"));
    }
    expect((await change(id, { frequency: null })).body.nextRunsAt).toBeNull();
    expect(await nextRuns(await create({}))).toBeNull();
  });

  test("applies from the next evaluation on, and evaluations during a pause don't run later", async () => {
    const { create, change, tickAt, restart, outcomes, clock, finish } = scheduledApp("2026-01-01T00:30:00Z");
    const id = await create({ frequency: "0 * * * *" });
    const at = async (time: string) => {
      await tickAt(`2026-01-01T${time}:00Z`);
      await finish(id);
    };
    await at("01:00");
    await change(id, { status: "paused" });
    await restart();
    await at("01:30");
    await at("02:00");
    clock.at = Date.parse("2026-01-01T02:30:00Z");
    await change(id, { status: "active" });
    await at("03:00");
    await change(id, { frequency: "20 * * * *" });
    await at("04:00");
    await at("04:20");
    await change(id, { status: "archived" });
    await restart();
    await at("06:00");
    await change(id, { status: "active", frequency: null });
    await at("07:00");
    const ran = ["01:00", "03:00", "03:20", "04:20"].map((time) => `2026-01-01T${time}`);
    // The evaluation of 03:20 was past at the next check, and the one of 04:20 the latest.
    expect(await outcomes(id)).toEqual(ran.map((time) => `${time} ran`));
  });

  test("by a new time zone of the organization moves it, but an evaluation that is due stays", async () => {
    const { create, nextRuns, service, a, tickAt, outcomes, clock } = scheduledApp("2026-01-01T00:00:00Z");
    const id = await create({ frequency: "0 6 * * *" });
    updateOrg(service.ctx, a.org, { timeZone: "America/New_York" });
    expect((await nextRuns(id))?.[0]).toBe("2026-01-01T11:00:00.000Z");
    expect(await tickAt("2026-01-01T06:00:00Z")).toBe(Date.parse("2026-01-01T11:00:00Z"));
    clock.at = Date.parse("2026-01-01T12:00:00Z");
    updateOrg(service.ctx, a.org, { timeZone: "Europe/Berlin" });
    expect(await tickAt("2026-01-01T12:00:00Z")).toBe(Date.parse("2026-01-02T05:00:00Z"));
    expect(await outcomes(id)).toEqual(["2026-01-01T11:00 ran"]);
  });

  test("takes effect in a running service, immediately if made there, within 30 seconds if made by another process", async () => {
    jest.useFakeTimers();
    try {
      const { service, a, clock, create, change, finish, outcomes, db } = scheduledApp("2026-01-01T00:59:50Z", {
        dataDir: folder,
      });
      const other = createService({ ...service.ctx, db: openDb(folder), agents: { explorer: instantAgent } });
      const turns = async () => {
        for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
      };
      const pass = async (ms: number) => {
        clock.at += ms;
        jest.advanceTimersByTime(ms);
        await turns();
      };
      const ran = () => db.select().from(scheduledEvaluations).all().length;
      service.scheduler.start();
      await turns();
      // 06:30 in Kolkata is 01:00 UTC.
      const { id } = createPrompt(other.ctx, a.org, { text: "https://docs.test/", frequency: "30 6 * * *" });
      updateOrg(other.ctx, a.org, { timeZone: "Asia/Kolkata" });
      await pass(29_999);
      expect(ran()).toBe(0);
      await pass(1);
      expect(await outcomes(id)).toEqual(["2026-01-01T01:00 ran"]);

      // It checks at 20 and at 50 seconds past the minute.
      await pass(39_000);
      const own = await create({ frequency: "31 6 * * *" });
      await pass(999);
      expect(ran()).toBe(1);
      await pass(1);
      expect(await outcomes(own)).toEqual(["2026-01-01T01:01 ran"]);
      await pass(10_000);
      // It now checks at 10 and at 40 seconds.
      await create({});
      await pass(49_000);
      await finish(own);
      await change(own, { frequency: "32 6 * * *" });
      await pass(1_000);
      expect(await outcomes(own)).toEqual(["2026-01-01T01:01 ran", "2026-01-01T01:02 ran"]);
      // Elysia may have a timer of its own.
      const timers = jest.getTimerCount();
      await service.scheduler.stop();
      expect(jest.getTimerCount()).toBe(timers - 1);
    } finally {
      jest.useRealTimers();
    }
  });

  test("keeps its evaluations listed in pages, newest first, for its own organization", async () => {
    const { create, tickAt, send, b } = scheduledApp("2026-01-01T00:30:00Z");
    const id = await create({ frequency: "0 * * * *" });
    await create({ frequency: "0 * * * *" });
    const list = (query: string, headers = {}) =>
      send("GET", `/api/v1/prompts/${id}/scheduled-evaluations${query}`, { headers });
    expect((await list("")).body).toEqual([]);
    await tickAt("2026-01-01T05:00:00Z");
    const page = await list("?limit=2&offset=1");
    expect(page.body.map(({ scheduledAt }: { scheduledAt: string }) => scheduledAt.slice(11, 16))).toEqual([
      "04:00",
      "03:00",
    ]);
    expect(page.headers.get("x-total-count")).toBe("5");
    expect((await list("?limit=0")).status).toBe(400);
    const foreign = await list("", { authorization: `Bearer ${b.key}` });
    expect([foreign.status, foreign.body]).toEqual([
      404,
      expect.objectContaining({ error: "not_found", detail: `No prompt has the ID ${id}.` }),
    ]);
  });
});

describe("a change of the clock", () => {
  const everyHour = { frequency: "0 * * * *" };
  const lines = (outcome: string, ...clock: string[]) => clock.map((time) => `2026-01-01T${time} ${outcome}`);

  test("back doesn't run evaluations again, and later ones run at their time", async () => {
    const { create, tickAt, finish, outcomes } = scheduledApp("2026-01-01T00:30:00Z");
    const id = await create(everyHour);
    for (const time of ["01:00", "02:00", "03:00"]) {
      await tickAt(`2026-01-01T${time}:00Z`);
      await finish(id);
    }
    expect(await tickAt("2026-01-01T01:10:00Z")).toBe(Date.parse("2026-01-01T02:00:00Z"));
    for (const time of ["02:00", "03:00", "04:00"]) {
      await tickAt(`2026-01-01T${time}:00Z`);
      await finish(id);
    }
    expect(await outcomes(id)).toEqual(lines("ran", "01:00", "02:00", "03:00", "04:00"));
  });

  test.each(isThorough ? [false, true] : [true])(
    "forward by a year and back loses no evaluation that did not run (restarts: %p)",
    async (isRestarted) => {
      const { create, tickAt, restart, finish, outcomes, nextRuns } = scheduledApp("2026-01-01T00:30:00Z");
      const id = await create(everyHour);
      const next = async (at: string) => {
        if (isRestarted) await restart();
        const answer = await tickAt(at);
        await finish(id);
        return answer;
      };
      await next("2026-01-01T01:00:00Z");
      await next("2027-01-01T01:30:00Z");
      expect((await outcomes(id)).length).toBe(1000);
      expect(await next("2026-01-01T01:31:00Z")).toBe(Date.parse("2026-01-01T02:00:00Z"));
      // Evaluations that ran in the future year stay; missed ones there are repeated.
      expect(await outcomes(id)).toEqual([...lines("ran", "01:00"), "2027-01-01T01:00 ran"]);
      expect((await nextRuns(id))?.[0]).toBe("2026-01-01T02:00:00.000Z");
      for (const time of ["02:00", "03:00", "04:00"]) await next(`2026-01-01T${time}:00Z`);
      expect(await outcomes(id)).toEqual([...lines("ran", "01:00", "02:00", "03:00", "04:00"), "2027-01-01T01:00 ran"]);
    },
    300_000,
  );

  test("back shortly before the next check doesn't skip evaluations that are due in between", async () => {
    const { create, tickAt, finish, outcomes } = scheduledApp("2026-01-01T00:30:00Z");
    const id = await create({ frequency: "*/10 * * * *" });
    let elapsedMs = 0;
    const monotonic = spyOn(performance, "now").mockImplementation(() => elapsedMs);
    await tickAt("2026-01-01T00:30:00Z");
    await tickAt("2026-01-01T01:39:55Z");
    await finish(id);
    // The clock is set back by an hour in one step, which is noticed 20 seconds later.
    elapsedMs += 20_000;
    await tickAt("2026-01-01T00:40:15Z");
    monotonic.mockRestore();
    expect(await outcomes(id)).toEqual(lines("ran", "00:40", "01:30"));
  });

  test("forward while an evaluation is processed, and back before the next check, loses nothing", async () => {
    const { create, tickAt, finish, outcomes, service, clock } = scheduledApp("2026-01-01T00:30:00Z");
    const id = await create(everyHour);
    await create({ frequency: "0 * * * *" });
    const { newId } = service.ctx;
    service.ctx.newId = (at) => {
      clock.at = Date.parse("2026-01-01T09:30:00Z");
      return newId(at);
    };
    await tickAt("2026-01-01T01:00:00Z");
    service.ctx.newId = newId;
    await finish(id);
    await tickAt("2026-01-01T02:00:00Z");
    expect((await outcomes(id)).slice(0, 2)).toEqual(lines("ran", "01:00", "02:00"));
  });

  test("during downtime doesn't make a prompt and a time zone wait for the false future", async () => {
    const { create, tickAt, restart, outcomes, service, a, clock } = scheduledApp("2027-01-01T00:30:00Z");
    const id = await create(everyHour);
    clock.at = Date.parse("2028-01-01T00:00:00Z");
    updateOrg(service.ctx, a.org, { timeZone: "Asia/Kolkata" });
    await restart();
    expect(await tickAt("2026-01-01T00:00:00Z")).toBe(Date.parse("2026-01-01T00:30:00Z"));
    await tickAt("2026-01-01T00:30:00Z");
    expect(await outcomes(id)).toEqual(lines("ran", "00:30"));
  });

  test("from 1970 at startup adds no evaluations from before a prompt was created", async () => {
    const { create, tickAt, restart, outcomes, finish } = scheduledApp("2026-01-01T00:30:00Z");
    const id = await create(everyHour);
    await restart();
    await tickAt("1970-01-01T00:00:10Z");
    await tickAt("1970-01-01T01:00:10Z");
    await finish(id);
    await tickAt("2026-01-01T03:00:10Z");
    expect(await outcomes(id)).toEqual([
      "1970-01-01T01:00 ran",
      ...lines("missed", "01:00", "02:00"),
      ...lines("ran", "03:00"),
    ]);
  });
});

test("a prompt whose scheduled evaluations can only fail gets a warning, and is paused after five failures in a row", async () => {
  const smtp = startSmtp();
  const env = { EVALD_SMTP_URL: smtp.url, EVALD_MAIL_FROM: "evald <evald@example.com>" };
  const app = scheduledApp("2026-01-01T00:30:00Z", { env });
  const { create, tickAt, change, outcomes, send, runJobs } = app;
  join(app, app.a.org, "owner", "owner@example.com");
  join(app, app.a.org, "admin", "admin@example.com");
  join(app, app.b.org, "owner", "other@example.com");
  const docs = createProvider(app.service.ctx, app.a.org, { name: "Acme", docsUrl: "https://docs.test/" });
  const id = await create({ text: "Look around", targetProviderId: docs.id, frequency: "0 * * * *" });
  updateProvider(app.service.ctx, app.a.org, docs.id, { docsUrl: null });
  const get = async () => (await send("GET", `/api/v1/prompts/${id}`)).body;
  const at = async (hour: number) => {
    await tickAt(new Date(Date.UTC(2026, 0, 1, hour)).toISOString());
    await runJobs();
  };
  expect((await get()).warnings).toHaveLength(1);
  for (let hour = 1; hour <= 5; hour++) await at(hour);
  expect(await get()).toMatchObject({ status: "active" });
  expect(smtp.mails).toEqual([]);
  await at(6);
  const { to, text } = await smtp.first();
  expect(to).toBe("owner@example.com");
  expect(text).toContain(`http://localhost:3000/prompts/${id}`);
  expect(await get()).toMatchObject({
    status: "paused",
    nextRunsAt: null,
    warnings: [expect.stringContaining("paused")],
  });
  await at(7);
  expect((await outcomes(id)).length).toBe(6);
  expect(smtp.mails).toHaveLength(1);
  smtp.close();
  let hour = 7;
  // However often it is resumed, it gets as many chances again.
  for (let pause = 0; pause < 18; pause++) {
    updateProvider(app.service.ctx, app.a.org, docs.id, { docsUrl: "https://docs.test/" });
    await change(id, { status: "active" });
    updateProvider(app.service.ctx, app.a.org, docs.id, { docsUrl: null });
    for (let failure = 0; failure < 5; failure++) await at(++hour);
    expect((await get()).status).toBe("active");
    await at(++hour);
    expect((await get()).status).toBe("paused");
  }
  await change(id, { status: "active", text: "Look around https://docs.test/" });
  expect(await get()).toMatchObject({ status: "active", warnings: [] });
  await at(++hour);
  expect((await send("GET", `/api/v1/prompts/${id}/scheduled-evaluations?limit=1`)).body[0].outcome).toBe("ran");
});
