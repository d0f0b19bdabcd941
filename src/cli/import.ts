import type { Command } from "commander";
import type { Config } from "../config/config.ts";
import { importFile } from "../exchange/import.ts";
import { count } from "../grading/text.ts";
import { orgOf, print, say, toJson, withData } from "./terminal.ts";

type Options = { org?: string; check?: boolean; json?: boolean };

/** Adds `import`: adds the data of an export to an organization. */
export function addImport(program: Command, configOf: () => Config): void {
  program
    .command("import <file>")
    .description("Import an evald export; imported prompts are not run")
    .option("--org <name>", "Organization (required if there are several)")
    .option("--check", "Validate the file and show what would be imported")
    .option("--json", "Print the result as JSON")
    .addHelpText("after", "\nExample:\n  evald import acme.jsonl --org Acme")
    .action((file: string, { org, check = false, json }: Options) => {
      const result = withData(configOf(), (service) => importFile(service.ctx, orgOf(service, org), file, { check }));
      const { run = 0, report = 0, prompt = 0 } = result.rows;
      const verb = check ? "Would import" : "Imported";
      say(
        `${verb} ${count(prompt, "prompt")}, ${count(run, "run")} and ${count(report, "report")}; skipped ${count(result.there, "existing row")}.`,
      );
      if (result.scheduled > 0)
        say(`Active schedules of imported prompts: ${result.scheduled}. Pause those that must not run twice.`);
      print(json ? toJson(result) : String(run));
    });
}
