import { mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { reservedIds } from "../agents/all.ts";
import { presetEntries } from "../agents/coding/presets.ts";
import { findPackage, isPythonScript } from "../agents/coding/program.ts";
import { checkEntries } from "../config/agent-entries.ts";
import { codeOf } from "../db/fault.ts";
import { badRequest, conflict } from "../errors.ts";

/** What could be found out about a program. `help`: what it prints for --help. */
type ProgramHints = {
  command: string;
  path: string | null;
  package: { name: string; version: string } | null;
  /** The folder with the interpreter and the packages of a Python program. */
  environment: string | null;
  help: string;
};

const helpTimeoutMs = 30_000;
const maxHelpChars = 100_000;
const maxSettingsLines = 3;

/** Writes the file NAME.jsonc with the entry of a new agent. Returns its path. Throws an AppError if the file exists, or the name is taken. */
export function initAgent(
  id: string,
  { command = id, from, path }: { command?: string | undefined; from?: string | undefined; path: string },
): string {
  if (reservedIds.has(id)) throw badRequest(`The ID ${id} is used by a built-in agent. Choose another one.`);
  const text = from === undefined ? toEntryText(id, inspectProgram(command, path)) : copyEntry(id, from);
  const file = resolve(`${id}.jsonc`);
  checkEntries(Bun.JSONC.parse(text), file);
  try {
    writeFileSync(file, text, { flag: "wx" });
  } catch (error) {
    if (codeOf(error) === "EEXIST") throw conflict(`The file ${file} exists already.`);
    throw error;
  }
  return file;
}

/** The entry of a built-in agent under another ID. Its revision is replaced by a digest of its fields. */
function copyEntry(id: string, from: string): string {
  const entry = presetEntries.find((each) => each.id === from);
  if (!entry)
    throw badRequest(
      `No built-in agent has the ID ${from}. Use one of ${presetEntries.map((each) => each.id).join(", ")}.`,
    );
  const { revision: _, ...fields } = entry;
  return `// A copy of the entry of ${from}.\n${JSON.stringify({ ...fields, id }, null, 2)}\n`;
}

/** Looks at a program and runs it with --help. */
function inspectProgram(command: string, path: string): ProgramHints {
  const entry = Bun.which(command, { PATH: path });
  if (entry === null) return { command, path: null, package: null, environment: null, help: "" };
  const home = mkdtempSync(join(tmpdir(), "evald-help-"));
  const { stdout, stderr } = Bun.spawnSync([entry, "--help"], {
    env: { PATH: path, HOME: home, TERM: "dumb", NO_COLOR: "1", COLUMNS: "160" },
    cwd: home,
    stdio: ["ignore", "pipe", "pipe"],
    timeout: helpTimeoutMs,
  });
  rmSync(home, { recursive: true, force: true });
  const help = Bun.stripANSI(`${stdout}\n${stderr}`).slice(0, maxHelpChars);
  const realPath = realpathSync(entry);
  const folderAboveBin = /^(.*)\/bin\/[^/]+$/.exec(realPath)?.[1] ?? null;
  const environment = isPythonScript(realPath) ? folderAboveBin : null;
  return { command, path: entry, package: findPackage(realPath), environment, help };
}

const shortLine = (line: string): string => line.trim().replace(/\s+/g, " ").slice(0, 120);

/** The first of `names` that a help text mentions, and the line that mentions it. `names`: options or commands, such as `--yolo` or `exec`. */
function findInHelp(help: string, names: string[]): Hint {
  const lines = help.split("\n");
  for (const name of names) {
    // An option counts anywhere in the text. A command is also a common word, so it only counts where the text lists it.
    const pattern = name.startsWith("-")
      ? new RegExp(`(?:^|[\\s,[|])${name}(?![\\w-])`)
      : new RegExp(`^\\s+(?:[\\w.-]+ )?${name}(?![\\w-])`);
    const line = lines.find((each) => pattern.test(each));
    if (line !== undefined) return { name, line: shortLine(line) };
  }
  return null;
}

/** The first lines of a help text that name a settings file. */
const findSettingsFiles = (help: string): string[] =>
  help
    .split("\n")
    .filter((line) => /[\w-]\.(json|jsonc|ya?ml|toml)\b/.test(line))
    .slice(0, maxSettingsLines)
    .map(shortLine);

/** An option or command in a help text, and the line that mentions it; null: the text mentions none. */
type Hint = { name: string; line: string } | null;

/** The arguments that pass the task. A command such as `exec` comes first. An option such as `--print` comes directly before the task. */
function argsOfHints({ prompt, model, allow }: { prompt: Hint; model: Hint; allow: Hint }): string[] {
  const isOption = prompt?.name.startsWith("-") ?? false;
  const promptWords = prompt === null ? [] : [prompt.name];
  return [
    ...(isOption ? [] : promptWords),
    ...(model ? ["--model", "{model}"] : []),
    ...(allow ? [allow.name] : []),
    ...(isOption ? promptWords : []),
    "{prompt}",
  ];
}

/** The text of an entry, with comments. It contains what the program and its help text suggest, and the other fields to choose from. */
export function toEntryText(
  id: string,
  { command, path, package: npmPackage, environment, help }: ProgramHints,
): string {
  const protocol = findInHelp(help, ["--acp", "acp"]);
  const allow = findInHelp(help, [
    "--dangerously-skip-permissions",
    "--yolo",
    "--allow-all-tools",
    "--allow-all",
    "--auto-approve",
    "--auto",
    "--full-auto",
    "--yes",
  ]);
  const prompt = findInHelp(help, ["--print", "--prompt", "exec", "run"]);
  const model = findInHelp(help, ["--model"]);
  const json = findInHelp(help, ["--output-format", "--format", "--json"]);
  const provider = /ANTHROPIC_(BASE_URL|API_KEY)/.test(help) && !/OPENAI_/.test(help) ? "anthropic" : "openai";
  const [variablePrefix, basePath] = provider === "anthropic" ? ["ANTHROPIC", ""] : ["OPENAI", "/v1"];
  const args = protocol ? [protocol.name] : argsOfHints({ prompt, model, allow });
  const hints = [
    ...[prompt, model, allow, json, protocol].flatMap((hint) => hint?.line ?? []),
    ...findSettingsFiles(help),
  ];
  const lines = [
    "// A coding agent for evald. Lines that begin with // are comments; remove them from the fields that you need.",
    "{",
    `  "id": ${JSON.stringify(id)},`,
    path === null ? `  // ${command} is not on PATH: install it, or write its absolute path.` : `  // ${path}`,
    `  "command": ${JSON.stringify(command)},`,
    ...(npmPackage
      ? [
          `  "package": ${JSON.stringify(npmPackage.name)},`,
          `  "testedVersions": [${JSON.stringify(npmPackage.version)}],`,
        ]
      : []),
    "",
    "  // The provider whose protocol it speaks: anthropic, openai, google or openai-compatible.",
    `  "provider": "${provider}",`,
    "  // What it writes to stdout: acp, the JSON of claude, codex, gemini, opencode, copilot or pi, or none for text.",
    `  "stream": "${protocol ? "acp" : "none"}",`,
    "",
    ...(hints.length > 0
      ? ["  // From its help, which is only a hint:", ...hints.map((line) => `  //   ${line}`)]
      : []),
    protocol
      ? "  // The task is sent over ACP."
      : "  // {prompt} is the task, {promptFile} the path of a file with it. Without either, the task is sent to stdin.",
    `  "args": ${JSON.stringify(args).replaceAll(",", ", ")},`,
    "",
    "  // The gateway of its model. The token works only during the run.",
    '  "env": {',
    `    "${variablePrefix}_BASE_URL": "{gateway}/${provider}${basePath}",`,
    `    "${variablePrefix}_API_KEY": "{token}",`,
    "  },",
    "",
    "  // Files in its home directory, if it reads its model from there. Text, lines of text, or an object that is written as JSON.",
    "  // They also answer what it asks at its first start, such as whether to trust the folder /workspace, and allow its tools.",
    '  // "files": { ".config/agent.json": { "model": "{model}", "baseUrl": "{gateway}/{provider}/v1", "apiKey": "{token}" } },',
    "",
    "  // Further files and folders of this machine that it can read. A program of npm can read all packages beside it, any other program only itself.",
    environment === null ? '  // "mounts": ["/opt/agent"],' : `  "mounts": [${JSON.stringify(environment)}],`,
    "",
    "  // What its tools do: run_command, fetch_page, write_file, read_file or list_files.",
    '  // "tools": { "terminal": "run_command" },',
    "  // How its result of a command ends that failed. The group is the exit code.",
    '  // "exitCode": "exit status (\\\\d+)",',
    "",
    "  // Where it reads instructions and skills, and its memory in MiB.",
    '  // "contextFile": "AGENTS.md",',
    '  // "skillsFolder": ".agents/skills",',
    '  // "memoryMb": 1024,',
    "",
    "  // How it gets MCP servers, unless over ACP: the file and its format, and how its names of their tools begin.",
    '  // "mcp": { "file": ".agent/mcp.json", "format": "claude", "args": ["--mcp-config", "{home}/.agent/mcp.json"], "toolPrefix": "mcp__{server}__" },',
    "",
    "  // Hosts of its vendor that it needs to start, and those that it works without.",
    '  // "hosts": ["api.example.com"],',
    '  // "blockedHosts": ["telemetry.example.com"],',
    "}",
  ];
  return `${lines.join("\n")}\n`;
}
