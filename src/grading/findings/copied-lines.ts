import { type Action, type CommandAction, partOf, type RequestAction } from "../actions/action.ts";
import { type Difference, listSimilarity, namesWord, wordSimilarity } from "../actions/alignment.ts";
import { tokensOf } from "../actions/code.ts";
import type { Sample } from "../actions/samples.ts";
import { indexOfName, normalizedLine } from "../text.ts";
import type { PageText } from "./pages-read.ts";

/** A line of a page that a failed action was copied from, with what is wrong there. `found` null: something is missing. */
export type CopiedLine = {
  page: PageText;
  at: number;
  difference: Difference;
  found: string | null;
  expected: string | null;
};

/** Text that readers replace with their own: `<name>`, `{id}`, `$KEY`, `:id`, `YOUR_KEY`, `...`. */
export const isPlaceholder = (text: string): boolean =>
  /<[^>]*>|\{[^}]*\}|\$\w|^:\w|\.{3}|…|\b(your|my)[-_ ]/i.test(text);

/** The line that says what differs in an action that failed from one that worked; null if the agent did not copy it. */
export function findCopiedLine(failed: Action, difference: Difference, pages: PageText[]): CopiedLine | null {
  const candidates = pages.flatMap((page) =>
    samplesFor(failed, page).flatMap((sample) => {
      const score = copyScore(failed, sample, difference);
      return score > 0 ? [{ page, sample, score: score + (sample.isBlock ? 0.01 : 0) }] : [];
    }),
  );
  const best = candidates.reduce<(typeof candidates)[number] | null>(
    (all, each) => (all === null || each.score > all.score ? each : all),
    null,
  );
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

/** How much of a sample is in an action that was copied from it; 0 if it wasn't, or doesn't show the difference. */
export function copyScore(failed: Action, { action: sample }: Sample, difference: Difference): number {
  if (failed.kind === "request" && sample.kind === "request") return requestCopyScore(failed, sample, difference);
  if (failed.kind !== "command") return 0;
  if (difference.role === "code") {
    const code = sample.kind === "request" ? null : sample.code;
    return code === null ? 0 : codeCopyScore(failed, code, difference);
  }
  return sample.kind === "command" ? commandCopyScore(failed, sample, difference) : 0;
}

/** The path of a request as a sample writes it: with placeholders and, if it names no host, after a base URL. */
function pathMatches(sample: string | null, path: string | null, isWhole: boolean): boolean {
  if (sample === null || path === null) return sample === null;
  const [own, full] = [sample, path].map((each) => each.split("/").filter(Boolean)) as [string[], string[]];
  if (own.length === 0 || own.length > full.length || (isWhole && own.length < full.length))
    return own.length === full.length;
  const tail = full.slice(full.length - own.length);
  return own.every((segment, i) => isPlaceholder(segment) || segment === tail[i]);
}

function requestCopyScore(failed: RequestAction, sample: RequestAction, { role, key, found }: Difference): number {
  const [method, host] = [partOf(sample, "method"), partOf(sample, "host")];
  if (!pathMatches(partOf(sample, "path"), partOf(failed, "path"), host !== null)) return 0;
  if (method !== null && method !== partOf(failed, "method")) return 0;
  if (host !== null && host !== partOf(failed, "host") && role !== "host") return 0;
  const names = sample.parts.filter((part) => part.role === "query" || part.role === "header" || part.role === "field");
  const namesOfRole = names.filter((part) => part.role === role);
  const showsDifference = () => {
    if (role === "path" || role === "method") return partOf(sample, role) !== null;
    if (role === "host" || role === "body") return partOf(sample, role) === found;
    if (key === null) return found === null || namesOfRole.some((part) => isSameKey(found, part.key));
    // The value of a header may go on after its scheme.
    return namesOfRole.some((part) => part.key === key && (part.value === found || part.value.startsWith(`${found} `)));
  };
  if (!showsDifference()) return 0;
  const shared = names.filter((part) =>
    failed.parts.some((other) => other.role === part.role && isSameKey(other.key, part.key)),
  );
  if (names.length === 0) return 0.75;
  // What a request asks for shows in its line, whatever it carries.
  const isLine = role === "method" || role === "path" || role === "host";
  return isLine || shared.length / names.length >= 0.5 ? 0.5 + shared.length / names.length / 2 : 0;
}

/** Whether a sample names a field: program text shows the innermost name only. */
const isSameKey = (key: string, sample: string): boolean => key === sample || key.endsWith(`.${sample}`);

function commandCopyScore(failed: CommandAction, sample: CommandAction, { found, expected }: Difference): number {
  const similarity = (word: string, other: string) =>
    word === other || isPlaceholder(word) ? 1 : word.length > 20 && wordSimilarity(word, other) > 0 ? 0.9 : 0;
  const score = listSimilarity(sample.words, failed.words, similarity);
  const has = (words: string) => words.split(" ").every((word) => sample.words.includes(word));
  if (sample.words[0] !== failed.words[0]) return 0;
  if (found !== null) return has(found) && !isPlaceholder(found) && score >= 0.5 ? score : 0;
  return score >= 0.7 && !(expected !== null && has(expected)) && !sample.variables.includes(expected ?? "")
    ? score
    : 0;
}

/** Whether program text contains the line that was changed, or most of the text that lacks a line. */
function codeCopyScore({ code }: CommandAction, sample: string, { found, expected }: Difference): number {
  if (found !== null)
    return sample.split("\n").reduce((best, line) => Math.max(best, lineScore(line, found, expected)), 0);
  const lines = (code ?? "")
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line.length > 2);
  const own = sample.split("\n").map((line) => line.trim());
  if (expected === null || own.includes(expected)) return 0;
  const shared = lines.filter((line) => own.includes(line)).length / Math.max(1, lines.length);
  return shared >= 0.5 ? shared : 0;
}

function lineScore(line: string, found: string, expected: string | null): number {
  const [own, failed, worked] = [tokensOf(line), tokensOf(found), tokensOf(expected ?? "")];
  if (own.length === 0 || own.join(" ") === worked.join(" ")) return 0;
  const score = listSimilarity(own, failed, (a, b) => (a === b ? 1 : 0));
  const wrong = failed.filter((token) => !worked.includes(token));
  if (wrong.length === 0) return score >= 0.95 ? score : 0;
  return wrong.some((token) => own.includes(token)) && score >= 0.5 ? score : 0;
}

function toCopiedLine(page: PageText, sample: Sample, difference: Difference, failed: Action): CopiedLine {
  const { start, end, action } = sample;
  const range = page.lines.slice(start, end + 1);
  const { role, key, expected } = difference;
  if (role === "code") return codeLine(page, sample, difference);
  const written =
    action.kind === "request" && role === "path"
      ? writtenPath(action, failed, difference)
      : { found: difference.found, expected };
  const shown =
    key === null || written.found === null
      ? written
      : { found: written.found.replace(/^"|"$/g, ""), expected: expected?.replace(/^"|"$/g, "") ?? null };
  const name =
    shown.found === null ? null : role === "field" && key === null ? shown.found.split(".").at(-1)! : shown.found;
  const last = role === "field" && key === null ? (shown.expected?.split(".").at(-1) ?? null) : shown.expected;
  const index =
    name === null
      ? -1
      : range.findIndex((line) => namesWord(role === "header" && key === null ? line.toLowerCase() : line, name));
  if (name !== null && index >= 0) {
    const line = range[index]!;
    const asWritten =
      role === "header" ? line.slice(line.toLowerCase().indexOf(name.toLowerCase())).slice(0, name.length) : name;
    // A name may occur twice in a line, and its command only once.
    const words = action.kind === "command" && role === "operand" ? action.words : [];
    const before = words.slice(0, words.indexOf(name.split(" ")[0]!)).join(" ");
    if (before !== "" && last !== null && line.includes(`${before} ${name}`))
      return { page, at: start + index, difference, found: `${before} ${name}`, expected: `${before} ${last}` };
    const value = role === "query" && key === null ? queryValueOf(failed, name) : null;
    if (value !== null && last !== null && line.includes(`${name}=${value}`))
      return { page, at: start + index, difference, found: `${name}=${value}`, expected: `${last}=${value}` };
    return { page, at: start + index, difference, found: asWritten, expected: last };
  }
  return { page, at: start, difference, ...inserted(range[0] ?? "", difference, action) };
}

const queryValueOf = (action: Action, name: string): string | null =>
  action.kind === "request"
    ? (action.parts.find(({ role, key }) => role === "query" && key === name)?.value ?? null)
    : null;

/** The line of a sample of program text that is wrong, or its first line if one is missing. */
function codeLine(page: PageText, { start, end }: Sample, difference: Difference): CopiedLine {
  const { found, expected } = difference;
  let [at, best] = [start, 0];
  for (let i = start; found !== null && i <= end; i++) {
    const score = lineScore(page.lines[i] ?? "", found, expected);
    if (score > best) [at, best] = [i, score];
  }
  if (found === null) return { page, at, difference, found: null, expected };
  const line = (page.lines[at] ?? "").trim();
  const inline = line.includes(found) ? found : line;
  return { page, at, difference, found: inline, expected };
}

/** A path as the sample writes it, and the right one written the same way. */
function writtenPath(sample: RequestAction, failed: Action, { found, expected }: Difference) {
  const own = partOf(sample, "path");
  if (own === null || own === found || found === null || expected === null || failed.kind !== "request")
    return { found, expected };
  const [segments, full, right] = [own, found, expected].map((each) => each.split("/").filter(Boolean)) as [
    string[],
    string[],
    string[],
  ];
  const mount = full.slice(0, full.length - segments.length);
  const tail = full.slice(mount.length);
  const rest = mount.every((segment, i) => segment === right[i]) ? right.slice(mount.length) : right;
  const written = rest.map((segment) => {
    const at = tail.indexOf(segment);
    return at >= 0 && isPlaceholder(segments[at]!) ? segments[at]! : segment;
  });
  return { found: own, expected: `/${written.join("/")}` };
}

/** The line with what is missing, as far as its notation is known. */
function inserted(
  line: string,
  { role, expected, after }: Difference,
  sample: Action,
): { found: string | null; expected: string | null } {
  const text = line.trim().replace(/^[$%❯]\s+/, "");
  if (expected === null || !text.startsWith(sample.source.split("\n")[0]!.slice(0, 4)))
    return { found: null, expected };
  const into = (word: string, addition: string) => {
    const at = text.indexOf(word);
    return at < 0 ? null : text.slice(0, at + word.length) + addition + text.slice(at + word.length);
  };
  const path = sample.kind === "request" ? (partOf(sample, "path") ?? "") : "";
  const complete = () => {
    if (sample.kind === "command")
      return role === "variable" ? `${expected}=… ${text}` : into(after ?? sample.words[0]!, ` ${expected}`);
    if (!/^curl\b/.test(text)) return null;
    if (role === "header") return into("curl", ` -H '${expected}'`);
    if (role === "method") return into("curl", ` -X ${expected}`);
    if (role === "query") return into(path, `?${expected}`);
    const isEmptyObject = /^[^{]*\{\s*\}/.test(text);
    return role === "field" ? into("{", isEmptyObject ? expected : `${expected}, `) : null;
  };
  const whole = complete();
  return whole === null ? { found: null, expected } : { found: text, expected: whole };
}

/** A name in code, on a page that also names the path: fields and parameters are often listed in tables. */
function findName(failed: Action, difference: Difference, pages: PageText[]): CopiedLine | null {
  const { role, key, found, expected } = difference;
  if (failed.kind !== "request" || found === null || key !== null) return null;
  if (role !== "query" && role !== "header" && role !== "field") return null;
  const name = found.split(".").at(-1)!;
  const last = (partOf(failed, "path") ?? "")
    .split("/")
    .filter((segment) => segment && !/\d/.test(segment))
    .at(-1);
  if (name.length < 2 || last === undefined) return null;
  for (const page of pages) {
    if (!namesWord(page.text, last)) continue;
    const at = page.lines.findIndex((line) =>
      [...line.matchAll(/`([^`]+)`/g)].some(([, code = ""]) => code === name || code === `"${name}"`),
    );
    if (at >= 0) return { page, at, difference, found: name, expected: expected?.split(".").at(-1) ?? null };
  }
  return null;
}
