import { familyOf } from "../languages.ts";
import type { CodeSample } from "../page.ts";
import type { ParseResult } from "./bracket-samples.ts";
import { languageOf } from "./inferred-languages.ts";
import type { ReadPage } from "./session.ts";

/** A merge conflict in a sample. Null if there is none, or if the page explains conflicts, so that the sample may show one. */
export function findConflict({ markdown }: ReadPage, sample: CodeSample): ParseResult {
  const lines = sample.code.split("\n");
  const start = lines.findIndex((line) => line.startsWith("<<<<<<< "));
  const middle = start < 0 ? -1 : lines.indexOf("=======", start);
  const isComplete = middle > 0 && lines.some((line, index) => index > middle && line.startsWith(">>>>>>> "));
  if (!isComplete || familyOf(languageOf(sample)) === undefined || /\bconflict/i.test(markdown)) return null;
  return { broken: true, message: "it has the markers of a merge conflict", line: start + 1 };
}
