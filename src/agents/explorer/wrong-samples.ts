import type { CodeSample } from "../page.ts";
import { headingAbove } from "./page-sections.ts";
import type { ReadPage } from "./session.ts";

const wrong = "(?:incorrect|invalid|wrong|broken|malformed|bad)";
const code = "(?:code|examples?|samples?|snippets?|syntax|usage|json|yaml|configuration|config)";

/** A heading or sentence that is only a label: "Incorrect:", "Bad example", "Don't". */
const label = new RegExp(`^\\W*(?:${wrong}|don['’]t|do not|avoid|anti-?patterns?)(?:\\s+${code}){0,2}\\W*$|❌|🚫`, "i");
const sampleIs = `\\b(?:this|these|following|next|below|${code})\\b[^.]{0,40}\\b(?:is|are)`;
const right = "(?:valid|correct|allowed|legal)";
/**
 * A sentence that describes the sample: "The following JSON is invalid", "Examples of incorrect code", "This is a
 * syntax error".
 */
const warnings = [
  new RegExp(`${sampleIs}\\s+(?:an?\\s+|also\\s+)?(?:${wrong}|error)\\b`, "i"),
  new RegExp(`${sampleIs}(?:n['’]t|\\s+no|\\s+not)\\s+(?:an?\\s+)?${right}\\b`, "i"),
  new RegExp(`\\b${code} of (?:an? )?\\W*${wrong}\\b`, "i"),
  /\b(?:syntax|parse|parsing|parser) ?errors?\b/i,
  /\b(?:do not|don['’]t|never) (?:do|write) (?:this|it|so)\b/i,
  /\b(?:does not|doesn['’]t|will not|won['’]t|cannot|can['’]t|fails to) (?:be )?(?:parsed?|compiled?)\b/i,
];

let split: { text: string; lines: string[] } = { text: "", lines: [] };

/** The lines of a text. All samples of a page come in a row, so caching the last text is enough. */
function linesOf(text: string): string[] {
  if (split.text !== text) split = { text, lines: text.split("\n") };
  return split.lines;
}

/** Whether the heading above a sample, or the sentence right before it, says that the sample is intentionally wrong. */
export function isShownAsWrong(page: ReadPage, sample: CodeSample): boolean {
  const before = linesOf(page.markdown)
    .slice(Math.max(0, sample.line - 8), sample.line - 1)
    .map((line) => line.trim())
    .filter((line) => line !== "" && !/^(`{3,}|~{3,})[^`]*$/.test(line) && !/^#{1,6}\s/.test(line));
  const sentence =
    before
      .at(-1)
      ?.split(/[.!?]\s+(?=\p{Lu})/u)
      .at(-1) ?? "";
  const texts = [headingAbove(page, sample), sentence.slice(-300)];
  return [label, ...warnings].some((pattern) => texts.some((text) => pattern.test(text)));
}
