import { Command, CommanderError } from "commander";
import { version } from "../../package.json" with { type: "json" };
import { createAgentStandby, createChildAgents, passedEnvOf } from "../agents/all.ts";
import { type Config, readConfig } from "../config/config.ts";
import { withSecretFiles } from "../config/secret-files.ts";
import { diskFault } from "../db/fault.ts";
import { toPrintable } from "../log.ts";
import { addAgents } from "./agents.ts";
import { addApiRequest } from "./api-request.ts";
import { addArchive } from "./archive.ts";
import { addAudit } from "./audit.ts";
import { addBackup } from "./backup.ts";
import { addBackups } from "./backups.ts";
import { addBisect } from "./bisect.ts";
import { addCalibrate } from "./calibrate.ts";
import { addCancel } from "./cancel.ts";
import { addCompletion } from "./completion.ts";
import { createUseApi } from "./connection.ts";
import { addDeletions, addRunDelete } from "./deletion.ts";
import { addDestination } from "./destination.ts";
import { addDoctor } from "./doctor.ts";
import { addEval } from "./eval.ts";
import { addExperiment } from "./experiment.ts";
import { addExport } from "./export.ts";
import { addField } from "./field.ts";
import { addFriction } from "./friction.ts";
import { addGate } from "./gate.ts";
import { addHealth } from "./health.ts";
import { addImport } from "./import.ts";
import { addInbox } from "./inbox.ts";
import { addJq, useJq } from "./jq.ts";
import { addKey } from "./key.ts";
import { addMatrix } from "./matrix.ts";
import { addModel } from "./model.ts";
import { addOpen } from "./open.ts";
import { addOrg } from "./org.ts";
import { addPerson } from "./person.ts";
import { addPrompt } from "./prompt.ts";
import { addProvider } from "./provider.ts";
import { addQueue } from "./queue.ts";
import { addRegrade } from "./regrade.ts";
import { addReport } from "./report.ts";
import { addRerun } from "./rerun.ts";
import { addRestore } from "./restore.ts";
import { addRun } from "./run.ts";
import { addRuns } from "./runs.ts";
import { addSchedule } from "./schedule.ts";
import { addSecret } from "./secret.ts";
import { addServe, type ServeOverrides } from "./serve.ts";
import { addSpending } from "./spending.ts";
import { addStack } from "./stack.ts";
import { addSuite } from "./suite.ts";
import { closeStdout, endOnStdoutError, exitOf, exits, print, sayFailure, toFailure, toJson } from "./terminal.ts";
import { widthOf, wrapText } from "./text-layout.ts";
import { addTrace } from "./trace.ts";
import { addTrends } from "./trends.ts";
import { addTrust } from "./trust.ts";
import { addUpgrade } from "./upgrade.ts";
import { addVerify } from "./verify.ts";
import { addWhoami } from "./whoami.ts";
import { addWhy } from "./why.ts";
import { addWorker } from "./worker.ts";
import { addWorkers } from "./workers.ts";

/** The options that set a setting, by the name of the setting. */
const settingOptions = {
  EVALD_DATA_DIR: "--data",
  EVALD_PORT: "--port",
  EVALD_HOST: "--host",
  EVALD_GATEWAY_URL: "--gateway",
  EVALD_WORKER_LABELS: "--labels",
  EVALD_CONCURRENCY: "--slots",
};

/** Variables of clients such as evald run and curl. They aren't settings of the service. */
const clientVariables = ["EVALD_URL", "EVALD_KEY", "EVALD_ID_TOKEN", "EVALD_ORG"];

/** What the commands need when they are created. */
type CommandContext = {
  configOf: (optionSettings?: Record<string, string>) => Config;
  agents: ServeOverrides["agents"];
  env: Record<string, string | undefined>;
  connection: Parameters<typeof createUseApi>[0];
  useApi: ReturnType<typeof createUseApi>;
  serveOverrides: ServeOverrides;
};

/** The function that adds each command to a program, by the name of the command, in the order of the help. */
const commands: Record<string, (program: Command, context: CommandContext) => void> = {
  serve: (program, { configOf, serveOverrides }) => addServe(program, configOf, serveOverrides),
  worker: (program, { configOf, serveOverrides }) => addWorker(program, configOf, serveOverrides),
  workers: (program, { configOf }) => addWorkers(program, configOf),
  eval: (program, { configOf, agents }) => addEval(program, configOf, agents),
  run: (program, { useApi }) => addRun(program, useApi),
  gate: (program, { useApi }) => addGate(program, useApi),
  report: (program, { useApi }) => addReport(program, useApi),
  trace: (program, { useApi }) => addTrace(program, useApi),
  runs: (program, { useApi }) => addRuns(program, useApi),
  rerun: (program, { useApi }) => addRerun(program, useApi),
  cancel: (program, { useApi }) => addCancel(program, useApi),
  inbox: (program, { useApi }) => addInbox(program, useApi),
  why: (program, { useApi }) => addWhy(program, useApi),
  friction: (program, { useApi }) => addFriction(program, useApi),
  field: (program, { configOf, useApi, env }) => addField(program, configOf, useApi, env),
  trends: (program, { useApi }) => addTrends(program, useApi),
  open: (program, { connection, useApi }) => addOpen(program, connection, useApi),
  api: (program, { useApi }) => addApiRequest(program, useApi),
  whoami: (program, { useApi }) => addWhoami(program, useApi),
  org: (program, { configOf }) => addOrg(program, configOf),
  key: (program, { configOf }) => addKey(program, configOf),
  person: (program, { configOf }) => addPerson(program, configOf),
  prompt: (program, { useApi }) => addPrompt(program, useApi),
  delete: (program, { useApi }) => addRunDelete(program, useApi),
  deletions: (program, { useApi }) => addDeletions(program, useApi),
  provider: (program, { useApi }) => addProvider(program, useApi),
  spending: (program, { useApi }) => addSpending(program, useApi),
  matrix: (program, { useApi }) => addMatrix(program, useApi),
  suite: (program, { useApi }) => addSuite(program, useApi),
  experiment: (program, { useApi }) => addExperiment(program, useApi),
  bisect: (program, { useApi }) => addBisect(program, useApi),
  calibrate: (program, { useApi }) => addCalibrate(program, useApi),
  trust: (program, { useApi }) => addTrust(program, useApi),
  secret: (program, { useApi }) => addSecret(program, useApi),
  schedule: (program, { useApi }) => addSchedule(program, useApi),
  queue: (program, { useApi }) => addQueue(program, useApi),
  archive: (program, { useApi }) => addArchive(program, useApi),
  model: (program, { configOf }) => addModel(program, configOf),
  destination: (program, { useApi }) => addDestination(program, useApi),
  agent: (program, { configOf, agents, env }) => addAgents(program, configOf, agents, env),
  backup: (program, { configOf }) => addBackup(program, configOf),
  backups: (program, { configOf, env }) => addBackups(program, configOf, env),
  restore: (program, { configOf, env }) => addRestore(program, configOf, env),
  regrade: (program, { useApi }) => addRegrade(program, useApi),
  audit: (program, { configOf, useApi }) => addAudit(program, configOf, useApi),
  export: (program, { configOf, useApi }) => addExport(program, configOf, useApi),
  import: (program, { configOf }) => addImport(program, configOf),
  verify: (program, { configOf }) => addVerify(program, configOf),
  doctor: (program, { configOf, env }) => addDoctor(program, configOf, env),
  health: (program, { configOf }) => addHealth(program, configOf),
  upgrade: addUpgrade,
  stack: addStack,
  completion: (program, { env }) => addCompletion(program, () => createProgram(env)),
};

/**
 * A program with every command and its options. `name`: creates only the command of this name, if it exists, because creating all of them takes 10
 * ms.
 */
export function createProgram(
  env: Record<string, string | undefined>,
  overrides: Partial<ServeOverrides> = {},
  name = "",
): Command {
  const program = new Command("evald")
    .description("Measures how well AI agents can use a developer tool.")
    .version(
      version,
      "-V, --version",
      "Print the version; with --json also the commit, runtime, platform and how evald was installed",
    )
    .option("--data <dir>", "Data directory (default: EVALD_DATA_DIR, else ./data)")
    .helpOption("-h, --help", "Show help")
    .configureHelp({ showGlobalOptions: true, minWidthToWrap: 20 })
    .configureOutput({
      writeOut: (text) => process.stdout.write(wrapHelp(toPrintable(text))),
      writeErr: (text) => process.stderr.write(toPrintable(text)),
    })
    .exitOverride();
  const dataOf = () => program.opts<{ data?: string }>().data;
  /** `optionSettings`: the settings that options of the command give. */
  const configOf = (optionSettings: Record<string, string> = {}): Config => {
    const data = dataOf();
    const settings = Object.fromEntries(Object.entries(env).filter(([key]) => !clientVariables.includes(key)));
    const setByOptions = { ...optionSettings, ...(data !== undefined && { EVALD_DATA_DIR: data }) };
    const givenOptions = Object.fromEntries(Object.entries(settingOptions).filter(([key]) => key in setByOptions));
    return readConfig({ ...settings, ...setByOptions }, givenOptions);
  };
  const standby = createAgentStandby(env);
  const { agents = createChildAgents(env, standby), ...otherOverrides } = overrides;
  const connection = { configOf, agents, env, hasData: () => dataOf() !== undefined };
  const useApi = createUseApi(connection);
  // Standby processes have only the built-in agents of evald.
  const serveOverrides = {
    agents,
    backupEnv: passedEnvOf(env),
    ...(overrides.agents === undefined && { standby }),
    ...otherOverrides,
  };
  const context = { configOf, agents, env, connection, useApi, serveOverrides };
  const names = Object.hasOwn(commands, name) ? [name] : Object.keys(commands);
  for (const each of names) commands[each]?.(program, context);
  addJq(program);
  for (const each of [program, ...program.commands])
    if (each.commands.length > 0) each.helpCommand("help [command]", "Show help for a command");
  return program;
}

const maxColumns = 80;

/** Wraps the help to at most 80 columns. Commander wraps its lists, but not sentences and examples. */
export const wrapHelp = (text: string): string => text.split("\n").flatMap(wrapHelpLine).join("\n");

/**
 * Wraps one line. A command continues after a backslash, and quoted text in it stays on one line. If the terminal is too narrow for an option or
 * command and its description, the description goes below it.
 */
function wrapHelpLine(line: string): string[] {
  const columns = Math.min(maxColumns, process.stdout.columns ?? maxColumns);
  if (widthOf(line) <= columns) return [line];
  const [indent = ""] = /^ */.exec(line) ?? [];
  const isCommand = /^ +evald /.test(line);
  if (isCommand)
    return wrapText(line, columns, { first: indent, indent: `${indent}  `, word: /("[^"]*"|\S)+/g, mark: " \\" });
  // Such as `  --json  Print the list as JSON`.
  const [, term, description] = /^ +(\S.*?) {2,}(\S.*)$/.exec(line) ?? [];
  return term === undefined || description === undefined
    ? wrapText(line, columns, { first: indent })
    : [indent + term, ...wrapText(description, columns, { first: `${indent}    ` })];
}

/** What `evald` without arguments prints: where to start. The full list of commands would be too long. */
const introduction = `evald measures how well AI agents can use a developer tool.

Start with one of these:
  evald serve        Run the service: web pages, API and an example report
  evald eval <url>   Evaluate the docs at a URL in this terminal; nothing is stored
  evald help         List all commands

Add --help to a command for its options.`;

/** Commands that run until they are stopped. */
const services = new Set(["serve", "worker"]);

/** Runs the command line and returns one of the `exits`. */
export async function runProgram(
  argv: string[],
  env: Record<string, string | undefined>,
  overrides: Partial<ServeOverrides> = {},
): Promise<number> {
  let isService = false;
  endOnStdoutError(() => isService);
  const code = await runCommand(argv, () => {
    const program = createProgram(withSecretFiles(env), overrides, argv[0]);
    return program.hook("preAction", async (_, command) => {
      isService = services.has(command.name());
      await useJq(command);
    });
  });
  if (code !== exits.passed) await closeStdout();
  return code;
}

/**
 * Replaces `help` by `--help` at the end of the command that it is about. Commander's own `help` knows only the first level: for `help prompt
 * create`, it shows the help of `prompt`, and for `help nope`, the help of the program. For an unknown command, `help` is only removed, so that
 * Commander reports the command and suggests another one.
 */
function withHelpOption(program: Command, argv: string[]): string[] {
  let command: Command | undefined = program;
  for (const [i, word] of argv.entries()) {
    if (word === "help" && command.commands.length > 0) {
      const names = argv.slice(i + 1).filter((name) => !name.startsWith("-"));
      const path = findPath(command, names);
      return path ? [...argv.slice(0, i), ...path, "--help"] : argv.toSpliced(i, 1);
    }
    command = command.commands.find((each) => each.name() === word);
    if (!command) return argv;
  }
  return argv;
}

/** The names of the commands, up to the first that has no subcommands; null: there is no such command. */
function findPath(program: Command, names: readonly string[]): string[] | null {
  const path: string[] = [];
  let command = program;
  for (const name of names) {
    if (command.commands.length === 0) break;
    const next = command.commands.find((each) => each.name() === name);
    if (!next) return null;
    path.push(name);
    command = next;
  }
  return path;
}

async function runCommand(argv: string[], create: () => Command): Promise<number> {
  try {
    if (argv.length === 0) {
      print(introduction);
      return exits.passed;
    }
    const program = create();
    await program.parseAsync(withHelpOption(program, argv), { from: "user" });
    return Number(process.exitCode ?? 0);
  } catch (error) {
    const json = argv.includes("--json");
    if (error instanceof CommanderError) {
      if (error.exitCode === 0) return 0;
      // Commander has written its message to stderr.
      const detail = error.message.replace(/^error: /, "");
      if (json) print(toJson({ error: "bad_request", detail }, 2));
      return exits.usage;
    }
    const { error: code, detail } = toFailure(error);
    const remedy = diskFault(error) === "full" ? ". Free some space in the data directory, or make it writable." : "";
    sayFailure({ error: code, detail: detail + remedy }, json);
    return exitOf(error);
  }
}
