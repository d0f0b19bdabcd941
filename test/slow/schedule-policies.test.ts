import { expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { createOrg } from "../../src/auth/orgs.ts";
import { catchUpPolicies, overlapPolicies } from "../../src/db/tables/prompts.ts";
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

const zones = ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe"];
const from = Date.parse("2027-01-01T00:00:00Z");
const to = Date.parse("2028-01-01T00:00:00Z");
const windowHours = 30;
// In spring, clocks skip the time of the first one in two of the zones.
const frequencies = ["30 2 * * *", "0 9 * * 1", "15 9 * * *"] as const;
const [daily, weekly, morning] = frequencies;

type Policy = { catchUp: (typeof catchUpPolicies)[number]; overlap: (typeof overlapPolicies)[number] };
/** What the documentation says about one schedule, without looking at the service. */
type Oracle = Policy & {
  id: string;
  due: number[];
  next: number;
  busyUntil: number;
  waits: number | null;
  outcomes: Map<number, string>;
  late: Set<number>;
};

/** How late an evaluation may run that nothing else keeps from running. `following`: when the next one is due. */
function maxLateMs({ catchUp }: Policy, at: number, following: number): number {
  switch (catchUp) {
    case "automatic":
      return Math.min(7 * day, Math.max(day, (following - at) / 2));
    case "skip":
      return minute;
    case "latest":
      return Number.POSITIVE_INFINITY;
    case "window":
      return windowHours * hour;
  }
}

const dueOf = ({ due, next }: Oracle) => due[next] ?? Number.POSITIVE_INFINITY;
/** When something is to happen with a schedule. */
const eventOf = (oracle: Oracle) => Math.min(dueOf(oracle), oracle.waits === null ? dueOf(oracle) : oracle.busyUntil);

/** What becomes of everything that is due at a time. `durationMs`: of the next runs. */
function decide(oracle: Oracle, now: number, durationMs: () => number): void {
  const start = (at: number, isLate: boolean) => {
    oracle.outcomes.set(at, "ran");
    if (isLate) oracle.late.add(at);
    oracle.busyUntil = Math.max(oracle.busyUntil, now + durationMs());
  };
  if (oracle.waits !== null && oracle.busyUntil <= now) {
    start(oracle.waits, true);
    oracle.waits = null;
  }
  for (; dueOf(oracle) <= now; oracle.next++) {
    const at = dueOf(oracle);
    const following = oracle.due[oracle.next + 1] ?? Number.POSITIVE_INFINITY;
    const isBusy = oracle.busyUntil > now;
    if (following <= now || now - at > maxLateMs(oracle, at, following)) oracle.outcomes.set(at, "missed");
    else if (oracle.overlap === "allow" || (!isBusy && oracle.waits === null)) start(at, now - at > minute);
    else if (oracle.overlap === "queue" && oracle.waits === null) {
      oracle.waits = at;
      oracle.outcomes.set(at, "waiting");
    } else oracle.outcomes.set(at, "skipped_overlap");
  }
}

test("a year in three zones with downtimes of minutes to weeks has exactly the evaluations that each policy promises", async () => {
  const random = randomOf(2027);
  const app = scheduledApp(iso(from - 1));
  const { clock, db } = app;
  const oracles: Oracle[] = [];
  for (const zone of zones) {
    const { id: org } = createOrg(app.service.ctx, zone, zone);
    const walked = timesByWalking([...frequencies], zone, from, to + 14 * day);
    const times = new Map(frequencies.map((frequency, i) => [frequency, walked[i]]));
    const add = (frequency: (typeof frequencies)[number], policy: Policy) => {
      const { id } = createPrompt(app.service.ctx, org, {
        text: "See https://docs.test/",
        frequency,
        ...policy,
        ...(policy.catchUp === "window" && { catchUpHours: windowHours }),
      });
      const due = times.get(frequency) ?? [];
      const state = { next: 0, busyUntil: 0, waits: null, outcomes: new Map(), late: new Set<number>() };
      oracles.push({ ...policy, id, due, ...state });
    };
    for (const catchUp of catchUpPolicies)
      for (const frequency of [daily, weekly]) add(frequency, { catchUp, overlap: "skip" });
    for (const overlap of overlapPolicies) add(morning, { catchUp: "latest", overlap });
  }
  let disturbance = from + random() * day;
  for (;;) {
    const next = Math.min(...oracles.map(eventOf));
    if (disturbance < next) {
      // Minutes, hours or days.
      const lasts = [30 * minute, 20 * hour, 12 * day][Math.floor(random() * 3)] ?? 0;
      clock.at = Math.max(clock.at, Math.floor(disturbance + random() * lasts));
      await app.restart();
      disturbance = clock.at + random() * 10 * day;
    } else clock.at = next + Math.floor(random() * 1000);
    if (clock.at >= to) break;
    for (const oracle of oracles)
      if (oracle.busyUntil !== 0 && oracle.busyUntil <= clock.at) {
        await app.finish(oracle.id);
        oracle.busyUntil = 0;
      }
    await app.tickAt(clock.at);
    // Most evaluations take minutes, and some up to two days.
    for (const oracle of oracles) decide(oracle, clock.at, () => Math.floor(random() ** 4 * 2 * day));
  }

  let evaluations = 0;
  const kinds = new Map<string, number>();
  for (const { id, outcomes, late, catchUp, overlap } of oracles) {
    const rows = db.select().from(scheduledEvaluations).where(eq(scheduledEvaluations.promptId, id)).all();
    const sorted = rows.toSorted((a, b) => a.scheduledAt - b.scheduledAt);
    expect(sorted.map(({ scheduledAt, outcome }) => `${iso(scheduledAt)} ${outcome}`)).toEqual(
      [...outcomes].sort(([a], [b]) => a - b).map(([at, outcome]) => `${iso(at)} ${outcome}`),
    );
    const ran = sorted.filter(({ outcome }) => outcome === "ran");
    expect(ran.filter(({ reason }) => reason !== null).map(({ scheduledAt }) => scheduledAt)).toEqual(
      [...late].sort((a, b) => a - b),
    );
    // Each has one evaluation, and there are no others.
    const requested = db.select({ id: evalRequests.id }).from(evalRequests).where(eq(evalRequests.promptId, id)).all();
    expect(new Set(ran.map(({ evalRequestId }) => evalRequestId))).toEqual(new Set(requested.map((each) => each.id)));
    expect(requested.length).toBe(ran.length);
    evaluations += rows.length;
    for (const outcome of outcomes.values()) {
      const kind = `${catchUp} ${overlap} ${outcome}`;
      kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
    }
    if (late.size > 0) kinds.set(`${catchUp} ${overlap} late`, late.size);
  }
  expect(evaluations).toBeGreaterThan(7_000);
  // Every policy met every case that it decides.
  for (const kind of [
    ...["automatic skip missed", "automatic skip late", "skip skip missed", "latest skip late", "window skip missed"],
    ...["window skip late", "latest queue late", "latest queue skipped_overlap", "latest allow late"],
  ])
    expect(kinds.has(kind) || kind).toBe(true);
  expect(kinds.has("skip skip late")).toBe(false);
  expect(kinds.has("latest allow skipped_overlap")).toBe(false);
  expect(kinds.get("latest queue skipped_overlap")).toBeLessThan(kinds.get("latest skip skipped_overlap") ?? 0);
}, 300_000);
