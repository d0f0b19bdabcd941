import type { AgentContext, AgentEvent, Check, Task } from "../agent.ts";
import type { Page } from "../page.ts";
import type { Fetching, Log } from "./fetching.ts";
import type { Term } from "./goal.ts";
import type { LinkGraph } from "./link-graph.ts";

/** A page that was read, and where its address came from. */
export type ReadPage = Page & {
  /** Every address under which it is known: the one asked for and the one that answered. */
  addresses: string[];
};

/** An llms.txt or a sitemap with its text and what it names. */
export type Listing = { at: string; by: "llms.txt" | "sitemap"; text: string; links: { url: string; text: string }[] };

/** What the parts of one exploration share. */
export type Session = {
  task: Task;
  context: AgentContext;
  fetching: Fetching;
  terms: Term[];
  /** How many things the goal asks for. */
  parts: number;
  /** In the order in which they were read, those with problems included. */
  pages: ReadPage[];
  /** Pages that were read after the search, to look around; none of them is in `pages`. */
  surveyed: ReadPage[];
  listed: Listing[];
  graph: LinkGraph;
  /** Origins whose pages may be read: those of the starts, of the urlMap and those to which a start redirected. */
  origins: Set<string>;
  nextId(): string;
};

/** What ended the search for the answer. */
export type Ended = "found" | "no_words" | "pages" | "requests" | "wall_clock" | "links";

export type Steps<T = void> = AsyncGenerator<AgentEvent, T>;

/** What came of a tool: `output` is small evidence, `value` is for the steps that follow. */
export type Done<T> = {
  ok: boolean;
  output: Record<string, unknown>;
  checks?: Check[];
  after?: AgentEvent[];
  value: T;
};

/** Characters of JSON that the checks of one event may take. */
const maxChecks = 16_000;

export const thought = (text: string): AgentEvent => ({ type: "thought", text, by: "rule" });

/** Uses a tool: its call, what it caused and its result as events. Checks that are too many for one event go into further calls. */
export async function* useTool<T>(
  session: Pick<Session, "nextId">,
  tool: string,
  input: Record<string, unknown>,
  work: (log: Log) => Promise<Done<T>>,
): Steps<T> {
  const id = session.nextId();
  yield { type: "tool_call", id, tool, input };
  const log: Log = { id, events: [] };
  const { ok, output, checks = [], after = [], value } = await work(log);
  yield* log.events;
  const [first = [], ...rest] = toParts(checks.map(trimmed));
  yield { type: "tool_result", id, tool, ok, output, ...(first.length > 0 && { checks: first }) };
  for (const [index, part] of rest.entries()) {
    const partId = session.nextId();
    yield { type: "tool_call", id: partId, tool, input: { ...input, part: index + 2 } };
    yield { type: "tool_result", id: partId, tool, ok, output: { part: index + 2 }, checks: part };
  }
  yield* after;
  return value;
}

function toParts(checks: Check[]): Check[][] {
  const parts: Check[][] = [];
  let size = maxChecks;
  for (const check of checks) {
    const length = JSON.stringify(check).length;
    if (size + length > maxChecks) {
      parts.push([]);
      size = 0;
    }
    parts.at(-1)?.push(check);
    size += length;
  }
  return parts;
}

const trimmed = (check: Check): Check => ({
  ...check,
  message: cut(check.message, 500),
  fix: check.fix && cut(check.fix, 500),
  quote: check.quote && cut(check.quote, 300),
  subject: cut(check.subject, 1000),
  url: cut(check.url, 1000),
});

/** The first `max` characters of a text, never half of one. */
export const cut = (text: string, max: number): string =>
  text.length <= max ? text : `${text.slice(0, max - 1).replace(/[\ud800-\udbff]$/, "")}…`;

export const error = (where: string, message: string, url: string | null, retryable: boolean): AgentEvent => ({
  type: "error",
  where,
  message,
  url,
  retryable,
});

/** Runs `work` on every item, at most `atOnce` at a time; each gets a log of its own, and the logs come back in the order of the items. */
export async function inOrder<I, O>(
  items: I[],
  atOnce: number,
  log: Log,
  work: (item: I, log: Log) => Promise<O>,
): Promise<O[]> {
  const results: O[] = new Array(items.length);
  const logs: Log[] = items.map(() => ({ id: log.id, events: [] }));
  let next = 0;
  const worker = async () => {
    for (let i = next++; i < items.length; i = next++) results[i] = await work(items[i]!, logs[i]!);
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, worker));
  for (const one of logs) log.events.push(...one.events);
  return results;
}

/** Files that are not pages: not to be read, only to be there. */
const notPages =
  /\.(png|jpe?g|gif|svg|webp|avif|ico|bmp|css|m?js|map|json|ya?ml|toml|zip|t?gz|tar|bz2|xz|zst|7z|pdf|ps|epub|mp[34]|webm|mov|wav|woff2?|ttf|otf|eot|exe|msi|dmg|deb|rpm|jar|whl|so|dll|wasm|xml|rss|atom|csv|bin|iso|sig|asc|sha\d+)$/i;

/** Whether an address may lead to a page that is read on the way. */
export function mayBePage(address: string, origins: Set<string>): boolean {
  if (!URL.canParse(address)) return false;
  const url = new URL(address);
  return /^https?:$/.test(url.protocol) && origins.has(url.origin) && !notPages.test(url.pathname);
}
