import type { effortLevels, permissionModes } from "../config/agent-entry.ts";
import type { Edits } from "../net/edits.ts";
import type { Basis } from "./basis.ts";
import type { SiteHost } from "./site/host-rules.ts";

/** Methods of the request of a success check. */
export const checkMethods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"] as const;

/**
 * A success check, given with the prompt: an HTTP request to `url`, a command in the workspace, or a file in it.
 * Exactly one of the three is set. `invariant`: it may pass before the run; any other check counts only if it failed before the run.
 */
export type DeclaredCheck = {
  url?: string;
  command?: string;
  file?: string;
  /** Default: GET. */
  method?: (typeof checkMethods)[number];
  headers?: Record<string, string>;
  body?: string;
  status?: number;
  json?: JsonExpectation;
  /** Further environment variables of the command. */
  env?: Record<string, string>;
  exitCode?: number;
  contains?: string;
  invariant?: boolean;
};

/** A value in the JSON of a response, by its JSON Pointer (RFC 6901). `equals` absent: any value. `exists` false: there must be none. */
export type JsonExpectation = { pointer: string; equals?: string | number | boolean | null; exists?: boolean };

/** What the workspace of an agent holds when it starts, given with the prompt. At most one of `archive` and `repository` is set. */
export type WorkspaceSetup = {
  /** ID of an uploaded archive whose files are unpacked. */
  archive?: string;
  /** Git repository whose files are checked out at a branch, tag or commit. */
  repository?: { url: string; ref: string };
  /** Shell command that runs in the workspace before the agent. */
  setup?: string;
  /** Environment variables of the commands; not secret. */
  env?: Record<string, string>;
  /** Content of AGENTS.md. */
  instructions?: string;
  /** Directories with a SKILL.md: an uploaded archive, or a folder of the workspace. Exactly one is set. */
  skills?: { archive?: string; folder?: string };
  mcpServers?: Record<string, McpServer>;
};

/** An MCP server for the agent: a remote one, or a command that speaks MCP over stdio. Exactly one of `url` and `command` is set. */
export type McpServer = { url?: string; command?: string; args?: string[]; env?: Record<string, string> };

/** Settings of a coding agent, given with the prompt. Each is only for agents that have it. */
export type AgentOptions = {
  /** Further arguments at the end of its command line. */
  args?: string[];
  /** Further environment variables; not secret. */
  env?: Record<string, string>;
  effort?: (typeof effortLevels)[number];
  /** Instructions that are added to its own. */
  systemPrompt?: string;
  /** Default: `allow`. */
  permissions?: (typeof permissionModes)[number];
  /** Search at the provider of the model. Default: false. */
  webSearch?: boolean;
  /** Use the organization's login instead of an API key. Default: false. */
  login?: boolean;
};

/** A built docs site in an archive, which the run reads in place of the live one. */
export type TaskSite = {
  /** The URL that it is published at. */
  at: string;
  /** The host whose rules apply; null: the host that the site's files name. */
  host: SiteHost | null;
  archiveId: string;
  /** The host name that the urlMap leads to. It exists only within the run. */
  hostname: string;
  /** `markdown`: sources of docs, without any page that a build made. Known once it is served. */
  form?: "html" | "markdown";
};

/**
 * What the explorer does instead of looking for the goal. It reads the docs, the API description at `apiUrl`, and the list of tools of the MCP server
 * at `mcpUrl`. With "checks", it only runs the success checks, as before a run.
 */
export type ReadingTask = { apiUrl: string | null; mcpUrl: string | null } | "checks";

/** A task that is ready to run: variables are filled in and limits are set. */
export type Task = {
  text: string;
  endGoal: string | null;
  /** Other wordings of the end goal. What each wording finds is compared. */
  wordings?: string[];
  /** The text that the task rests on, if it was proposed from docs. */
  basis?: Basis;
  /** Only for the explorer. */
  reading?: ReadingTask;
  /** Where to start, best first, without duplicates; never empty. */
  startUrls: string[];
  /** URL of the product, as opposed to its docs. */
  productUrl: string | null;
  urlMap: Record<string, string>;
  site?: TaskSite;
  edits?: Edits;
  declaredChecks: DeclaredCheck[];
  workspace?: WorkspaceSetup;
  agentOptions?: AgentOptions;
  limits: TaskLimits;
};

/** The limits of one run. */
export type TaskLimits = {
  wallClockMs: number;
  idleMs: number;
  maxPages: number;
  maxRequests: number;
  memoryBytes: number;
  /** For agents with a model. */
  maxToolCalls: number;
  maxBytesOut: number;
  workspaceBytes: number;
  /** `costUsd` null: no limit beyond the other two. */
  model: { calls: number; tokens: number; costUsd: number | null };
};

/** The URLs that determine which hosts a run may reach. */
export const hostUrlsOf = ({ startUrls, productUrl, declaredChecks, workspace }: Task) => ({
  docsUrls: startUrls,
  urls: [
    ...(productUrl ? [productUrl] : []),
    ...declaredChecks.flatMap(({ url }) => url ?? []),
    ...mcpUrlsOf(workspace),
  ],
});

/** The URLs of the remote MCP servers of a workspace. */
export const mcpUrlsOf = (workspace: WorkspaceSetup | undefined): string[] =>
  Object.values(workspace?.mcpServers ?? {}).flatMap(({ url }) => url ?? []);
