import { type Action, type CommandAction, type Part, partOf, type RequestAction, type Role } from "./action.ts";
import { tokensOf } from "./code.ts";

/** What one action has and the other doesn't. `found` null: added; `expected` null: left out. `key`: of a part whose value differs. */
export type Difference = {
  role: Role;
  key: string | null;
  found: string | null;
  expected: string | null;
  after?: string;
};

/** Items of a list that are aligned: the time grows with the product of both lists. */
const maxItems = 600;

/**
 * Aligns the starts of two lists: pairs of the indexes of similar items, in order, with the largest sum of similarities. null: the item has no
 * counterpart in the other list.
 */
function align<T>(allOfA: T[], allOfB: T[], similarity: (a: T, b: T) => number): [number | null, number | null][] {
  const [a, b] = [allOfA.slice(0, maxItems), allOfB.slice(0, maxItems)];
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

/** What pairs of words count that aren't equal: two IDs, a word that contains the other one, and words that start alike. */
const similarityOfIds = 0.9;
const similarityOfContained = 0.8;
const similarityOfSameStart = 0.6;
/** Letters, and the share of the longer word, from which words start alike or contain one another. */
const minSameStart = { letters: 3, share: 0.4 };

/** 0 to 1: 1 if equal, less if they share most of their letters. */
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
  const sum = align(a, b, similarity).reduce(
    (all, [i, j]) => all + (i === null || j === null ? 0 : similarity(a[i]!, b[j]!)),
    0,
  );
  return (2 * sum) / (a.length + b.length);
}

const equality = (a: string, b: string): number => (a === b ? 1 : 0);
const codeSimilarity = (a: string, b: string): number =>
  a === b ? 1 : listSimilarity(tokensOf(a).slice(0, maxItems), tokensOf(b).slice(0, maxItems), equality);

const isSafe = (method: string | null) => method !== null && /^(GET|HEAD|OPTIONS)$/.test(method);
/** Whether a word may be the ID of something, rather than a version or a name. */
export const isId = (word: string): boolean => /\d/.test(word) && !/^v\d+/i.test(word) && !/^-|[=/(\s]/.test(word);
const segmentsOf = (path: string | null) => (path ?? "").split("/").filter(Boolean);

/** Segments that name a resource by its ID stand for each other. */
const segmentSimilarity = (a: string, b: string): number => (a !== b && isId(a) && isId(b) ? 1 : wordSimilarity(a, b));

/** The values that a request sends, without the quotes around them. */
const dataOf = ({ parts }: RequestAction): string[] =>
  parts.flatMap(({ role, value }) =>
    role === "query" || role === "field" || role === "body" ? [value.replace(/^"|"$/g, "")] : [],
  );

/** 0 to 1: whether two requests have the same purpose. What they send counts as much as where they send it. */
function requestSimilarity(a: RequestAction, b: RequestAction): number {
  const [method, otherMethod] = [partOf(a, "method"), partOf(b, "method")];
  const [data, otherData] = [dataOf(a), dataOf(b)];
  const path = listSimilarity(segmentsOf(partOf(a, "path")), segmentsOf(partOf(b, "path")), segmentSimilarity);
  const dataSimilarity =
    data.length + otherData.length === 0 ? null : listSimilarity(data.toSorted(), otherData.toSorted());
  // Looking at something is not a way to change it.
  if (!isSafe(method) && isSafe(otherMethod) && !(dataSimilarity !== null && dataSimilarity >= 0.5)) return 0;
  if (path < 0.5 && !(dataSimilarity !== null && dataSimilarity >= 0.5)) return 0;
  const scores: [weight: number, score: number][] = [
    [2, path],
    [1, method === otherMethod ? 1 : 0],
    [1, partOf(a, "host") === partOf(b, "host") ? 1 : 0],
    ...(dataSimilarity === null ? [] : [[2, dataSimilarity] as [number, number]]),
  ];
  return (
    scores.reduce((sum, [weight, score]) => sum + weight * score, 0) / scores.reduce((sum, [weight]) => sum + weight, 0)
  );
}

/** 0 to 1: whether two commands have the same purpose. `isRejected`: whether the product's message names a word. */
function commandSimilarity(a: CommandAction, b: CommandAction, isRejected: (word: string) => boolean): number {
  const [words, others] = [a.words, b.words];
  if (words.join("\0") === others.join("\0")) return a.code === b.code ? 1 : 0.9;
  const isCode = a.code !== null && b.code !== null;
  const similarity = (x: string, y: string) =>
    isCode && x === a.code && y === b.code ? codeSimilarity(x, y) : wordSimilarity(x, y);
  const score = listSimilarity(words, others, similarity);
  const pairs = align(words, others, similarity);
  // What was left out or replaced by something unlike it must be what the product rejected, or an option.
  const replaced = pairs.flatMap(([i, j]) => (i !== null && j === null ? [words[i]!] : []));
  const isOther = replaced.some((word) => !word.startsWith("-") && !isRejected(word));
  if (isOther) return 0;
  // Programs that only look at things have the same purpose only if they look at the same things.
  if (
    !a.changes &&
    pairs.some(([i, j]) => i !== null && (j === null || words[i] !== others[j]) && !words[i]!.startsWith("-") && i > 0)
  )
    return 0;
  const keepsProgram = wordSimilarity(words[0] ?? "", others[0] ?? "") > 0 || others.includes(words[0] ?? "");
  if (!keepsProgram) return isRejected(words[0] ?? "") && words.length > 1 && score >= 0.4 ? score : 0;
  return score;
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
  for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + 1))
    if (!(isWord(text[at - 1]) && isWord(word[0])) && !(isWord(text[at + word.length]) && isWord(word.at(-1))))
      return true;
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
  const named = (["query", "header", "field"] as const).flatMap((role) => namedDifferences(role, failed, worked));
  const [body, otherBody] = [partOf(failed, "body"), partOf(worked, "body")];
  const isMalformed = body !== null && /^\s*[[{]/.test(body) && otherBody === null;
  const malformed: Difference[] = isMalformed
    ? [{ role: "body", key: null, found: body, expected: bodyOf(worked) }]
    : [];
  return [...single, ...(isMalformed ? [] : named), ...malformed];
}

/** A body again, from its fields. */
const bodyOf = ({ parts }: RequestAction): string =>
  `{${parts.flatMap(({ role, key, value }) => (role === "field" ? [`"${key}": ${value}`] : [])).join(", ")}}`;

/** Names that only one request has: renamed if they have the same value, or if there is one on each side. Then values. */
function namedDifferences(role: Part["role"], failed: RequestAction, worked: RequestAction): Difference[] {
  const of = ({ parts }: RequestAction) => parts.filter((part) => part.role === role);
  const missing = of(failed).filter(({ key }) => !of(worked).some((other) => other.key === key));
  const added = of(worked).filter(({ key }) => !of(failed).some((other) => other.key === key));
  const renamed = missing.flatMap((part) => {
    const other =
      added.find(({ value }) => value === part.value) ??
      (missing.length === 1 && added.length === 1
        ? added[0]
        : added.find(({ key }) => wordSimilarity(key, part.key) > 0));
    return other ? [{ part, other }] : [];
  });
  const isRenamed = (part: Part) => renamed.some(({ part: from, other }) => from === part || other === part);
  const values = of(failed).flatMap((part): Difference[] => {
    if (isAuthorization(part))
      return schemeDifferences(
        part,
        of(worked).find(({ key }) => key === part.key),
      );
    const other = of(worked).find(({ key, value }) => key === part.key && value !== part.value);
    const isSame = of(worked).some(({ key, value }) => key === part.key && value === part.value);
    return other && !isSame ? [{ role, key: part.key, found: part.value, expected: other.value }] : [];
  });
  return [
    ...renamed.map(({ part, other }) => ({ role, key: null, found: part.key, expected: other.key })),
    ...missing.filter((part) => !isRenamed(part)).map(({ key }) => ({ role, key: null, found: key, expected: null })),
    ...added
      .filter((part) => !isRenamed(part))
      .map(({ key, value }) => ({
        role,
        key: null,
        found: null,
        expected:
          role === "header" ? headerLine(key, value) : role === "query" ? `${key}=${value}` : `"${key}": ${value}`,
      })),
    ...values,
  ];
}

const isAuthorization = ({ role, key }: Part) => role === "header" && /^(proxy-)?authorization$/.test(key);

/** Credentials are the reader's own, but their scheme is not. */
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

/** The words that differ, in groups: a group on one side only was added or left out. */
function commandDifferences(failed: CommandAction, worked: CommandAction): Difference[] {
  const roleOf = (word: string, at: number): Role =>
    at === 0 ? "program" : word.startsWith("-") ? "option" : "operand";
  const isCode = (word: string) => word === failed.code || word === worked.code;
  const pairs = align(failed.words, worked.words, (a, b) =>
    isCode(a) && isCode(b) ? similarityOfIds : wordSimilarity(a, b),
  );
  const differences: Difference[] = [];
  let [found, expected, role]: [string[], string[], Role | null] = [[], [], null];
  let after = failed.words[0] ?? "";
  const flush = () => {
    if (role !== null)
      differences.push({
        role,
        key: null,
        found: found.join(" ") || null,
        expected: expected.join(" ") || null,
        after,
      });
    [found, expected, role] = [[], [], null];
  };
  for (const [i, j] of pairs) {
    const [word, other] = [i === null ? null : failed.words[i]!, j === null ? null : worked.words[j]!];
    if (word === other || (word !== null && isCode(word))) {
      flush();
      after = word ?? after;
    } else {
      role ??= word !== null ? roleOf(word, i!) : roleOf(other!, j!);
      if (word !== null) found.push(word);
      if (other !== null) expected.push(other);
    }
  }
  flush();
  const variables = worked.variables
    .filter((name) => !failed.variables.includes(name))
    .map((name): Difference => ({ role: "variable", key: null, found: null, expected: name }));
  return [...differences, ...variables, ...codeDifferences(failed.code, worked.code)];
}

/** The lines that differ between two program texts, with the same lines around left out. */
function codeDifferences(failed: string | null, worked: string | null): Difference[] {
  if (failed === null || worked === null || failed === worked) return [];
  const [lines, others] = [failed, worked].map((code) =>
    code
      .split("\n")
      .map((each) => each.trim())
      .filter(Boolean)
      .slice(0, maxItems),
  ) as [string[], string[]];
  const similarity = (a: string, b: string) => {
    const score = a === b ? 1 : codeSimilarity(a, b);
    return score >= 0.5 ? score : 0;
  };
  return align(lines, others, similarity).flatMap(([i, j]): Difference[] => {
    const [found, expected] = [i === null ? null : lines[i]!, j === null ? null : others[j]!];
    return found === expected ? [] : [{ role: "code", key: null, found, expected }];
  });
}
