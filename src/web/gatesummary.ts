import type { Gate } from "../gates/schema.ts";
import type { Comparison } from "../reports/compare.ts";
import type { EvalResult } from "../reports/repeats.ts";
import { table, text } from "./markdown.ts";
import { metricWords } from "./words.ts";

const titleOf = ({ prompt }: Gate): string => prompt.title ?? prompt.id;

const statusWords: Record<Gate["status"], string> = {
  running: "running",
  passed: "passed",
  failed: "failed",
  error: "not decided",
};

/** A gate as Markdown for a pull request. Words of the target are data: nothing in them acts as markup, or calls for somebody. */
export function gateMarkdown(gate: Gate): string {
  const { comparison, status, reason, warnings, spentUsd, progress, headRequestId, baseRequestId } = gate;
  const { method = null, seed = null } = comparison?.evidence ?? {};
  const how = [
    ...(method === null ? [] : [seed === null ? method : `${method}, seed ${seed}`]),
    `${progress.ended} of ${progress.of} runs have ended${spentUsd === null ? "" : `, $${spentUsd.toFixed(2)} spent`}`,
    `eval request of the head ${headRequestId}${baseRequestId === null ? "" : `, of the base ${baseRequestId}`}`,
  ];
  return [
    `## Gate ${statusWords[status]}: ${safe(titleOf(gate))}`,
    `**${safe(reason ?? "its runs have not ended")}**`,
    ...warnings.map((warning) => `> ${safe(warning)}`),
    comparison ? sides(comparison) : alone(gate.head),
    comparison && changes("Dimension", comparison.evidence.dimensions),
    comparison && changes("Metric", comparison.evidence.metrics),
    comparison && friction(comparison),
    how.map((line) => `- ${safe(line)}`).join("\n"),
  ]
    .filter(Boolean)
    .join("\n\n")
    .concat("\n");
}

/** GitHub tells whoever is named after an @; a space without width between the two keeps it from that. */
const safe = (words: string): string => text(words).replaceAll("@", "@\u200b");

const figures: [string, (side: EvalResult) => string][] = [
  ["Runs", ({ n, infraFailures }) => (infraFailures === 0 ? `${n}` : `${n}, ${infraFailures} could not be made`)],
  ["Score", ({ score }) => (score === null ? "none" : `${score.mean}${range(score)}`)],
  ["Goal reached", ({ successes, successRate }) => (successRate ? `${successes} of ${successRate.of}` : "not judged")],
  ["Median time", ({ medianSeconds }) => (medianSeconds === null ? "unknown" : `${medianSeconds} s`)],
  ["Median cost", ({ medianCostUsd }) => (medianCostUsd === null ? "unknown" : `$${medianCostUsd}`)],
];

const range = ({ low, high }: { low: number | null; high: number | null }) =>
  low === null ? "" : ` (${low} to ${high})`;
const signed = (value: number) => (value > 0 ? `+${value}` : `${value}`);

function sides({ evidence: { sides, delta, p, successP } }: Comparison): string {
  const told: Record<string, string> = {
    Score: delta === null ? "" : `${signed(delta.value)}${range(delta)}, p ${p}`,
    "Goal reached": successP === null ? "" : `p ${successP}`,
  };
  return table([
    ["", "Base", "Head", "Change"],
    ...figures.map(([name, of]) => [name, ...sides.map(of), told[name] ?? ""]),
  ]);
}

const alone = (head: EvalResult): string => table([["", "Head"], ...figures.map(([name, of]) => [name, of(head)])]);

function changes(heading: string, all: Comparison["evidence"]["dimensions"]): string | null {
  const short = (value: number) => Number(value.toFixed(2));
  const rows = all.map(({ name, before, after, delta, pHolm }) => [
    metricWords[name] ?? name,
    `${short(before)}`,
    `${short(after)}`,
    signed(short(delta.value)),
    `${pHolm}`,
  ]);
  return rows.length === 0 ? null : table([[heading, "Base", "Head", "Change", "p (Holm)"], ...rows]);
}

/** Friction points that a list names at most. */
const maxListed = 10;

function friction({ evidence, friction: { new: came, gone, shared } }: Comparison): string | null {
  if (evidence.sides.some(({ n }) => n === 0)) return null;
  const list = (heading: string, points: Comparison["friction"]["new"], side: "before" | "after") => {
    const lines = points.map(
      ({ severity, title, [side]: seen }) => `- ${severity}: ${safe(title)} (in ${seen.runs} of ${seen.of} runs)`,
    );
    const rest = lines.length - maxListed;
    return lines.length === 0
      ? []
      : [[`${heading}:`, "", ...lines.slice(0, maxListed), ...(rest > 0 ? [`- and ${rest} more`] : [])].join("\n")];
  };
  const told = [...list("New friction", came, "after"), ...list("Friction that is gone", gone, "before")];
  return [...told, `Friction on both sides: ${shared.length}.`].join("\n\n");
}

/** A gate as JUnit XML: one test case, with a failure where it failed and an error where it could not tell. */
export function gateJunit(gate: Gate): string {
  const { status, reason, createdAt, decidedAt } = gate;
  const seconds = (Date.parse(decidedAt ?? createdAt) - Date.parse(createdAt)) / 1000;
  const kind = status === "failed" ? "failure" : status === "error" ? "error" : null;
  const summary = xml(gateMarkdown(gate));
  const told = kind === null ? "" : `<${kind} message="${xml(reason ?? "")}"/>`;
  return `<?xml version="1.0" encoding="UTF-8"?>
<testsuites>
  <testsuite name="evald gate" tests="1" failures="${Number(kind === "failure")}" errors="${Number(kind === "error")}" time="${seconds}" timestamp="${createdAt}">
    <testcase classname="evald.gate" name="${xml(titleOf(gate))}" time="${seconds}">${told}<system-out>${summary}</system-out></testcase>
  </testsuite>
</testsuites>
`;
}

const entities: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

/** XML cannot say most control characters: they are left out. */
const xml = (words: string): string =>
  words
    .toWellFormed()
    .replace(/(?![\n\t])\p{Cc}|[\ufffe\uffff]/gu, "")
    .replace(/[&<>"]/g, (sign) => entities[sign] as string);
