import type { Command } from "commander";
import { badRequest } from "../errors.ts";
import { count, dollars, duration } from "../grading/text.ts";
import { shareText, slotText, standingText } from "../suites/labels.ts";
import type { SuiteComparison, SuiteProduct, SuiteRun } from "../suites/schema.ts";
import { findProvider } from "./api.ts";
import { type ApiOptions, addApiOptions, type UseApi } from "./connection.ts";
import { readJsonFile } from "./files.ts";
import { parsePair, print, repeatable, say, sayRest, table, toJson, wholeNumber } from "./terminal.ts";

/** Adds `suite list`, `suite create`, `suite run` and `suite compare`. */
export function addSuite(program: Command, useApi: UseApi): void {
  const suite = program.command("suite").description("Compare products by the same tasks");
  addApiOptions(
    suite.command("list").description("List the newest version of each suite"),
    "Print the list as JSON",
    "suite list",
  ).action(({ json, ...address }: ApiOptions) =>
    useApi(address, async (api) => {
      const suites = await api.list("GET /suites", { query: { limit: 1000 } });
      const rows = suites.items.map(({ id, version, title, slots }) => [
        id,
        String(version),
        title,
        slots.map(({ slot }) => slot).join(", "),
      ]);
      print(json ? toJson(suites.items) : table([["ID", "VERSION", "TITLE", "SLOTS"], ...rows]));
      sayRest(suites);
    }),
  );
  addApiOptions(
    suite
      .command("create <suite>")
      .description("Create the prompts of a suite for a product and print their IDs to stdout")
      .requiredOption("--provider <provider>", "Name or ID of the provider")
      .option("--value <name=value>", "Value of a variable of the suite (repeatable)", parsePair)
      .option("--checks <file>", "JSON file with checks by slot"),
    "Print the prompts as JSON",
    "suite create baseline --provider Acme --value product=Acme --value primaryTask='store a note'",
  ).action(
    (
      suiteId: string,
      {
        provider,
        value = {},
        checks: file,
        json,
        ...address
      }: ApiOptions & { provider: string; value?: Record<string, string>; checks?: string },
    ) => {
      const checks = file === undefined ? undefined : readSlotChecks(file);
      return useApi(address, async (api) => {
        const { id: providerId } = await findProvider(api, provider);
        const body = { providerId, values: value, checks };
        const { prompts } = await api.request("POST /suites/{suiteId}/prompts", { path: { suiteId }, body });
        say(`Created ${count(prompts.length, "prompt")}. Run the suite with: evald suite run ${suiteId}`);
        print(json ? toJson(prompts) : prompts.map(({ promptId }) => promptId).join("\n"));
      });
    },
  );
  addApiOptions(
    suite
      .command("run <suite>")
      .description("Run all prompts of a suite and print the IDs of the evaluations to stdout")
      .option("--provider <provider>", "Only this provider, by name or ID (repeatable)", repeatable)
      .option("--runs <n>", "Runs of each prompt", wholeNumber(1, 50), 1)
      .option("--agent <id>", "Agent to use instead of the prompts'")
      .option("--model <id>", "Model to use instead of the prompts'"),
    "Print the IDs and the number of runs as JSON",
    "suite run baseline --runs 4 --agent claude-code",
  ).action(
    (
      suiteId: string,
      { provider, runs, agent, model, json, ...address }: ApiOptions & { provider?: string[] } & SuiteRun,
    ) =>
      useApi(address, async (api) => {
        const providers = provider && (await Promise.all(provider.map((each) => findProvider(api, each))));
        const providerIds = providers?.map(({ id }) => id);
        const body = { providerIds, runs, agent, model };
        const started = await api.request("POST /suites/{suiteId}/run", { path: { suiteId }, body });
        say(`Started ${count(started.runs, "run")}. Compare with: evald suite compare ${suiteId}`);
        print(json ? toJson(started) : started.evalRequestIds.join("\n"));
      }),
  );
  addApiOptions(
    suite.command("compare <suite>").description("Compare products by the slots that agents reached"),
    "Print as JSON",
    "suite compare baseline",
  ).action((suiteId: string, { json, ...address }: ApiOptions) =>
    useApi(address, async (api) => {
      const comparison = await api.request("GET /suites/{suiteId}/comparison", { path: { suiteId } });
      if (json) return print(toJson(comparison));
      for (const title of comparison.changed) say(`Not compared, because it differs from the suite: ${title}`);
      if (comparison.products.length === 0) return say("No runs of this suite yet.");
      print(toTable(comparison));
      say("Ranges are 95% confidence intervals. Time and cost are medians to the first success.");
    }),
  );
}

/** The service checks the items. Throws bad_request unless the file is a JSON object. */
function readSlotChecks(file: string): SuiteProduct["checks"] {
  const checks = readJsonFile(file);
  if (typeof checks === "object" && checks !== null && !Array.isArray(checks)) return checks as SuiteProduct["checks"];
  throw badRequest(`${file} must contain checks by slot, such as {"core": [{"command": "test -s note.txt"}]}.`);
}

/** One line for each product and agent. A slot shows its runs, followed by its friction points per report. */
function toTable({ slots, products }: SuiteComparison): string {
  return table([
    ["PRODUCT", "AGENT", "REACHED", "STANDING", "TIME", "COST", ...slots.map((slot) => slot.toUpperCase())],
    ...products.map(({ product, agent, model, share, standing, seconds, costUsd, slots: results }) => [
      product,
      [agent, model].filter(Boolean).join(" "),
      shareText(share),
      standingText(standing),
      seconds ? duration(seconds.value) : "unknown",
      costUsd ? dollars(costUsd.value) : "unknown",
      ...results.map((result) =>
        [slotText(result), result.friction !== null && `friction ${result.friction}`].filter(Boolean).join(", "),
      ),
    ]),
  ]);
}
