/** A simple command of a shell line. */
export type ShellCommand = {
  /** Without quotes, redirections and assignments before the program. */
  words: string[];
  /** Names of the variables that are set for it, or by it. */
  variables: string[];
  /** The text of a here-document. */
  input: string | null;
  /** Files that its output is written to. */
  outputs: string[];
  /** As it was written. */
  source: string;
  /** The range of its characters in the text. */
  start: number;
  end: number;
};

/** The name of a command's program, without its folder. */
export const programOf = ([program = ""]: string[]): string => program.replace(/^.*\//, "");

/** The state of parsing a script. `open`: the command that is being read at the position `at`. */
type Scan = {
  text: string;
  at: number;
  commands: ShellCommand[];
  open: ShellCommand | null;
  /** Here-documents whose text follows the line. */
  documents: { command: ShellCommand; delimiter: string }[];
};

/** `<your name>`, which docs write where a reader fills in a word; it is no redirection. */
const placeholder = /<[A-Za-z][^<>\n|&;]{0,60}>/y;
const separator = /&&|\|\||;;?|\|&?|&(?!>)|[()]|[{}](?=\s|;|$)|\n/y;
const redirection = /(?:\d*|&)(?:>>|>\||>&|>|<<<|<>|<&|<)\s*/y;
const hereDocument = /<<-?\s*(['"]?)([\w-]+)\1/y;
const blank = /(?:[ \t\r]|\\\r?\n)+/y;
const comment = /#[^\n]*/y;
const keywords = new Set("if then else elif fi for while until do done case esac in function ! { } ( )".split(" "));

/** The simple commands of a shell script, in order. Nothing is expanded, and an unclosed quote ends with the text. */
export function parseShell(text: string): ShellCommand[] {
  const scan: Scan = { text, at: 0, commands: [], open: null, documents: [] };
  while (scan.at < text.length) readNext(scan);
  close(scan);
  return scan.commands.filter(({ words, variables }) => words.length + variables.length > 0);
}

/** Matches a sticky pattern at the current position, and moves the position behind the match. */
function take(scan: Scan, pattern: RegExp): RegExpExecArray | null {
  pattern.lastIndex = scan.at;
  const match = pattern.exec(scan.text);
  if (match) scan.at += match[0].length;
  return match;
}

function readNext(scan: Scan): void {
  if (take(scan, blank)) return;
  if (scan.text[scan.at] === "#" && take(scan, comment)) return;
  const separated = take(scan, separator);
  if (separated) {
    close(scan);
    if (separated[0] === "\n") readDocuments(scan);
    return;
  }
  scan.open ??= { words: [], variables: [], input: null, outputs: [], source: "", start: scan.at, end: scan.at };
  const command = scan.open;
  const document = take(scan, hereDocument);
  const operator = document || isPlaceholder(scan) ? null : take(scan, redirection)?.[0];
  if (document) scan.documents.push({ command, delimiter: document[2]! });
  else if (operator) {
    const target = readWord(scan);
    // `2>&1`, `>&-` and `> /dev/null` write no file.
    if (operator.includes(">") && !/^(\d|-|\/dev\/\w+)$/.test(target)) command.outputs.push(target);
  } else addWord(command, readWord(scan));
  command.end = scan.at;
}

const isPlaceholder = ({ text, at }: Scan) => {
  placeholder.lastIndex = at;
  return placeholder.test(text);
};

function addWord(command: ShellCommand, word: string): void {
  const variable = /^([A-Za-z_]\w*)=/.exec(word)?.[1];
  const mayAssign = command.words.length === 0 || command.words[0] === "export";
  if (mayAssign && variable !== undefined) command.variables.push(variable);
  else if (command.words.length > 0 || !keywords.has(word)) command.words.push(word);
}

function close(scan: Scan): void {
  const { open, text } = scan;
  if (open) {
    open.source = text.slice(open.start, open.end).trim();
    scan.commands.push(open);
  }
  scan.open = null;
}

function readDocuments(scan: Scan): void {
  for (const { command, delimiter } of scan.documents.splice(0)) {
    const rest = scan.text.slice(scan.at);
    const lastLine = new RegExp(`^[ \\t]*${delimiter}[ \\t]*$`, "m").exec(rest);
    command.input = rest.slice(0, lastLine?.index ?? rest.length).replace(/\n$/, "");
    scan.at += lastLine ? lastLine.index + lastLine[0].length : rest.length;
    command.end = scan.at;
  }
}

/** One word: its quoted and plain pieces, without the quotes. */
function readWord(scan: Scan): string {
  const { text } = scan;
  let word = "";
  while (scan.at < text.length) {
    const char = text[scan.at]!;
    const placeholderMatch = isPlaceholder(scan) ? take(scan, placeholder) : null;
    if (placeholderMatch) word += placeholderMatch[0];
    else if (/[\s;|&<>]/.test(char)) break;
    else if (char === "'" || char === '"') word += readQuoted(scan, char);
    else if (char === "\\") {
      word += text[scan.at + 1] === "\n" ? "" : (text[scan.at + 1] ?? "");
      scan.at += 2;
    } else if (text.startsWith("$(", scan.at)) word += readSubstitution(scan);
    else {
      // A bracket that the word didn't open closes a subshell.
      if (char === ")" && !word.includes("(")) break;
      word += char;
      scan.at++;
    }
  }
  // Whatever can't start a word is skipped, so that every call moves on.
  if (word === "" && /[<>)]/.test(text[scan.at] ?? "")) scan.at++;
  return word;
}

function readQuoted(scan: Scan, quote: string): string {
  const { text } = scan;
  let content = "";
  for (scan.at++; scan.at < text.length && text[scan.at] !== quote; scan.at++) {
    const isEscaped = quote === '"' && text[scan.at] === "\\" && /["\\$`\n]/.test(text[scan.at + 1] ?? "");
    if (isEscaped) scan.at++;
    content += text[scan.at];
  }
  scan.at++;
  return content;
}

function readSubstitution(scan: Scan): string {
  const start = scan.at;
  let depth = 0;
  for (; scan.at < scan.text.length; scan.at++) {
    if (scan.text[scan.at] === "(") depth++;
    if (scan.text[scan.at] === ")" && --depth === 0) break;
  }
  scan.at++;
  return scan.text.slice(start, scan.at);
}
