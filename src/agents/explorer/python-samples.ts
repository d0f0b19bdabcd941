import { parser } from "@lezer/python";
import type { Verdict } from "./sample-verdict.ts";

const closing = new Map([
  ["(", ")"],
  ["[", "]"],
  ["{", "}"],
]);

/**
 * Checks whether the brackets and quotes of a Python sample match. Other syntax errors are ignored, because samples often
 * leave out code or contain output.
 */
export function judgePython(code: string): Verdict {
  const trouble = troubleOf(code);
  return trouble === null || trouble === "none" ? trouble && { broken: false } : { broken: true, ...trouble };
}

/** `none`: the sample is valid. Null: it isn't, but its brackets and quotes match. */
function troubleOf(code: string): "none" | { message: string; line: number } | null {
  const open: { mark: string; at: number }[] = [];
  const strays: { mark: string; at: number }[] = [];
  let hasError = false;
  parser.parse(`${code}\n`).iterate({
    enter({ type, name, from, to }) {
      hasError ||= type.isError;
      if (name === "String" || name === "Comment") return false;
      const mark = type.isError ? code.slice(from, to) : name;
      const last = open.at(-1);
      if (closing.has(mark)) open.push({ mark, at: from });
      else if (last && closing.get(last.mark) === mark) open.pop();
      else if (/^[)\]}"']$/.test(mark)) strays.push({ mark, at: from });
      return true;
    },
  });
  if (!hasError) return "none";
  const [stray] = strays;
  const unclosed = open.at(-1);
  const lineAt = (at: number) => code.slice(0, at).split("\n").length;
  if (stray) return { message: `${stray.mark} is unexpected`, line: lineAt(stray.at) };
  return unclosed ? { message: `${unclosed.mark} is never closed`, line: lineAt(unclosed.at) } : null;
}

/** The input of an interactive session without prompts and output; any other sample unchanged. */
export function withoutPrompts(code: string): string {
  const lines = code.split("\n");
  if (!lines.some((line) => /^\s*>>> /.test(line))) return code;
  return lines.flatMap((line) => /^\s*(?:>>>|\.\.\.)(?: (.*))?$/.exec(line)?.[1] ?? []).join("\n");
}
