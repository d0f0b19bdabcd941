// The sessions that a service gives to its workers, and what they send of them.
import { AgentFailure } from "../agents/agent.ts";
import { createChannel } from "../agents/llm/channel.ts";
import type { SessionOrder } from "./executor.ts";
import {
  type Assignment,
  type ConnectedWorker,
  type Fleet,
  notifyOfChange,
  removeOldest,
  runOf,
  sendStateSoon,
} from "./fleet.ts";
import type { FromWorker } from "./messages.ts";

/** Bytes of messages of a session that may wait to be taken, which no worker of evald reaches. */
const maxWaitingBytes = 16 * 1024 * 1024;
/** Runs whose faulty workers are remembered. */
const maxFaultyRuns = 10_000;

/** Gives a session to a worker. */
export function assignSession(fleet: Fleet, worker: ConnectedWorker, order: SessionOrder): Assignment {
  const { archive, skillsArchive, site, login, ...rest } = order;
  const session: Assignment = {
    worker: worker.info.id,
    workerOrder: {
      service: fleet.service,
      // No state before the next one lists it.
      since: fleet.stateNumber + 1,
      order: {
        ...rest,
        archive: archive !== null,
        skillsArchive: skillsArchive !== null,
        site: site !== null,
        login: login !== null,
      },
    },
    batches: createChannel(),
    lastArrived: 0,
    lastTaken: 0,
    waitingBytes: [],
    arrivedBytes: 0,
    isConfirmed: false,
    orderedAt: 0,
  };
  fleet.sessions.set(order.id, session);
  sendStateSoon(fleet, worker.info.id);
  sendOrder(fleet, session);
  return session;
}

/** Sends the order of a session to its worker. */
export function sendOrder({ workers, log }: Fleet, session: Assignment): void {
  session.orderedAt = performance.now();
  const jobId = session.workerOrder.order.id;
  workers
    .get(session.worker)
    ?.queue.add("session", session.workerOrder, { jobId, removeOnComplete: true, removeOnFail: true })
    .catch((error) => log.debug({ err: error }, "could not send an order"));
}

/**
 * Adds the next batch of a session of a worker with this credential. Ignores any other one; the worker soon gets a state with the last one taken,
 * and repeats those after it. `bytes`: size of the message.
 */
export function receiveBatch(
  fleet: Fleet,
  credential: string,
  { key, number, lines }: FromWorker & { kind: "lines" },
  bytes: number,
): void {
  const session = fleet.sessions.get(key);
  if (!session || fleet.workers.get(session.worker)?.credential !== credential) return;
  if (number !== session.lastArrived + 1) {
    sendStateSoon(fleet, session.worker);
    return;
  }
  session.lastArrived++;
  session.arrivedBytes += bytes;
  session.waitingBytes.push(bytes);
  session.batches.push(lines);
  // It ignores that the service has not taken the batches before.
  if (session.waitingBytes.reduce((sum, each) => sum + each, 0) > maxWaitingBytes)
    failSession(fleet, key, "the worker sent more than it may at once");
}

/** Tells the worker that the next batch of a session was taken. */
export function confirmBatch(fleet: Fleet, session: Assignment): void {
  session.lastTaken++;
  session.waitingBytes.shift();
  sendStateSoon(fleet, session.worker);
}

/** Ends a session because of its worker. The run starts over. */
export function failSession({ sessions }: Fleet, key: string, detail: string): void {
  sessions.get(key)?.batches.fail(new AgentFailure("worker_lost", detail, { retryable: true }));
  sessions.delete(key);
}

/** Remembers that a run had a fault on a worker. Its next attempt goes to another one, if there is one. */
export function rememberFault({ faultyWorkers }: Fleet, key: string, worker: string): void {
  const run = runOf(key);
  faultyWorkers.set(run, (faultyWorkers.get(run) ?? new Set()).add(worker));
  removeOldest(faultyWorkers, maxFaultyRuns);
}

/** Removes a session; its worker stops it if it still runs. */
export function endSession(fleet: Fleet, session: Assignment): void {
  fleet.sessions.delete(session.workerOrder.order.id);
  sendStateSoon(fleet, session.worker);
  notifyOfChange(fleet);
}
