/** Days of the week in order of their numbers in cron. */
export const weekdays = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"] as const;
type Weekday = (typeof weekdays)[number];

/** A schedule at a time of day. `time`: HH:MM. `weekday`: only if it is weekly. */
type TimeOfDay =
  | { every: "day" | "weekday"; time: string; weekday: null }
  | { every: "week"; time: string; weekday: Weekday };

/** A schedule in words: `daily at 06:30`, `weekdays at 6:30`, `monday at 06:30`, `weekly on Mondays at 06:30`. */
const words = new RegExp(
  `^(?:(daily)|(weekdays)|(?:weekly on )?(${weekdays.join("|")})s?) at ([01]?\\d|2[0-3]):([0-5]\\d)$`,
  "i",
);

/**
 * The frequency to store. `daily at 06:30`, `weekdays at 06:30` and `monday at 06:30` become cron expressions. All other frequencies stay as they are
 * and may be invalid.
 */
export function toFrequency(text: string | null): string | null {
  const [whole, daily, onWeekdays, weekday, hour, minute] = words.exec(text?.trim().replace(/\s+/g, " ") ?? "") ?? [];
  if (whole === undefined) return text;
  const time = `${Number(minute)} ${Number(hour)}`;
  if (daily) return `${time} * * *`;
  if (onWeekdays) return `${time} * * 1-5`;
  return `${time} * * ${weekdays.indexOf(weekday?.toLowerCase() as Weekday)}`;
}

/** The time of day of a stored frequency; null: it is a preset, or another cron expression. */
export function findTimeOfDay(frequency: string): TimeOfDay | null {
  const [, minute, hour, day] = /^([0-5]?\d) ([01]?\d|2[0-3]) \* \* (\*|1-5|[0-7])$/.exec(frequency.trim()) ?? [];
  if (minute === undefined || hour === undefined || day === undefined) return null;
  const time = `${hour.padStart(2, "0")}:${minute.padStart(2, "0")}`;
  if (day === "*") return { every: "day", time, weekday: null };
  if (day === "1-5") return { every: "weekday", time, weekday: null };
  // In cron, Sunday is 0 and 7.
  return { every: "week", time, weekday: weekdays[Number(day) % 7] as Weekday };
}

/** A frequency in words, such as `daily at 06:30`. A cron expression that can't be put in words stays as it is. */
export function describeFrequency(frequency: string): string {
  const timeOfDay = findTimeOfDay(frequency);
  if (timeOfDay === null) return frequency;
  const { every, time, weekday } = timeOfDay;
  if (every === "week") return `weekly on ${weekday[0]?.toUpperCase()}${weekday.slice(1)} at ${time}`;
  return `${every === "day" ? "daily" : "weekdays"} at ${time}`;
}
