import type { Context } from "../context.ts";
import { AppError, notFound } from "../errors.ts";
import type { WorkerStatus } from "../places/roster.ts";
import type { WorkerPlace } from "../places/worker-place.ts";
import { toIso } from "../schema.ts";
import type { Worker } from "./schema.ts";

type Parts = {
  /** null: agents run on this machine. */
  place: WorkerPlace | null;
  countOrgs: () => number;
};

export type Workers = ReturnType<typeof createWorkers>;

/** A worker as responses show it. `now`: epoch ms. */
export const toWorker = ({ agents, connectedMs, silentMs, ...rest }: WorkerStatus, now: number): Worker => ({
  ...rest,
  agents: Object.entries(agents).map(([id, { version }]) => ({ id, version })),
  connectedAt: toIso(now - connectedMs),
  lastSeenAt: toIso(now - silentMs),
});

/**
 * The workers of the service. They belong to its operator, so an organization can see and change them only if it is the only one.
 */
export function createWorkers({ now }: Pick<Context, "now">, { place, countOrgs }: Parts) {
  /** Throws forbidden if there are several organizations. */
  function check(): WorkerPlace | null {
    if (place && countOrgs() > 1)
      throw new AppError(
        "forbidden",
        "This server has several organizations, so its workers are managed with evald workers on the server.",
      );
    return place;
  }

  function change(id: string, action: "drain" | "remove"): Worker {
    const worker = check()
      ?.list()
      .find((each) => each.id === id.toLowerCase());
    if (!worker || !place?.[action](worker.id)) throw notFound(`No worker has the ID ${id}.`);
    const after = place.list().find((each) => each.id === worker.id);
    return toWorker(after ?? worker, now());
  }

  return {
    /** Whether agents run on workers. */
    isUsed: place !== null,
    /** By name. Throws forbidden. */
    listWorkers: (): Worker[] =>
      check()
        ?.list()
        .map((each) => toWorker(each, now())) ?? [],
    /** Makes a worker finish its sessions and end. Throws forbidden and not_found. */
    drainWorker: (id: string): Worker => change(id, "drain"),
    /** Takes the sessions of a worker back, which start again on others, and makes it end. Throws forbidden and not_found. */
    removeWorker: (id: string): Worker => change(id, "remove"),
  };
}
