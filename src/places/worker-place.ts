import { type Agent, AgentFailure } from "../agents/agent.ts";
import type { Assignment } from "./assignments.ts";
import { createFleet, type FleetOptions } from "./fleet.ts";
import { fits, type Needs, needsOf, objectionTo } from "./needs.ts";
import type { Place, PlaceLink, PlaceOrder } from "./place.ts";
import type { KnownWorker } from "./roster.ts";

/** Runs that may wait while a worker has a free slot, so that others can pass them. */
const maxPassed = 64;
/** A wait for a slot that is shorter isn't reported. */
const briefMs = 1_000;

type Options = FleetOptions & {
  /** The agents that this version knows, by ID. */
  agents: Record<string, Agent>;
  /** How long a run waits for a worker that has what it needs. */
  waitMs: number;
};

export type WorkerPlace = ReturnType<typeof openWorkerPlace>;

/** The workers of a service, on this and other machines. */
export function openWorkerPlace({ agents, waitMs, ...options }: Options) {
  const { log } = options;
  const fleet = createFleet(options);
  /** Runs that wait for a worker, by what they wait for. */
  const waiting = new Map<object, "worker" | "slot">();
  const ofAgent = (agent: string): Needs => ({ agent, sandbox: false, labels: [] });
  const offering = (needs: Needs) => fleet.usable().filter(({ info }) => fits(needs, info));
  const objection = (needs: Needs) => objectionTo(needs, fleet.usable().length);
  const shareOf = (worker: KnownWorker) => fleet.loadOf(worker) / worker.info.slots;
  const isFree = (worker: KnownWorker) => shareOf(worker) < 1;

  /** Starts a session on the least busy worker that has what it needs. Waits for one. */
  async function start(ordered: PlaceOrder, { signal, onWait, onStart }: PlaceLink): Promise<Assignment> {
    const needs = needsOf(ordered);
    const place = {};
    const since = performance.now();
    /** The end of the wait if no worker fits. It starts over when one did, and when Redis is back. */
    let until = since + waitMs;
    let reported = "";
    const aborted = Promise.withResolvers<void>();
    const abort = () => aborted.resolve();
    signal.addEventListener("abort", abort, { once: true });
    try {
      for (;;) {
        signal.throwIfAborted();
        const able = offering(needs);
        const best = able.filter(isFree).sort((a, b) => shareOf(a) - shareOf(b))[0];
        // At once, because other sessions that wait would choose the same worker.
        if (best) {
          const session = fleet.start(best, ordered);
          onStart(best.info.agents[ordered.agent]?.version ?? "");
          return session;
        }
        const at = performance.now();
        const what = able.length === 0 ? "worker" : "slot";
        const mayFail = what === "worker" && fleet.isConnected();
        if (!mayFail) until = at + waitMs;
        else if (at >= until) throw new AgentFailure("infrastructure", objection(needs));
        waiting.set(place, what);
        const state = `${what} ${mayFail}`;
        if (state !== reported && (what === "worker" || at - since >= briefMs)) {
          if (what === "worker") log.warn({ ...needs, reason: objection(needs) }, "run waits for a worker");
          onWait({ what, ...needs, failsInMs: mayFail ? until - at : null });
          reported = state;
        }
        await Promise.race([fleet.change(), aborted.promise]);
      }
    } finally {
      waiting.delete(place);
      signal.removeEventListener("abort", abort);
    }
  }

  const place: Place = {
    async *run(ordered, link) {
      const session = await start(ordered, link);
      const stop = () => session.batches.fail(link.signal.reason);
      link.signal.addEventListener("abort", stop, { once: true });
      if (link.signal.aborted) stop();
      try {
        for await (const lines of session.batches.items) {
          for (const line of lines) {
            if ("secrets" in line) link.hide(line.secrets);
            else if ("event" in line && line.source === "agent") yield line.event;
            else if ("event" in line) link.onEgress(line.event);
            else if (line.end === null) return;
            else throw new AgentFailure(line.end.cause, line.end.detail, line.end);
          }
          fleet.take(session);
        }
      } finally {
        link.onEnd();
        link.signal.removeEventListener("abort", stop);
        fleet.end(session);
      }
    },
  };

  /** An agent as the workers have it. */
  const onWorkers = (id: string, agent: Agent): Agent => ({
    ...agent,
    describe: () => offering(ofAgent(id))[0]?.info.agents[id] ?? agent.describe(),
    preflight: () => [
      {
        what: "worker",
        isHere: waitMs > 0 || offering(ofAgent(id)).length > 0,
        detail: objection(ofAgent(id)),
      },
    ],
  });

  return {
    ...place,
    agents: Object.fromEntries(Object.entries(agents).map(([id, agent]) => [id, onWorkers(id, agent)])),
    /** Sessions that all workers can run at once, and more if only runs that wait for a certain worker keep slots free. */
    slots(): number {
      const usable = fleet.usable();
      const all = usable.reduce((sum, { info }) => sum + info.slots, 0);
      return Math.max(1, all) + (usable.some(isFree) ? Math.min(waiting.size, maxPassed) : 0);
    },
    list: fleet.list,
    /** Makes a worker finish its sessions and end. Returns false if there is none with this ID. */
    drain: fleet.drain,
    /** Takes a worker's sessions back and makes it end. Returns false if there is none with this ID. */
    remove: fleet.remove,
    /** The number of runs that wait, by what they wait for. */
    countWaiting: () => ({
      worker: [...waiting.values()].filter((what) => what === "worker").length,
      slot: [...waiting.values()].filter((what) => what === "slot").length,
    }),
    /** Call it when no session is active. */
    close: fleet.close,
  };
}
