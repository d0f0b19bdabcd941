import type { Command } from "commander";
import type { Config } from "../config.ts";
import { print, say, table, withData } from "./terminal.ts";

/** Adds `org create` and `org list`. */
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
