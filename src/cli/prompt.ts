import { Value } from "@sinclair/typebox/value";
import { type Command, InvalidArgumentError } from "commander";
import type { Config } from "../config.ts";
import { Limits, limitNames } from "../prompts/limits.ts";
import { explain } from "../schema.ts";
import { orgOf, print, say, table, wholeNumber, withData } from "./terminal.ts";

type CreateOptions = {
  org?: string;
  text: string;
  title?: string;
  goal?: string;
  provider?: string;
  url: string[];
  frequency?: string;
  runs?: number;
  limit?: Limits;
  json?: boolean;
};

/** Adds `prompt create`, `prompt list` and `prompt archive`. */
export function addPrompt(program: Command, configOf: () => Config): void {
  const prompt = program.command("prompt").description("tasks with an end goal that agents are sent to do");
  prompt
    .command("create")
    .description("make a prompt; its id goes to stdout")
    .requiredOption("--text <text>", "the task that the agent is given; {{name}} is a variable")
    .option("--title <title>", "a name for people")
    .option("--goal <goal>", "what must be true at the end")
    .option("--provider <id>", "the developer tool it is about; evald provider list shows the ids")
    .option(
      "--url <url>",
      "an address to start from; may be repeated",
      (url: string, all: string[]) => [...all, url],
      [],
    )
    .option("--frequency <when>", "hourly, daily, weekly, monthly or five cron fields")
    .option("--runs <n>", "runs of one evaluation", wholeNumber(1, 50))
    .option("--limit <name=number>", `what one run may use: ${limitNames.join(", ")}; may be repeated`, toLimits)
    .option("--org <name>", "organisation (needed where there are several)")
    .option("--json", "print the prompt as JSON")
    .addHelpText(
      "after",
      '\nExample:\n  evald prompt create --title "First query" --url https://docs.acme.example \\\n    --text "Run a query with the CLI." --goal "A query was run and its rows were printed."',
    )
    .action(({ org, text, title, goal, provider, url, frequency, runs, limit, json }: CreateOptions) => {
      const made = withData(configOf(), (service) =>
        service.prompts.createPrompt(orgOf(service, org), {
          text,
          title,
          endGoal: goal,
          targetProviderId: provider,
          additionalUrls: url.length > 0 ? url.map((one) => ({ url: one })) : null,
          frequency,
          runsPerEval: runs,
          limits: limit,
        }),
      );
      say(`prompt made; POST /api/v1/prompts/${made.id}/run with {"urlMap": {}} runs it`);
      if (made.nextRunsAt) say(`by its schedule it runs at ${made.nextRunsAt.join(", ")}, and so on`);
      print(json ? JSON.stringify(made) : made.id);
    });
  prompt
    .command("list")
    .description("list the prompts, newest first")
    .option("--org <name>", "organisation")
    .option("--archived", "archived ones too")
    .option("--json", "print them as JSON")
    .addHelpText("after", "\nExample:\n  evald prompt list --archived")
    .action(({ org, archived, json }: { org?: string; archived?: boolean; json?: boolean }) => {
      const items = withData(configOf(), (service) => {
        const own = orgOf(service, org);
        const page = { limit: 1000, offset: 0, includeArchived: archived ?? false };
        return service.prompts.listPrompts(own, page).items.map(({ id }) => service.prompts.getPrompt(own, id));
      });
      const rows = items.map((p) => [p.id, p.status, p.title ?? p.text.slice(0, 60), p.nextRunsAt?.[0] ?? ""]);
      print(json ? JSON.stringify(items) : table([["ID", "STATUS", "TITLE", "NEXT RUN"], ...rows]));
    });
  prompt
    .command("baseline <id> [eval-request]")
    .description("pin the evaluation that others of a prompt are held against; without one, take the pin away")
    .option("--org <name>", "organisation")
    .addHelpText(
      "after",
      "\nExample:\n  evald prompt baseline 0199f3a1-5d7c-7b1e-9c55-3f6a2f0d8e11 0199f3a2-11b0-7c64-8a0e-5b1d3a9f7c1f",
    )
    .action((id: string, evalRequest: string | undefined, { org }: { org?: string }) => {
      const patch = { baselineRequestId: evalRequest ?? null };
      const { warnings } = withData(configOf(), (service) =>
        service.prompts.updatePrompt(orgOf(service, org), id, patch),
      );
      say(evalRequest === undefined ? "the last published runs are the baseline" : "baseline pinned");
      for (const warning of warnings) say(`warning: ${warning}`);
      print(id);
    });
  prompt
    .command("archive <id>")
    .description("put a prompt away: it can no longer be run, its reports stay")
    .option("--org <name>", "organisation")
    .addHelpText("after", "\nExample:\n  evald prompt archive 0199f3a1-5d7c-7b1e-9c55-3f6a2f0d8e11")
    .action((id: string, { org }: { org?: string }) => {
      withData(configOf(), (service) => service.prompts.updatePrompt(orgOf(service, org), id, { status: "archived" }));
      say("prompt archived");
      print(id);
    });
}

/** `toolCalls=80`, added to those that were given before. */
function toLimits(text: string, others: Limits = {}): Limits {
  const [, name = "", number = ""] = /^(\w+)=(\d+(?:\.\d+)?)$/.exec(text) ?? [];
  if (!limitNames.some((known) => known === name))
    throw new InvalidArgumentError(`Use a name and a number, as in toolCalls=80. Names: ${limitNames.join(", ")}.`);
  const limits = { ...others, [name]: Number(number) };
  const error = Value.Errors(Limits, limits).First();
  if (error) throw new InvalidArgumentError(`${explain(error, "the limit")}.`);
  return limits;
}
