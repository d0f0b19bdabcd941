import type { SessionEvent } from "../agents/agent.ts";

export type EventOf<T extends SessionEvent["type"]> = Extract<SessionEvent, { type: T }>;
/** `asked`: the agent named this address itself; a tool did not look for it on its own. */
export type Http = EventOf<"http"> & { asked?: boolean };

export const failed = (http: Http) => http.status === null || http.status >= 400;

export const isHop = ({ status }: Http) => status !== null && status >= 300 && status < 400;

/** Looking whether the site keeps a convention; the discovery checks grade the answer, so the miss costs nothing more. */
export function isProbe(http: Http): boolean {
  if (http.asked) return false;
  const path = URL.parse(http.url)?.pathname ?? "";
  return http.provenance === "guessed" && /\/(llms(-full)?|robots)\.txt$|\/sitemap[^/]*\.xml$|\.mdx?$/i.test(path);
}

/** Whether a tool did what it was called for: what a command or a server said goes before what the agent made of it. */
export function hasWorked({ ok, output }: EventOf<"tool_result">): boolean {
  const { exitCode, status } = output ?? {};
  const hasFailed = (typeof exitCode === "number" && exitCode !== 0) || (typeof status === "number" && status >= 400);
  return ok && !hasFailed;
}
