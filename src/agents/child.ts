import { availableParallelism } from "node:os";
import type { Limits } from "../config/limits.ts";
import { createSlots } from "../net/slots.ts";
import { firstCall } from "../once.ts";
import {
  type Agent,
  type AgentEvent,
  AgentFailure,
  type AgentResources,
  type EgressSocket,
  eventTypes,
  outcomes,
  runInfrastructureStep,
} from "./agent.ts";
import type { ChildInput, ChildOutput } from "./child-main.ts";
import { endings } from "./endings.ts";
import { failedCodes } from "./failure.ts";
import { readMilestone } from "./milestones.ts";
import { maxStartMs } from "./priority.ts";
import { type AgentProcess, ownCommand, startProcess } from "./process.ts";
import type { ProcessAccess } from "./sandbox/agent-command.ts";
import { beginSession } from "./sandbox/cpu-groups.ts";

const mib = 1024 * 1024;
const newline = 10;
const maxLineBytes = mib;
/** Limits of a run's events, so that a process cannot fill the disk. */
const maxBytes = 64 * mib;
const maxEvents = 100_000;
/** Lines read before yielding to the event loop, so a fast process does not block the service. */
const linesAtOnce = 100;
const watchMs = 500;
/** Time after which the next process starts, even if this process has not reported an event. */
const maxSlotMs = 1_000;
/** Maximum CPU time without an event. Otherwise, a page designed to be slow to parse could occupy a slot until the timeout. */
const maxSilentCpuMs = 30_000;

type ChildOptions = {
  /** Starts a process that calls `runChildAgent`. Default: one of this executable. */
  startAgentProcess?: (access: ProcessAccess) => AgentProcess | Promise<AgentProcess>;
  /** CPU time between two events, in ms, after which the process is killed. */
  silentCpuMs?: number;
};

/**
 * How many processes start at once, in the order of the requests: twice as many as there are processors. If all started at once, each would start as
 * late as the last one. With one per processor, each would get less than half of the CPU time, because Linux divides it among all processes: the
 * service and many sessions in progress need some, too.
 */
const startSlots = createSlots(2 * availableParallelism());

/**
 * Runs an agent in its own process per run. The process gets only its task and context. It is killed, with everything it started, when `run`
 * ends or the service exits.
 */
export function createChildAgent(
  agent: Agent,
  {
    startAgentProcess = () => startProcess(ownCommand("__agent"), {}),
    silentCpuMs = maxSilentCpuMs,
  }: ChildOptions = {},
): Agent {
  return {
    describe: () => agent.describe(),
    preflight: () => agent.preflight(),
    async *run(task, { signal, openEgress, allow, resources, checkSecrets }) {
      const leaveSlot = firstCall(await startSlots.take(""));
      let egress: (EgressSocket & { close(): void }) | undefined;
      const endSession = beginSession();
      let child: AgentProcess | undefined;
      // A new run has normal priority at first, so that it does not wait for runs in progress.
      const lowerPriority = firstCall(() => child?.lowerPriority());
      const { kind } = agent.describe();
      const timers = [
        setTimeout(leaveSlot, maxSlotMs),
        setTimeout(lowerPriority, kind === "rules" ? maxSlotMs : maxStartMs),
      ];
      const onEvent = (event: AgentEvent) => {
        leaveSlot();
        if (kind === "rules" || (event.type === "milestone" && event.name === "work_began")) lowerPriority();
      };
      try {
        signal.throwIfAborted();
        egress = await openEgress?.();
        const access = accessOf(egress ?? null, resources);
        child = await runInfrastructureStep("agent_not_started", "the agent's process could not be started", () =>
          startAgentProcess(access),
        );
        const context = {
          allow,
          resources,
          ...(checkSecrets && { checkSecrets }),
          ...(egress && { egress: { path: egress.path, token: egress.token } }),
        };
        yield* readChild(child, { agent: agent.describe().id, task, context }, { signal, silentCpuMs, onEvent });
      } finally {
        for (const timer of timers) clearTimeout(timer);
        leaveSlot();
        endSession();
        egress?.close();
      }
    },
  };
}

/** The sockets and folders that the process of a run may use. Sockets in these folders need no entries in `sockets`. */
function accessOf(egress: EgressSocket | null, resources: AgentResources | null): ProcessAccess {
  const sandbox = resources && "workspace" in resources.sandbox ? resources.sandbox : null;
  const sockets = [egress?.path ?? [], resources?.model.socketPath ?? [], sandbox?.egress.path ?? []].flat();
  const folders = sandbox ? [sandbox.workspace.path, sandbox.folder] : [];
  const isOutside = (path: string) => !folders.some((folder) => path.startsWith(`${folder}/`));
  return { sockets: [...new Set(sockets.filter(isOutside))], folders };
}

/** Sends the input and yields the events until the process exits. Lines are read on demand, so a full pipe slows the process down. */
async function* readChild(
  child: AgentProcess,
  input: ChildInput,
  { signal, silentCpuMs, onEvent }: { signal: AbortSignal; silentCpuMs: number; onEvent: (event: AgentEvent) => void },
): AsyncGenerator<AgentEvent, void> {
  const reader = child.stdout.getReader();
  const stopController = new AbortController();
  const stop = (reason: unknown) => {
    stopController.abort(reason);
    reader.cancel().catch(() => {});
  };
  const abort = () => stop(signal.reason);
  signal.addEventListener("abort", abort, { once: true });
  const { memoryBytes } = input.task.limits;
  let cpuMsAtLastEvent = 0;
  const watchTimer = setInterval(() => {
    const isOverMemory = (child.memory() ?? 0) > memoryBytes;
    const isOverCpuTime = (child.cpuMs() ?? 0) - cpuMsAtLastEvent > silentCpuMs;
    if (!isOverMemory && !isOverCpuTime) return;
    child.kill();
    stop(isOverMemory ? toMemoryFailure(memoryBytes) : toCpuTimeFailure(silentCpuMs));
  }, watchMs);
  try {
    child.write(`${JSON.stringify(input)}\n`);
    let hasEnded = false;
    let hasReported = false;
    for await (const line of readLines(reader)) {
      hasReported = true;
      stopController.signal.throwIfAborted();
      const answer = parseAnswer(line);
      if (answer.type === "failure") throw new AgentFailure(answer.code, answer.detail, answer);
      onEvent(answer);
      yield answer;
      cpuMsAtLastEvent = child.cpuMs() ?? cpuMsAtLastEvent;
      hasEnded = answer.type === "end";
      if (hasEnded) break;
    }
    stopController.signal.throwIfAborted();
    const exit = await child.end("wait");
    stopController.signal.throwIfAborted();
    if (!hasReported && !child.hasRun())
      throw new AgentFailure("agent_not_started", `the agent's process could not be started: ${child.stderrTail()}`, {
        retryable: true,
      });
    if (!hasEnded || (exit !== null && exit !== "exited with code 0")) throw toCrashFailure(exit, child.stderrTail());
  } finally {
    clearInterval(watchTimer);
    signal.removeEventListener("abort", abort);
    reader.cancel().catch(() => {});
    await child.end("ask");
  }
}

/** Yields the complete lines of a stream; an unterminated last line is dropped. */
async function* readLines(reader: ReadableStreamDefaultReader<Uint8Array>): AsyncGenerator<string, void> {
  let partial: Uint8Array[] = [];
  let total = 0;
  let lines = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    total += value.length;
    if (total > maxBytes) throw toLimitFailure(`sent more than ${maxBytes / mib} MiB of events`);
    let from = 0;
    for (let end = value.indexOf(newline); end >= 0; end = value.indexOf(newline, from)) {
      const line = Buffer.concat([...partial, value.subarray(from, end)]);
      partial = [];
      from = end + 1;
      if (line.length > maxLineBytes) throw toLineFailure();
      if (++lines > maxEvents) throw toLimitFailure(`sent more than ${maxEvents} events`);
      if (lines % linesAtOnce === 0) await new Promise(setImmediate);
      yield line.toString();
    }
    partial.push(value.subarray(from));
    if (partial.reduce((bytes, { length }) => bytes + length, 0) > maxLineBytes) throw toLineFailure();
  }
}

/** Checks an event from another process. Returns null for an invalid event. */
export function toAgentEvent(value: Partial<Record<string, unknown>>): AgentEvent | null {
  if (!isAnswer(value) || value.type === "failure") return null;
  return value.type === "milestone" ? readMilestone(value) : value;
}

function parseAnswer(line: string): ChildOutput {
  try {
    const answer = JSON.parse(line);
    if (isAnswer(answer)) return answer.type === "milestone" ? readMilestone(answer) : answer;
  } catch {
    // Reported below.
  }
  throw new AgentFailure("agent_crashed", `its process wrote an invalid event: ${JSON.stringify(line.slice(0, 200))}`);
}

function isAnswer(value: Partial<Record<string, unknown>> | null): value is ChildOutput {
  const isOneOf = (list: readonly string[], item: unknown) => list.some((each) => each === item);
  if (value?.type === "failure")
    return (
      isOneOf(failedCodes, value.code) &&
      typeof value.detail === "string" &&
      /^(undefined|number)$/.test(typeof value.retryAfterMs) &&
      /^(undefined|string)$/.test(typeof value.subject) &&
      (value.ending === undefined || isOneOf(Object.keys(endings), value.ending))
    );
  return isOneOf(eventTypes, value?.type) && (value?.type !== "end" || isOneOf(outcomes, value.outcome));
}

const toLineFailure = () =>
  new AgentFailure("agent_crashed", `its process wrote a line longer than ${maxLineBytes / mib} MiB`);
const toLimitFailure = (problem: string) =>
  new AgentFailure("session_too_large", `the agent ${problem} and was stopped`);
const toCpuTimeFailure = (ms: number) =>
  toLimitFailure(`used ${ms / 1000} s of CPU time without an event, such as on a page that is slow to parse,`);
const toMemoryFailure = (memoryBytes: number) =>
  new AgentFailure(
    "server_limit",
    `the agent used more than ${Math.round(memoryBytes / mib)} MiB of memory and was stopped`,
    { retryable: false, subject: "memoryBytes" satisfies keyof Limits },
  );

function toCrashFailure(exit: string | null, stderr: string): AgentFailure {
  const ending = exit === null ? "stopped responding and was killed" : `${exit} without a result`;
  return new AgentFailure("agent_crashed", `its process ${ending}${stderr && `; stderr: ${stderr}`}`);
}
