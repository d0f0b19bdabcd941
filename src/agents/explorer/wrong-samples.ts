import type { CodeSample } from "../page.ts";
import { headingAbove } from "./page-sections.ts";
import type { ReadPage } from "./session.ts";

const wrong = "(?:incorrect|invalid|wrong|broken|malformed|bad)";
const code = "(?:code|examples?|samples?|snippets?|syntax|usage|json|yaml|configuration|config)";

/** A heading or sentence that is only a label: "Incorrect:", "Bad example", "Don't". */
const label = new RegExp(
  `^\\W*(?:${wrong}|don['’]t|do not|avoid|anti-?patterns?)(?:\\s+${code}){0,2}(?:\\s+for\\b[^.]{0,40})?\\W*$|❌|🚫`,
  "i",
);
const thisSample = `\\b(?:this|these|such|following|next|below|${code})\\b`;
const sampleIs = `${thisSample}[^.]{0,40}\\b(?:is|are)`;
const mistake = "(?:mistakes?|bugs?|typos?)";
const right = "(?:valid|correct|allowed|legal)";
const notDone = "(?:does not|doesn['’]t|will not|won['’]t|cannot|can['’]t|fails to)";
const causes =
  "(?:causes?|throws?|raises?|triggers?|produces?|gives?|results? in|leads? to|fails? with|ends? (?:in|with))";
/**
 * A sentence that describes the sample: "The following JSON is invalid", "Examples of incorrect code", "This is a
 * syntax error".
 */
const warnings = [
  new RegExp(`${sampleIs}\\s+(?:an?\\s+|also\\s+)?(?:${wrong}|error)\\b`, "i"),
  new RegExp(`${sampleIs}(?:n['’]t|\\s+no|\\s+not)\\s+(?:an?\\s+)?${right}\\b`, "i"),
  new RegExp(`${thisSample}[^.]{0,40}\\b(?:has|have|contains?)\\s+(?:an?\\s+|\\w+\\s+)?${mistake}\\b`, "i"),
  new RegExp(`\\b(?:find|spot|fix)\\s+(?:the|an?|all|every)\\s+${mistake}\\b`, "i"),
  new RegExp(`\\b${code} of (?:an? )?\\W*${wrong}\\b`, "i"),
  /\b(?:syntax|parse|parsing|parser) ?errors?\b/i,
  /\b(?:do not|don['’]t|never) (?:do|write) (?:this|it|so)\b/i,
  new RegExp(`\\b${notDone} (?:be )?(?:parsed?|compiled?)\\b`, "i"),
  // What announces the sample ends with what happens to it. If a condition follows, the sample may be right.
  new RegExp(`${thisSample}[^.]{0,60}\\b${causes} (?:\\S+ ){0,5}\\W?\\w*(?:errors?|exceptions?|failure)\\W*$`, "i"),
  new RegExp(`${thisSample}[^.]{0,60}\\b(?:fails|breaks|${notDone} (?:work|run|load|build|start))\\W*$`, "i"),
  new RegExp(`\\b(?:this|these|following|an?|some) (?:\\w+ )?${wrong}(?: ${code}){1,2}\\W*$`, "i"),
  new RegExp(
    `^\\W*(?:(?:an?|one|another|the) )?(?:(?:very|most) )?(?:common|frequent|typical|classic) ${mistake} (?:is|are)\\b(?!.*\\binstead\\b)[^.;]*$`,
    "i",
  ),
];

/** A sentence that asks the reader to do something about the problem in the previous sentence. */
const isRequest = /^(?:can you |try to |now )?(?:find|spot|fix|guess|see|correct|repair) (?:it|them|where|why|what)\b/i;

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
  const sentences = before.at(-1)?.split(/[.!?]\s+(?=\p{Lu})/u) ?? [];
  const last = sentences.at(-1)?.slice(-300) ?? "";
  // "This program has a mistake. Find it before you read on:"
  const asksReader = sentences.length > 1 && isRequest.test(last);
  const texts = [headingAbove(page, sample), last, ...(asksReader ? [sentences.at(-2)!.slice(-300)] : [])];
  return [label, ...warnings].some((pattern) => texts.some((text) => pattern.test(text)));
}
