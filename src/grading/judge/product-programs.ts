import type { SessionEvent } from "../../agents/agent.ts";
import { programOf } from "../actions/shell.ts";
import { type EventOf, type Http, hasSucceeded, milestonesOf } from "../events.ts";
import { valueTextsIn } from "../text.ts";
import { type PlainCommand, plainCommandsOf } from "./plain-commands.ts";
import { lettersAndDigitsOf } from "./repetition.ts";

/** Programs that print nothing, and change no file. */
const silentPrograms = new Set("cd mkdir true sleep".split(" "));
/** Programs that show what is there, and change nothing. */
const viewers = new Set("pwd ls cat head tail grep wc which".split(" "));
/** Programs that pass on what they are given and add nothing. */
const filters = new Set("cat head tail grep sort".split(" "));

/** Tools that write no files; what commands write is known from their words. */
const harmlessTools = new Set(
  "run_command read_file list_files fetch_page search_docs http_request browse ask_human report_friction finish".split(
    " ",
  ),
);

/** A path of installed packages, or of what configures programs. */
const protectedPath = /^[^\n]{0,300}(?:^|\/)(?:node_modules|site-packages|dist-packages|vendor|\.[\w-]+)(?:\/[^\n]*)?$/;

/** Programs that install a package and run it. */
const packageRunners = new Set("npx pnpx bunx uvx".split(" "));

const isOption = (word: string) => word.startsWith("-");
/** The words of a command without its options: its program, its subcommand and other operands, and values after options. */
export const withoutOptions = (words: string[]): string[] => words.filter((word) => !isOption(word));
/** `acme` of `acme@1.2`, `@acme/cli` of `@acme/cli@1`, `acme` of `acme==1.2`. */
const withoutVersion = (name: string) => name.replace(/(?<=.)@[\w.^~-]+$|[=~<>]=.*$/, "");
/** Whether a command asks a program for its help or version, or to change nothing. */
const provesNothing = (words: string[]) =>
  words.some((word) => /^(?:-h|-V|-v|-*help|-*version)$|dry-?run|what-?if/i.test(word));
const deletes = (words: string[]) =>
  words.some((word) => /^(?:rm|remove|delete|del|destroy|drop|purge|uninstall)$/i.test(word));

/** A run of the product's own program, or the reading of a file that such a program made. `words`: the words of the command, or the path. */
type ProgramRun = { seq: number; output: string; words: string[]; deletes: boolean };

/**
 * What a command of an agent did. A run: only the product's programs wrote its output. `harmless`: it proves nothing, and changed no program.
 * `unknown`: it may have changed programs.
 */
type CommandEffect = ProgramRun | "harmless" | "unknown";

/** What is known of a session's machine so far. */
type Machine = {
  /** Words of the lines of the docs that were read. */
  docsLines: string[][];
  /** Packages that the setup of the workspace got, or that the docs name and a command fetched. */
  packages: Set<string>;
  /** Programs that installed packages. */
  installers: Set<string>;
  /** Texts that the agent wrote into files, and their paths. */
  agentTexts: string[];
  /** Words that the product's programs got or printed, such as the names of files that they made. */
  productWords: Set<string>;
  /** A command ran that isn't known to be harmless, so any program may be the agent's from here on. */
  mayBeTampered: boolean;
};

/** The words of the lines of a page, and of the code in them. */
export const wordsByLine = (text: string): string[][] =>
  text
    .split("\n")
    .flatMap((line) => [line, ...[...line.matchAll(/`([^`]+)`/g)].map(([, code = ""]) => code)])
    .map((line) =>
      line
        .trim()
        .replace(/^[$>%#]\s+/, "")
        .split(/\s+/),
    );

/** Whether the docs show a command with this program and subcommand. */
export const isDocumented = (docsLines: string[][], [program, subcommand]: string[]): boolean =>
  subcommand !== undefined && docsLines.some((line) => line[0] === program && withoutOptions(line)[1] === subcommand);

/** Whether a program belongs to a package: its name is the name of the package, or begins a part of it. */
const isOfPackage = (program: string, name: string) => {
  const parts = name.split(/[@/_-]/).map(lettersAndDigitsOf);
  return program.length > 1 && parts.some((part) => part !== "" && part.startsWith(lettersAndDigitsOf(program)));
};

function isProductProgram(machine: Machine, words: string[]): boolean {
  const command = withoutOptions(words);
  const [program = "", subcommand = ""] = command;
  const fileName = programOf(command);
  // A file that is named like a program may be it, or what it loads when it starts.
  const isAgentsFile = machine.agentTexts.some((path) => path.replace(/^.*\//s, "").startsWith(fileName));
  if (isAgentsFile || machine.mayBeTampered || machine.installers.has(program)) return false;
  if (!isDocumented(machine.docsLines, command)) return false;
  return [...machine.packages].some((name) => isOfPackage(program, name) || withoutVersion(subcommand) === name);
}

/** The packages that a command installs as the docs say: the docs show its program with each of them in one line. Otherwise none. */
function packagesOf({ docsLines, agentTexts }: Machine, words: string[]): string[] {
  // An option such as --registry=URL may get them from elsewhere.
  const isInDocs = (option: string) => docsLines.some((line) => line.includes(option));
  if (words.some((word) => isOption(word) && word.includes("=") && !isInDocs(word))) return [];
  const [program, _subcommand, ...names] = withoutOptions(words);
  const isFileOrUrl = (name: string) => /^[./~]|^\w+:/.test(name);
  const mayBeAgents = (name: string) => isFileOrUrl(name) || agentTexts.some((text) => text.includes(name));
  const isNamedByDocs = (name: string) =>
    docsLines.some((line) => line[0] === program && line.slice(1).some((word) => withoutVersion(word) === name));
  const packages = names.map(withoutVersion);
  return packages.every((name) => isNamedByDocs(name) && !mayBeAgents(name)) ? packages : [];
}

/** The packages that the commands of a workspace's setup install. The author of the prompt names them, so they don't have to be in the docs. */
const packagesOfSetup = (command: string): string[] =>
  (plainCommandsOf(command) ?? []).flatMap(({ words }) => withoutOptions(words).slice(2).map(withoutVersion));

/** The package that a command such as `npx acme-cli init` gets and runs. */
const runPackageOf = (machine: Machine, words: string[]): string[] => {
  const [program = "", name = ""] = withoutOptions(words);
  return packageRunners.has(program) && isDocumented(machine.docsLines, [program, name]) ? [withoutVersion(name)] : [];
};

/** Whether the operands of a program, or the values of its options, name a file that the agent wrote, which the program may run. */
const namesAgentsFile = ({ agentTexts }: Machine, words: string[]) =>
  words
    .slice(1)
    .flatMap((word) => [word, word.replace(/^[^=]*=/, "")])
    .some((word) => agentTexts.some((path) => path === word || path.endsWith(`/${word}`)));

/** Whether a program of the product made a file: its command or output named the file, and nothing else could have written it. */
const isProductFile = ({ productWords, agentTexts, mayBeTampered }: Machine, path: string) =>
  !mayBeTampered && productWords.has(path) && !agentTexts.some((text) => text.includes(path));

/** A file of the product that a tool read; null if it is another file. */
function productFileOf(machine: Machine, { seq, output, ok }: EventOf<"tool_result">): ProgramRun | null {
  const path = String(output?.path ?? "").replace(/^\/workspace\//, "");
  if (!ok || !isProductFile(machine, path)) return null;
  return { seq, output: String(output?.text ?? ""), words: [path], deletes: false };
}

/**
 * The runs of the product's own programs, by the ID of their call. The agent installed them as the docs say, and ran nothing before that could have
 * replaced them. Their output counts only where nothing else wrote to it. `docsTextsIn`: the texts of the docs in an event.
 */
export function programRunsOf(
  session: SessionEvent[],
  docsTextsIn: (event: SessionEvent) => string[],
): Map<string, ProgramRun> {
  const { env: variables = [], setup = null } = milestonesOf(session, "workspace_prepared").at(-1)?.detail ?? {};
  const machine: Machine = {
    docsLines: [],
    packages: new Set(setup?.exitCode === 0 ? packagesOfSetup(setup.command) : []),
    installers: new Set(),
    agentTexts: [],
    productWords: new Set(),
    mayBeTampered: false,
  };
  const calls = new Map(session.flatMap((e) => (e.type === "tool_call" ? [[e.id, e] as const] : [])));
  const requests = Map.groupBy(
    session.filter((event): event is Http => event.type === "http"),
    ({ id }) => id,
  );
  const hasFetched = ({ id }: EventOf<"tool_result">) =>
    (requests.get(id) ?? []).some(({ status }) => status !== null && status < 300);
  const runs = new Map<string, ProgramRun>();
  for (const event of session) {
    machine.docsLines.push(...docsTextsIn(event).flatMap(wordsByLine));
    if (event.type === "tool_call" && !harmlessTools.has(event.tool)) {
      machine.agentTexts.push(...valueTextsIn(event.input));
      machine.mayBeTampered ||= valueTextsIn(event.input).some((text) => protectedPath.test(text));
    }
    if (event.type !== "tool_result") continue;
    const file = event.tool === "read_file" ? productFileOf(machine, event) : null;
    if (file) runs.set(event.id, file);
    if (event.tool !== "run_command") continue;
    const command = calls.get(event.id)?.input.command;
    const commands = typeof command === "string" ? plainCommandsOf(command, variables) : null;
    const effect = commands === null ? "unknown" : applyCommands(machine, commands, event, hasFetched(event));
    if (effect === "unknown") machine.mayBeTampered = true;
    else if (effect !== "harmless") {
      runs.set(event.id, effect);
      for (const word of [...effect.words, ...effect.output.split(/[\s"'`()]+/)])
        machine.productWords.add(word.replace(/[.,:]$/, ""));
    }
  }
  return runs;
}

/** Adds to `machine` what a line of plain commands installed, and returns what it did. `hasFetched`: it got something from the network. */
function applyCommands(
  machine: Machine,
  commands: PlainCommand[],
  result: EventOf<"tool_result">,
  hasFetched: boolean,
): CommandEffect {
  const productWords: string[] = [];
  // Whether the output proves nothing: others than the product may have written to it, or its program did nothing.
  let isNoProof = false;
  for (const command of commands) {
    const [program = "", ...operands] = command.words;
    if (hasFetched) for (const name of runPackageOf(machine, command.words)) machine.packages.add(name);
    const showsProductFiles =
      program === "cat" && operands.length > 0 && operands.every((path) => isProductFile(machine, path));
    if (isProductProgram(machine, command.words) && !command.isPiped) {
      productWords.push(...command.words);
      isNoProof ||= provesNothing(command.words) || namesAgentsFile(machine, command.words);
    } else if (showsProductFiles) {
      productWords.push(...operands);
    } else if (viewers.has(program)) {
      isNoProof ||= !(command.isPiped && filters.has(program));
    } else if (!silentPrograms.has(program)) {
      const packages = packagesOf(machine, command.words);
      if (packages.length === 0 || !hasFetched) return "unknown";
      for (const name of packages) machine.packages.add(name);
      machine.installers.add(program);
      isNoProof = true;
    }
  }
  if (isNoProof || productWords.length === 0 || !hasSucceeded(result)) return "harmless";
  const { stdout, stderr, text } = result.output ?? {};
  const output = valueTextsIn([stdout, stderr, text]).join("\n");
  return { seq: result.seq, output, words: productWords, deletes: deletes(productWords) };
}
