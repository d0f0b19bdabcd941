import type { SessionEvent } from "../../agents/agent.ts";
import { type EventOf, type Http, hasSucceeded, milestonesOf } from "../events.ts";
import { type PlainCommand, plainCommandsOf } from "./plain-commands.ts";
import { valueTextsIn } from "./product-answers.ts";
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
/** The program of a command, and its operands. */
const withoutOptions = (words: string[]) => words.filter((word) => !isOption(word));
/** `acme` of `acme@1.2`, `@acme/cli` of `@acme/cli@1`, `acme` of `acme==1.2`. */
const withoutVersion = (name: string) => name.replace(/(?<=.)@[\w.^~-]+$|[=~<>]=.*$/, "");
/** Asks a program for its help or version, or to change nothing. */
const provesNothing = (words: string[]) =>
  words.some((word) => /^(?:-h|-V|-v|-*help|-*version)$|dry-?run|what-?if/i.test(word));
const deletes = (words: string[]) =>
  words.some((word) => /^(?:rm|remove|delete|del|destroy|drop|purge|uninstall)$/i.test(word));

/** A run of the product's own program, or a file that one made. `words`: those of the command, or the path. */
type ProgramRun = { seq: number; output: string; words: string[]; deletes: boolean };

/** What a command of an agent did: only the product's programs wrote its output; it was harmless, but proves nothing; or it may have changed programs. */
type CommandEffect = ProgramRun | "harmless" | "unknown";

/** What the machine of a session is known to hold. */
type Machine = {
  /** Words of the lines of the docs that were read so far. */
  docsLines: string[][];
  /** Packages that the setup of the workspace got, or that the docs name and something fetched, and the programs that installed the latter. */
  packages: Set<string>;
  installers: Set<string>;
  /** Texts that the agent wrote into files, and their paths. */
  written: string[];
  /** Words that the product's programs were given or said, such as the names of files that they made. */
  mentioned: Set<string>;
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

/** Whether the docs show a command that begins with these two words. */
export const isDocumented = (
  { docsLines }: { docsLines: Machine["docsLines"] },
  [program, subcommand]: string[],
): boolean =>
  subcommand !== undefined && docsLines.some((line) => line[0] === program && withoutOptions(line)[1] === subcommand);

/** The name of a program is the name of its package, or begins a part of it. */
const isOfPackage = (program: string, name: string) =>
  program.length > 1 &&
  name
    .split(/[@/_-]/)
    .some(
      (part) => lettersAndDigitsOf(part) !== "" && lettersAndDigitsOf(part).startsWith(lettersAndDigitsOf(program)),
    );

function isProductProgram(machine: Machine, words: string[]): boolean {
  const command = withoutOptions(words);
  const [program = "", subcommand = ""] = command;
  const fileName = program.replace(/^.*\//, "");
  // A file that is named like a program may be it, or what it loads when it starts.
  const isAgentsFile = machine.written.some((path) => path.replace(/^.*\//s, "").startsWith(fileName));
  if (isAgentsFile || machine.mayBeTampered || machine.installers.has(program)) return false;
  if (!isDocumented(machine, command)) return false;
  return [...machine.packages].some((name) => isOfPackage(program, name) || withoutVersion(subcommand) === name);
}

/** The packages that a command gets as the docs say: the docs show the program with each of them in one line. An option with a value may say where from. */
function packagesOf({ docsLines, written }: Machine, words: string[]): string[] {
  const isShown = (option: string) => docsLines.some((line) => line.includes(option));
  if (words.some((word) => isOption(word) && word.includes("=") && !isShown(word))) return [];
  const [program, , ...names] = withoutOptions(words);
  const isFileOrUrl = (name: string) => /^[./~]|^\w+:/.test(name);
  const isAgents = (name: string) => isFileOrUrl(name) || written.some((text) => text.includes(name));
  const isNamed = (name: string) =>
    docsLines.some((line) => line[0] === program && line.slice(1).some((word) => withoutVersion(word) === name));
  const packages = names.map(withoutVersion);
  return packages.length > 0 && packages.every((name) => isNamed(name) && !isAgents(name)) ? packages : [];
}

/** The packages that the commands of a workspace's setup get: whoever wrote the prompt names them, so no page has to. */
const packagesOfSetup = (command: string): string[] =>
  (plainCommandsOf(command) ?? []).flatMap(({ words }) => withoutOptions(words).slice(2).map(withoutVersion));

/** The package that a command such as `npx acme-cli init` gets and runs. */
const runPackageOf = (machine: Machine, words: string[]): string[] => {
  const [program = "", name = ""] = withoutOptions(words);
  return packageRunners.has(program) && isDocumented(machine, [program, name]) ? [withoutVersion(name)] : [];
};

/** Whether the operands of a program mention a file that the agent wrote, which the program may run. */
const mentionsFile = ({ written }: Machine, words: string[]) =>
  words
    .slice(1)
    .flatMap((word) => [word, word.replace(/^[^=]*=/, "")])
    .some((word) => written.some((path) => path === word || path.endsWith(`/${word}`)));

/** Whether a program of the product made a file: its command or output named the file, and nothing else could have written it. */
const isMadeFile = ({ mentioned, written, mayBeTampered }: Machine, path: string) =>
  !mayBeTampered && mentioned.has(path) && !written.some((text) => text.includes(path));

/**
 * The runs of programs that come from packages of the docs: the agent installed them as the docs say, and before and in between ran nothing that could
 * have replaced them. Their output counts only where nothing else wrote to it.
 */
export function programRunsOf(
  session: SessionEvent[],
  pageTexts: (event: SessionEvent) => string[],
): Map<string, ProgramRun> {
  const { env: variables = [], setup = null } = milestonesOf(session, "workspace_prepared").at(-1)?.detail ?? {};
  const machine: Machine = {
    docsLines: [],
    packages: new Set(setup?.exitCode === 0 ? packagesOfSetup(setup.command) : []),
    installers: new Set(),
    written: [],
    mentioned: new Set(),
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
  const addFile = ({ id, seq, output, ok }: EventOf<"tool_result">) => {
    const path = String(output?.path ?? "").replace(/^\/workspace\//, "");
    if (!ok || !isMadeFile(machine, path)) return;
    runs.set(id, { seq, output: String(output?.text ?? ""), words: [path], deletes: false });
  };
  for (const event of session) {
    machine.docsLines.push(...pageTexts(event).flatMap(wordsByLine));
    if (event.type === "tool_call" && !harmlessTools.has(event.tool)) {
      machine.written.push(...valueTextsIn(event.input));
      machine.mayBeTampered ||= valueTextsIn(event.input).some((text) => protectedPath.test(text));
    }
    if (event.type === "tool_result" && event.tool === "read_file") addFile(event);
    if (event.type !== "tool_result" || event.tool !== "run_command") continue;
    const command = calls.get(event.id)?.input.command;
    const commands = typeof command === "string" ? plainCommandsOf(command, variables) : null;
    const effect = commands === null ? "unknown" : effectOf(machine, commands, event, hasFetched(event));
    if (effect === "harmless") continue;
    if (effect === "unknown") {
      machine.mayBeTampered = true;
      continue;
    }
    runs.set(event.id, effect);
    for (const word of [...effect.words, ...effect.output.split(/[\s"'`()]+/)])
      machine.mentioned.add(word.replace(/[.,:]$/, ""));
  }
  return runs;
}

/** What a line of plain commands did, and notes in `machine` what it installed. `hasFetched`: it got something from the network. */
function effectOf(
  machine: Machine,
  commands: PlainCommand[],
  result: EventOf<"tool_result">,
  hasFetched: boolean,
): CommandEffect {
  const words: string[] = [];
  // Others than the product may have written to the output.
  let isMixed = false;
  for (const command of commands) {
    const [program = "", ...operands] = command.words;
    if (hasFetched) for (const name of runPackageOf(machine, command.words)) machine.packages.add(name);
    if (isProductProgram(machine, command.words) && !command.isPiped) {
      words.push(...command.words);
      isMixed ||= provesNothing(command.words) || mentionsFile(machine, command.words);
    } else if (program === "cat" && operands.length > 0 && operands.every((path) => isMadeFile(machine, path))) {
      words.push(...operands);
    } else if (viewers.has(program)) {
      isMixed ||= !(command.isPiped && filters.has(program));
    } else if (!silentPrograms.has(program)) {
      const packages = packagesOf(machine, command.words);
      if (packages.length === 0 || !hasFetched) return "unknown";
      for (const name of packages) machine.packages.add(name);
      machine.installers.add(program);
      isMixed = true;
    }
  }
  if (isMixed || words.length === 0 || !hasSucceeded(result)) return "harmless";
  const { stdout, stderr, text } = result.output ?? {};
  const output = valueTextsIn([stdout, stderr, text]).join("\n");
  return { seq: result.seq, output, words, deletes: deletes(words) };
}
