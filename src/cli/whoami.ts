import type { Command } from "commander";
import { type ApiOptions, addApiOptions, type UseApi } from "./connection.ts";
import { print, table, toJson } from "./terminal.ts";

/** Adds `whoami`: shows which service, organization and API key commands use. */
export function addWhoami(program: Command, useApi: UseApi): void {
  addApiOptions(
    program.command("whoami").description("Show the service, organization and API key that commands use"),
    "Print the organization and the key as JSON",
    "whoami",
  ).action(({ json, ...address }: ApiOptions) =>
    useApi(address, async (api) => {
      const caller = await api.request("GET /whoami");
      const { organization, key } = caller;
      const rows = [
        ["Service", api.isLocal ? `${api.base} (data directory)` : api.base],
        ["Organization", organization.name],
        ["Time zone", organization.timeZone],
        ["API key", api.isLocal ? "not needed" : key.name],
        ["Scopes", key.scopes?.join(", ") ?? "all"],
      ];
      print(json ? toJson(caller, 2) : table(rows));
    }),
  );
}
