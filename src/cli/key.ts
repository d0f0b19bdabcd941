import type { Command } from "commander";
import { scopes } from "../api.ts";
import type { Config } from "../config.ts";
import { orgOf, print, say, table, wholeNumber, withData } from "./terminal.ts";

type CreateOptions = { org?: string; name: string; expiresDays?: number; scopes?: string };

const dayMs = 24 * 3600_000;

/** Adds `key create`, `key list` and `key revoke`. */
export function addKey(program: Command, configOf: () => Config): void {
  const key = program.command("key").description("API keys of an organisation");
  key
    .command("create")
    .description("make a key; it is printed once, alone on stdout")
    .requiredOption("--name <name>", "what it is for")
    .option("--org <name>", "organisation (needed where there are several)")
    .option("--expires-days <days>", "days after which it is refused", wholeNumber(1, 3650))
    .option("--scopes <scopes>", `what it may do, of ${scopes.join(",")} (default: everything)`)
    .addHelpText("after", "\nExample:\n  EVALD_KEY=$(evald key create --org Acme --name ci --scopes read,run)")
    .action(({ org, name, expiresDays, scopes: held }: CreateOptions) => {
      const made = withData(configOf(), (service) => {
        return service.keys.createKey(orgOf(service, org), name, {
          lifeMs: expiresDays === undefined ? null : expiresDays * dayMs,
          scopes: held?.split(",").map((scope) => scope.trim()) ?? null,
        });
      });
      say(`key ${made.apiKey.display} made; keep it now: it cannot be shown again`);
      print(made.key);
    });
  key
    .command("list")
    .description("list the keys, newest first; never the keys themselves")
    .option("--org <name>", "organisation")
    .option("--json", "print them as JSON")
    .addHelpText("after", "\nExample:\n  evald key list --org Acme")
    .action(({ org, json }: { org?: string; json?: boolean }) => {
      const all = withData(configOf(), (service) => service.keys.listKeys(orgOf(service, org)));
      const rows = all.map((k) => [
        k.id,
        k.display,
        k.name,
        k.scopes?.join(",") ?? "all",
        k.lastUsedAt ?? "never used",
        k.revokedAt ? "revoked" : k.expiresAt ? `until ${k.expiresAt}` : "no end",
      ]);
      print(json ? JSON.stringify(all) : table([["ID", "KEY", "NAME", "SCOPES", "LAST USE", "VALID"], ...rows]));
    });
  key
    .command("revoke <id>")
    .description("refuse a key from its next request on")
    .option("--org <name>", "organisation")
    .addHelpText("after", "\nExample:\n  evald key revoke 0199f3a0-9c44-7f52-8d13-7be1a6c09e25 --org Acme")
    .action((id: string, { org }: { org?: string }) => {
      const revoked = withData(configOf(), (service) => service.keys.revokeKey(orgOf(service, org), id));
      say(`key ${revoked.display} is revoked`);
      print(revoked.id);
    });
}
