import type { SessionEvent } from "../../agents/agent.ts";
import { type Http, hasSucceeded, readingTools } from "../events.ts";
import type { EvidenceGrade } from "../grade.ts";
import { valueTextsIn } from "../text.ts";
import { provingTools } from "./evidence.ts";
import { type ProductAnswer, type ProductAnswers, productAnswersOf } from "./product-answers.ts";
import { programRunsOf } from "./product-programs.ts";
import { isShown, lettersAndDigitsOf, repeats, tokensOf, valuesOf } from "./repetition.ts";

/** What proves a claim: how sure it is, the call that shows it, and the values in its quote that only the product can have made. */
export type Proof = { grade: Exclude<EvidenceGrade, "judged">; call: string; values: string[] };

/** Shorter tokens occur by chance. */
const minTokenChars = 4;

/** What one source said: an answer of the product, or a run of its program. */
type Statement = { seq: number; values: Set<string> };

/** A note in a text that was too long to keep. */
const omission = /… \d+ characters omitted …/;

/**
 * What the agent wrote or sent up to and including an event, and in requests that had begun by then. null if a part was not
 * kept, which may have held anything: the body of a request, or the middle of a long text.
 */
function agentTextsOf(session: SessionEvent[], until: number): string[] | null {
  const texts: string[] = [];
  const endMs = session.find(({ seq }) => seq === until)?.tMs ?? 0;
  for (const event of session) {
    const hasBegun = event.seq <= until || (event.type === "http" && event.tMs - event.ms < endMs);
    if (!hasBegun) continue;
    if (event.type === "tool_call") texts.push(...valueTextsIn(event.input));
    else if (event.type === "message" && event.id === undefined) texts.push(event.text);
    else if (event.type === "http" && event.purpose !== "check") {
      const sentSomething = event.source === "egress" && (event.bytesOut ?? 0) > 0 && event.method !== "CONNECT";
      if (sentSomething && event.sent === undefined) return null;
      texts.push(event.url, event.sent ?? "");
    }
  }
  return texts.some((text) => omission.test(text)) ? null : texts;
}

/** Whether pages show a token. A short one counts only after the same word, `before`; empty: no word was before it. */
function isOnPages(token: string, before: string, pages: string[]): boolean {
  if (lettersAndDigitsOf(token).length >= minTokenChars || before === "") return isShown(token, pages);
  const words = ` ${lettersAndDigitsOf(before)} ${lettersAndDigitsOf(token)} `;
  return pages.some((page) => ` ${tokensOf(page).map(lettersAndDigitsOf).join(" ")} `.includes(words));
}

const toStatement = ({ http, values }: ProductAnswer): Statement => ({ seq: http.seq, values });

/** Reads the texts of pages in an event, and separately the texts of docs pages among them. */
function pageReaders(session: SessionEvent[], { byRequest, hosts }: ProductAnswers) {
  const requestsByCall = Map.groupBy(
    session.filter(
      (event): event is Http =>
        event.type === "http" && event.purpose !== "check" && event.status !== null && event.method !== "CONNECT",
    ),
    ({ id }) => id,
  );
  const callsWithAnswer = new Set([...byRequest.values()].map(({ http }) => http.id));

  /** What a reading tool, or a call without any request to the product, returned. */
  function pageTexts(event: SessionEvent): string[] {
    if (event.type !== "tool_result") return [];
    const requests = requestsByCall.get(event.id) ?? [];
    const isAnswer = callsWithAnswer.has(event.id) || requests.some((http) => hosts.isKnownProduct(http));
    const isPage = readingTools.includes(event.tool) || (requests.length > 0 && !isAnswer);
    return isPage ? valueTextsIn(event.output) : [];
  }

  const docsTexts = (event: SessionEvent): string[] =>
    event.type === "tool_result" && (requestsByCall.get(event.id) ?? []).every(({ url }) => hosts.isOnDocsHost(url))
      ? pageTexts(event)
      : [];

  return { pageTexts, docsTexts };
}

/**
 * Finds what proves that something was done. A quote proves it if it contains a value that the product made: a value in an answer of the product
 * (`verified`) or in the output of its own program (`observed`). The agent must not have sent or written the value before, in any form, and no page
 * may have shown it.
 */
export function proofFinder(session: SessionEvent[]): (event: SessionEvent, quote: string) => Proof | null {
  const answers = productAnswersOf(session);
  const { pageTexts, docsTexts } = pageReaders(session, answers);
  const programRuns = programRunsOf(session, docsTexts);
  const runs = [...programRuns].map(([call, run]) => ({ call, ...run, values: valuesOf(run.output) }));

  const pagesUntil = (until: number) => session.filter(({ seq }) => seq <= until).flatMap(pageTexts);

  const answerStatements = [...answers.byRequest.values()].map(toStatement);

  /** Whether the product's program deleted later what a source made. */
  const isDeleted = ({ seq, values }: Statement) =>
    runs.some((run) => {
      const named = new Set(run.words.flatMap(tokensOf).map(lettersAndDigitsOf));
      return run.deletes && run.seq > seq && [...values].some((value) => named.has(value));
    });

  /**
   * The values of a statement that a quote contains. Left out are values that a text of the agent or a page had shown before the first statement with
   * them.
   */
  function provenValues(statement: Statement, quote: string, statements: Statement[]): string[] {
    if (isDeleted(statement)) return [];
    const tokens = tokensOf(quote);
    return tokens.flatMap((token, i) => {
      const value = lettersAndDigitsOf(token);
      const first = statements.find((each) => each.seq <= statement.seq && each.values.has(value));
      if (first === undefined || !statement.values.has(value)) return [];
      const texts = agentTextsOf(session, first.seq);
      if (texts === null || repeats(token, texts)) return [];
      return isOnPages(token, tokens[i - 1] ?? "", pagesUntil(first.seq)) ? [] : [value];
    });
  }

  /** The product's answers in an event: to one request, or to all that a call made. */
  function answersIn(event: SessionEvent): ProductAnswer[] {
    if (event.type === "tool_result") return answers.byCall.get(event.id) ?? [];
    const answer = answers.byRequest.get(event.seq);
    return answer ? [answer] : [];
  }

  return (event, quote) => {
    const isResult = event.type === "tool_result";
    if ((event.type !== "http" && !isResult) || event.id === null) return null;
    const call = event.id;
    const mayProve = !isResult || (hasSucceeded(event) && (provingTools.includes(event.tool) || programRuns.has(call)));
    if (!mayProve) return null;
    for (const answer of answersIn(event)) {
      const values = provenValues(toStatement(answer), quote, answerStatements);
      if (values.length > 0) return { grade: "verified", call, values };
    }
    const run = isResult ? runs.find((each) => each.call === call) : undefined;
    const values = run ? provenValues(run, quote, runs) : [];
    return values.length === 0 ? null : { grade: "observed", call, values };
  };
}
