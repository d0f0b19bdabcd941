import { Cron } from "croner";

/** Cron pattern of each preset. The prompt's ID spreads the times, so that prompts do not all run at once. */
const presets = {
  hourly: ({ minute }: Places) => `${minute} * * * *`,
  daily: ({ minute, hour }: Places) => `${minute} ${hour} * * *`,
  weekly: ({ minute, hour, weekday }: Places) => `${minute} ${hour} * * ${weekday}`,
  // The 29th is not in every month.
  monthly: ({ minute, hour, monthday }: Places) => `${minute} ${hour} ${monthday} * *`,
};
type Places = { minute: number; hour: number; weekday: number; monthday: number };

const isPreset = (frequency: string): frequency is keyof typeof presets => Object.hasOwn(presets, frequency);

export type Schedule = {
  /** A preset or five cron fields. */
  frequency: string;
  /** Determines the time of a preset within its hour, day, week or month. */
  id: string;
  timeZone: string;
};

/**
 * The first slot after a time, both in epoch ms; null if there is none. Minutes and hours without `*` and `/` are times of day: one that
 * daylight saving skips moves to the end of the gap, and one that occurs twice runs once. All others follow local time.
 */
export function nextSlot(schedule: Schedule, afterMs: number): number | null {
  try {
    return cronOf(schedule).nextRun(new Date(afterMs))?.getTime() ?? null;
  } catch {
    // An invalid schedule, such as after an upgrade, must not stop the others.
    return null;
  }
}

function cronOf({ frequency, id, timeZone }: Schedule): Cron {
  const pattern = isPreset(frequency) ? presets[frequency](placesOf(id)) : frequency;
  return new Cron(pattern, { paused: true, timezone: timeZone, fixedTimeRule: "no-wildcard" });
}

/** Up to `most` slots after a time. */
export function nextSlots(schedule: Schedule, afterMs: number, most: number): number[] {
  const slots: number[] = [];
  for (let at = nextSlot(schedule, afterMs); at !== null && slots.length < most; at = nextSlot(schedule, at))
    slots.push(at);
  return slots;
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
  return nextSlot(schedule, Date.UTC(2000, 0)) === null ? invalid("never occurs") : null;
}

function placesOf(id: string): Places {
  const [minute = 0, hour = 0, weekday = 0, monthday = 0] = new Uint32Array(
    new Bun.CryptoHasher("sha256").update(id).digest().buffer,
  );
  return { minute: minute % 60, hour: hour % 24, weekday: weekday % 7, monthday: 1 + (monthday % 28) };
}
