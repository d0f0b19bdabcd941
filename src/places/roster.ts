import { Queue } from "bullmq";
import type { Logger } from "pino";
import type { createAssignments } from "./assignments.ts";
import {
  type Duty,
  type FromWorker,
  queueOf,
  queuePrefix,
  type ToWorker,
  toWorker,
  type WorkerInfo,
  type WorkerOrder,
} from "./messages.ts";
import type { connectRedis } from "./redis.ts";
import type { workerStates } from "./roster-states.ts";

const stateMs = 20;
/** Removed workers that are remembered, in case that they come back. */
const keptRemoved = 1_000;

/** A worker as the service sees it. */
export type WorkerStatus = WorkerInfo & {
  state: (typeof workerStates)[number];
  /** IDs of the runs whose sessions it has. */
  runIds: string[];
  /** Milliseconds since it connected, and since it was last heard of. */
  connectedMs: number;
  silentMs: number;
};

export type KnownWorker = {
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

type Options = {
  redis: ReturnType<typeof connectRedis>;
  sessions: ReturnType<typeof createAssignments>;
  /** ID of the service's process. */
  service: string;
  version: string;
  /** How long a worker can miss its state before Redis forgets it. */
  keptMs: number;
  log: Logger;
  /** Called when the workers or what they can take have changed. */
  onChange: () => void;
};

/** The connected workers, and the state that each of them should be in. */
export function createRoster({ redis, sessions, service, version, keptMs, log, onChange }: Options) {
  const workers = new Map<string, KnownWorker>();
  const removed = new Set<string>();
  let number = 0;

  function tell(id: string, duty: Duty): Promise<void> {
    const state: ToWorker = { service, version, duty, number: ++number, sessions: sessions.takenOf(id) };
    return redis.sendOnly(toWorker(id), state, keptMs);
  }

  function sendState(worker: KnownWorker): Promise<void> {
    clearTimeout(worker.timer);
    worker.timer = undefined;
    return tell(worker.info.id, worker.isDraining ? "drain" : "work");
  }

  function changeState(id: string): void {
    const worker = workers.get(id);
    if (worker) worker.timer ??= setTimeout(sendState, stateMs, worker);
  }

  function forget({ info: { id, name }, queue, timer }: KnownWorker, why: string): void {
    clearTimeout(timer);
    workers.delete(id);
    sessions.loseOf(id, `the worker ${name} ${why}`);
    redis.remove(toWorker(id));
    queue
      .obliterate({ force: true })
      .then(() => queue.close())
      .catch((error) => log.debug({ err: error }, "could not remove a worker's queue"));
    log.info({ worker: name, id, why }, "worker removed");
    onChange();
  }

  function greet({ worker: info, sessions: keys, isDraining }: FromWorker & { kind: "hello" }): void {
    if (removed.has(info.id)) {
      tell(info.id, "leave");
      return;
    }
    const known = workers.get(info.id);
    const queue = known?.queue ?? new Queue(queueOf(info.id), { connection: redis.jobs, prefix: queuePrefix });
    const heard = { heardAt: performance.now(), sessions: new Set(keys), info, queue };
    const isLeaving = isDraining || known?.isDraining === true;
    const first = { timer: undefined, connectedAt: performance.now() };
    const worker = Object.assign(known ?? first, heard, { isDraining: isLeaving });
    workers.set(info.id, worker);
    if (!known) {
      queue.on("error", () => {});
      const { id, name } = info;
      if (info.version === version)
        log.info({ worker: name, id, agents: Object.keys(info.agents), labels: info.labels }, "worker connected");
      else log.warn({ worker: name, id, version: info.version, ours: version }, "worker refused: version mismatch");
      sendState(worker);
    }
    sessions.confirm(info.id, worker.sessions, info.name);
    if (isDraining) sessions.loseUnconfirmed(info.id, info.name);
    // It still runs some that it shouldn't.
    if (keys.some((key) => !sessions.has(key))) changeState(info.id);
    onChange();
  }

  function toStatus({ info, isDraining, heardAt, connectedAt }: KnownWorker): WorkerStatus {
    const at = performance.now();
    return {
      ...info,
      state: info.version !== version ? "refused" : isDraining ? "draining" : "ready",
      runIds: sessions.keysOf(info.id).map((key) => key.slice(0, key.lastIndexOf("-"))),
      connectedMs: Math.round(at - connectedAt),
      silentMs: Math.round(at - heardAt),
    };
  }

  return {
    get: (id: string): KnownWorker | undefined => workers.get(id),
    values: () => workers.values(),
    /** Those that take sessions. */
    usable: (): KnownWorker[] =>
      [...workers.values()].filter(({ info, isDraining }) => info.version === version && !isDraining),
    /** The number of the next state. */
    nextNumber: (): number => number + 1,
    greet,
    forget,
    sendState,
    /** Sends the worker its state soon, together with further changes. */
    changeState,
    /** By name. */
    list: (): WorkerStatus[] =>
      [...workers.values()].map(toStatus).sort((a, b) => a.name.localeCompare(b.name) || b.connectedMs - a.connectedMs),
    /** Makes a worker finish its sessions and end. Returns false if there is none with this ID. */
    drain(id: string): boolean {
      const worker = workers.get(id);
      if (!worker) return false;
      worker.isDraining = true;
      log.info({ worker: worker.info.name, id }, "worker draining");
      sendState(worker);
      onChange();
      return true;
    },
    /** Takes a worker's sessions back and makes it end. Returns false if there is none with this ID. */
    remove(id: string): boolean {
      const worker = workers.get(id);
      if (!worker) return false;
      removed.add(id);
      if (removed.size > keptRemoved) for (const oldest of removed.values().take(1)) removed.delete(oldest);
      forget(worker, "was removed");
      tell(id, "leave");
      return true;
    },
  };
}
