import { rmSync } from "node:fs";
import { availableParallelism, freemem, hostname, loadavg, totalmem } from "node:os";
import { Worker } from "bullmq/dist/esm/classes/worker";
import type { Logger } from "pino";
import { type Agent, AgentFailure } from "../agents/agent.ts";
import { objectionToAgent } from "../agents/choice.ts";
import { detectBrowser } from "../agents/sandbox/chromium.ts";
import { detectSandbox, type Sandbox } from "../agents/sandbox/sandbox.ts";
import { createTemporaryFolder } from "../agents/sockets.ts";
import { settlesWithin } from "../deadline.ts";
import { ConfigError } from "../errors.ts";
import { fetchFile, findGatewayProblem, forwardSocket } from "../net/forwarder.ts";
import type { Executor, SessionOrder } from "./executor.ts";
import { warnWithoutSandbox } from "./local.ts";
import { createLoginRedaction } from "./login-redaction.ts";
import {
  beatMs,
  browserLabel,
  credentialOf,
  defaultGoneMs,
  type FromWorker,
  type Line,
  messageStreamOf,
  queueOf,
  queuePrefixOf,
  sharedCredential,
  stateKeyOf,
  type ToWorker,
  type WorkerInfo,
  type WorkerOrder,
} from "./messages.ts";
import {
  confirmBatches,
  dropLines,
  type Outgoing,
  openOutgoing,
  pushLine,
  waitForRoom,
  waitUntilTaken,
} from "./outgoing.ts";
import { closeRedis, connectRedis, readMessages, sendMessage } from "./redis.ts";
import { callScriptsByDigest } from "./redis-users.ts";

/** Maximum number of messages that the stream keeps. Sessions send only slightly more than was taken. */
const maxMessages = 20_000;
/** How many ended sessions are remembered, because their orders may arrive again. */
const maxEnded = 10_000;
/** Interval of the checks of the gateway while it answers. A gateway that doesn't answer is checked with each beat. */
const gatewayCheckMs = 10_000;
/** Agents that work without a sandbox. */
const sandboxlessAgents = new Set(["explorer", "llm"]);
/** How long aborted sessions may still report their end. */
const abortGraceMs = 5_000;

/** `since`: the number of the service's first state that lists the session. */
type Session = { service: string; since: number; controller: AbortController; outgoing: Outgoing };

type WorkerOptions = {
  version: string;
  /** Runs sessions on this machine. */
  executor: Executor;
  /** By ID. */
  agents: Record<string, Agent>;
  /** URL of the service's gateway. */
  gatewayUrl: string;
  log: Logger;
  url: string;
  slots: number;
  /** Labels that prompts can require. */
  labels?: readonly string[];
  /** Silence after which the service counts as gone. */
  goneMs?: number;
};

type WorkerState = Awaited<ReturnType<typeof connectWorker>>;

/** Connects this machine to a service. */
async function connectWorker({ url, slots, labels = [], goneMs = defaultGoneMs, ...options }: WorkerOptions) {
  const sandbox = await detectSandbox();
  const browser = await detectBrowser(sandbox);
  const { folder, socketPath } = createTemporaryFolder("gateway");
  const gateway = await forwardSocket(socketPath, options.gatewayUrl);
  const id: string = crypto.randomUUID();
  return {
    ...options,
    id,
    /** Name of its credential. */
    credential: credentialOf(url),
    /** Why it takes no sessions, such as an unreachable gateway; null: it takes sessions. */
    problem: await findGatewayProblem(options.gatewayUrl),
    /** When the gateway was last checked, by the monotonic clock. */
    checkedAt: performance.now(),
    isChecking: false,
    sandbox,
    folder,
    gateway,
    socketPath,
    goneMs,
    /** The fields of WorkerInfo that don't change. */
    fixedInfo: {
      id,
      name: hostname(),
      version: options.version,
      slots,
      memoryBytes: totalmem(),
      cpus: availableParallelism(),
      sandbox: { isAvailable: sandbox.level !== "none", detail: sandbox.detail },
      browser:
        "missing" in browser
          ? { isAvailable: false, detail: browser.missing }
          : { isAvailable: true, detail: browser.detail },
      labels: [...new Set([...labels, ...("missing" in browser ? [] : [browserLabel])])],
    },
    redis: connectRedis(url, options.log),
    /** When the service was last heard of, by the monotonic clock. */
    heardAt: performance.now(),
    isDraining: false,
    /** Active sessions by key. */
    sessions: new Map<string, Session>(),
    /** Keys of sessions that ended. */
    endedKeys: new Set<string>(),
    /** Resolves when no session is active any more. */
    idle: Promise.withResolvers<void>(),
    /** Rejects if the service is of another version. */
    refused: Promise.withResolvers<never>(),
    /** Resolve when the service tells the worker to finish its sessions, or to leave immediately. */
    dismissals: { drain: Promise.withResolvers<void>(), leave: Promise.withResolvers<void>() },
  };
}

/**
 * Runs the sessions of a service on this machine. The worker knows only its orders and the token of each run. Sessions stop when the service no
 * longer lists them, or is silent for `goneMs`.
 */
export async function openWorker(options: WorkerOptions) {
  const worker = await connectWorker(options);
  const { id, credential, redis, refused, dismissals, log } = worker;
  // Without this, a rejection that nobody waits for would end the process.
  refused.promise.catch(() => {});
  if (credential !== sharedCredential) callScriptsByDigest(redis);
  warnWithoutSandbox(log, worker.sandbox);
  if (worker.problem !== null) log.warn({ problem: worker.problem }, "this worker takes no sessions");
  const jobs = new Worker<WorkerOrder>(queueOf(id), ({ data }) => runSession(worker, data), {
    connection: redis.jobs,
    prefix: queuePrefixOf(credential),
    concurrency: options.slots,
    // The service decides which sessions run again.
    maxStalledCount: 0,
  });
  jobs.on("error", (error) => log.debug({ err: error }, "queue error"));
  redis.sender.on("ready", () => reportState(worker));
  readMessages(
    redis,
    () => [stateKeyOf(credential, id)],
    (state) => applyState(worker, state as ToWorker),
  );
  const beats = setInterval(beat, beatMs, worker);

  return {
    id,
    /** Rejects if the service is of another version. */
    refused: refused.promise,
    /** Resolves when the service wants the worker to finish its sessions and end. */
    drained: dismissals.drain.promise,
    /** Resolves when the service wants the worker to end immediately. */
    removed: dismissals.leave.promise,
    /** Takes no more sessions and waits for the active ones. Call `stop` next. */
    async drain(): Promise<void> {
      await stopTakingSessions(worker, jobs);
      await waitUntilIdle(worker);
    },
    /** Takes no more sessions, waits up to `drainMs` for the active ones, and gives the remaining ones back. */
    async stop(drainMs: number): Promise<void> {
      await stopTakingSessions(worker, jobs);
      await endSessions(worker, drainMs);
      clearInterval(beats);
      // This must come first, because the service removes the queue.
      await jobs.close(true);
      await send(worker, { kind: "bye", worker: id });
      await worker.gateway.close();
      rmSync(worker.folder, { recursive: true, force: true });
      closeRedis(redis);
    },
  };
}

const send = ({ redis, credential }: WorkerState, message: FromWorker) =>
  sendMessage(redis, messageStreamOf(credential), message, maxMessages);

/** Tells the service what this worker is and which sessions it has. It is also sent regularly, as a sign of life. */
function reportState(worker: WorkerState): Promise<void> {
  const { fixedInfo, agents, sandbox, sessions, isDraining } = worker;
  const load = { freeMemoryBytes: freemem(), busyCpus: loadavg()[0] ?? 0 };
  // The agents are looked up each time, because they are installed and updated while the worker runs.
  const info = { ...fixedInfo, ...load, agents: describeAgents(agents, sandbox), problem: worker.problem };
  return send(worker, { kind: "hello", worker: info, sessions: [...sessions.keys()], isDraining });
}

function beat(worker: WorkerState): void {
  const { heardAt, goneMs, sessions } = worker;
  if (performance.now() - heardAt > goneMs)
    for (const session of sessions.values())
      dropSession(session, `the service was silent for ${goneMs / 1000} seconds`);
  reportState(worker);
  checkGateway(worker);
}

/** Checks from time to time whether sessions could reach their model, and reports a change. */
async function checkGateway(worker: WorkerState): Promise<void> {
  const { gatewayUrl, problem, checkedAt, isChecking, log } = worker;
  if (isChecking || (problem === null && performance.now() - checkedAt < gatewayCheckMs)) return;
  worker.isChecking = true;
  worker.problem = await findGatewayProblem(gatewayUrl);
  worker.checkedAt = performance.now();
  worker.isChecking = false;
  if (worker.problem === problem) return;
  if (worker.problem === null) log.info("this worker takes sessions again");
  else log.warn({ problem: worker.problem }, "this worker takes no sessions");
  await reportState(worker);
}

function applyState(worker: WorkerState, state: ToWorker): void {
  const { version, refused, dismissals, sessions } = worker;
  worker.heardAt = performance.now();
  if (state.version !== version)
    refused.reject(
      new ConfigError(
        `This worker is evald ${version}, but the service is evald ${state.version}. Run the same version on both.`,
      ),
    );
  if (state.duty !== "work") dismissals[state.duty].resolve();
  for (const [key, session] of sessions) {
    const taken = state.sessions[key];
    const isOfThisService = session.service === state.service;
    // The state is older than the session's order, so it says nothing about the session.
    if (isOfThisService && state.number < session.since) continue;
    if (isOfThisService && taken !== undefined) confirmBatches(session.outgoing, taken);
    else dropSession(session, "the service has given up the session");
  }
}

function dropSession({ outgoing, controller }: Session, reason: string): void {
  dropLines(outgoing);
  controller.abort(new Error(reason));
}

async function stopTakingSessions(worker: WorkerState, jobs: Worker): Promise<void> {
  worker.isDraining = true;
  reportState(worker);
  await jobs.pause(true);
}

const waitUntilIdle = async ({ sessions, idle }: WorkerState) => {
  if (sessions.size > 0) await idle.promise;
};

/** Waits up to `drainMs` for the sessions, then aborts the remaining ones. The service runs those again. */
async function endSessions(worker: WorkerState, drainMs: number): Promise<void> {
  const { sessions } = worker;
  await settlesWithin(waitUntilIdle(worker), drainMs);
  for (const { controller } of sessions.values())
    controller.abort(new AgentFailure("worker_lost", "the worker was shut down", { retryable: true }));
  if (sessions.size > 0) await settlesWithin(waitUntilIdle(worker), abortGraceMs);
}

/** Runs a session, unless the worker has or had it already. */
async function runSession(worker: WorkerState, { service, since, order }: WorkerOrder): Promise<void> {
  const { sessions, endedKeys, log } = worker;
  const key = order.id;
  // After Redis was away, an order may arrive before the next state.
  worker.heardAt = performance.now();
  // An order is sent again if its confirmation was lost.
  if (endedKeys.has(key) || sessions.has(key) || worker.isDraining) return;
  const outgoing = openOutgoing(key, (message) => void send(worker, message));
  const session = { service, since, controller: new AbortController(), outgoing };
  sessions.set(key, session);
  reportState(worker);
  log.info({ session: key, agent: order.agent }, "session started");
  try {
    await sendEvents(worker, order, session);
  } finally {
    sessions.delete(key);
    endedKeys.add(key);
    if (endedKeys.size > maxEnded) endedKeys.delete(endedKeys.keys().next().value!);
    reportState(worker);
    if (sessions.size === 0) {
      worker.idle.resolve();
      worker.idle = Promise.withResolvers();
    }
    log.info({ session: key }, "session ended");
  }
}

/** Sends the events of a session. Resolves when the service has taken them all, or has given up the session. */
async function sendEvents(
  worker: WorkerState,
  order: WorkerOrder["order"],
  { outgoing, controller: { signal } }: Session,
): Promise<void> {
  try {
    const localOrder = await localizeOrder(worker, order);
    if (localOrder.login) outgoing.redact = createLoginRedaction(localOrder.login);
    const events = worker.executor.run(localOrder, {
      signal,
      hide: (secrets) => pushLine(outgoing, { secrets }),
      onEgress: (event) => pushLine(outgoing, { event, source: "egress" }),
      onWait: () => {},
      onStart: () => {},
      onEnd: () => {},
    });
    for await (const event of events) {
      pushLine(outgoing, { event, source: "agent" });
      await waitForRoom(outgoing);
    }
    pushLine(outgoing, { end: null });
  } catch (error) {
    pushLine(outgoing, { end: toFailureLine(signal.aborted ? signal.reason : error) });
  }
  await waitUntilTaken(outgoing);
}

/** Completes an order for this machine: adds the gateway's socket and the files. The service has already compared the labels. */
async function localizeOrder(
  { gatewayUrl, socketPath }: WorkerState,
  { model, archive, skillsArchive, site, login, ...rest }: WorkerOrder["order"],
): Promise<SessionOrder> {
  const fetchIfPresent = async (name: string, isThere: boolean) =>
    isThere && rest.filesToken !== null ? await fetchFile(gatewayUrl, `/files/${name}`, rest.filesToken) : null;
  return {
    ...rest,
    labels: [],
    model: model && { ...model, socketPath },
    archive: await fetchIfPresent("archive", archive),
    skillsArchive: await fetchIfPresent("skillsArchive", skillsArchive),
    site: await fetchIfPresent("site", site),
    login: await fetchIfPresent("login", login),
  };
}

/** The agents that can run here. Without a sandbox, coding agents can't. */
const describeAgents = (agents: Record<string, Agent>, { level }: Sandbox): WorkerInfo["agents"] =>
  Object.entries(agents)
    .filter(([id, agent]) => objectionToAgent(agent) === null && (level !== "none" || sandboxlessAgents.has(id)))
    .map(([id, agent]) => ({ id, version: agent.describe().version }));

/** The last line of a session that failed. Any error other than an AgentFailure is a crash of the agent, as on the service's own machine. */
function toFailureLine(error: unknown): Extract<Line, { end: unknown }>["end"] {
  if (!(error instanceof AgentFailure))
    return { code: "agent_crashed", detail: error instanceof Error ? error.message : String(error), retryable: true };
  const { code, detail, options } = error;
  return { code, detail, ...options };
}
