export const intervals = ["day", "week", "month", "eval"] as const;
export type Interval = (typeof intervals)[number];

/** Every offset of a time zone from UTC is a multiple of this. */
const stepMs = 15 * 60_000;

/** Returns the start of the interval that contains a time, in a time zone. Both are epoch ms; weeks start on Monday. */
export function createStarts(interval: Interval, timeZone: string): (at: number) => number {
  const known = new Map<number, number>();
  return (at) => {
    const step = Math.floor(at / stepMs);
    const start = known.get(step) ?? startOf(interval, step * stepMs, timeZone);
    known.set(step, start);
    return start;
  };
}

function startOf(interval: Interval, at: number, timeZone: string): number {
  const day = Temporal.Instant.fromEpochMilliseconds(at).toZonedDateTimeISO(timeZone).toPlainDate();
  const first =
    interval === "month" ? day.with({ day: 1 }) : interval === "week" ? day.subtract({ days: day.dayOfWeek - 1 }) : day;
  return first.toZonedDateTime(timeZone).epochMilliseconds;
}
