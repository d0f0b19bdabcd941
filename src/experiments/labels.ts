import type { ArmChanges } from "../db/tables/experiments.ts";
import { type Bounds, count, dollars, list, percent, rangeText, signedPoints } from "../grading/text.ts";
import { pWords } from "../stats/repeats.ts";
import type { ArmContrast } from "./analysis.ts";
import type { ArmSummary } from "./arm-summary.ts";
import type { RatioChange } from "./contrast.ts";
import type { Experiment, ExperimentEstimate } from "./schema.ts";

export const statusLabels: Record<Experiment["status"], string> = {
  running: "Running",
  completed: "Completed",
  stopped: "Stopped",
};

export const stopLabels: Record<NonNullable<Experiment["stopReason"]>, string> = {
  budget: "The next repeat would have exceeded the budget.",
  cancelled: "A person cancelled it.",
};

export const verdictLabels: Record<ArmContrast["verdict"], string> = {
  better: "Better",
  worse: "Worse",
  not_distinguishable: "Not distinguishable",
  insufficient_data: "Too little data",
  not_comparable: "Not comparable",
};

/** "+6.2 points (+1.1 to +11.3)" */
export function scoreText({ score, exact }: ArmContrast["overall"]): string {
  if (score === null) return "No score";
  const value = `${signedPoints(score.delta)} ${Math.abs(score.delta) === 1 ? "point" : "points"}`;
  return exact ? `${value}, exact` : value + rangeText(score, signedPoints);
}

/** "9 of 10 against 4 of 10" */
export function successText({ success }: ArmContrast["overall"]): string {
  if (success === null) return "Not judged";
  const { base, arm } = success;
  const share = ({ n, of }: { n: number; of: number }) => `${Math.round(n * 100) / 100} of ${of}`;
  return `${share(arm)} against ${share(base)}`;
}

/** "×1.30 (1.10 to 1.50)" */
export const ratioText = (change: RatioChange | null): string =>
  change === null ? "Unknown" : `×${change.ratio.toFixed(2)}${rangeText(change, (bound) => bound.toFixed(2))}`;

/** What the verdict on an arm is based on, or what is missing for a verdict, in a sentence. */
export function reasonText(contrast: ArmContrast): string {
  const { verdict, overall, causes, withinThreshold } = contrast;
  if (verdict === "not_comparable")
    return `${count(contrast.contaminated, "run")} used what another arm changes: more than 20% of a side.`;
  if (verdict === "better" || verdict === "worse") {
    if (overall.exact) return "The agent does the same in every run, so the difference is exact.";
    const names = causes.map((cause) => (cause === "score" ? "score" : "share of reached goals"));
    const p = Math.min(...causes.flatMap((cause) => overall[cause]?.adjustedP ?? []));
    return `The ${list(names)} changed (${pWords(p)}, corrected for the number of comparisons).`;
  }
  if (overall.exact && overall.score)
    return "The agent does the same in every run, so the difference is exact, and below 5 points.";
  if (withinThreshold) return "The change of the score is smaller than 5 points.";
  return lackText(contrast);
}

/** What is missing for a verdict on an arm, in sentences. */
function lackText({ runsForVerdict, promptsForVerdict, failed }: ArmContrast): string {
  const sentences = [
    failed > 0 && `${count(failed, "run")} failed.`,
    runsForVerdict !== null &&
      `A difference of 5 points needs about ${count(runsForVerdict, "run")} per prompt and arm.`,
    promptsForVerdict !== null &&
      `${count(promptsForVerdict, "prompt")} with as many runs each as now would do as well.`,
  ].filter((sentence) => sentence !== false);
  return sentences.length === 0 ? "More runs are needed for a verdict." : sentences.join(" ");
}

/** Says that no run of an arm met its treatment, and what to check; null: a run did, or it is unknown. */
export const unmetText = ({ arms }: Experiment["analysis"], name: string): string | null =>
  arms.some(({ arm, used }) => arm === name && used !== null && used.of > 0 && used.n === 0)
    ? "No run used what this arm changes, so the difference is due to chance. Check the URLs and texts of the arm."
    : null;

/** The runs of an arm that used its treatment. */
export const usedText = ({ used }: ArmSummary): string => (used === null ? "–" : `${used.n} of ${used.of}`);

/** The mean score of an arm with its interval. */
export const meanText = ({ meanScore, interval }: ArmSummary): string =>
  meanScore === null ? "–" : `${meanScore.toFixed(1)}${rangeText(interval, (bound) => bound.toFixed(1))}`;

/** The share of judged runs of an arm that reached the goal, with its interval. */
export const shareText = ({ successes, judged, successInterval }: ArmSummary): string =>
  judged === 0 ? "Not judged" : `${successes} of ${judged}${rangeText(successInterval, percent)}`;

/** What an arm changes, in words. */
export function changesText(changes: ArmChanges): string {
  const { urlMap, sites, edits, providerId, agent, model, workspace, without } = changes;
  const words = [
    ...Object.entries(urlMap ?? {}).map(([host, url]) => `${host} is replaced by ${url}`),
    ...Object.keys(sites ?? {}).map((url) => `${url} is read from a folder`),
    ...(edits?.hidden ?? []).map((url) => `${url} is hidden`),
    ...(edits?.replacements ?? []).map(({ url }) => `${url} is edited`),
    ...(providerId === undefined ? [] : ["the docs of another provider"]),
    ...(agent === undefined ? [] : [`agent ${agent}`]),
    ...(model === undefined ? [] : [`model ${model}`]),
    ...(without ?? []).map((part) => `without ${partLabels[part]}`),
    ...Object.keys(workspace ?? {}).map((part) => `own ${partLabels[part as keyof typeof partLabels] ?? part}`),
  ];
  return words.length === 0 ? "Nothing" : list(words, 8);
}

const partLabels = { instructions: "AGENTS.md", skills: "skills", mcpServers: "MCP servers" };

/** What an experiment may cost, in a sentence. */
export function estimateText({ runs, usd, maxUsd }: Omit<ExperimentEstimate, "repeats">): string {
  if (maxUsd === 0) return `${count(runs, "run")} without cost.`;
  if (usd === null) return `${count(runs, "run")}. What they cost is unknown.`;
  return `${count(runs, "run")}, usually ${dollars(usd)}${maxUsd === null ? "" : `, at most ${dollars(maxUsd)}`}.`;
}

/** What comparing the base with itself shows about gates, in sentences. */
export function falseAlarmsText({ analysis, falseAlarms }: Experiment): string | null {
  if (falseAlarms === null) return null;
  const [contrast] = analysis.contrasts;
  if (contrast?.overall.exact)
    return contrast.overall.score?.delta === 0
      ? "Both arms are the same, and so are their scores: this agent causes no false alarms."
      : "Both arms are the same, but their scores differ, although this agent does the same in every run. This is a defect of evald: please report it.";
  const { runsPerSide, gates, alarms, rate, excessP, smallestChange } = falseAlarms;
  if (rate === null || gates === 0)
    return `Both arms are the same. A gate needs ${runsPerSide} runs per side, so more runs are needed.`;
  const isExcess = excessP !== null && excessP < 0.05;
  return [
    "Both arms are the same.",
    `${alarms} of ${count(gates, "gate")} with ${runsPerSide} runs per side found a change: ${intervalText(rate)}.`,
    smallestChange !== null &&
      `The next gate shows changes of ${smallestChange.toFixed(1)} points or more in 4 of 5 cases.`,
    isExcess && "That is more than chance explains, so gates of this prompt and agent can't be relied on.",
  ]
    .filter((sentence) => sentence !== false)
    .join(" ");
}

/** A share with its interval: "90% (70% to 97.2%)". */
export const intervalText = (share: (Bounds & { value: number }) | null): string =>
  share === null ? "–" : `${percent(share.value)}${rangeText(share, percent)}`;

/** What went wrong with a labeled prompt: "used in 2 of 5 runs, should be in all". */
export const wrongText = ({
  shouldTrigger,
  triggered,
  of,
}: Experiment["analysis"]["triggering"][number]["wrong"][number]) =>
  `used in ${triggered} of ${count(of, "run")}, should be in ${shouldTrigger ? "all" : "none"}`;

/** How many labeled prompts were derived from the description of the skill, in a sentence; null: none. */
export function fromSkillText({ prompts }: Experiment): string | null {
  const labeled = prompts.filter(({ shouldTrigger }) => shouldTrigger !== null);
  const derived = labeled.filter(({ fromSkill }) => fromSkill).length;
  return derived === 0
    ? null
    : `${derived} of ${count(labeled.length, "labeled prompt")} ${derived === 1 ? "was" : "were"} derived from the skill’s description, so users may ask in other words.`;
}
