const minute = 60_000;
const quarter = 15 * minute;

/** Minutes by which a zone is ahead of UTC. */
function offsetMinutes(zone: Intl.DateTimeFormat, at: number): number {
  const parts = Object.fromEntries(zone.formatToParts(at).map(({ type, value }) => [type, Number(value)]));
  const local = Date.UTC(parts.year ?? 0, (parts.month ?? 1) - 1, parts.day, parts.hour, parts.minute);
  return (local - at) / minute;
}

/** Whether a value matches a cron field of numbers, lists, ranges, stars and steps. */
const fits = (field: string, value: number): boolean =>
  field.split(",").some((part) => {
    const [from = "", to = from] = part.split("-");
    return (
      part === "*" || (part.startsWith("*/") ? value % Number(part.slice(2)) === 0 : value >= +from && value <= +to)
    );
  });

/**
 * The times of cron patterns in a time zone, computed minute by minute without a cron library: a time of day that the
 * clock skips runs in the first minute after it, and a repeated one runs once; with a star or a step in minute or hour,
 * every matching minute runs. Only one of the two day fields may be restricted.
 */
export function timesByWalking(patterns: string[], timeZone: string, from: number, to: number): number[][] {
  const zone = new Intl.DateTimeFormat("en", {
    timeZone,
    hourCycle: "h23",
    year: "numeric",
    month: "numeric",
    day: "numeric",
    hour: "numeric",
    minute: "numeric",
  });
  const fields = patterns.map((pattern) => pattern.split(" "));
  const isTimeOfDay = fields.map(([m = "", h = ""]) => !/[*/]/.test(m + h));
  const found: number[][] = patterns.map(() => []);
  let offset = 0;
  let furthest = Number.NEGATIVE_INFINITY;
  for (let at = from; at < to; at += minute) {
    // No current zone changes its clock within a quarter of an hour of UTC.
    if (at % quarter === 0 || at === from) offset = offsetMinutes(zone, at);
    const wall = at / minute + offset;
    if (at === from) furthest = wall - 1;
    for (let passed = Math.min(wall, furthest + 1); passed <= wall; passed++) {
      const local = new Date(passed * minute);
      const values = [
        local.getUTCMinutes(),
        local.getUTCHours(),
        local.getUTCDate(),
        local.getUTCMonth() + 1,
        local.getUTCDay(),
      ];
      for (const [i, pattern] of fields.entries()) {
        const isTaken = isTimeOfDay[i] ? passed > furthest : passed === wall;
        if (isTaken && found[i]?.at(-1) !== at && pattern.every((field, f) => fits(field, values[f] ?? 0)))
          found[i]?.push(at);
      }
    }
    furthest = Math.max(furthest, wall);
  }
  return found;
}
