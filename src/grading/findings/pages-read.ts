import { type Sample, samplesOf } from "../actions/samples.ts";
import { hasFailed } from "../events.ts";
import type { Facts } from "../facts.ts";

/** A page as the agent read it. `seq`: of the result that contains it. */
export type PageText = { seq: number; url: string; text: string; lines: string[]; samples: Sample[] };

const cache = new WeakMap<Facts["results"][number], PageText | null>();

/** The pages that the agent read, with any tool, in order. */
export function pagesReadOf({ results, calls, taskRequests, hosts }: Facts): PageText[] {
  const pages: PageText[] = [];
  for (const result of results) {
    const known = cache.get(result);
    const page = known === undefined ? read(result) : known;
    cache.set(result, page);
    if (page) pages.push(page);
  }
  return pages;

  function read({ id, seq, tool, ok, output }: Facts["results"][number]): PageText | null {
    if (ok === false) return null;
    if (tool === "fetch_page")
      return toPageText(
        seq,
        output?.url,
        joined(output?.url, calls.find((call) => call.id === id)?.input?.from, output?.text),
      );
    const requests = taskRequests.filter((http) => http.id === id);
    const [request] = requests;
    if (request === undefined || requests.length > 1 || hasFailed(request) || hosts.isProduct(request)) return null;
    return toPageText(seq, request.url, output?.body ?? output?.stdout ?? output?.text);
  }

  /** A later part of a page follows the parts before it, so that its lines keep their numbers. */
  function joined(url: unknown, from: unknown, text: unknown): unknown {
    if (typeof from !== "number" || from === 0 || typeof text !== "string") return text;
    const before = pages.findLast((page) => page.url === url)?.text ?? "";
    return before.length < from ? null : before.slice(0, from) + text;
  }
}

const toPageText = (seq: number, url: unknown, text: unknown): PageText | null =>
  typeof url === "string" && typeof text === "string"
    ? { seq, url, text, lines: text.split("\n"), samples: samplesOf(text) }
    : null;
