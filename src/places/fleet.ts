import type { Queue } from "bullmq/dist/esm/classes/queue";
import type { Logger } from "pino";
import type { createChannel } from "../agents/llm/channel.ts";
import type { SessionOrder } from "./executor.ts";
import {
  type Duty,
  type KnownWorker,
  type Line,
  sharedCredential,
  stateKeyOf,
  type ToWorker,
  type WorkerInfo,
  type WorkerOrder,
  type WorkerStatus,
} from "./messages.ts";
import { connectRedis, replaceMessage } from "./redis.ts";

/** How long the state that a worker should be in waits for further changes before it is sent. */
const stateDelayMs = 20;

/**
 * The workers of a service and their sessions. Each worker gets the list of the sessions that it should have, and stops all others. Nothing here
 * survives the process: after a restart, all sessions start over.
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
  /** What each waiting run lacks: a suitable worker, or a free slot on one. */
  waiting: new Map<SessionOrder, "worker" | "slot">(),
  /** Connected workers by ID. */
  workers: new Map<string, ConnectedWorker>(),
  /** Workers that left without being told to, by name. */
  away: new Map<string, AbsentWorker>(),
  /** By credential, the IDs of workers that an operator removed or that a restarted worker replaced. */
  removedIds: new Map<string, Set<string>>(),
  /** By run, the names of the workers on which the run had faults. */
  faultyWorkers: new Map<string, Set<string>>(),
  /** Whether this service has ever claimed the Redis server. Another service may have taken it since: see `otherService`. */
  isClaimed: false,
  /** The other service that uses this Redis server; null: none. Nothing is sent or read until it is gone. */
  otherService: null as string | null,
  /** The sessions that workers have, by key. */
  sessions: new Map<string, Assignment>(),
  /** Number of the last state that was sent to a worker. */
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
  /** Keys of its sessions, as the worker last reported them. */
  sessions: Set<string>;
  isDraining: boolean;
  /** By the monotonic clock. */
  heardAt: number;
  connectedAt: number;
  queue: Queue<WorkerOrder>;
  /** The timer of the next state that is sent to it. */
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
  /** The bytes of each batch that waits to be taken, oldest first, and of all batches that have arrived. */
  waitingBytes: number[];
  arrivedBytes: number;
  /** Whether the worker has confirmed that it runs the session. */
  isConfirmed: boolean;
  /** By the monotonic clock. */
  orderedAt: number;
};

/** Wakes everything that waits for a change of the workers. */
export function notifyOfChange(fleet: Fleet): void {
  fleet.change.resolve();
  fleet.change = Promise.withResolvers();
}

/** The workers that take sessions. */
export const listUsableWorkers = (fleet: Fleet): ConnectedWorker[] =>
  [...fleet.workers.values()].filter((worker) => readinessOf(fleet, worker) === "ready");

/** Whether a worker takes sessions, and why not. */
function readinessOf({ version }: Fleet, { info, isDraining }: ConnectedWorker): WorkerStatus["state"] {
  if (info.version !== version) return "refused";
  if (isDraining) return "draining";
  return info.problem === null ? "ready" : "not_ready";
}

/** The run of a session. A key is the ID of the run, a dash and the attempt. */
export const runOf = (key: string): string => key.slice(0, key.lastIndexOf("-"));

/** How busy a worker is, as a share of its slots. Sessions that it should have count, and so do sessions that it hasn't stopped yet. */
export function shareInUse(fleet: Fleet, { info, sessions }: ConnectedWorker): number {
  const assignedKeys = new Set(sessionsOf(fleet, info.id).map(([key]) => key));
  return sessions.union(assignedKeys).size / info.slots;
}

/** The sessions of a worker, by their keys. */
export const sessionsOf = ({ sessions }: Fleet, workerId: string) =>
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
    state: readinessOf(fleet, worker),
    credential: credential === sharedCredential ? null : credential,
    runIds: sessionsOf(fleet, info.id).map(([key]) => runOf(key)),
    connectedMs: Math.round(at - connectedAt),
    silentMs: Math.round(at - heardAt),
  };
}

/** Tells a worker what it should do, even if the worker is no longer connected. */
export async function sendDuty(fleet: Fleet, credential: string, id: string, duty: Duty): Promise<void> {
  const { service, version, redis, goneMs, otherService } = fleet;
  if (otherService !== null) return;
  // The last batch that was taken tells the worker which batches it may forget.
  const sessions = Object.fromEntries(sessionsOf(fleet, id).map(([key, { lastTaken }]) => [key, lastTaken]));
  const state: ToWorker = { service, version, duty, number: ++fleet.stateNumber, sessions };
  // States are sent repeatedly. One that is still there after this time is for a worker that is gone.
  await replaceMessage(redis, stateKeyOf(credential, id), state, 2 * goneMs);
}

/** Sends a worker the state that it should be in. */
export function sendState(fleet: Fleet, worker: ConnectedWorker): Promise<void> {
  clearTimeout(worker.timer);
  worker.timer = undefined;
  return sendDuty(fleet, worker.credential, worker.info.id, worker.isDraining ? "drain" : "work");
}

/** Sends a worker its state soon, together with further changes. */
export function sendStateSoon(fleet: Fleet, id: string): void {
  const worker = fleet.workers.get(id);
  if (worker) worker.timer ??= setTimeout(sendState, stateDelayMs, fleet, worker);
}

/** Removes the entry that was added first if there are more than `max`. */
export function removeOldest<K>(entries: Map<K, unknown> | Set<K>, max: number): void {
  if (entries.size > max) entries.delete(entries.keys().next().value!);
}
