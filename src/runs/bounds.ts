import { type AgentEvent, AgentFailure, type EventSource, type Task } from "../agents/agent.ts";

type Hit = { limit: string; value: number; unit: string };

type Hooks = {
  /** Stores what the runner itself has to say. */
  tell: (event: AgentEvent) => void;
  /** Lets the agent know that a limit is near. */
  warn: (limit: string) => void;
  /** Ends the run without a result. */
  fail: (failure: AgentFailure) => void;
};

/** Part of the wall clock that is kept back to end in order, at most 5 s. */
const reserve = (wallClockMs: number) => Math.min(5000, wallClockMs * 0.2);
const nearShare = 0.8;
/** Commands that are stopped for one reason: at each of them the agent is told, and the last ends the run. */
const maxStopped = 3;

const inWords = ({ value, unit }: Hit) =>
  unit === "ms" ? (value === 1000 ? "1 second" : `${value / 1000} seconds`) : `${value} ${unit}`;

/**
 * The limits of a run, kept outside of its agent. Near one the agent is told to wrap up; at the first that is reached `signal` is aborted, and
 * what was done until then is a result. Agents that work by rules keep their own, but for the time.
 */
export function createBounds(kind: "rules" | "model", limits: Task["limits"], { tell, warn, fail }: Hooks) {
  const { wallClockMs, idleMs } = limits;
  const over = new AbortController();
  const used = { tool_calls: 0, requests: 0, bytes_out: 0 };
  const most = {
    tool_calls: { value: limits.maxToolCalls, unit: "calls" },
    requests: { value: limits.maxRequests, unit: "requests" },
    bytes_out: { value: limits.maxBytesOut, unit: "bytes" },
  };
  const told = new Set<string>();
  const stopped = new Map<string, number>();
  let hit: Hit | null = null;
  let isEnded = false;
  /** Calls of tools under way: a command may be silent for longer than an agent may do nothing. */
  let busy = 0;

  function reach(what: Hit): void {
    if (isEnded) return;
    hit ??= what;
    over.abort(new Error(`the limit ${what.limit} was reached`));
  }

  function near(what: Hit): void {
    if (isEnded || hit || told.has(what.limit)) return;
    told.add(what.limit);
    tell({ type: "limit", ...what, near: true });
    warn(what.limit);
  }

  function use(limit: keyof typeof used, amount: number): void {
    used[limit] += amount;
    if (kind !== "model") return;
    const what = { limit, ...most[limit] };
    if (used[limit] > what.value) reach(what);
    else if (used[limit] >= nearShare * what.value) near(what);
  }

  const time = { limit: "wall_clock", value: wallClockMs, unit: "ms" };
  const idle = { limit: "idle", value: idleMs, unit: "ms" };
  const tooLong = `the run took longer than ${inWords(time)} and was stopped`;
  const tooQuiet = `the agent did nothing for ${inWords(idle)} and was stopped`;
  const worked = wallClockMs - reserve(wallClockMs);
  const clocks = [
    setTimeout(() => fail(new AgentFailure("timeout", tooLong)), wallClockMs),
    ...(kind === "model" ? [setTimeout(reach, worked, time), setTimeout(near, nearShare * worked, time)] : []),
  ];
  let quiet: ReturnType<typeof setTimeout>[] = [];
  let isStopped = false;
  function listen(): void {
    if (isStopped) return;
    for (const timer of quiet) clearTimeout(timer);
    quiet =
      busy > 0 && kind === "model"
        ? []
        : [
            setTimeout(() => fail(new AgentFailure("timeout", tooQuiet)), idleMs),
            // Nobody else is told: an agent that hears it is not idle any more.
            setTimeout(() => tell({ type: "limit", ...idle, near: true }), nearShare * idleMs),
          ];
  }
  listen();

  return {
    signal: over.signal,
    get hit(): boolean {
      return hit !== null;
    },
    /** Takes an event of the run into account. */
    count(event: AgentEvent, source: EventSource): void {
      if (event.type === "tool_call") busy++;
      if (event.type === "tool_result") busy--;
      // What a page asks for by itself is no sign of the agent, and has a bound of its own.
      const isOfPage = event.type === "http" && event.purpose === "page";
      if (!isOfPage) listen();
      if (event.type === "end") {
        isEnded = true;
        this.stop();
      } else if (event.type === "tool_call") use("tool_calls", 1);
      else if (event.type === "http") {
        if (!isOfPage) use("requests", 1);
        use("bytes_out", event.bytesOut ?? 0);
      } else if (event.type === "limit" && source === "agent" && kind === "model") {
        const { limit, value, unit } = event;
        const times = (stopped.get(limit) ?? 0) + (event.near ? 0 : 1);
        stopped.set(limit, times);
        warn(limit);
        if (times >= maxStopped) reach({ limit, value, unit });
      }
    },
    /** Stops the clocks. */
    stop(): void {
      isStopped = true;
      for (const timer of [...clocks, ...quiet]) clearTimeout(timer);
    },
    /** How the session ends where a limit ended it. Throws an AgentFailure where nothing was done before. */
    ending(): AgentEvent[] {
      if (!hit || isEnded) return [];
      const amount = inWords(hit);
      if (used.tool_calls === 0)
        throw new AgentFailure(
          hit.limit === "wall_clock" ? "timeout" : "budget",
          `the model asked for nothing to be done within the ${amount} of the run`,
        );
      const reason = `Ended by a limit of the run: ${amount} (${hit.limit}).`;
      return [
        { type: "limit", ...hit },
        { type: "end", outcome: "goal_not_met", reason },
      ];
    },
  };
}
