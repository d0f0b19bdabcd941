import type { Command } from "commander";
import { count, signedPoints } from "../grading/text.ts";
import type { ScoreChangeExplanation } from "../inbox/schema.ts";
import { toPrintable } from "../log.ts";
import { findPromptId } from "./api.ts";
import { type ApiOptions, addApiOptions, type UseApi } from "./connection.ts";
import { print, printStyled, styled, table, toJson } from "./terminal.ts";
import { wrapText } from "./text-layout.ts";

type ChosenWindows = ApiOptions & { base?: string; head?: string };

/** Adds `why`: explains a change of a prompt's score. */
export function addWhy(program: Command, useApi: UseApi): void {
  addApiOptions(
    program
      .command("why <prompt>")
      .description("Explain the newest significant change of a prompt's score; by ID or title")
      .option("--base <ids>", "Explain another change: comma-separated IDs of evaluations before it, with --head")
      .option("--head <ids>", "Comma-separated IDs of evaluations after it"),
    "Print the explanation as JSON",
    'why "First query"',
  ).action((prompt: string, { json, base, head, ...address }: ChosenWindows) =>
    useApi(address, async (api) => {
      const promptId = await findPromptId(api, prompt, { archived: true });
      const path = { promptId };
      const explanation = await api.request("GET /prompts/{promptId}/score-change", { path, query: { base, head } });
      if (json) print(toJson(explanation, 2));
      else printStyled(toText(explanation));
    }),
  );
}

function toText(explanation: ScoreChangeExplanation): string {
  const { prompt, kind, agent, model, delta, low, high, since, before, after, pages } = explanation;
  // A change is exact if it has no interval, or an interval of width zero.
  const isExact = low === null || high === null || low === high;
  const interval = isExact ? "" : ` (95% CI ${signedPoints(low)} to ${signedPoints(high)})`;
  const title = `${prompt.title} ${kind === "score_fell" ? "fell" : "rose"} from ${before.mean.toFixed(1)} to ${after.mean.toFixed(1)}`;
  const runs = `${count(before.runs, "run")} before, ${count(after.runs, "run")} after, with ${[agent, model].filter(Boolean).join(" and ")}`;
  const change = `${signedPoints(delta)} points${interval} since ${since.slice(0, 10)}: ${runs}`;
  const wrapped = (text: string) => wrapText(toPrintable(text), process.stdout.columns ?? Number.POSITIVE_INFINITY);
  return [
    [...wrapped(title).map((line) => styled("bold", line)), ...wrapped(change)].join("\n"),
    table(toRows(explanation)),
    ...pages.map((page) => [styled("bold", page.url), ...page.lines.map(toDiffLine)].join("\n")),
  ].join("\n\n");
}

function toRows(explanation: ScoreChangeExplanation): string[][] {
  const { causes, agentPoints, networkPoints, unexplained, delta, before, after } = explanation;
  return [
    ["WHAT EXPLAINS IT", "POINTS", "BEFORE", "AFTER", "PAGE"],
    ...causes.map((cause) => [
      cause.title,
      cause.points === null ? "" : signedPoints(cause.points),
      `${cause.before.met} of ${cause.before.of}`,
      `${cause.after.met} of ${cause.after.of}`,
      cause.url === null ? "" : `${cause.url}${cause.line === null ? "" : `, line ${cause.line}`}`,
    ]),
    ["The agent's own mistakes", signedPoints(agentPoints), "", "", ""],
    ["Network", signedPoints(networkPoints), "", "", ""],
    ["Unexplained", signedPoints(unexplained), "", "", ""],
    ["Change of the score", signedPoints(delta), before.mean.toFixed(1), after.mean.toFixed(1), ""],
  ];
}

function toDiffLine({ change, text }: ScoreChangeExplanation["pages"][number]["lines"][number]): string {
  if (change === "none") return toPrintable(`  ${text}`);
  return change === "added" ? styled("green", `+ ${text}`) : styled("red", `- ${text}`);
}
