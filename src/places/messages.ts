import type { Agent, AgentEvent, FailureOptions } from "../agents/agent.ts";
import type { FailureCause } from "../agents/endings.ts";
import type { SessionOrder } from "./executor.ts";

/** Names in Redis. Everything that workers send is in one stream; each worker has one with the state that it should be in. */
export const workerList = "evald:workers";
export const fromWorkers = "evald:from-workers";
export const toWorker = (id: string): string => `evald:to-worker:${id}`;
export const queueOf = (id: string): string => `worker-${id}`;
export const queuePrefix = "evald";

/** Interval of the messages by which both sides know that the other one is alive. */
export const beatMs = 2_000;
/** Silence after which the other side counts as gone, by default. */
export const defaultGoneMs = 30_000;

/** What a worker says of itself. */
export type WorkerInfo = {
  /** Of this process: a restarted worker is another one. */
  id: string;
  /** Host name. */
  name: string;
  version: string;
  /** Maximum concurrent sessions. */
  slots: number;
  /** The agents that can run there. */
  agents: Record<string, ReturnType<Agent["describe"]>>;
  sandbox: ProgramStatus;
  browser: ProgramStatus;
  /** Its own labels, and `browser` if it has one. */
  labels: string[];
  memoryBytes: number;
  freeMemoryBytes: number;
  /** Average number of busy CPUs in the last minute, and how many it has. */
  busyCpus: number;
  cpus: number;
};

/** Whether a machine has a program; `detail` is its version, or how to install it. */
type ProgramStatus = { isHere: boolean; detail: string };

/** States of a worker in the eyes of the service. `refused`: it is of another version. */
export const workerStates = ["ready", "draining", "refused"] as const;

/** A worker as the service sees it. */
export type WorkerStatus = WorkerInfo & {
  state: (typeof workerStates)[number];
  /** IDs of the runs whose sessions it has. */
  runIds: string[];
  /** Milliseconds since it connected, and since it was last heard of. */
  connectedMs: number;
  silentMs: number;
};

/** What the service wants of a worker. `drain`: finish its sessions, then end; `leave`: end now. */
export type Duty = "work" | "drain" | "leave";

/** The label of every worker with a browser. */
export const browserLabel = "browser";

/** One line of a session. The last one is `end`, null if the agent ended, or why it failed. */
export type Line =
  | { event: AgentEvent; source: "agent" | "egress" }
  | { secrets: string[] }
  | { end: ({ cause: FailureCause; detail: string } & FailureOptions) | null };

/** Messages of workers. */
export type FromWorker =
  /** `sessions`: keys of those whose end the service doesn't know. */
  | { kind: "hello"; worker: WorkerInfo; sessions: string[]; isDraining: boolean }
  /** A batch of lines of the session `key`. `number`: of the batch within its session, from 1. */
  | { kind: "lines"; key: string; number: number; lines: Line[] }
  | { kind: "bye"; worker: string }
  /** Sent by an operator. */
  | { kind: "drain" | "remove"; worker: string };

/** The whole state that a worker should be in; it stops other sessions. It is sent repeatedly, so a lost message does no harm. */
export type ToWorker = {
  /** Of the service's process: a restarted service has given up the sessions of the one before. */
  service: string;
  version: string;
  duty: Duty;
  /** Counts the states that the service has sent. */
  number: number;
  /** Sessions of the worker, each with the last batch that was taken. */
  sessions: Record<string, number>;
};

/** A session to run, as a job of the worker's queue. Archives are fetched from the gateway. */
export type WorkerOrder = {
  service: string;
  /** The number of the first `ToWorker` that lists the session. */
  since: number;
  order: Omit<SessionOrder, "archive" | "skillsArchive"> & { archive: boolean; skillsArchive: boolean };
};
