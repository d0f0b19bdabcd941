import { createContext } from "preact";
import { useContext } from "preact/hooks";

/** The time zone of the organization that a page belongs to. */
export const TimeZone = createContext("UTC");

const units = [
  ["day", 24 * 3600_000],
  ["hour", 3600_000],
  ["minute", 60_000],
] as const;
let relative: Intl.RelativeTimeFormat | undefined;

/** "3 minutes ago", "in 2 hours", "yesterday". A time within a minute of `now` is "just now". Both times are in epoch ms. */
function formatRelative(time: number, now: number): string {
  const differenceMs = time - now;
  relative ??= new Intl.RelativeTimeFormat("en", { numeric: "auto" });
  for (const [unit, ms] of units)
    if (Math.abs(differenceMs) >= ms) return relative.format(Math.trunc(differenceMs / ms), unit);
  return differenceMs > 0 ? "in less than a minute" : "just now";
}

/** "Sat 21 Nov 2026, 06:00" in a time zone. */
export function formatZoned(time: number, timeZone: string): string {
  const parts = new Intl.DateTimeFormat("en-GB", {
    timeZone,
    weekday: "short",
    day: "numeric",
    month: "short",
    year: "numeric",
    hour: "2-digit",
    minute: "2-digit",
    hourCycle: "h23",
  }).formatToParts(time);
  const part = (type: Intl.DateTimeFormatPartTypes) => parts.find((each) => each.type === type)?.value;
  return `${part("weekday")} ${part("day")} ${part("month")} ${part("year")}, ${part("hour")}:${part("minute")}`;
}

const formats = new Map<string, Intl.DateTimeFormat>();

/** "2026-11-21 10:31 GMT+1". The first 10 characters are the date. */
function formatWithZone(iso: string, timeZone: string): string {
  let format = formats.get(timeZone);
  if (!format) {
    format = new Intl.DateTimeFormat("en-GB", {
      timeZone,
      year: "numeric",
      month: "2-digit",
      day: "2-digit",
      hour: "2-digit",
      minute: "2-digit",
      hourCycle: "h23",
      timeZoneName: "short",
    });
    formats.set(timeZone, format);
  }
  const parts = new Map(format.formatToParts(Date.parse(iso)).map(({ type, value }) => [type, value]));
  const [year, month, day, hour, minute, zone] = (
    ["year", "month", "day", "hour", "minute", "timeZoneName"] as const
  ).map((type) => parts.get(type));
  return `${year}-${month}-${day} ${hour}:${minute} ${zone}`;
}

/** Formats times in the time zone of the organization, with the zone. */
export function useTime(): (iso: string) => string {
  const timeZone = useContext(TimeZone);
  return (iso) => formatWithZone(iso, timeZone);
}

/** Formats dates in the time zone of the organization. */
export function useDay(): (iso: string) => string {
  const toTime = useTime();
  return (iso) => toTime(iso).slice(0, 10);
}

/** A time in the time zone of the organization. */
export const Time = ({ at }: { at: string }) => <time dateTime={at}>{useTime()(at)}</time>;

/** A date in the time zone of the organization, with the time on hover. */
export const Day = ({ at }: { at: string }) => (
  <time dateTime={at} title={useTime()(at)}>
    {useDay()(at)}
  </time>
);

/** A table cell that shows the first date above the last one. */
export const FirstAndLast = ({ first, last }: { first: string; last: string }) => (
  <td class="number" data-label="First / last">
    <Day at={first} />
    <small>
      <Day at={last} />
    </small>
  </td>
);

/** A relative time, with the absolute time and zone on hover. */
export const When = ({ at, now }: { at: string; now: number }) => (
  <time dateTime={at} title={useTime()(at)}>
    {formatRelative(Date.parse(at), now)}
  </time>
);
