import { formatTime } from "../../reports/labels.ts";

const units = [
  ["day", 24 * 3600_000],
  ["hour", 3600_000],
  ["minute", 60_000],
] as const;
let relative: Intl.RelativeTimeFormat | undefined;

/** "3 min. ago", "in 2 hr.", "yesterday"; "just now" within a minute of `now`, epoch ms. */
function formatRelative(at: number, now: number): string {
  const away = at - now;
  relative ??= new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "short" });
  for (const [unit, ms] of units) if (Math.abs(away) >= ms) return relative.format(Math.trunc(away / ms), unit);
  return away > 0 ? "in less than a minute" : "just now";
}

/** "Sat 21 Nov 2026, 06:00" in a time zone. */
export function formatZoned(at: number, timeZone: string): string {
  const parts = new Intl.DateTimeFormat("en-GB", {
    timeZone,
    weekday: "short",
    day: "numeric",
    month: "short",
    year: "numeric",
    hour: "2-digit",
    minute: "2-digit",
    hourCycle: "h23",
  }).formatToParts(at);
  const part = (type: Intl.DateTimeFormatPartTypes) => parts.find((each) => each.type === type)?.value;
  return `${part("weekday")} ${part("day")} ${part("month")} ${part("year")}, ${part("hour")}:${part("minute")}`;
}

/** A relative time with the absolute time and zone on hover. */
export const When = ({ at, now }: { at: string; now: number }) => (
  <time dateTime={at} title={formatTime(at)}>
    {formatRelative(Date.parse(at), now)}
  </time>
);
