import { AppError } from "../errors.ts";

const [maxReports, windowMs] = [60, 10 * 60_000];

/** Limits the reports of each key in memory. The result counts one more. It throws rate_limited at the limit. */
export function createReportRate(now: () => number): (keyId: string) => void {
  const windows = new Map<string, { since: number; count: number }>();
  return (keyId) => {
    const at = now();
    // One of the future is from before the clock was set back.
    for (const [key, { since }] of windows) if (at >= since + windowMs || since > at) windows.delete(key);
    const { since, count } = windows.get(keyId) ?? { since: at, count: 0 };
    if (count >= maxReports)
      throw new AppError("rate_limited", `A key can send ${maxReports} reports in 10 minutes. Try again later.`, {
        retryAfterSeconds: Math.max(1, Math.ceil((since + windowMs - at) / 1000)),
      });
    windows.set(keyId, { since, count: count + 1 });
  };
}
