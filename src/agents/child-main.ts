import { type Agent, type AgentContext, type AgentEvent, AgentFailure, type FailureOptions } from "./agent.ts";
import type { FailedCode } from "./failure.ts";
import type { Task } from "./task.ts";

/** What the service sends to an agent's process, on one line: the agent, its task and its context. */
export type ChildInput = {
  agent: string;
  task: Task;
  context: Omit<AgentContext, "signal" | "now" | "startedAt" | "openEgress">;
};

/** The lines that the process writes: its events or, if the run failed, the reason in place of `end`. */
export type ChildOutput = AgentEvent | FailureLine;
type FailureLine = { type: "failure"; code: FailedCode; detail: string } & FailureOptions;

type ServiceConnection = {
  /** Yields the line of input, and ends when the service does. */
  input: ReadableStream<Uint8Array>;
  /** Resolves when there is room for more. */
  write: (text: string) => Promise<unknown>;
  signal: AbortSignal;
  now: () => number;
};

/**
 * Runs in an agent's process: reads the task, runs the agent and writes its events. Throws errors of the agent that aren't an
 * AgentFailure.
 */
export async function runChildAgent(
  agents: Record<string, Agent>,
  { input, write, signal, now }: ServiceConnection,
): Promise<void> {
  const service = input.getReader();
  const { agent: id, task, context } = await readInput(service);
  const agent = agents[id];
  if (!agent) throw new Error(`This executable has no agent named ${JSON.stringify(id)}.`);
  const writeLine = (line: ChildOutput) => write(`${JSON.stringify(line)}\n`);
  const steadyNow = createSteadyClock(now());
  const runAgent = async () => {
    try {
      for await (const event of agent.run(task, { ...context, signal, now: steadyNow, startedAt: steadyNow() }))
        await writeLine(event);
    } catch (error) {
      if (!(error instanceof AgentFailure)) throw error;
      const { code, detail, options } = error;
      await writeLine({ type: "failure", code, detail, ...options });
    }
  };
  await Promise.race([runAgent(), rejectAtEnd(service)]);
}

/**
 * Returns a clock that starts at a time in epoch ms and goes on evenly even if the system clock is set, because the time limits of a run are
 * durations.
 */
function createSteadyClock(fromMs: number): () => number {
  const since = performance.now();
  return () => Math.round(fromMs + performance.now() - since);
}

type Reader = ReadableStreamDefaultReader<Uint8Array>;

async function readInput(input: Reader): Promise<ChildInput> {
  const decoder = new TextDecoder();
  let text = "";
  while (!text.includes("\n")) {
    const { done, value } = await input.read();
    if (done) throw new Error("The input ended before its first line. This command is internal to evald.");
    text += decoder.decode(value, { stream: true });
  }
  return JSON.parse(text);
}

async function rejectAtEnd(input: Reader): Promise<never> {
  while (!(await input.read()).done);
  throw new Error("the service has exited");
}
