import { Database } from "bun:sqlite";
import { describe, expect, spyOn, test } from "bun:test";
import { eq } from "drizzle-orm";
import { createOrg } from "../../src/auth/orgs.ts";
import { evalRequests } from "../../src/db/tables/runs.ts";
import { scheduledEvaluations } from "../../src/db/tables/schedules.ts";
import { createPrompt } from "../../src/prompts/prompts.ts";
import { randomOf } from "../support/random.ts";
import { scheduledApp } from "../support/schedules.ts";
import { timesByWalking } from "../support/wall-clock.ts";

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;
const iso = (at: number) => new Date(at).toISOString();

/** The number of seeds; TORTURE increases it. */
function seeds(n: number): number[] {
  return Array.from({ length: process.env.TORTURE ? n * 10 : n }, (_, i) => i + 1);
}

test("a thousand prompts with a preset are spread over its period", () => {
  const { service, a } = scheduledApp("2026-01-01T00:00:00Z");
  const count = (frequency: string, part: (at: Date) => number) => {
    const counts = new Map<number, number>();
    for (let i = 0; i < 1000; i++) {
      const { nextRunsAt } = createPrompt(service.ctx, a.org, { text: "https://x.test/", frequency });
      const at = part(new Date(nextRunsAt?.[0] ?? ""));
      counts.set(at, (counts.get(at) ?? 0) + 1);
    }
    return counts;
  };
  // A thousand items are spread over n places. Six standard deviations from the mean are a bug, not bad luck.
  const expectEven = (counts: Map<number, number>, places: number) => {
    const mean = 1000 / places;
    for (let place = 0; place < places; place++)
      expect(Math.abs((counts.get(place) ?? 0) - mean)).toBeLessThan(6 * Math.sqrt(mean));
    expect(counts.size).toBe(places);
  };
  expectEven(
    count("hourly", (at) => at.getUTCMinutes()),
    60,
  );
  expectEven(
    count("daily", (at) => at.getUTCHours()),
    24,
  );
  expectEven(
    count("weekly", (at) => at.getUTCDay()),
    7,
  );
  expectEven(
    count("monthly", (at) => at.getUTCDate() - 1),
    28,
  );
});

describe("ten thousand schedules", () => {
  test("are checked by reading two rows of an index if nothing is due, and a process's first check doesn't block others", async () => {
    const prepare = spyOn(Database.prototype, "prepare");
    const { service, a, tickAt, db } = scheduledApp("2026-01-01T00:00:00Z");
    const frequencies = ["hourly", "daily", "weekly", "monthly", "0 6 * * 1-5"];
    for (let i = 0; i < 100; i++)
      createPrompt(service.ctx, a.org, { text: "See https://docs.test/", frequency: frequencies[i % 5] });
    const columns = db.$client.query("select name from pragma_table_info('prompts')").values().flat();
    const copied = columns.map((name) => (name === "id" ? "id || '-' || n" : `"${name}"`)).join();
    db.$client.run(
      `with recursive copies (n) as (select 1 union all select n + 1 from copies where n < 99)
       insert into prompts select ${copied} from prompts cross join copies`,
    );
    expect(db.$client.query("select count(*) from prompts").values()).toEqual([[10_000]]);
    let turns = 0;
    let isDone = false;
    const watch = () => {
      turns++;
      if (!isDone) setImmediate(watch);
    };
    watch();
    await tickAt("2026-01-01T00:00:00Z");
    isDone = true;
    const statements = [...new Set(prepare.mock.calls.map(([sql]) => sql))];
    prepare.mockRestore();
    expect(turns).toBeGreaterThanOrEqual(50);

    const ofLook = statements.filter((sql) =>
      /^select ("id"|min\("next_evaluation_at"\)) from "prompts" where [^=]*"next_evaluation_at"/.test(sql),
    );
    const plans = ofLook.map((sql) => db.$client.query<{ detail: string }, []>(`explain query plan ${sql}`).all());
    // The index of deleted prompts is almost always empty.
    const ofDeleted = /sqlite_autoindex_deleted_prompts_1/;
    expect(plans.map((steps) => steps.map(({ detail }) => detail).filter((detail) => !ofDeleted.test(detail)))).toEqual(
      [
        ["SEARCH prompts USING INDEX prompts_due (next_evaluation_at<?)"],
        ["SEARCH prompts USING INDEX prompts_due (next_evaluation_at>?)"],
      ],
    );
  });
});

describe("a change of the clock", () => {
  test.each(seeds(5))(
    "at random, with restarts, runs no evaluation twice and loses none while the clock goes on (seed %d)",
    async (seed) => {
      const random = randomOf(seed);
      const { create, tickAt, restart, finish, db, clock } = scheduledApp("2026-03-28T00:30:00Z", {
        zone: "Europe/Berlin",
      });
      const frequencies = ["0 * * * *", "*/7 2-5 * * *", "daily"];
      const ids = await Promise.all(frequencies.map((frequency) => create({ frequency })));
      for (let jump = 0; jump < 25; jump++) {
        const size = [minute, hour, day, 40 * day][Math.floor(random() * 4)] ?? 0;
        clock.at += Math.round((random() - 0.5) * 2 * size);
        if (random() < 0.3) await restart();
        let next = await tickAt(clock.at);
        const from = clock.at;
        for (let n = 0; n < 8 && next !== null; n++) {
          await Promise.all(ids.map(finish));
          next = await tickAt(next + Math.floor(random() * 500));
        }
        await Promise.all(ids.map(finish));
        for (const [i, id] of ids.entries()) {
          const [due = []] =
            i === 2
              ? []
              : timesByWalking([frequencies[i] ?? ""], "Europe/Berlin", from + minute - (from % minute), clock.at);
          const rows = new Map(
            db
              .select()
              .from(scheduledEvaluations)
              .where(eq(scheduledEvaluations.promptId, id))
              .all()
              .map((row) => [row.scheduledAt, row.outcome]),
          );
          expect(due.map((at) => `${iso(at)} ${rows.get(at)}`)).toEqual(due.map((at) => `${iso(at)} ran`));
        }
      }
      const ran = db.select().from(scheduledEvaluations).where(eq(scheduledEvaluations.outcome, "ran")).all();
      expect(ran.length).toBe(db.select().from(evalRequests).all().length);
      expect(ran.length).toBeGreaterThan(100);
    },
    300_000,
  );
});

describe("a year of schedules", () => {
  const ofEach = [
    "daily",
    "weekly",
    "monthly",
    "30 2 * * *",
    "0 0 31 * *",
    "15,45 1,2 * * 0,6",
    "0 9,13-14 * * 1-5",
    "*/20 2 * * *",
  ];
  const zones: [zone: string, frequencies: string[]][] = [
    ["Europe/Berlin", ["hourly", ...ofEach]],
    ["America/New_York", ["0 * * * *", ...ofEach]],
    ["Australia/Lord_Howe", ["10 */2 * * *", ...ofEach]],
  ];
  const from = Date.parse("2026-01-01T00:00:00Z");
  const to = Date.parse("2027-01-01T00:00:00Z");

  /** The pattern of a preset, derived from its first time. */
  function patternOf(frequency: string, first: string, timeZone: string): string {
    const [date = "", time = ""] = new Date(first).toLocaleString("sv", { timeZone }).split(" ");
    const [h, m] = time.split(":").map(Number);
    const patterns: Record<string, string> = {
      hourly: `${m} * * * *`,
      daily: `${m} ${h} * * *`,
      weekly: `${m} ${h} * * ${new Date(date).getUTCDay()}`,
      monthly: `${m} ${h} ${Number(date.slice(8))} * *`,
    };
    return patterns[frequency] ?? frequency;
  }

  type Kept = { id: string; due: number[]; dealtWith: number; busyUntil: number; expected: string[] };

  test.each(seeds(1))(
    "in three time zones, with restarts and downtimes, has one row per evaluation with the right outcome (seed %d)",
    async (seed) => {
      const random = randomOf(seed);
      const base = scheduledApp(iso(from - 1));
      const { clock, db } = base;
      const kept: Kept[] = [];
      for (const [zone, frequencies] of zones) {
        const { id: org } = createOrg(base.service.ctx, zone, zone);
        const made = frequencies.map((frequency) =>
          createPrompt(base.service.ctx, org, { text: "See https://docs.test/", frequency }),
        );
        const patterns = made.map(({ frequency, nextRunsAt }) =>
          patternOf(frequency ?? "", nextRunsAt?.[0] ?? "", zone),
        );
        const due = timesByWalking(patterns, zone, from, to + 14 * day);
        for (const [i, { id }] of made.entries())
          kept.push({ id, due: due[i] ?? [], dealtWith: 0, busyUntil: 0, expected: [] });
      }
      const nextOf = ({ due, dealtWith }: Kept) => due[dealtWith] ?? Number.POSITIVE_INFINITY;
      const nextOfAll = () => Math.min(...kept.map(nextOf));

      /** The expected outcomes of the evaluations that are due. Runs whose time has come end before. */
      async function expectOutcomes(): Promise<void> {
        for (const one of kept) {
          if (nextOf(one) > clock.at) continue;
          if (one.busyUntil <= clock.at) await base.finish(one.id);
          for (; nextOf(one) <= clock.at; one.dealtWith++) {
            const at = nextOf(one);
            const following = one.due[one.dealtWith + 1] ?? Number.POSITIVE_INFINITY;
            const catchUp = Math.min(7 * day, Math.max(day, (following - at) / 2));
            const runsNow = following > clock.at && clock.at - at <= catchUp;
            const outcome = !runsNow ? "missed" : one.busyUntil > clock.at ? "skipped_overlap" : "ran";
            one.expected.push(`${iso(at)} ${outcome}`);
            // Most evaluations take minutes, and some take a day.
            if (outcome === "ran") one.busyUntil = clock.at + random() ** 6 * day;
          }
        }
      }

      let disturbance = from + random() * 2 * day;
      while (nextOfAll() < to) {
        if (disturbance < nextOfAll()) {
          // Half of the interruptions are restarts. The others last from a minute to three days.
          const lasts = random() < 0.5 ? 0 : minute * (3 * 24 * 60) ** random();
          clock.at = Math.max(clock.at, Math.floor(disturbance + lasts));
          await base.restart();
          disturbance = clock.at + random() * 5 * day;
        } else clock.at = nextOfAll() + (random() < 0.5 ? 0 : Math.floor(random() * 1500));
        if (clock.at >= to) break;
        await expectOutcomes();
        const next = await base.tickAt(clock.at);
        if (nextOfAll() < to) expect(next).toBe(nextOfAll());
      }
      for (const { id, expected } of kept) {
        const rows = db
          .select()
          .from(scheduledEvaluations)
          .where(eq(scheduledEvaluations.promptId, id))
          .orderBy(scheduledEvaluations.scheduledAt)
          .all();
        expect(rows.map(({ scheduledAt, outcome }) => `${iso(scheduledAt)} ${outcome}`)).toEqual(expected);
        expect(rows.filter(({ outcome }) => outcome === "ran").map((row) => row.evalRequestId)).toEqual(
          db
            .select({ id: evalRequests.id })
            .from(evalRequests)
            .where(eq(evalRequests.promptId, id))
            .orderBy(evalRequests.id)
            .all()
            .map((request) => request.id),
        );
      }
      const outcomes = db.select({ outcome: scheduledEvaluations.outcome }).from(scheduledEvaluations).all();
      const count = (wanted: string) => outcomes.filter(({ outcome }) => outcome === wanted).length;
      // Every kind of event occurred in the year.
      expect(count("ran")).toBeGreaterThan(5000);
      expect(count("missed")).toBeGreaterThan(500);
      expect(count("skipped_overlap")).toBeGreaterThan(500);
    },
    300_000,
  );
});
