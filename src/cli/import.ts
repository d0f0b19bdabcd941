import type { Command } from "commander";
import type { Config } from "../config.ts";
import { orgOf, print, say, withData } from "./terminal.ts";

type Options = { org?: string; check?: boolean; json?: boolean };

/** Adds `import`: the file of an export becomes part of an organisation. */
export function addImport(program: Command, configOf: () => Config): void {
  program
    .command("import <file>")
    .description("take what evald export wrote into an organisation; nothing in it is run")
    .option("--org <name>", "organisation (needed where there are several)")
    .option("--check", "only say whether the file is sound and what would be imported")
    .option("--json", "print what was imported as JSON")
    .addHelpText("after", "\nExample:\n  evald import acme.jsonl --org Acme")
    .action((file: string, { org, check = false, json }: Options) => {
      const made = withData(configOf(), (service) => service.imports.importFile(orgOf(service, org), file, { check }));
      const { run = 0, report = 0, prompt = 0 } = made.rows;
      const verb = check ? "would be imported" : "imported";
      say(
        `${prompt} prompts, ${run} runs and ${report} reports ${verb}; ${made.there} rows were there already and stay`,
      );
      if (made.scheduled > 0)
        say(
          `${made.scheduled} of the prompts have a schedule, which goes on here; pause those that should not run twice`,
        );
      print(json ? JSON.stringify(made) : String(run));
    });
}
