import { Gauge, type Registry } from "prom-client";
import { workerStates } from "../places/messages.ts";
import type { WorkerExecutor } from "../places/worker-executor.ts";

/** Registers what is known about workers. Returns the function that reads it. */
export function addWorkerGauges(registry: Registry, workers: WorkerExecutor): () => void {
  const registers = [registry];
  const gauge = (name: string, help: string, label: string) =>
    new Gauge({ name: `evald_${name}`, help, labelNames: [label], registers });
  const states = gauge("workers", "Connected workers by state: ready, draining or refused", "state");
  const slots = gauge("worker_slots", "Maximum concurrent sessions by host name of the worker", "worker");
  const sessions = gauge("worker_sessions", "Active sessions by host name of the worker", "worker");
  const silence = gauge("worker_silent_seconds", "Time since the last message by host name of the worker", "worker");
  const waiting = gauge(
    "runs_waiting",
    "Active runs that wait for a worker that has what they need, or for a slot on one that has it",
    "for",
  );
  return () => {
    const all = workers.list();
    for (const each of [slots, sessions, silence]) each.reset();
    for (const state of workerStates) states.set({ state }, all.filter((each) => each.state === state).length);
    for (const { name: worker, ...each } of all) {
      slots.inc({ worker }, each.slots);
      sessions.inc({ worker }, each.runIds.length);
      silence.set({ worker }, each.silentMs / 1000);
    }
    const waitsFor = [...workers.waiting.values()];
    for (const what of ["worker", "slot"]) waiting.set({ for: what }, waitsFor.filter((each) => each === what).length);
  };
}
