import type { Logger } from "pino";
import { type Agent, type AgentEvent, AgentFailure } from "../agents/agent.ts";
import { toAgentEvent } from "../agents/child.ts";
import { listAwayWorkers, rememberChanges, rememberKnownWorkers } from "./away-workers.ts";
import type { Executor, SessionHooks, SessionOrder } from "./executor.ts";
import {
  type Assignment,
  type ConnectedWorker,
  type Fleet,
  listUsableWorkers,
  listWorkers,
  openFleet,
  runOf,
  sendState,
  shareInUse,
} from "./fleet.ts";
import { assignSession, confirmBatch, endSession, rememberFault } from "./fleet-sessions.ts";
import { dismissWorker } from "./fleet-workers.ts";
import { defaultGoneMs, type KnownWorker, type Line, type WorkerInfo, workerList } from "./messages.ts";
import { closeRedis, removeKey } from "./redis.ts";
import type { WorkerCredential } from "./redis-users.ts";
import { releaseRedis, serviceOwnerOf } from "./service-claim.ts";
import { serveWorkers, startBeats } from "./worker-service.ts";

/** How many runs may wait although a worker has a free slot, so that others can pass them. */
const maxPassed = 64;
/** A shorter wait for a slot isn't reported. */
const briefMs = 1_000;
/** How many bytes a session may send, as for an agent on this machine, and how many secrets it may hide. */
const maxSessionBytes = 128 * 1024 * 1024;
const maxSecrets = 200;

/** The workers of a service, on this and other machines. */
export type WorkerExecutor = ReturnType<typeof openWorkerExecutor>;

type ExecutorOptions = {
  /** The credentials of workers, read with each beat. */
  credentials?: () => WorkerCredential[];
  /** The workers that the previous process knew, and a function that stores the workers that this process knows whenever they change. */
  known?: { list: () => KnownWorker[]; store: (workers: KnownWorker[]) => void };
  /** The name of this service, which no other service has. After a restart, the service takes over from its previous process by this name. */
  owner?: string;
  /** Silence after which a worker counts as gone. */
  goneMs?: number;
};

/** Connects to the workers of a service. `agents`: the agents of this version, by ID. `waitMs`: how long a run waits for a suitable worker. */
export function openWorkerExecutor(
  url: string,
  version: string,
  agents: Record<string, Agent>,
  waitMs: number,
  log: Logger,
  options: ExecutorOptions = {},
) {
  const { credentials = () => [], known, owner = serviceOwnerOf(process.cwd()), goneMs = defaultGoneMs } = options;
  const fleet = openFleet(url, version, waitMs, log, goneMs);
  rememberKnownWorkers(fleet, known?.list() ?? []);
  const { redis, waiting, workers } = fleet;
  const access = { credentials, applied: new Map<string, string>(), problem: "" };
  redis.sender.on("ready", () => access.applied.clear());
  // This fails only when the connections are closed.
  serveWorkers(fleet, owner, access).catch(() => {});
  const beats = startBeats(fleet, owner, access, rememberChanges(fleet, known?.store));
  return {
    /** What each waiting run waits for. */
    waiting,
    /** The agents by ID, as the workers have them. */
    agents: Object.fromEntries(Object.entries(agents).map(([id, agent]) => [id, toWorkerAgent(fleet, id, agent)])),
    run: (order: SessionOrder, hooks: SessionHooks) => runOnWorker(fleet, order, hooks),
    /**
     * How many sessions all workers can run at once. It is more if a slot is free although runs wait, because these runs wait for a certain worker.
     */
    slots: () => countSlots(fleet),
    /** All workers by name. */
    list: () => listWorkers(fleet),
    listAway: () => listAwayWorkers(fleet),
    /** `drain` makes a worker finish its sessions and end. `remove` takes its sessions back and makes it end. Returns false for an unknown ID. */
    dismiss: (id: string, how: "drain" | "remove") => dismissWorker(fleet, id, how),
    /** Call it when no session is active. */
    async close() {
      clearInterval(beats);
      // This tells workers to stop the remaining sessions.
      await Promise.all([...workers.values()].map((worker) => sendState(fleet, worker)));
      if (fleet.otherService === null) await removeKey(redis, workerList);
      await releaseRedis(fleet);
      closeRedis(redis);
    },
  } satisfies Executor & Record<string, unknown>;
}

/** What a worker must have to run a session. */
type SessionNeeds = { agent: string; sandbox: boolean; labels: readonly string[] };

/** Setting up a workspace and checking commands needs a sandbox. Only agents with a model have a workspace and commands. */
function needsOf({ agent, task, model, labels }: SessionOrder): SessionNeeds {
  const checksWorkspace = task.declaredChecks.some(({ command, file }) => command !== undefined || file !== undefined);
  return { agent, sandbox: model !== null && (task.workspace !== undefined || checksWorkspace), labels };
}

const meetsNeeds = (info: WorkerInfo, needs: SessionNeeds): boolean =>
  info.agents.some(({ id }) => id === needs.agent) &&
  (!needs.sandbox || info.sandbox.isAvailable) &&
  needs.labels.every((label) => info.labels.includes(label));

const listSuitable = (fleet: Fleet, needs: SessionNeeds) =>
  listUsableWorkers(fleet).filter(({ info }) => meetsNeeds(info, needs));

/** Why no worker can run a session. */
function describeLack(fleet: Fleet, { agent, sandbox, labels }: SessionNeeds): string {
  if (fleet.otherService !== null) return `the Redis server is used by another service: ${fleet.otherService}`;
  const workers = listUsableWorkers(fleet).length;
  const [unready] = listWorkers(fleet).filter(({ state }) => state === "not_ready");
  if (workers === 0 && unready) return `no connected worker is ready; ${unready.name}: ${unready.problem}`;
  if (workers === 0) return "no worker is connected";
  const needs = new Intl.ListFormat("en").format([
    `the agent ${agent}`,
    ...(sandbox ? ["a sandbox"] : []),
    ...(labels.length > 0 ? [`${labels.length === 1 ? "the label" : "the labels"} ${labels.join(", ")}`] : []),
  ]);
  return `${workers === 1 ? "the connected worker does not have" : `none of the ${workers} connected workers has`} ${needs}`;
}

const versionOn = ({ agents }: WorkerInfo, agentId: string): string | undefined =>
  agents.find(({ id }) => id === agentId)?.version;

/** An agent as the workers have it. */
function toWorkerAgent(fleet: Fleet, id: string, agent: Agent): Agent {
  const needs = { agent: id, sandbox: false, labels: [] };
  return {
    ...agent,
    describe() {
      const [worker] = listSuitable(fleet, needs);
      const version = worker && versionOn(worker.info, id);
      return { ...agent.describe(), ...(version !== undefined && { version }) };
    },
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
  const { name = "" } = fleet.workers.get(session.worker)?.info ?? {};
  const stop = () => session.batches.fail(signal.reason);
  signal.addEventListener("abort", stop, { once: true });
  if (signal.aborted) stop();
  let secrets = 0;
  let isFaulty = true;
  try {
    for await (const lines of session.batches.items) {
      if (session.arrivedBytes > maxSessionBytes) throw toSizeFailure();
      for (const line of lines) {
        if ("secrets" in line) {
          secrets += line.secrets.length;
          if (secrets > maxSecrets) throw toSizeFailure();
          hide(line.secrets);
        } else if ("event" in line && line.source === "agent") yield toEvent(line);
        else if ("event" in line) onEgress(toEvent(line));
        else if (line.end === null) {
          isFaulty = false;
          return;
        } else throw new AgentFailure(line.end.code, line.end.detail, line.end);
      }
      confirmBatch(fleet, session);
    }
  } finally {
    if (isFaulty && !signal.aborted) rememberFault(fleet, order.id, name);
    else fleet.faultyWorkers.delete(runOf(order.id));
    onEnd();
    signal.removeEventListener("abort", stop);
    endSession(fleet, session);
  }
}

const toSizeFailure = () => new AgentFailure("session_too_large", "the worker sent more than a session may contain");

/** An event that a worker has sent. It is checked like an event of an agent on this machine. */
function toEvent({ event, source }: Extract<Line, { event: unknown }>): AgentEvent {
  const checked = toAgentEvent(event);
  if (checked === null) throw new AgentFailure("agent_crashed", `the worker sent an invalid event of its ${source}`);
  return checked;
}

/** The least busy of these workers with a free slot, preferably a worker on which the run had no fault; undefined: all are busy. */
function chooseWorker(fleet: Fleet, suitable: ConnectedWorker[], runId: string): ConnectedWorker | undefined {
  const faulty = fleet.faultyWorkers.get(runId) ?? new Set();
  const [best] = suitable
    .map((worker) => ({ worker, share: shareInUse(fleet, worker), faults: Number(faulty.has(worker.info.name)) }))
    .filter(({ share }) => share < 1)
    .sort((a, b) => a.faults - b.faults || a.share - b.share);
  return best?.worker;
}

/** Starts a session on a suitable worker, and waits until there is one. */
async function startSession(
  fleet: Fleet,
  order: SessionOrder,
  { signal, onWait, onStart }: SessionHooks,
): Promise<Assignment> {
  const { waitMs, waiting, redis, log } = fleet;
  const needs = needsOf(order);
  const since = performance.now();
  /** When the wait ends if no worker fits. It starts over whenever a worker fits and when Redis is back. */
  let failsAt = since + waitMs;
  /** The state that `onWait` got last, so that it is called only for changes. */
  let reportedState = "";
  const aborted = Promise.withResolvers<void>();
  const abort = () => aborted.resolve();
  signal.addEventListener("abort", abort, { once: true });
  try {
    for (;;) {
      signal.throwIfAborted();
      const suitable = listSuitable(fleet, needs);
      const worker = chooseWorker(fleet, suitable, runOf(order.id));
      // This happens at once, because other waiting sessions would choose the same worker.
      if (worker) {
        const session = assignSession(fleet, worker, order);
        onStart(versionOn(worker.info, order.agent) ?? "");
        return session;
      }
      const at = performance.now();
      const what = suitable.length === 0 ? "worker" : "slot";
      const canReachWorkers = redis.problem === null && fleet.isClaimed && fleet.otherService === null;
      // A busy worker will be free again. So a run fails only if there is no suitable worker.
      const mayFail = what === "worker" && canReachWorkers;
      if (!mayFail) failsAt = at + waitMs;
      else if (at >= failsAt)
        throw new AgentFailure("no_worker", describeLack(fleet, needs), { retryable: false, subject: needs.agent });
      waiting.set(order, what);
      const state = `${what} ${mayFail}`;
      const isBrief = what === "slot" && at - since < briefMs;
      if (state !== reportedState && !isBrief) {
        if (what === "worker") log.warn({ ...needs, reason: describeLack(fleet, needs) }, "run waits for a worker");
        onWait({ what, ...needs, failsInMs: mayFail ? failsAt - at : null });
        reportedState = state;
      }
      await Promise.race([fleet.change.promise, aborted.promise]);
    }
  } finally {
    waiting.delete(order);
    signal.removeEventListener("abort", abort);
  }
}
