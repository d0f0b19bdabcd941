import { type Command, Option } from "commander";
import type { Agent, AgentEvent } from "../agents/agent.ts";
import type { Config } from "../config/config.ts";
import { secretsIn } from "../config/model-settings.ts";
import { closeDb, openDb } from "../db/open.ts";
import { badRequest } from "../errors.ts";
import type { Scope } from "../grading/grade.ts";
import { scopes } from "../grading/kinds.ts";
import { createCommandLog } from "../log.ts";
import { scoreSummary } from "../reports/labels.ts";
import { reportMarkdown } from "../reports/markdown.ts";
import type { Report } from "../reports/schema.ts";
import { describeEstimate } from "../runs/estimates.ts";
import { createService } from "../service.ts";
import { print, say, sayError, score, toAllowRule, toOwnUrl } from "./terminal.ts";

type EvalOptions = {
  goal: string;
  task?: string;
  agent?: string;
  model?: string;
  json?: boolean;
  minScore?: number;
  scope: Scope;
};

/** Adds `eval`: one evaluation in this terminal, without storing anything. */
export function addEval(program: Command, configOf: () => Config, agents: Record<string, Agent>): void {
  program
    .command("eval <url>")
    .description("Evaluate the docs at a URL in this terminal; nothing is stored")
    .requiredOption("--goal <goal>", "What a developer wants to achieve with the tool")
    .option("--task <text>", "Task for the agent (default: the goal)")
    .option("--agent <id>", `Agent to use: ${Object.keys(agents).join(", ")}`)
    .option("--model <id>", "Model of the agent, such as anthropic/claude-opus-4-8 (default: EVALD_AGENT_MODEL)")
    .option("--json", "Print the report as JSON")
    .option("--min-score <n>", "Exit with 1 if the score is lower, and with 3 if it has another scope", score)
    .addOption(
      new Option("--scope <scope>", "Scope of the score that --min-score checks").choices(scopes).default("goal"),
    )
    .addHelpText(
      "after",
      '\nExamples:\n  evald eval https://docs.acme.example --goal "Upload a file with the Python SDK"\n  evald eval http://localhost:8000 --goal "Run a first query" --json --min-score 80 --scope docs_only',
    )
    .action(async (url: string, options: EvalOptions) => {
      process.exitCode = await evaluate(configOf(), agents, url, options);
    });
}

async function evaluate(
  config: Config,
  available: Record<string, Agent>,
  url: string,
  { goal, task, agent, model, json, minScore, scope }: EvalOptions,
): Promise<number> {
  if (!/^https?:\/\//i.test(url) || !URL.canParse(url))
    throw badRequest(
      `Invalid URL ${JSON.stringify(url)}: must be an http or https URL, such as https://docs.acme.example.`,
    );
  if (goal.trim() === "") throw badRequest("Invalid value for --goal: must not be empty.");

  const db = openDb(":memory:");
  const agents = Object.fromEntries(Object.entries(available).map(([id, each]) => [id, withProgress(each)]));
  const service = createService({
    db,
    config,
    log: createCommandLog(config, secretsIn(config.modelPlaces)),
    agents,
    baseUrl: () => config.baseUrl ?? toOwnUrl(config),
    alsoAllow: () => [toAllowRule(url)],
    // Shorter than for a service, since a person is waiting.
    backoffMs: () => 500,
    maxRetryAfterMs: 10_000,
  });
  const org = service.orgs.createOrg("This terminal").id;
  const provider = service.providers.createProvider(org, { name: new URL(url).hostname, docsUrl: url });
  const prompt = service.prompts.createPrompt(org, {
    title: goal.slice(0, 200),
    text: literal(task ?? goal),
    endGoal: literal(goal),
    targetProviderId: provider.id,
    agent,
    model,
  });
  say(`Estimate: ${describeEstimate(await service.estimates.getEstimate(org, prompt.id))}`);
  const { runIds } = await service.requests.requestEval(org, prompt.id, { urlMap: {}, trigger: "cli" });
  const runId = runIds[0] as string;
  await service.start();
  const stop = async (code: number) => {
    await service.stop(0);
    process.exit(code);
  };
  process.once("SIGINT", () => stop(130));
  process.once("SIGTERM", () => stop(143));
  while (service.runs.getRun(org, runId).completedAt === null) await Bun.sleep(20);
  await service.stop(0);
  const run = service.runs.getRun(org, runId);
  const report = run.report ? service.reports.getReport(org, run.report.slug) : null;
  closeDb(db);

  if (!report) {
    sayError(`The run failed: ${run.failureReason}`);
    return 1;
  }
  print(json ? JSON.stringify(report, null, 2) : reportMarkdown(report, { kept: false }));
  return minScore === undefined ? 0 : checkMinScore(report, minScore, scope);
}

/** The exit code: 0 from the minimum up, 1 below it, 3 if there is no score of this scope. */
function checkMinScore(report: Report, minScore: number, scope: Scope): number {
  const { score, nullNotice } = report;
  if (score === null) {
    sayError(`No score: ${nullNotice}`);
    return 3;
  }
  if (report.scope !== scope) {
    sayError(
      `Cannot check --min-score: it applies to scores of scope ${scope}, and this report has scope ${report.scope} (${scoreSummary(report)}). Pass --scope ${report.scope} to accept it.`,
    );
    return 3;
  }
  if (score >= minScore) return 0;
  sayError(`The score ${score} is below the minimum of ${minScore}.`);
  return 1;
}

/** Wraps an agent so that it prints its progress to stderr. */
function withProgress(agent: Agent): Agent {
  return {
    ...agent,
    async *run(task, context) {
      for await (const event of agent.run(task, context)) {
        const line = progressLine(event);
        if (line) say(line);
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

/** Escapes template syntax: texts of the command line have no variables. */
const literal = (text: string) => text.replaceAll("{{", "\\{{");
