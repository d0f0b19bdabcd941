import type { Role } from "../actions/action.ts";
import type { Difference } from "../actions/alignment.ts";
import { requestPrecondition } from "../exposure.ts";
import type { Facts } from "../facts.ts";
import type { EvidenceStep } from "../grade.ts";
import type { Recovery } from "../recoveries.ts";
import { count, lineOrNull, oneLine, sentence, shortUrl } from "../text.ts";
import { type Blame, blameOf } from "./blame.ts";
import { type FindingDraft, noCause, pageName, sortedUnique } from "./finding.ts";

/** The draft of every error caused by a page, by its recovery; null for the guesses that followed such an error. */
export function misleadingPages(recoveries: Recovery[], facts: Facts): Map<Recovery, FindingDraft | null> {
  const blames = new Map(recoveries.map((recovery) => [recovery, blameOf(recovery, facts)]));
  const drafts = new Map<Recovery, FindingDraft | null>();
  for (const [recovery, blame] of blames) {
    if (blame === null) continue;
    const guesses = guessesAfter(recovery, recoveries).filter((each) => blames.get(each) === null);
    for (const guess of guesses) drafts.set(guess, null);
    drafts.set(recovery, misleadingPageDraft(recovery, blame, guesses, facts));
  }
  return drafts;
}

/** Failed attempts after an error from the docs and before the call that worked. */
function guessesAfter({ failure, fix }: Recovery, all: Recovery[]): Recovery[] {
  if (fix === null) return [];
  return all.filter((each) => each.fix === fix && each.failure.seqs[0]! > failure.seqs[0]!);
}

/** What a call did, for a person: its request, or its command. */
function stepOf(role: EvidenceStep["role"], call: Recovery["call"], fallbackSeq: number, facts: Facts): EvidenceStep {
  const http = call && facts.taskRequests.findLast(({ id }) => id === call.id);
  if (http) {
    const what = oneLine(`${http.method.toUpperCase()} ${shortUrl(http.url)}`, 200);
    return { role, event: http.seq, what, status: http.status };
  }
  const result = call && facts.results.find(({ id }) => id === call.id);
  const command = typeof call?.input?.command === "string" ? call.input.command : (call?.tool ?? "");
  return { role, event: result?.seq ?? call?.seq ?? fallbackSeq, what: oneLine(command, 200), status: null };
}

/** Each role in the words of a docs writer. */
const nouns: Record<Role, string> = {
  method: "method",
  host: "host",
  path: "path",
  query: "query parameter",
  header: "header",
  field: "field",
  body: "request body",
  program: "command",
  option: "option",
  operand: "command",
  variable: "variable",
  code: "code",
};

/** What to change, as a sentence. */
function changeOf({ role, key, found, expected }: Difference): string {
  const noun = role === "header" && key !== null ? key : nouns[role];
  if (found === null) return `Add the ${noun} ${expected}.`;
  return expected === null ? `Remove the ${noun} ${found}.` : `Replace the ${noun} ${found} with ${expected}.`;
}

type Wording = { title: string; remedy: string; fix: string | null };

/** The title of a finding and its fix. `found`, `expected`: what differs, as the docs write it. The agent may have written it in another way. */
function wordingOf({ kind, difference, found, expected, others }: Blame): Wording {
  const noun = nouns[difference.role];
  const wrong = `Wrong ${noun} in the docs: ${found}`;
  const otherChanges = others.map(changeOf);
  if (kind === "step")
    return {
      title: `Missing step in the docs: ${difference.expected}`,
      remedy: `Add the step ${difference.expected}`,
      fix: `Before this line, add the step ${difference.expected}.`,
    };
  if (kind === "sample") return { title: wrong, remedy: `Correct the ${noun} ${found}`, fix: null };
  const isPartMissing = difference.found === null;
  const change = isPartMissing || expected === null ? changeOf(difference) : `Replace ${found} with ${expected}.`;
  return {
    title: isPartMissing ? `Missing ${noun} in the docs: ${difference.expected}` : wrong,
    remedy: change.replace(/\.$/, ""),
    fix: [change, ...otherChanges].join(" "),
  };
}

/** A page that misleads, with what the agent tried until something worked. */
function misleadingPageDraft(recovery: Recovery, blame: Blame, guesses: Recovery[], facts: Facts): FindingDraft {
  const { failure, resolution, call, fix } = recovery;
  const { page, at, difference } = blame;
  const { title, remedy, fix: change } = wordingOf(blame);
  const found = lineOrNull(blame.found, 1000);
  const failures = [failure, ...guesses.map((each) => each.failure)];
  // Requests to hosts other than the product's count as requests for pages, too.
  const requests = facts.taskRequests
    .filter((http) => !facts.hosts.isProduct(http) && failures.some(({ seqs }) => seqs.includes(http.seq)))
    .map(({ seq }) => seq);
  const steps: EvidenceStep[] = [
    { role: "read", event: page.seq, what: pageName(facts, page.url), status: null },
    stepOf("failed", call, failure.seqs[0]!, facts),
    ...guesses.map((each) => stepOf("guessed", each.call, each.failure.seqs[0]!, facts)),
    ...(fix ? [stepOf("worked", fix, fix.seq, facts)] : []),
  ];
  const guessNote = guesses.length === 0 ? "" : ` The agent guessed ${count(guesses.length, "time")} in between.`;
  const key = `wrong ${page.url} ${difference.found ?? difference.expected ?? found}`;
  return {
    severity: resolution === "notAtAll" ? "high" : "medium",
    phase: "execution",
    category: "misleading_docs",
    owner: "fixes",
    subject: key,
    title,
    description: `${sentence(oneLine(failure.message))}${change === null ? "" : ` ${change}`}${guessNote}`,
    url: page.url,
    cause: { ...noCause, failures: failures.map(({ seqs }) => seqs[0]!), requests },
    events: sortedUnique([page.seq, ...failures.flatMap(({ seqs }) => seqs)]),
    evidence: {
      url: page.url,
      line: at + 1,
      found,
      expected: lineOrNull(blame.expected, 1000),
      text: lineOrNull(page.lines[at], 1000),
      steps,
    },
    preconditions: [requestPrecondition(page.url)],
    remedy: { key, title: oneLine(remedy, 160) },
    fix: change,
  };
}
