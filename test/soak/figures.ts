import { readdirSync, readFileSync, statSync } from "node:fs";

/** One sample of the service. */
export type Sample = { second: number; rssMb: number; descriptors: number; walMb: number };

const mib = 1024 * 1024;

export function sampleOf(pid: number, dataDir: string, second: number): Sample {
  const kib = Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "latin1"))?.[1]);
  return {
    second,
    rssMb: kib / 1024,
    descriptors: readdirSync(`/proc/${pid}/fd`).length,
    walMb: (statSync(`${dataDir}/evald.db-wal`, { throwIfNoEntry: false })?.size ?? 0) / mib,
  };
}

export function quantile(values: number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

/** The lowest value of each whole period. */
function lowest(
  samples: Sample[],
  of: "rssMb" | "descriptors",
  periodSeconds: number,
): { second: number; value: number }[] {
  const first = samples[0]?.second ?? 0;
  const whole = Math.floor(((samples.at(-1)?.second ?? 0) - first) / periodSeconds);
  const periods = Map.groupBy(samples, ({ second }) => Math.floor((second - first) / periodSeconds));
  return [...periods].slice(0, whole).map(([period, all]) => ({
    second: period * periodSeconds,
    value: Math.min(...all.map((each) => each[of])),
  }));
}

/** The load pauses at the end of each such period. What memory the service needs then, without garbage and threads, must not grow. */
export const restEverySeconds = 300;

/** The slope of the line of least squares, per ten minutes. */
function slope(points: { second: number; value: number }[]): number {
  const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const [x, y] = [mean(points.map(({ second }) => second)), mean(points.map(({ value }) => value))];
  const over = points.reduce((sum, { second, value }) => sum + (second - x) * (value - y), 0);
  const under = points.reduce((sum, { second }) => sum + (second - x) ** 2, 0);
  return under === 0 ? Number.NaN : (over / under) * 600;
}

export type Bound = { what: string; value: number; unit: string; most: number; isMet: boolean | null };

/** Shorter runs don't show the slope of the memory. */
const minutesForSlope = 20;

/** Latencies of one second in ms: of the service, and of an idle server on the same machine. */
export type Latencies = { service: number[]; idle: number[] };

/**
 * The figures of a soak with their bounds; growth is that after the warm-up. `isMet` is null for one that this run can't judge: it was too
 * short, or the machine was so busy that even an idle server took half of the latency.
 */
export function judge(samples: Sample[], warmUpSeconds: number, latencies: Latencies[], worst: Latencies[]): Bound[] {
  const warm = samples.filter(({ second }) => second >= warmUpSeconds);
  const minutes = ((warm.at(-1)?.second ?? warmUpSeconds) - warmUpSeconds) / 60;
  const descriptors = lowest(warm, "descriptors", 30).map(({ value }) => value);
  const half = Math.ceil(descriptors.length / 2);
  const growth = Math.min(...descriptors.slice(half)) - Math.min(...descriptors.slice(0, half));
  const bound = (what: string, value: number, unit: string, most: number, canJudge = true): Bound => ({
    ...{ what, value, unit, most },
    isMet: canJudge ? value <= most : null,
  });
  const latency = (what: string, all: Latencies[], share: number, most: number): Bound[] => {
    const [service, idle] = [all.flatMap((each) => each.service), all.flatMap((each) => each.idle)];
    const floor = quantile(idle, share);
    return [
      bound(`/healthz${what}`, quantile(service, share), "ms", most, floor <= most / 2),
      bound(`  of an idle server${what}`, floor, "ms", Number.POSITIVE_INFINITY),
    ];
  };
  return [
    bound(
      "RSS at rest, slope after warm-up",
      slope(lowest(warm, "rssMb", restEverySeconds)),
      "MB per 10 min",
      1,
      minutes >= minutesForSlope,
    ),
    bound("RSS, highest", Math.max(...samples.map(({ rssMb }) => rssMb)), "MB", 1024),
    bound("Descriptors, growth after warm-up", growth, "", 2, minutes >= 3),
    bound("WAL, largest", Math.max(...samples.map(({ walMb }) => walMb)), "MB", 128),
    ...latency(", p50", latencies, 0.5, 10),
    ...latency(", p99", latencies, 0.99, 50),
    ...latency(", p99 during the worst sessions", worst, 0.99, 50),
    ...latency(", longest", latencies, 1, 1000),
  ];
}

export const toText = (bounds: Bound[]): string =>
  bounds
    .map(({ what, value, unit, most, isMet }) => {
      const verdict = isMet === null ? "not judged: short run or busy machine" : isMet ? "ok" : "EXCEEDED";
      const limit = Number.isFinite(most) ? ` at most ${String(most).padEnd(5)} ${verdict}` : "";
      return `${`${what.padEnd(50)} ${value.toFixed(1)} ${unit}`.padEnd(72)}${limit}`.trimEnd().concat("\n");
    })
    .join("");
