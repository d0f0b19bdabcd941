import { Value } from "@sinclair/typebox/value";
import type { Command } from "commander";
import { listMethodologies } from "../grading/methodology.ts";
import { count } from "../grading/text.ts";
import { type Regrade, RegradeRequest } from "../regrades/schema.ts";
import { invalidInput } from "../schema.ts";
import { addServiceOptions, type ServiceAddress, type UseApi } from "./connection.ts";
import { print, say, toJson, wholeNumber } from "./terminal.ts";

type RegradeOptions = ServiceAddress & {
  prompt?: string;
  since: string;
  until?: string;
  methodology?: string;
  judge?: string;
  repeats?: number;
  maxUsd?: number;
  dryRun?: boolean;
  json?: boolean;
};

/** IDs of the methodologies that every service has. */
const builtInIds = listMethodologies(null)
  .map(({ id }) => id)
  .join(" or ");

/** Adds `regrade`, which queues a regrade of stored sessions. The service does the regrade now or at its next start. */
export function addRegrade(program: Command, useApi: UseApi): void {
  const regrade = program
    .command("regrade")
    .description("Regrade stored sessions with another methodology or judge, without running agents again")
    .requiredOption("--since <date>", "Only reports created at or after this time, such as 2026-11-01")
    .option("--until <date>", "Only reports created before this time")
    .option("--prompt <id>", "Only reports of this prompt")
    .option(
      "--methodology <id>",
      `Methodology ID: ${builtInIds}, or the one in EVALD_METHODOLOGY (default: the one used for new reports)`,
    )
    .option("--judge <model>", "Judge the sessions again with this provider/model")
    .option(
      "--repeats <n>",
      "How often to judge each session, to measure how consistent the judge is",
      wholeNumber(1, 20),
    )
    .option("--max-usd <amount>", "Maximum total cost of the judge; required with --judge", Number)
    .option("--dry-run", "Show what would be regraded without doing it")
    .option("--json", "Print the result as JSON");
  addServiceOptions(regrade)
    .addHelpText(
      "after",
      `
Examples:
  evald regrade --since 2026-11-01 --methodology ${builtInIds}
  evald regrade --since 2026-11-01 --judge openai/gpt-5 --repeats 3 --max-usd 20 --dry-run`,
    )
    .action(async ({ org, url, prompt: promptId, json, ...options }: RegradeOptions) => {
      // Validates the request as the API does, before a service is needed.
      const problem = Value.Errors(RegradeRequest, { ...options, promptId }).First();
      if (problem) throw invalidInput(problem, "request");
      await useApi({ org, url }, async (api) => {
        const result = await api.request("POST /regrades", { body: { ...options, promptId } });
        say(toSummary(result));
        print(json ? toJson(result) : (result.regradeId ?? "dry run"));
      });
    });
}

function toSummary(regrade: Regrade): string {
  const { regradeId, methodology, total, graded, unchanged, withoutEvents, estimatedUsd, judge } = regrade;
  const cost = judge === null ? "" : ` Estimated cost: ${estimatedUsd === null ? "unknown" : `$${estimatedUsd}`}.`;
  return regradeId === null
    ? `Dry run with methodology ${methodology}: would regrade ${graded} of ${total} reports (${unchanged} up to date, ${withoutEvents} without a stored session).${cost}`
    : `Queued a regrade of ${count(total, "report")} with methodology ${methodology}.${cost} The service works on it now or after its next start. Check it with GET /api/v1/regrades/${regradeId}.`;
}
