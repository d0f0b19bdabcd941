import type { Sandbox } from "../agents/sandbox/sandbox.ts";
import type { Config } from "../config/config.ts";
import type { Context } from "../context.ts";
import type { WorkerStatus } from "../places/messages.ts";
import { type Cause, problemOf } from "./problems.ts";

const checkStates = ["ok", "warning", "failed", "not_applicable"] as const;
export type CheckState = (typeof checkStates)[number];

/**
 * What a check found out. `subject`: what it is about, such as a path, a URL or a part; null: the check itself says what it is about. `detail`:
 * facts, no advice.
 */
export type Finding = { state: CheckState; cause: Cause | null; subject: string | null; detail: string };

/** A finding that nothing is wrong. */
export const ok = (detail: string, subject: string | null = null): Finding => ({
  state: "ok",
  cause: null,
  subject,
  detail,
});

/** A finding that a check has nothing to look at, such as a setting that isn't set. */
export const notApplicable = (detail: string, subject: string | null = null): Finding => ({
  state: "not_applicable",
  cause: null,
  subject,
  detail,
});

/** A finding that something is wrong: a warning or a failure, as `problemOf` says for its cause. */
export const problemFound = (cause: Cause, detail: string, subject: string | null = null): Finding => ({
  state: problemOf(cause).state,
  cause,
  subject,
  detail,
});

/** Whether a finding is a warning or a failure. */
export const isProblem = ({ state }: { state: Finding["state"] }): boolean => state === "warning" || state === "failed";

/** When checks run: with `evald doctor`, and in the service after its start and then every day. */
export const checkOccasions = ["doctor", "start", "daily"] as const;
export type CheckOccasion = (typeof checkOccasions)[number];

/** What a check gets to look at. */
export type CheckInput = {
  config: Config;
  env: Record<string, string | undefined>;
  /** Epoch milliseconds. */
  now: () => number;
  /** The service of this installation, which may be this process; null: none runs. `instance`: the ID of its process; null: it doesn't answer. */
  service: { ownUrl: string; instance: string | null } | null;
  /** The workers of the service; null: agents run on this machine, or this isn't the service. */
  workers: WorkerStatus[] | null;
  /** The database; null: there is none, or it can't be used. */
  ctx: Context | null;
  /** The sandbox of this machine, detected once. */
  findSandbox: () => Promise<Sandbox>;
  /** By how many milliseconds the clocks of servers that answered are ahead, by host. The checks of connections fill it. */
  peerClocks: Map<string, number>;
  /** Aborted when the time limit of the check is reached. */
  signal: AbortSignal;
};

/** The installation to check, as far as the caller of `runChecks` knows it. */
export type Installation = Omit<CheckInput, "peerClocks" | "signal">;

/** A check of the installation. */
export type Check = {
  id: string;
  /** What it looks at, as the documentation says it. */
  looksAt: string;
  occasions: readonly CheckOccasion[];
  /** Time limit; default: 10 seconds. */
  timeoutMs?: number;
  /** Whether it runs after all others, because it uses what they found out. */
  isLast?: true;
  run: (input: CheckInput) => Finding | Finding[] | Promise<Finding | Finding[]>;
};
