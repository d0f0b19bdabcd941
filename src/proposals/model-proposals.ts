import { type Static, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { AppError } from "../errors.ts";
import { pageKey } from "../net/page-key.ts";
import { DeclaredCheck } from "../prompts/check-schema.ts";
import { checkDeclaredCheck } from "../prompts/declared-check.ts";
import { OneOf } from "../schema.ts";
import { maxOwnWords, needsOf } from "./candidate.ts";
import { contentStems } from "./phrases.ts";
import {
  type DropReason,
  listPages,
  maxProposals,
  type ProposalPage,
  type ProposalResult,
  type ProposalSource,
  proposalNeeds,
  type TaskProposal,
} from "./proposal.ts";
import { saysSame } from "./propose.ts";
import { findQuote } from "./quotes.ts";

/** A task that a model proposes. `url` and `quote`: the page and the text that it is based on. */
const ModelProposal = Type.Object({
  title: Type.String({ minLength: 1, maxLength: 200 }),
  text: Type.String({ minLength: 1, maxLength: 4000 }),
  endGoal: Type.String({ minLength: 1, maxLength: 2000 }),
  startUrl: Type.String({ maxLength: 2000 }),
  url: Type.String({ maxLength: 2000 }),
  quote: Type.String({ maxLength: 1000 }),
  needs: Type.Array(OneOf(proposalNeeds), { maxItems: 4 }),
  declaredChecks: Type.Array(DeclaredCheck, { maxItems: 10 }),
});
type ModelProposal = Static<typeof ModelProposal>;

/** How many proposals of a model are checked. */
const maxAnswers = 5 * maxProposals;

/** What is wrong with a proposal of a model, by its position from 0. */
export type ModelObjection = { index: number; reason: DropReason };

/**
 * The proposals of a model that meet these conditions: their quote is on their page, they start on another page, they don't repeat the words of the
 * docs, no check expects a text that the task contains, they name only hosts that were read, and no other proposal says the same. `objections` has
 * all other proposals, to ask the model once more. What a proposal says about itself is never believed, because the pages may have told the model to
 * say it.
 */
export function acceptModelProposals(
  source: ProposalSource,
  answers: unknown[],
): ProposalResult & { objections: ModelObjection[] } {
  const proposals: TaskProposal[] = [];
  const objections: ModelObjection[] = [];
  for (const [index, answer] of answers.slice(0, maxAnswers).entries()) {
    const proposal = Value.Check(ModelProposal, answer) ? toProposal(answer, source) : "invalid";
    if (typeof proposal === "string") {
      objections.push({ index, reason: proposal });
      continue;
    }
    const reason = objectionTo(proposal, proposals, source.count);
    if (reason === null) proposals.push(proposal);
    else objections.push({ index, reason });
  }
  const byReason = Map.groupBy(objections, ({ reason }) => reason);
  const dropped = [...byReason].map(([reason, { length }]) => ({ reason, count: length }));
  return { proposals, dropped, objections };
}

function objectionTo(proposal: TaskProposal, others: TaskProposal[], count: number): DropReason | null {
  if (others.some((other) => saysSame(other, proposal))) return "duplicate";
  return others.length >= count ? "over_count" : null;
}

/** The proposal as it is stored, or the condition that it doesn't meet. */
function toProposal(answer: ModelProposal, source: ProposalSource): TaskProposal | DropReason {
  const page = listPages(source).find(({ url }) => sameAddress(url, answer.url));
  if (page === undefined) return "quote_not_on_page";
  const match = findQuote(page.markdown, answer.quote);
  if ("reason" in match) return match.reason;
  const isRoot = sameAddress(answer.startUrl, source.docsUrl);
  if (!isRoot && sameAddress(answer.startUrl, page.url)) return "answer_as_start";
  const readHosts = hostsRead(source);
  if (!hostsOf(answer).every((host) => readHosts.has(host))) return "unknown_host";
  if (!answer.declaredChecks.every(isUsable)) return "invalid";
  const { title, text, endGoal, declaredChecks } = answer;
  const task = `${title}\n${text}\n${endGoal}`.toLowerCase();
  const isInTask = ({ contains }: DeclaredCheck) => contains && task.includes(contains.trim().toLowerCase());
  if (declaredChecks.some(isInTask)) return "check_in_task";
  if (repeatsDocs(answer, page, match.line)) return "docs_own_words";
  return {
    title,
    text,
    endGoal,
    declaredChecks,
    additionalUrls: [{ url: source.docsUrl }],
    tags: ["docs"],
    checksNotRun: null,
    hints: [],
    needs: [...new Set([...answer.needs, ...needsOf(task, "")])],
    by: "model",
    source: { url: page.url, line: match.line, quote: answer.quote },
    docsOwnWords: false,
    why: "model",
  };
}

function isUsable(check: DeclaredCheck): boolean {
  try {
    checkDeclaredCheck("check", check, () => null);
    return true;
  } catch (error) {
    if (error instanceof AppError) return false;
    throw error;
  }
}

const sameAddress = (url: string, other: string): boolean =>
  url === other || (URL.canParse(url) && URL.canParse(other) && pageKey(url) === pageKey(other));

/** The hosts of all URLs that a proposal names. A URL that can't be parsed gives "". Hosts that are reserved for examples don't count. */
const hostsOf = ({ title, text, endGoal, startUrl, declaredChecks }: ModelProposal): string[] =>
  [...[title, text, endGoal, startUrl, JSON.stringify(declaredChecks)].join(" ").matchAll(/https?:\/\/[^\s"'<>)\\]+/gi)]
    .map(([url]) => URL.parse(url)?.host ?? "")
    .filter((host) => !/(^|\.)example(\.(com|net|org))?$/.test(host));

function hostsRead({ docsUrl, pages, apiDescriptions }: ProposalSource): Set<string> {
  const servers = apiDescriptions.flatMap(({ document }) => (document as { servers?: unknown }).servers ?? []);
  const urls = [
    docsUrl,
    ...pages.map(({ url }) => url),
    ...servers.map((server) => String((server as { url?: unknown }).url)),
  ];
  return new Set(urls.flatMap((url) => URL.parse(url)?.host ?? []));
}

/** Whether most words of the goal are in the quote or in the heading above it. */
function repeatsDocs({ endGoal, quote }: ModelProposal, { headings }: ProposalPage, line: number): boolean {
  const heading = headings.findLast((each) => each.line <= line)?.text ?? "";
  const stems = new Set(contentStems(endGoal));
  const shareIn = (text: string) => stems.intersection(new Set(contentStems(text))).size / Math.max(1, stems.size);
  return shareIn(heading) > maxOwnWords || shareIn(quote) > maxOwnWords;
}
