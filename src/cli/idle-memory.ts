const defaultEveryMs = 10_000;
/** Share of a processor below which the process is idle. */
const idleShare = 0.05;
/** Memory is released again only after this much CPU time, in ms. */
const minWorkMs = 500;

const cpuTimeMs = (): number => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
};

/**
 * Releases memory when the process has become idle after its start, and again each time it becomes idle after work. It releases garbage, compiled
 * code and, with `releaseMore`, everything else that can be created again. Bun and SQLite would keep all of it for the next work, which may be days
 * away. `everyMs`: how often to check. Returns the timer.
 */
export function releaseMemoryWhenIdle(releaseMore: () => void = () => {}, everyMs = defaultEveryMs): Timer {
  let lastCpuMs = cpuTimeMs();
  // The start counts as work too.
  let releasedAt = Number.NEGATIVE_INFINITY;
  return setInterval(() => {
    const cpuMs = cpuTimeMs();
    const isIdle = cpuMs - lastCpuMs < idleShare * everyMs;
    lastCpuMs = cpuMs;
    if (!isIdle || cpuMs - releasedAt < minWorkMs) return;
    releaseMore();
    Bun.gc(true);
    Bun.shrink();
    lastCpuMs = cpuTimeMs();
    releasedAt = lastCpuMs;
  }, everyMs).unref();
}
