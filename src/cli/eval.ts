import type { Command } from "commander";
import type { Agent, AgentEvent } from "../agents/agent.ts";
import type { Config } from "../config.ts";
import { closeDb, openDb } from "../db/open.ts";
import { badRequest } from "../errors.ts";
import { createLog } from "../log.ts";
import { secretsIn } from "../modelsettings.ts";
import type { Report } from "../reports/schema.ts";
import { estimateWords } from "../runs/estimates.ts";
import { createService } from "../service.ts";
import { reportMarkdown } from "../web/markdown.ts";
import { print, say, score, toOwnUrl, toPlace } from "./terminal.ts";

type EvalOptions = { goal: string; task?: string; agent?: string; model?: string; json?: boolean; minScore?: number };

/** Adds `eval`: one evaluation in this terminal, of which nothing is kept. */
export function addEval(program: Command, configOf: () => Config, agents: Record<string, Agent>): void {
  program
    .command("eval <url>")
    .description("evaluate the documentation at an address here and now; nothing is kept")
    .requiredOption("--goal <goal>", "what a developer wants to reach with the tool")
    .option("--task <text>", "the task that the agent is given (default: the goal)")
    .option("--agent <id>", `the agent to send: ${Object.keys(agents).join(", ")}`)
    .option("--model <id>", "its model, as in anthropic/claude-opus-4-8 (default: EVALD_AGENT_MODEL)")
    .option("--json", "print the report as JSON")
    .option("--min-score <n>", "exit with 1 if the score is below", score)
    .addHelpText(
      "after",
      '\nExamples:\n  evald eval https://docs.acme.example --goal "Upload a file with the Python SDK"\n  evald eval http://localhost:8000 --goal "Run a first query" --json --min-score 80',
    )
    .action(async (url: string, options: EvalOptions) => {
      process.exitCode = await evaluate(configOf(), agents, url, options);
    });
}

async function evaluate(
  config: Config,
  ofProgram: Record<string, Agent>,
  url: string,
  { goal, task, agent, model, json, minScore }: EvalOptions,
): Promise<number> {
  if (!/^https?:\/\//i.test(url) || !URL.canParse(url))
    throw badRequest(`${JSON.stringify(url)} must be an http or https address, as in https://docs.acme.example`);
  if (goal.trim() === "") throw badRequest("--goal must say what a developer wants to reach");

  const db = openDb(":memory:");
  const agents = Object.fromEntries(Object.entries(ofProgram).map(([id, one]) => [id, tell(one)]));
  const service = createService({
    db,
    config,
    log: createLog(config.logLevel === "info" ? "silent" : config.logLevel, secretsIn(config.modelPlaces)),
    agents,
    baseUrl: () => config.baseUrl ?? toOwnUrl(config),
    alsoAllow: () => [toPlace(url)],
    // Somebody waits.
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
  say(`estimate: ${estimateWords(await service.estimates.getEstimate(org, prompt.id))}`);
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
    say(`evald: no report: ${run.failureReason}`);
    return 1;
  }
  print(json ? JSON.stringify(report, null, 2) : reportMarkdown(report, { kept: false }));
  return meets(report, minScore) ? 0 : 1;
}

function meets({ score, nullNotice }: Report, minScore: number | undefined): boolean {
  if (minScore === undefined || (score !== null && score >= minScore)) return true;
  say(score === null ? `evald: there is no score: ${nullNotice}` : `evald: the score ${score} is below ${minScore}`);
  return false;
}

/** An agent that tells on stderr what it does while it does it. */
function tell(agent: Agent): Agent {
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
  if (event.type === "http" && event.purpose === "way")
    return `  ${event.status ?? event.error?.kind} ${event.url} ${event.ms} ms`;
  if (event.type === "limit")
    return `! limit ${event.near ? "near" : "reached"}: ${event.limit} ${event.value} ${event.unit}`;
  return null;
}

/** A text of the command line has no variables. */
const literal = (text: string) => text.replaceAll("{{", "\\{{");
