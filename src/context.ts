import type { Logger } from "pino";
import type { Agent } from "./agents/agent.ts";
import type { AllowRule } from "./config/allow-rules.ts";
import type { Config } from "./config/config.ts";
import { type Commit, createCommit } from "./db/commit.ts";
import { createDiskHealth, type DiskHealth } from "./db/disk-health.ts";
import type { Db, Tx } from "./db/open.ts";
import { createProvenTime, type ProvenTime } from "./db/proven-time.ts";
import { oncePer } from "./once.ts";
import type { AwayWorker } from "./places/messages.ts";
import { createSignal } from "./signal.ts";

declare const brand: unique symbol;
/** The ID of an authenticated organization. Only a key, a signed-in person, the scheduler and the command line create one. */
export type OrgId = string & { readonly [brand]: "org" };

/** What happened in this process. Features emit a signal once the change is on disk, unless noted. The loops of the service subscribe. */
const createSignals = () => ({
  /** A run, a regrade or a set of proposals waits to be claimed. */
  jobQueued: createSignal(),
  /** A job was cancelled while it may be running. */
  jobCancelled: createSignal(),
  /** Runs ended without an attempt, such as cancelled ones. The value has their IDs. */
  runsEnded: createSignal<string[]>(),
  /** An evaluation ended. Emitted within the transaction of its last run. */
  evaluationEnded: createSignal<{ tx: Tx; org: OrgId; promptId: string }>(),
  /** A judge was asked about a session. The value says whether it returned a verdict. */
  runJudged: createSignal<boolean>(),
  /**
   * The next scheduled evaluation may have changed, because a prompt, tag or time zone did. Emitted after the write, at the latest with its commit.
   */
  scheduleChanged: createSignal(),
  /** A webhook or email waits to be sent. Emitted within the transaction. */
  deliveryQueued: createSignal(),
  /** Something deleted is to be erased now. */
  erasureDue: createSignal(),
});

/** What every verb receives first, in place of globals. Created once per service by `createContext`. */
export type Context = {
  /** The ID of this process, by which it recognizes itself in an answer. */
  instance: string;
  db: Db;
  config: Config;
  log: Logger;
  /** Epoch milliseconds. */
  now: () => number;
  /** Milliseconds of a clock that nobody sets, for durations. */
  monotonicNow: () => number;
  /** The time to delete by: a clock that jumps forward is believed only after a day. */
  provenTime: ProvenTime;
  /** A UUIDv7 of that moment. IDs sort by time and, within one process, by creation. */
  newId: (atMs: number) => string;
  /** The URL at which the service is reached, without a trailing slash. Known once it listens. */
  baseUrl: () => string;
  /** The addresses that runs may reach besides public ones. */
  allow: () => AllowRule[];
  /** The agents of this service by ID. */
  agents: Record<string, Agent>;
  /** The workers that left without being told to, since the service started. */
  awayWorkers: () => AwayWorker[];
  /** Runs work in a durable transaction, possibly shared with others. */
  commit: Commit;
  signals: ReturnType<typeof createSignals>;
  disk: DiskHealth;
  /** The user of the machine who runs a command on the data directory; null: this process is the service. */
  operator: string | null;
  /** Aborts when the service stops. */
  stopping: AbortSignal;
};

export type ContextOptions = Pick<Context, "db" | "config" | "log" | "agents" | "baseUrl"> &
  Partial<Pick<Context, "now" | "monotonicNow" | "newId" | "stopping" | "awayWorkers" | "operator">> & {
    /** Private addresses that runs may reach in addition to the configured ones. */
    alsoAllow?: () => AllowRule[];
    /** Called once, when the disk can no longer be trusted. Nothing more is claimed or answered, and the process should end. */
    onBroken?: (error: unknown) => void;
  };

/** Creates the context. By default, its clocks are the machine's. */
export function createContext(options: ContextOptions): Context {
  const { db, config, log, agents, baseUrl, onBroken, now = Date.now, alsoAllow = () => [] } = options;
  // If only a clock is passed, nobody sets it.
  const monotonicNow = options.monotonicNow ?? options.now ?? performance.now.bind(performance);
  return {
    instance: crypto.randomUUID(),
    db,
    config,
    log,
    now,
    monotonicNow,
    provenTime: createProvenTime(db, now, monotonicNow),
    newId: options.newId ?? ((atMs) => Bun.randomUUIDv7("hex", atMs)),
    baseUrl,
    allow: () => [...config.allowPrivate, ...alsoAllow()],
    agents,
    awayWorkers: options.awayWorkers ?? (() => []),
    commit: createCommit(db),
    signals: createSignals(),
    disk: createDiskHealth(db, log, onBroken),
    operator: options.operator ?? null,
    stopping: options.stopping ?? new AbortController().signal,
  };
}

/** State that belongs to one context, created when it is first needed. */
export const perContext = <T extends object>(create: (ctx: Context) => T) => oncePer((ctx: Context) => ctx, create);
