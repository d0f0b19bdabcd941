import { rmSync } from "node:fs";
import { availableParallelism, freemem, hostname, loadavg, totalmem } from "node:os";
import { type Job, Worker } from "bullmq";
import type { Logger } from "pino";
import { type Agent, AgentFailure } from "../agents/agent.ts";
import { objectionTo } from "../agents/choice.ts";
import { detectBrowser, type FoundBrowser } from "../agents/sandbox/chromium.ts";
import { detectSandbox, type Sandbox } from "../agents/sandbox/sandbox.ts";
import { makeSocketFolder } from "../agents/sockets.ts";
import { ConfigError } from "../errors.ts";
import { fetchFile, forwardSocket } from "../net/forwarder.ts";
import {
  beatMs,
  browserLabel,
  type FromWorker,
  fromWorkers,
  type Line,
  queueOf,
  queuePrefix,
  type ToWorker,
  toWorker,
  goneMs as usualGoneMs,
  type WorkerInfo,
  type WorkerOrder,
} from "./messages.ts";
import { createOutgoing } from "./outgoing.ts";
import type { Place, PlaceOrder } from "./place.ts";
import { connectRedis } from "./redis.ts";

/** Messages that the stream keeps at most; sessions send only a little ahead of what was taken. */
const keptMessages = 20_000;
/** Sessions that ended, whose orders may arrive again. */
const keptKeys = 10_000;
/** Agents that work without a sandbox. */
const boxless = new Set(["explorer", "llm"]);
const lastWordsMs = 5_000;

type Options = {
  url: string;
  /** URL of the service's gateway. */
  gatewayUrl: string;
  version: string;
  slots: number;
  /** Labels that prompts can require. */
  labels?: readonly string[];
  /** By ID. */
  agents: Record<string, Agent>;
  /** This machine. */
  place: Place;
  log: Logger;
  newId: () => string;
  /** Silence after which the service counts as gone. */
  goneMs?: number;
};

type Session = { service: string; since: number; abort: AbortController; outgoing: ReturnType<typeof createOutgoing> };

/**
 * Runs the sessions of a service on this machine. It knows only its orders and the token of each run. Sessions stop when the service no longer
 * lists them, or is silent for `goneMs`.
 */
export async function openWorker(options: Options) {
  const { url, gatewayUrl, version, slots, labels = [], agents, place, log, newId, goneMs = usualGoneMs } = options;
  const sandbox = await detectSandbox();
  const browser = await detectBrowser(sandbox);
  const redis = connectRedis(url, log, () => greet());
  const id = newId();
  const sessions = new Map<string, Session>();
  const ended = new Set<string>();
  const refused = Promise.withResolvers<never>();
  refused.promise.catch(() => {});
  const dismissals = { drain: Promise.withResolvers<void>(), leave: Promise.withResolvers<void>() };
  let heardAt = performance.now();
  let isDraining = false;
  let idle = Promise.withResolvers<void>();
  const whenIdle = () => (sessions.size > 0 ? idle.promise : Promise.resolve());

  const { folder, socketPath } = makeSocketFolder("gateway");
  const gateway = await forwardSocket(socketPath, gatewayUrl);
  const send = (message: FromWorker) => redis.send(fromWorkers, message, keptMessages);

  const own = { id, name: hostname(), version, slots, ...partsOf(sandbox, browser, labels) };
  // Looked up each time: agents are installed and updated while the worker runs.
  const describe = (): WorkerInfo => ({ ...own, ...loadOf(), agents: offerOf(agents, sandbox) });
  const greet = () => send({ kind: "hello", worker: describe(), sessions: [...sessions.keys()], isDraining });

  function drop(key: string, reason: string): void {
    const session = sessions.get(key);
    if (!session) return;
    session.outgoing.drop();
    session.abort.abort(new Error(reason));
  }

  function hear(state: ToWorker): void {
    heardAt = performance.now();
    if (state.version !== version)
      refused.reject(
        new ConfigError(
          `This worker is evald ${version}, but the service is evald ${state.version}. Run the same version on both.`,
        ),
      );
    if (state.duty !== "work") dismissals[state.duty].resolve();
    for (const [key, { service, since, outgoing }] of sessions) {
      const taken = state.sessions[key];
      if (service === state.service && state.number < since) continue;
      if (service === state.service && taken !== undefined) outgoing.taken(taken);
      else drop(key, "the service has given up the session");
    }
  }

  function beat(): void {
    if (performance.now() - heardAt > goneMs)
      for (const key of sessions.keys()) drop(key, `the service was silent for ${goneMs / 1000} seconds`);
    greet();
  }

  async function take({ data: { service, since, order } }: Job<WorkerOrder>): Promise<void> {
    const key = order.id;
    // After Redis was away, an order may arrive before the next state.
    heardAt = performance.now();
    // An order is sent again if its confirmation was lost.
    if (ended.has(key) || sessions.has(key) || isDraining) return;
    const session = { service, since, abort: new AbortController(), outgoing: createOutgoing(key, send) };
    sessions.set(key, session);
    greet();
    log.info({ session: key, agent: order.agent }, "session started");
    try {
      await carryOut(place, () => toOwn(order, gatewayUrl, socketPath), session);
    } finally {
      sessions.delete(key);
      ended.add(key);
      if (ended.size > keptKeys) for (const oldest of ended.values().take(1)) ended.delete(oldest);
      greet();
      if (sessions.size === 0) {
        idle.resolve();
        idle = Promise.withResolvers();
      }
      log.info({ session: key }, "session ended");
    }
  }

  const jobs = new Worker<WorkerOrder>(queueOf(id), take, {
    connection: redis.jobs,
    prefix: queuePrefix,
    concurrency: slots,
    // The service decides what runs again.
    maxStalledCount: 0,
  });
  jobs.on("error", (error) => log.debug({ err: error }, "queue error"));
  redis.listen(toWorker(id), (message) => hear(message as ToWorker));
  const beats = setInterval(beat, beatMs);
  greet();

  async function takeNoMore(): Promise<void> {
    isDraining = true;
    greet();
    await jobs.pause(true);
  }

  return {
    id,
    /** Rejects if the service is of another version. */
    refused: refused.promise,
    /** Resolves when the service wants it to finish its sessions and end. */
    drained: dismissals.drain.promise,
    /** Resolves when the service wants it to end immediately. */
    removed: dismissals.leave.promise,
    /** Takes no more sessions and waits for the active ones. Call `stop` next. */
    async drain(): Promise<void> {
      await takeNoMore();
      await whenIdle();
    },
    /** Takes no more sessions, waits up to `drainMs` for the active ones, and gives back the rest. */
    async stop(drainMs: number): Promise<void> {
      await takeNoMore();
      await Promise.race([whenIdle(), Bun.sleep(drainMs)]);
      for (const { abort } of sessions.values())
        abort.abort(new AgentFailure("infrastructure", "the worker was shut down", { retryable: true }));
      if (sessions.size > 0) await Promise.race([whenIdle(), Bun.sleep(lastWordsMs)]);
      clearInterval(beats);
      // First, because the service removes the queue.
      await jobs.close(true);
      await send({ kind: "bye", worker: id });
      await gateway.close();
      rmSync(folder, { recursive: true, force: true });
      redis.close();
    },
  };
}

/** Runs a session and sends its lines. Resolves when the service has taken them all, or has given up the session. */
async function carryOut(
  place: Place,
  getOrder: () => Promise<PlaceOrder>,
  { outgoing, abort: { signal } }: Session,
): Promise<void> {
  const push = (line: Line) => outgoing.push(line);
  try {
    const events = place.run(await getOrder(), {
      signal,
      hide: (secrets) => push({ secrets }),
      onEgress: (event) => push({ event, source: "egress" }),
      onWait: () => {},
      onStart: () => {},
      onEnd: () => {},
    });
    for await (const event of events) {
      push({ event, source: "agent" });
      await outgoing.room();
    }
    push({ end: null });
  } catch (error) {
    push({ end: toEnd(signal.aborted ? signal.reason : error) });
  }
  await outgoing.done();
}

/** The order for this machine, which has the labels: with the way to the model here, and the archives. */
async function toOwn(
  { model, archive, skillsArchive, ...rest }: WorkerOrder["order"],
  gatewayUrl: string,
  socketPath: string,
): Promise<PlaceOrder> {
  const fetched = async (name: string, isThere: boolean) =>
    isThere && model ? await fetchFile(gatewayUrl, `/files/${name}`, model.token) : null;
  return {
    ...rest,
    labels: [],
    model: model && { ...model, socketPath },
    archive: await fetched("archive", archive),
    skillsArchive: await fetched("skillsArchive", skillsArchive),
  };
}

/** What doesn't change while the worker runs. */
const partsOf = ({ level, detail }: Sandbox, browser: FoundBrowser, labels: readonly string[]) => ({
  sandbox: { isHere: level !== "none", detail },
  browser: "missing" in browser ? { isHere: false, detail: browser.missing } : { isHere: true, detail: browser.detail },
  labels: [...new Set([...labels, ...("missing" in browser ? [] : [browserLabel])])],
  memoryBytes: totalmem(),
  cpus: availableParallelism(),
});

const loadOf = () => ({ freeMemoryBytes: freemem(), busyCpus: loadavg()[0] ?? 0 });

/** The agents that can run here. Without a sandbox, coding agents can't. */
function offerOf(agents: Record<string, Agent>, { level }: Sandbox): WorkerInfo["agents"] {
  const isPossible = ([id, agent]: [string, Agent]) =>
    objectionTo(agent) === null && (level !== "none" || boxless.has(id));
  const here = Object.entries(agents).filter(isPossible);
  return Object.fromEntries(here.map(([id, agent]) => [id, agent.describe()]));
}

/** How a session failed. An error that is no AgentFailure is a crash of the agent, as on the service's own machine. */
function toEnd(error: unknown): Extract<Line, { end: unknown }>["end"] {
  if (!(error instanceof AgentFailure))
    return { cause: "agent_crashed", detail: error instanceof Error ? error.message : String(error), retryable: true };
  const { failureCause: cause, detail, options } = error;
  return { cause, detail, ...options };
}
