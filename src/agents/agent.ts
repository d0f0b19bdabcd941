import type { AllowRule } from "../config/allow-rules.ts";
import type { ModelProvider } from "../config/model-settings.ts";

/** How an agent came by an address. `guessed` is an address that nothing it had read contained. */
export const provenances = ["given", "llms.txt", "sitemap", "link", "search", "guessed"] as const;
export type Provenance = (typeof provenances)[number];

/** What a check speaks about. `discovery` and `page` are static checks of a docs site, the rest are of single things. */
const checkGroups = ["discovery", "page", "link", "sample", "contract", "declared"] as const;
export type CheckGroup = (typeof checkGroups)[number];

/** One statement about the target that was tested, whatever came of it. Every word of `quote` is the target's own. */
export type Check = {
  /** Kind of check, kebab-case: `llms-txt-exists`, `link-resolves`, `sample-parses`. */
  id: string;
  group: CheckGroup;
  /** `skip`: could not be tested here; it counts neither way. */
  status: "pass" | "warn" | "fail" | "skip";
  /** 0 to 1: how much of what was looked at is in order. 1 for pass, 0 for a plain fail. */
  share: number;
  /** How much it matters among the checks of its group, above 0. */
  weight: number;
  /** What it is about, the same in every run: an address, or an address and a digest of the sample. */
  subject: string;
  /** The page that a person would open to mend it. */
  url: string;
  /** Line in the text of that page, 1-based, where there is one. */
  line: number | null;
  message: string;
  fix: string | null;
  quote: string | null;
  /** Of a check of the survey: the answer to the goal depends on it. */
  needed?: true;
  /** A declared check that counts even if it held before the run. */
  invariant?: boolean;
};

/** Closed list of the event types of a session. */
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

/** A file that an agent made and the run keeps. `data`, in base64, is on its way to be kept; `missing` says why it was not. */
export type Artefact = { name: string; bytes: number; data?: string; missing?: string };

/** `survey`: seen after the search for the goal, to know what else is in the docs. It is no part of the agent's path and costs it nothing. */
type Phase = { phase?: "survey" };

/**
 * What an agent says while it works. `id` joins a tool's call, its http requests and its result.
 * Addresses are those that the agent knows; `mappedUrl` is where the urlMap sent the request, null if nowhere else.
 */
export type AgentEvent = Phase & Said;

type Said =
  | { type: "thought"; text: string; by: "rule" | "model" }
  /** `id`: of the call of a tool whose output it is, told while the tool works. */
  | { type: "message"; text: string; id?: string }
  | { type: "tool_call"; id: string; tool: string; input: Record<string, unknown> }
  | {
      type: "tool_result";
      id: string;
      tool: string;
      ok: boolean;
      output: Record<string, unknown>;
      checks?: Check[];
      artefact?: Artefact;
    }
  | {
      type: "http";
      id: string | null;
      method: string;
      url: string;
      mappedUrl: string | null;
      /** null: no answer came; `error` says why. */
      status: number | null;
      ms: number;
      bytes: number;
      /** What was sent as a body, or into a tunnel; 0 if left out. */
      bytesOut?: number;
      contentType: string | null;
      provenance: Provenance;
      /** The page on which the address stood, where it stood on one. */
      foundOn: string | null;
      /** `way`: on the way to the goal. `check`: to test a statement. `page`: by a page in the browser, for itself. */
      purpose: "way" | "check" | "page";
      error: { kind: string; message: string } | null;
      /** The first of what a host of the product answered, as text. */
      body?: string;
    }
  | {
      type: "usage";
      model: string;
      /** All of them, those from a cache included. */
      inputTokens: number;
      outputTokens: number;
      cachedTokens?: number;
      reasoningTokens?: number;
      costUsd: number | null;
      /** The attempt of the run that paid for it, where that is another than the session's: it was judged again. */
      paidBy?: number;
    }
  | { type: "error"; where: string; message: string; url: string | null; retryable: boolean }
  | { type: "interruption"; question: string; url: string | null }
  /** `near`: a word beforehand; nothing has ended. */
  | { type: "limit"; limit: string; value: number; unit: string; near?: true }
  | { type: "milestone"; name: MilestoneName; detail: Record<string, unknown> }
  | { type: "end"; outcome: Outcome; reason: string };

/**
 * `started` {agent, version, kind, model, goal, starts}; `page_read` {url, chars, form: "markdown" | "html", title};
 * `pages_listed` {by: "llms.txt" | "sitemap", at, urls: the first that stand there};
 * The service itself says, after an agent's end: `judging` {model, rubric, goal}, then `judged` {the same, answer} or `not_judged` {the same, reason}.
 * `goal_terms` {terms}; `section_matched` {url, heading, terms, hasSample};
 * `goal_answer` {state: "likely" | "unclear", sections: how many of `nearest` answer it together, nearest: at most three pages {url, title,
 * heading, line, share, headingShare, terms, missing, synonyms: {word, found}[], hasSample, clicks}, unseen: words that occur nowhere in what was
 * read, fit: 0 to 1, clicks: from the start page to the first of `nearest` over the links that were seen, null if none lead there, noSample, pages,
 * budget: what ended the search, wordings: {text, state, fit, url}[]}. Older sessions have `goal_covered` or `goal_not_covered` in its place.
 */
type MilestoneName =
  | "started"
  | "goal_terms"
  | "page_read"
  | "pages_listed"
  | "section_matched"
  | "goal_answer"
  | "goal_covered"
  | "goal_not_covered"
  | "judging"
  | "judged"
  | "not_judged";

/** Addresses of a list that are told, and characters of all of them: one event holds no more. */
const maxListed = { urls: 300, chars: 20_000 };

/** What an llms.txt or a sitemap names, to know later which pages nobody read. */
export function pagesListed(by: "llms.txt" | "sitemap", at: string, urls: string[]): AgentEvent {
  const first = [...new Set(urls.map((url) => url.replace(/#.*$/s, "")))].slice(0, maxListed.urls);
  while (first.join("").length > maxListed.chars) first.splice(first.length / 2);
  return { type: "milestone", name: "pages_listed", detail: { by, at, urls: first } };
}

/** A stored event: what the agent said, where in the session it stands and who vouches for it. */
export type SessionEvent = AgentEvent & { seq: number; at: number; tMs: number; source: EventSource };

/** A statement about the product that a machine can test, given with the prompt. */
/** `invariant`: it may hold before the run; any other counts only if it failed then. */
export type DeclaredCheck = { url: string; status?: number; contains?: string; invariant?: boolean };

/** A task, ready to be done: every variable is filled in, every limit is decided. */
export type Task = {
  text: string;
  endGoal: string | null;
  /** Where to begin, best first, without doubles; never empty. */
  startUrls: string[];
  /** Where the product itself is, apart from its docs. */
  productUrl: string | null;
  urlMap: Record<string, string>;
  declaredChecks: DeclaredCheck[];
  limits: TaskLimits;
};

type TaskLimits = {
  wallClockMs: number;
  idleMs: number;
  maxPages: number;
  maxRequests: number;
  memoryBytes: number;
  /** Of an agent with a model. */
  maxToolCalls: number;
  maxBytesOut: number;
  workspaceBytes: number;
  /** `costUsd` null: as much as the other two let it. */
  model: { calls: number; tokens: number; costUsd: number | null };
};

/** A unix socket of the service that takes the requests of one run. */
type WayOut = { path: string; token: string };

/** What the service opened for one run of an agent with a model. The tokens are worth nothing once the run is over. */
export type Means = {
  model: { id: string; provider: ModelProvider; name: string; socketPath: string; token: string };
  /** What commands are kept in; `missing` says why there are none. */
  sandbox: { workspace: string; egress: WayOut } | { missing: string };
  /** The browser, with a way out of its own. */
  browser: { program: string; egress: WayOut } | { missing: string };
  /** Hosts that the operator lets every run reach. */
  operatorHosts: readonly string[];
};

/** What surrounds an agent at work. All but `signal` and `now` is data, so that it reaches an agent in another process. */
export type AgentContext = {
  signal: AbortSignal;
  now: () => number;
  /** When the run began: its wall clock counts from there. */
  startedAt: number;
  /** Private places that the run may reach. */
  allow: readonly AllowRule[];
  userAgent: string;
  /** null: the agent has no model. */
  means: Means | null;
};

/** Something that an agent needs of this machine or of the settings, and whether it is here; `detail` says where, or what to do. */
type Need = { what: string; isHere: boolean; detail: string };

type AgentDescription = {
  id: string;
  version: string;
  model: string | null;
  /** `rules` grade less than `model`: they never claim that a goal was met. */
  kind: "rules" | "model";
};

/**
 * An agent that can be sent to do a task. `run` ends with one `end` event, or throws an AgentFailure; once the signal is aborted it ends
 * soon, and nothing of it is left.
 */
export type Agent = {
  describe(): AgentDescription;
  /** What it needs beside the service itself. */
  preflight(): Need[];
  run(task: Task, context: AgentContext): AsyncIterable<AgentEvent>;
};

export const failureCauses = [
  "timeout",
  "budget",
  "credentials",
  "infrastructure",
  "agent_crashed",
  "cancelled",
] as const;
export type FailureCause = (typeof failureCauses)[number];

/** Why an evaluation could not be made: its cause and a sentence for a person. */
export type Failure = { cause: FailureCause; detail: string };

/** What kept the evaluation itself from being made. */
export class AgentFailure extends Error {
  override readonly name = "AgentFailure";
  constructor(
    readonly failureCause: FailureCause,
    readonly detail: string,
    readonly options: { retryable: boolean; retryAfterMs?: number } = { retryable: false },
  ) {
    super(`${failureCause}: ${detail}`);
  }
}

/** What keeps an agent from being sent from here, in words; null if nothing does. */
export function objectionTo(agent: Agent): string | null {
  const missing = agent.preflight().filter(({ isHere }) => !isHere);
  return missing.length === 0 ? null : missing.map(({ what, detail }) => `${what}: ${detail}`).join("; ");
}

/** The addresses from which the hosts follow that a run may reach. */
export const addressesOf = ({ startUrls, productUrl, declaredChecks }: Task) => ({
  docsAddresses: startUrls,
  addresses: [...(productUrl ? [productUrl] : []), ...declaredChecks.map(({ url }) => url)],
});

/** Whether an agent goes by rules alone: on the same docs it does the same again, so that one run says all. */
export const isRuleBased = (agentId: string): boolean => agentId === "explorer";
