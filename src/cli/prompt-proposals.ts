import { basename } from "node:path";
import { type Command, InvalidArgumentError } from "commander";
import { AppError, badRequest } from "../errors.ts";
import { count } from "../grading/text.ts";
import { maxProposals } from "../proposals/proposal.ts";
import { type CreatedPrompts, defaultMaxUsd, type ProposalSet, type SourceFile } from "../proposals/schema.ts";
import type { Api } from "./api.ts";
import { addServiceOptions, type ServiceAddress, type UseApi } from "./connection.ts";
import { readJsonFile, readTextFile } from "./files.ts";
import { parsePair, print, repeatable, say, table, toJson, wholeNumber } from "./terminal.ts";

type ProposeOptions = ServiceAddress & {
  openapi?: string;
  mcp?: string;
  command?: string[];
  primaryTask?: string;
  product?: string;
  count?: number;
  readme?: string;
  skill?: string;
  commandHelp?: Record<string, string>;
  demand: boolean;
  model?: string;
  maxUsd?: number;
  accept?: number[];
  json?: boolean;
};

/** How often the state of a set is requested, in milliseconds. */
const pollMs = 500;

/** Adds `prompt propose`, which proposes prompts from docs, and creates the accepted ones. */
export function addPropose(prompt: Command, useApi: UseApi): void {
  const command = prompt
    .command("propose <docs-url>")
    .description("Propose prompts from docs. Creates none unless you accept them")
    .option("--openapi <url>", "OpenAPI description to read too")
    .option("--mcp <url>", "MCP server over HTTP whose tools to read too")
    .option("--primary-task <task>", "What most people do with the product first")
    .option("--product <name>", "Name of the product (default: from the docs)")
    .option("--count <n>", "Maximum number of proposals", wholeNumber(1, maxProposals))
    .option("--readme <file>", "README to read too")
    .option("--skill <file>", "SKILL.md whose description names tasks, to test whether agents use the skill")
    .option("--command <command>", "Command to run here with --help, to read its output too (repeatable)", repeatable)
    .option("--command-help <command=file>", "Help or manual page of a command, as text (repeatable)", parsePair)
    .option("--no-demand", "Leave out what agents asked for and didn't find")
    .option("--model <provider/model>", "Let a model propose them, for money; without one, rules do")
    .option("--max-usd <amount>", `Limit of its cost in USD (default: ${defaultMaxUsd})`, Number)
    .option("--accept <numbers>", "Create the prompts of these proposals, such as 1,3", parseNumbers)
    .option("--json", "Print the proposals as JSON, for evald prompt create --from");
  addServiceOptions(command)
    .addHelpText(
      "after",
      `
Examples:
  evald prompt propose https://docs.acme.example/ --primary-task "back up a folder"
  evald prompt propose https://docs.acme.example/ --mcp https://mcp.acme.example/mcp --command acme
  evald prompt propose https://docs.acme.example/ --skill skills/uploads/SKILL.md
  evald prompt propose https://docs.acme.example/ --json > proposals.json
  evald prompt create --from proposals.json --only 1,3,4`,
    )
    .action((docsUrl: string, options: ProposeOptions) => {
      const { url, org, accept, json, openapi: openapiUrl, mcp: mcpUrl, demand: includeDemand } = options;
      const { primaryTask, product, count, model, maxUsd } = options;
      return useApi(
        { url, org },
        async (api) => {
          const sources = { docsUrl, openapiUrl, mcpUrl, files: toFiles(options), includeDemand };
          const body = { ...sources, primaryTask, product, count, model, maxUsd };
          const { proposalSetId } = await api.request("POST /proposals", { body });
          const set = await waitForProposals(api, proposalSetId);
          if (accept !== undefined) return printCreated(await acceptProposals(api, proposalSetId, accept), json);
          if (json) return print(toJson(set));
          saySummary(set);
          print(toTable(set));
        },
        { execute: { allowUrls: [docsUrl, openapiUrl, mcpUrl].filter((each) => each !== undefined) } },
      );
    });
}

/** Creates the prompts of a file that `prompt propose --json` wrote. */
export async function createFromFile(
  useApi: UseApi,
  address: ServiceAddress,
  { file, only, json }: { file: string; only: number[] | undefined; json: boolean | undefined },
): Promise<void> {
  await useApi(address, async (api) => {
    const { proposalSetId, proposals } = readSet(file);
    const numbers = only ?? proposals.map((_, i) => i + 1);
    printCreated(await acceptProposals(api, proposalSetId, numbers), json);
  });
}

/** Numbers separated by commas. Throws InvalidArgumentError. */
export function parseNumbers(value: string): number[] {
  const numbers = value.split(",").map((part) => part.trim());
  if (!numbers.every((part) => /^[1-9]\d?$/.test(part))) throw new InvalidArgumentError("Use numbers such as 1,3,4.");
  return [...new Set(numbers.map(Number))];
}

/** Waits for the proposals of a set. Throws bad_request if the docs can't be read, and what the service returned. */
async function waitForProposals(api: Api, proposalSetId: string): Promise<ProposalSet> {
  say("Reading the docs…");
  for (;;) {
    const set: ProposalSet = await api.request("GET /proposals/{proposalSetId}", { path: { proposalSetId } });
    if (set.failure !== null) throw new AppError("bad_request", set.failure.detail);
    if (set.status === "completed") return set;
    await Bun.sleep(pollMs);
  }
}

const acceptProposals = (api: Api, proposalSetId: string, only: number[]): Promise<CreatedPrompts> =>
  api.request("POST /proposals/{proposalSetId}/prompts", { path: { proposalSetId }, body: { only } });

function printCreated(created: CreatedPrompts, json = false): void {
  say(`Created ${count(created.prompts.length, "prompt")}. Run one with: evald run ID`);
  print(json ? toJson(created) : created.prompts.map(({ promptId }) => promptId).join("\n"));
}

/** Prints how much was read, what was dropped, and what it cost. */
function saySummary({ read, dropped, costUsd }: ProposalSet): void {
  say(`Read ${count(read?.pages ?? 0, "page")} in ${read?.seconds ?? 0} s.`);
  if (costUsd !== 0) say(costUsd === null ? "The cost is unknown." : `It cost $${costUsd.toFixed(4)}.`);
  const total = dropped.reduce((sum, each) => sum + each.count, 0);
  if (total > 0) say(`Dropped ${count(total, "candidate")}.`);
}

/** One line for each proposal: its number, title, tag and check, and the line of the docs that it is based on. */
function toTable({ proposals }: ProposalSet): string {
  const rows = proposals.map(({ title, tags, declaredChecks: [check], source, docsOwnWords }, i) => [
    String(i + 1),
    title,
    tags.join(", "),
    check === undefined ? "" : (check.command ?? check.url ?? check.file ?? ""),
    `${source.url}:${source.line}`,
    docsOwnWords ? "docs' own words" : "",
  ]);
  return table([["#", "TITLE", "TAGS", "CHECK", "SOURCE", "NOTE"], ...rows]);
}

function toFiles({ readme, skill, command = [], commandHelp = {} }: ProposeOptions): SourceFile[] | undefined {
  const files = [
    ...(readme === undefined ? [] : [{ name: basename(readme), text: readTextFile(readme) }]),
    ...(skill === undefined ? [] : [{ name: "SKILL.md", text: readTextFile(skill) }]),
    ...command.map((each) => ({ name: `${each} --help`, command: each, text: readHelp(each) })),
    ...Object.entries(commandHelp).map(([command, file]) => ({
      name: basename(file),
      command,
      text: readTextFile(file),
    })),
  ];
  return files.length === 0 ? undefined : files;
}

const helpMs = 10_000;
const maxHelpBytes = 200_000;

/** The output of a command with --help, from stdout and stderr. Throws bad_request that names the command. */
function readHelp(command: string): string {
  const [program = "", ...args] = command.trim().split(/\s+/);
  const path = Bun.which(program);
  if (path === null) throw badRequest(`--command: there is no command ${program} here.`);
  const { stdout, stderr } = Bun.spawnSync([path, ...args, "--help"], {
    stdin: "ignore",
    timeout: helpMs,
    maxBuffer: maxHelpBytes,
  });
  const text = Bun.stripANSI(`${stdout}` || `${stderr}`);
  if (text.trim() === "") throw badRequest(`--command: ${command} --help prints nothing.`);
  return text;
}

/** Reads a file of proposals. Throws bad_request for any other file. */
function readSet(file: string): Pick<ProposalSet, "proposalSetId" | "proposals"> {
  const { proposalSetId, proposals } = (readJsonFile(file) ?? {}) as Partial<ProposalSet>;
  if (typeof proposalSetId === "string" && Array.isArray(proposals)) return { proposalSetId, proposals };
  throw badRequest(`${file} has no proposals. Write one with: evald prompt propose URL --json > ${basename(file)}`);
}
