import type { SessionEvent } from "../agents/agent.ts";
import { object } from "../agents/fields.ts";
import { type EventOf, type Http, hasFailed, isProbe, readingTools, successCheckTool } from "./events.ts";
import type { Hosts } from "./hosts.ts";
import { lineOrNull, normalizeUrl, oneLine } from "./text.ts";

/** A failure of the agent, counted once even if several events (`seqs`, the first one first) report it. `id`: of the call. */
export type Failure = {
  source: "request" | "tool" | "error";
  seqs: number[];
  id: string | null;
  /** The tool, or the source of an error. */
  tool: string | null;
  url: string | null;
  /** The agent's own name for the kind of failure, if any: "disallowed", "timeout". */
  code: string | null;
  message: string;
  /** The rule of a robots.txt that forbids the request. */
  rule?: RobotsRule | null;
  /** Its subject: a docs page, the product, or the agent's own machine. */
  target: "docs" | "product" | "local";
};

type RobotsRule = { url: string; line: number; text: string };

const normalizedUrl = (url: string | null) => (url === null ? null : normalizeUrl(url));

type Call = { seq: number; tool: string; url: string | null; method: string };
type Calls = Map<string, Call>;

/**
 * Each failure once: the failed requests of a call, its failed result and the error event for its URL are one failure. A URL that a tool probes on
 * its own and doesn't find is not a failure. `isModel`: the calls are those of a model. Then the requests of a call serve one purpose, and some of
 * them may send something. A call of the explorer reads pages, and each page counts by itself.
 */
export function failuresOf(events: SessionEvent[], hosts: Hosts, isModel: boolean): Failure[] {
  const failures: Failure[] = [];
  const calls: Calls = new Map();
  for (const event of events)
    if (event.type === "tool_call") {
      const { url, method } = event.input ?? {};
      const methodName = typeof method === "string" ? method : "GET";
      calls.set(event.id, { seq: event.seq, tool: event.tool, url: lineOrNull(url, 8000), method: methodName });
    }
  // A call that tests the docs doesn't fail when the docs fail the test. Requesting robots.txt first is not a test.
  const checkCallIds = new Set(
    events.flatMap((e) => (e.type === "http" && e.purpose === "check" && !isProbe(e) ? [e.id] : [])),
  );
  for (const event of events) {
    if (event.type === "http" && event.purpose === "task" && hasFailed(event) && !isProbe(event))
      addRequest(failures, event, hosts, isModel);
    // A success check that fails is nobody's error, least of all before the agent has started.
    if (event.type === "tool_result" && event.ok === false && event.tool !== successCheckTool)
      addResult(failures, event, calls, checkCallIds, hosts);
    // Failures between us and a model aren't the target's.
    if (event.type === "error" && event.source !== "gateway") addError(failures, event);
  }
  return failures;
}

function addRequest(failures: Failure[], event: Http, hosts: Hosts, isModel: boolean): void {
  const { id, url, status, error, seq } = event;
  // A request that sends something doesn't read a page, whatever its host.
  const isRead = /^(GET|HEAD|OPTIONS|CONNECT)$/i.test(event.method);
  const target = hosts.isProduct(event) || (isModel && !isRead) ? "product" : "docs";
  const existing = isModel && id !== null ? failures.find((each) => each.id === id) : undefined;
  if (existing) {
    existing.seqs.push(seq);
    if (target === "product") existing.target = target;
    return;
  }
  const answer = event.isMissing ? "its page says that it does not exist" : `status ${status}`;
  const message = oneLine(error?.message) || (status === null ? "no response" : answer);
  failures.push({ source: "request", seqs: [seq], id, tool: null, url, code: error?.kind ?? null, message, target });
}

function addResult(
  failures: Failure[],
  { seq, id, tool, output }: EventOf<"tool_result">,
  calls: Calls,
  checkCallIds: Set<string | null>,
  hosts: Hosts,
): void {
  const call = calls.get(id);
  const existing = failures.findLast((failure) => failure.id === id || (call && isOfCall(failure, call)));
  if (existing) {
    existing.seqs.push(seq);
    existing.code ??= lineOrNull(output?.problem);
    return;
  }
  if (checkCallIds.has(id)) return;
  const type = lineOrNull(output?.contentType);
  const message =
    oneLine(output?.message) ||
    oneLine(output?.error) ||
    oneLine(output?.problem) ||
    (type ? `content type ${type}` : "");
  const code = lineOrNull(output?.error) ?? lineOrNull(output?.problem) ?? (type ? "content_type" : null);
  const url = call?.url ?? null;
  const target = targetOf(tool, url, call?.method ?? "GET", hosts);
  const rule = robotsRuleIn(output?.rule);
  failures.push({ source: "tool", seqs: [seq], id, tool, url, code, message, rule, target });
}

function robotsRuleIn(value: unknown): RobotsRule | null {
  const { url, line, text } = object(value);
  return typeof url === "string" && typeof line === "number" && typeof text === "string" ? { url, line, text } : null;
}

/** Whether a failure that has no call ID belongs to a call: it is about the call's URL, and came after the call. */
const isOfCall = ({ url, seqs }: Failure, call: Call): boolean =>
  Boolean(call.url) && normalizedUrl(url) === normalizedUrl(call.url) && seqs[0]! > call.seq;

function targetOf(tool: string, url: string | null, method: string, hosts: Hosts): Failure["target"] {
  if (readingTools.includes(tool)) return "docs";
  if (url === null) return "local";
  return hosts.isProduct({ method, url }) ? "product" : "docs";
}

function addError(failures: Failure[], { seq, where, url, message }: EventOf<"error">): void {
  const text = oneLine(message);
  const existing = url && failures.findLast((each) => normalizedUrl(each.url) === normalizedUrl(url));
  if (existing) {
    existing.seqs.push(seq);
    if (existing.source === "tool") existing.message = text;
    return;
  }
  const target = url === null ? "local" : "docs";
  failures.push({ source: "error", seqs: [seq], id: null, tool: where, url, code: null, message: text, target });
}
