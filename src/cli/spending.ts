import { type Command, InvalidArgumentError, Option } from "commander";
import { badRequest } from "../errors.ts";
import { dollars } from "../grading/text.ts";
import { spendingCsv } from "../spending/csv.ts";
import { type BreakdownName, breakdownNames, type SpendingReport } from "../spending/schema.ts";
import { findPromptId } from "./api.ts";
import { type ApiOptions, addServiceOptions, type ServiceAddress, type UseApi } from "./connection.ts";
import { print, say, table, toJson } from "./terminal.ts";

type SpendingView = ServiceAddress & { month?: string; by: BreakdownName; json?: boolean; csv?: boolean };
type BudgetChange = ApiOptions & { prompt?: string; tag?: string; maxUsd: number | null };

function parseBudget(text: string): number | null {
  if (text === "none") return null;
  if (!/^\d{1,7}(\.\d+)?$/.test(text)) throw new InvalidArgumentError("Must be an amount in USD, or none.");
  return Number(text);
}

/** Adds `spending`, which shows what models cost in a month, and the budgets of prompts and tags. */
export function addSpending(program: Command, useApi: UseApi): void {
  const spending = program
    .command("spending")
    .description("Show what models cost, and set budgets of prompts and tags");
  const show = spending
    .command("show", { isDefault: true })
    .description("Show what models cost in a month, and what for")
    .option("--month <month>", "Month such as 2026-11 (default: the current one)")
    .addOption(new Option("--by <what>", "What to break it down by").choices(breakdownNames).default("prompt"))
    .addOption(new Option("--csv", "Print all breakdowns as CSV").conflicts("json"))
    .option("--json", "Print everything as JSON");
  addServiceOptions(show)
    .addHelpText("after", "\nExamples:\n  evald spending\n  evald spending show --month 2026-10 --by model")
    .action(async ({ org, url, month, by, json, csv }: SpendingView) => {
      await useApi({ org, url }, async (api) => {
        const report = await api.request("GET /spending", { query: { month } });
        if (json) return print(toJson(report));
        if (csv) return print(spendingCsv(report).trimEnd());
        say(toSummary(report));
        const rows = report.breakdown[by].map(({ name, spentUsd, estimatedUsd, previousUsd }) => [
          name,
          `${estimatedUsd > 0 ? "≈ " : ""}${dollars(spentUsd)}`,
          dollars(previousUsd),
        ]);
        print(table([[by.toUpperCase(), "SPENT", "MONTH BEFORE"], ...rows]));
      });
    });
  const budget = spending
    .command("budget")
    .description("Set the monthly budget of a prompt or of all prompts with a tag")
    .option("--prompt <prompt>", "ID or title of a prompt")
    .option("--tag <tag>", "Tag")
    .requiredOption("--max-usd <amount>", "Budget per month in USD; none removes it", parseBudget)
    .option("--json", "Print all budgets as JSON");
  addServiceOptions(budget)
    .addHelpText(
      "after",
      "\nExamples:\n  evald spending budget --tag billing --max-usd 20\n  evald spending budget --prompt Upload --max-usd none",
    )
    .action(async ({ org, url, prompt, tag, maxUsd, json }: BudgetChange) => {
      if ((prompt === undefined) === (tag === undefined)) throw badRequest("Pass exactly one of --prompt and --tag.");
      await useApi({ org, url }, async (api) => {
        const promptId = prompt === undefined ? undefined : await findPromptId(api, prompt);
        const budgets = await api.request("PUT /budgets", { body: { promptId, tag, maxUsdAMonth: maxUsd } });
        const rows = budgets.map((each) => [
          each.tag === null ? each.name : `tag ${each.name}`,
          dollars(each.spentUsd),
          dollars(each.maxUsdAMonth),
        ]);
        print(json ? toJson(budgets) : table([["BUDGET OF", "SPENT", "BUDGET"], ...rows]));
      });
    });
}

function toSummary(report: SpendingReport): string {
  const { from, spentUsd, maxUsdAMonth, expectedUsd, previous, forecast, failedRuns } = report;
  const parts = [
    `Spent since ${from.slice(0, 10)}: ${dollars(spentUsd)}${maxUsdAMonth === null ? "" : ` of ${dollars(maxUsdAMonth)}`}`,
    `month before: ${dollars(previous.spentUsd)}`,
    ...(expectedUsd === null ? [] : [`at this pace: ${dollars(expectedUsd)}`]),
    ...(forecast ? [`with scheduled runs: ${dollars(forecast.monthUsd.expected)}`] : []),
    ...(failedRuns.runs > 0 ? [`on failed runs: ${dollars(failedRuns.spentUsd)}`] : []),
  ];
  return `${parts.join("; ")}.`;
}
