import { type Command, Option } from "commander";
import { dollars, duration, percent, signedPoints } from "../grading/text.ts";
import { scoreText } from "../reports/labels.ts";
import type { Trends } from "../trends/trends.ts";
import { findPromptId } from "./api.ts";
import { type ApiOptions, addApiOptions, type UseApi } from "./connection.ts";
import { print, say, table, toJson } from "./terminal.ts";

type TrendFilter = ApiOptions & {
  tag?: string;
  agent?: string;
  model?: string;
  since?: string;
  until?: string;
  interval?: "day" | "week" | "month" | "eval";
};

/** Adds `trends`: shows results over time. */
export function addTrends(program: Command, useApi: UseApi): void {
  addApiOptions(
    program
      .command("trends [prompt]")
      .description("Show results over time: of a prompt, by ID or title, or of all prompts")
      .option("--tag <tag>", "All prompts with this tag")
      .option("--agent <id>", "Agent (default: the one with the most runs)")
      .option("--model <id>", "Model")
      .option("--since <date>", "From this time, such as 2026-11-01")
      .option("--until <date>", "Before this time")
      .addOption(
        new Option(
          "--interval <interval>",
          "What one line covers; eval: one evaluation of the prompt (default: week)",
        ).choices(["day", "week", "month", "eval"]),
      ),
    "Print the results as JSON",
    'trends "First query" --interval day',
  ).action((prompt: string | undefined, { url, org, json, ...filter }: TrendFilter) =>
    useApi({ url, org }, async (api) => {
      const promptId = prompt === undefined ? undefined : await findPromptId(api, prompt, { archived: true });
      const trends = await api.request("GET /trends", { query: { ...filter, promptId } });
      if (json) return print(toJson(trends));
      if (trends.points.length === 0) return say("No published runs on live docs in this period.");
      say(`Agent: ${[trends.agent, trends.agentVersion, trends.model].filter(Boolean).join(" ")}`);
      print(table([["FROM", "RUNS", "SCORE", "95% INTERVAL", "GOAL REACHED", "TIME", "COST"], ...toRows(trends)]));
      for (const change of trends.changes) say(toSentence(change));
    }),
  );
}

const dayLength = "2026-11-16".length;
/** Evaluations need the time of day, because there may be several a day. */
const minuteLength = "2026-11-16 09:30".length;

const toRows = ({ points, scope, timeZone }: Trends): string[][] =>
  points.map(({ from, evalRequestId, n, score, successRate, medianSeconds, medianCostUsd }) => [
    toLocalTime(from, timeZone).slice(0, evalRequestId === undefined ? dayLength : minuteLength),
    String(n),
    scoreText({ score: score?.mean ?? null, scope: scope ?? "goal" }),
    toRange(score),
    successRate === null ? "not tested" : percent(successRate.value),
    medianSeconds === null ? "" : duration(medianSeconds),
    medianCostUsd === null ? "unknown" : dollars(medianCostUsd),
  ]);

/** `2026-11-16 09:30:00` */
const toLocalTime = (iso: string, timeZone: string): string =>
  Temporal.Instant.from(iso).toZonedDateTimeISO(timeZone).toPlainDateTime().toString().replace("T", " ");

/** `81.2 to 86.0`; empty for a score without an interval. */
function toRange(score: Trends["points"][number]["score"]): string {
  if (score === null || score.low === null || score.high === null) return "";
  return `${score.low.toFixed(1)} to ${score.high.toFixed(1)}`;
}

function toSentence({ at, what, from, to, delta, verdict }: Trends["changes"][number]): string {
  const day = at.slice(0, 10);
  if (delta === null) return `${day}: ${what} changed from ${from || "none"} to ${to || "none"}`;
  const points = signedPoints(delta.value);
  return `${day}: ${what} ${verdict?.replaceAll("_", " ") ?? "changed"}, ${points} points (${from} to ${to})`;
}
