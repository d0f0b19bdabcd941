import type { LoginEntry } from "../config/agent-entry.ts";
import type { AllowRule } from "../config/allow-rules.ts";
import type { ModelProvider } from "../config/model-settings.ts";
import { reasonOf } from "../errors.ts";
import type { PageEdit } from "../net/edits.ts";
import type { CheckSecrets } from "./check-secrets.ts";
import { type EndingName, endings } from "./endings.ts";
import { type FailedCode, type Failure, failureRules, toFailure } from "./failure.ts";
import type { Milestone, UnreadableMilestone } from "./milestones.ts";
import type { AgentOptions, Task } from "./task.ts";

/** How an agent found a URL. `guessed`: nothing that it had read contained it. */
export const provenances = ["given", "llms.txt", "sitemap", "link", "search", "guessed"] as const;
export type Provenance = (typeof provenances)[number];

/** What a check is about. `discovery` and `page` are static checks of a docs site, the others are about single things. */
const checkGroups = ["discovery", "page", "link", "sample", "contract", "declared"] as const;
export type CheckGroup = (typeof checkGroups)[number];

/** One result about the target under test, passed or failed. Everything in `quote` is copied from the target. */
export type Check = {
  /** Kind of check in kebab-case: `llms-txt-exists`, `link-resolves`, `sample-parses`. */
  id: string;
  group: CheckGroup;
  /** `skip`: could not be tested here, so it doesn't count. */
  status: "pass" | "warn" | "fail" | "skip";
  /** 0 to 1: the share of the tested items that are fine. 1 for a pass, 0 for a plain failure. */
  share: number;
  /** Weight among the checks of its group, above 0. */
  weight: number;
  /** What it is about, identical in every run: a URL, or a URL and a digest of the sample. */
  subject: string;
  /** The page to open to fix it. */
  url: string;
  /** Line in the text of that page, 1-based, if known. */
  line: number | null;
  message: string;
  fix: string | null;
  quote: string | null;
  /** For checks of the survey: whether the answer to the goal depends on it. */
  needed?: true;
  /** A success check that counts even if it passed before the run. */
  invariant?: boolean;
};

/** All event types of a session. */
export const eventTypes = [
  "thought",
  "message",
  "tool_call",
  "tool_result",
  "http",
  "usage",
  "error",
  "interruption",
  "limit",
  "milestone",
  "end",
] as const;
export type EventType = (typeof eventTypes)[number];

export const eventSources = ["agent", "gateway", "egress", "runner"] as const;
export type EventSource = (typeof eventSources)[number];

export const outcomes = ["succeeded", "goal_not_met", "not_judged", "no_creds", "excluded", "scoring_failed"] as const;
export type Outcome = (typeof outcomes)[number];

/** Characters of a page that a session keeps, at most. */
export const maxPageTextChars = 100_000;

/** Maximum size of the output of a coding agent that an attempt keeps. */
export const maxAgentOutputBytes = 2 * 1024 * 1024;

/** A file that an agent created and the run keeps. `data` is base64 and not stored yet; `missing` says why it was not kept. */
export type Artifact = { name: string; bytes: number; data?: string; missing?: string };

/**
 * `survey`: happened after the search for the goal, to check the rest of the docs. It isn't part of the agent's path
 * and doesn't affect its score.
 */
type Phase = { phase?: "survey" };

/** `subagent`: ID of the call with which the agent started the subagent that reports this event; absent: the agent itself reports it. */
type Author = { subagent?: string };

/**
 * What an agent reports while it works. `id` links a tool call with its HTTP requests and its result. URLs are as the
 * agent sees them; `mappedUrl` is the URL after the urlMap, null if unchanged.
 */
export type AgentEvent = Phase & Author & EventFields;

type EventFields =
  | { type: "thought"; text: string; by: "rule" | "model" }
  /** `id`: ID of the tool call whose output this is, sent while the tool runs. */
  | { type: "message"; text: string; id?: string }
  /** `ownName`: what the agent itself calls the tool, where that is another name. */
  | { type: "tool_call"; id: string; tool: string; input: Record<string, unknown>; ownName?: string }
  | {
      type: "tool_result";
      id: string;
      tool: string;
      /** null: the agent does not say whether the call succeeded. An unknown exit code in `output` is null as well. */
      ok: boolean | null;
      output: Record<string, unknown>;
      ownName?: string;
      checks?: Check[];
      artifact?: Artifact;
    }
  | {
      type: "http";
      id: string | null;
      method: string;
      url: string;
      mappedUrl: string | null;
      /** The URL that responded, if redirects led there. */
      answeredBy?: string;
      /** null: no response; see `error`. */
      status: number | null;
      ms: number;
      bytes: number;
      /** Bytes of the request body, or sent into a tunnel; 0 if omitted. */
      bytesOut?: number;
      contentType: string | null;
      provenance: Provenance;
      /** The page that contained the URL, if any. */
      foundOn: string | null;
      /** `task`: part of the task. `check`: to verify something. `page`: sent by a page in the browser. `mcp`: to an MCP server of the workspace. */
      purpose: "task" | "check" | "page" | "mcp";
      error: { kind: string; message: string } | null;
      /** The start of the response body of a product host, as text. For a WebSocket, the start of what the server sent. */
      body?: string;
      /** What the edits of the run did to the response; absent: nothing. */
      edit?: PageEdit;
      /** What was sent to a product host: the header lines and the body, as text; left out if it isn't text or is too long. */
      sent?: string;
    }
  | {
      type: "usage";
      model: string;
      /** All input tokens, including cached ones. */
      inputTokens: number;
      outputTokens: number;
      cachedTokens?: number;
      /** Input tokens that were written to the provider's cache, and how many of them are kept for an hour; absent: none. */
      cacheWrittenTokens?: number;
      cacheWrittenForHourTokens?: number;
      reasoningTokens?: number;
      /** null: unknown. */
      costUsd: number | null;
      /**
       * What counts towards limits if the response was cut or did not report its usage: the usage reported until then or, without any, tokens
       * estimated from the lengths of request and response.
       */
      estimate?: { inputTokens: number; outputTokens: number; costUsd: number | null };
      /** The attempt of the run that paid for the call, if it isn't the session's own. This happens when a session is judged again. */
      paidBy?: number;
    }
  | { type: "error"; where: string; message: string; url: string | null; retryable: boolean }
  | { type: "interruption"; question: string; url: string | null }
  /** `near`: a warning; nothing was stopped. */
  | { type: "limit"; limit: string; value: number; unit: string; near?: true }
  /** `pageText`: the text of a page that was read, which is stored apart from the event. */
  | (Milestone & { artifact?: Artifact; pageText?: string })
  | UnreadableMilestone
  /** `ending`: how a session of an agent with a model ended; see `endings`. */
  | { type: "end"; outcome: Outcome; reason: string; ending?: EndingName };

/** A stored event: the agent's event, its position in the session, and its source. */
export type SessionEvent = AgentEvent & { seq: number; at: number; tMs: number; source: EventSource };

/** A unix socket of the service that accepts the requests of one run. */
export type EgressSocket = { path: string; token: string };

/**
 * The folder of a run. `holder`: ID of a process in whose mount namespace a file system of limited size is mounted at `path`; null: an
 * ordinary folder, whose size is watched.
 */
export type Workspace = { path: string; holder: number | null };

/** The sandbox for commands. The agent opens a relay to the egress proxy in `folder`. The service removes that folder after the run. */
export type SandboxResources = {
  workspace: Workspace;
  folder: string;
  egress: EgressSocket;
  /** Path of the archive that the workspace starts with. */
  archive: string | null;
  /** Path of the archive with its skills. */
  skillsArchive: string | null;
  /** Path of the login file of the agent. */
  login: string | null;
  /** Network access of the workspace's setup, and of checks with secrets. Its requests are no part of the session. null: they have none. */
  setupEgress: EgressSocket | null;
};

/** What the service provides to one run of an agent with a model. The tokens expire with the run. */
export type AgentResources = {
  model: { id: string; provider: ModelProvider; name: string; socketPath: string; token: string };
  /** The sandbox for commands; `missing` says why there is none. */
  sandbox: SandboxResources | { missing: string };
  /** The browser, with its own proxy session. */
  browser: { program: string; egress: EgressSocket } | { missing: string };
  /** Hosts that the operator allows for every run. */
  operatorHosts: readonly string[];
};

/** The environment of a running agent. Everything but its functions and `signal` is plain data, so it can be sent to another process. */
export type AgentContext = {
  signal: AbortSignal;
  now: () => number;
  /** The time limit of the run counts from here: the start of the run or, once an agent with a model has begun to work, the time when it began. */
  startedAt: number;
  /** Private addresses that the run may reach. */
  allow: readonly AllowRule[];
  /** null: the agent has no model. */
  resources: AgentResources | null;
  /** Secrets for the success checks of the task, which nothing else of a session may see. Absent: there are none. */
  checkSecrets?: CheckSecrets;
  /**
   * The open network access of the agent itself: tunnels to any host at an address that the run may reach. Absent: its process connects without a
   * proxy.
   */
  egress?: EgressSocket;
  /** For an agent in a process of its own, which has no network: called before the process starts, which then gets the result as `egress`. */
  openEgress?: () => Promise<EgressSocket & { close(): void }>;
};

/** Parts of a workspace that not every agent can use. */
export const optionalParts = ["skills", "mcpServers"] as const;
export type OptionalPart = (typeof optionalParts)[number];

/**
 * A requirement of an agent, and whether this machine or the settings meet it. `detail`: where it was found, or what to do. `install`: the command
 * that installs it, if nothing else is wrong.
 */
type Need = { what: string; isMet: boolean; detail: string; install?: string };

/** The values of each option that an agent has; null: any value. */
export type SupportedOptions = Partial<Record<keyof AgentOptions, readonly string[] | null>>;

/** What an agent says about itself. */
export type AgentDescription = {
  id: string;
  version: string;
  model: string | null;
  /** `rules` agents report less than `model` agents: they never claim that a goal was met. */
  kind: "rules" | "model";
  /** Providers whose models it can use. Default: all. */
  providers?: readonly ModelProvider[];
  /** Parts of a workspace that it cannot use. Default: none. */
  lacks?: readonly OptionalPart[];
  /** The options of a prompt that it has, each with its values; null: any value. Default: none. */
  options?: SupportedOptions;
  /** Hosts of its vendor that it needs. Their requests are no part of a session. */
  hosts?: readonly string[];
  /** How it works with the login of a person. Default: it cannot. */
  login?: LoginEntry;
  /** Hosts of its vendor that it works without. Their requests are refused, and no part of a session. */
  blockedHosts?: readonly string[];
  /** Memory that a usual session needs. Its runs get at least this much, unless their prompt sets a limit. */
  memoryBytes?: number;
  /** Tokens of instructions and tools in its first request to a model. Default: unknown. */
  firstRequestTokens?: number;
};

/** An agent. `run` ends with one `end` event or throws an AgentFailure. After the signal aborts, it ends soon and leaves nothing behind. */
export type Agent = {
  describe(): AgentDescription;
  /** What it requires besides the service. */
  preflight(): Need[];
  run(task: Task, context: AgentContext): AsyncIterable<AgentEvent>;
};

/** `ending`: how the session ended, if it is known. `subject`: what the failure is about, such as an address. */
export type FailureOptions = { retryable: boolean; retryAfterMs?: number; ending?: EndingName; subject?: string };

/** Thrown when a run fails, which says nothing about the target. */
export class AgentFailure extends Error {
  override readonly name = "AgentFailure";
  constructor(
    readonly code: FailedCode,
    readonly detail: string,
    readonly options: FailureOptions = { retryable: false },
  ) {
    super(`${failureRules[code].cause}: ${detail}`);
  }

  get failure(): Failure {
    return toFailure(this.code, this.detail, this.options.subject);
  }
}

/** The endings with which a run can fail. */
export type FailingEnding = {
  [Name in EndingName]: (typeof endings)[Name]["failure"] extends null ? never : Name;
}[EndingName];

/** The failure of a run whose session ended like this. `code`: a more precise code than the code of the ending, if there is one. */
export function toAgentFailure(
  ending: FailingEnding,
  detail: string,
  { code, ...facts }: { code?: FailedCode | undefined; subject?: string; retryAfterMs?: number } = {},
): AgentFailure {
  const rule = endings[ending].failure;
  return new AgentFailure(code ?? rule.code, detail, { retryable: rule.retry !== "never", ending, ...facts });
}

/** Whether the operating system has no space for a file. */
export const isDiskFull = (error: unknown): boolean =>
  /^(ENOSPC|EDQUOT)$/.test(String((error as { code?: unknown })?.code));

/** Runs a step whose failure says nothing about the target. Its failure becomes a retryable AgentFailure that begins with `problem`. */
export async function runInfrastructureStep<T>(
  code: FailedCode,
  problem: string,
  step: () => T | Promise<T>,
): Promise<T> {
  try {
    return await step();
  } catch (error) {
    throw new AgentFailure(isDiskFull(error) ? "disk_full" : code, `${problem}: ${reasonOf(error)}`, {
      retryable: true,
    });
  }
}

/** Whether an agent is purely rule-based: on the same docs it always does the same, so one run is enough. */
export const isRuleBased = (agentId: string): boolean => agentId === "explorer";
