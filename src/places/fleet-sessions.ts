// The sessions that a service gives to its workers, and the messages that workers send about them.
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

/** How many bytes of a session's messages may wait to be taken. No worker of evald reaches this limit. */
const maxWaitingBytes = 16 * 1024 * 1024;
/** For how many runs the faulty workers are remembered. */
const maxFaultyRuns = 10_000;

/** Gives a session to a worker. */
export function assignSession(fleet: Fleet, worker: ConnectedWorker, order: SessionOrder): Assignment {
  const { archive, skillsArchive, site, login, ...rest } = order;
  const session: Assignment = {
    worker: worker.info.id,
    workerOrder: {
      service: fleet.service,
      // No state before the next one lists the session.
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
 * Adds the next batch of a session, if a worker with this credential has the session. Any other batch is ignored. The worker soon gets a state with
 * the last batch that was taken, and repeats the batches after it. `bytes`: the size of the message.
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
  // The worker ignores that the service has not taken the earlier batches.
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

/** Remembers that a run had a fault on a worker. If there is another suitable worker, the next attempt goes there. */
export function rememberFault({ faultyWorkers }: Fleet, key: string, worker: string): void {
  const run = runOf(key);
  faultyWorkers.set(run, (faultyWorkers.get(run) ?? new Set()).add(worker));
  removeOldest(faultyWorkers, maxFaultyRuns);
}

/** Removes a session. If the session still runs, its worker stops it. */
export function endSession(fleet: Fleet, session: Assignment): void {
  fleet.sessions.delete(session.workerOrder.order.id);
  sendStateSoon(fleet, session.worker);
  notifyOfChange(fleet);
}
