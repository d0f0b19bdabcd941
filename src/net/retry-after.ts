/** Parses Retry-After (seconds or a date) to milliseconds; null if absent or invalid. */
export function readRetryAfter(header: string | null, nowMs: number): number | null {
  if (header === null) return null;
  const ms = /^\d+(\.\d+)?$/.test(header) ? Number(header) * 1000 : Date.parse(header) - nowMs;
  // JSON cannot represent Infinity.
  return Number.isNaN(ms) ? null : Math.min(Math.max(0, Math.round(ms)), Number.MAX_SAFE_INTEGER);
}
