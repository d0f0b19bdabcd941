import { parentPort, Worker, workerData } from "node:worker_threads";
import { codeOf } from "../db/fault.ts";

/** Memory of a thread is returned to the system when it ends. */
const idleMs = 30_000;

type Wire<A> = { answer: A } | { error: { message: string; code: string } };

/** The file that threads start with, which calls `serveOrders`. */
let program: string | null = null;

/** Lets threads start with this file. Without one, their work is done in the caller's thread. */
export function enableThreads(file: string | null): void {
  program = file;
}

/** Whether threads can start. */
export const hasThreads = (): boolean => program !== null;

type Options<T> = {
  /** The `workerData` of the thread. */
  data: T;
  /** Describes the work in error messages, such as "grading". */
  what: string;
  /** How long one order may take. */
  timeoutMs: number;
  /** Whether the thread keeps something between orders, so it must not end when idle. */
  isInUse?: () => boolean;
};

/** A thread that answers one order at a time. It starts with the first order and ends after 30 s without one. */
export function createThread<O, A>({ data, what, timeoutMs, isInUse = () => false }: Options<unknown>) {
  let worker: Worker | null = null;
  let idle: ReturnType<typeof setTimeout> | undefined;
  let turn: Promise<unknown> = Promise.resolve();

  async function end(): Promise<void> {
    clearTimeout(idle);
    const ended = worker;
    worker = null;
    await ended?.terminate();
  }

  function endWhenIdle(): void {
    clearTimeout(idle);
    idle = setTimeout(() => (isInUse() ? endWhenIdle() : void end()), idleMs);
    idle.unref();
  }

  async function send(order: O): Promise<A> {
    clearTimeout(idle);
    worker ??= new Worker(program ?? "", { workerData: data });
    const { promise, resolve, reject } = Promise.withResolvers<Wire<A>>();
    const thread = worker;
    const timer = setTimeout(() => reject(new Error(`${what} took longer than ${timeoutMs / 1000} s`)), timeoutMs);
    const fail = (error: unknown) =>
      reject(error instanceof Error ? error : new Error(`the thread for ${what} ended: ${error}`));
    thread.once("message", resolve).once("error", fail).once("exit", fail);
    let wire: Wire<A>;
    try {
      thread.postMessage(order);
      wire = await promise;
    } catch (error) {
      await end();
      throw error;
    } finally {
      clearTimeout(timer);
      thread.removeAllListeners();
      endWhenIdle();
    }
    if ("answer" in wire) return wire.answer;
    throw Object.assign(new Error(wire.error.message), { code: wire.error.code });
  }

  return {
    /** Throws what the work throws, with the code of a database error. Rejects if the thread fails, ends or takes too long, and ends it. */
    ask(order: O): Promise<A> {
      const asked = turn.then(() => send(order));
      turn = asked.catch(() => {});
      return asked;
    },
    end,
  };
}

/** In a thread: answers the orders of the thread that started it. `prepare` is called at the first one. An answer of bytes is moved, not copied. */
export function serveOrders<O>(prepare: () => (order: O) => unknown): void {
  let answerTo: ((order: O) => unknown) | undefined;
  parentPort?.on("message", (order: O) => {
    let wire: Wire<unknown>;
    try {
      answerTo ??= prepare();
      wire = { answer: answerTo(order) };
    } catch (error) {
      wire = { error: { message: error instanceof Error ? error.message : String(error), code: codeOf(error) } };
    }
    const moved = "answer" in wire && wire.answer instanceof Uint8Array ? [wire.answer.buffer as ArrayBuffer] : [];
    parentPort?.postMessage(wire, moved);
  });
}

/** In a thread: the `data` that it was started with. */
export const threadData = <T>(): T => workerData as T;
