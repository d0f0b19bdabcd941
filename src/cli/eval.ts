import { statSync } from "node:fs";
import type { Command } from "commander";
import type { Agent, AgentEvent } from "../agents/agent.ts";
import { createArchive } from "../archives/archives.ts";
import { createOrg } from "../auth/orgs.ts";
import { type AllowRule, toAllowRule } from "../config/allow-rules.ts";
import type { Config } from "../config/config.ts";
import { secretsIn } from "../config/model-settings.ts";
import type { OrgId } from "../context.ts";
import { closeDb, type Db, openDb } from "../db/open.ts";
import { badRequest } from "../errors.ts";
import { createCommandLog } from "../log.ts";
import { createPrompt } from "../prompts/prompts.ts";
import { createProvider } from "../providers/providers.ts";
import { getReport } from "../reports/reports.ts";
import type { Report } from "../reports/schema.ts";
import { describeEstimate, getEstimate } from "../runs/estimates.ts";
import { requestEval } from "../runs/requests.ts";
import { getRun } from "../runs/runs.ts";
import type { Run } from "../runs/schema.ts";
import { createService, type Service } from "../service.ts";
import { onInterruption } from "./interruption.ts";
import { addMinScore, checkMinScore, type MinScore } from "./min-score.ts";
import { addReportFormat, type ReportFormat, toReportText } from "./report-screen.ts";
import { addSiteOptions, describeSite, type PackedSite, packSite, type SiteOptions } from "./site-folder.ts";
import {
  exits,
  failureText,
  print,
  printStyled,
  repeatable,
  say,
  sayFailure,
  sayProgress,
  toJson,
  toOwnUrl,
} from "./terminal.ts";

type EvalOptions = SiteOptions &
  ReportFormat &
  MinScore & { goal: string; wording?: string[]; task?: string; agent?: string; model?: string; json?: boolean };

/** Adds `eval`, which runs one evaluation in this terminal and stores nothing. */
export function addEval(program: Command, configOf: () => Config, agents: Record<string, Agent>): void {
  const command = program
    .command("eval <docs>")
    .description("Evaluate the docs at a URL, or in a folder, in this terminal; nothing is stored")
    .requiredOption("--goal <goal>", "What a developer wants to achieve with the tool")
    .option(
      "--wording <text>",
      "Another wording of the goal (repeatable). The explorer compares what each wording finds",
      repeatable,
    )
    .option("--task <text>", "Task for the agent (default: the goal)")
    .option("--agent <id>", `Agent to use: ${Object.keys(agents).join(", ")}`)
    .option("--model <id>", "Model of the agent, such as anthropic/claude-opus-4-8 (default: EVALD_AGENT_MODEL)")
    .option("--json", "Print the report as JSON");
  addMinScore(addReportFormat(addSiteOptions(command)))
    .addHelpText(
      "after",
      '\nExit codes: 0 passed, 1 below --min-score, 2 usage error, 3 no verdict (the run failed, or there is no score to compare).\n\nExamples:\n  evald eval https://docs.acme.example --goal "Upload a file with the Python SDK"\n  evald eval ./build --goal "Upload a file with the Python SDK" --at https://docs.acme.example/\n  evald eval http://localhost:8000 --goal "Run a first query" --json --min-score 80 --scope docs_only',
    )
    .action(async (docs: string, options: EvalOptions) => {
      process.exitCode = await evaluate(configOf(), agents, docs, options);
    });
}

/** Evaluates docs in this terminal, and returns the exit code. */
async function evaluate(
  config: Config,
  agents: Record<string, Agent>,
  docs: string,
  options: EvalOptions,
): Promise<number> {
  const isUrl = isDocsUrl(docs, options);
  checkTask(config, agents, options);
  const site = isUrl ? null : await packSite(docs, options);
  if (site) say(await describeSite(docs, site));
  const url = site?.at ?? docs;
  const db = openDb(":memory:");
  const service = createEvalService(db, config, agents, site ? [] : [toAllowRule(url)]);
  const org = createOrg(service.ctx, "This terminal").id;
  const runId = await requestRun(service, org, { url, site }, options);
  await service.start();
  const cancelled = { error: "cancelled", detail: "The evaluation was interrupted. Nothing was stored." };
  const stopListening = onInterruption(() => cancelled, { json: options.json, stop: () => service.stop(0) });
  while (getRun(service.ctx, org, runId).completedAt === null) await Bun.sleep(20);
  stopListening();
  await service.stop(0);
  const run = getRun(service.ctx, org, runId);
  const report = run.report ? getReport(service.ctx, org, run.report.slug) : null;
  closeDb(db);
  return report ? printReport(report, options) : reportFailure(run, options);
}

/** Throws bad_request for an empty goal, and for an agent that needs a model but has none. */
function checkTask(config: Config, agents: Record<string, Agent>, { goal, agent, model }: EvalOptions): void {
  const needsModel = agent !== undefined && agents[agent]?.describe().kind === "model";
  if (needsModel && !(model ?? config.agentModel))
    throw badRequest(
      `The agent ${agent} needs a model. Pass --model, such as anthropic/claude-opus-4-8, or set EVALD_AGENT_MODEL.`,
    );
  if (goal.trim() === "") throw badRequest("Invalid value for --goal: must not be empty.");
}

/** A service for one run, whose agents print their progress. `allowRules`: private addresses that the run may also reach. */
function createEvalService(db: Db, config: Config, agents: Record<string, Agent>, allowRules: AllowRule[]): Service {
  return createService({
    db,
    config,
    log: createCommandLog(config, secretsIn(config.modelEndpoints)),
    agents: Object.fromEntries(Object.entries(agents).map(([id, agent]) => [id, withProgress(agent)])),
    baseUrl: () => config.baseUrl ?? toOwnUrl(config),
    alsoAllow: () => allowRules,
    // Shorter than for a service, since a person is waiting.
    backoffMs: () => 500,
    maxRetryAfterMs: 10_000,
  });
}

/** Reports the failure of a run. Returns the exit code. */
function reportFailure({ status, failure }: Run, { json }: EvalOptions): number {
  const detail = failure === null ? `The run is ${status}.` : failureText(failure);
  sayFailure({ error: failure?.cause ?? "internal", detail, ...(failure && { failure }) }, json);
  return exits.error;
}

/** Prints a report. Returns the exit code. */
function printReport(report: Report, options: EvalOptions): number {
  if (options.json) print(toJson(report, 2));
  else
    printStyled(
      toReportText(report, options, { isStored: false, fullReportHint: "the same command with --format markdown" }),
    );
  return checkMinScore(report, options);
}

/**
 * Requests the run of the evaluation, and returns its ID. `site`: the files of the docs to use for the published URL; null: the agent reads the live
 * docs.
 */
async function requestRun(
  { ctx }: Service,
  org: OrgId,
  { url, site }: { url: string; site: PackedSite | null },
  { goal, wording, task, agent, model }: EvalOptions,
): Promise<string> {
  const provider = createProvider(ctx, org, { name: new URL(url).hostname, docsUrl: url });
  const prompt = createPrompt(ctx, org, {
    title: goal.slice(0, 200),
    text: escapeTemplate(task ?? goal),
    endGoal: escapeTemplate(goal),
    wordings: wording?.map(escapeTemplate),
    targetProviderId: provider.id,
    agent,
    model,
  });
  say(`Estimate: ${describeEstimate(getEstimate(ctx, org, prompt.id))}`);
  const { runIds } = await requestEval(ctx, org, prompt.id, {
    urlMap: {},
    ...(site && { sites: { [url]: { archiveId: createArchive(ctx, org, site, "site").id, host: site.host } } }),
    trigger: "cli",
  });
  return runIds[0] as string;
}

/**
 * Whether docs are at a URL rather than in a folder. Throws bad_request if they are in neither, and if they are at a URL but options are for a
 * folder.
 */
function isDocsUrl(docs: string, { at, host }: SiteOptions): boolean {
  const isUrl = /^https?:\/\//i.test(docs) && URL.canParse(docs);
  if (!isUrl && !statSync(docs, { throwIfNoEntry: false })?.isDirectory())
    throw badRequest(
      `Invalid docs ${JSON.stringify(docs)}: must be an http or https URL, such as https://docs.acme.example, or an existing folder.`,
    );
  if (isUrl && (at !== undefined || host !== undefined))
    throw badRequest("--at and --host are for a folder. Remove them.");
  return isUrl;
}

/** Wraps an agent so that it prints its progress to stderr. */
function withProgress(agent: Agent): Agent {
  return {
    ...agent,
    async *run(task, context) {
      for await (const event of agent.run(task, context)) {
        const line = progressLine(event);
        if (line) sayProgress(line);
        yield event;
      }
    },
  };
}

function progressLine(event: AgentEvent): string | null {
  if (event.type === "message" && event.id !== undefined) return event.text.replace(/^/gm, "  | ");
  if (event.type === "thought" || event.type === "message") return `· ${event.text}`;
  if (event.type === "tool_call" && event.tool === "run_command") return `$ ${event.input.command}`;
  if (event.type === "tool_call" && event.tool === "report_friction") return `! ${event.input.title}`;
  if (event.type === "http" && event.purpose === "task")
    return `  ${event.status ?? event.error?.kind} ${event.url} ${event.ms} ms`;
  if (event.type === "limit")
    return `! limit ${event.near ? "almost reached" : "reached"}: ${event.limit} ${event.value} ${event.unit}`;
  return null;
}

/** Escapes template syntax, because text from the command line has no variables. */
const escapeTemplate = (text: string) => text.replaceAll("{{", "\\{{");
