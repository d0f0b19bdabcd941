import { Cron } from "croner";

/** Cron pattern of each preset. The prompt's ID spreads the times, so that prompts do not all run at once. */
const presets = {
  hourly: ({ minute }: CalendarFields) => `${minute} * * * *`,
  daily: ({ minute, hour }: CalendarFields) => `${minute} ${hour} * * *`,
  weekly: ({ minute, hour, weekday }: CalendarFields) => `${minute} ${hour} * * ${weekday}`,
  // The 29th is not in every month.
  monthly: ({ minute, hour, monthday }: CalendarFields) => `${minute} ${hour} ${monthday} * *`,
};
type CalendarFields = { minute: number; hour: number; weekday: number; monthday: number };

const isPreset = (frequency: string): frequency is keyof typeof presets => Object.hasOwn(presets, frequency);

/** When a prompt is evaluated. */
export type Schedule = {
  /** A preset or five cron fields. */
  frequency: string;
  /** Determines the time of a preset within its hour, day, week or month. */
  id: string;
  timeZone: string;
};

/**
 * The first time of a schedule after a time, both in epoch ms; null if there is none. If neither minute nor hour contains `*` or `/`, they are a time
 * of day. A time of day that daylight saving skips moves to the end of the gap, and one that occurs twice runs once. All other patterns follow local
 * time.
 */
export function nextTime(schedule: Schedule, afterMs: number): number | null {
  try {
    return cronOf(schedule).nextRun(new Date(afterMs))?.getTime() ?? null;
  } catch {
    // An invalid schedule, such as after an upgrade, must not stop the others.
    return null;
  }
}

function cronOf({ frequency, id, timeZone }: Schedule): Cron {
  const pattern = isPreset(frequency) ? presets[frequency](calendarFieldsOf(id)) : frequency;
  return new Cron(pattern, { paused: true, timezone: timeZone, fixedTimeRule: "no-wildcard" });
}

/** Up to `count` times of a schedule after a time, epoch ms. */
export function nextTimes(schedule: Schedule, afterMs: number, count: number): number[] {
  const times: number[] = [];
  for (let time = nextTime(schedule, afterMs); time !== null && times.length < count; time = nextTime(schedule, time))
    times.push(time);
  return times;
}

/** How many times are counted one by one. */
const maxCounted = 1000;

/**
 * How many times a schedule has after one time and before another, both in epoch ms. Beyond 1000, it is estimated from the pace of the first 1000.
 */
export function countTimes(schedule: Schedule, afterMs: number, untilMs: number): number {
  const cron = cronOf(schedule);
  let last = afterMs;
  for (let n = 0; ; n++) {
    const next = cron.nextRun(new Date(last))?.getTime() ?? untilMs;
    if (next >= untilMs) return n;
    last = next;
    if (n + 1 === maxCounted) return Math.round((maxCounted * (untilMs - afterMs)) / (last - afterMs));
  }
}

/** Why a frequency is invalid; null if it is valid. `0 0 30 2 *` is well formed but never occurs. */
export function frequencyProblem(frequency: string): string | null {
  const invalid = (what: string) =>
    `${JSON.stringify(frequency)} ${what}; use ${Object.keys(presets).join(", ")} or a five-field cron expression such as 0 6 * * 1-5`;
  if (!isPreset(frequency) && frequency.trim().split(/\s+/).length !== 5) return invalid("is not a valid schedule");
  const schedule = { frequency, id: "", timeZone: "UTC" };
  try {
    cronOf(schedule);
  } catch {
    return invalid("is not a valid schedule");
  }
  return nextTime(schedule, Date.UTC(2000, 0)) === null ? invalid("never occurs") : null;
}

function calendarFieldsOf(id: string): CalendarFields {
  const [minute = 0, hour = 0, weekday = 0, monthday = 0] = new Uint32Array(
    new Bun.CryptoHasher("sha256").update(id).digest().buffer,
  );
  return { minute: minute % 60, hour: hour % 24, weekday: weekday % 7, monthday: 1 + (monthday % 28) };
}
