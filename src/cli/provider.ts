import type { Command } from "commander";
import { type ApiOptions, addApiOptions, type UseApi } from "./connection.ts";
import { print, say, sayRest, table, toJson, wholeNumber } from "./terminal.ts";

/** Adds `provider create` and `provider list`. */
export function addProvider(program: Command, useApi: UseApi): void {
  const provider = program.command("provider").description("Manage providers: the developer tools under test");
  addApiOptions(
    provider
      .command("create")
      .description("Create a provider and print its ID to stdout")
      .requiredOption("--name <name>", "Name of the provider")
      .option("--docs-url <url>", "URL of its docs")
      .option("--product-url <url>", "Base URL of its product or API"),
    "Print the provider as JSON",
    "provider create --name Acme --docs-url https://docs.acme.example",
  ).action(({ org, url, json, ...input }: ApiOptions & { name: string; docsUrl?: string; productUrl?: string }) =>
    useApi({ org, url }, async (api) => {
      const created = await api.request("POST /providers", { body: input });
      say(`Created provider ${created.name}.`);
      print(json ? toJson(created) : created.id);
    }),
  );
  addApiOptions(
    provider
      .command("list")
      .description("List providers, newest first")
      .option("--limit <n>", "Maximum number of providers to list", wholeNumber(1, 1000), 100),
    "Print the list as JSON",
    "provider list --org Acme",
  ).action(({ limit, json, ...address }: ApiOptions & { limit: number }) =>
    useApi(address, async (api) => {
      const providers = await api.list("GET /providers", { query: { limit } });
      const rows = providers.items.map((p) => [p.id, p.name, p.docsUrl ?? "", p.productUrl ?? ""]);
      print(json ? toJson(providers.items) : table([["ID", "NAME", "DOCS", "PRODUCT"], ...rows]));
      sayRest(providers);
    }),
  );
}
