import type { Command } from "commander";
import type { Config } from "../config.ts";
import { badRequest } from "../errors.ts";
import { print, say, table, withData } from "./terminal.ts";

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
    .option("--json", "print the organisation as JSON")
    .addHelpText("after", '\nExample:\n  evald org set "Acme" --time-zone America/New_York --runs-a-day 200')
    .action(
      (
        name: string,
        given: { name?: string; timeZone?: string; runsAtOnce?: string; runsADay?: string; json?: boolean },
      ) => {
        const changed = withData(configOf(), ({ orgs }) =>
          orgs.updateOrg(orgs.getOrgByName(name).id, {
            name: given.name,
            timeZone: given.timeZone,
            maxRunsAtOnce: toLimit("--runs-at-once", given.runsAtOnce),
            maxRunsADay: toLimit("--runs-a-day", given.runsADay),
          }),
        );
        say(`organisation ${changed.name} changed; a service that runs takes it up within 30 seconds`);
        print(given.json ? JSON.stringify(changed) : changed.id);
      },
    );
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
      const all = withData(configOf(), ({ orgs }) => orgs.listOrgs());
      print(
        json
          ? JSON.stringify(all)
          : table([["ID", "NAME", "TIME ZONE"], ...all.map((o) => [o.id, o.name, o.timeZone])]),
      );
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
