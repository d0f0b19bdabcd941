import { Argument, type Command } from "commander";
import { getOrg } from "../auth/orgs.ts";
import type { Config } from "../config/config.ts";
import { type ModelProvider, modelProviders } from "../config/model-settings.ts";
import { badRequest } from "../errors.ts";
import { getModel, listModels, removeModelKey, setModelKey } from "../models/models.ts";
import { describeTrial, tryModel } from "../models/trial.ts";
import { withData } from "./data-directory.ts";
import { orgOf, print, say, table, toJson } from "./terminal.ts";

type ModelOptions = { org?: string; json?: boolean; baseUrl?: string };

/** Adds `model list`, `model set-key`, `model remove-key` and `model test`. */
export function addModel(program: Command, configOf: () => Config): void {
  const model = program.command("model").description("Manage model providers and their API keys");
  const provider = () => new Argument("<provider>", "Model provider").choices(modelProviders);
  model
    .command("list")
    .description("List model providers and where their API keys come from")
    .option("--org <name>", "Organization (required if there are several)")
    .option("--json", "Print the list as JSON")
    .addHelpText("after", "\nExample:\n  evald model list --org Acme")
    .action(({ org, json }: ModelOptions) => {
      const config = configOf();
      const { all, judgeModels } = withData(config, (service) => {
        const orgId = orgOf(service, org);
        return { all: listModels(service.ctx, orgId), judgeModels: getOrg(service.ctx, orgId).judgeModels };
      });
      say(`Agent model: ${config.agentModel ?? "none, unless a prompt sets one"} (EVALD_AGENT_MODEL)`);
      const setBy = judgeModels ? "organization setting" : "EVALD_JUDGE_MODEL";
      say(`Judge model: ${(judgeModels ?? config.judgeModels).join(", ") || "none"} (${setBy})`);
      const rows = all.map((each) => [each.provider, each.source, each.key, each.baseUrl ?? ""]);
      print(json ? toJson(all) : table([["PROVIDER", "SOURCE", "KEY", "BASE URL"], ...rows]));
    });
  model
    .command("set-key")
    .addArgument(provider())
    .description("Store an organization's API key for a provider, encrypted; reads the key from stdin")
    .option("--org <name>", "Organization (required if there are several)")
    .option("--base-url <url>", "Base URL of the provider (default: its public API)")
    .option("--json", "Print the provider as JSON")
    .addHelpText("after", '\nExample:\n  echo "$KEY" | evald model set-key anthropic --org Acme')
    .action(async (name: ModelProvider, { org, baseUrl, json }: ModelOptions) => {
      const config = configOf();
      if (process.stdin.isTTY) say("Paste the key, press Enter, then Ctrl-D.");
      const key = await Bun.stdin.text();
      const stored = withData(config, (service) => setModelKey(service.ctx, orgOf(service, org), name, key, baseUrl));
      say(`Stored the API key for ${name} (${stored.key}). It is sent to ${stored.baseUrl}.`);
      print(json ? toJson(stored) : name);
    });
  model
    .command("remove-key")
    .addArgument(provider())
    .description("Remove an organization's API key for a provider")
    .option("--org <name>", "Organization (required if there are several)")
    .option("--json", "Print the provider as JSON")
    .addHelpText("after", "\nExample:\n  evald model remove-key anthropic --org Acme")
    .action((name: ModelProvider, { org, json }: ModelOptions) => {
      withData(configOf(), (service) => removeModelKey(service.ctx, orgOf(service, org), name));
      say(`Removed the API key for ${name}.`);
      print(json ? toJson({ provider: name }) : name);
    });
  model
    .command("test [model]")
    .description("Send a small test request to a model and show its latency and cost")
    .option("--org <name>", "Organization (required if there are several)")
    .option("--json", "Print the result as JSON")
    .addHelpText("after", "\nExample:\n  evald model test anthropic/claude-opus-4-8")
    .action(async (model: string | undefined, { org, json }: ModelOptions) => {
      const config = configOf();
      const id = model ?? config.agentModel;
      if (!id)
        throw badRequest(
          "No model given. Pass one, such as evald model test anthropic/claude-opus-4-8, or set EVALD_AGENT_MODEL.",
        );
      const trial = await tryModel(
        withData(config, (service) => getModel(service.ctx, orgOf(service, org), id)),
        Date.now,
      );
      say(`${describeTrial(trial)}.`);
      print(json ? toJson(trial) : id);
    });
}
