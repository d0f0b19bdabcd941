import { afterEach, beforeAll, expect, test } from "bun:test";
import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { buildInstant, client, emptyFolder } from "../support/executable.ts";
import { createLoad, createRandom, createWorld, endAll, findBreaches, times } from "../support/torture.ts";
import { until } from "../support/until.ts";

beforeAll(buildInstant, 300_000);
afterEach(endAll);

const hourMs = 3600_000;
const minuteMs = 60_000;

/** A wall clock that can be set while a process runs (libfaketime); its monotonic clock is left alone. */
function createClock() {
  const file = join(emptyFolder(), "clock");
  let offsetMs = 0;
  /** Sets the clock to the real time plus this offset. */
  function set(ms: number): void {
    offsetMs = ms;
    writeFileSync(`${file}.new`, `${ms < 0 ? "-" : "+"}${(Math.abs(ms) / 1000).toFixed(3)}`);
    renameSync(`${file}.new`, file);
  }
  set(0);
  const now = () => Date.now() + offsetMs;
  return {
    now,
    set,
    move: (ms: number) => set(offsetMs + ms),
    /** Sets the clock to this many milliseconds before its next minute, and returns that minute. */
    setBeforeMinute(ms: number): number {
      const minute = Math.ceil((now() + ms) / minuteMs) * minuteMs;
      set(offsetMs + minute - ms - now());
      return minute;
    },
    env: {
      LD_PRELOAD: "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1",
      FAKETIME_TIMESTAMP_FILE: file,
      FAKETIME_NO_CACHE: "1",
      DONT_FAKE_MONOTONIC: "1",
    },
  };
}

const jumps = Math.max(4, times(4));

test(
  "accepted runs start immediately and exactly once, whatever the clock is set to",
  async () => {
    const world = await createWorld("Work for 200 ms.", "At once.");
    const load = createLoad(world, createRandom());
    const clock = createClock();
    const service = await world.start({ ...clock.env, EVALD_CONCURRENCY: "24" });
    const ask = client(service.url, world.first.key);
    // The jumps are longer than the interval of checks for silent holders, so leases end far before or after the new
    // time.
    const long = await ask("POST", "/api/v1/prompts", { text: "Work for 3000 ms. See https://docs.test/" });
    const { stop } = load.run(service.url, 2, 50);

    let slowest = 0;
    const waiting = new Map<string, number>();
    let seen = 0;
    /** Follows the accepted runs to their end, by the monotonic clock of this process. */
    function follow(): void {
      for (const [id, { at }] of [...load.accepted].slice(seen)) waiting.set(id, at);
      seen = load.accepted.size;
      const unfinished = new Set(world.list("select id from runs where completed_at is null"));
      for (const [id, at] of waiting) {
        slowest = Math.max(slowest, performance.now() - at);
        if (!unfinished.has(id)) waiting.delete(id);
      }
    }
    const runs = "select count(*) from runs where status = 'running' and prompt_id = ?";
    for (let i = 0; i < jumps; i++) {
      for (let n = 0; n < 4; n++) await ask("POST", `/api/v1/prompts/${long.body.id}/run`, { urlMap: {} });
      await until("long runs are under way", () => world.count(runs, long.body.id) >= 4);
      // The clock is set while requests arrive and runs wait.
      const burst = load.burst(service.url, 64);
      clock.set([hourMs, 0, -hourMs, 0][i % 4] as number);
      await burst;
      const before = load.accepted.size;
      await until("much was done since the clock was set", () => {
        follow();
        const done = [...load.accepted.keys()].slice(before, before + 80).filter((id) => !waiting.has(id));
        return done.length === 80;
      });
    }
    await stop();
    await until("every run has ended", () => {
      follow();
      return waiting.size === 0;
    });
    expect([load.refused, await load.missing(service.url), await service.stop()]).toEqual([[], [], 0]);
    expect(findBreaches(world)).toEqual({});
    expect(world.count("select count(*) from attempts where attempt != 1 or outcome != 'done'")).toBe(0);
    expect(world.count("select max(created_at) - min(created_at) from runs")).toBeGreaterThan(2 * hourMs - minuteMs);
    console.log(
      `${jumps} jumps: ${load.accepted.size} runs accepted, the slowest took ${Math.round(slowest)} ms; 0 lost, 0 doubled`,
    );
  },
  180_000 + jumps * 30_000,
);

test("each minute of a schedule runs once, whatever the clock is set to, and the schedule continues", async () => {
  const world = await createWorld();
  const clock = createClock();
  const service = await world.start(clock.env);
  const ask = client(service.url, world.first.key);
  const schedule = async (frequency: string): Promise<string> =>
    (await ask("POST", "/api/v1/prompts", { text: "At once. See https://docs.test/", frequency })).body.id;
  /** Sets the clock to just before a minute and makes the service check it, so that its next check comes with that minute. Returns the minute. */
  async function approach(): Promise<number> {
    const minute = clock.setBeforeMinute(2_000);
    await schedule("0 0 1 1 *");
    return minute;
  }
  type Evaluation = { scheduledAt: string; outcome: string };
  const evaluations = async (): Promise<Evaluation[]> =>
    (await ask("GET", `/api/v1/prompts/${id}/scheduled-evaluations?limit=1000`)).body;
  const outcomeOf = (at: number) =>
    until(`the evaluation of ${new Date(at).toISOString()}`, async () => {
      const evaluation = (await evaluations()).find((each) => Date.parse(each.scheduledAt) === at);
      return evaluation?.outcome;
    });
  const nextIs = (holds: (next: number) => boolean) =>
    until("the next evaluation was set", () =>
      holds(world.count("select next_evaluation_at from prompts where id = ?", id)),
    );

  const first = clock.setBeforeMinute(2_000);
  const id = await schedule("* * * * *");
  expect(await outcomeOf(first)).toBe("ran");

  const second = await approach();
  clock.move(hourMs);
  expect(await outcomeOf(second + hourMs)).toBe("ran");
  const all = (second + hourMs - first) / minuteMs + 1;
  expect((await evaluations()).map(({ scheduledAt }) => Date.parse(scheduledAt))).toEqual(
    Array.from({ length: all }, (_, i) => second + hourMs - i * minuteMs),
  );

  // The clock goes back to where it was. Evaluations that ran stay, and the next evaluation is before them again.
  const third = (await approach()) - hourMs;
  clock.move(-hourMs);
  await nextIs((next) => next < second + hourMs);
  const fourth = await approach();
  expect(fourth).toBe(third + minuteMs);
  await nextIs((next) => next > fourth);
  expect((await evaluations()).filter(({ scheduledAt }) => Date.parse(scheduledAt) === fourth).length).toBe(1);

  // The clock moves past everything that ran, to a time that never was, and then to before everything.
  const fifth = (await approach()) + hourMs;
  clock.move(hourMs);
  expect(await outcomeOf(fifth)).toBe("ran");
  await approach();
  clock.move(-3 * hourMs);
  await nextIs((next) => next < first);
  expect(await outcomeOf(await approach())).toBe("ran");

  await world.finished();
  expect(await service.stop()).toBe(0);
  expect(findBreaches(world)).toEqual({});
  const ran = world.count("select count(*) from scheduled_evaluations where outcome = 'ran'");
  expect(world.count("select count(*) from runs where status = 'completed'")).toBe(ran);
}, 300_000);
