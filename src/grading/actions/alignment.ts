import {
  type Action,
  type CommandAction,
  type Part,
  partOf,
  type RequestAction,
  type Role,
  segmentsOf,
} from "./action.ts";
import { tokensOf } from "./code.ts";

/**
 * How an action that worked differs from an action that failed. `found`: what the failed action has; null: nothing. `expected`: what the action that
 * worked has in its place; null: nothing. `key`: the key of a part whose value differs; null: the part's name differs, or it has no name. `after`:
 * the last word of a command before the difference.
 */
export type Difference = {
  role: Role;
  key: string | null;
  found: string | null;
  expected: string | null;
  after?: string;
};

/** Maximum number of items of a list that are aligned: the time grows with the product of both lengths. */
const maxItems = 600;

/**
 * Aligns the first items of two lists, like a diff. Returns pairs of the indexes of similar items, in order. Their sum of similarities (0 to 1 each)
 * is the largest possible. null: the other item of the pair has no counterpart.
 */
function align<T>(allOfA: T[], allOfB: T[], similarity: (a: T, b: T) => number): [number | null, number | null][] {
  const [a, b] = [allOfA.slice(0, maxItems), allOfB.slice(0, maxItems)];
  // `best[i][j]`: the largest sum of similarities of all items from `i` and `j` on.
  const best = Array.from({ length: a.length + 1 }, () => new Float64Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      best[i]![j] = Math.max(best[i + 1]![j]!, best[i]![j + 1]!, best[i + 1]![j + 1]! + similarity(a[i]!, b[j]!));
  const pairs: [number | null, number | null][] = [];
  let [i, j] = [0, 0];
  while (i < a.length && j < b.length) {
    const similar = similarity(a[i]!, b[j]!);
    if (similar > 0 && best[i]![j] === best[i + 1]![j + 1]! + similar) pairs.push([i++, j++]);
    else if (best[i]![j] === best[i + 1]![j]) pairs.push([i++, null]);
    else pairs.push([null, j++]);
  }
  for (; i < a.length; i++) pairs.push([i, null]);
  for (; j < b.length; j++) pairs.push([null, j]);
  return pairs;
}

/** How similar words are that aren't equal: two IDs, a word that contains the other one, and words that start alike. */
const similarityOfIds = 0.9;
const similarityOfContained = 0.8;
const similarityOfSameStart = 0.6;
/**
 * Words start alike if they share this many letters, and this share of the longer word. A word counts as contained in another one from this many
 * letters on.
 */
const minSameStart = { letters: 3, share: 0.4 };

/** 0 to 1: 1 for equal words, less for words that are only similar. */
export function wordSimilarity(a: string, b: string): number {
  if (a === b) return 1;
  if (isId(a) && isId(b)) return similarityOfIds;
  const [short, long] = a.length <= b.length ? [a.toLowerCase(), b.toLowerCase()] : [b.toLowerCase(), a.toLowerCase()];
  if (short.length >= minSameStart.letters && long.includes(short)) return similarityOfContained;
  const firstOther = [...short].findIndex((char, i) => char !== long[i]);
  // The dashes of options don't make them alike.
  const dashes = /^-*/.exec(short)![0].length;
  const sameLetters = (firstOther < 0 ? short.length : firstOther) - dashes;
  const startsAlike = sameLetters >= minSameStart.letters && sameLetters / (long.length - dashes) >= minSameStart.share;
  return startsAlike ? similarityOfSameStart : 0;
}

/** 0 to 1: how much of two lists of words is aligned. */
export function listSimilarity(a: string[], b: string[], similarity = wordSimilarity): number {
  if (a.length + b.length === 0) return 1;
  let sum = 0;
  for (const [i, j] of align(a, b, similarity)) if (i !== null && j !== null) sum += similarity(a[i]!, b[j]!);
  return (2 * sum) / (a.length + b.length);
}

const equality = (a: string, b: string): number => (a === b ? 1 : 0);
const codeSimilarity = (a: string, b: string): number =>
  a === b ? 1 : listSimilarity(tokensOf(a).slice(0, maxItems), tokensOf(b).slice(0, maxItems), equality);

const isSafe = (method: string | null) => method !== null && /^(GET|HEAD|OPTIONS)$/.test(method);
/** Whether a word may be the ID of something, rather than a version or a name. */
export const isId = (word: string): boolean => /\d/.test(word) && !/^v\d+/i.test(word) && !/^-|[=/(\s]/.test(word);

/** 0 to 1: how similar two segments of paths are. Two IDs count as similar, because each may name some resource. */
const segmentSimilarity = (a: string, b: string): number => (a !== b && isId(a) && isId(b) ? 1 : wordSimilarity(a, b));

/** The values that a request sends, without the quotes around them. */
const dataOf = ({ parts }: RequestAction): string[] =>
  parts.flatMap(({ role, value }) =>
    role === "query" || role === "field" || role === "body" ? [value.replace(/^"|"$/g, "")] : [],
  );

/** Paths, sent values and lines of program text have something in common from this similarity on. */
const minSimilarity = 0.5;

/** 0 to 1: whether two requests have the same purpose. What they send counts as much as their paths, and twice as much as method or host. */
function requestSimilarity(failed: RequestAction, later: RequestAction): number {
  const [method, otherMethod] = [partOf(failed, "method"), partOf(later, "method")];
  const [data, otherData] = [dataOf(failed), dataOf(later)];
  const hasData = data.length + otherData.length > 0;
  const dataSimilarity = hasData ? listSimilarity(data.toSorted(), otherData.toSorted()) : 0;
  const pathSimilarity = listSimilarity(
    segmentsOf(partOf(failed, "path") ?? ""),
    segmentsOf(partOf(later, "path") ?? ""),
    segmentSimilarity,
  );
  // Looking at something is not a way to change it.
  const onlyLooks = !isSafe(method) && isSafe(otherMethod);
  if (dataSimilarity < minSimilarity && (onlyLooks || pathSimilarity < minSimilarity)) return 0;
  const sameMethod = Number(method === otherMethod);
  const sameHost = Number(partOf(failed, "host") === partOf(later, "host"));
  const target = 2 * pathSimilarity + sameMethod + sameHost;
  return hasData ? (target + 2 * dataSimilarity) / 6 : target / 4;
}

const isOption = (word: string) => word.startsWith("-");
/** The similarity of two commands with the same words that run different program text. */
const similarityOfOtherCode = 0.9;
/** A command of another program has the same purpose from this similarity on, if the product rejected the first program. */
const minSimilarityOfOtherProgram = 0.4;

/** 0 to 1: whether two commands have the same purpose. `isRejected`: whether the product's message names a word. */
function commandSimilarity(failed: CommandAction, later: CommandAction, isRejected: (word: string) => boolean): number {
  const [words, others] = [failed.words, later.words];
  if (words.join("\0") === others.join("\0")) return failed.code === later.code ? 1 : similarityOfOtherCode;
  const similarity = (word: string, other: string) =>
    word === failed.code && other === later.code ? codeSimilarity(word, other) : wordSimilarity(word, other);
  const pairs = align(words, others, similarity);
  // A word that was left out, or replaced by an unlike word, must be an option or what the product rejected.
  const leftOut = pairs.flatMap(([i, j]) => (i !== null && j === null ? [words[i]!] : []));
  if (leftOut.some((word) => !isOption(word) && !isRejected(word))) return 0;
  // Programs that only look at things have the same purpose only if they look at the same things.
  const hasOtherOperands = pairs.some(
    ([i, j]) => i !== null && i > 0 && !isOption(words[i]!) && (j === null || words[i] !== others[j]),
  );
  if (!failed.changes && hasOtherOperands) return 0;
  const score = listSimilarity(words, others, similarity);
  const [program = ""] = words;
  const keepsProgram = wordSimilarity(program, others[0] ?? "") > 0 || others.includes(program);
  if (keepsProgram) return score;
  return isRejected(program) && words.length > 1 && score >= minSimilarityOfOtherProgram ? score : 0;
}

/** Two actions have the same purpose from this similarity on. */
export const minIntentSimilarity = 0.55;

/** 0 to 1: whether a later action has the same purpose as one that failed. `message`: what the product or the shell said. */
export function similarityOf(failed: Action, later: Action, message = ""): number {
  if (failed.kind === "request" && later.kind === "request") return requestSimilarity(failed, later);
  if (failed.kind !== "command" || later.kind !== "command") return 0;
  return commandSimilarity(failed, later, (word) => namesWord(message, word));
}

/** Whether a text contains a word as a whole. */
export function namesWord(text: string, word: string): boolean {
  const isWord = (char: string | undefined) => char !== undefined && /[\p{L}\p{N}_]/u.test(char);
  if (word === "") return false;
  for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + 1)) {
    const startsInWord = isWord(text[at - 1]) && isWord(word[0]);
    const endsInWord = isWord(text[at + word.length]) && isWord(word.at(-1));
    if (!startsInWord && !endsInWord) return true;
  }
  return false;
}

/** What differs between an action that failed and one that worked. */
export function differencesOf(failed: Action, worked: Action): Difference[] {
  if (failed.kind === "request" && worked.kind === "request") return requestDifferences(failed, worked);
  if (failed.kind === "command" && worked.kind === "command") return commandDifferences(failed, worked);
  return [];
}

function requestDifferences(failed: RequestAction, worked: RequestAction): Difference[] {
  const single = (["method", "host", "path"] as const).flatMap((role): Difference[] => {
    const [found, expected] = [partOf(failed, role), partOf(worked, role)];
    return found === null || expected === null || found === expected ? [] : [{ role, key: null, found, expected }];
  });
  const body = partOf(failed, "body");
  const isMalformedJson = body !== null && /^\s*[[{]/.test(body) && partOf(worked, "body") === null;
  if (isMalformedJson) return [...single, { role: "body", key: null, found: body, expected: bodyOf(worked) }];
  const named = (["query", "header", "field"] as const).flatMap((role) => namedDifferences(role, failed, worked));
  return [...single, ...named];
}

/** The JSON of a body, made again from its fields. */
const bodyOf = ({ parts }: RequestAction): string =>
  `{${parts.flatMap(({ role, key, value }) => (role === "field" ? [`"${key}": ${value}`] : [])).join(", ")}}`;

/**
 * The names that only one of the requests has, then the values that differ. Two names count as one renamed name if their values are equal, if the
 * names are alike, or if neither request has another name that the other one lacks.
 */
function namedDifferences(role: Part["role"], failed: RequestAction, worked: RequestAction): Difference[] {
  const failedParts = failed.parts.filter((part) => part.role === role);
  const workedParts = worked.parts.filter((part) => part.role === role);
  const missing = failedParts.filter(({ key }) => !workedParts.some((other) => other.key === key));
  const added = workedParts.filter(({ key }) => !failedParts.some((other) => other.key === key));
  const newNameOf = (part: Part): Part | undefined => {
    const sameValue = added.find(({ value }) => value === part.value);
    if (sameValue) return sameValue;
    if (missing.length === 1 && added.length === 1) return added[0];
    return added.find(({ key }) => wordSimilarity(key, part.key) > 0);
  };
  const renamed = missing.flatMap((part) => {
    const other = newNameOf(part);
    return other ? [{ part, other }] : [];
  });
  const isRenamed = (part: Part) => renamed.some((pair) => pair.part === part || pair.other === part);
  const values = failedParts.flatMap((part): Difference[] => {
    const parts = workedParts.filter(({ key }) => key === part.key);
    const [other] = parts;
    if (isAuthorization(part)) return schemeDifferences(part, other);
    if (other === undefined || parts.some(({ value }) => value === part.value)) return [];
    return [{ role, key: part.key, found: part.value, expected: other.value }];
  });
  return [
    ...renamed.map(({ part, other }) => ({ role, key: null, found: part.key, expected: other.key })),
    ...missing.filter((part) => !isRenamed(part)).map(({ key }) => ({ role, key: null, found: key, expected: null })),
    ...added
      .filter((part) => !isRenamed(part))
      .map((part) => ({ role, key: null, found: null, expected: asWritten(part) })),
    ...values,
  ];
}

function asWritten({ role, key, value }: Part): string {
  if (role === "header") return headerLine(key, value);
  return role === "query" ? `${key}=${value}` : `"${key}": ${value}`;
}

const isAuthorization = ({ role, key }: Part) => role === "header" && /^(proxy-)?authorization$/.test(key);

/** Compares only the schemes of credentials. The credentials themselves are the reader's own. */
function schemeDifferences(part: Part, other: Part | undefined): Difference[] {
  const [found, expected] = [schemeIn(part.value), schemeIn(other?.value ?? "")];
  return found === null || expected === null || found === expected
    ? []
    : [{ role: "header", key: part.key, found, expected }];
}

/** The scheme of a header with credentials, such as Bearer; null: it has none. */
const schemeIn = (value: string): string | null => /^(\S+) /.exec(value)?.[1] ?? null;

/** A header as it is usually written. Credentials are the reader's own. */
function headerLine(key: string, value: string): string {
  const name = key.replace(/(^|-)\w/g, (start) => start.toUpperCase());
  const isCredential = /^((proxy-)?authorization|cookie)$/.test(key);
  return `${name}: ${isCredential ? value.replace(/^(\w+ )?.*$/s, "$1…") : value}`;
}

/** What differs between two commands: words, variables that only the command that worked had, and lines of program text. */
function commandDifferences(failed: CommandAction, worked: CommandAction): Difference[] {
  const textOf = (words: string[]) => words.join(" ") || null;
  const words = groupsOfOtherWords(failed, worked).map(
    ({ role, found, expected, after }): Difference => ({
      role,
      key: null,
      found: textOf(found),
      expected: textOf(expected),
      after,
    }),
  );
  const variables = worked.variables
    .filter((name) => !failed.variables.includes(name))
    .map((name): Difference => ({ role: "variable", key: null, found: null, expected: name }));
  return [...words, ...variables, ...codeDifferences(failed.code, worked.code)];
}

/** Words in a row that differ. On one side only, they were added or left out. `after`: the last word before them that doesn't differ. */
type WordGroup = { role: Role; found: string[]; expected: string[]; after: string };

function groupsOfOtherWords(failed: CommandAction, worked: CommandAction): WordGroup[] {
  // Program text is compared by its lines.
  const isCode = (word: string) => word === failed.code || word === worked.code;
  const pairs = align(failed.words, worked.words, (a, b) =>
    isCode(a) && isCode(b) ? similarityOfIds : wordSimilarity(a, b),
  );
  const groups: WordGroup[] = [];
  let openGroup: WordGroup | null = null;
  let lastSameWord = failed.words[0] ?? "";
  for (const [i, j] of pairs) {
    const [word, other] = [i === null ? null : failed.words[i]!, j === null ? null : worked.words[j]!];
    if (word === other || (word !== null && isCode(word))) {
      openGroup = null;
      lastSameWord = word ?? lastSameWord;
      continue;
    }
    if (openGroup === null) {
      openGroup = { role: roleOfWord(word ?? other!, i ?? j!), found: [], expected: [], after: lastSameWord };
      groups.push(openGroup);
    }
    if (word !== null) openGroup.found.push(word);
    if (other !== null) openGroup.expected.push(other);
  }
  return groups;
}

function roleOfWord(word: string, index: number): Role {
  if (index === 0) return "program";
  return isOption(word) ? "option" : "operand";
}

const linesOf = (code: string): string[] =>
  code
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean)
    .slice(0, maxItems);

/** The lines that differ between two program texts. */
function codeDifferences(failed: string | null, worked: string | null): Difference[] {
  if (failed === null || worked === null || failed === worked) return [];
  const [lines, others] = [linesOf(failed), linesOf(worked)];
  const similarity = (a: string, b: string) => {
    const score = codeSimilarity(a, b);
    return score >= minSimilarity ? score : 0;
  };
  return align(lines, others, similarity).flatMap(([i, j]): Difference[] => {
    const [found, expected] = [i === null ? null : lines[i]!, j === null ? null : others[j]!];
    return found === expected ? [] : [{ role: "code", key: null, found, expected }];
  });
}
