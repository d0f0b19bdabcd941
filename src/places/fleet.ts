import { Queue } from "bullmq";
import type { Logger } from "pino";
import { AgentFailure } from "../agents/agent.ts";
import { createChannel } from "../agents/llm/channel.ts";
import type { SessionOrder } from "./executor.ts";
import {
  type Duty,
  type FromWorker,
  type Line,
  queueOf,
  queuePrefix,
  type ToWorker,
  toWorker,
  type WorkerInfo,
  type WorkerOrder,
  type WorkerStatus,
} from "./messages.ts";
import { connectRedis, removeKey, replaceMessage } from "./redis.ts";

/** How long a state waits for further changes before it is sent. */
const stateDelayMs = 20;
/** Removed workers that are remembered, in case that they come back. */
const maxRemoved = 1_000;

/**
 * The workers of a service and their sessions. Each worker gets the list of the sessions that it should have, and stops all others. Nothing here
 * survives the process, whose sessions start over.
 */
export type Fleet = ReturnType<typeof openFleet>;

/** Connects to Redis. `waitMs`: how long a run waits for a suitable worker. `goneMs`: silence after which a worker counts as gone. */
export const openFleet = (url: string, version: string, waitMs: number, log: Logger, goneMs: number) => ({
  version,
  waitMs,
  log,
  goneMs,
  /** ID of the service's process. */
  service: crypto.randomUUID() as string,
  redis: connectRedis(url, log),
  /** What each waiting run lacks: a suitable worker, or a free slot of one. */
  waiting: new Map<object, "worker" | "slot">(),
  /** Connected workers by ID. */
  workers: new Map<string, ConnectedWorker>(),
  /** IDs of workers that an operator removed. */
  removedIds: new Set<string>(),
  /** The sessions that workers have, by key. */
  sessions: new Map<string, Assignment>(),
  /** Number of the last state that a worker got. */
  stateNumber: 0,
  /** Resolves when something about the workers may have changed. */
  change: Promise.withResolvers<void>(),
});

export type ConnectedWorker = {
  info: WorkerInfo;
  /** Keys of its sessions, as it last said. */
  sessions: Set<string>;
  isDraining: boolean;
  /** By the monotonic clock. */
  heardAt: number;
  connectedAt: number;
  queue: Queue<WorkerOrder>;
  /** The next state that it will get. */
  timer: ReturnType<typeof setTimeout> | undefined;
};

/** A session that a worker has. */
export type Assignment = {
  /** ID of the worker. */
  worker: string;
  workerOrder: WorkerOrder;
  batches: ReturnType<typeof createChannel<Line[]>>;
  /** The last batch that arrived, and the last one that was taken. */
  lastArrived: number;
  lastTaken: number;
  /** Whether the worker has said that it runs it. */
  isConfirmed: boolean;
  /** By the monotonic clock. */
  orderedAt: number;
};

/** Wakes all that wait for a change of the workers. */
export function notifyOfChange(fleet: Fleet): void {
  fleet.change.resolve();
  fleet.change = Promise.withResolvers();
}

/** The workers that take sessions. */
export const listUsableWorkers = ({ workers, version }: Fleet): ConnectedWorker[] =>
  [...workers.values()].filter(({ info, isDraining }) => info.version === version && !isDraining);

/** How busy a worker is: its sessions here, and those that it hasn't stopped yet, as a share of its slots. */
export const shareInUse = (fleet: Fleet, { info, sessions }: ConnectedWorker): number =>
  sessions.union(new Set(sessionsOf(fleet, info.id).map(([key]) => key))).size / info.slots;

const sessionsOf = ({ sessions }: Fleet, workerId: string) =>
  [...sessions].filter(([, { worker }]) => worker === workerId);

/** All workers by name. */
export const listWorkers = (fleet: Fleet): WorkerStatus[] =>
  [...fleet.workers.values()]
    .map((worker) => toStatus(fleet, worker))
    .sort((a, b) => a.name.localeCompare(b.name) || b.connectedMs - a.connectedMs);

function toStatus(fleet: Fleet, { info, isDraining, heardAt, connectedAt }: ConnectedWorker): WorkerStatus {
  const at = performance.now();
  return {
    ...info,
    // A key is the ID of the run, a dash and the attempt.
    state: info.version !== fleet.version ? "refused" : isDraining ? "draining" : "ready",
    runIds: sessionsOf(fleet, info.id).map(([key]) => key.slice(0, key.lastIndexOf("-"))),
    connectedMs: Math.round(at - connectedAt),
    silentMs: Math.round(at - heardAt),
  };
}

function sendDuty(fleet: Fleet, id: string, duty: Duty): Promise<void> {
  const { service, version, redis, goneMs } = fleet;
  const sessions = Object.fromEntries(sessionsOf(fleet, id).map(([key, { lastTaken }]) => [key, lastTaken]));
  const state: ToWorker = { service, version, duty, number: ++fleet.stateNumber, sessions };
  return replaceMessage(redis, toWorker(id), state, 2 * goneMs);
}

/** Sends a worker the state that it should be in. */
export function sendState(fleet: Fleet, worker: ConnectedWorker): Promise<void> {
  clearTimeout(worker.timer);
  worker.timer = undefined;
  return sendDuty(fleet, worker.info.id, worker.isDraining ? "drain" : "work");
}

/** Sends a worker its state soon, together with further changes. */
function sendStateSoon(fleet: Fleet, id: string): void {
  const worker = fleet.workers.get(id);
  if (worker) worker.timer ??= setTimeout(sendState, stateDelayMs, fleet, worker);
}

/** Adds a worker that has connected, or updates what is known about it. */
export function receiveHello(
  fleet: Fleet,
  { worker: info, sessions, isDraining }: FromWorker & { kind: "hello" },
): void {
  const { id, name } = info;
  if (fleet.removedIds.has(id)) {
    sendDuty(fleet, id, "leave");
    return;
  }
  const worker = fleet.workers.get(id) ?? addWorker(fleet, info, isDraining);
  Object.assign(worker, { info, heardAt: performance.now(), sessions: new Set(sessions) });
  worker.isDraining ||= isDraining;
  for (const [key, session] of sessionsOf(fleet, id)) {
    if (worker.sessions.has(key)) session.isConfirmed = true;
    else if (session.isConfirmed) failSession(fleet, key, `the worker ${name} lost the session`);
    // A draining worker will not start it.
    else if (isDraining) failSession(fleet, key, `the worker ${name} is draining`);
  }
  // It still runs some that it shouldn't.
  if (sessions.some((key) => !fleet.sessions.has(key))) sendStateSoon(fleet, id);
  notifyOfChange(fleet);
}

function addWorker(fleet: Fleet, info: WorkerInfo, isDraining: boolean): ConnectedWorker {
  const { log, redis, version } = fleet;
  const { id, name, agents, labels } = info;
  const queue = new Queue<WorkerOrder>(queueOf(id), { connection: redis.jobs, prefix: queuePrefix });
  queue.on("error", () => {});
  const at = performance.now();
  const times = { heardAt: at, connectedAt: at, timer: undefined };
  const worker: ConnectedWorker = { info, sessions: new Set(), isDraining, queue, ...times };
  fleet.workers.set(id, worker);
  if (info.version === version) log.info({ worker: name, id, agents: Object.keys(agents), labels }, "worker connected");
  else log.warn({ worker: name, id, version: info.version, ours: version }, "worker refused: version mismatch");
  sendState(fleet, worker);
  return worker;
}

/** Removes a worker that is gone, and fails its sessions. */
export function forgetWorker(fleet: Fleet, { info: { id, name }, queue, timer }: ConnectedWorker, why: string): void {
  const { log, redis } = fleet;
  clearTimeout(timer);
  fleet.workers.delete(id);
  for (const [key] of sessionsOf(fleet, id)) failSession(fleet, key, `the worker ${name} ${why}`);
  removeKey(redis, toWorker(id));
  queue
    .obliterate({ force: true })
    .then(() => queue.close())
    .catch((error) => log.debug({ err: error }, "could not remove a worker's queue"));
  log.info({ worker: name, id, why }, "worker removed");
  notifyOfChange(fleet);
}

/**
 * `drain`: makes a worker finish its sessions and end. `remove`: takes its sessions back and makes it end. Returns false if there is none with
 * this ID.
 */
export function dismissWorker(fleet: Fleet, id: string, how: "drain" | "remove"): boolean {
  const worker = fleet.workers.get(id);
  if (!worker) return false;
  if (how === "drain") {
    worker.isDraining = true;
    fleet.log.info({ worker: worker.info.name, id }, "worker draining");
    sendState(fleet, worker);
    notifyOfChange(fleet);
  } else {
    const { removedIds } = fleet;
    removedIds.add(id);
    if (removedIds.size > maxRemoved) for (const oldest of removedIds.values().take(1)) removedIds.delete(oldest);
    forgetWorker(fleet, worker, "was removed");
    sendDuty(fleet, id, "leave");
  }
  return true;
}

/** Gives a session to a worker. */
export function assignSession(fleet: Fleet, worker: ConnectedWorker, order: SessionOrder): Assignment {
  const { archive, skillsArchive, ...rest } = order;
  const session: Assignment = {
    worker: worker.info.id,
    workerOrder: {
      service: fleet.service,
      since: fleet.stateNumber + 1,
      order: { ...rest, archive: archive !== null, skillsArchive: skillsArchive !== null },
    },
    batches: createChannel(),
    lastArrived: 0,
    lastTaken: 0,
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

/** Adds the next batch of a session. Ignores any other one; the worker soon gets a state with the last one taken, and repeats those after it. */
export function receiveBatch(fleet: Fleet, { key, number, lines }: FromWorker & { kind: "lines" }): void {
  const session = fleet.sessions.get(key);
  if (!session) return;
  if (number === session.lastArrived + 1) {
    session.lastArrived++;
    session.batches.push(lines);
  } else sendStateSoon(fleet, session.worker);
}

/** Tells the worker that the next batch of a session was taken. */
export function confirmBatch(fleet: Fleet, session: Assignment): void {
  session.lastTaken++;
  sendStateSoon(fleet, session.worker);
}

function failSession({ sessions }: Fleet, key: string, detail: string): void {
  sessions.get(key)?.batches.fail(new AgentFailure("infrastructure", detail, { retryable: true }));
  sessions.delete(key);
}

/** Removes a session; its worker stops it if it still runs. */
export function endSession(fleet: Fleet, session: Assignment): void {
  fleet.sessions.delete(session.workerOrder.order.id);
  sendStateSoon(fleet, session.worker);
  notifyOfChange(fleet);
}
