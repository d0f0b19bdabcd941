import { count, line, percent } from "../grading/words.ts";
import type { Report } from "../reports/schema.ts";

type Judge = NonNullable<Report["judge"]>;

/** Outcomes for people. */
export const outcomeWords: Record<Report["outcome"], string> = {
  succeeded: "Goal reached",
  goal_not_met: "Goal not reached",
  not_judged: "Goal not judged",
  no_creds: "Credentials were missing",
  excluded: "Left out",
  scoring_failed: "Could not be scored",
};

/** `2026-11-21 09:31:02 UTC` */
export const timeWords = (iso: string): string => `${iso.slice(0, 10)} ${iso.slice(11, 19)} UTC`;

export const titleOf = ({ title, text }: { title: string | null; text: string }): string =>
  title === null ? line(text, 120) : line(title, 200);

export const agentWords = ({ id, version, model }: Report["agent"]): string =>
  [id, version, model].filter((word) => word !== null).join(" ");

/** `explorer` frictions by id, as `F1`, `F2`: the name under which page and Markdown speak of them. */
export const frictionNames = ({ frictionPoints }: Pick<Report, "frictionPoints">): Map<string, string> =>
  new Map(frictionPoints.map(({ id }, i) => [id, `F${i + 1}`]));

export const metricWords: Record<string, string> = {
  timeSeconds: "Time",
  errors: "Errors",
  toolCalls: "Tool calls",
  costUsd: "Cost",
  interruptions: "Interruptions",
};

/** A name of the API as words: `no_change` as `no change`. */
export const plain = (word: string): string => word.replaceAll("_", " ");

export const metWords = { yes: "reached", no: "not reached", unclear: "not proven" } as const;

/** Who judged a session, at what cost, and how sure it is. */
export function judgeWords({ model, calls, costUsd, inputTokens, outputTokens, confidence }: Judge): string {
  const cost = costUsd === null ? "at a cost that is not known" : `for $${costUsd.toFixed(4)}`;
  const used = `${count(calls, "call")}, ${count(inputTokens, "token")} in, ${outputTokens} out, ${cost}`;
  const sure = confidence === null ? "" : ` It says that it is ${percent(confidence)} sure.`;
  return `Judged by ${line(model, 200)}: ${used}, apart from the cost of the run.${sure}`;
}

/** `104 KB` */
export const sizeWords = (bytes: number): string =>
  bytes < 1000 ? `${bytes} B` : bytes < 1e6 ? `${Math.round(bytes / 1000)} KB` : `${(bytes / 1e6).toFixed(1)} MB`;

/** `20,000` */
export const numberWords = (value: number): string => value.toLocaleString("en-US");
