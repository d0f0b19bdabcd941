import type { ParsedScript } from "unbash";
import { lineAt, type ParseResult } from "./bracket-samples.ts";
import { maxSampleChars } from "./inferred-languages.ts";

/** Parses a script, or the commands of a terminal session in it. */
export function parseCommands(code: string): Promise<ParseResult> {
  const commands = commandsOf(code);
  return parseShell(commands ?? code, commands !== null);
}

/**
 * Parses a terminal session. A command may continue on lines without a prompt, so the session is broken only if all of its lines together are broken,
 * too.
 */
export async function parseTerminalSession(code: string): Promise<ParseResult> {
  const commands = commandsOf(code);
  if (commands === null) return null;
  const result = await parseShell(commands, true);
  if (!result?.broken) return result;
  const fullResult = await parseShell(code.replace(prompt, ""), true);
  return fullResult?.broken ? result : null;
}

const userAtHost = String.raw`\[?[\w.-]+@[\w.-][^$#\n]*`;
const environment = String.raw`\([\w.-]+\)\s*`;
const folder = String.raw`[~/][\w/.~-]*\s*`;
/** `$ `, `~/docs $ `, `(venv) $ `, `[ann@host docs]$ `, `root@host:~# ` or `PS C:\> `. Without a user, a number sign starts a comment. */
const prompt = new RegExp(
  String.raw`^\s*(?:PS(?: [^>\n]*)?>|${userAtHost}#|(?:${userAtHost}|${environment}|${folder})?[$%❯])\s+`,
  "gm",
);

/** Commands of a terminal session: the text after a prompt, including continued lines; null without a prompt. */
export function commandsOf(code: string): string | null {
  if (code.length > maxSampleChars) return null;
  const commandLines: string[] = [];
  let isContinued = false;
  let openQuote = "";
  for (const line of code.split("\n")) {
    const afterPrompt = line.replace(prompt, "");
    const hasPrompt = afterPrompt !== line;
    if (!hasPrompt && !isContinued) continue;
    // Shells show `> ` in front of a line that continues a command.
    const command = hasPrompt ? afterPrompt : line.replace(/^> ?/, "");
    commandLines.push(command);
    openQuote = quoteAfter(command, hasPrompt ? "" : openQuote);
    isContinued = command.endsWith("\\") || openQuote !== "";
  }
  return commandLines.length > 0 ? commandLines.join("\n") : null;
}

/** The quote that is open after a line; "" if none is. `open`: the quote that was open before the line. */
function quoteAfter(line: string, open: string): string {
  let quote = open;
  for (const [match] of line.matchAll(/\\.|["']/g)) {
    if (match.length > 1) continue;
    if (quote === "") quote = match;
    else if (quote === match) quote = "";
  }
  return quote;
}

/** What docs leave open, such as `<name>` and `[options]`: a shell would read these as redirections and patterns. */
const placeholder = /<[A-Za-z][^<>\n|&;]{0,60}>/g;
const optionalPart = /\[[\w. |=-]+\]/g;
/** What the parser reports for a command that every shell refuses. */
const certainMessages = [
  /^unterminated (single quote|double quote|command substitution)/,
  /^expected '(fi|done|esac)'/,
  /^expected command after '(if|elif|while|until)'/,
];
/** Samples that are not judged: with an apostrophe in a word, of PowerShell, with a Windows prompt or output, a here-document, or a trace. */
const notJudged = [/\w'\w/, /\$env:|^PS |`[ \t]*$/m, /^(C:|>)/m, /<</, /\bset -x\b.*;/];

/** An operator of the shell as HTML writes it. In a URL, it has no spaces around it. */
const escapedOperator = /(?<=[^\S\n])(?:&amp;&amp;|(?:&gt;){1,2}|&lt;|&amp;)(?=\s)/;
const quotedOrComment = /'[^']*'|"(?:[^"\\]|\\.)*"|(?<=^|\s)#.*/gm;

/** An operator outside of quotes that was escaped for HTML twice, so that the reader sees and copies the escape. */
function findEscapedOperator(commands: string, isExtracted: boolean): ParseResult {
  const bare = commands.replace(quotedOrComment, (part) => part.replace(/[^\n]/g, " "));
  const match = escapedOperator.exec(bare);
  if (match === null) return null;
  return {
    broken: true,
    message: `${match[0]} is an operator that was escaped for HTML`,
    line: isExtracted ? 1 : lineAt(commands, match.index),
  };
}

/** `isExtracted`: the commands were extracted, so the parser's line numbers don't match the sample. */
async function parseShell(code: string, isExtracted: boolean): Promise<ParseResult> {
  const { parse } = await import("unbash");
  const commands = code.replace(placeholder, "PLACEHOLDER").replace(optionalPart, "OPTION");
  const escaped = commands.includes("<<") ? null : findEscapedOperator(commands, isExtracted);
  if (escaped) return escaped;
  let script: ParsedScript;
  try {
    script = parse(commands);
  } catch {
    return null;
  }
  const errors = script.errors ?? [];
  const certainError = errors.find(({ message }) => certainMessages.some((certain) => certain.test(message)));
  if (!certainError) return errors.length === 0 ? checkContinuations(commands, script, isExtracted) : null;
  if (notJudged.some((mark) => mark.test(commands))) return null;
  const openQuoteLine = /quote/.test(certainError.message) ? lineOfOpenQuote(commands) : null;
  const line = isExtracted ? 1 : (openQuoteLine ?? lineAt(commands, certainError.pos));
  return { broken: true, message: certainError.message, line };
}

/**
 * The line of a quote that isn't closed; null if there is none. In these lines it is the first one: the next quote of its kind is on a later line and
 * before a word, so it opens another text.
 *
 *     echo "one
 *     echo "two"
 */
function lineOfOpenQuote(commands: string): number | null {
  let open: { quote: string; index: number } | null = null;
  for (const { 0: match, index } of commands.matchAll(/\\[\s\S]|["']|(?<=^|\s)#.*/g)) {
    if (match.startsWith("\\")) continue;
    if (match.startsWith("#")) {
      if (open !== null && endsText(match, open.quote)) open = null;
      continue;
    }
    if (open === null) open = { quote: match, index };
    else if (open.quote === match) {
      const isLater = commands.slice(open.index, index).includes("\n");
      if (isLater && /[\w$/]/.test(commands.charAt(index + 1))) return lineAt(commands, open.index);
      open = null;
    }
  }
  return null;
}

/** In a text, a number sign doesn't start a comment, so the quote that ends the text may follow the sign. */
const endsText = (afterNumberSign: string, quote: string): boolean => afterNumberSign.includes(quote);

/**
 * Finds a line of options that the shell reads as a command of its own, because the line before it doesn't end in a backslash like other lines of the
 * same command. No program is named like an option.
 */
function checkContinuations(
  commands: string,
  { commands: statements }: ParsedScript,
  isExtracted: boolean,
): ParseResult {
  const lines = commands.split("\n");
  for (const { pos } of statements) {
    if (!/^--?[A-Za-z]/.test(commands.slice(pos, pos + 3))) continue;
    const lineNumber = lineAt(commands, pos);
    const current = lines[lineNumber - 1]!;
    const previous = lines[lineNumber - 2] ?? "";
    const beforePrevious = lines[lineNumber - 3];
    const isContinued = beforePrevious?.endsWith("\\") || current.endsWith("\\") || /\\[ \t]+$/.test(previous);
    if (previous.trim() === "" || !isContinued) continue;
    return {
      broken: true,
      message: "a line of options is a command of its own, because the line before it lacks a backslash at its end",
      line: isExtracted ? 1 : lineNumber - 1,
    };
  }
  return { broken: false };
}
