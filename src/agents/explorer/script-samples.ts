import { lineOfMissing, type ParseResult } from "./bracket-samples.ts";

/** Maximum number of parts of a sample to try separately. */
const maxPieces = 40;

export const validResult: ParseResult = { broken: false };

/**
 * Forms of a snippet in docs: a module, statements of a function, an expression, members of an object, class, array or
 * type, cases of a switch, declarations without code, or a pattern such as `{ a, ...rest }` of parameters.
 */
const wrappers: [string, string][] = [
  ["", ""],
  ["async function* f() {\n", "\n}"],
  ["(\n", "\n)"],
  ["({\n", "\n})"],
  ["class C {\n", "\n}"],
  ["[\n", "\n]"],
  ["type T = ", ""],
  ["switch (0) {\n", "\n}"],
  ["declare namespace N {\n", "\n}"],
  ["(\n", "\n= {})"],
];

/** The result for a sample of JavaScript or TypeScript; null if it can't be judged. */
export function parseScript(code: string): ParseResult {
  const fullResult = readScript(code);
  if (!fullResult?.broken) return fullResult;
  // Statements followed by their output, or alternatives: no part is broken on its own. A part that can't be judged isn't.
  const parts = code.split(/\n[ \t]*\n|\n(?=\{)|^[ \t]*\/\/.*$/m).filter((part) => part.trim() !== "");
  const lines = code.split("\n").filter((line) => line.trim() !== "");
  const isValidInPieces = [parts, lines].some(
    (pieces) => pieces.length > 1 && pieces.length <= maxPieces && pieces.every((part) => !readScript(part)?.broken),
  );
  if (isValidInPieces) return null;
  const [statements = "", ...outputs] = code.split(outputMark);
  if (outputs.length > 0 && !readScript(statements)?.broken) return null;
  // A single line may be a signature rather than code.
  const isOther = [...signatures, ...unparsableScripts].some((form) => form.test(code));
  if (lines.length < 2 || isOther) return null;
  return isInsteadOfCode(code, fullResult.line) ? null : fullResult;
}

/** The start of output after the statements: `=> [`, `// => {`. */
const outputMark = /^[ \t]*(?:\/\/)?[ \t]*(?:=+>|-+>|→)/m;

/** Signatures for readers, which are no programs. */
const signatures = [
  // `listen(port): Server`.
  /^[ \t]*(new\s+)?[\w.$]+(<[^>\n]*>)?\([^()\n]*\)\s*(:|=>|->)\s*[\w<{[|]/m,
  // `listen(port: number`.
  /^[ \t]*(new\s+)?[\w.$]+\([^)\n"'`{]*\w\??:\s/m,
];

/** Text that docs write in scripts, but that no parser reads. */
const unparsableScripts = [
  // A comment in place of code.
  /[=(,:]\s*\/\*.*\*\/\s*;?$/m,
  // `icon=<Icon />`: JSX that Bun can't parse.
  /\w=</,
  // `f(a[, b])`.
  /\[,\s*\w/,
  // A diagram.
  /[\u2500-\u257f]/,
  // A printed object: `User {`.
  /^[A-Z]\w* \{$/m,
];

/** Words that may stand in a row in code. */
const reservedWords =
  /\b(?:abstract|as|async|await|case|class|const|declare|default|delete|enum|export|extends|for|from|function|if|implements|import|in|instanceof|interface|let|new|of|private|protected|public|readonly|return|static|throw|type|typeof|var|void|while|yield)\b/g;

/** Whether a line has a comment before an operator, or words in a row outside of strings: it describes code. */
function isInsteadOfCode(code: string, lineNumber: number): boolean {
  const line = (code.split("\n")[lineNumber - 1] ?? "").replace(reservedWords, "");
  return /\*\/\s*[?:|&=,)\]}]/.test(line) || (!/["'`]/.test(line) && /(?:\b[A-Za-z]+ ){3}[A-Za-z]+\b/.test(line));
}

/**
 * Parses code as any form of a snippet. The snippet has the form in which the parser gets furthest, so the error in this form counts. Null if that
 * isn't a syntax error: a name declared twice, an await in an unusual place.
 */
function readScript(code: string): ParseResult {
  let furthest: SyntaxProblem | null = null;
  // Members of an array or object are separated by commas, imports and exports aren't.
  const startsWithImport = /^(?:import|export)\b/.test(code.trim());
  const separator = startsWithImport ? /;$/ : /[;,]$/;
  const trimmedCode = code.trim().replace(separator, "");
  // Almost anything is valid as children of an element, so this is tried only for code that starts like an element.
  const wrappersToTry = trimmedCode.startsWith("<") ? [...wrappers, ["<>\n", "\n</>"] as const] : wrappers;
  for (const loader of ["ts", "tsx"] as const) {
    const transpiler = new Bun.Transpiler({ loader });
    for (const [prefix, suffix] of wrappersToTry) {
      const problem = syntaxProblem(transpiler, prefix === "" ? code : prefix + trimmedCode + suffix);
      if (problem === null) return validResult;
      const place = toPlaceInSample(problem, prefix, code);
      if (place.offset > (furthest?.offset ?? -1)) furthest = { message: problem.message, ...place };
    }
  }
  if (furthest === null || !/^(Expected|Unexpected|Unterminated|Syntax error|Unclosed)/.test(furthest.message))
    return null;
  return { broken: true, message: furthest.message, line: Math.min(furthest.line, code.split("\n").length) };
}

/**
 * Where a problem of wrapped code is. The parser read the prefix, then the code without the white space around it. `offset` counts from the start of
 * that code, and `line` is a line of the sample.
 */
function toPlaceInSample(problem: SyntaxProblem, prefix: string, code: string): { line: number; offset: number } {
  const offset = Math.min(problem.offset - prefix.length, code.length);
  const isMissing = prefix.length <= problem.offset && missingMark.test(problem.message);
  if (!isMissing) return { line: problem.line - (prefix.split("\n").length - 1), offset };
  // Without a prefix, the parser read the white space, too.
  const skipped = prefix === "" ? 0 : code.length - code.trimStart().length;
  return { line: lineOfMissing(code, skipped + offset), offset };
}

/** The parser found something else where a separator or a closing bracket must be. */
const missingMark = /^Expected "[,;)}\]]" but found/;

/** What a parser reports, and where: the line from 1, and the index of the character. */
type SyntaxProblem = { message: string; line: number; offset: number };

function syntaxProblem(transpiler: Bun.Transpiler, code: string): SyntaxProblem | null {
  try {
    transpiler.scan(code);
    return null;
  } catch (caught) {
    const error = (caught instanceof AggregateError ? caught.errors[0] : caught) as {
      message?: unknown;
      position?: { line?: number; offset?: number };
    };
    const { line = 1, offset = 0 } = error?.position ?? {};
    return { message: String(error?.message ?? caught), line, offset };
  }
}
