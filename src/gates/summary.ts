import type { Comparison } from "../comparisons/compare.ts";
import { count } from "../grading/text.ts";
import { toXmlAttributes, toXmlText } from "../http/xml.ts";
import { metricLabels } from "../reports/labels.ts";
import { table, text } from "../reports/markdown-text.ts";
import type { EvalResult } from "../stats/repeats.ts";
import type { Gate } from "./schema.ts";

const titleOf = ({ prompts }: Gate): string => prompts.map(({ title, id }) => title ?? id).join(", ");

/** How a gate ended, for people. */
export const statusLabels: Record<Gate["status"], string> = {
  running: "running",
  passed: "passed",
  failed: "failed",
  error: "inconclusive",
};

/** A gate as Markdown for a pull request. Text from the target is escaped, so it can't act as markup or as a mention. */
export function gateMarkdown(gate: Gate): string {
  const { comparison, status, reason, warnings, spentUsd, progress, prompts } = gate;
  const { method = null, seed = null } = comparison?.evidence ?? {};
  const seedText = seed === null ? "" : `, seed ${seed}`;
  const details = [
    ...(method === null ? [] : [method + seedText]),
    `${progress.ended} of ${progress.of} runs finished${spentUsd === null ? "" : `, $${spentUsd.toFixed(2)} spent`}`,
    ...prompts.map(({ title, id, headRequestId, baseRequestId }) => {
      const name = prompts.length === 1 ? "" : `${title ?? id}: `;
      return `${name}head evaluation ${headRequestId}${baseRequestId === null ? "" : `, base evaluation ${baseRequestId}`}`;
    }),
  ];
  return [
    `## Gate ${statusLabels[status]}: ${safeText(titleOf(gate))}`,
    `**${safeText(reason ?? "runs still in progress")}**`,
    ...warnings.map((warning) => `> ${safeText(warning)}`),
    comparison ? sidesTable(comparison) : headTable(gate.head),
    comparison && changesTable("Dimension", comparison.evidence.dimensions),
    comparison && changesTable("Metric", comparison.evidence.metrics),
    comparison && frictionLists(comparison),
    details.map((line) => `- ${safeText(line)}`).join("\n"),
    `[View the gate in evald](${gate.pageUrl})`,
  ]
    .filter(Boolean)
    .join("\n\n")
    .concat("\n");
}

/** Escapes text and breaks @mentions with a zero-width space, so that GitHub notifies nobody. */
const safeText = (untrusted: string): string => text(untrusted).replaceAll("@", "@\u200b");

const figures: [string, (side: EvalResult) => string][] = [
  ["Runs", ({ n, infraFailures }) => (infraFailures === 0 ? `${n}` : `${n}, ${infraFailures} failed`)],
  ["Score", ({ score }) => (score === null ? "none" : `${score.mean}${range(score)}`)],
  [
    "Goal reached",
    ({ successes, successRate }) => (successRate ? `${successes} of ${successRate.of} judged` : "Goal not tested"),
  ],
  ["Median time", ({ medianSeconds }) => (medianSeconds === null ? "unknown" : `${medianSeconds} s`)],
  ["Median cost", ({ medianCostUsd }) => (medianCostUsd === null ? "unknown" : `$${medianCostUsd}`)],
];

const range = ({ low, high }: { low: number | null; high: number | null }) =>
  low === null ? "" : ` (${low} to ${high})`;
const signed = (value: number) => (value > 0 ? `+${value}` : `${value}`);

function sidesTable({ evidence: { sides, score, delta, p, successP } }: Comparison): string {
  const scoreName = score?.without.length ? `Score without ${score.without.join(", ")}` : "Score";
  // The comparison is between these means. If it leaves out a dimension, they differ from the means of the sides.
  const shownSides = sides.map((side, i) => {
    const mean = [score?.before, score?.after][i];
    return mean === undefined || mean === side.score?.mean ? side : { ...side, score: { mean, low: null, high: null } };
  });
  const interval = delta === null || delta.low === delta.high ? "" : range(delta);
  const pText = p === null ? "" : `, p ${p}`;
  const changeOf: Record<string, string> = {
    Score: delta === null ? "" : signed(delta.value) + interval + pText,
    "Goal reached": successP === null ? "" : `p ${successP}`,
  };
  return table([
    ["", "Base", "Head", "Change"],
    ...figures.map(([name, of]) => [name === "Score" ? scoreName : name, ...shownSides.map(of), changeOf[name] ?? ""]),
  ]);
}

const headTable = (head: EvalResult): string => table([["", "Head"], ...figures.map(([name, of]) => [name, of(head)])]);

function changesTable(heading: string, changes: Comparison["evidence"]["dimensions"]): string | null {
  const short = (value: number) => Number(value.toFixed(2));
  const rows = changes.map(({ name, before, after, delta, pHolm }) => [
    metricLabels[name] ?? name,
    `${short(before)}`,
    `${short(after)}`,
    signed(short(delta.value)),
    `${pHolm}`,
  ]);
  return rows.length === 0 ? null : table([[heading, "Base", "Head", "Change", "p (Holm)"], ...rows]);
}

/** Maximum number of friction points listed. */
const maxListed = 10;

function frictionLists({ evidence, friction: { new: added, gone, shared } }: Comparison): string | null {
  if (evidence.sides.some(({ n }) => n === 0)) return null;
  const list = (heading: string, points: Comparison["friction"]["new"], side: "before" | "after") => {
    const lines = points.map(
      ({ severity, title, [side]: share }) =>
        `- ${severity}: ${safeText(title)} (in ${share.runs} of ${count(share.of, "run")})`,
    );
    const rest = lines.length - maxListed;
    return lines.length === 0
      ? []
      : [[`${heading}:`, "", ...lines.slice(0, maxListed), ...(rest > 0 ? [`- and ${rest} more`] : [])].join("\n")];
  };
  const lists = [...list("New friction", added, "after"), ...list("Resolved friction", gone, "before")];
  return [...lists, `Friction in both: ${shared.length}.`].join("\n\n");
}

/** A gate as JUnit XML: one test case, with a failure if the gate failed and an error if it was inconclusive. */
export function gateJunit(gate: Gate): string {
  const { status, reason, createdAt, completedAt } = gate;
  const seconds = (Date.parse(completedAt ?? createdAt) - Date.parse(createdAt)) / 1000;
  const element = { running: null, passed: null, failed: "failure", error: "error" }[status];
  const problem = element === null ? "" : `<${element}${toXmlAttributes({ message: reason ?? "" })}/>`;
  const [failures, errors] = [Number(status === "failed"), Number(status === "error")];
  const suite = { name: "evald gate", tests: 1, failures, errors, time: seconds, timestamp: createdAt };
  const test = { classname: "evald.gate", name: titleOf(gate), time: seconds };
  return `<?xml version="1.0" encoding="UTF-8"?>
<testsuites>
  <testsuite${toXmlAttributes(suite)}>
    <testcase${toXmlAttributes(test)}>${problem}<system-out>${toXmlText(gateMarkdown(gate))}</system-out></testcase>
  </testsuite>
</testsuites>
`;
}
