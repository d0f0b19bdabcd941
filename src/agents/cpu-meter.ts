import { firstCall } from "../once.ts";
import type { AgentContext, AgentEvent } from "./agent.ts";
import type { Milestone } from "./milestones.ts";
import { namesIn, readText } from "./sandbox/kernel-files.ts";

/** CPU time of processes in ms: how long they ran, and how long they waited for a CPU although they could have run. */
type CpuTimes = { ranMs: number; waitedMs: number };

const sampleMs = 1_000;
/** A session is short of CPU time if it waited for at least this share of the time in which it could have run, and at least this long. */
const minShortage = { share: 0.5, waitedMs: 5_000 };

/**
 * Measures the CPU time of this process and the processes below it, from now until it is stopped. Threads are read once a second from
 * `/proc/PID/task/TID/schedstat` (run time and wait time in ns). What a thread did after it was last read is not counted.
 */
export function startCpuMeter() {
  /** The last times of each thread, by process and thread, in ns. */
  const threads = new Map<string, [ran: number, waited: number]>();
  function sample(pid: number): void {
    for (const thread of namesIn(`/proc/${pid}/task`)) {
      const folder = `/proc/${pid}/task/${thread}`;
      const [ran, waited] = readText(`${folder}/schedstat`).split(" ").map(Number);
      if (ran !== undefined && waited !== undefined) threads.set(folder, [ran, waited]);
      for (const child of readText(`${folder}/children`).trim().split(" ").filter(Boolean)) sample(Number(child));
    }
  }
  sample(process.pid);
  const earlier = new Map(threads);
  const timer = setInterval(sample, sampleMs, process.pid);
  timer.unref();
  return {
    /** The times so far; null: the machine does not count them. */
    read(): CpuTimes | null {
      sample(process.pid);
      if (threads.size === 0) return null;
      const since = [...threads].map(([id, [ran, waited]]) => {
        const [ranBefore, waitedBefore] = earlier.get(id) ?? [0, 0];
        return { ran: ran - ranBefore, waited: waited - waitedBefore };
      });
      const sumOf = (name: "ran" | "waited") => Math.round(since.reduce((sum, each) => sum + each[name], 0) / 1e6);
      return { ranMs: sumOf("ran"), waitedMs: sumOf("waited") };
    },
    [Symbol.dispose]: () => clearInterval(timer),
  };
}

type CpuMeter = ReturnType<typeof startCpuMeter>;

/** The milestone of a session that was short of CPU time; null if it was not. */
export function toShortage(times: CpuTimes | null): Milestone<"cpu_shortage"> | null {
  if (times === null) return null;
  const { ranMs, waitedMs } = times;
  if (waitedMs < minShortage.waitedMs || waitedMs < minShortage.share * (ranMs + waitedMs)) return null;
  return { type: "milestone", name: "cpu_shortage", detail: { ranMs, waitedMs } };
}

type SessionStart = { meter: CpuMeter; context: AgentContext; report: (event: AgentEvent) => void };

/** Returns a function that reports, at its first call, that the agent begins to work. The time limit of its run counts from then. */
export function createStartReporter({ meter, context, report }: SessionStart): () => void {
  const createdAt = context.now();
  return firstCall(() => {
    const cpuWaitMs = meter.read()?.waitedMs ?? null;
    context.startedAt = context.now();
    const startMs = Math.max(0, context.startedAt - createdAt);
    report({ type: "milestone", name: "work_began", detail: { startMs, cpuWaitMs } });
  });
}
