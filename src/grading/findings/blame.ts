import { type Action, partOf, type RequestAction, type Role, segmentsOf } from "../actions/action.ts";
import {
  type Difference,
  differencesOf,
  isId,
  listSimilarity,
  minIntentSimilarity,
  namesWord,
  similarityOf,
  wordSimilarity,
} from "../actions/alignment.ts";
import { intentsOf } from "../actions/call.ts";
import { actionsDuring } from "../actions/session-actions.ts";
import type { Facts } from "../facts.ts";
import type { Recovery } from "../recoveries.ts";
import { textsIn } from "../text.ts";
import { type CopiedLine, copyScore, findCopiedLine, isPlaceholder, samplesFor } from "./copied-lines.ts";
import { type PageText, pagesReadOf } from "./pages-read.ts";

/**
 * The line of the docs that an error was copied from. `kind`: something there differs from what worked, a step is missing
 * before it, or the sample fails and nothing else worked. `others`: what else differs.
 */
export type Blame = CopiedLine & { kind: "difference" | "step" | "sample"; others: Difference[] };

/**
 * Whether a status is about the state of a resource or of the server, not about the form of the request. Servers also answer with 500 to a
 * request that they can't handle.
 */
const isAboutState = (status: number): boolean => [402, 408, 409, 412, 423, 425, 429].includes(status) || status > 501;
/** Whether a service that is down or busy may answer later on its own. */
const isTemporary = (status: number | null): boolean =>
  status !== null && (status >= 500 || [408, 425, 429].includes(status));
const isMissing = (status: number | null): boolean => status === 404 || status === 410;
/** Whether a status says that a request of this form never works. */
const isDenial = (status: number | null): boolean =>
  status === 405 || status === 410 || status === 415 || status === 501;
/** After more steps than this, nobody knows which of them the docs lack. */
const maxMissingSteps = 3;
/** From this similarity on, a sample is the step that the agent took. `request`: of requests. `command`: of the words of commands. */
const minStepSimilarity = { request: 0.8, command: 0.6 };
/** A command repeats a sample if it has at least this share of the sample's words. A request repeats a sample if it is like it at all. */
const minCopiedShare = 0.7;

/** A call that failed, with how the agent recovered. */
type FailedCall = {
  recovery: Recovery;
  facts: Facts;
  /** The pages that the agent had read before. */
  pages: PageText[];
  /** The status of the call's last response; null: it got none. */
  status: number | null;
  /** What the call was made for. */
  failed: Action[];
};

/** The line that caused an error, on a page that the agent had read before; null if the docs didn't cause the error. */
export function blameOf(recovery: Recovery, facts: Facts): Blame | null {
  const { failure, call, fix } = recovery;
  if (call === null) return null;
  const pages = pagesReadOf(facts).filter(({ seq }) => seq < call.seq);
  if (pages.length === 0) return null;
  const status = facts.taskRequests.findLast(({ seq }) => failure.seqs.includes(seq))?.status ?? null;
  const failed = intentsOf(actionsDuring(call, facts));
  const failedCall = { recovery, facts, pages, status, failed };
  return fix === null ? blameWithoutFix(failedCall) : blameByFix(failedCall, fix);
}

/** Pairs of a failed action and an action that then worked for the same purpose, the most similar pair first. */
function similarPairs(failed: Action[], worked: Action[], message: string) {
  return failed
    .flatMap((action) => worked.map((other) => ({ action, other, similarity: similarityOf(action, other, message) })))
    .filter(({ similarity }) => similarity >= minIntentSimilarity)
    .sort((a, b) => b.similarity - a.similarity)
    .map(({ action, other }) => ({ action, other, differences: differencesOf(action, other) }));
}

/** What differs from the call that worked, or what the agent did before it. */
function blameByFix(failedCall: FailedCall, fix: NonNullable<Recovery["fix"]>): Blame | null {
  const { recovery, facts, failed, status, pages } = failedCall;
  const worked = actionsDuring(fix, facts);
  const pairs = similarPairs(failed, worked, recovery.message);
  const mayBeMistakes = status === null || !isAboutState(status);
  for (const { action, other, differences } of mayBeMistakes ? pairs : []) {
    const lines = significantDifferences(differences, action, other, failedCall)
      .filter((difference) => !isDocumented(difference, other, failedCall))
      .flatMap((difference) => findCopiedLine(action, difference, pages) ?? []);
    // What the product's message names comes first.
    const isNamed = ({ difference: { found, expected } }: CopiedLine) =>
      [found, expected].some(
        (word) => word !== null && namesWord(recovery.message.toLowerCase(), word.toLowerCase().replace(/:.*$/s, "")),
      );
    const first = lines.find(isNamed) ?? lines[0];
    if (first) {
      const others = lines.filter((line) => line !== first && line.page === first.page);
      return { ...first, kind: "difference", others: others.map(({ difference }) => difference) };
    }
  }
  const same = pairs.find(({ differences }) => differences.length === 0);
  return same ? missingStep(same.action, worked, fix, failedCall) : null;
}

/**
 * The differences that the docs may be responsible for: differences in names or, if there are none, in values that the product's message explains.
 */
function significantDifferences(
  allDifferences: Difference[],
  failed: Action,
  worked: Action,
  failedCall: FailedCall,
): Difference[] {
  const differences = allDifferences.filter((difference) => !isNoise(difference, failedCall));
  const names = differences.filter(isName);
  const isCommand = failed.kind === "command" || worked.kind === "command";
  if (names.length > 0 || isCommand) return names;
  const isExplained = ({ found, expected }: Difference) =>
    expected !== null &&
    (jsonType(found) !== jsonType(expected) || namesWord(failedCall.recovery.message, expected.replace(/^"|"$/g, "")));
  return differences.filter(isExplained);
}

/** Whether a difference is in a name, rather than in the reader's own value. The values of some headers are names, too. */
const isName = ({ role, key, found }: Difference): boolean =>
  key === null ||
  (role === "header" && found !== null && /^(content-type|accept|authorization|proxy-authorization)$/.test(key));

/** Whether a difference has nothing to do with the error. */
function isNoise({ role, found, expected }: Difference, { recovery, facts, status }: FailedCall): boolean {
  switch (role) {
    case "header":
      // Programs add these on their own. 406 is about Accept.
      return found === null && status !== 406 && /^(user-agent|accept|content-length|host)\b/i.test(expected ?? "");
    case "host":
      // A host that answers with anything but “not found” knows what the request asks for.
      return status !== null && !isMissing(status);
    case "path":
      return !isRealPathChange(found!, expected!, recovery, facts);
    case "operand":
      return expected !== null && isData(expected, recovery, facts);
    default:
      return false;
  }
}

function jsonType(value: string | null): string {
  try {
    return typeof JSON.parse(value ?? "");
  } catch {
    return "text";
  }
}

/** Whether a path has other names, rather than the ID of something else. */
function isRealPathChange(found: string, expected: string, recovery: Recovery, facts: Facts): boolean {
  const [before, after] = [segmentsOf(found), segmentsOf(expected)];
  const added = after.filter((segment) => !before.includes(segment));
  const removed = before.filter((segment) => !after.includes(segment));
  const isOtherResource =
    removed.length === added.length &&
    added.every((segment, i) => (isId(segment) && isId(removed[i]!)) || isData(segment, recovery, facts));
  return added.length + removed.length > 0 && !isOtherResource;
}

/**
 * Whether a value is the agent's own data: it was in the goal, or in an earlier call or its result. Calls that failed or fetched pages don't count.
 */
function isData(value: string, { call }: Recovery, { calls, results, goal }: Facts): boolean {
  const until = call?.seq ?? 0;
  const failedIds = new Set(results.filter(({ ok }) => ok === false).map(({ id }) => id));
  const earlier = calls.filter(({ seq, id, tool }) => seq < until && tool !== "fetch_page" && !failedIds.has(id));
  const ids = new Set(earlier.map(({ id }) => id));
  const texts = textsIn([
    goal,
    earlier.map(({ input }) => input),
    results.filter(({ id }) => ids.has(id)).map(({ output }) => output),
  ]);
  return texts.some((text) => namesWord(text, value));
}

/**
 * Whether the docs had already said what worked, so the agent chose something else. The docs are still to blame for a request that never works, and
 * for a word that the product's message rejects.
 */
function isDocumented(
  { role, key, found, expected }: Difference,
  worked: Action,
  { pages, recovery, status }: FailedCall,
): boolean {
  if (expected === null) return false;
  if (found === null) return role !== "code" && isMentioned(role, expected, pages);
  if (key !== null || isDenial(status)) return false;
  const samples = pages.flatMap((page) => page.samples.map(({ action }) => action));
  if (worked.kind === "request") {
    if (role !== "path" && role !== "method") return false;
    return samples.some((sample) => sample.kind === "request" && saysTheSame(sample, worked));
  }
  if (role === "code" || worked.kind === "code" || namesWord(recovery.message, found)) return false;
  const words = expected.split(" ");
  return samples.some(
    (sample) =>
      sample.kind === "command" &&
      sample.words[0] === worked.words[0] &&
      words.every((word) => sample.words.includes(word)),
  );
}

/** Whether pages have the name of a part, such as `"to": "Bern"`. For an Authorization header, its scheme is enough. */
function isMentioned(role: Role, part: string, pages: PageText[]): boolean {
  const name = /^"?([^":=\s]+)/.exec(part)?.[1]?.toLowerCase() ?? part;
  const scheme = role === "header" && name === "authorization" ? /:\s*(\w+)/.exec(part)?.[1]?.toLowerCase() : undefined;
  return pages.some(({ text }) => [name, scheme ?? name].some((word) => namesWord(text.toLowerCase(), word)));
}

const saysTheSame = (sample: RequestAction, worked: RequestAction): boolean =>
  partOf(sample, "method") === partOf(worked, "method") &&
  (partOf(worked, "path") ?? "").endsWith(partOf(sample, "path") ?? "?");

/** Blames a missing step: what the agent did in between, if the same action then worked and the docs name no such step. */
function missingStep(
  action: Action,
  worked: Action[],
  fix: NonNullable<Recovery["fix"]>,
  failedCall: FailedCall,
): Blame | null {
  const { facts, pages, status } = failedCall;
  // No status: the same call worked later, so the agent had filled in the placeholders correctly.
  const sampleLine = findSample(action, pages, null);
  if (sampleLine === null || isTemporary(status)) return null;
  const steps = stepsBefore(fix, action, worked, failedCall);
  const samples = pagesReadOf(facts).flatMap((page) => (page.seq < fix.seq ? page.samples : []));
  const isDocumentedStep = (step: Action) => samples.some(({ action: sample }) => isSameStep(sample, step));
  if (steps.length === 0 || steps.length > maxMissingSteps || steps.some(isDocumentedStep)) return null;
  const expected = steps.map(describe).join(" && ");
  const { page, at } = sampleLine;
  const text = (page.lines[at] ?? "").trim().replace(/^[$%❯]\s+/, "");
  const isShell = action.kind === "command" && steps.every(({ kind }) => kind === "command");
  const difference: Difference = { role: "operand", key: null, found: null, expected };
  return {
    page,
    at,
    difference,
    found: isShell ? text : null,
    expected: isShell ? `${expected} && ${text}` : expected,
    kind: "step",
    others: [],
  };
}

/** The steps that may have made an action work in the call that fixed the error, although the same action had failed before. */
function stepsBefore(
  fix: NonNullable<Recovery["fix"]>,
  action: Action,
  worked: Action[],
  { recovery, facts }: FailedCall,
): Action[] {
  const failedIds = new Set(facts.failures.map(({ id }) => id));
  const callsBetween = facts.calls.filter(
    ({ seq, id, tool }) => seq > recovery.call!.seq && seq < fix.seq && !failedIds.has(id) && tool !== "fetch_page",
  );
  const changes = callsBetween.flatMap((call) => actionsDuring(call, facts)).filter(isChange);
  const isRelated = (step: Action) =>
    wordsOf(step).some(
      (word) =>
        word.length > 2 &&
        (namesWord(recovery.message, word) || wordsOf(action).some((other) => wordSimilarity(word, other) > 0)),
    );
  // If one thing changed between two equal calls, it made the difference.
  const relatedChanges = changes.length === 1 ? changes : changes.filter(isRelated);
  const index = worked.findIndex((each) => similarityOf(action, each) === 1);
  const earlierInFix = worked.slice(0, Math.max(0, index));
  return [...relatedChanges, ...earlierInFix.filter(isChange)];
}

function isChange(step: Action): boolean {
  if (step.kind === "command") return step.changes;
  return step.kind === "request" && !/^(GET|HEAD|OPTIONS)$/.test(partOf(step, "method") ?? "GET");
}

/** What an action names: words and variables of a command, or segments of the path and values of a request. */
function wordsOf(action: Action): string[] {
  if (action.kind === "command") return [...action.words, ...action.variables];
  if (action.kind !== "request") return [];
  return action.parts.flatMap(({ role, value }) => {
    if (role === "path") return value.split("/");
    return role === "field" || role === "query" ? [value.replace(/^"|"$/g, "")] : [];
  });
}

/** Whether a sample is a step that the agent took: the same program and subcommand, or the same method and path. */
function isSameStep(sample: Action, step: Action): boolean {
  if (sample.kind === "request" && step.kind === "request")
    return saysTheSame(sample, step) || similarityOf(sample, step) > minStepSimilarity.request;
  if (sample.kind !== "command" || step.kind !== "command") return false;
  if (sample.variables.some((name) => step.variables.includes(name))) return true;
  return (
    sample.words.length > 0 &&
    sample.words[0] === step.words[0] &&
    (sample.words[1] === step.words[1] || listSimilarity(sample.words, step.words) >= minStepSimilarity.command)
  );
}

/** A step as a reader would write it. */
const describe = (step: Action): string =>
  step.source !== "" || step.kind !== "request" ? step.source : `${partOf(step, "method")} ${partOf(step, "path")}`;

/** The sample that a failed action repeats as a whole. `status`: the status of its response; null: placeholders were filled in correctly. */
function findSample(failed: Action, pages: PageText[], status: number | null): CopiedLine | null {
  const noDifference: Difference = {
    role: failed.kind === "request" ? "path" : "operand",
    key: null,
    found: null,
    expected: null,
  };
  const minScore = failed.kind === "request" ? 0 : minCopiedShare;
  let best: { line: CopiedLine; score: number } | null = null;
  for (const page of pages)
    for (const sample of samplesFor(failed, page)) {
      // What the agent put in place of a placeholder may not exist.
      if (isMissing(status) && sample.action.kind === "request" && hasPlaceholder(sample.action)) continue;
      const isShown = sample.isBlock || sample.action.kind === "request" || sample.action === failed;
      const score = isShown ? copyScore(failed, sample, noDifference) : 0;
      if (score > (best?.score ?? minScore))
        best = { score, line: { page, at: sample.start, difference: noDifference, found: null, expected: null } };
    }
  return best?.line ?? null;
}

const hasPlaceholder = (request: RequestAction) => segmentsOf(partOf(request, "path") ?? "").some(isPlaceholder);

/** Blames a sample that fails as it stands, if nothing else worked. */
function blameWithoutFix({ recovery, pages, status, failed }: FailedCall): Blame | null {
  for (const action of failed) {
    const sampleLine = findSample(action, pages, status);
    if (sampleLine === null) continue;
    const found = action.kind === "request" ? failingRequest(action, status) : failingWord(action, recovery.message);
    if (found === null) continue;
    const text = (sampleLine.page.lines[sampleLine.at] ?? "").trim();
    return {
      ...sampleLine,
      found: namesWord(text, found) ? found : text,
      difference: { ...sampleLine.difference, role: action.kind === "request" ? "path" : "operand", found },
      kind: "sample",
      others: [],
    };
  }
  return null;
}

/**
 * The path of a request that can't work; null if it may work. A missing resource alone proves nothing, because the sample may only have named an
 * example.
 */
function failingRequest(action: RequestAction, status: number | null): string | null {
  const [method, path] = [partOf(action, "method"), partOf(action, "path")];
  return path !== null && ((isMissing(status) && method === "POST") || isDenial(status)) ? path : null;
}

const unknown = "unknown|unrecogni[sz]ed|no such|illegal|unexpected|unsupported|invalid|bad";
/** How programs say that they don't know an option, as opposed to its value. */
const rejection = new RegExp(`\\b(?:${unknown}) (?:option|argument|flag|switch|parameter)`, "i");

/** The option of a command that the program's message rejects; null: it rejects none. */
function failingWord(action: Action, message: string): string | null {
  if (action.kind !== "command") return null;
  const lines = message.split("\n").filter((line) => rejection.test(line));
  const isRejected = (option: string) => lines.some((line) => namesWord(line, option));
  return action.words.find((word) => /^--?\w/.test(word) && isRejected(word.replace(/=.*$/s, ""))) ?? null;
}
