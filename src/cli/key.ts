import type { Command } from "commander";
import { keyCreatorLabel } from "../auth/key-labels.ts";
import { createKey, listKeys, revokeKey, revokeKeysOfFormerMembers } from "../auth/keys.ts";
import type { Config } from "../config/config.ts";
import { badRequest } from "../errors.ts";
import { count } from "../grading/text.ts";
import { keyScopes } from "../http/operation.ts";
import { withData } from "./data-directory.ts";
import { orgOf, print, say, table, toJson, wholeNumber } from "./terminal.ts";

type NewKey = {
  org?: string;
  name: string;
  expiresDays?: number;
  scopes?: string;
  compatible?: boolean;
  json?: boolean;
};

const dayMs = 24 * 3600_000;

/** Adds `key create`, `key list` and `key revoke`. */
export function addKey(program: Command, configOf: () => Config): void {
  const key = program.command("key").description("Manage API keys");
  key
    .command("create")
    .description("Create an API key and print it to stdout; it is shown only once")
    .requiredOption("--name <name>", "Name of the key")
    .option("--org <name>", "Organization (required if there are several)")
    .option("--expires-days <days>", "Days until the key expires (default: never)", wholeNumber(1, 3650))
    .option(
      "--scopes <scopes>",
      `Comma-separated scopes: ${keyScopes.join(", ")} (default: all except operate and audit)`,
    )
    .option(
      "--compatible",
      "For CI clients that were not written for evald: runs supersede by default, errors are readable",
    )
    .option("--json", "Print the key with its details as JSON")
    .addHelpText("after", "\nExample:\n  EVALD_KEY=$(evald key create --org Acme --name ci --scopes read,run)")
    .action(({ org, name, expiresDays, scopes: scopeList, compatible, json }: NewKey) => {
      const created = withData(configOf(), (service) => {
        return createKey(service.ctx, orgOf(service, org), name, {
          lifeMs: expiresDays === undefined ? null : expiresDays * dayMs,
          scopes: scopeList?.split(",").map((scope) => scope.trim()) ?? null,
          usesCompatibilityMode: compatible,
        });
      });
      say(`Created API key ${created.apiKey.display}. Copy it now: it will not be shown again.`);
      print(json ? toJson({ key: created.key, ...created.apiKey }) : created.key);
    });
  key
    .command("list")
    .description("List API keys, newest first, without their secrets")
    .option("--org <name>", "Organization (required if there are several)")
    .option("--created-by <person>", "Only keys that this person created, by name or ID")
    .option("--json", "Print the list as JSON")
    .addHelpText("after", "\nExample:\n  evald key list --org Acme")
    .action(({ org, createdBy: person, json }: { org?: string; createdBy?: string; json?: boolean }) => {
      const all = withData(configOf(), (service) => listKeys(service.ctx, orgOf(service, org))).filter(
        ({ createdBy }) => person === undefined || createdBy?.id === person || createdBy?.name === person,
      );
      const rows = all.map((apiKey) => [
        apiKey.id,
        apiKey.display,
        apiKey.name,
        apiKey.scopes?.join(",") ?? "all except operate,audit",
        keyCreatorLabel(apiKey),
        apiKey.lastUsedAt ?? "never",
        apiKey.revokedAt ? "revoked" : (apiKey.expiresAt ?? "never"),
      ]);
      print(
        json ? toJson(all) : table([["ID", "KEY", "NAME", "SCOPES", "CREATED BY", "LAST USED", "EXPIRES"], ...rows]),
      );
    });
  key
    .command("revoke [id]")
    .description("Revoke an API key, or those of everyone who left")
    .option("--former", "All keys of people who left the organization")
    .option("--org <name>", "Organization (required if there are several)")
    .option("--json", "Print the key as JSON")
    .addHelpText(
      "after",
      "\nExamples:\n  evald key revoke 0199f3a0-9c44-7f52-8d13-7be1a6c09e25\n  evald key revoke --former",
    )
    .action((id: string | undefined, { org, former, json }: { org?: string; former?: boolean; json?: boolean }) => {
      if ((id === undefined) === (former === undefined)) throw badRequest("Pass either the ID of a key or --former.");
      if (id === undefined) {
        const all = withData(configOf(), (service) => revokeKeysOfFormerMembers(service.ctx, orgOf(service, org)));
        say(`Revoked ${count(all.length, "API key")}.`);
        return print(json ? toJson(all) : all.map((each) => each.id).join("\n"));
      }
      const revoked = withData(configOf(), (service) => revokeKey(service.ctx, orgOf(service, org), id));
      say(`Revoked API key ${revoked.display}.`);
      print(json ? toJson(revoked) : revoked.id);
    });
}
