import type { FrictionPoint } from "../friction/schema.ts";
import { count, percent } from "../grading/text.ts";
import { calibrationText } from "./calibration.ts";
import {
  agentLabel,
  contextRows,
  describeEdits,
  describeEvents,
  describeEvidence,
  describeNotChecked,
  describeServedSite,
  describeSources,
  describeSpread,
  formatTime,
  frictionLabels,
  goalPartLabels,
  humanize,
  judgeText,
  notMeasured,
  outcomeLabels,
  pointsOfFix,
  scoreSummary,
  titleOf,
  whyNotMeasured,
} from "./labels.ts";
import { autolink, code, table, text } from "./markdown-text.ts";
import type { Recommendation, Report } from "./schema.ts";

/**
 * A report as Markdown that is also readable as plain text. Text from the target is escaped to single lines without control characters or markup.
 * `isStored`: false for a report that is not stored, which has no URL.
 */
export function reportMarkdown(report: Report, { isStored = true } = {}): string {
  const { verdict, keyFinding, summary, frictionPoints, recommendations } = report;
  const fixes = recommendations.filter(({ isConvention }) => !isConvention);
  const conventions = recommendations.filter(({ isConvention }) => isConvention);
  const names = frictionLabels(report);
  const title = text(titleOf(report.task));
  const notice = whyNotMeasured(report);
  return [
    `# ${scoreSummary(report) ?? notMeasured}: ${title}`,
    facts(report),
    text(describeSources(report) ?? ""),
    text(describeEdits(report) ?? ""),
    notice && `**${text(notice)}**`,
    `**${text(keyFinding)}**`,
    text(verdict),
    `## What worked\n\n${text(summary.whatWorked)}`,
    `## What didn't\n\n${text(summary.whatDidnt)}`,
    goal(report),
    wordings(report),
    `## Metrics\n\n${metrics(report)}`,
    `## Dimensions\n\n${dimensions(report)}`,
    text(describeNotChecked(report) ?? ""),
    fixList("Recommended fixes", fixes, names),
    fixList("Site conventions", conventions, names),
    `## Friction points\n\n${frictionPoints.map((each) => friction(each, names.get(each.id) ?? "")).join("\n\n") || "No friction found."}`,
    contextTable(report),
    `## Run details\n\n${runDetails(report, isStored)}`,
  ]
    .filter(Boolean)
    .join("\n\n")
    .concat("\n");
}

function facts({ outcome, scope, evidence, coverage, agent, createdAt }: Report): string {
  // If the goal was not tested, both labels are "Goal not tested".
  const labels = new Set([outcomeLabels[outcome], describeEvidence({ scope, evidence })]);
  return `${[...labels].filter(Boolean).join(", ")} · ${percent(coverage)} of the scoring weight measured · ${text(agentLabel(agent))} · ${formatTime(createdAt)}`;
}

function goal({ judge }: Report): string | null {
  if (judge === null) return null;
  const parts = judge.parts.map(({ text: part, met, events, quote, why }, i) => {
    const proof = events.length === 0 ? "" : `; evidence: ${describeEvents(events)}`;
    return [`${i + 1}. **${text(part)}** (${goalPartLabels[met]}${proof})`, quote && code(quote), why && text(why)]
      .filter(Boolean)
      .join("\n   ");
  });
  const dropped = judge.dropped
    .map((claim) => `- Ignored, because nothing in the session proves it: ${text(claim)}`)
    .join("\n");
  return ["## End goal", parts.join("\n"), dropped, judge.notice && text(judge.notice), text(judgeText(judge))]
    .filter(Boolean)
    .join("\n\n");
}

function wordings({ wordings: comparison }: Report): string | null {
  if (comparison === null) return null;
  const rows = comparison.results.map(({ text, state, fit, url }) => [text, state, percent(fit), url ?? "none"]);
  return [
    `## Wordings of the goal\n\n${text(describeSpread(comparison))}`,
    table([["Wording", "Answer", "Match", "Nearest page"], ...rows]),
  ].join("\n\n");
}

function contextTable({ context }: Report): string | null {
  if (context === null) return null;
  const rows = contextRows(context).map(({ kind, name, received, uses }) => [kind, name, received, uses]);
  const parts = [
    ...context.sites.map((site) => text(describeServedSite(site), 4000)),
    ...(rows.length > 0 ? [table([["Type", "Name", "Received by the model", "Used"], ...rows])] : []),
  ];
  return parts.length > 0 ? `## Context\n\n${parts.join("\n\n")}` : null;
}

function metrics({ metrics: values }: Report): string {
  const rows = [
    ["Time", values.time, values.timeDetail],
    ["Errors", String(values.errors), values.errorsDetail],
    ["Tool calls", String(values.toolCalls), values.toolCallsDetail],
    ["Agent cost", values.cost, values.costDetail],
    ["Interruptions", String(values.interruptions), "How often a person would have had to step in."],
  ];
  return table([["Metric", "Value", "Detail"], ...rows]);
}

function dimensions({ dimensions: all }: Report): string {
  if (all.length === 0) return "Nothing was measured.";
  const rows = all.map(({ name, weight, score, grade }) => [name, weight, String(score), grade]);
  const descriptions = all.map(({ name, desc }) => `- ${text(name)}: ${text(desc, 4000)}`);
  return `${table([["Dimension", "Weight", "Score", "Grade"], ...rows])}\n\n${descriptions.join("\n")}`;
}

function fixList(heading: string, fixes: Recommendation[], names: Map<string, string>): string | null {
  if (fixes.length === 0) return null;
  return `## ${heading}\n\n${fixes.map((fix) => fixText(fix, names)).join("\n\n")}`;
}

function fixText(fix: Recommendation, names: Map<string, string>): string {
  const { priority, title, action, url, frictionIds } = fix;
  const removes = `fixes ${frictionIds.map((id) => names.get(id)).join(", ")}`;
  const points = pointsOfFix(fix);
  const gain = points ? `+${count(points, "point")}, ${removes}` : removes;
  const indent = " ".repeat(String(priority).length + 2);
  return [`${priority}. **${text(title)}** (${gain})`, text(action, 4000), url && autolink(url)]
    .filter(Boolean)
    .join(`\n${indent}`);
}

function friction(point: FrictionPoint, name: string): string {
  const { severity, category, phase, state, title, description, quote, url, onPath } = point;
  const { events, lostSeconds, seenIn } = point;
  const properties = [severity, humanize(category), phase, `${state} (${seenIn.runs} of ${seenIn.of})`];
  if (!onPath) properties.push("elsewhere in the docs");
  if (lostSeconds !== null && lostSeconds >= 0.1) properties.push(`${lostSeconds} s lost`);
  return [
    `### ${name}: ${text(title)}`,
    properties.join(" · "),
    text(description, 4000),
    quote && `> ${code(quote)}`,
    [url && autolink(url), `evidence: ${describeEvents(events)}`].filter(Boolean).join(" · "),
  ]
    .filter(Boolean)
    .join("\n\n");
}

const runDetails = (report: Report, isStored: boolean) => {
  const { url, run, task, methodology } = report;
  return [
    `- Task: ${text(task.text, 4000)}`,
    ...(task.endGoal ? [`- End goal: ${text(task.endGoal, 4000)}`] : []),
    ...(run.templateArgs ? [`- Template arguments: ${code(JSON.stringify(run.templateArgs))}`] : []),
    ...(Object.keys(run.urlMap).length > 0 ? [`- URL map: ${code(JSON.stringify(run.urlMap))}`] : []),
    ...(isStored ? [`- Report: ${autolink(url)}`, `- Run: ${autolink(run.runUrl)}`] : []),
    `- Methodology: ${text(methodology.id)}, ${text(methodology.hash.slice(0, 8))}${methodology.judge ? `, judged by ${text(methodology.judge)}` : ""}`,
    ...(isStored ? [`- Calibration: ${calibrationLine(report)}`] : []),
  ].join("\n");
};

function calibrationLine(report: Report): string {
  const { text: sentence, command } = calibrationText(report);
  return command === null ? text(sentence) : `${text(sentence)}: ${code(command)}`;
}
