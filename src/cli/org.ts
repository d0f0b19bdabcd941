import type { Command } from "commander";
import type { Config } from "../config.ts";
import { badRequest } from "../errors.ts";
import { print, say, table, withData } from "./terminal.ts";

type SetOptions = {
  name?: string;
  timeZone?: string;
  runsAtOnce?: string;
  runsADay?: string;
  maxUsdAMonth?: string;
  maxUsdARun?: string;
  judgeModel?: string;
  json?: boolean;
};

/** Adds `org create`, `org set`, `org setup-link` and `org list`. */
export function addOrg(program: Command, configOf: () => Config): void {
  const org = program.command("org").description("organisations: everything belongs to one");
  org
    .command("create <name>")
    .description("make an organisation; its id goes to stdout")
    .option("--time-zone <zone>", "for its schedules and reports", "UTC")
    .option("--json", "print the organisation as JSON")
    .addHelpText("after", '\nExample:\n  evald org create "Acme" --time-zone Europe/Berlin')
    .action((name: string, { timeZone, json }: { timeZone: string; json?: boolean }) => {
      const made = withData(configOf(), ({ orgs }) => orgs.createOrg(name, timeZone));
      say(
        `organisation ${made.name} made; evald key create --org ${JSON.stringify(made.name)} --name ci makes a key for it`,
      );
      print(json ? JSON.stringify(made) : made.id);
    });
  org
    .command("set <name>")
    .description("change an organisation; a limit of 0 goes back to the configuration's")
    .option("--name <name>", "what it is called from now on")
    .option("--time-zone <zone>", "for its schedules and reports")
    .option("--runs-at-once <n>", "most runs at once")
    .option("--runs-a-day <n>", "most runs begun within 24 hours; more wait")
    .option("--max-usd-a-month <usd>", "what models may cost in a calendar month; then nothing more is begun")
    .option("--max-usd-a-run <usd>", "what the agent's model may cost in one run")
    .option(
      "--judge-model <models>",
      'who judges its sessions, separated by commas, best first; "" for the configuration\'s',
    )
    .option("--json", "print the organisation as JSON")
    .addHelpText(
      "after",
      '\nExample:\n  evald org set "Acme" --time-zone America/New_York --runs-a-day 200 --max-usd-a-month 50',
    )
    .action((name: string, given: SetOptions) => {
      const changed = withData(configOf(), ({ orgs }) =>
        orgs.updateOrg(orgs.getOrgByName(name).id, {
          name: given.name,
          timeZone: given.timeZone,
          maxRunsAtOnce: toLimit("--runs-at-once", given.runsAtOnce),
          maxRunsADay: toLimit("--runs-a-day", given.runsADay),
          maxUsdAMonth: toUsd("--max-usd-a-month", given.maxUsdAMonth),
          maxUsdARun: toUsd("--max-usd-a-run", given.maxUsdARun),
          judgeModels: given.judgeModel === undefined ? undefined : listed(given.judgeModel),
        }),
      );
      say(`organisation ${changed.name} changed; a service that runs takes it up within 30 seconds`);
      print(given.json ? JSON.stringify(changed) : changed.id);
    });
  org
    .command("setup-link <name>")
    .description("make the address at which an organisation without people gets its first owner; it goes to stdout")
    .addHelpText("after", '\nExample:\n  evald org setup-link "Acme"')
    .action((name: string) => {
      const { path, at } = withData(configOf(), ({ orgs, people, deps }) => ({
        path: people.setupPath(orgs.getOrgByName(name).id),
        at: deps.baseUrl(),
      }));
      say("good once, for three days; whoever opens it can become the owner");
      print(at + path);
    });
  org
    .command("list")
    .description("list the organisations")
    .option("--json", "print them as JSON")
    .addHelpText("after", "\nExample:\n  evald org list")
    .action(({ json }: { json?: boolean }) => {
      const all = withData(configOf(), ({ orgs, money }) =>
        orgs.listOrgs().map((one) => ({ ...one, spentUsd: money.getSpending(one.id).spentUsd })),
      );
      const rows = all.map(({ id, name, timeZone, spentUsd, maxUsdAMonth }) => {
        const spent = `$${spentUsd.toFixed(2)}${maxUsdAMonth === null ? "" : ` of $${maxUsdAMonth}`}`;
        return [id, name, timeZone, spent];
      });
      print(json ? JSON.stringify(all) : table([["ID", "NAME", "TIME ZONE", "SPENT THIS MONTH"], ...rows]));
    });
}

function toLimit(option: string, text: string | undefined): number | null | undefined {
  if (text === undefined) return undefined;
  if (!/^\d{1,9}$/.test(text))
    throw badRequest(
      `${option}: ${JSON.stringify(text)} is no limit; use a whole number, or 0 for the configuration's`,
    );
  return Number(text) || null;
}

function toUsd(option: string, text: string | undefined): number | null | undefined {
  if (text === undefined) return undefined;
  if (!/^\d{1,7}(\.\d{1,6})?$/.test(text))
    throw badRequest(`${option}: ${JSON.stringify(text)} is no amount; use USD, as in 50 or 0.5, or 0 for none`);
  return Number(text) || null;
}

function listed(text: string): string[] | null {
  const items = text.split(",").map((item) => item.trim());
  return text.trim() === "" ? null : items;
}
