import { styleText } from "node:util";
import { type Command, Option } from "commander";
import type { FrictionPoint } from "../friction/schema.ts";
import { severities } from "../grading/kinds.ts";
import { capitalize, count, sentence } from "../grading/text.ts";
import { toPrintable } from "../log.ts";
import {
  agentLabel,
  describeEdits,
  describeEvents,
  describeEvidence,
  describeSources,
  notMeasured,
  pointsOfFix,
  scopeLabels,
  titleOf,
} from "../reports/labels.ts";
import { reportMarkdown } from "../reports/markdown.ts";
import type { Recommendation, Report } from "../reports/schema.ts";
import { hasColor, type Style } from "./terminal.ts";
import { wrapText } from "./text-layout.ts";

/** The maximum number of fixes to show. The others are only counted. */
const maxFixes = 3;
/** The maximum length of lines, however wide the terminal is, because longer lines are hard to read. */
const maxWidth = 100;
const minWidth = 40;

/** `width`: columns of the terminal. `fullReportHint`: the command or URL that shows the whole report. */
type Screen = { width: number; hasColor: boolean; fullReportHint: string };

/**
 * A report on one screen of a terminal: the result in a sentence, where the answer is, the most important fixes, and the number of the others.
 * Control characters in text from the target are removed.
 */
export function reportScreen(report: Report, { width, hasColor, fullReportHint }: Screen): string {
  const columns = Math.max(minWidth, Math.min(width, maxWidth));
  const style = (format: Style, text: string) => (hasColor ? styleText(format, text, { validateStream: false }) : text);
  /** `first`: the prefix of the first line. `indent`: the prefix of the other lines, by default the same. */
  const wrapped = (text: string, { first = "", indent = first }: { first?: string; indent?: string } = {}) =>
    wrapText(oneLine(text), columns, { first, indent }).join("\n");
  const notes = [describeSources(report), describeEdits(report)].filter((note) => note !== null);
  const { keyFinding, recommendations, frictionPoints } = report;
  // Conventions hindered no agent, so they are shown only if there is nothing else to fix.
  const fixes = recommendations.filter(({ isConvention }) => !isConvention);
  const shownFixes = (fixes.length > 0 ? fixes : recommendations).slice(0, maxFixes);
  const hiddenFixes = recommendations.length - shownFixes.length;
  const fixText = (fix: Recommendation, i: number) => {
    const points = pointsOfFix(fix);
    const gain = points ? ` (+${count(points, "point")})` : "";
    const edit = editOf(fix);
    const location = locationOf(fix);
    return [
      style("bold", wrapped(`${fix.title}${gain}`, { first: `${i + 1}. `, indent: "   " })),
      ...(location === null ? [] : [style("cyan", wrapped(location, { first: "   " }))]),
      ...(edit === null
        ? [wrapped(fix.action, { first: "   " })]
        : [
            style("red", wrapped(edit.before, { first: "   - ", indent: "     " })),
            style("green", wrapped(edit.after, { first: "   + ", indent: "     " })),
          ]),
      style("dim", wrapped(evidenceText(fix, frictionPoints), { first: "   " })),
    ].join("\n");
  };
  const result = style(["bold", toneOf(report)], wrapped(resultText(report)));
  const task = style("dim", wrapped(describeTask(report)));
  const fixesHeading = style("bold", shownFixes.length === 1 ? "Fix this" : "Fix these first");
  const rest = wrapped(restText(hiddenFixes, frictionPoints));
  return [
    `${result}\n${task}`,
    wrapped(keyFinding),
    ...notes.map((note) => wrapped(note)),
    ...(shownFixes.length === 0 ? ["No fixes to recommend."] : [fixesHeading, ...shownFixes.map(fixText)]),
    `${rest}\n${style("dim", wrapped(`All of it: ${fullReportHint}`))}`,
  ].join("\n\n");
}

/** "Docs 70 of 100. Goal not tested." */
function resultText(report: Report): string {
  const { score, scope, grade, nullNotice } = report;
  if (score === null) return sentence(nullNotice ?? notMeasured);
  const label = scopeLabels[scope] ?? "Score";
  const gradeText = grade === null ? "" : `, grade ${grade}`;
  const evidence = describeEvidence(report);
  const evidenceText = evidence === null ? "" : ` ${capitalize(evidence)}.`;
  return `${label} ${score} of 100${gradeText}.${evidenceText}`;
}

const describeTask = ({ task, agent }: Report): string => `${titleOf(task)} · ${agentLabel(agent)}`;

function toneOf({ score }: Report): "green" | "yellow" | "red" {
  if (score === null || score < 60) return "red";
  return score < 80 ? "yellow" : "green";
}

/** The page that a fix is about, and the line; null if it is about no page. */
function locationOf({ url, evidence }: Recommendation): string | null {
  const page = evidence?.url ?? url;
  if (page === null) return null;
  return evidence?.line == null ? page : `${page}, line ${evidence.line}`;
}

/** The line to change, before and after; null if that is unknown. */
function editOf({ evidence }: Recommendation): { before: string; after: string } | null {
  const { text = null, found = null, expected = null } = evidence ?? {};
  if (found === null || expected === null) return null;
  return text?.includes(found)
    ? { before: text.trim(), after: text.replace(found, expected).trim() }
    : { before: found, after: expected };
}

function evidenceText({ frictionIds }: Recommendation, points: FrictionPoint[]): string {
  const events = points.filter(({ id }) => frictionIds.includes(id)).flatMap((point) => point.events);
  return `Evidence: ${describeEvents([...new Set(events)].sort((a, b) => a - b))}`;
}

/** How many fixes are not shown, and how many friction points there are. */
function restText(fixes: number, points: FrictionPoint[]): string {
  const bySeverity = severities.flatMap((severity) => {
    const n = points.filter((point) => point.severity === severity).length;
    return n === 0 ? [] : [`${n} ${severity}`];
  });
  const friction =
    points.length === 0 ? "no friction" : `${count(points.length, "friction point")} (${bySeverity.join(", ")})`;
  return `${fixes === 0 ? "" : `${count(fixes, "more fix", "more fixes")} · `}${friction}`;
}

const oneLine = (text: string): string => toPrintable(text).replace(/\s+/g, " ").trim();

/** What to print of a report, if not JSON. */
export type ReportFormat = { format?: "text" | "markdown" };

/** Adds the option `--format`. */
export const addReportFormat = (command: Command): Command =>
  command.addOption(
    new Option(
      "--format <format>",
      "Print one screen of text, or the whole report (default: text in a terminal)",
    ).choices(["text", "markdown"]),
  );

/**
 * A report for `printStyled`: one screen in a terminal, or the whole report as Markdown elsewhere. `fullReportHint`: the command or URL that shows
 * the whole report.
 */
export function toReportText(
  report: Report,
  { format }: ReportFormat,
  { isStored, fullReportHint }: { isStored: boolean; fullReportHint: string },
) {
  const { isTTY, columns } = process.stdout;
  if ((format ?? (isTTY ? "text" : "markdown")) === "markdown")
    return toPrintable(reportMarkdown(report, { isStored }).trimEnd());
  return reportScreen(report, { width: columns ?? 80, hasColor: hasColor(), fullReportHint });
}
