import type { WrongCharset } from "../../net/charset.ts";
import type { AgentContext, AgentEvent, Check } from "../agent.ts";
import type { Page } from "../page.ts";
import type { Task } from "../task.ts";
import type { Fetcher, Log } from "./fetching.ts";
import type { Term } from "./goal.ts";
import type { LinkGraph } from "./link-graph.ts";

/** A page that was read. */
export type ReadPage = Page & {
  /** All of its URLs: the URL that was requested and the URL that responded. */
  addresses: string[];
  delivery: {
    contentType: string | null;
    wrongCharset: WrongCharset | null;
    /** Pages that sent their reader here by their content, not by a redirect status. */
    followed: string[];
    /** Whether programs may fail to read it, because of its nested elements. */
    isTooDeep: boolean;
  };
};

/** An llms.txt or a sitemap, with its text and entries. */
export type Listing = {
  url: string;
  kind: "llms.txt" | "sitemap";
  text: string;
  /** `context`: the description of an entry of llms.txt. */
  links: { url: string; text: string; context?: string }[];
};

/** What an llms.txt says about its entries. */
export const describedLinks = ({ kind, links }: Listing): { url: string; text: string }[] =>
  kind === "llms.txt" ? links.map(({ url, text, context = "" }) => ({ url, text: `${text} ${context}` })) : [];

/** What the tools of a session need. */
export type ToolSession = { task: Task; context: AgentContext; fetcher: Fetcher; nextId(): string };

/** State shared by the parts of one exploration. */
export type Session = ToolSession & {
  terms: Term[];
  /** The terms of each thing that the goal requires. */
  goalParts: Term[][];
  /** In reading order, including pages with problems. */
  pages: ReadPage[];
  /** Pages read by the survey after the search; none of them is in `pages`. */
  surveyed: ReadPage[];
  listings: Listing[];
  graph: LinkGraph;
  /** Origins whose pages may be read: the origins of the start URLs and the urlMap, and origins to which a start URL redirected. */
  origins: Set<string>;
  /** For each origin, the folders of the docs that contain a start page that was read. */
  docsFolders: Map<string, Set<string>>;
  /** URLs of the pages on which the answer depends, as they were requested. */
  neededUrls: Set<string>;
  /** Pages that were read, but don't show what they have to say. */
  incompletePages: Set<ReadPage>;
  /** What each origin shows for a page that doesn't exist, if with a success status. */
  missingPages: Map<string, Page>;
};

/** What ended the search: an answer, a goal without words, the limit with this name, or `links`: no link was left to follow. */
export type SearchEnd = "found" | "no_words" | "pages" | "requests" | "wall_clock" | "links";

/** The events of some steps of the explorer, and their result. */
export type Steps<T = void> = AsyncGenerator<AgentEvent, T>;

/** Result of a tool: `output` goes into the session, `value` is for the next steps. */
type ToolResult<T> = {
  ok: boolean;
  output: Record<string, unknown>;
  checks?: Check[];
  laterEvents?: AgentEvent[];
  value: T;
};

/** The weight of a check that finds a fault of one page: the same as most checks of the whole site. */
export const faultWeight = 4;

/** A check. By default, its subject is its URL, its weight is 1, and its share is 1 if it passed, or else 0. */
export const toCheck = (
  fields: Partial<Check> & Pick<Check, "id" | "group" | "status" | "subject" | "message">,
): Check => ({
  share: fields.status === "pass" ? 1 : 0,
  weight: 1,
  url: fields.subject,
  line: null,
  fix: null,
  quote: null,
  ...fields,
});

/** Maximum size of the checks in one event, in JSON. */
const maxCheckChars = 16_000;

/** A thought of the explorer, which its rules wrote. */
export const thoughtEvent = (text: string): AgentEvent => ({ type: "thought", text, by: "rule" });

/**
 * Runs a tool, and yields its call, the events of its work and its result. Checks that don't fit into one event are
 * split over further calls.
 */
export async function* useTool<T>(
  session: ToolSession,
  tool: string,
  input: Record<string, unknown>,
  work: (log: Log) => Promise<ToolResult<T>>,
): Steps<T> {
  const id = session.nextId();
  yield { type: "tool_call", id, tool, input };
  const log: Log = { id, events: [] };
  const { ok, output, checks = [], laterEvents = [], value } = await work(log);
  yield* log.events;
  const [first = [], ...rest] = splitChecks(checks.map(trimCheck));
  yield { type: "tool_result", id, tool, ok, output, ...(first.length > 0 && { checks: first }) };
  for (const [index, part] of rest.entries()) {
    const partId = session.nextId();
    yield { type: "tool_call", id: partId, tool, input: { ...input, part: index + 2 } };
    yield { type: "tool_result", id: partId, tool, ok, output: { part: index + 2 }, checks: part };
  }
  yield* laterEvents;
  return value;
}

function splitChecks(checks: Check[]): Check[][] {
  const parts: Check[][] = [];
  // The size starts as if a part were full, so that the first check begins a new part.
  let size = maxCheckChars;
  for (const check of checks) {
    const length = JSON.stringify(check).length;
    if (size + length > maxCheckChars) {
      parts.push([]);
      size = 0;
    }
    parts.at(-1)?.push(check);
    size += length;
  }
  return parts;
}

const trimCheck = (check: Check): Check => ({
  ...check,
  message: cut(check.message, 500),
  fix: check.fix && cut(check.fix, 500),
  quote: check.quote && cut(check.quote, 300),
  subject: cut(check.subject, 1000),
  url: cut(check.url, 1000),
});

/** The first `max` characters of a text, without splitting a character. */
export const cut = (text: string, max: number): string =>
  text.length <= max ? text : `${text.slice(0, max - 1).replace(/[\ud800-\udbff]$/, "")}…`;

/** The event of an error. `where`: what failed. `retryable`: whether the same may succeed later. */
export const errorEvent = (where: string, message: string, url: string | null, retryable: boolean): AgentEvent => ({
  type: "error",
  where,
  message,
  url,
  retryable,
});

/** Runs `work` on every item, at most `concurrency` at a time. Each item gets its own log. The logs are returned in the order of the items. */
export async function mapInOrder<I, O>(
  items: I[],
  concurrency: number,
  log: Log,
  work: (item: I, log: Log) => Promise<O>,
): Promise<O[]> {
  const results: O[] = new Array(items.length);
  const logs: Log[] = items.map(() => ({ id: log.id, events: [] }));
  let next = 0;
  const worker = async () => {
    for (let i = next++; i < items.length; i = next++) results[i] = await work(items[i]!, logs[i]!);
  };
  await Promise.all(Array.from({ length: Math.min(concurrency, items.length) }, worker));
  for (const itemLog of logs) log.events.push(...itemLog.events);
  return results;
}

/** Extensions of files that aren't pages: pictures and other media, fonts, code and data, archives, documents, programs, and signatures. */
const otherExtensions = [
  "png|jpe?g|gif|svg|webp|avif|ico|bmp|mp[34]|webm|mov|wav",
  "woff2?|ttf|otf|eot",
  "css|m?js|map|json|ya?ml|toml|xml|rss|atom|csv",
  "zip|t?gz|tar|bz2|xz|zst|7z|iso",
  "pdf|ps|epub",
  "exe|msi|dmg|deb|rpm|jar|whl|so|dll|wasm|bin",
  "sig|asc|sha\\d+",
];
/** Files that aren't pages: they are checked for existence, but not read. */
const nonPageFile = new RegExp(`\\.(${otherExtensions.join("|")})$`, "i");

/** The source of a page that Sphinx publishes beside it. It has the same content in a markup that few readers know. */
const pageSource = /\/_sources\/.+\.txt$/;

/** Whether a URL may be a page to read during the search. */
export function mayBePage(address: string, origins: Set<string>): boolean {
  if (!URL.canParse(address)) return false;
  const url = new URL(address);
  return (
    /^https?:$/.test(url.protocol) &&
    origins.has(url.origin) &&
    ![nonPageFile, pageSource].some((other) => other.test(url.pathname))
  );
}
