import { pageKey } from "../../net/page-key.ts";
import type { Facts } from "../facts.ts";

/** Pages, by page key, that led neither to the goal nor to a page that did. */
export const uselessPages = (facts: Facts): string[] =>
  facts.kind === "model" ? uselessForModel(facts) : uselessForRules(facts);

/** Adds pages that led to a useful page. A page is read after the page that links to it, so one backward pass is enough. */
function withPath(useful: Set<string>, { taskRequests }: Facts, visited: string[]): Set<string> {
  const foundOn = new Map(taskRequests.map((http) => [pageKey(http.url), http.foundOn]));
  const all = new Set(useful);
  for (const page of visited.toReversed()) {
    const parent = foundOn.get(page);
    if (all.has(page) && parent) all.add(pageKey(parent));
  }
  return all;
}

const pagesRead = ({ pages }: Facts): string[] => [...new Set(pages.map((page) => pageKey(page.url)))];

function givenPagesOf({ taskRequests }: Facts): Set<string> {
  return new Set(taskRequests.filter((http) => http.provenance === "given").map((http) => pageKey(http.url)));
}

/** An explorer reports which pages contain words of the goal. */
function uselessForRules(facts: Facts): string[] {
  const { goalTerms, goalAnswer, pagesWithTerms } = facts;
  if (goalTerms.length === 0 || (goalAnswer?.state === "unclear" && goalAnswer.noOverlap)) return [];
  const visited = pagesRead(facts);
  const useful = withPath(pagesWithTerms, facts, visited);
  const givenPages = givenPagesOf(facts);
  // Repeated pages count as repeats instead.
  return visited.filter((page) => !useful.has(page) && !givenPages.has(page) && !facts.repeatedPages.has(page));
}

const actingTools = ["run_command", "http_request", "browse", "write_file"];

/** Words of three or more characters, with the signs that are part of names, paths and options. */
const words = (text: string): string[] => text.match(/[\p{L}\p{N}_@$/-][\p{L}\p{N}_@$.:/-]{2,}/gu) ?? [];

const inputText = (value: unknown): string => JSON.stringify(value).replaceAll("\\n", " ");

/**
 * Words that a reader may copy from a page. In code, these are all words. Elsewhere, they are only paths, options and identifiers, such as
 * `/v1/notes` and `key_id`.
 */
function namesIn(text: string): string[] {
  const code = [...text.matchAll(/```([\s\S]*?)```|`([^`\n]+)`/g)].map(([, block, span]) => block ?? span ?? "");
  const identifiers = words(text).filter((word) => /[_@$/\d]|.[.:-]./.test(word));
  return [...code.flatMap(words), ...identifiers];
}

/**
 * The text of a page. It is in the next result with a text after the page's event, or in the last result before it; null: both results have other
 * pages.
 */
function textOfPage({ url, seq }: Facts["pages"][number], { results }: Facts): string | null {
  const hasText = ({ output }: Facts["results"][number]) => typeof output?.text === "string";
  const next = results.find((each) => each.seq > seq && hasText(each));
  const last = results.findLast((each) => each.seq < seq && hasText(each));
  const result = [next, last].find((each) => each && pageKey(String(each.output.url ?? "")) === pageKey(url));
  return result ? String(result.output.text) : null;
}

/** A model uses a page if a word that occurs there first appears in its later actions, or in its answer. */
function uselessForModel(facts: Facts): string[] {
  const actions = [
    ...facts.calls
      .filter(({ tool }) => actingTools.includes(tool))
      .map(({ seq, input }) => ({ seq, texts: Object.values(input ?? {}).map(inputText) })),
    ...(facts.answer.trim() === "" ? [] : [{ seq: Number.POSITIVE_INFINITY, texts: [facts.answer] }]),
  ].map(({ seq, texts }) => ({ seq, names: new Set(texts.flatMap(words)) }));
  // An agent that neither acts nor answers shows nothing about usefulness.
  if (actions.length === 0) return [];
  const knownNames = new Set(namesIn(facts.goal ?? ""));
  const useful = new Set<string>();
  for (const page of facts.pages) {
    const text = textOfPage(page, facts);
    const newNames = namesIn(text ?? "").filter((name) => !knownNames.has(name));
    const isUsed = actions.some(({ seq, names }) => seq > page.seq && newNames.some((name) => names.has(name)));
    // Pages that can't be read here count as useful.
    if (text === null || isUsed) useful.add(pageKey(page.url));
    for (const name of newNames) knownNames.add(name);
  }
  const visited = pagesRead(facts);
  const usefulWithPath = withPath(useful, facts, visited);
  const givenPages = givenPagesOf(facts);
  return visited.filter((page) => !usefulWithPath.has(page) && !givenPages.has(page));
}
