import type { Logger } from "pino";
import { type Assignment, createAssignments } from "./assignments.ts";
import { beatMs, type FromWorker, fromWorkers, queuePrefix, goneMs as usualGoneMs, workerList } from "./messages.ts";
import type { PlaceOrder } from "./place.ts";
import { connectRedis } from "./redis.ts";
import { createRoster, type KnownWorker } from "./roster.ts";

/** Time in which a worker confirms an order before it is sent again. */
const confirmMs = 5_000;

export type FleetOptions = {
  url: string;
  version: string;
  log: Logger;
  newId: () => string;
  /** Silence after which a worker counts as gone. */
  goneMs?: number;
};

/**
 * The workers of a service and their sessions. Each worker gets the list of the sessions that it should have, and stops all others. Nothing here
 * survives the process, whose sessions start over.
 */
export function createFleet({ url, version, log, newId, goneMs = usualGoneMs }: FleetOptions) {
  const redis = connectRedis(url, log);
  const service = newId();
  const sessions = createAssignments();
  let changed = Promise.withResolvers<void>();
  let beatenAt = performance.now();

  const notify = () => {
    changed.resolve();
    changed = Promise.withResolvers();
  };
  const roster = createRoster({ redis, sessions, service, version, keptMs: 2 * goneMs, log, onChange: notify });
  const { usable, list, drain, remove } = roster;

  function hear(message: FromWorker): void {
    if (message.kind === "lines") {
      const behind = sessions.hear(message.key, message.number, message.lines);
      if (behind !== null) roster.changeState(behind);
    } else if (message.kind === "bye") {
      const worker = roster.get(message.worker);
      if (worker) roster.forget(worker, "was shut down");
    } else if (message.kind === "hello") roster.greet(message);
    else roster[message.kind](message.worker);
  }

  function order(session: Assignment): void {
    session.orderedAt = performance.now();
    const { id } = session.order.order;
    const options = { jobId: id, removeOnComplete: true, removeOnFail: true };
    roster
      .get(session.worker)
      ?.queue.add("session", session.order, options)
      .catch((error) => log.debug({ err: error }, "could not send an order"));
  }

  function beat(): void {
    const at = performance.now();
    // After a pause of this process, what workers sent in the meantime is read first.
    const wasAsleep = at - beatenAt > goneMs / 2;
    beatenAt = at;
    for (const worker of roster.values()) {
      if (wasAsleep) worker.heardAt = at;
      if (at - worker.heardAt > goneMs) roster.forget(worker, `has sent nothing for ${goneMs / 1000} seconds`);
      else roster.sendState(worker);
    }
    for (const session of sessions.values())
      if (!session.isConfirmed && at - session.orderedAt > confirmMs && redis.findProblem() === null) order(session);
    redis.put(workerList, { version, workers: list() }, goneMs);
    notify();
  }

  // What the process before and its workers left is void, and some of those workers are gone.
  redis.removeAll(`${queuePrefix}:`).then(
    () => redis.listen(fromWorkers, (message) => hear(message as FromWorker)),
    () => {},
  );
  const beats = setInterval(beat, beatMs);

  return {
    usable,
    list,
    /** Whether Redis can be reached. Without it, no worker can be. */
    isConnected: () => redis.findProblem() === null,
    drain,
    remove,
    /** Its sessions here, and those that it hasn't stopped yet. */
    loadOf: ({ info, sessions: own }: KnownWorker): number => own.union(new Set(sessions.keysOf(info.id))).size,
    /** Resolves when something about the workers may have changed. */
    change: () => changed.promise,
    /** Sends a session to a worker. */
    start({ info: { id } }: KnownWorker, { archive, skillsArchive, ...rest }: PlaceOrder): Assignment {
      const sent = { ...rest, archive: archive !== null, skillsArchive: skillsArchive !== null };
      const session = sessions.add(id, { service, since: roster.nextNumber(), order: sent });
      roster.changeState(id);
      order(session);
      return session;
    },
    /** A batch of a session was taken. */
    take(session: Assignment): void {
      session.taken++;
      roster.changeState(session.worker);
    },
    /** Removes a session; its worker stops it if it still runs. */
    end(session: Assignment): void {
      sessions.remove(session);
      roster.changeState(session.worker);
      notify();
    },
    async close(): Promise<void> {
      clearInterval(beats);
      // Tells workers to stop what is left.
      await Promise.all([...roster.values()].map(roster.sendState));
      await Promise.all([redis.remove(fromWorkers), redis.remove(workerList)]);
      redis.close();
    },
  };
}
