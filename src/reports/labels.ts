import { count, list, oneLine, percent, titleFromTask } from "../grading/text.ts";
import type { ScopeAndEvidence } from "./grade-schema.ts";
import type { Recommendation, Report } from "./schema.ts";

type Judge = NonNullable<Report["judge"]>;

/** Shown instead of a score that could not be measured. */
export const notMeasured = "Not measured";
/** The state of a report that has a score, but whose goal nothing verified. */
const goalNotTested = "Goal not tested";

/** Why a report has no score; null if it has one, or if the key finding already says why. */
export const whyNotMeasured = ({ score, nullNotice, keyFinding }: Report): string | null =>
  score === null && nullNotice !== keyFinding ? nullNotice : null;

/** Outcome labels. */
export const outcomeLabels: Record<Report["outcome"], string> = {
  succeeded: "Goal reached",
  goal_not_met: "Goal not reached",
  not_judged: goalNotTested,
  no_creds: "Missing credentials",
  excluded: "Excluded",
  scoring_failed: "Scoring failed",
};

/** `2026-11-21 09:31:02 UTC` */
export const formatTime = (iso: string): string => `${iso.slice(0, 10)} ${iso.slice(11, 19)} UTC`;

/** The title of a prompt. Without one, a title is made from its task. */
export const titleOf = ({ title, text }: { title: string | null; text: string }): string =>
  title === null ? titleFromTask(text) : oneLine(title, 200);

/** An agent with its version and model, such as `codex 0.46.0 openai/gpt-5`. */
export const agentLabel = ({ id, version, model }: Report["agent"]): string =>
  [id, version, model].filter((word) => word !== null).join(" ");

/** The labels that pages and Markdown show for friction points (`F1`, `F2`, …), by ID. */
export const frictionLabels = ({ frictionPoints }: Report): Map<string, string> =>
  new Map(frictionPoints.map(({ id }, i) => [id, `F${i + 1}`]));

export const metricLabels: Record<string, string> = {
  timeSeconds: "Time",
  errors: "Errors",
  toolCalls: "Tool calls",
  costUsd: "Agent cost",
  interruptions: "Interruptions",
};

/** An API name as words: `no_change` becomes `no change`. */
export const humanize = (word: string): string => word.replaceAll("_", " ");

export const goalPartLabels = { yes: "met", no: "not met", unclear: "unclear" } as const;

/** One line about the judge: model, usage, cost and confidence. */
export function judgeText({ model, calls, costUsd, inputTokens, outputTokens, confidence }: Judge): string {
  const cost = costUsd === null ? "cost unknown" : `$${costUsd.toFixed(4)}`;
  const usage = `${count(calls, "call")}, ${formatNumber(inputTokens)} input tokens, ${formatNumber(outputTokens)} output tokens, ${cost}`;
  const confidenceText = confidence === null ? "" : ` Confidence: ${percent(confidence)}.`;
  return `Judged by ${oneLine(model, 200)}: ${usage} (not included in the cost of the run).${confidenceText}`;
}

/** How much the answer depends on the wording of the goal. */
export function describeSpread({ spread, results }: NonNullable<Report["wordings"]>): string {
  const likely = results.filter(({ state }) => state === "likely").length;
  return `${likely} of ${results.length} wordings have a likely answer. The best and worst matches differ by ${count(Math.round(spread * 100), "percentage point")}.`;
}

/** Which samples weren't checked; null if all were. */
export function describeNotChecked({ notChecked }: Report): string | null {
  if (notChecked.length === 0) return null;
  const languages = list(
    notChecked.map(({ language, samples }) => `${samples} in ${language}`),
    10,
  );
  return `Code samples that were not checked, because evald can't parse their language: ${languages}.`;
}

/** The points to show beside a fix. The points of all fixes of a report add up. null: the fix affected no measured value. */
export const pointsOfFix = ({ lostPoints, expectedGain }: Recommendation): number | null => lostPoints ?? expectedGain;

/** `104 KB` */
export function formatBytes(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  return bytes < 1e6 ? `${Math.round(bytes / 1000)} KB` : `${(bytes / 1e6).toFixed(1)} MB`;
}

/** `20,000` */
export const formatNumber = (value: number): string => value.toLocaleString("en-US");

/** What a score measures if the goal was not tested; undefined if it was. */
export const scopeHints = {
  goal: undefined,
  conduct_only: `Conduct: how the agent worked. ${goalNotTested}.`,
  docs_only: `Docs: how well the docs can be found and read. ${goalNotTested}.`,
} as const;

export const scopeLabels = { goal: null, conduct_only: "Conduct", docs_only: "Docs" } as const;

/** The kinds of evidence that a goal was reached or missed. */
const evidenceLabels = {
  verified: "shown by a success check or the product’s answer",
  observed: "shown by the product’s own program",
  judged: `${goalNotTested}: only the judge says that it was reached`,
} as const;

/** The basis of a report's score: its evidence, or that the goal was not tested. */
export function describeEvidence({ scope, evidence }: ScopeAndEvidence): string | null {
  if (evidence !== null) return evidenceLabels[evidence];
  return scope === "goal" ? null : goalNotTested;
}

type ScoreAndScope = { score: number | null; scope: keyof typeof scopeLabels };

/** A score in a list: `93.0`, `Docs 93.0` if the goal was not tested, or `Not measured`. */
export const scoreText = ({ score, scope }: ScoreAndScope): string =>
  score === null ? notMeasured : [scopeLabels[scope], score.toFixed(1)].filter((word) => word !== null).join(" ");

/** `B+ (88 of 100)`, or `Docs 93 of 100 · Goal not tested`; null without a score. */
export function scoreSummary({
  score,
  scope,
  evidence,
  grade,
}: ScopeAndEvidence & { score: number | null; grade: string | null }): string | null {
  if (score === null) return null;
  const label = scopeLabels[scope];
  return label === null
    ? `${grade} (${score} of 100)`
    : `${label} ${score} of 100 · ${describeEvidence({ scope, evidence })}`;
}

const yesOrNo = (value: boolean) => (value ? "yes" : "no");
const yesNoOrUnknown = (value: boolean | null) => (value === null ? "unknown" : yesOrNo(value));
const formatUses = (uses: number) => ["no", "once"][uses] ?? `${uses} times`;

/** What an agent was given besides its task: which parts the model received, and which parts were used. */
export function contextRows({ instructions, skills, mcpServers }: NonNullable<Report["context"]>) {
  const row = (kind: string, { name, isOffered, uses }: (typeof skills)[number]) => ({
    kind,
    name,
    received: yesNoOrUnknown(isOffered),
    uses: formatUses(uses),
  });
  // Instructions count as used if they are in a request.
  const instructionsUse = instructions && yesNoOrUnknown(instructions.isUsed);
  return [
    ...(instructionsUse === null
      ? []
      : [{ kind: "Instructions", name: "AGENTS.md", received: instructionsUse, uses: instructionsUse }]),
    ...skills.map((skill) => row("Skill", skill)),
    ...mcpServers.map((server) => row("MCP server", server)),
  ];
}

const hostNames = { github: "GitHub Pages", netlify: "Netlify", vercel: "Vercel", cloudflare: "Cloudflare Pages" };

/** The docs that were read instead of the live docs, and what the report can't say about them, in sentences. */
export function describeServedSite(site: NonNullable<Report["context"]>["sites"][number]): string {
  const { at, digest, files, host, notApplied, notAppliedTotal } = site;
  const hostName = host === "plain" ? "a plain host" : hostNames[host];
  const folderText = `Built docs in a folder of ${count(files, "file")} (digest ${digest.slice(0, 12)}) were read as ${at}, by the rules of ${hostName}.`;
  if (notApplied.length === 0) return folderText;
  const more = notAppliedTotal - notApplied.length;
  const moreText = more > 0 ? ` and ${more} more` : "";
  return `${folderText} Not applied, because only the host can: ${notApplied.join("; ")}${moreText}.`;
}

/** What the score does not cover because docs were read without a build; null if it covers everything. */
export const describeSources = ({ context }: Report): string | null =>
  context?.sites.some(({ form }) => form === "markdown")
    ? "Read from Markdown sources, not from the built site: navigation, redirects, generated pages, templates, links to sections and site conventions such as llms.txt were not measured."
    : null;

/** How the docs were edited on the way to the agent, as a sentence; null: they were not edited. */
export function describeEdits({ run: { edits }, context }: Report): string | null {
  if (!edits) return null;
  const { hidden, replacements } = edits;
  const { hidden: hiddenCounts = [], replacements: replacementCounts = [] } = context?.edits ?? {};
  const counts = [...hiddenCounts, ...replacementCounts.map(({ applied }) => applied)];
  const unused = counts.filter((times) => times === 0).length;
  const parts = [
    ...(hidden.length > 0 ? [`${count(hidden.length, "URL")} hidden`] : []),
    ...(replacements.length > 0 ? [`${count(replacements.length, "text")} replaced`] : []),
  ];
  const unusedText = unused > 0 ? ` (${unused} of ${hidden.length + replacements.length} edits never met)` : "";
  return `Docs edited in flight: ${parts.join(", ")}${unusedText}. What was found may come from the edits.`;
}

/** The maximum number of events that are named as evidence. The others are only counted. */
const maxEvents = 3;

/** "events 3, 5, 8 and 4 more". */
export function describeEvents(events: readonly number[]): string {
  const more = events.length - maxEvents;
  const shownEvents = events.slice(0, maxEvents).join(", ");
  return `${events.length === 1 ? "event" : "events"} ${shownEvents}${more > 0 ? ` and ${more} more` : ""}`;
}
