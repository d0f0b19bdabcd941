import { pageKey } from "../../net/page-key.ts";
import type { Facts } from "../facts.ts";

/** Pages, by page key, that led neither to the goal nor to a page that did. */
export const uselessPages = (facts: Facts): string[] => (facts.kind === "model" ? ofModel(facts) : ofRules(facts));

/** Adds pages that led to a useful page. A page is read after the page that links to it, so one backward pass is enough. */
function withPath(useful: Set<string>, { taskRequests }: Facts, inOrder: string[]): Set<string> {
  const foundOn = new Map(taskRequests.map((http) => [pageKey(http.url), http.foundOn]));
  const all = new Set(useful);
  for (const page of inOrder.toReversed()) {
    const parent = foundOn.get(page);
    if (all.has(page) && parent) all.add(pageKey(parent));
  }
  return all;
}

const read = ({ pages }: Facts): string[] => [...new Set(pages.map((page) => pageKey(page.url)))];

function givenIn({ taskRequests }: Facts): Set<string> {
  return new Set(taskRequests.filter((http) => http.provenance === "given").map((http) => pageKey(http.url)));
}

/** An explorer reports which pages contain words of the goal. */
function ofRules(facts: Facts): string[] {
  const { goalTerms, goalAnswer, pagesWithTerms } = facts;
  if (goalTerms.length === 0 || (goalAnswer?.state === "unclear" && goalAnswer.noOverlap)) return [];
  const inOrder = read(facts);
  const useful = withPath(pagesWithTerms, facts, inOrder);
  const givenPages = givenIn(facts);
  // Repeated pages are counted as such.
  return inOrder.filter((page) => !useful.has(page) && !givenPages.has(page) && !facts.repeated.has(page));
}

const actingTools = ["run_command", "http_request", "browse", "write_file"];

const words = (text: string): string[] => text.match(/[\p{L}\p{N}_@$/-][\p{L}\p{N}_@$.:/-]{2,}/gu) ?? [];

/** Names that a reader may copy from a page: everything in code, and paths, options and identifiers elsewhere. */
function namesIn(text: string): string[] {
  const code = [...text.matchAll(/```([\s\S]*?)```|`([^`\n]+)`/g)].map(([, block, span]) => block ?? span ?? "");
  const identifiers = words(text).filter((word) => /[_@$/\d]|.[.:-]./.test(word));
  return [...code.flatMap(words), ...identifiers];
}

/** A model uses a page if a word that occurs there first appears in its later actions. */
function ofModel(facts: Facts): string[] {
  const acts = facts.calls.filter(({ tool }) => actingTools.includes(tool));
  // An agent that only reads shows nothing about usefulness.
  if (acts.length === 0) return [];
  const actions = acts.map(({ seq, input }) => ({
    seq,
    names: new Set(Object.values(input ?? {}).flatMap((each) => words(JSON.stringify(each).replaceAll("\\n", " ")))),
  }));
  const knownNames = new Set(namesIn(facts.goal ?? ""));
  const useful = new Set<string>();
  for (const { url, seq } of facts.pages) {
    const result = facts.results.findLast((each) => each.seq < seq && typeof each.output?.text === "string");
    const next = facts.results.find((each) => each.seq > seq && typeof each.output?.text === "string");
    const isOf = (each: typeof result) => each !== undefined && pageKey(String(each.output.url ?? "")) === pageKey(url);
    const text = isOf(next) ? next?.output.text : isOf(result) ? result?.output.text : null;
    const fresh = namesIn(typeof text === "string" ? text : "").filter((name) => !knownNames.has(name));
    // Pages that can't be read here count as useful.
    if (typeof text !== "string" || actions.some((act) => act.seq > seq && fresh.some((name) => act.names.has(name))))
      useful.add(pageKey(url));
    for (const name of fresh) knownNames.add(name);
  }
  const inOrder = read(facts);
  const leading = withPath(useful, facts, inOrder);
  const givenPages = givenIn(facts);
  return inOrder.filter((page) => !leading.has(page) && !givenPages.has(page));
}
