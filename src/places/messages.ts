import { type Static, Type } from "@sinclair/typebox";
import { type AgentEvent, eventTypes } from "../agents/agent.ts";
import { type EndingName, endings } from "../agents/endings.ts";
import { failedCodes } from "../agents/failure.ts";
import { workerLabel } from "../config/worker-settings.ts";
import { Nullable, OneOf } from "../schema.ts";
import type { SessionOrder } from "./executor.ts";

/** Names in Redis that only the service and its operator use. */
export const workerList = "evald:workers";
/** The stream of requests that operators make with the CLI. */
export const operatorRequests = "evald:operator-requests";
/** The value by which one service claims the Redis server. */
export const serviceClaim = "evald:service";

/** How the name of a Redis user begins if the user belongs to a worker with its own credential. */
export const userPrefix = "evald-worker-";
/** Stands in place of the name of a credential if the worker uses the service's credential. */
export const sharedCredential = "shared";
/** The name of a worker's credential. No part of it has a meaning in a key pattern of Redis. */
export const credentialName = /^[a-z0-9][a-z0-9-]{0,62}$/;

/** The name of the credential in the URL of a Redis server. */
export function credentialOf(redisUrl: string): string {
  const user = decodeURIComponent(new URL(redisUrl).username);
  return user.startsWith(userPrefix) ? user.slice(userPrefix.length) : sharedCredential;
}

/** The Redis stream to which the workers of a credential send messages. */
export const messageStreamOf = (credential: string): string => `evald:from:${credential}`;

/** The Redis key of the state that a worker should be in. */
export const stateKeyOf = (credential: string, id: string): string => `evald:to:${credential}:${id}`;

/** The prefix of the Redis keys of a credential's queues. */
export const queuePrefixOf = (credential: string): string => `evald:jobs:${credential}`;

/** The name of the queue of a worker. */
export const queueOf = (id: string): string => `worker-${id}`;

/** Patterns of all names that begin with a credential. */
export const keyPatternsOf = (credential: string): string[] => [
  messageStreamOf(credential),
  stateKeyOf(credential, "*"),
  `${queuePrefixOf(credential)}:*`,
];

/** Interval of the messages that show each side that the other one is alive. */
export const beatMs = 2_000;
/** Silence after which the other side counts as gone, by default. */
export const defaultGoneMs = 30_000;

const text = (maxLength: number) => Type.String({ maxLength });
const bytes = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });

/** Whether a machine has a program. `detail`: its version, or how to install it. */
const ProgramStatus = Type.Object({ isAvailable: Type.Boolean(), detail: text(4_096) });

/** What a worker reports about itself. */
export const WorkerInfo = Type.Object({
  /** The ID of this process. After a restart, a worker has another ID. */
  id: Type.String({ pattern: "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$" }),
  /** Host name. */
  name: Type.String({ pattern: "^[\\x21-\\x7e]{1,255}$" }),
  version: Type.String({ pattern: "^[\\x21-\\x7e]{1,100}$" }),
  /** Maximum concurrent sessions. */
  slots: Type.Integer({ minimum: 1, maximum: 1_000 }),
  /** The agents that can run there. */
  agents: Type.Array(Type.Object({ id: text(100), version: text(200) }), { maxItems: 200 }),
  sandbox: ProgramStatus,
  browser: ProgramStatus,
  /** Its own labels, and `browser` if it has a browser. */
  labels: Type.Array(Type.String({ pattern: workerLabel.source }), { maxItems: 21 }),
  /** Why it can't run sessions now; null if it can. */
  problem: Nullable(text(1_000)),
  memoryBytes: bytes,
  freeMemoryBytes: bytes,
  /** Average number of busy CPUs in the last minute, and how many it has. */
  busyCpus: Type.Number({ minimum: 0, maximum: 1e6 }),
  cpus: Type.Integer({ minimum: 1, maximum: 1e6 }),
});
export type WorkerInfo = Static<typeof WorkerInfo>;

/** States of a worker from the point of view of the service. `not_ready`: the worker has a problem. `refused`: it has another version. */
export const workerStates = ["ready", "not_ready", "draining", "refused"] as const;

/** A worker as the service sees it. */
export type WorkerStatus = WorkerInfo & {
  state: (typeof workerStates)[number];
  /** Name of its credential; null: it uses the service's credential. */
  credential: string | null;
  /** IDs of the runs whose sessions it has. */
  runIds: string[];
  /** Milliseconds since it connected, and since its last message. */
  connectedMs: number;
  silentMs: number;
};

/**
 * A worker that left without being told to, with the agents and labels that no connected worker has. `awayMs`: milliseconds since its last message.
 */
export type AwayWorker = { name: string; agents: string[]; labels: string[]; awayMs: number };

/** A worker that the service knows, with the IDs of its agents. `awayMs`: milliseconds since its last message; null: it is connected. */
export type KnownWorker = {
  name: string;
  credential: string;
  agents: string[];
  labels: string[];
  awayMs: number | null;
};

/** What the service wants a worker to do. `drain`: finish its sessions, then end. `leave`: end now. */
export type Duty = "work" | "drain" | "leave";

/** The label of every worker with a browser. */
export const browserLabel = "browser";

/** Types of events that the network proxy of a session reports. */
const egressTypes = ["http", "limit"] as const satisfies readonly AgentEvent["type"][];

/** Says that the site of a session is served. */
const SiteServed = Type.Object({ type: Type.Literal("milestone"), name: Type.Literal("site_served") });

/** One line of a session. The last line is `end`: null if the agent ended, or else why it failed. */
const Line = Type.Union([
  Type.Object({ event: eventOf(eventTypes), source: Type.Literal("agent") }),
  Type.Object({ event: eventOf(egressTypes), source: Type.Literal("egress") }),
  Type.Object({ event: Type.Unsafe<AgentEvent>(SiteServed), source: Type.Literal("egress") }),
  Type.Object({ secrets: Type.Array(text(8_192), { maxItems: 100 }) }),
  Type.Object({
    end: Nullable(
      Type.Object({
        code: OneOf(failedCodes),
        subject: Type.Optional(text(1024)),
        detail: text(64 * 1024),
        retryable: Type.Boolean(),
        retryAfterMs: Type.Optional(Type.Number({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
        ending: Type.Optional(OneOf(Object.keys(endings) as EndingName[])),
      }),
    ),
  }),
]);
export type Line = Static<typeof Line>;

/** The rest of an event is checked with the session, as it is for an agent on this machine. */
function eventOf(types: readonly AgentEvent["type"][]) {
  return Type.Unsafe<AgentEvent>(Type.Object({ type: OneOf(types) }));
}

const sessionKey = text(100);
const Id = WorkerInfo.properties.id;

/** Messages of workers. */
export const FromWorker = Type.Union([
  /** `sessions`: the keys of the sessions whose end the service doesn't know. */
  Type.Object({
    kind: Type.Literal("hello"),
    worker: WorkerInfo,
    sessions: Type.Array(sessionKey, { maxItems: 2_000 }),
    isDraining: Type.Boolean(),
  }),
  /** A batch of lines of the session `key`. `number`: the number of the batch within its session, from 1. */
  Type.Object({
    kind: Type.Literal("lines"),
    key: sessionKey,
    number: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),
    lines: Type.Array(Line),
  }),
  Type.Object({ kind: Type.Literal("bye"), worker: Id }),
]);
export type FromWorker = Static<typeof FromWorker>;

/** A request of an operator. */
export const OperatorRequest = Type.Object({ kind: OneOf(["drain", "remove"]), worker: Id });
export type OperatorRequest = Static<typeof OperatorRequest>;

/** The whole state that a worker should be in. The worker stops all other sessions. The state is sent repeatedly, so a lost message does no harm. */
export type ToWorker = {
  /** The ID of the service's process. A restarted service has given up the sessions of the previous process. */
  service: string;
  version: string;
  duty: Duty;
  /** Counts the states that the service has sent. */
  number: number;
  /** Sessions of the worker, each with the last batch that was taken. */
  sessions: Record<string, number>;
};

type OrderFile = "archive" | "skillsArchive" | "site" | "login";

/** A session to run, as a job of the worker's queue. Files are fetched from the gateway. */
export type WorkerOrder = {
  service: string;
  /** The number of the first `ToWorker` that lists the session. */
  since: number;
  order: Omit<SessionOrder, OrderFile> & Record<OrderFile, boolean>;
};
