import type { AgentEvent, AgentResources } from "../agents/agent.ts";
import type { CheckSecrets } from "../agents/check-secrets.ts";
import type { Task } from "../agents/task.ts";
import type { AllowRule } from "../config/allow-rules.ts";

/** One session of an agent: what it does and what it may use. Plain data. */
export type SessionOrder = {
  /** Unique for each attempt of a run. */
  id: string;
  /** ID of the agent. */
  agent: string;
  task: Task;
  /** Secrets for the success checks of the task. */
  checkSecrets: CheckSecrets;
  /** Private addresses that the run may reach. */
  allow: readonly AllowRule[];
  /** Labels that the worker must have. */
  labels: readonly string[];
  /** Access to the gateway; null: an agent without a model, which gets no sandbox either. */
  model: AgentResources["model"] | null;
  /** The archive that the workspace starts with. */
  archive: Uint8Array | null;
  /** The archive with its skills. */
  skillsArchive: Uint8Array | null;
  /** The archive with the site of the task. */
  site: Uint8Array | null;
  /** The login file of the agent. */
  login: Uint8Array | null;
  /** The token to fetch these files from the gateway, for an agent on another machine; null: there are no files. */
  filesToken: string | null;
};

/** Why an agent has not started yet. */
type WaitReason = {
  /** `worker`: no connected worker has what it needs. `slot`: every worker that has it is busy. */
  what: "worker" | "slot";
  agent: string;
  /** Whether it needs a sandbox. */
  sandbox: boolean;
  labels: readonly string[];
  /** After how many milliseconds from now it fails if it still waits; null: it waits without limit. */
  failsInMs: number | null;
};

/** The functions that an executor calls during a session, and the signal that ends the session. */
export type SessionHooks = {
  signal: AbortSignal;
  /** Called with secrets before an event can contain them. They must not appear in anything that is stored. */
  hide: (secrets: string[]) => void;
  /** Called with the events of the network proxy. */
  onEgress: (event: AgentEvent) => void;
  /** Called when the agent must wait, whenever the reason changes. */
  onWait: (reason: WaitReason) => void;
  /** Called when the agent starts, with its version on the machine where it runs. */
  onStart: (version: string) => void;
  /** Called when the agent has ended. Cleaning up may take longer. */
  onEnd: () => void;
};

/** Runs the processes of agents: on this machine, or on workers. */
export type Executor = {
  /**
   * Runs an agent and yields its events. The next event is made when the previous one was taken. Ends after `end` or throws an AgentFailure. By then,
   * nothing of the run is left.
   */
  run(order: SessionOrder, hooks: SessionHooks): AsyncIterable<AgentEvent>;
};
