import { type Command, Option } from "commander";
import { type ApiOptions, addApiOptions, type UseApi } from "./connection.ts";
import { print, say, sayRest, table, toJson } from "./terminal.ts";

type NewSecretOptions = ApiOptions & { host?: string[]; anyHost?: boolean };

/** Adds `secret set`, `secret list` and `secret delete`. */
export function addSecret(program: Command, useApi: UseApi): void {
  const secret = program.command("secret").description("Manage the secrets of success checks");
  addApiOptions(
    secret
      .command("set <name>")
      .description("Store a secret, encrypted, or replace it; reads its value from stdin")
      .option("--host <host...>", "The only hosts that may get it (default: those of the secret that it replaces)")
      .addOption(new Option("--any-host", "Send it to the host of each check that names it").conflicts("host")),
    "Print the secret as JSON, without its value",
    'secret set ACME_TOKEN --host api.acme.example <<< "$ACME_TOKEN"',
  ).action((name: string, { json, host, anyHost, ...address }: NewSecretOptions) =>
    useApi(address, async (api) => {
      if (process.stdin.isTTY) say("Paste the secret, press Enter, then Ctrl-D.");
      const value = (await Bun.stdin.text()).replace(/\r?\n$/, "");
      const stored = await api.request("PUT /secrets/{name}", {
        path: { name },
        body: { value, hosts: anyHost ? null : host },
      });
      say(`Stored the secret ${name}. Refer to it in success checks as {{secret.${name}}}.`);
      print(json ? toJson(stored) : name);
    }),
  );
  addApiOptions(
    secret.command("list").description("List the names of the secrets"),
    "Print the list as JSON",
    "secret list --org Acme",
  ).action(({ json, ...address }: ApiOptions) =>
    useApi(address, async (api) => {
      const secrets = await api.list("GET /secrets");
      const rows = secrets.items.map(({ name, hosts, state, updatedAt }) => [
        name,
        hosts?.join(", ") ?? "any",
        state,
        updatedAt,
      ]);
      print(json ? toJson(secrets.items) : table([["NAME", "HOSTS", "STATE", "STORED"], ...rows]));
      sayRest(secrets);
    }),
  );
  addApiOptions(
    secret.command("delete <name>").description("Delete a secret; checks that refer to it can't run any more"),
    "Print the secret as JSON, without its value",
    "secret delete ACME_TOKEN",
  ).action((name: string, { json, ...address }: ApiOptions) =>
    useApi(address, async (api) => {
      const deleted = await api.request("DELETE /secrets/{name}", { path: { name } });
      say(`Deleted the secret ${name}.`);
      print(json ? toJson(deleted) : name);
    }),
  );
}
