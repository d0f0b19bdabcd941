const defaultEveryMs = 10_000;
/** Share of a processor below which the process is idle. */
const idleShare = 0.05;
/** CPU time since the last collection, in ms, that makes another one worthwhile. */
const workMs = 500;

const usedMs = (): number => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
};

/**
 * Collects garbage whenever the process has become idle after work, and returns its memory to the system. Bun keeps both until more is
 * allocated, which may take days. `everyMs`: how often to look.
 */
export function collectWhenIdle(everyMs = defaultEveryMs): void {
  let last = usedMs();
  let collectedAt = 0;
  setInterval(() => {
    const now = usedMs();
    const isIdle = now - last < idleShare * everyMs;
    last = now;
    if (!isIdle || now - collectedAt < workMs) return;
    Bun.gc(true);
    last = usedMs();
    collectedAt = last;
  }, everyMs).unref();
}
