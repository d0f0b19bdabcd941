import { type Command, InvalidArgumentError, Option } from "commander";
import { badRequest, conflict } from "../errors.ts";
import type { Prompt, PromptPatch } from "../prompts/schema.ts";
import { titleOf } from "../reports/labels.ts";
import { type Api, findPromptId } from "./api.ts";
import { type ApiOptions, addApiOptions, addServiceOptions, type UseApi } from "./connection.ts";
import { addPromptDelete } from "./deletion.ts";
import { addFields, type FieldOptions, toFields } from "./prompt-fields.ts";
import { addPropose, createFromFile, parseNumbers } from "./prompt-proposals.ts";
import { print, say, sayRest, table, toJson, wholeNumber } from "./terminal.ts";

/** Adds the commands about prompts. */
export function addPrompt(program: Command, useApi: UseApi): void {
  const prompt = program.command("prompt").description("Manage prompts: the tasks that agents work on");
  addCreate(prompt, useApi);
  addPropose(prompt, useApi);
  addList(prompt, useApi);
  addShow(prompt, useApi);
  addEdit(prompt, useApi);
  addSchedule(prompt, useApi);
  addBaseline(prompt, useApi);
  addArchive(prompt, useApi);
  addUnarchive(prompt, useApi);
  addPromptDelete(prompt, useApi);
}

const getPrompt = (api: Api, promptId: string): Promise<Prompt> =>
  api.request("GET /prompts/{promptId}", { path: { promptId } });

const updatePrompt = (api: Api, promptId: string, body: PromptPatch): Promise<Prompt> =>
  api.request("PATCH /prompts/{promptId}", { path: { promptId }, body });

const exampleId = "0199f3a1-5d7c-7b1e-9c55-3f6a2f0d8e11";

function addList(prompt: Command, useApi: UseApi): void {
  addApiOptions(
    prompt
      .command("list")
      .description("List prompts, newest first")
      .option("--archived", "Include archived prompts")
      .option("--tag <tag>", "Only prompts with this tag")
      .option("--limit <n>", "Maximum number of prompts to list", wholeNumber(1, 1000), 100),
    "Print the list as JSON",
    "prompt list --archived",
  ).action(
    ({ archived, tag, limit, json, ...address }: ApiOptions & { archived?: boolean; tag?: string; limit: number }) =>
      useApi(address, async (api) => {
        const query = { limit, tag, includeArchived: archived ? ("1" as const) : undefined };
        const prompts = await api.list("GET /prompts", { query });
        const items = await Promise.all(prompts.items.map(({ id }) => getPrompt(api, id)));
        const rows = items.map((p) => [p.id, p.status, p.title ?? titleOf(p), p.nextRunsAt?.[0] ?? ""]);
        print(json ? toJson(items) : table([["ID", "STATUS", "TITLE", "NEXT RUN"], ...rows]));
        sayRest(prompts);
      }),
  );
}

function addSchedule(prompt: Command, useApi: UseApi): void {
  addApiOptions(
    prompt
      .command("schedule <frequency>")
      .description("Schedule all prompts with a tag: hourly, daily, weekly, monthly, a cron expression, or none")
      .requiredOption("--tag <tag>", "Tag of the prompts"),
    "Print the result as JSON",
    'prompt schedule "0 3 * * *" --tag nightly',
  ).action((frequency: string, { tag, json, ...address }: ApiOptions & { tag: string }) =>
    useApi(address, async (api) => {
      const body = { tag, frequency: frequency === "none" ? null : frequency };
      const result = await api.request("POST /prompts/schedule", { body });
      for (const { promptId, detail } of result.problems) say(`Skipped ${promptId}: ${detail}`);
      print(json ? toJson(result) : `Scheduled ${result.scheduled}, skipped ${result.skipped}.`);
    }),
  );
}

function addShow(prompt: Command, useApi: UseApi): void {
  addApiOptions(
    prompt.command("show <prompt>").description("Show a prompt, by ID or title"),
    "Print the prompt as JSON",
    'prompt show "First query" --json',
  ).action((name: string, { json, ...address }: ApiOptions) =>
    useApi(address, async (api) => {
      const prompt = await getPrompt(api, await findPromptId(api, name, { archived: true }));
      print(json ? toJson(prompt, 2) : table(toRows(prompt)));
    }),
  );
}

/** The fields of a prompt that are set, with their values as text. */
const toRows = (prompt: Prompt): string[][] =>
  Object.entries(prompt)
    .filter(([, value]) => value !== null && value !== false)
    .filter(([, value]) => !Array.isArray(value) || value.length > 0)
    .map(([field, value]) => [field, typeof value === "string" ? value : JSON.stringify(value)]);

function addBaseline(prompt: Command, useApi: UseApi): void {
  addApiOptions(
    prompt
      .command("baseline <prompt> [eval-request]")
      .description("Pin an evaluation as the baseline of a prompt; without an evaluation, unpin the baseline"),
    "Print the prompt as JSON",
    `prompt baseline ${exampleId} 0199f3a2-11b0-7c64-8a0e-5b1d3a9f7c1f`,
  ).action((name: string, evalRequest: string | undefined, { json, ...address }: ApiOptions) =>
    useApi(address, async (api) => {
      const id = await findPromptId(api, name);
      const updated = await updatePrompt(api, id, { baselineRequestId: evalRequest ?? null });
      say(
        evalRequest === undefined
          ? "Unpinned the baseline. The latest published runs are used instead."
          : "Pinned the baseline.",
      );
      sayWarningsAndNextRuns(updated);
      print(json ? toJson(updated) : id);
    }),
  );
}

function addArchive(prompt: Command, useApi: UseApi): void {
  addApiOptions(
    prompt
      .command("archive <prompt>")
      .description("Archive a prompt: it can no longer be run, and its reports are kept"),
    "Print the prompt as JSON",
    `prompt archive ${exampleId}`,
  ).action((name: string, { json, ...address }: ApiOptions) =>
    useApi(address, async (api) => {
      const id = await findPromptId(api, name, { archived: true });
      const updated = await updatePrompt(api, id, { status: "archived" });
      say(`Archived prompt ${id}.`);
      print(json ? toJson(updated) : id);
    }),
  );
}

function addUnarchive(prompt: Command, useApi: UseApi): void {
  addApiOptions(
    prompt.command("unarchive <prompt>").description("Make an archived prompt active again"),
    "Print the prompt as JSON",
    `prompt unarchive ${exampleId}`,
  ).action((name: string, { json, ...address }: ApiOptions) =>
    useApi(address, async (api) => {
      const { id, status } = await getPrompt(api, await findPromptId(api, name, { archived: true }));
      if (status !== "archived") throw conflict(notArchived(id, status));
      const updated = await updatePrompt(api, id, { status: "active" });
      say(`Unarchived prompt ${id}.`);
      sayWarningsAndNextRuns(updated);
      print(json ? toJson(updated) : id);
    }),
  );
}

const notArchived = (id: string, status: Prompt["status"]): string =>
  status === "paused"
    ? `The prompt ${id} is paused, not archived. Resume its schedule with: evald prompt edit ${id} --resume`
    : `The prompt ${id} is not archived.`;

/** Prints the warnings about a prompt that was changed, and the time of its next runs. */
function sayWarningsAndNextRuns({ warnings, nextRunsAt }: Prompt): void {
  for (const warning of warnings) say(`Warning: ${warning}`);
  if (nextRunsAt) say(`Next scheduled runs: ${nextRunsAt.join(", ")}`);
}

function addCreate(prompt: Command, useApi: UseApi): void {
  const command = prompt
    .command("create")
    .description("Create a prompt, or some from proposals, and print the IDs to stdout")
    .option("--text <text>", "Task for the agent; {{name}} is a template variable (required without --from)")
    .option("--from <file>", "File with proposals that evald prompt propose --json wrote")
    .option("--only <numbers>", "With --from: only these proposals, such as 1,3,4", parseNumbers);
  addServiceOptions(addFields(command))
    .option("--json", "Print the prompt as JSON")
    .addHelpText(
      "after",
      '\nExample:\n  evald prompt create --title "First query" --start-url https://docs.acme.example \\\n    --text "Run a query with the CLI." --goal "A query was run and its rows were printed."',
    )
    .action(async ({ org, url, json, text, from, only, ...fields }: ApiOptions & CreateOptions) => {
      const needsOneOf = () => badRequest("Pass either --text or --from.");
      if (from !== undefined) {
        if (text !== undefined) throw needsOneOf();
        if (Object.keys(fields).length > 0)
          throw badRequest("--from takes all fields from the file. Change a prompt with evald prompt edit.");
        return await createFromFile(useApi, { org, url }, { file: from, only, json });
      }
      if (text === undefined) throw needsOneOf();
      if (only !== undefined) throw badRequest("--only needs --from.");
      await useApi({ org, url }, async (api) => {
        const created = await api.request("POST /prompts", { body: { text, ...toFields(fields) } });
        say(`Created prompt ${created.id}. Run it with: evald run ${created.id}`);
        sayWarningsAndNextRuns(created);
        print(json ? toJson(created) : created.id);
      });
    });
}

type CreateOptions = FieldOptions & { from?: string; only?: number[] };

/** The fields that `--clear` can remove, by the names of their options. */
const clearable = {
  title: "title",
  goal: "endGoal",
  wording: "wordings",
  provider: "targetProviderId",
  "start-url": "additionalUrls",
  agent: "agent",
  model: "model",
  frequency: "frequency",
  runs: "runsPerEval",
  limit: "limits",
  "success-bar": "successBar",
  checks: "declaredChecks",
  tag: "tags",
  "worker-label": "workerLabels",
} as const;
type Clearable = keyof typeof clearable;
/** Options whose fields become an empty list when they are cleared, because these fields are never null. */
const listOptions = new Set<Clearable>(["tag", "worker-label"]);

function addEdit(prompt: Command, useApi: UseApi): void {
  const command = prompt
    .command("edit <prompt>")
    .description("Change a prompt; options that are not given keep their values")
    .option("--text <text>", "Task for the agent; {{name}} is a template variable");
  addServiceOptions(addFields(command))
    .addOption(
      new Option("--clear <option>", "Remove the value of an option (repeatable)")
        .choices(Object.keys(clearable))
        .argParser((name: string, previous: Clearable[] = []) => {
          if (!(name in clearable))
            throw new InvalidArgumentError(`Must be one of ${Object.keys(clearable).join(", ")}.`);
          return [...previous, name as Clearable];
        }),
    )
    .option("--pause", "Stop its schedule; it can still be run by hand")
    .option("--resume", "Resume its schedule")
    .option("--json", "Print the prompt as JSON")
    .addHelpText(
      "after",
      `\nExamples:\n  evald prompt edit "First query" --frequency daily --runs 5\n  evald prompt edit ${exampleId} --clear frequency`,
    )
    .action(
      async (
        name: string,
        { org, url, json, clear = [], pause, resume, text, ...fields }: ApiOptions & EditOptions,
      ) => {
        if (pause && resume) throw badRequest("Pass either --pause or --resume.");
        const clearedFields = Object.fromEntries(
          clear.map((option) => [clearable[option], listOptions.has(option) ? [] : null]),
        );
        const status = { ...(pause && { status: "paused" as const }), ...(resume && { status: "active" as const }) };
        const patch: PromptPatch = { text, ...status, ...toFields(fields), ...clearedFields };
        if (Object.values(patch).every((value) => value === undefined))
          throw badRequest("Nothing to change. Pass an option, such as --title.");
        await useApi({ org, url }, async (api) => {
          const updated = await updatePrompt(api, await findPromptId(api, name), patch);
          say(`Changed prompt ${updated.id}.`);
          sayWarningsAndNextRuns(updated);
          print(json ? toJson(updated) : updated.id);
        });
      },
    );
}

type EditOptions = FieldOptions & { clear?: Clearable[]; pause?: boolean; resume?: boolean };
