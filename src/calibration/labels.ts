import { count } from "../grading/text.ts";
import { figuresText } from "../reports/calibration.ts";
import { type Calibration, runsPerSite } from "./schema.ts";

export const statusLabels = { running: "Running", completed: "Completed", stopped: "Stopped" } as const;

const stopLabels = {
  budget: "Another site would have exceeded the budget.",
  cancelled: "It was cancelled.",
  refused: "Its next runs were refused.",
  failed: "No run with a defect has a report.",
} as const;

/** What a figure that became worse means. */
export const worseLabels = {
  found: "finds fewer planted defects",
  falseFindings: "has false findings on more clean sites",
  falseAlarms: "has more false alarms",
} as const;

const measurerText = ({ agent, model }: { agent: string; model: string | null }): string =>
  model === null ? agent : `${agent} with ${model}`;

/** What was measured, by which agent. */
export const calibrationTitle = ({ source, ...calibration }: Calibration): string =>
  `${measurerText(calibration)}, ${source === "sites" ? "evald’s own sites" : "docs of a prompt"}`;

/** The figures in a sentence. Without figures, it says what the calibration waits for or why it has none. */
export function resultText({ figures, methodology, endedRuns, sites, stopReason }: Calibration): string {
  if (figures) return `Methodology ${methodology}: ${figuresText(figures)}.${failedText(figures)}`;
  return stopReason === null
    ? `${endedRuns} of ${count(runsPerSite * sites, "run")} finished.`
    : stopLabels[stopReason];
}

const failedText = ({ failedRuns }: NonNullable<Calibration["figures"]>): string =>
  failedRuns === 0 ? "" : ` ${count(failedRuns, "run")} failed and ${failedRuns === 1 ? "doesn’t" : "don’t"} count.`;

/** What a calibration would cost. */
export function estimateText({ sites, estimate, ...measurer }: Calibration): string {
  const { runs = 0, usd = null, maxUsd = null } = estimate ?? {};
  const what = `${count(runs, "run")} of ${measurerText(measurer)} on ${count(sites, "site")}`;
  if (usd === null || maxUsd === null) return `${what}. What they cost is not known.`;
  if (maxUsd === 0) return `${what}. They cost nothing.`;
  return `${what}. They usually cost $${usd.toFixed(2)}, at most $${maxUsd.toFixed(2)}.`;
}

/** What a calibration shows apart from its figures, each with its run. */
export const evidenceLabels = {
  found: "Missed",
  falseFindings: "False finding",
  falseAlarms: "False alarm, differs from run",
} as const;
