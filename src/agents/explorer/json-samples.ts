import { reasonOf } from "../../errors.ts";
import { lineAt, lineOfMissing, type ParseResult } from "./bracket-samples.ts";
import { grammars } from "./grammars.ts";

/** Signs that a sample isn't strict JSON: comments, names of types, ellipses, and placeholders for values. */
const looseSyntax = [
  /\/\/|\/\*|^[ \t]*#/m,
  /:\s*(string|number|boolean|any|int|integer|object|array|float|uuid|date)\b/i,
  /\.\.\./,
  /<|\$\{|\|/,
];

/** A text of nothing but an ellipsis, in place of members of an object or an array: `{"..."}`. */
const leftOutMembers = /([{[,]\s*)"(?:\.{3}|…)"(?=\s*[}\],])/g;

/**
 * The result for a sample of JSON, which may be a part of an object, or have one value per line. Null if the sample may not be meant as strict JSON.
 */
export function parseJsonSample(code: string): ParseResult {
  const problem = jsonProblem(code);
  if (problem === null) return { broken: false };
  const value = code.trim().replace(/,$/, "");
  if ([`{${value}}`, `[${value}]`].some((framed) => jsonProblem(framed) === null)) return { broken: false };
  if (value.split(/\n(?=\S)/).every((line) => jsonProblem(line) === null)) return { broken: false };
  const withoutStrings = value.replace(leftOutMembers, "$1...").replace(/"(?:[^"\\\n]|\\.)*"/g, '""');
  const isLoose = looseSyntax.some((syntax) => syntax.test(withoutStrings));
  if (isLoose || /compilerOptions|tsconfig|jsconfig/.test(code)) return null;
  return { broken: true, ...jsonErrorIn(code, problem) };
}

/** Why a text isn't JSON; null if it is. */
export function jsonProblem(code: string): string | null {
  try {
    JSON.parse(code);
    return null;
  } catch (caught) {
    return reasonOf(caught).replace(/^JSON Parse error: /, "");
  }
}

/** Names and single quotes are JavaScript, but not JSON: `False`, or a key without quotes. */
const nameOfScript = /^(?:VariableName|PropertyDefinition)$/;

/**
 * What is wrong in a text that isn't JSON, and in which line, from 1. `problem`: the message of `JSON.parse`, which doesn't say where. Nearly all of
 * JSON is also an expression of JavaScript, so that parser finds the place.
 */
export function jsonErrorIn(code: string, problem: string): { message: string; line: number } {
  const source = `(${code.trimEnd()})`;
  const comma = /,(\s*)[}\]]/.exec(code);
  if (comma) return { message: "there is a comma before a closing bracket", line: lineAt(code, comma.index) };
  let firstError: number | null = null;
  let isWrongName = false;
  grammars.script.parse(source).iterate({
    enter({ type, name, from }) {
      const isOfScript = nameOfScript.test(name) || (name === "String" && source[from] === "'");
      if (firstError === null && (type.isError || isOfScript)) {
        firstError = from;
        isWrongName = !type.isError;
      }
      return firstError === null;
    },
  });
  if (firstError === null) return { message: problem, line: 1 };
  const index = firstError - "(".length;
  return { message: problem, line: isWrongName ? lineAt(code, index) : lineOfMissing(code, index) };
}
