/** Milliseconds that a Retry-After asks to wait, in seconds or until a date; null if there is none or it cannot be read. */
export function readRetryAfter(header: string | null, nowMs: number): number | null {
  if (header === null) return null;
  const ms = /^\d+(\.\d+)?$/.test(header) ? Number(header) * 1000 : Date.parse(header) - nowMs;
  // A number without end does not cross a line of JSON.
  return Number.isNaN(ms) ? null : Math.min(Math.max(0, Math.round(ms)), Number.MAX_SAFE_INTEGER);
}
