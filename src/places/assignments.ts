import { AgentFailure } from "../agents/agent.ts";
import { createChannel } from "../agents/llm/channel.ts";
import type { Line, WorkerOrder } from "./messages.ts";

export type Assignment = {
  /** ID of its worker. */
  worker: string;
  order: WorkerOrder;
  batches: ReturnType<typeof createChannel<Line[]>>;
  /** The last batch that arrived, and the last one that was taken. */
  arrived: number;
  taken: number;
  /** Whether the worker has said that it runs it. */
  isConfirmed: boolean;
  /** By the monotonic clock. */
  orderedAt: number;
};

/** The sessions that a service has given to workers, by key. */
export function createAssignments() {
  const all = new Map<string, Assignment>();
  const of = (worker: string) => [...all].filter(([, each]) => each.worker === worker);

  function lose(key: string, detail: string): void {
    all.get(key)?.batches.fail(new AgentFailure("infrastructure", detail, { retryable: true }));
    all.delete(key);
  }

  return {
    has: (key: string): boolean => all.has(key),
    values: () => all.values(),
    keysOf: (worker: string): string[] => of(worker).map(([key]) => key),
    /** The last batch that was taken of each session of a worker. */
    takenOf: (worker: string) => Object.fromEntries(of(worker).map(([key, { taken }]) => [key, taken])),
    add(worker: string, order: WorkerOrder): Assignment {
      const rest = { arrived: 0, taken: 0, isConfirmed: false, orderedAt: 0 };
      const session = { worker, order, batches: createChannel<Line[]>(), ...rest };
      all.set(order.order.id, session);
      return session;
    },
    /** Adds the next batch of a session. Returns the worker if it should hear which one is the next; null if not. */
    hear(key: string, number: number, lines: Line[]): string | null {
      const session = all.get(key);
      if (!session) return null;
      if (number !== session.arrived + 1) return session.worker;
      session.arrived++;
      session.batches.push(lines);
      return null;
    },
    /** A worker has said which sessions it runs. Those that it ran before without sending their end are lost. */
    confirm(worker: string, keys: Set<string>, name: string): void {
      for (const [key, session] of of(worker)) {
        if (keys.has(key)) session.isConfirmed = true;
        else if (session.isConfirmed) lose(key, `the worker ${name} lost the session`);
      }
    },
    /** Gives up the sessions that a worker has not started and no longer will. */
    loseUnconfirmed(worker: string, name: string): void {
      for (const [key, { isConfirmed }] of of(worker)) if (!isConfirmed) lose(key, `the worker ${name} is draining`);
    },
    /** Fails the sessions of a worker that is gone. */
    loseOf(worker: string, detail: string): void {
      for (const [key] of of(worker)) lose(key, detail);
    },
    remove: (session: Assignment): boolean => all.delete(session.order.order.id),
  };
}
