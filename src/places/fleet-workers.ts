// How workers join a service and leave it.
import { Queue } from "bullmq/dist/esm/classes/queue";
import {
  type ConnectedWorker,
  type Fleet,
  notifyOfChange,
  removeOldest,
  sendDuty,
  sendState,
  sendStateSoon,
  sessionsOf,
} from "./fleet.ts";
import { failSession } from "./fleet-sessions.ts";
import {
  beatMs,
  type FromWorker,
  queueOf,
  queuePrefixOf,
  sharedCredential,
  stateKeyOf,
  type WorkerInfo,
  type WorkerOrder,
} from "./messages.ts";
import { removeKey } from "./redis.ts";

/** How many workers that left are remembered, and how many removed ones of one credential, because they may come back. */
const maxRemembered = 1_000;

/**
 * Adds a worker that has connected, or updates what is known about it. If another credential already uses the ID, the message is ignored. A worker's
 * own credential belongs to one worker, so another worker with it is the same one, restarted.
 */
export function receiveHello(
  fleet: Fleet,
  credential: string,
  { worker: reported, sessions, isDraining }: FromWorker & { kind: "hello" },
): void {
  const { id } = reported;
  // The operator chose this name. Metrics and people rely on it.
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
    // A draining worker will not start the session.
    else if (isDraining) failSession(fleet, key, `the worker ${info.name} is draining`);
  }
  // The worker still runs sessions that it shouldn't.
  if (sessions.some((key) => !fleet.sessions.has(key))) sendStateSoon(fleet, id);
  notifyOfChange(fleet);
}

/**
 * Makes room for a restarted worker with its own credential. False if the previous worker has only just connected: two workers would replace each
 * other endlessly.
 */
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
    // The problem is left out, so that a problem from the start is logged as a change.
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
 * `drain` makes a worker finish its sessions and end. `remove` takes its sessions back and makes it end. Returns false if there is no worker with
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
