import { type Action, type CommandAction, partOf, type RequestAction, segmentsOf } from "../actions/action.ts";
import { type Difference, listSimilarity, namesWord, wordSimilarity } from "../actions/alignment.ts";
import { tokensOf } from "../actions/code.ts";
import type { Sample } from "../actions/samples.ts";
import { indexOfName, normalizedLine } from "../text.ts";
import type { PageText } from "./pages-read.ts";

/** What to replace in a line, and with what. `found` null: something is missing; `expected` null: nothing is to be there. */
type Replacement = { found: string | null; expected: string | null };

/** A line of a page that a failed action was copied from, with what is wrong there. */
export type CopiedLine = Replacement & { page: PageText; at: number; difference: Difference };

/** How much higher a sample in a code block scores than one in prose. */
const blockBonus = 0.01;
/** The score of a sample of a request without any names: it has nothing but its line in common with the action. */
const scoreWithoutNames = 0.75;
/**
 * An action is a copy of a sample if it repeats at least this share of it. `withError`: the sample has what is wrong. `withoutPart`: the sample lacks
 * something.
 */
const minShare = { withError: 0.5, withoutPart: 0.7 };
/** How similar a line of program text must be to the line that failed, if no single token of that line is wrong. */
const minShareOfLine = 0.95;
/** Words of more characters than this are texts, in which a part may differ. */
const maxWordChars = 20;
const similarityOfTexts = 0.9;

/** Text that readers replace with their own: `<name>`, `{id}`, `$KEY`, `:id`, `YOUR_KEY`, `...`. */
export const isPlaceholder = (text: string): boolean =>
  /<[^>]*>|\{[^}]*\}|\$\w|^:\w|\.{3}|…|\b(your|my)[-_ ]/i.test(text);

/** The line that says what differs in an action that failed from one that worked; null if the agent did not copy it. */
export function findCopiedLine(failed: Action, difference: Difference, pages: PageText[]): CopiedLine | null {
  const candidates = pages.flatMap((page) =>
    samplesFor(failed, page).flatMap((sample) => {
      const score = copyScore(failed, sample, difference);
      return score > 0 ? [{ page, sample, score: score + (sample.isBlock ? blockBonus : 0) }] : [];
    }),
  );
  const [best] = candidates.toSorted((a, b) => b.score - a.score);
  return best ? toCopiedLine(best.page, best.sample, difference, failed) : findName(failed, difference, pages);
}

/** The samples of a page, and the lines of prose that contain a command word for word. */
export function samplesFor(action: Action, { samples, lines }: PageText): Sample[] {
  if (action.kind !== "command" || action.words.length < 2) return samples;
  const command = action.words.join(" ");
  const quoting = lines.flatMap((line, at): Sample[] =>
    indexOfName(normalizedLine(line), command) < 0 ? [] : [{ action, start: at, end: at, isBlock: false }],
  );
  return [...samples, ...quoting];
}

/** How much of a sample is in an action that was copied from it; 0 if the action wasn't, or if the sample doesn't show the difference. */
export function copyScore(failed: Action, { action: sample }: Sample, difference: Difference): number {
  if (failed.kind === "request" && sample.kind === "request") return requestCopyScore(failed, sample, difference);
  if (failed.kind !== "command") return 0;
  if (difference.role === "code") {
    const code = sample.kind === "request" ? null : sample.code;
    return code === null ? 0 : codeCopyScore(failed, code, difference);
  }
  return sample.kind === "command" ? commandCopyScore(failed, sample, difference) : 0;
}

/**
 * Whether a sample has the path of a request. The sample's path may have placeholders. If the sample has no host, the path of a base URL may be
 * missing too.
 */
function pathMatches(sample: RequestAction, path: string | null): boolean {
  const samplePath = partOf(sample, "path");
  if (samplePath === null || path === null) return samplePath === null;
  const [own, full] = [segmentsOf(samplePath), segmentsOf(path)];
  const mayLackBase = partOf(sample, "host") === null && own.length > 0 && own.length < full.length;
  if (own.length !== full.length && !mayLackBase) return false;
  const end = full.slice(full.length - own.length);
  return own.every((segment, i) => isPlaceholder(segment) || segment === end[i]);
}

function requestCopyScore(failed: RequestAction, sample: RequestAction, { role, key, found }: Difference): number {
  const [method, host] = [partOf(sample, "method"), partOf(sample, "host")];
  if (!pathMatches(sample, partOf(failed, "path"))) return 0;
  if (method !== null && method !== partOf(failed, "method")) return 0;
  if (host !== null && host !== partOf(failed, "host") && role !== "host") return 0;
  const names = sample.parts.filter((part) => part.role === "query" || part.role === "header" || part.role === "field");
  const namesOfRole = names.filter((part) => part.role === role);
  const showsDifference = () => {
    if (role === "path" || role === "method") return partOf(sample, role) !== null;
    if (role === "host" || role === "body") return partOf(sample, role) === found;
    // Without a key, the name itself is wrong or missing.
    if (key === null) return found === null || namesOfRole.some((part) => isSameKey(found, part.key));
    // `found` may be only the scheme of a header's value.
    return namesOfRole.some((part) => part.key === key && (part.value === found || part.value.startsWith(`${found} `)));
  };
  if (!showsDifference()) return 0;
  if (names.length === 0) return scoreWithoutNames;
  const shared = names.filter((part) =>
    failed.parts.some((other) => other.role === part.role && isSameKey(other.key, part.key)),
  );
  // A sample shows method, path and host in one line, so it needs no names in common.
  const isInLine = role === "method" || role === "path" || role === "host";
  // Half of the score is for the path, half for the names in common.
  const share = shared.length / names.length;
  return isInLine || share >= minShare.withError ? 0.5 + share / 2 : 0;
}

/** Whether a sample names a field: program text shows the innermost name only. */
const isSameKey = (key: string, sample: string): boolean => key === sample || key.endsWith(`.${sample}`);

function commandCopyScore(failed: CommandAction, sample: CommandAction, { found, expected }: Difference): number {
  if (sample.words[0] !== failed.words[0]) return 0;
  const similarity = (word: string, other: string) => {
    if (word === other || isPlaceholder(word)) return 1;
    return word.length > maxWordChars && wordSimilarity(word, other) > 0 ? similarityOfTexts : 0;
  };
  const score = listSimilarity(sample.words, failed.words, similarity);
  const has = (words: string) => words.split(" ").every((word) => sample.words.includes(word));
  if (found !== null) return has(found) && !isPlaceholder(found) && score >= minShare.withError ? score : 0;
  const hasMissingPart = expected !== null && (has(expected) || sample.variables.includes(expected));
  return score >= minShare.withoutPart && !hasMissingPart ? score : 0;
}

/**
 * How much of program text that failed is in a sample: of the wrong line, or of all lines if a line is missing; 0 if too little is the same for a
 * copy.
 */
function codeCopyScore({ code }: CommandAction, sample: string, { found, expected }: Difference): number {
  const sampleLines = sample.split("\n").map((line) => line.trim());
  if (found !== null) return Math.max(...sampleLines.map((line) => lineScore(line, found, expected)));
  if (expected === null || sampleLines.includes(expected)) return 0;
  const failedLines = (code ?? "")
    .split("\n")
    .map((line) => line.trim())
    // Lines of one or two brackets are in any program text.
    .filter((line) => line.length > 2);
  const share = failedLines.filter((line) => sampleLines.includes(line)).length / Math.max(1, failedLines.length);
  return share >= minShare.withError ? share : 0;
}

/** How similar a line of a sample is to the line that failed, `found`; 0 if it has nothing of what is wrong there. */
function lineScore(line: string, found: string, expected: string | null): number {
  const [own, failed, worked] = [tokensOf(line), tokensOf(found), tokensOf(expected ?? "")];
  if (own.length === 0 || own.join(" ") === worked.join(" ")) return 0;
  const score = listSimilarity(own, failed, (a, b) => (a === b ? 1 : 0));
  const wrong = failed.filter((token) => !worked.includes(token));
  if (wrong.length === 0) return score >= minShareOfLine ? score : 0;
  return wrong.some((token) => own.includes(token)) && score >= minShare.withError ? score : 0;
}

function toCopiedLine(page: PageText, sample: Sample, difference: Difference, failed: Action): CopiedLine {
  const { start, end, action } = sample;
  if (difference.role === "code") return codeLine(page, sample, difference);
  const lines = page.lines.slice(start, end + 1);
  const { found, expected } = replacementIn(action, difference);
  const index = found === null ? -1 : lines.findIndex((line) => namesPart(line, found, difference));
  if (found === null || index < 0)
    return { page, at: start, difference, ...inserted(lines[0] ?? "", difference, action) };
  const replacement = uniqueInLine(lines[index]!, { found, expected, difference, sample: action, failed });
  return { page, at: start + index, difference, ...replacement };
}

/** A difference as a sample writes it: a path without its base URL, a value without its quotes, and a field by its innermost name. */
function replacementIn(sample: Action, difference: Difference): Replacement {
  const { role, key, found, expected } = difference;
  if (role === "path" && sample.kind === "request") return pathReplacement(sample, difference);
  const asInSample = (text: string) => {
    if (key !== null) return text.replace(/^"|"$/g, "");
    return role === "field" ? text.split(".").at(-1)! : text;
  };
  return { found: found && asInSample(found), expected: expected && asInSample(expected) };
}

/** Whether a line has a name or value. The names of headers may be in any case. */
const namesPart = (line: string, text: string, { role, key }: Difference): boolean =>
  namesWord(role === "header" && key === null ? line.toLowerCase() : line, text);

/** A replacement as its line writes it. If the text may occur twice in the line, the replacement includes what is next to it. */
function uniqueInLine(
  line: string,
  copy: { found: string; expected: string | null; difference: Difference; sample: Action; failed: Action },
): Replacement {
  const { found, expected, difference, sample, failed } = copy;
  const { role, key } = difference;
  if (role === "header") {
    const at = line.toLowerCase().indexOf(found.toLowerCase());
    return { found: line.slice(at, at + found.length), expected };
  }
  if (expected === null) return { found, expected };
  if (role === "operand" && sample.kind === "command") {
    const before = sample.words.slice(0, sample.words.indexOf(found.split(" ")[0]!)).join(" ");
    if (before !== "" && line.includes(`${before} ${found}`))
      return { found: `${before} ${found}`, expected: `${before} ${expected}` };
  }
  const value = role === "query" && key === null ? queryValueOf(failed, found) : null;
  return value !== null && line.includes(`${found}=${value}`)
    ? { found: `${found}=${value}`, expected: `${expected}=${value}` }
    : { found, expected };
}

const queryValueOf = (action: Action, name: string): string | null =>
  action.kind === "request"
    ? (action.parts.find(({ role, key }) => role === "query" && key === name)?.value ?? null)
    : null;

/** The line of a sample of program text that is wrong, or its first line if one is missing. */
function codeLine(page: PageText, { start, end }: Sample, difference: Difference): CopiedLine {
  const { found, expected } = difference;
  if (found === null) return { page, at: start, difference, found: null, expected };
  let best = { at: start, score: 0 };
  for (let at = start; at <= end; at++) {
    const score = lineScore(page.lines[at] ?? "", found, expected);
    if (score > best.score) best = { at, score };
  }
  const line = (page.lines[best.at] ?? "").trim();
  return { page, at: best.at, difference, found: line.includes(found) ? found : line, expected };
}

/** A path as the sample writes it, with placeholders and without a base URL, and the right one written the same way. */
function pathReplacement(sample: RequestAction, { found, expected }: Difference): Replacement {
  const path = partOf(sample, "path");
  if (path === null || path === found || found === null || expected === null) return { found, expected };
  const [inSample, failed, right] = [segmentsOf(path), segmentsOf(found), segmentsOf(expected)];
  const base = failed.slice(0, failed.length - inSample.length);
  const failedBelowBase = failed.slice(base.length);
  const hasSameBase = base.every((segment, i) => segment === right[i]);
  const segments = (hasSameBase ? right.slice(base.length) : right).map((segment) => {
    // What the agent had put in place of a placeholder is a placeholder again.
    const sampleSegment = inSample[failedBelowBase.indexOf(segment)];
    return sampleSegment !== undefined && isPlaceholder(sampleSegment) ? sampleSegment : segment;
  });
  return { found: path, expected: `/${segments.join("/")}` };
}

/** The line of a sample, and the same line with the missing part inserted. If it isn't known where the part belongs, only the part. */
function inserted(line: string, { role, expected, after }: Difference, sample: Action): Replacement {
  const text = line.trim().replace(/^[$%❯]\s+/, "");
  // Only a line that begins with the sample has nothing else around it.
  const startOfSample = sample.source.split("\n")[0]!.slice(0, 4);
  if (expected === null || !text.startsWith(startOfSample)) return { found: null, expected };
  const insertAfter = (word: string, addition: string) => {
    const at = text.indexOf(word);
    return at < 0 ? null : text.slice(0, at + word.length) + addition + text.slice(at + word.length);
  };
  const complete = () => {
    if (sample.kind === "command")
      return role === "variable" ? `${expected}=… ${text}` : insertAfter(after ?? sample.words[0]!, ` ${expected}`);
    if (!/^curl\b/.test(text)) return null;
    const path = sample.kind === "request" ? (partOf(sample, "path") ?? "") : "";
    if (role === "header") return insertAfter("curl", ` -H '${expected}'`);
    if (role === "method") return insertAfter("curl", ` -X ${expected}`);
    if (role === "query") return insertAfter(path, `?${expected}`);
    const isEmptyObject = /^[^{]*\{\s*\}/.test(text);
    return role === "field" ? insertAfter("{", isEmptyObject ? expected : `${expected}, `) : null;
  };
  const completed = complete();
  return completed === null ? { found: null, expected } : { found: text, expected: completed };
}

/** A name in code, on a page that also names the path: fields and parameters are often listed in tables. */
function findName(failed: Action, difference: Difference, pages: PageText[]): CopiedLine | null {
  const { role, key, found, expected } = difference;
  if (failed.kind !== "request" || found === null || key !== null) return null;
  if (role !== "query" && role !== "header" && role !== "field") return null;
  const name = found.split(".").at(-1)!;
  const resource = segmentsOf(partOf(failed, "path") ?? "").findLast((segment) => !/\d/.test(segment));
  if (name.length < 2 || resource === undefined) return null;
  for (const page of pages) {
    if (!namesWord(page.text, resource)) continue;
    const at = page.lines.findIndex((line) =>
      [...line.matchAll(/`([^`]+)`/g)].some(([, code = ""]) => code === name || code === `"${name}"`),
    );
    if (at >= 0) return { page, at, difference, found: name, expected: expected?.split(".").at(-1) ?? null };
  }
  return null;
}
