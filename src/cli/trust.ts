import { type Command, Option } from "commander";
import { ciProviders } from "../db/tables/keys.ts";
import { type Scope, scopes } from "../http/operation.ts";
import { defaultMinutes, maxMinutes, type TrustInput } from "../trusts/schema.ts";
import { addPlace, type Place, type UseApi } from "./connection.ts";
import { print, say, sayRest, table, wholeNumber } from "./terminal.ts";

type AddOptions = Place &
  Pick<TrustInput, "issuer" | "provider" | "minutes"> & {
    ref?: string;
    repositoryId?: string;
    environment?: string;
    scopes?: string;
    json?: boolean;
  };

/** Adds `trust add`, `trust list` and `trust remove`. */
export function addTrust(program: Command, useApi: UseApi): void {
  const trust = program.command("trust").description("Manage the CI jobs that get API keys for their ID tokens");
  const add = trust
    .command("add <repository>")
    .description("Trust the CI jobs of a repository, such as acme/docs, and print the ID of the trust to stdout")
    .addOption(new Option("--provider <provider>", "CI provider").choices(ciProviders).default("github"))
    .option("--issuer <url>", "Issuer of the ID tokens, for a self-hosted GitHub or GitLab server")
    .option("--ref <ref>", "Only jobs on this ref, such as refs/heads/main or refs/pull/*; on GitLab, such as main")
    .option("--repository-id <id>", "ID of the repository (default: that of the first job that gets a key)")
    .option("--environment <name>", "Only jobs that deploy to this environment")
    .option("--scopes <scopes>", `Comma-separated scopes of the keys: ${scopes.join(",")} (default: read,run)`)
    .option("--minutes <n>", "Minutes until a key expires", wholeNumber(1, maxMinutes), defaultMinutes)
    .option("--json", "Print the trust as JSON");
  addPlace(add)
    .addHelpText("after", "\nExample:\n  evald trust add acme/docs --ref 'refs/pull/*'")
    .action(
      async (repository: string, { org, url, json, scopes: held, ...given }: AddOptions) =>
        await useApi({ org, url }, async (api) => {
          const wanted = held?.split(",").map((scope) => scope.trim() as Scope);
          const made = await api.createTrust({ repository, ...given, scopes: wanted });
          say(`Jobs of ${made.repository} can now get API keys for ID tokens of the audience ${api.base}.`);
          print(json ? JSON.stringify(made) : made.id);
        }),
    );
  const list = trust
    .command("list")
    .description("List trusted CI jobs, newest first")
    .option("--json", "Print the list as JSON");
  addPlace(list)
    .addHelpText("after", "\nExample:\n  evald trust list --org Acme")
    .action(
      async ({ json, ...place }: Place & { json?: boolean }) =>
        await useApi(place, async (api) => {
          const found = await api.listTrusts();
          const rows = found.items.map((t) => [
            ...[t.id, t.provider, t.repository, t.repositoryId ?? "", t.ref ?? "any", t.environment ?? "any"],
            t.scopes.join(","),
          ]);
          const heads = ["ID", "PROVIDER", "REPOSITORY", "REPOSITORY ID", "REF", "ENVIRONMENT", "SCOPES"];
          print(json ? JSON.stringify(found.items) : table([heads, ...rows]));
          sayRest(found);
        }),
    );
  const remove = trust
    .command("remove <id>")
    .description("Remove a trust and revoke its API keys")
    .option("--json", "Print the trust as JSON");
  addPlace(remove)
    .addHelpText("after", "\nExample:\n  evald trust remove 0199f3a1-6a10-7f3e-8d02-4b5c6d7e8f90")
    .action(
      async (id: string, { json, ...place }: Place & { json?: boolean }) =>
        await useApi(place, async (api) => {
          const removed = await api.deleteTrust(id);
          say(`Removed the trust of ${removed.repository}.`);
          print(json ? JSON.stringify(removed) : removed.id);
        }),
    );
}
