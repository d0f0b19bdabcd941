import { heapSize } from "bun:jsc";
import { parentPort, Worker, workerData } from "node:worker_threads";
import { codeOf } from "../db/fault.ts";
import { reasonOf } from "../errors.ts";

/** Memory of a thread is returned to the system when it ends. */
const idleMs = 30_000;

/** After a call that took more memory than this, garbage is collected. The small calls that follow would not fill the heap enough to start it. */
const heapBytesBetweenCalls = 64 * 1024 * 1024;

type Reply<Output> = { output: Output } | { error: { message: string; code: string } };

/** The file that threads start with, which calls `serveCalls`. */
let threadFile: string | null = null;

/** Lets threads start with this file. Without a file, the caller's thread does their work. */
export function enableThreads(file: string | null): void {
  threadFile = file;
}

/** Whether threads can start. */
export const hasThreads = (): boolean => threadFile !== null;

type ThreadOptions = {
  /** The `workerData` of the thread, read when it starts. */
  data: () => unknown;
  /** Describes the work in error messages, such as "grading". */
  what: string;
  /** How long one call may take. */
  timeoutMs: number;
  /** Whether the thread keeps something between calls. Then it must not end when idle. */
  isInUse?: () => boolean;
};

/** A thread that handles one call at a time. It starts with the first call and ends after 30 s without one. */
export function createThread<Input, Output>({ data, what, timeoutMs, isInUse = () => false }: ThreadOptions) {
  let worker: Worker | null = null;
  let idle: ReturnType<typeof setTimeout> | undefined;
  let lastCall: Promise<unknown> = Promise.resolve();

  async function end(): Promise<void> {
    clearTimeout(idle);
    const thread = worker;
    worker = null;
    await thread?.terminate();
  }

  function endWhenIdle(): void {
    clearTimeout(idle);
    idle = setTimeout(() => (isInUse() ? endWhenIdle() : void end()), idleMs);
    idle.unref();
  }

  async function send(input: Input): Promise<Output> {
    clearTimeout(idle);
    worker ??= new Worker(threadFile ?? "", { workerData: data() });
    const { promise, resolve, reject } = Promise.withResolvers<Reply<Output>>();
    const thread = worker;
    const timer = setTimeout(() => reject(new Error(`${what} took longer than ${timeoutMs / 1000} s`)), timeoutMs);
    const fail = (error: unknown) =>
      reject(error instanceof Error ? error : new Error(`the thread for ${what} ended: ${error}`));
    thread.once("message", resolve).once("error", fail).once("exit", fail);
    let reply: Reply<Output>;
    try {
      thread.postMessage(input);
      reply = await promise;
    } catch (error) {
      await end();
      throw error;
    } finally {
      clearTimeout(timer);
      thread.removeAllListeners();
      endWhenIdle();
    }
    if ("output" in reply) return reply.output;
    throw Object.assign(new Error(reply.error.message), { code: reply.error.code });
  }

  return {
    /**
     * Throws what the work throws, with the code of a database error. If the thread fails, ends or takes too long, the call rejects and the thread is
     * ended.
     */
    call(input: Input): Promise<Output> {
      const output = lastCall.then(() => send(input));
      lastCall = output.catch(() => {});
      return output;
    },
    end,
  };
}

/**
 * In a thread: handles the calls of the thread that started it. `prepare` runs at the first call and returns the function that handles calls. Bytes
 * are moved to the caller, not copied.
 */
export function serveCalls<Input>(prepare: () => (input: Input) => unknown): void {
  let handle: ((input: Input) => unknown) | undefined;
  parentPort?.on("message", (input: Input) => {
    let reply: Reply<unknown>;
    try {
      handle ??= prepare();
      reply = { output: handle(input) };
    } catch (error) {
      reply = { error: { message: reasonOf(error), code: codeOf(error) } };
    }
    const transfer =
      "output" in reply && reply.output instanceof Uint8Array ? [reply.output.buffer as ArrayBuffer] : [];
    parentPort?.postMessage(reply, transfer);
    if (heapSize() > heapBytesBetweenCalls) Bun.gc(true);
  });
}

/** In a thread: the `data` that it was started with. */
export const threadData = <T>(): T => workerData as T;
