import { type Agent, type AgentEvent, AgentFailure, eventTypes, failureCauses, outcomes } from "./agent.ts";
import { type AgentProcess, ownCommand, startProcess } from "./process.ts";
import type { Answer, Order } from "./worker.ts";

const mib = 1024 * 1024;
const maxLineBytes = mib;
/** Of a run: far more than anyone would read, and a bound to what a process can fill the disk with. */
const maxBytes = 64 * mib;
const maxEvents = 100_000;
/** Between two breaths of the service: what comes in faster than it is stored would else let nothing else happen. */
const linesAtOnce = 100;
const watchMs = 500;

type Options = {
  /** What is started; default: the worker of this very executable. */
  command?: string[];
  /** The service's own; the agent gets nothing of it but the names below. */
  env?: Record<string, string | undefined>;
};

/** Where programs are, and the certificates that the operator trusts. */
const passedOn = ["PATH", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "SSL_CERT_DIR"];

/**
 * An agent that works in a process of its own for each run. It knows nothing of the service but its order, and is gone, with everything
 * that it started, when `run` has ended; with the service it dies at once.
 */
export function createChildAgent(agent: Agent, { command = ownCommand(), env = {} }: Options = {}): Agent {
  return {
    describe: () => agent.describe(),
    preflight: () => agent.preflight(),
    async *run(task, { signal, now: _, ...context }) {
      signal.throwIfAborted();
      const child = start(command, Object.fromEntries(passedOn.flatMap((name) => pair(name, env[name]))));
      yield* converse(child, { agent: agent.describe().id, task, context }, signal);
    },
  };
}

const pair = (name: string, value: string | undefined) => (value === undefined ? [] : [[name, value] as const]);

function start(command: string[], env: Record<string, string>): AgentProcess {
  try {
    return startProcess(command, env);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new AgentFailure("infrastructure", `the agent's process could not be started: ${reason}`, {
      retryable: true,
    });
  }
}

/** Gives the order and passes on what is answered, until the process is gone. Nothing is read before it is asked for, so a full pipe holds the process up. */
async function* converse(child: AgentProcess, order: Order, signal: AbortSignal): AsyncGenerator<AgentEvent, void> {
  const reader = child.stdout.getReader();
  const stopped = new AbortController();
  const stop = (reason: unknown) => {
    stopped.abort(reason);
    reader.cancel().catch(() => {});
  };
  const abort = () => stop(signal.reason);
  signal.addEventListener("abort", abort, { once: true });
  const { memoryBytes } = order.task.limits;
  const watch = setInterval(() => {
    if ((child.memory() ?? 0) <= memoryBytes) return;
    child.kill();
    stop(overrun(`took more than ${Math.round(memoryBytes / mib)} MiB of memory`));
  }, watchMs);
  try {
    child.write(`${JSON.stringify(order)}\n`);
    let isDone = false;
    for await (const line of linesOf(reader)) {
      stopped.signal.throwIfAborted();
      const answer = parse(line);
      if (answer.type === "failure") throw new AgentFailure(answer.cause, answer.detail, answer);
      yield answer;
      isDone = answer.type === "end";
      if (isDone) break;
    }
    stopped.signal.throwIfAborted();
    const ended = await child.end("wait");
    stopped.signal.throwIfAborted();
    if (!isDone || (ended !== null && ended !== "ended with status 0")) throw crashed(ended, child.complaint());
  } finally {
    clearInterval(watch);
    signal.removeEventListener("abort", abort);
    reader.cancel().catch(() => {});
    await child.end("ask");
  }
}

/** The lines of a stream; what stands after the last of them was cut off and is none. */
async function* linesOf(reader: ReadableStreamDefaultReader<Uint8Array>): AsyncGenerator<string, void> {
  let begun: Uint8Array[] = [];
  let total = 0;
  let lines = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    total += value.length;
    if (total > maxBytes) throw overrun(`told more than ${maxBytes / mib} MiB of events`);
    let from = 0;
    for (let at = value.indexOf(10); at >= 0; at = value.indexOf(10, from)) {
      const line = Buffer.concat([...begun, value.subarray(from, at)]);
      begun = [];
      from = at + 1;
      if (line.length > maxLineBytes) throw tooLong();
      if (++lines > maxEvents) throw overrun(`told more than ${maxEvents} events`);
      if (lines % linesAtOnce === 0) await new Promise(setImmediate);
      yield line.toString();
    }
    begun.push(value.subarray(from));
    if (begun.reduce((bytes, { length }) => bytes + length, 0) > maxLineBytes) throw tooLong();
  }
}

function parse(line: string): Answer {
  try {
    const answer = JSON.parse(line);
    if (isAnswer(answer)) return answer;
  } catch {
    // Told below.
  }
  throw new AgentFailure("agent_crashed", `its process wrote what is no event: ${JSON.stringify(line.slice(0, 200))}`);
}

function isAnswer(value: Partial<Record<string, unknown>> | null): value is Answer {
  const isOneOf = (list: readonly string[], item: unknown) => list.some((known) => known === item);
  if (value?.type === "failure")
    return (
      isOneOf(failureCauses, value.cause) &&
      typeof value.detail === "string" &&
      /^(undefined|number)$/.test(typeof value.retryAfterMs)
    );
  return isOneOf(eventTypes, value?.type) && (value?.type !== "end" || isOneOf(outcomes, value.outcome));
}

const tooLong = () =>
  new AgentFailure("agent_crashed", `its process wrote a line of more than ${maxLineBytes / mib} MiB`);
const overrun = (what: string) => new AgentFailure("budget", `the agent ${what} and was stopped`);

function crashed(ended: string | null, complaint: string): AgentFailure {
  const how = ended === null ? "stopped to answer and had to be ended" : `${ended}, without a result`;
  return new AgentFailure("agent_crashed", `its process ${how}${complaint && `; the end of its stderr: ${complaint}`}`);
}
