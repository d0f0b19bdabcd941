import type { Command } from "commander";
import type { Config } from "../config.ts";
import { orgOf, print, say, table, withData } from "./terminal.ts";

type CreateOptions = { org?: string; name: string; docsUrl?: string; productUrl?: string; json?: boolean };

/** Adds `provider create` and `provider list`. */
export function addProvider(program: Command, configOf: () => Config): void {
  const provider = program
    .command("provider")
    .description("developer tools under evaluation: where their docs and product are");
  provider
    .command("create")
    .description("add a developer tool; its id goes to stdout")
    .requiredOption("--name <name>", "its name")
    .option("--docs-url <url>", "where its documentation starts")
    .option("--product-url <url>", "where the product answers")
    .option("--org <name>", "organisation (needed where there are several)")
    .option("--json", "print the provider as JSON")
    .addHelpText("after", "\nExample:\n  evald provider create --name Acme --docs-url https://docs.acme.example")
    .action(({ org, json, ...input }: CreateOptions) => {
      const made = withData(configOf(), (service) => service.providers.createProvider(orgOf(service, org), input));
      say(`provider ${made.name} made`);
      print(json ? JSON.stringify(made) : made.id);
    });
  provider
    .command("list")
    .description("list the developer tools, newest first")
    .option("--org <name>", "organisation")
    .option("--json", "print them as JSON")
    .addHelpText("after", "\nExample:\n  evald provider list --org Acme")
    .action(({ org, json }: { org?: string; json?: boolean }) => {
      const all = withData(configOf(), (service) => service.providers.listProviders(orgOf(service, org)));
      const rows = all.map((p) => [p.id, p.name, p.docsUrl ?? "", p.productUrl ?? ""]);
      print(json ? JSON.stringify(all) : table([["ID", "NAME", "DOCS", "PRODUCT"], ...rows]));
    });
}
