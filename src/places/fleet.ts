import { Queue } from "bullmq/dist/esm/classes/queue";
import type { Logger } from "pino";
import { AgentFailure } from "../agents/agent.ts";
import { createChannel } from "../agents/llm/channel.ts";
import type { SessionOrder } from "./executor.ts";
import {
  beatMs,
  type Duty,
  type FromWorker,
  type KnownWorker,
  type Line,
  queueOf,
  queuePrefixOf,
  sharedCredential,
  stateKeyOf,
  type ToWorker,
  type WorkerInfo,
  type WorkerOrder,
  type WorkerStatus,
} from "./messages.ts";
import { connectRedis, removeKey, replaceMessage } from "./redis.ts";

/** How long a state waits for further changes before it is sent. */
const stateDelayMs = 20;
/** Workers that left, and removed ones of one credential, that are remembered in case that they come back. */
const maxRemembered = 1_000;
/** Bytes of messages of a session that may wait to be taken, which no worker of evald reaches. */
const maxWaitingBytes = 16 * 1024 * 1024;
/** Runs whose faulty workers are remembered. */
const maxFaultyRuns = 10_000;

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
  waiting: new Map<SessionOrder, "worker" | "slot">(),
  /** Connected workers by ID. */
  workers: new Map<string, ConnectedWorker>(),
  /** Workers that left without being told to, by name. */
  away: new Map<string, AbsentWorker>(),
  /** By credential: IDs of workers that an operator removed, or that a restarted one replaced. */
  removedIds: new Map<string, Set<string>>(),
  /** By run: names of the workers on which it had faults. */
  faultyWorkers: new Map<string, Set<string>>(),
  /** Whether this service has ever claimed the Redis server, which `otherService` may have taken since. */
  isClaimed: false,
  /** The other service that uses this Redis server; null: none. Nothing is sent or read until it is gone. */
  otherService: null as string | null,
  /** The sessions that workers have, by key. */
  sessions: new Map<string, Assignment>(),
  /** Number of the last state that a worker got. */
  stateNumber: 0,
  /** Resolves when something about the workers may have changed. */
  change: Promise.withResolvers<void>(),
});

/** A worker that is away. `heardAt`: when it last sent something, by the monotonic clock. */
type AbsentWorker = Omit<KnownWorker, "awayMs"> & { heardAt: number };

/** A worker that is connected, of any version. */
export type ConnectedWorker = {
  info: WorkerInfo;
  /** Name of the credential with which it connected. */
  credential: string;
  /** Keys of its sessions, as it last said. */
  sessions: Set<string>;
  isDraining: boolean;
  /** By the monotonic clock. */
  heardAt: number;
  connectedAt: number;
  queue: Queue<WorkerOrder>;
  /** Of the next state that it will get. */
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
  /** Bytes of each batch that waits to be taken, oldest first, and of all that have arrived. */
  waitingBytes: number[];
  arrivedBytes: number;
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
export const listUsableWorkers = (fleet: Fleet): ConnectedWorker[] =>
  [...fleet.workers.values()].filter((worker) => stateOf(fleet, worker) === "ready");

function stateOf({ version }: Fleet, { info, isDraining }: ConnectedWorker): WorkerStatus["state"] {
  if (info.version !== version) return "refused";
  if (isDraining) return "draining";
  return info.problem === null ? "ready" : "not_ready";
}

/** The run of a session. A key is the ID of the run, a dash and the attempt. */
export const runOf = (key: string): string => key.slice(0, key.lastIndexOf("-"));

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

function toStatus(fleet: Fleet, worker: ConnectedWorker): WorkerStatus {
  const { info, credential, heardAt, connectedAt } = worker;
  const at = performance.now();
  return {
    ...info,
    state: stateOf(fleet, worker),
    credential: credential === sharedCredential ? null : credential,
    runIds: sessionsOf(fleet, info.id).map(([key]) => runOf(key)),
    connectedMs: Math.round(at - connectedAt),
    silentMs: Math.round(at - heardAt),
  };
}

async function sendDuty(fleet: Fleet, credential: string, id: string, duty: Duty): Promise<void> {
  const { service, version, redis, goneMs, otherService } = fleet;
  if (otherService !== null) return;
  const sessions = Object.fromEntries(sessionsOf(fleet, id).map(([key, { lastTaken }]) => [key, lastTaken]));
  const state: ToWorker = { service, version, duty, number: ++fleet.stateNumber, sessions };
  await replaceMessage(redis, stateKeyOf(credential, id), state, 2 * goneMs);
}

/** Sends a worker the state that it should be in. */
export function sendState(fleet: Fleet, worker: ConnectedWorker): Promise<void> {
  clearTimeout(worker.timer);
  worker.timer = undefined;
  return sendDuty(fleet, worker.credential, worker.info.id, worker.isDraining ? "drain" : "work");
}

/** Sends a worker its state soon, together with further changes. */
function sendStateSoon(fleet: Fleet, id: string): void {
  const worker = fleet.workers.get(id);
  if (worker) worker.timer ??= setTimeout(sendState, stateDelayMs, fleet, worker);
}

/**
 * Adds a worker that has connected, or updates what is known about it. Ignores the ID of a worker with another credential. A credential of its
 * own belongs to one worker: another one with it is the same, restarted.
 */
export function receiveHello(
  fleet: Fleet,
  credential: string,
  { worker: reported, sessions, isDraining }: FromWorker & { kind: "hello" },
): void {
  const { id } = reported;
  // The operator chose this name, and metrics and people rely on it.
  const info = credential === sharedCredential ? reported : { ...reported, name: credential };
  if (fleet.removedIds.get(credential)?.has(id)) {
    sendDuty(fleet, credential, id, "leave");
    return;
  }
  const connected = fleet.workers.get(id);
  if (connected && connected.credential !== credential) return;
  if (!connected && !replaceWorker(fleet, credential)) return;
  const worker = connected ?? addWorker(fleet, credential, info, isDraining);
  if (info.problem !== worker.info.problem) logProblem(fleet, info);
  Object.assign(worker, { info, heardAt: performance.now(), sessions: new Set(sessions) });
  worker.isDraining ||= isDraining;
  for (const [key, session] of sessionsOf(fleet, id)) {
    if (worker.sessions.has(key)) session.isConfirmed = true;
    else if (session.isConfirmed) failSession(fleet, key, `the worker ${info.name} lost the session`);
    // A draining worker will not start it.
    else if (isDraining) failSession(fleet, key, `the worker ${info.name} is draining`);
  }
  // It still runs some that it shouldn't.
  if (sessions.some((key) => !fleet.sessions.has(key))) sendStateSoon(fleet, id);
  notifyOfChange(fleet);
}

/** Makes room for a restarted worker with a credential of its own. False if the one before has just connected: two would replace each other endlessly. */
function replaceWorker(fleet: Fleet, credential: string): boolean {
  if (credential === sharedCredential) return true;
  const before = [...fleet.workers.values()].find((worker) => worker.credential === credential);
  if (!before) return true;
  if (performance.now() - before.connectedAt < beatMs) return false;
  rememberRemoved(fleet, before);
  forgetWorker(fleet, before, "was restarted");
  return true;
}

function rememberRemoved({ removedIds }: Fleet, { credential, info: { id } }: ConnectedWorker): void {
  const ids = removedIds.get(credential) ?? new Set();
  removedIds.set(credential, ids);
  ids.add(id);
  removeOldest(ids, maxRemembered);
}

/** Removes the entry that was added first if there are more than `max`. */
function removeOldest<K>(entries: Map<K, unknown> | Set<K>, max: number): void {
  if (entries.size > max) entries.delete(entries.keys().next().value!);
}

function logProblem({ log }: Fleet, { id, name, problem }: WorkerInfo): void {
  if (problem === null) log.info({ worker: name, id }, "worker is ready again");
  else log.warn({ worker: name, id, problem }, "worker is not ready");
}

function addWorker(fleet: Fleet, credential: string, info: WorkerInfo, isDraining: boolean): ConnectedWorker {
  const { log, redis, version } = fleet;
  const { id, name, agents, labels } = info;
  const queue = new Queue<WorkerOrder>(queueOf(id), { connection: redis.jobs, prefix: queuePrefixOf(credential) });
  queue.on("error", () => {});
  const at = performance.now();
  const worker: ConnectedWorker = {
    // A problem that it has from the start is logged as a change.
    info: { ...info, problem: null },
    credential,
    sessions: new Set(),
    isDraining,
    queue,
    heardAt: at,
    connectedAt: at,
    timer: undefined,
  };
  fleet.workers.set(id, worker);
  fleet.away.delete(name);
  if (info.version === version)
    log.info({ worker: name, id, agents: agents.map((agent) => agent.id), labels }, "worker connected");
  else log.warn({ worker: name, id, version: info.version, ours: version }, "worker refused: version mismatch");
  sendState(fleet, worker);
  return worker;
}

/** What is remembered of a worker. */
export const toKnown = ({ name, agents, labels }: WorkerInfo) => ({ name, agents: agents.map(({ id }) => id), labels });

/** Removes a worker that left, and remembers it as away unless it was told to leave. */
export function removeAbsentWorker(fleet: Fleet, worker: ConnectedWorker, why: string): void {
  const { info, credential, heardAt, isDraining } = worker;
  if (!isDraining) fleet.away.set(info.name, { ...toKnown(info), credential, heardAt });
  removeOldest(fleet.away, maxRemembered);
  forgetWorker(fleet, worker, why);
}

/** Removes a worker that is gone, and fails its sessions. */
export function forgetWorker(fleet: Fleet, worker: ConnectedWorker, why: string): void {
  const { log, redis } = fleet;
  const { info, credential, queue, timer } = worker;
  const { id, name } = info;
  clearTimeout(timer);
  fleet.workers.delete(id);
  for (const [key] of sessionsOf(fleet, id)) failSession(fleet, key, `the worker ${name} ${why}`);
  removeKey(redis, stateKeyOf(credential, id));
  queue
    .obliterate({ force: true })
    .catch((error) => log.debug({ err: error }, "could not remove a worker's queue"))
    .finally(() => queue.close())
    .catch(() => {});
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
    rememberRemoved(fleet, worker);
    forgetWorker(fleet, worker, "was removed");
    sendDuty(fleet, worker.credential, id, "leave");
  }
  return true;
}

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

function failSession({ sessions }: Fleet, key: string, detail: string): void {
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
