import { type Context, type OrgId, perContext } from "../context.ts";
import { unavailable } from "../errors.ts";
import { yieldToEventLoop } from "../event-loop.ts";
import { createFairQueue, type Tenant } from "./fair-queue.ts";

/** After this many milliseconds in one turn, further requests wait for the next turn. */
const maxTurnMs = 1;
/** Maximum waiting requests of one organization, or of one network without a key. */
const maxWaiting = 500;
/** Maximum waiting requests of all networks without a key together. */
const maxWaitingOfGroup = 2000;

/** A request that waits for its turn. `start` runs it, and returns whether it takes the rest of the turn. */
type Waiting = { start: () => boolean };

const turnState = Symbol("turnState");
/** `number`: the number of the turn in which the request last ran. The state is stored as a property, because a WeakMap of requests takes longer. */
type TurnRequest = Request & { [turnState]?: { turns: Turns; tenantOf: () => Tenant; number: number } };

export type Turns = ReturnType<typeof createTurns>;

/** The turns of a service. */
export const turnsOf = perContext(() => createTurns());

/**
 * Shares this thread between tenants. A request runs immediately if no other request waits. Otherwise it waits for its turn. Each turn of the event
 * loop serves one waiting request, each time of another tenant. So a tenant delays the others by the work of one request, however many requests it
 * sends.
 */
function createTurns() {
  const queue = createFairQueue<Waiting>(maxWaiting, maxWaitingOfGroup);
  /** Whether the rest of this turn is taken. Asynchronous work always takes it, because that work may continue at any time. */
  let isTaken = false;
  let turnNumber = 0;
  /** Milliseconds that requests without waiting have taken since the last turn. */
  let spentMs = 0;
  /** When the work that took this turn started. */
  let startedAt = 0;
  let onLongTurn: (ms: number) => void = () => {};

  /** Takes the rest of this turn, so that other requests run in the next turn of the event loop. `since`: when the work of this turn started. */
  function takeTurn(since: number): void {
    if (isTaken) return;
    isTaken = true;
    startedAt = since;
    setImmediate(startNextTurn);
  }

  /** Starts a turn. Runs waiting requests until one takes the rest of the turn, or until the time of the turn is over. */
  function startNextTurn(): void {
    const now = performance.now();
    if (now - startedAt >= maxTurnMs) onLongTurn(now - startedAt);
    isTaken = false;
    spentMs = 0;
    turnNumber++;
    for (;;) {
      const waiting = queue.take();
      if (!waiting) return;
      if (waiting.start() || performance.now() - now >= maxTurnMs) {
        takeTurn(now);
        return;
      }
    }
  }

  function runNow(work: () => Response | Promise<Response>): Response | Promise<Response> {
    const since = performance.now();
    const answer = work();
    if (answer instanceof Promise) takeTurn(since);
    else {
      spentMs += performance.now() - since;
      if (spentMs >= maxTurnMs) takeTurn(since);
    }
    return answer;
  }

  return {
    /** Calls `work` in the turn of its tenant. Throws unavailable if too many requests of the tenant wait. */
    run(request: Request, tenantOf: () => Tenant, work: () => Response | Promise<Response>) {
      if (!isTaken && queue.size() === 0) return runNow(work);
      const { promise, resolve, reject } = Promise.withResolvers<Response>();
      const start = () => {
        // The client has disconnected, so nobody would read the response.
        if (request.signal.aborted) {
          resolve(new Response(null, { status: 499 }));
          return false;
        }
        try {
          const answer = work();
          resolve(answer);
          return answer instanceof Promise;
        } catch (error) {
          reject(error);
          return false;
        }
      };
      if (!queue.add(tenantOf(), { start })) throw tooManyWaiting();
      return promise;
    },

    /** Waits for a turn of a tenant, unless no other request waits. Throws unavailable if too many requests of the tenant wait. */
    wait(tenant: Tenant): Promise<void> | undefined {
      if (!isTaken && queue.size() === 0) {
        takeTurn(performance.now());
        return undefined;
      }
      const { promise, resolve } = Promise.withResolvers<void>();
      const start = () => {
        resolve();
        return true;
      };
      if (!queue.add(tenant, { start })) throw tooManyWaiting();
      return promise;
    },

    /**
     * Reports the length of each turn of at least one millisecond, in milliseconds. A turn lasts from the start of its work until another tenant may
     * run, including requests that arrive in between.
     */
    measure(observe: (ms: number) => void): void {
      onLongTurn = observe;
    },

    /** The number of the current turn. */
    number: () => turnNumber,
  };
}

/** Registers a request, so that it can call `nextTurn` when it continues after waiting for something else. */
export function trackTurn(request: Request, turns: Turns, tenantOf: () => Tenant): void {
  (request as TurnRequest)[turnState] = { turns, tenantOf, number: turns.number() };
}

/**
 * Waits for another turn of the tenant of a request before the next part of its work, if the turn has changed. For example, other requests may have
 * run while the body of the request was read.
 */
export async function nextTurn(request: Request): Promise<void> {
  const state = (request as TurnRequest)[turnState];
  if (!state || state.number === state.turns.number()) return;
  await state.turns.wait(state.tenantOf());
  state.number = state.turns.number();
}

/**
 * Waits for a turn of an organization before the next part of long work, such as a batch of a stream, of a session or of a list. If too many requests
 * of the organization wait, it waits behind the work of all others.
 */
export async function turnOfOrg(ctx: Context, org: OrgId | string): Promise<void> {
  try {
    await turnsOf(ctx).wait(tenantOfOrg(org));
  } catch {
    await yieldToEventLoop();
  }
}

/** The tenant that an organization is. */
export const tenantOfOrg = (org: string): Tenant => ({ group: org, member: org });

const tooManyWaiting = () =>
  unavailable("Too many requests of this organization or network are waiting. Send fewer at the same time.");
