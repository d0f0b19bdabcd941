import { type Fleet, listUsableWorkers } from "./fleet.ts";
import { toKnown } from "./fleet-workers.ts";
import type { AwayWorker, KnownWorker } from "./messages.ts";

/** The workers that left without being told to. Each has only the agents and labels that no connected worker has. */
export function listAwayWorkers(fleet: Fleet): AwayWorker[] {
  const here = listUsableWorkers(fleet).map(({ info }) => info);
  const agents = new Set(here.flatMap((info) => info.agents.map(({ id }) => id)));
  const labels = new Set(here.flatMap((info) => info.labels));
  return [...fleet.away.values()].map(({ heardAt, ...worker }) => ({
    name: worker.name,
    agents: worker.agents.filter((id) => !agents.has(id)),
    labels: worker.labels.filter((label) => !labels.has(label)),
    awayMs: Math.round(performance.now() - heardAt),
  }));
}

/** Remembers the workers that the previous process knew as away, until they connect again. */
export function rememberKnownWorkers(fleet: Fleet, known: KnownWorker[]): void {
  const at = performance.now();
  for (const { awayMs, ...worker } of known) fleet.away.set(worker.name, { ...worker, heardAt: at - (awayMs ?? 0) });
}

/**
 * All workers that the next process should remember as away until they connect to it. These are the connected workers that are not draining, and the
 * workers that are away.
 */
function listKnownWorkers(fleet: Fleet): KnownWorker[] {
  const at = performance.now();
  const here = [...fleet.workers.values()].filter(({ isDraining }) => !isDraining);
  return [
    ...here.map(({ info, credential }) => ({ ...toKnown(info), credential, awayMs: null })),
    ...[...fleet.away.values()].map(({ heardAt, ...worker }) => ({ ...worker, awayMs: at - heardAt })),
  ];
}

/** A function that stores the workers of the fleet if the known workers, or which of them are away, changed since its last call. */
export function rememberChanges(fleet: Fleet, store: ((workers: KnownWorker[]) => void) | undefined): () => void {
  // The digest leaves out how long a worker has been away, because that changes all the time.
  const digestOf = (workers: KnownWorker[]) =>
    JSON.stringify(workers.map((each) => ({ ...each, awayMs: each.awayMs === null })));
  let storedDigest = "";
  return () => {
    const workers = listKnownWorkers(fleet);
    const digest = digestOf(workers);
    if (digest === storedDigest || !fleet.isClaimed) return;
    try {
      store?.(workers);
      storedDigest = digest;
    } catch (error) {
      fleet.log.debug({ err: error }, "could not store which workers are known");
    }
  };
}
