import { type Sample, samplesOf } from "../actions/samples.ts";
import { hasFailed } from "../events.ts";
import type { Facts } from "../facts.ts";

/** A page as the agent read it. `seq`: of the result that contains it. */
export type PageText = { seq: number; url: string; text: string; lines: string[]; samples: Sample[] };

type Result = Facts["results"][number];

/** Grading looks at pages many times, so each result is parsed once. null: it contains no page. */
const cache = new WeakMap<Result, PageText | null>();

/** The pages that the agent read, with any tool, in order. */
export function pagesReadOf(facts: Facts): PageText[] {
  const pages: PageText[] = [];
  for (const result of facts.results) {
    const cached = cache.get(result);
    const page = cached === undefined ? readPage(result, facts, pages) : cached;
    cache.set(result, page);
    if (page) pages.push(page);
  }
  return pages;
}

/** The page that a result contains, or null. `earlier`: the pages that were read before. */
function readPage(result: Result, { calls, taskRequests, hosts }: Facts, earlier: PageText[]): PageText | null {
  const { id, seq, tool, ok, output } = result;
  if (ok === false) return null;
  if (tool === "fetch_page") {
    const from = calls.find((call) => call.id === id)?.input?.from;
    return toPageText(seq, output?.url, withEarlierParts(output?.url, from, output?.text, earlier));
  }
  const requests = taskRequests.filter((http) => http.id === id);
  const [request] = requests;
  if (request === undefined || requests.length > 1 || hasFailed(request) || hosts.isProduct(request)) return null;
  return toPageText(seq, request.url, output?.body ?? output?.stdout ?? output?.text);
}

/** A later part of a page after the parts before it, so that its lines keep their numbers; null if those weren't read. */
function withEarlierParts(url: unknown, from: unknown, text: unknown, earlier: PageText[]): unknown {
  if (typeof from !== "number" || from === 0 || typeof text !== "string") return text;
  const before = earlier.findLast((page) => page.url === url)?.text ?? "";
  return before.length < from ? null : before.slice(0, from) + text;
}

const toPageText = (seq: number, url: unknown, text: unknown): PageText | null =>
  typeof url === "string" && typeof text === "string"
    ? { seq, url, text, lines: text.split("\n"), samples: samplesOf(text) }
    : null;
