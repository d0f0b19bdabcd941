import { requestGround } from "../exposure.ts";
import type { Facts } from "../facts.ts";
import type { Evidence, EvidenceStep } from "../grade.ts";
import { actionsDuring, type Recovery } from "../recoveries.ts";
import { count, flat, indexOfName, lineOrNull, oneLine, sentence, shortAddress } from "../text.ts";
import { type FindingDraft, noCause, pageName, sortedUnique } from "./finding.ts";

type WrongPage = Evidence & { found: string; seq: number };

/** The draft of every error caused by a page, by its recovery; null for the guesses that followed such an error. */
export function misleadingPages(recoveries: Recovery[], facts: Facts): Map<Recovery, FindingDraft | null> {
  const wrongPages = new Map(recoveries.map((recovery) => [recovery, findMisleadingPage(recovery, facts)]));
  const drafts = new Map<Recovery, FindingDraft | null>();
  for (const [recovery, wrongPage] of wrongPages) {
    if (wrongPage === null) continue;
    const guesses = guessesAfter(recovery, recoveries, facts).filter((each) => wrongPages.get(each) === null);
    for (const guess of guesses) drafts.set(guess, null);
    drafts.set(recovery, misleadingPageDraft(recovery, wrongPage, guesses, facts));
  }
  return drafts;
}

/** Failed attempts between what the docs say and what worked, with another request or command than both. */
function guessesAfter({ failure, fix }: Recovery, all: Recovery[], facts: Facts): Recovery[] {
  if (fix === null) return [];
  const workingNames = attemptedNamesOf(fix, facts);
  return all.filter((each) => {
    const isLater = each.fix === fix && each.failure.seqs[0]! > failure.seqs[0]!;
    return isLater && !attemptedNamesOf(each.call, facts).some((name) => workingNames.includes(name));
  });
}

/** The request or command of a call, as it appears in a docs page: the path, or a simple command. */
function attemptedNamesOf(call: Recovery["call"], facts: Facts): string[] {
  if (call === null) return [];
  const { requests, commands } = actionsDuring(call, facts);
  const paths = requests.flatMap(({ url }) => URL.parse(url)?.pathname ?? []).filter((path) => path.length > 3);
  const lines = commands.map(({ program, verb, targets }) => [program, verb, ...targets].filter(Boolean).join(" "));
  return [...new Set([...paths, ...lines.filter((each) => each.includes(" "))])];
}

const absentStatuses = [404, 405, 410];

/** The URL of a failed POST that doesn't exist. Other methods may have named a resource that is only an example. */
function missingUrl({ failure }: Recovery, { taskRequests }: Facts): string | null {
  const http = taskRequests.find(({ seq }) => failure.seqs.includes(seq));
  return http?.method.toUpperCase() === "POST" && absentStatuses.includes(http.status ?? 0) ? http.url : null;
}

/**
 * The page that contains what failed but not what worked instead, so it misleads its readers. If nothing worked, it must
 * contain the whole URL.
 */
function findMisleadingPage(recovery: Recovery, facts: Facts): WrongPage | null {
  const { failure, call, fix } = recovery;
  const workingNames = attemptedNamesOf(fix, facts);
  const missingAddress = fix === null ? missingUrl(recovery, facts) : null;
  const failedNames = fix === null ? [] : attemptedNamesOf(call, facts).filter((name) => !workingNames.includes(name));
  if (missingAddress !== null) failedNames.push(missingAddress);
  if (failedNames.length === 0 || (fix !== null && workingNames.length === 0)) return null;
  for (const { seq, tool, output } of facts.results) {
    if (tool !== "fetch_page" || seq > failure.seqs[0]! || typeof output?.text !== "string") continue;
    const lines = output.text.split("\n");
    const index = lines.findIndex((each) => failedNames.some((name) => indexOfName(flat(each), name) >= 0));
    if (index < 0) continue;
    const found = failedNames.find((name) => indexOfName(flat(lines[index]!), name) >= 0)!;
    const url = typeof output.url === "string" ? output.url : null;
    const expected =
      workingNames.find((name) => !failedNames.includes(name) && name.startsWith("/") === found.startsWith("/")) ??
      null;
    const name = found === missingAddress ? shortAddress(found) : found;
    return { seq, url, line: index + 1, found: name, expected, text: lineOrNull(lines[index]), steps: [] };
  }
  return null;
}

/** What a call did, for a person: its request, or its command. */
function stepOf(role: EvidenceStep["role"], call: Recovery["call"], fallbackSeq: number, facts: Facts): EvidenceStep {
  const http = call && facts.taskRequests.findLast(({ id }) => id === call.id);
  if (http) {
    const what = oneLine(`${http.method.toUpperCase()} ${shortAddress(http.url)}`, 200);
    return { role, event: http.seq, what, status: http.status };
  }
  const result = call && facts.results.find(({ id }) => id === call.id);
  const command = typeof call?.input?.command === "string" ? call.input.command : (call?.tool ?? "");
  return { role, event: result?.seq ?? call?.seq ?? fallbackSeq, what: oneLine(command, 200), status: null };
}

/** A page that misleads, with what the agent tried until something worked. */
function misleadingPageDraft(
  recovery: Recovery,
  { seq, ...page }: WrongPage,
  guesses: Recovery[],
  facts: Facts,
): FindingDraft {
  const { failure, resolution: fate, call, fix } = recovery;
  const { url, found, expected } = page;
  const kind = found.includes(" ") ? "command" : "path";
  const failures = [failure, ...guesses.map((each) => each.failure)];
  const steps: EvidenceStep[] = [
    { role: "read", event: seq, what: url === null ? "" : pageName(facts, url), status: null },
    stepOf("failed", call, failure.seqs[0]!, facts),
    ...guesses.map((each) => stepOf("guessed", each.call, each.failure.seqs[0]!, facts)),
    ...(fix ? [stepOf("worked", fix, fix.seq, facts)] : []),
  ];
  const guessNote = guesses.length === 0 ? "" : ` The agent guessed ${count(guesses.length, "time")} in between.`;
  return {
    severity: fate === "notAtAll" ? "high" : "medium",
    phase: "execution",
    category: "misleading_docs",
    owner: "fixes",
    subject: `wrong ${url} ${found}`,
    title: `Wrong ${kind} in the docs: ${found}`,
    description: `${sentence(failure.message)}${expected === null ? "" : ` What worked: ${expected}.`}${guessNote}`,
    url,
    cause: { ...noCause, failures: failures.map(({ seqs }) => seqs[0]!) },
    events: sortedUnique([seq, ...failures.flatMap(({ seqs }) => seqs)]),
    evidence: { ...page, steps },
    grounds: [url === null ? "run" : requestGround(url)],
    remedy: [
      `wrong ${url} ${found}`,
      expected === null ? `Correct the ${kind} ${found}` : `Replace ${found} with ${expected}`,
    ],
    fix: expected === null ? null : `Replace ${found} with ${expected}.`,
  };
}
