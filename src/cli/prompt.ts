import { Value } from "@sinclair/typebox/value";
import { type Command, InvalidArgumentError } from "commander";
import type { Config } from "../config/config.ts";
import { Limits, limitNames } from "../config/limits.ts";
import { invalidInput } from "../schema.ts";
import { orgOf, print, say, table, wholeNumber, withData } from "./terminal.ts";

type CreateOptions = {
  org?: string;
  text: string;
  title?: string;
  goal?: string;
  provider?: string;
  url?: string[];
  agent?: string;
  model?: string;
  frequency?: string;
  runs?: number;
  limit?: Limits;
  tag?: string[];
  json?: boolean;
};

/** Adds `prompt create`, `prompt list` and `prompt archive`. */
export function addPrompt(program: Command, configOf: () => Config): void {
  const prompt = program.command("prompt").description("Manage prompts: the tasks that agents work on");
  prompt
    .command("create")
    .description("Create a prompt and print its ID to stdout")
    .requiredOption("--text <text>", "Task for the agent; {{name}} is a template variable")
    .option("--title <title>", "Title shown in lists and reports")
    .option("--goal <goal>", "What must be true when the agent is done")
    .option("--provider <id>", "ID of the provider under test; list IDs with evald provider list")
    .option("--url <url>", "Start URL (repeatable)", (url: string, previous: string[]) => [...previous, url], [])
    .option(
      "--tag <tag>",
      "Tag to group prompts by (repeatable)",
      (tag: string, previous: string[]) => [...previous, tag],
      [],
    )
    .option("--agent <id>", "Agent, such as codex; list coding agents with evald agent list")
    .option("--model <id>", "Model of the agent, such as openai/gpt-5")
    .option("--frequency <when>", "Schedule: hourly, daily, weekly, monthly or a five-field cron expression")
    .option("--runs <n>", "Runs per evaluation", wholeNumber(1, 50))
    .option("--limit <name=number>", `Run limit (repeatable): ${limitNames.join(", ")}`, toLimits)
    .option("--org <name>", "Organization (required if there are several)")
    .option("--json", "Print the prompt as JSON")
    .addHelpText(
      "after",
      '\nExample:\n  evald prompt create --title "First query" --url https://docs.acme.example \\\n    --text "Run a query with the CLI." --goal "A query was run and its rows were printed."',
    )
    .action(
      ({ org, text, title, goal, provider, url, agent, model, frequency, runs, limit, tag, json }: CreateOptions) => {
        const made = withData(configOf(), (service) =>
          service.prompts.createPrompt(orgOf(service, org), {
            text,
            title,
            endGoal: goal,
            targetProviderId: provider,
            additionalUrls: url?.map((each) => ({ url: each })) ?? null,
            agent,
            model,
            frequency,
            runsPerEval: runs,
            limits: limit,
            tags: tag,
          }),
        );
        say(`Created prompt ${made.id}. Run it with POST /api/v1/prompts/${made.id}/run and {"urlMap": {}}.`);
        if (made.nextRunsAt) say(`Next scheduled runs: ${made.nextRunsAt.join(", ")}`);
        print(json ? JSON.stringify(made) : made.id);
      },
    );
  prompt
    .command("list")
    .description("List prompts, newest first")
    .option("--org <name>", "Organization (required if there are several)")
    .option("--archived", "Include archived prompts")
    .option("--tag <tag>", "Only prompts with this tag")
    .option("--json", "Print the list as JSON")
    .addHelpText("after", "\nExample:\n  evald prompt list --archived")
    .action(({ org, archived, tag, json }: { org?: string; archived?: boolean; tag?: string; json?: boolean }) => {
      const items = withData(configOf(), (service) => {
        const own = orgOf(service, org);
        const page = { limit: 1000, offset: 0, includeArchived: archived ?? false, tag };
        return service.prompts.listPrompts(own, page).items.map(({ id }) => service.prompts.getPrompt(own, id));
      });
      const rows = items.map((p) => [p.id, p.status, p.title ?? p.text.slice(0, 60), p.nextRunsAt?.[0] ?? ""]);
      print(json ? JSON.stringify(items) : table([["ID", "STATUS", "TITLE", "NEXT RUN"], ...rows]));
    });
  prompt
    .command("baseline <id> [eval-request]")
    .description("Pin an evaluation as the baseline of a prompt; without an evaluation, unpin the baseline")
    .option("--org <name>", "Organization (required if there are several)")
    .addHelpText(
      "after",
      "\nExample:\n  evald prompt baseline 0199f3a1-5d7c-7b1e-9c55-3f6a2f0d8e11 0199f3a2-11b0-7c64-8a0e-5b1d3a9f7c1f",
    )
    .action((id: string, evalRequest: string | undefined, { org }: { org?: string }) => {
      const patch = { baselineRequestId: evalRequest ?? null };
      const { warnings } = withData(configOf(), (service) =>
        service.prompts.updatePrompt(orgOf(service, org), id, patch),
      );
      say(
        evalRequest === undefined
          ? "Unpinned the baseline. The latest published runs are used instead."
          : "Pinned the baseline.",
      );
      for (const warning of warnings) say(`Warning: ${warning}`);
      print(id);
    });
  prompt
    .command("archive <id>")
    .description("Archive a prompt: it can no longer be run, and its reports are kept")
    .option("--org <name>", "Organization (required if there are several)")
    .addHelpText("after", "\nExample:\n  evald prompt archive 0199f3a1-5d7c-7b1e-9c55-3f6a2f0d8e11")
    .action((id: string, { org }: { org?: string }) => {
      withData(configOf(), (service) => service.prompts.updatePrompt(orgOf(service, org), id, { status: "archived" }));
      say(`Archived prompt ${id}.`);
      print(id);
    });
}

/** Parses `toolCalls=80` and adds it to the limits given before. */
function toLimits(text: string, previous: Limits = {}): Limits {
  const [, name = "", number = ""] = /^(\w+)=(\d+(?:\.\d+)?)$/.exec(text) ?? [];
  if (!limitNames.some((known) => known === name))
    throw new InvalidArgumentError(`Must be NAME=NUMBER, such as toolCalls=80. Limits: ${limitNames.join(", ")}.`);
  const limits = { ...previous, [name]: Number(number) };
  const error = Value.Errors(Limits, limits).First();
  if (error) throw new InvalidArgumentError(`${name} ${invalidInput(error, "limit").problem}.`);
  return limits;
}
