import { parentPort, Worker, workerData } from "node:worker_threads";
import { codeOf } from "../db/fault.ts";
import { reasonOf } from "../errors.ts";

/** Memory of a thread is returned to the system when it ends. */
const idleMs = 30_000;

type Reply<A> = { answer: A } | { error: { message: string; code: string } };

/** The file that threads start with, which calls `serveOrders`. */
let program: string | null = null;

/** Lets threads start with this file. Without one, their work is done in the caller's thread. */
export function enableThreads(file: string | null): void {
  program = file;
}

/** Whether threads can start. */
export const hasThreads = (): boolean => program !== null;

type ThreadOptions = {
  /** The `workerData` of the thread, read when it starts. */
  data: () => unknown;
  /** Describes the work in error messages, such as "grading". */
  what: string;
  /** How long one order may take. */
  timeoutMs: number;
  /** Whether the thread keeps something between orders, so it must not end when idle. */
  isInUse?: () => boolean;
};

/** A thread that answers one order at a time. It starts with the first order and ends after 30 s without one. */
export function createThread<O, A>({ data, what, timeoutMs, isInUse = () => false }: ThreadOptions) {
  let worker: Worker | null = null;
  let idle: ReturnType<typeof setTimeout> | undefined;
  let lastOrder: Promise<unknown> = Promise.resolve();

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

  async function send(order: O): Promise<A> {
    clearTimeout(idle);
    worker ??= new Worker(program ?? "", { workerData: data() });
    const { promise, resolve, reject } = Promise.withResolvers<Reply<A>>();
    const thread = worker;
    const timer = setTimeout(() => reject(new Error(`${what} took longer than ${timeoutMs / 1000} s`)), timeoutMs);
    const fail = (error: unknown) =>
      reject(error instanceof Error ? error : new Error(`the thread for ${what} ended: ${error}`));
    thread.once("message", resolve).once("error", fail).once("exit", fail);
    let reply: Reply<A>;
    try {
      thread.postMessage(order);
      reply = await promise;
    } catch (error) {
      await end();
      throw error;
    } finally {
      clearTimeout(timer);
      thread.removeAllListeners();
      endWhenIdle();
    }
    if ("answer" in reply) return reply.answer;
    throw Object.assign(new Error(reply.error.message), { code: reply.error.code });
  }

  return {
    /** Throws what the work throws, with the code of a database error. Rejects if the thread fails, ends or takes too long, and ends it. */
    ask(order: O): Promise<A> {
      const answer = lastOrder.then(() => send(order));
      lastOrder = answer.catch(() => {});
      return answer;
    },
    end,
  };
}

/** In a thread: answers the orders of the thread that started it. `prepare` is called at the first one. An answer of bytes is moved, not copied. */
export function serveOrders<O>(prepare: () => (order: O) => unknown): void {
  let answerTo: ((order: O) => unknown) | undefined;
  parentPort?.on("message", (order: O) => {
    let reply: Reply<unknown>;
    try {
      answerTo ??= prepare();
      reply = { answer: answerTo(order) };
    } catch (error) {
      reply = { error: { message: reasonOf(error), code: codeOf(error) } };
    }
    const transfer =
      "answer" in reply && reply.answer instanceof Uint8Array ? [reply.answer.buffer as ArrayBuffer] : [];
    parentPort?.postMessage(reply, transfer);
  });
}

/** In a thread: the `data` that it was started with. */
export const threadData = <T>(): T => workerData as T;
