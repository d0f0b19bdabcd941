import { Cron } from "croner";

/** Each with its cron pattern, from the places that a prompt's id gives it: so prompts of one preset do not all run at once. */
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
  /** Decides where in its hour, day, week or month a preset falls. */
  id: string;
  timeZone: string;
};

/**
 * The first slot after a moment, both in epoch ms; null if none ever comes. Minutes and hours without `*` and `/` are times of day: one that the
 * clock leaps over in spring comes at the end of the leap, one that comes twice in autumn is taken once. All others go by the clock on the wall.
 */
export function nextSlot(schedule: Schedule, afterMs: number): number | null {
  try {
    return cronOf(schedule).nextRun(new Date(afterMs))?.getTime() ?? null;
  } catch {
    // One schedule that is no longer understood, as after an upgrade, must not stop those of others.
    return null;
  }
}

function cronOf({ frequency, id, timeZone }: Schedule): Cron {
  const pattern = isPreset(frequency) ? presets[frequency](placesOf(id)) : frequency;
  return new Cron(pattern, { paused: true, timezone: timeZone, fixedTimeRule: "no-wildcard" });
}

/** The next slots after a moment, `most` of them at most. */
export function nextSlots(schedule: Schedule, afterMs: number, most: number): number[] {
  const slots: number[] = [];
  for (let at = nextSlot(schedule, afterMs); at !== null && slots.length < most; at = nextSlot(schedule, at))
    slots.push(at);
  return slots;
}

/** Why a frequency cannot be used, for a person; null if it can. `0 0 30 2 *` is well formed and never comes around. */
export function frequencyTrouble(frequency: string): string | null {
  const trouble = (what: string) =>
    `${JSON.stringify(frequency)} ${what}; use ${Object.keys(presets).join(", ")} or five cron fields, as in 0 6 * * 1-5`;
  if (!isPreset(frequency) && frequency.trim().split(/\s+/).length !== 5) return trouble("is not understood");
  const schedule = { frequency, id: "", timeZone: "UTC" };
  try {
    cronOf(schedule);
  } catch {
    return trouble("is not understood");
  }
  return nextSlot(schedule, Date.UTC(2000, 0)) === null ? trouble("never comes around") : null;
}

function placesOf(id: string): Places {
  const [minute = 0, hour = 0, weekday = 0, monthday = 0] = new Uint32Array(
    new Bun.CryptoHasher("sha256").update(id).digest().buffer,
  );
  return { minute: minute % 60, hour: hour % 24, weekday: weekday % 7, monthday: 1 + (monthday % 28) };
}
