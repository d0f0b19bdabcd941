import type { Command } from "commander";
import type { Config } from "../config/config.ts";
import { importFile } from "../exchange/import.ts";
import { count } from "../grading/text.ts";
import { withData } from "./data-directory.ts";
import { orgOf, print, say, toJson } from "./terminal.ts";

type ImportOptions = { org?: string; check?: boolean; paused?: boolean; json?: boolean };

/** Adds `import`, which adds the data of an export to an organization. */
export function addImport(program: Command, configOf: () => Config): void {
  program
    .command("import <file>")
    .description("Import an evald export; imported prompts are not run")
    .option("--org <name>", "Organization (required if there are several)")
    .option("--check", "Validate the file and show what would be imported")
    .option("--paused", "Pause the imported prompts that have a schedule")
    .option("--json", "Print the result as JSON")
    .addHelpText("after", "\nExample:\n  evald import acme.jsonl --org Acme")
    .action((file: string, { org, check = false, paused: isPaused = false, json }: ImportOptions) => {
      const result = withData(configOf(), (service) =>
        importFile(service.ctx, orgOf(service, org), file, { check, isPaused }),
      );
      const { run = 0, report = 0, prompt = 0 } = result.rows;
      const verb = check ? "Would import" : "Imported";
      say(
        `${verb} ${count(prompt, "prompt")}, ${count(run, "run")} and ${count(report, "report")}; skipped ${count(result.there, "existing row")}.`,
      );
      if (result.scheduled > 0)
        say(
          `Schedules that ${check ? "would run" : "run"} on this instance: ${result.scheduled}. ${check ? "Import them paused with --paused." : "Pause prompts that must not run twice."}`,
        );
      if (result.paused > 0) say(`Schedules ${check ? "to import" : "imported"} as paused: ${result.paused}.`);
      if (result.keptSettings.length > 0)
        say(
          `The organization has prompts, so it keeps its settings. These are others in the file: ${result.keptSettings.join(", ")}.`,
        );
      if (result.omitted.length > 0) say(`Not in the file: ${result.omitted.join(", ")}.`);
      print(json ? toJson(result) : String(run));
    });
}
