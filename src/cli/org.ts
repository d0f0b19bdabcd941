import type { Command } from "commander";
import { createOrg, getOrgByName, listOrgs, updateOrg } from "../auth/orgs.ts";
import { setupPath } from "../auth/setup.ts";
import { resetSignInPolicy } from "../auth/sign-in-policy.ts";
import type { Config } from "../config/config.ts";
import { badRequest } from "../errors.ts";
import { getSpending } from "../runs/spending.ts";
import { withData } from "./data-directory.ts";
import { addOrgDelete } from "./deletion.ts";
import { orgOf, print, say, table, toJson } from "./terminal.ts";

type SetOptions = {
  name?: string;
  timeZone?: string;
  runsAtOnce?: string;
  runsADay?: string;
  maxUsdAMonth?: string;
  maxUsdARun?: string;
  judgeModel?: string;
  resultsPage?: boolean;
  json?: boolean;
};

/** Adds `org create`, `org set`, `org setup-link`, `org reset-sign-in-policy` and `org list`. */
export function addOrg(program: Command, configOf: () => Config): void {
  const org = program.command("org").description("Manage organizations");
  org
    .command("create <name>")
    .description("Create an organization and print its ID to stdout")
    .option("--time-zone <zone>", "Time zone of schedules and reports", "UTC")
    .option("--json", "Print the organization as JSON")
    .addHelpText("after", '\nExample:\n  evald org create "Acme" --time-zone Europe/Berlin')
    .action((name: string, { timeZone, json }: { timeZone: string; json?: boolean }) => {
      const org = withData(configOf(), ({ ctx }) => createOrg(ctx, name, timeZone));
      say(
        `Created organization ${org.name}. Create an API key for it with: evald key create --org ${JSON.stringify(org.name)} --name ci`,
      );
      print(json ? toJson(org) : org.id);
    });
  addOrgDelete(org, configOf);
  org
    .command("set <name>")
    .description("Update an organization; a limit of 0 restores the server default")
    .option("--name <name>", "New name")
    .option("--time-zone <zone>", "Time zone of schedules and reports")
    .option("--runs-at-once <n>", "Maximum concurrent runs")
    .option("--runs-a-day <n>", "Maximum runs started per rolling 24 hours; extra runs are queued")
    .option("--max-usd-a-month <usd>", "Model budget per calendar month; once it is spent, no more runs start")
    .option("--max-usd-a-run <usd>", "Model budget per run")
    .option(
      "--judge-model <models>",
      'Judge models, comma-separated, in order of preference; "" restores the server default',
    )
    .option("--results-page", "Show the chosen prompts to everyone with the URL of a public results page")
    .option("--no-results-page", "Turn the results page off, which revokes its URL for good")
    .option("--json", "Print the organization as JSON")
    .addHelpText(
      "after",
      '\nExample:\n  evald org set "Acme" --time-zone America/New_York --runs-a-day 200 --max-usd-a-month 50',
    )
    .action((name: string, options: SetOptions) => {
      const { updated, baseUrl } = withData(configOf(), ({ ctx }) => ({
        baseUrl: ctx.baseUrl(),
        updated: updateOrg(ctx, getOrgByName(ctx, name).id, {
          name: options.name,
          timeZone: options.timeZone,
          maxRunsAtOnce: toLimit("--runs-at-once", options.runsAtOnce),
          maxRunsADay: toLimit("--runs-a-day", options.runsADay),
          maxUsdAMonth: toUsd("--max-usd-a-month", options.maxUsdAMonth),
          maxUsdARun: toUsd("--max-usd-a-run", options.maxUsdARun),
          judgeModels:
            options.judgeModel?.trim() === "" ? null : options.judgeModel?.split(",").map((model) => model.trim()),
          hasResultsPage: options.resultsPage,
        }),
      }));
      say(`Updated organization ${updated.name}. A running service applies the change within 30 seconds.`);
      if (options.resultsPage && updated.resultsPath) say(`Public results page: ${baseUrl}${updated.resultsPath}`);
      print(options.json ? toJson(updated) : updated.id);
    });
  org
    .command("setup-link [name]")
    .description(
      "Create a setup link for the first owner of an organization (default: the only one) and print it to stdout",
    )
    .option("--json", "Print the link as JSON")
    .addHelpText("after", '\nExamples:\n  evald org setup-link\n  evald org setup-link "Acme"')
    .action((name: string | undefined, { json }: { json?: boolean }) => {
      const url = withData(
        configOf(),
        (service) => service.ctx.baseUrl() + setupPath(service.ctx, orgOf(service, name)),
      );
      say("The link works once and expires in 3 days. Anyone who opens it can become the owner.");
      print(json ? toJson({ url }) : url);
    });
  org
    .command("reset-sign-in-policy <name>")
    .description("Remove the sign-in policy of an organization, whose members may be locked out")
    .option("--json", "Print the organization as JSON")
    .addHelpText("after", '\nExample:\n  evald org reset-sign-in-policy "Acme"')
    .action((name: string, { json }: { json?: boolean }) => {
      const org = withData(configOf(), ({ ctx }) => {
        const org = getOrgByName(ctx, name);
        resetSignInPolicy(ctx, org.id);
        return org;
      });
      say(`Members of ${org.name} can sign in any way again.`);
      print(json ? toJson(org) : org.id);
    });
  org
    .command("list")
    .description("List organizations")
    .option("--json", "Print the list as JSON")
    .addHelpText("after", "\nExample:\n  evald org list")
    .action(({ json }: { json?: boolean }) => {
      const all = withData(configOf(), ({ ctx }) =>
        listOrgs(ctx).map((each) => ({ ...each, spentUsd: getSpending(ctx, each.id).spentUsd })),
      );
      const rows = all.map(({ id, name, timeZone, spentUsd, maxUsdAMonth }) => {
        const spent = `$${spentUsd.toFixed(2)}${maxUsdAMonth === null ? "" : ` of $${maxUsdAMonth}`}`;
        return [id, name, timeZone, spent];
      });
      print(json ? toJson(all) : table([["ID", "NAME", "TIME ZONE", "SPENT THIS MONTH"], ...rows]));
    });
}

/** Parses a limit. undefined: the option was not given. null: the server default. Throws bad_request. */
function toLimit(option: string, text: string | undefined): number | null | undefined {
  if (text === undefined) return undefined;
  if (!/^\d{1,9}$/.test(text))
    throw badRequest(
      `Invalid value for ${option}: ${JSON.stringify(text)} is not a whole number. Use 0 to restore the server default.`,
    );
  return Number(text) || null;
}

/** Parses an amount in USD. undefined: the option was not given. null: no limit. Throws bad_request. */
function toUsd(option: string, text: string | undefined): number | null | undefined {
  if (text === undefined) return undefined;
  if (!/^\d{1,7}(\.\d{1,6})?$/.test(text))
    throw badRequest(
      `Invalid value for ${option}: ${JSON.stringify(text)} is not an amount in USD. Use a number such as 50 or 0.5, or 0 for no limit.`,
    );
  return Number(text) || null;
}
