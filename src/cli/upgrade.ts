import type { Command } from "commander";
import { version } from "../../package.json" with { type: "json" };
import { findInstallation } from "./installation.ts";
import { print, say, toJson } from "./terminal.ts";

/** Adds `upgrade`, which prints the command that upgrades this installation. It changes nothing itself. */
export function addUpgrade(program: Command): void {
  program
    .command("upgrade")
    .description("Print the command that upgrades evald, for the way it was installed; changes nothing")
    .option("--json", "Print the command as JSON")
    .addHelpText("after", "\nExample:\n  evald upgrade")
    .action(({ json }: { json?: boolean }) => {
      const { method, command, hint } = findInstallation();
      if (json) return print(toJson({ version, installedWith: method, command, hint }, 2));
      if (command !== null) return print(command);
      say(hint ?? "");
    });
}
