import type { Logger } from "pino";
import { type Agent, type AgentEvent, AgentFailure } from "../agents/agent.ts";
import type { Executor, SessionHooks, SessionOrder } from "./executor.ts";
import {
  type Assignment,
  assignSession,
  confirmBatch,
  dismissWorker,
  endSession,
  type Fleet,
  forgetWorker,
  listUsableWorkers,
  listWorkers,
  notifyOfChange,
  openFleet,
  receiveBatch,
  receiveHello,
  sendOrder,
  sendState,
  shareInUse,
} from "./fleet.ts";
import {
  beatMs,
  defaultGoneMs,
  type FromWorker,
  fromWorkers,
  queuePrefix,
  type WorkerInfo,
  workerList,
} from "./messages.ts";
import { closeRedis, putValue, readMessages, removeKey, removeKeys } from "./redis.ts";

/** Time in which a worker confirms an order before it is sent again. */
const confirmMs = 5_000;
/** Runs that may wait while a worker has a free slot, so that others can pass them. */
const maxPassed = 64;
/** A wait for a slot that is shorter isn't reported. */
const briefMs = 1_000;

/** The workers of a service, on this and other machines. */
export type WorkerExecutor = ReturnType<typeof openWorkerExecutor>;

/**
 * Connects to the workers of a service. `agents`: those that this version knows, by ID. `waitMs`: how long a run waits for a worker that has
 * what it needs. `goneMs`: silence after which a worker counts as gone.
 */
export function openWorkerExecutor(
  url: string,
  version: string,
  agents: Record<string, Agent>,
  waitMs: number,
  log: Logger,
  goneMs = defaultGoneMs,
) {
  const fleet = openFleet(url, version, waitMs, log, goneMs);
  const { redis, waiting, workers } = fleet;
  // What the process before and its workers left is void, and some of those workers are gone.
  removeKeys(redis, `${queuePrefix}:`).then(
    () => readMessages<FromWorker>(redis, fromWorkers, (message) => receiveMessage(fleet, message)),
    () => {},
  );
  const beats = startBeats(fleet);
  return {
    /** What each run that waits for a worker waits for. */
    waiting,
    /** The agents by ID, as the workers have them. */
    agents: Object.fromEntries(Object.entries(agents).map(([id, agent]) => [id, toWorkerAgent(fleet, id, agent)])),
    run: (order: SessionOrder, hooks: SessionHooks) => runOnWorker(fleet, order, hooks),
    /** Sessions that all workers can run at once, and more if only runs that wait for a certain worker keep slots free. */
    slots: () => countSlots(fleet),
    /** All workers by name. */
    list: () => listWorkers(fleet),
    /** `drain`: makes a worker finish its sessions and end. `remove`: takes its sessions back and makes it end. Returns false for an unknown ID. */
    dismiss: (id: string, how: "drain" | "remove") => dismissWorker(fleet, id, how),
    /** Call it when no session is active. */
    async close() {
      clearInterval(beats);
      // Tells workers to stop what is left.
      await Promise.all([...workers.values()].map((worker) => sendState(fleet, worker)));
      await Promise.all([removeKey(redis, fromWorkers), removeKey(redis, workerList)]);
      closeRedis(redis);
    },
  } satisfies Executor & Record<string, unknown>;
}

function receiveMessage(fleet: Fleet, message: FromWorker): void {
  if (message.kind === "lines") receiveBatch(fleet, message);
  else if (message.kind === "hello") receiveHello(fleet, message);
  else if (message.kind === "bye") {
    const worker = fleet.workers.get(message.worker);
    if (worker) forgetWorker(fleet, worker, "was shut down");
  } else dismissWorker(fleet, message.worker, message.kind);
}

/** Regularly forgets workers that are gone, sends the others their state, and repeats orders that were not confirmed. */
function startBeats(fleet: Fleet) {
  const { goneMs, redis, version, workers, sessions } = fleet;
  let lastAt = performance.now();
  return setInterval(() => {
    const at = performance.now();
    // After a pause of this process, what workers sent in the meantime is read first.
    const wasAsleep = at - lastAt > goneMs / 2;
    lastAt = at;
    for (const worker of workers.values()) {
      if (wasAsleep) worker.heardAt = at;
      if (at - worker.heardAt > goneMs) forgetWorker(fleet, worker, `has sent nothing for ${goneMs / 1000} seconds`);
      else sendState(fleet, worker);
    }
    for (const session of sessions.values())
      if (!session.isConfirmed && at - session.orderedAt > confirmMs && redis.problem === null)
        sendOrder(fleet, session);
    putValue(redis, workerList, { version, workers: listWorkers(fleet) }, goneMs);
    notifyOfChange(fleet);
  }, beatMs);
}

/** What a worker must have to run a session. */
type Needs = { agent: string; sandbox: boolean; labels: readonly string[] };

/** A workspace can't be set up and commands can't be checked without a sandbox. Only agents with a model have either. */
const needsOf = ({ agent, task, model, labels }: SessionOrder): Needs => ({
  agent,
  sandbox:
    model !== null &&
    (task.workspace !== undefined ||
      task.declaredChecks.some(({ command, file }) => command !== undefined || file !== undefined)),
  labels,
});

const meetsNeeds = (info: WorkerInfo, needs: Needs): boolean =>
  needs.agent in info.agents &&
  (!needs.sandbox || info.sandbox.isHere) &&
  needs.labels.every((label) => info.labels.includes(label));

const listSuitable = (fleet: Fleet, needs: Needs) =>
  listUsableWorkers(fleet).filter(({ info }) => meetsNeeds(info, needs));

/** Why no worker can run a session. */
function describeLack(fleet: Fleet, { agent, sandbox, labels }: Needs): string {
  const workers = listUsableWorkers(fleet).length;
  if (workers === 0) return "no worker is connected";
  const needs = new Intl.ListFormat("en").format([
    `the agent ${agent}`,
    ...(sandbox ? ["a sandbox"] : []),
    ...(labels.length > 0 ? [`${labels.length === 1 ? "the label" : "the labels"} ${labels.join(", ")}`] : []),
  ]);
  return `${workers === 1 ? "the connected worker does not have" : `none of the ${workers} connected workers has`} ${needs}`;
}

/** An agent as the workers have it. */
function toWorkerAgent(fleet: Fleet, id: string, agent: Agent): Agent {
  const needs = { agent: id, sandbox: false, labels: [] };
  return {
    ...agent,
    describe: () => listSuitable(fleet, needs)[0]?.info.agents[id] ?? agent.describe(),
    preflight: () => [
      {
        what: "worker",
        isMet: fleet.waitMs > 0 || listSuitable(fleet, needs).length > 0,
        detail: describeLack(fleet, needs),
      },
    ],
  };
}

function countSlots(fleet: Fleet): number {
  const usable = listUsableWorkers(fleet);
  const all = usable.reduce((sum, { info }) => sum + info.slots, 0);
  const isSomeFree = usable.some((worker) => shareInUse(fleet, worker) < 1);
  return Math.max(1, all) + (isSomeFree ? Math.min(fleet.waiting.size, maxPassed) : 0);
}

async function* runOnWorker(fleet: Fleet, order: SessionOrder, hooks: SessionHooks): AsyncGenerator<AgentEvent> {
  const { signal, hide, onEgress, onEnd } = hooks;
  const session = await startSession(fleet, order, hooks);
  const stop = () => session.batches.fail(signal.reason);
  signal.addEventListener("abort", stop, { once: true });
  if (signal.aborted) stop();
  try {
    for await (const lines of session.batches.items) {
      for (const line of lines) {
        if ("secrets" in line) hide(line.secrets);
        else if ("event" in line && line.source === "agent") yield line.event;
        else if ("event" in line) onEgress(line.event);
        else if (line.end === null) return;
        else throw new AgentFailure(line.end.cause, line.end.detail, line.end);
      }
      confirmBatch(fleet, session);
    }
  } finally {
    onEnd();
    signal.removeEventListener("abort", stop);
    endSession(fleet, session);
  }
}

/** Starts a session on the least busy worker that has what it needs. Waits for one. */
async function startSession(
  fleet: Fleet,
  order: SessionOrder,
  { signal, onWait, onStart }: SessionHooks,
): Promise<Assignment> {
  const { waitMs, waiting, redis, log } = fleet;
  const needs = needsOf(order);
  const run = {};
  const since = performance.now();
  /** When the wait ends if no worker fits. It starts over when one did, and when Redis is back. */
  let failsAt = since + waitMs;
  let reportedState = "";
  const aborted = Promise.withResolvers<void>();
  const abort = () => aborted.resolve();
  signal.addEventListener("abort", abort, { once: true });
  try {
    for (;;) {
      signal.throwIfAborted();
      const suitable = listSuitable(fleet, needs);
      const [best] = suitable
        .map((worker) => ({ worker, share: shareInUse(fleet, worker) }))
        .filter(({ share }) => share < 1)
        .sort((a, b) => a.share - b.share);
      // At once, because other sessions that wait would choose the same worker.
      if (best) {
        const session = assignSession(fleet, best.worker, order);
        onStart(best.worker.info.agents[order.agent]?.version ?? "");
        return session;
      }
      const at = performance.now();
      const what = suitable.length === 0 ? "worker" : "slot";
      // Without Redis, no worker can be reached.
      const mayFail = what === "worker" && redis.problem === null;
      if (!mayFail) failsAt = at + waitMs;
      else if (at >= failsAt) throw new AgentFailure("infrastructure", describeLack(fleet, needs));
      waiting.set(run, what);
      const state = `${what} ${mayFail}`;
      if (state !== reportedState && (what === "worker" || at - since >= briefMs)) {
        if (what === "worker") log.warn({ ...needs, reason: describeLack(fleet, needs) }, "run waits for a worker");
        onWait({ what, ...needs, failsInMs: mayFail ? failsAt - at : null });
        reportedState = state;
      }
      await Promise.race([fleet.change.promise, aborted.promise]);
    }
  } finally {
    waiting.delete(run);
    signal.removeEventListener("abort", abort);
  }
}
