import { type Command, Option } from "commander";
import { badRequest } from "../errors.ts";
import { equalArms, type PresetInput, presetArms, withholdingArms } from "../experiments/design.ts";
import {
  estimateText,
  falseAlarmsText,
  fromSkillText,
  intervalText,
  meanText,
  ratioText,
  reasonText,
  scoreText,
  shareText,
  statusLabels,
  stopLabels,
  successText,
  unmetText,
  usedText,
  verdictLabels,
  wrongText,
} from "../experiments/labels.ts";
import { runsCsv } from "../experiments/runs-csv.ts";
import type { Experiment, ExperimentRequest, ExperimentRun } from "../experiments/schema.ts";
import { count } from "../grading/text.ts";
import { type Api, findPromptId, findProvider, toInterruptionFailure } from "./api.ts";
import { readArchive } from "./archive.ts";
import { type ApiOptions, addApiOptions, addServiceOptions, type UseApi, withExecution } from "./connection.ts";
import { readJsonFile } from "./files.ts";
import { onInterruption } from "./interruption.ts";
import {
  exits,
  parseDollars,
  print,
  repeatable,
  say,
  sayRest,
  table,
  toJson,
  waitForEnd,
  wholeNumber,
} from "./terminal.ts";

type Replacements = NonNullable<PresetInput["replacements"]>;

type RunOptions = ApiOptions & {
  tag?: string;
  title?: string;
  runs?: number;
  seed?: number;
  budgetUsd?: number;
  bare?: boolean;
  withSkills?: string;
  withMcp?: string;
  hide?: string[];
  replace?: string;
  withoutLlmsTxt?: string;
  otherAgent?: string;
  otherModel?: string;
  competitor?: string;
  arms?: string;
  itself?: boolean;
  everyWeeks?: number;
  should?: string[];
  shouldNot?: string[];
  triggerOf?: string;
  withoutPages?: number;
  estimate?: boolean;
};

/** Adds `experiment run`, `experiment list`, `experiment show` and `experiment cancel`. */
export function addExperiment(program: Command, useApi: UseApi): void {
  const experiment = program.command("experiment").description("Measure what helps agents, and by how much");
  addRun(experiment, useApi);
  addApiOptions(
    experiment.command("list").description("List experiments, newest first"),
    "Print the list as JSON",
    "experiment list",
  ).action(({ json, ...address }: ApiOptions) =>
    useApi(address, async (api) => {
      const experiments = await api.list("GET /experiments", { query: { limit: 100 } });
      const rows = experiments.items.map(({ id, title, status, progress: { ended, of } }) => [
        id,
        statusLabels[status],
        `${ended} of ${of}`,
        title,
      ]);
      print(json ? toJson(experiments.items) : table([["ID", "STATUS", "RUNS", "TITLE"], ...rows]));
      sayRest(experiments);
    }),
  );
  addApiOptions(
    experiment
      .command("show <id>")
      .description("Print the result of an experiment so far")
      .option("--csv", "Print its runs as CSV instead"),
    "Print the result as JSON",
    "experiment show 0199f3a1-7b21-7f02-9d11-2c9d4e5f6a70",
  ).action((id: string, { json, csv, ...address }: ApiOptions & { csv?: boolean }) =>
    useApi(address, async (api) => {
      const path = { experimentId: id };
      if (csv) return print((await readRunsCsv(api, id)).trimEnd());
      const result = await api.request("GET /experiments/{experimentId}", { path });
      print(json ? toJson(result, 2) : resultText(result));
    }),
  );
  addApiOptions(
    experiment.command("cancel <id>").description("Cancel the unfinished runs of an experiment"),
    "Print the experiment as JSON",
    "experiment cancel 0199f3a1-7b21-7f02-9d11-2c9d4e5f6a70",
  ).action((id: string, { json, ...address }: ApiOptions) =>
    useApi(address, async (api) => {
      const cancelled = await api.request("POST /experiments/{experimentId}/cancel", { path: { experimentId: id } });
      say("Cancelled the experiment.");
      print(json ? toJson(cancelled) : cancelled.id);
    }),
  );
}

function addRun(experiment: Command, useApi: UseApi): void {
  const command = experiment
    .command("run")
    .description("Run prompts in several arms and print how each differs from the first")
    .argument("[prompts...]", "IDs or titles of the prompts to run")
    .option("--tag <tag>", "Run all prompts with this tag instead")
    .option("--with-skills <path>", "Arm +skill: a directory or tar.gz file with a SKILL.md, or with folders of skills")
    .option("--with-mcp <url>", "Arm +MCP: the URL of an MCP server; with --with-skills, also an arm +both")
    .option("--without-llms-txt <docs-url>", "Arm no llms.txt: the llms.txt of these docs is hidden from the agent")
    .option(
      "--hide <url>",
      "Arm hidden: URLs that the agent does not find, exact, with * at the end, or with #section (repeatable)",
      repeatable,
    )
    .option(
      "--replace <file>",
      'Arm edited: JSON file with texts of pages to replace: [{"url": …, "find": …, "replacement": …}]',
    )
    .option(
      "--without-pages <n>",
      "An arm for each of the n pages that runs of the prompt read most, which is hidden in it",
      wholeNumber(1, 19),
    )
    .option("--other-agent <id>", "Arm with another agent")
    .option("--other-model <id>", "Arm with another model")
    .option("--competitor <provider>", "Arm with the docs of another provider, by name or ID")
    .option("--itself", "Compare the base with itself: how often would a gate fail without a reason?")
    .option("--every-weeks <n>", "Repeat the comparison with --itself after so many weeks", wholeNumber(1, 52))
    .option("--bare", "Leave the prompts' own skills and MCP servers out of the base")
    .addOption(new Option("--arms <file>", "JSON file with the arms, the base first, in place of the options above"))
    .option(
      "--should <prompt-or-tag>",
      "Prompts with which agents should use the skill or server (repeatable)",
      repeatable,
    )
    .option("--should-not <prompt-or-tag>", "Prompts with which they should not (repeatable)", repeatable)
    .option("--trigger-of <name>", "The skill or server that --should is about (default: any of an arm)")
    .option("--runs <n>", "Runs per prompt and arm (default: 5; always 1 for the explorer)", wholeNumber(1, 50))
    .option("--budget-usd <n>", "Maximum total cost; repeats that would exceed it are not started", parseDollars)
    .option("--seed <n>", "Seed of the random order of prompts and arms", wholeNumber(0, 999_999))
    .option("--title <title>", "Title of the experiment")
    .option("--estimate", "Only print what it would cost")
    .option("--json", "Print the result as JSON");
  addServiceOptions(command)
    .addHelpText(
      "after",
      '\nThe base has the prompts as they are. Each other arm changes one thing, and their runs are interleaved at random.\n\nExamples:\n  evald experiment run "First query" --without-llms-txt https://docs.acme.example/\n  evald experiment run --tag quickstart --with-skills ./skills --with-mcp https://mcp.acme.example/mcp --budget-usd 20\n  evald experiment run "First query" --other-agent codex --estimate\n  evald experiment run "First query" --arms arms.json --runs 10\n  evald experiment run "First query" --itself --runs 40\n  evald experiment run "First query" --without-pages 5\n  evald experiment run --should uploads --should-not other --with-skills ./skills',
    )
    .action((prompts: string[], options: RunOptions) => runExperiment(useApi, prompts, options));
}

/** Requests an experiment, waits for its end, and prints the result. Throws bad_request if the options name no prompts or no arms. */
export async function runExperiment(useApi: UseApi, prompts: string[], options: RunOptions): Promise<void> {
  const { tag, should = [], shouldNot = [], estimate, json, url, org } = options;
  const hasLabels = should.length + shouldNot.length > 0;
  const isAmbiguous = prompts.length > 0 && tag !== undefined;
  const isEmpty = prompts.length === 0 && tag === undefined && !hasLabels;
  if (isAmbiguous || isEmpty) throw badRequest("Name the prompts to run, or pass --tag, or --should and --should-not.");
  const work = async (api: Api): Promise<void> => {
    const promptIds: string[] = [];
    for (const name of prompts) promptIds.push(await findPromptId(api, name));
    const arms = await chooseArms(api, promptIds, options);
    if (arms.length < 2) throw badRequest("There is nothing to compare. Pass an option that adds an arm, or --arms.");
    const selection = { tag, ...(promptIds.length > 0 && { promptIds: [...new Set(promptIds)] }) };
    const triggering = hasLabels
      ? { of: options.triggerOf, should: await toLabels(api, should), shouldNot: await toLabels(api, shouldNot) }
      : undefined;
    const { title, runs: repeats, seed, budgetUsd, everyWeeks } = options;
    const body: ExperimentRequest = { ...selection, title, arms, repeats, seed, budgetUsd, everyWeeks, triggering };
    const costs = await api.request("POST /experiments/estimate", { body });
    if (estimate) return print(json ? toJson(costs) : estimateText(costs));
    say(estimateText(costs));
    const requested = await api.request("POST /experiments", { body });
    say(`Experiment ${requested.pageUrl}`);
    const path = { experimentId: requested.id };
    const stopListening = onInterruption(() => toInterruptionFailure(api, "experiment", [requested.id]), {
      json,
      cancel: () => api.request("POST /experiments/{experimentId}/cancel", { path }),
    });
    const ended = await waitForEnd(requested, () => api.request("GET /experiments/{experimentId}", { path }));
    stopListening();
    print(json ? toJson(ended, 2) : resultText(ended));
    if (ended.status === "stopped") process.exitCode = exits.error;
  };
  await useApi({ url, org }, work, withExecution);
}

/** Labels name prompts by tag or by ID. A name that is no prompt's tag is an ID or a title, and is replaced by the ID. Throws not_found. */
async function toLabels(api: Api, names: string[]): Promise<string[]> {
  const labels: string[] = [];
  for (const name of names) {
    const isTag = (await api.list("GET /prompts", { query: { tag: name, limit: 1 } })).total > 0;
    labels.push(isTag ? name : await findPromptId(api, name));
  }
  return labels;
}

/** The arms of an experiment with these prompts. Throws bad_request for a file that contains no arms. */
async function chooseArms(api: Api, [promptId, ...others]: string[], options: RunOptions) {
  if (options.arms !== undefined) return readArms(options.arms);
  if (options.itself) return equalArms;
  if (options.withoutPages === undefined) return await armsOfOptions(api, options);
  if (promptId === undefined || others.length > 0)
    throw badRequest("Name one prompt, whose pages --without-pages hides.");
  const { pages } = await api.request("GET /prompts/{promptId}/docs-map", { path: { promptId } });
  const arms = withholdingArms(pages, options.withoutPages);
  if (arms.length < 2) throw badRequest("No run of this prompt has read another page than its start. Run it first.");
  return arms;
}

/** The arms that options such as --with-skills describe. A folder with skills is uploaded. */
async function armsOfOptions(api: Api, options: RunOptions): Promise<ExperimentRequest["arms"]> {
  const { bare, withSkills, withMcp: mcpUrl, withoutLlmsTxt, hide: hidden, replace, competitor } = options;
  const { otherAgent, otherModel } = options;
  const replacements = replace === undefined ? undefined : readReplacements(replace);
  const input: PresetInput = { bare, mcpUrl, withoutLlmsTxt, hidden, replacements, otherAgent, otherModel };
  if (withSkills !== undefined) {
    const content = await readArchive(withSkills);
    const { id } = await api.request("POST /archives", { body: new Blob([content], { type: "application/gzip" }) });
    input.skills = { archive: id };
  }
  if (competitor !== undefined) input.competitorId = (await findProvider(api, competitor)).id;
  return presetArms(input);
}

/** The service checks the arms. */
function readArms(file: string): ExperimentRequest["arms"] {
  const what = 'arms, such as [{"name": "baseline"}, {"name": "codex", "agent": "codex"}]';
  return readList(file, what) as ExperimentRequest["arms"];
}

/** The service checks their URLs and lengths. Throws bad_request unless each has the three texts. */
function readReplacements(file: string): Replacements {
  const what = 'texts to replace, such as [{"url": "https://docs.acme.example/", "find": "old", "replacement": "new"}]';
  const entries = readList(file, what) as Partial<Replacements[number]>[];
  const isText = (value: unknown) => typeof value === "string";
  if (entries.every((entry) => isText(entry?.url) && isText(entry.find) && isText(entry.replacement)))
    return entries as Replacements;
  throw badRequest(`${file} must contain a list of ${what}.`);
}

/** Throws bad_request unless the file is a JSON list. */
function readList(file: string, what: string): unknown[] {
  const entries = readJsonFile(file);
  if (Array.isArray(entries)) return entries;
  throw badRequest(`${file} must contain a list of ${what}.`);
}

/** The result on one screen: a line for each arm, and the basis of each verdict. */
function resultText(experiment: Experiment): string {
  const { title, status, stopReason, progress, analysis, prompts } = experiment;
  const { ended, of } = progress;
  const names = new Map(prompts.map(({ id, title }) => [id, title ?? id]));
  const contrasts = new Map(analysis.contrasts.map((contrast) => [contrast.arm, contrast]));
  const rows = analysis.arms.map((arm) => {
    const contrast = contrasts.get(arm.arm);
    return [
      arm.arm,
      contrast ? verdictLabels[contrast.verdict] : "Base",
      meanText(arm),
      contrast ? scoreText(contrast.overall) : "",
      shareText(arm),
      contrast ? ratioText(contrast.overall.cost) : "",
      contrast ? ratioText(contrast.overall.seconds) : "",
      usedText(arm),
    ];
  });
  return [
    title,
    `${statusLabels[status]}: ${ended} of ${count(of, "run")}.${stopReason ? ` ${stopLabels[stopReason]}` : ""}`,
    "",
    table([["ARM", "VERDICT", "SCORE", "CHANGE", "GOAL REACHED", "COST", "TIME", "USED"], ...rows]),
    "",
    ...[falseAlarmsText(experiment)].filter((line) => line !== null),
    ...analysis.contrasts.map((contrast) => {
      const goal = contrast.overall.success && `Goal reached in ${successText(contrast.overall)}.`;
      const reasons = [reasonText(contrast), goal, unmetText(analysis, contrast.arm)];
      return `${contrast.arm}: ${reasons.filter(Boolean).join(" ")}`;
    }),
    ...triggeringLines(experiment, names),
    ...analysis.uninformative.map(
      (id) =>
        `${names.get(id) ?? id}: all runs of all arms had the same outcome, so it doesn’t show which arm succeeds more often.`,
    ),
    "Ranges are 95% confidence intervals. Every run counts for its arm, whether or not it used the treatment.",
  ].join("\n");
}

/** Whether agents used the skill or server when they should. There is a line for each agent and arm, and one for each prompt that went wrong. */
function triggeringLines(experiment: Experiment, names: Map<string, string>): string[] {
  const { triggering } = experiment.analysis;
  if (triggering.length === 0) return [];
  const rows = triggering.map(({ arm, agent, precision, recall, f1, ...counts }) => {
    const { truePositives, falsePositives, falseNegatives, trueNegatives } = counts;
    const rates = [precision, recall, f1].map(intervalText);
    return [arm, agent, ...rates, ...[truePositives, falsePositives, falseNegatives, trueNegatives].map(String)];
  });
  return [
    "",
    table([["ARM", "AGENT", "PRECISION", "RECALL", "F1", "TP", "FP", "FN", "TN"], ...rows]),
    ...triggering.flatMap(({ arm, agent, wrong }) =>
      wrong.map((each) => `${arm}, ${agent}: ${names.get(each.promptId) ?? each.promptId}: ${wrongText(each)}`),
    ),
    ...[fromSkillText(experiment)].filter((line) => line !== null),
    "",
  ];
}

async function readRunsCsv(api: Api, experimentId: string): Promise<string> {
  const path = { experimentId };
  const runs: ExperimentRun[] = [];
  while (true) {
    const query = { limit: 1000, offset: runs.length };
    const { items, total } = await api.list("GET /experiments/{experimentId}/runs", { path, query });
    runs.push(...items);
    if (items.length === 0 || runs.length >= total) return runsCsv(runs);
  }
}
