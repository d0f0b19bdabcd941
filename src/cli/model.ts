import { Argument, type Command } from "commander";
import type { Config } from "../config.ts";
import { badRequest } from "../errors.ts";
import { trialWords, tryModel } from "../models/trial.ts";
import { type ModelProvider, modelProviders } from "../modelsettings.ts";
import { orgOf, print, say, table, withData } from "./terminal.ts";

type Options = { org?: string; json?: boolean; baseUrl?: string };

/** Adds `model list`, `model set-key`, `model remove-key` and `model test`. */
export function addModel(program: Command, configOf: () => Config): void {
  const model = program.command("model").description("models that agents may use, and the keys for them");
  const provider = () => new Argument("<provider>", "who serves the model").choices(modelProviders);
  model
    .command("list")
    .description("list the providers, with where their keys come from; never the keys themselves")
    .option("--org <name>", "organisation (needed where there are several)")
    .option("--json", "print them as JSON")
    .addHelpText("after", "\nExample:\n  evald model list --org Acme")
    .action(({ org, json }: Options) => {
      const config = configOf();
      const { all, judges } = withData(config, (service) => {
        const own = orgOf(service, org);
        const ofOrg = service.orgs.getOrg(own).judgeModels;
        return { all: service.models.listModels(own), judges: { models: ofOrg ?? config.judgeModels, ofOrg } };
      });
      say(`agents use ${config.agentModel ?? "no model unless a prompt names one"} (EVALD_AGENT_MODEL)`);
      const setBy = judges.ofOrg ? "the organisation's own" : "EVALD_JUDGE_MODEL";
      say(`sessions are judged by ${judges.models.join(" or ") || "no model"} (${setBy})`);
      const rows = all.map((each) => [each.provider, each.source, each.key, each.baseUrl ?? ""]);
      print(json ? JSON.stringify(all) : table([["PROVIDER", "SOURCE", "KEY", "BASE URL"], ...rows]));
    });
  model
    .command("set-key")
    .addArgument(provider())
    .description("store a key of an organisation's own, encrypted; the key is read from stdin")
    .option("--org <name>", "organisation")
    .option("--base-url <url>", "where the provider answers, if not at its usual address")
    .addHelpText("after", '\nExample:\n  echo "$KEY" | evald model set-key anthropic --org Acme')
    .action(async (name: ModelProvider, { org, baseUrl }: Options) => {
      const config = configOf();
      if (process.stdin.isTTY) say("paste the key, press Enter, then Ctrl-D");
      const key = await Bun.stdin.text();
      const set = withData(config, (service) => service.models.setKey(orgOf(service, org), name, key, baseUrl));
      say(`the key for ${name} (${set.key}) is stored; it goes to ${set.baseUrl}`);
      print(name);
    });
  model
    .command("remove-key")
    .addArgument(provider())
    .description("forget a key of an organisation's own")
    .option("--org <name>", "organisation")
    .addHelpText("after", "\nExample:\n  evald model remove-key anthropic --org Acme")
    .action((name: ModelProvider, { org }: Options) => {
      withData(configOf(), (service) => service.models.removeKey(orgOf(service, org), name));
      say(`the key for ${name} is forgotten`);
      print(name);
    });
  model
    .command("test [model]")
    .description("make one small call of a model, and say how long it took and what it cost")
    .option("--org <name>", "organisation")
    .option("--json", "print the figures as JSON")
    .addHelpText("after", "\nExample:\n  evald model test anthropic/claude-opus-4-8")
    .action(async (named: string | undefined, { org, json }: Options) => {
      const config = configOf();
      const id = named ?? config.agentModel;
      if (!id)
        throw badRequest("name a model, as in evald model test anthropic/claude-opus-4-8, or set EVALD_AGENT_MODEL");
      const figures = await tryModel(
        withData(config, (service) => service.models.getModel(orgOf(service, org), id)),
        Date.now,
      );
      say(trialWords(figures));
      print(json ? JSON.stringify(figures) : id);
    });
}
