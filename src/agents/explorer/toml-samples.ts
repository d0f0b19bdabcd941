import { reasonOf } from "../../errors.ts";
import { lineAfterValidStart, type ParseResult } from "./bracket-samples.ts";

/** Maximum number of lines in which to look for the element of an array that is wrong. */
const maxArrayLines = 200;

/** The result for a sample of TOML. A key may be repeated in alternatives, so only syntax errors count. */
export function parseToml(code: string): ParseResult {
  const problem = tomlProblem(code);
  if (problem === null) return { broken: false };
  if (/redefin|duplicate|already/i.test(problem)) return null;
  const line = lineAfterValidStart(code, (start) => tomlProblem(start) === null);
  return { broken: true, message: problem, line: /in an array/.test(problem) ? lastElementLine(code, line) : line };
}

/** The last line of an array up to which everything is valid TOML. The search starts at `line`, which is also the result if there is none. */
function lastElementLine(code: string, line: number): number {
  const lines = code.split("\n").slice(0, line - 1 + maxArrayLines);
  const isValidUntil = (index: number) => tomlProblem(`${lines.slice(0, index + 1).join("\n")}\n]`) === null;
  const last = lines.findLastIndex((_, index) => index >= line - 1 && isValidUntil(index));
  return last < 0 ? line : last + 1;
}

function tomlProblem(code: string): string | null {
  try {
    Bun.TOML.parse(code);
    return null;
  } catch (caught) {
    return reasonOf(caught).replace(/^TOML Parse error: /, "");
  }
}
