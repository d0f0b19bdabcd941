import type { SessionEvent } from "../agents/agent.ts";
import type { MilestoneName } from "../agents/milestones.ts";

/** The event of a type. */
export type EventOf<T extends SessionEvent["type"]> = Extract<SessionEvent, { type: T }>;
/** The milestone of a name. */
export type MilestoneOf<Name extends MilestoneName> = Extract<SessionEvent, { type: "milestone"; name: Name }>;

/** The tool name under which the service reports the results of success checks. */
export const successCheckTool = "check_declared";

/** Tools with which agents read docs. */
export const readingTools: readonly string[] = ["fetch_page", "open_page", "search_docs"];

/** The milestones of one name, in order. */
export const milestonesOf = <Name extends MilestoneName>(events: SessionEvent[], name: Name): MilestoneOf<Name>[] =>
  events.filter((event): event is MilestoneOf<Name> => event.type === "milestone" && event.name === name);

/**
 * `isAgentsOwn`: the agent itself requested this URL, rather than a tool on its own. `isMissing`: the response says that there is no such page,
 * even if its status is 200.
 */
export type Http = EventOf<"http"> & { isAgentsOwn?: boolean; isMissing?: boolean };

/** Whether a request failed: it got no response or an error status, or its page says that there is no such page. */
export const hasFailed = (http: Http) => http.status === null || http.status >= 400 || http.isMissing === true;

/** Whether there is no page at the URL of a request. */
export const isNotFound = ({ status, isMissing }: Http) => status === 404 || status === 410 || isMissing === true;

/** Whether a response redirects. */
export const isRedirect = ({ status }: Http) => status !== null && status >= 300 && status < 400;

/** Probes for a convention of a site. The discovery checks grade the result, so a missing file costs nothing more. */
export function isProbe(http: Http): boolean {
  if (http.isAgentsOwn) return false;
  const path = URL.parse(http.url)?.pathname ?? "";
  return http.provenance === "guessed" && /\/(llms(-full)?|robots)\.txt$|\/sitemap[^/]*\.xml$|\.mdx?$/i.test(path);
}

/** Whether a tool call succeeded; null: unknown. The exit code or status takes precedence over the agent's own result. */
export function hasSucceeded({ ok, output }: EventOf<"tool_result">): boolean | null {
  const { exitCode, status } = output ?? {};
  const isFailure = (typeof exitCode === "number" && exitCode !== 0) || (typeof status === "number" && status >= 400);
  return isFailure ? false : ok;
}
