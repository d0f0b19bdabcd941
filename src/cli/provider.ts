import type { Command } from "commander";
import type { Config } from "../config/config.ts";
import { orgOf, print, say, table, withData } from "./terminal.ts";

type CreateOptions = { org?: string; name: string; docsUrl?: string; productUrl?: string; json?: boolean };

/** Adds `provider create` and `provider list`. */
export function addProvider(program: Command, configOf: () => Config): void {
  const provider = program.command("provider").description("Manage providers: the developer tools under test");
  provider
    .command("create")
    .description("Create a provider and print its ID to stdout")
    .requiredOption("--name <name>", "Name of the provider")
    .option("--docs-url <url>", "URL of its docs")
    .option("--product-url <url>", "Base URL of its product or API")
    .option("--org <name>", "Organization (required if there are several)")
    .option("--json", "Print the provider as JSON")
    .addHelpText("after", "\nExample:\n  evald provider create --name Acme --docs-url https://docs.acme.example")
    .action(({ org, json, ...input }: CreateOptions) => {
      const made = withData(configOf(), (service) => service.providers.createProvider(orgOf(service, org), input));
      say(`Created provider ${made.name}.`);
      print(json ? JSON.stringify(made) : made.id);
    });
  provider
    .command("list")
    .description("List providers, newest first")
    .option("--org <name>", "Organization (required if there are several)")
    .option("--json", "Print the list as JSON")
    .addHelpText("after", "\nExample:\n  evald provider list --org Acme")
    .action(({ org, json }: { org?: string; json?: boolean }) => {
      const all = withData(configOf(), (service) => service.providers.listProviders(orgOf(service, org)));
      const rows = all.map((p) => [p.id, p.name, p.docsUrl ?? "", p.productUrl ?? ""]);
      print(json ? JSON.stringify(all) : table([["ID", "NAME", "DOCS", "PRODUCT"], ...rows]));
    });
}
