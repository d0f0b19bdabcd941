import { type Command, Option } from "commander";
import { ciProviders } from "../db/tables/keys.ts";
import { type Scope, scopes } from "../http/operation.ts";
import { defaultMinutes, maxMinutes, type TrustInput } from "../trusts/schema.ts";
import { type ApiOptions, addApiOptions, type ServiceAddress, type UseApi } from "./connection.ts";
import { print, say, sayRest, table, toJson, wholeNumber } from "./terminal.ts";

type AddOptions = ServiceAddress &
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
  addApiOptions(
    trust
      .command("add <repository>")
      .description("Trust the CI jobs of a repository, such as acme/docs, and print the ID of the trust to stdout")
      .addOption(new Option("--provider <provider>", "CI provider").choices(ciProviders).default("github"))
      .option("--issuer <url>", "Issuer of the ID tokens, for a self-hosted GitHub or GitLab server")
      .option(
        "--ref <ref>",
        "Only jobs on this ref, such as refs/heads/main or refs/pull/*; on GitLab, such as main or refs/tags/v*",
      )
      .option("--repository-id <id>", "ID of the repository (default: that of the first job that gets a key)")
      .option("--environment <name>", "Only jobs that deploy to this environment")
      .option("--scopes <scopes>", `Comma-separated scopes of the keys: ${scopes.join(",")} (default: read,run)`)
      .option("--minutes <n>", "Minutes until a key expires", wholeNumber(1, maxMinutes), defaultMinutes),
    "Print the trust as JSON",
    "trust add acme/docs --ref 'refs/pull/*'",
  ).action((repository: string, { org, url, json, scopes: scopeList, ...conditions }: AddOptions) =>
    useApi({ org, url }, async (api) => {
      const keyScopes = scopeList?.split(",").map((scope) => scope.trim() as Scope);
      const body = { repository, ...conditions, scopes: keyScopes };
      const created = await api.request("POST /oidc/trusts", { body });
      say(`Jobs of ${created.repository} can now get API keys for ID tokens of the audience ${api.base}.`);
      print(json ? toJson(created) : created.id);
    }),
  );
  addApiOptions(
    trust.command("list").description("List trusted CI jobs, newest first"),
    "Print the list as JSON",
    "trust list --org Acme",
  ).action(({ json, ...address }: ApiOptions) =>
    useApi(address, async (api) => {
      const trusts = await api.list("GET /oidc/trusts");
      const rows = trusts.items.map(({ id, provider, repository, repositoryId, ref, environment, scopes }) => [
        id,
        provider,
        repository,
        repositoryId ?? "",
        ref ?? "any",
        environment ?? "any",
        scopes.join(","),
      ]);
      const heads = ["ID", "PROVIDER", "REPOSITORY", "REPOSITORY ID", "REF", "ENVIRONMENT", "SCOPES"];
      print(json ? toJson(trusts.items) : table([heads, ...rows]));
      sayRest(trusts);
    }),
  );
  addApiOptions(
    trust.command("remove <id>").description("Remove a trust and revoke its API keys"),
    "Print the trust as JSON",
    "trust remove 0199f3a1-6a10-7f3e-8d02-4b5c6d7e8f90",
  ).action((id: string, { json, ...address }: ApiOptions) =>
    useApi(address, async (api) => {
      const removed = await api.request("DELETE /oidc/trusts/{trustId}", { path: { trustId: id } });
      say(`Removed the trust of ${removed.repository}.`);
      print(json ? toJson(removed) : removed.id);
    }),
  );
}
