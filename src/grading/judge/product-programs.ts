import type { SessionEvent } from "../../agents/agent.ts";
import { type EventOf, type Http, hasSucceeded, milestonesOf } from "../events.ts";
import { valueTextsIn } from "./product-answers.ts";
import { lettersAndDigitsOf } from "./repetition.ts";

/** A command whose words are all plain: nothing in it is expanded, computed, redirected or run in the background. */
type PlainCommand = { words: string[]; isPiped: boolean };

const plainWord = /^(?:[\w@%+=:,./~{}-]+|'[^']*'|"[^"$`\\!]*")+/;
const gap = /^(?:[ \t]|2>&1|2>\/dev\/null|\\\n)+/;
const separator = /^(?:&&|;|\n|\|(?![|&]))[ \t\n]*/;
const assignment = /^[A-Za-z_]\w*=/;

/** The commands of a shell line that consists of plain commands; null if there is anything else in it. Variables are plain if the prompt set them. */
function plainCommandsOf(line: string, variables: readonly string[] = []): PlainCommand[] | null {
  const isKnown = (name: string) => variables.includes(name);
  // The value of a variable doesn't matter, so its name stands for it. Any other $ is plain only in single quotes.
  let rest = line.trim().replace(/\$\{?([A-Za-z_]\w*)\}?/g, (whole, name) => (isKnown(name) ? name : whole));
  const commands: PlainCommand[] = [];
  let words: string[] = [];
  let isPiped = false;
  const take = (pattern: RegExp) => {
    const found = pattern.exec(rest)?.[0] ?? "";
    rest = rest.slice(found.length);
    return found;
  };
  while (rest !== "") {
    if (take(gap) !== "") continue;
    const end = take(separator);
    const word = end === "" ? take(plainWord) : "";
    if (word !== "") words.push(word.replace(/['"]/g, ""));
    else if (end === "" || words.length === 0) return null;
    else {
      commands.push({ words, isPiped });
      isPiped = end.startsWith("|");
      words = [];
    }
  }
  if (words.length > 0) commands.push({ words, isPiped });
  return commands.some((command) => assignment.test(command.words[0]!)) ? null : commands;
}

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
const operandsOf = (words: string[]) => words.filter((word) => !isOption(word));
const withoutVersion = (name: string) => name.replace(/(?<=.)@[\w.^~-]+$|[=~<>]=.*$/, "");
/** Asks a program about itself, or to change nothing. */
const isAboutItself = (words: string[]) =>
  words.some((word) => /^(?:-h|-V|-v|-*help|-*version)$|dry-?run|what-?if/i.test(word));
const deletes = (words: string[]) =>
  words.some((word) => /^(?:rm|remove|delete|del|destroy|drop|purge|uninstall)$/i.test(word));

/**
 * A run of the product's own program, or a file that one made. `words`: those of the command, or the path; empty: nothing of the product ran, or its
 * output is mixed with that of others.
 */
type ProgramRun = { seq: number; output: string; words: string[]; deletes: boolean };

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
  subcommand !== undefined && docsLines.some((line) => line[0] === program && operandsOf(line)[1] === subcommand);

/** The name of a program is the name of its package, or begins a part of it. */
const isOfPackage = (program: string, name: string) =>
  program.length > 1 &&
  name
    .split(/[@/_-]/)
    .some(
      (part) => lettersAndDigitsOf(part) !== "" && lettersAndDigitsOf(part).startsWith(lettersAndDigitsOf(program)),
    );

function isProductProgram(machine: Machine, words: string[]): boolean {
  const operands = operandsOf(words);
  const [program = "", subcommand = ""] = operands;
  // A file that is named like a program may be it, or what it loads when it starts.
  const name = program.replace(/^.*\//, "");
  const isOwnFile = machine.written.some((path) => path.replace(/^.*\//s, "").startsWith(name));
  if (isOwnFile || machine.mayBeTampered || machine.installers.has(program) || !isDocumented(machine, operands))
    return false;
  return [...machine.packages].some((name) => isOfPackage(program, name) || withoutVersion(subcommand) === name);
}

/** The packages that a command gets as the docs say: the docs show the program with each of them in one line. An option with a value may say where from. */
function packagesOf({ docsLines, written }: Machine, words: string[]): string[] {
  const isShown = (option: string) => docsLines.some((line) => line.includes(option));
  if (words.some((word) => isOption(word) && word.includes("=") && !isShown(word))) return [];
  const [program, , ...names] = operandsOf(words);
  const isOwn = (name: string) => /^[./~]|^\w+:/.test(name) || written.some((text) => text.includes(name));
  const isNamed = (name: string) =>
    docsLines.some((line) => line[0] === program && line.slice(1).some((word) => withoutVersion(word) === name));
  const packages = names.map(withoutVersion);
  return packages.length > 0 && packages.every((name) => isNamed(name) && !isOwn(name)) ? packages : [];
}

/** The packages that the commands of a workspace's setup get: whoever wrote the prompt names them, so no page has to. */
const packagesOfSetup = (command: string): string[] =>
  (plainCommandsOf(command) ?? []).flatMap(({ words }) => operandsOf(words).slice(2).map(withoutVersion));

/** The package that a command such as `npx acme-cli init` gets and runs. */
const runPackageOf = (machine: Machine, words: string[]): string[] => {
  const [program = "", name = ""] = operandsOf(words);
  return packageRunners.has(program) && isDocumented(machine, [program, name]) ? [withoutVersion(name)] : [];
};

/** Whether the operands of a program mention a file that the agent wrote, which the program may run. */
const mentionsFile = ({ written }: Machine, words: string[]) =>
  words
    .slice(1)
    .flatMap((word) => [word, word.replace(/^[^=]*=/, "")])
    .some((word) => written.some((path) => path === word || path.endsWith(`/${word}`)));

/** A file that a program of the product made: it was given or said its name, and nothing else could have written it. */
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
    const run = commands && runOf(machine, commands, event, hasFetched(event));
    if (run === null) machine.mayBeTampered = true;
    else if (run.words.length > 0) {
      runs.set(event.id, run);
      for (const word of [...run.words, ...run.output.split(/[\s"'`()]+/)])
        machine.mentioned.add(word.replace(/[.,:]$/, ""));
    }
  }
  return runs;
}

/** What a line of plain commands did. null: something in it isn't known to be harmless. */
function runOf(
  machine: Machine,
  commands: PlainCommand[],
  result: EventOf<"tool_result">,
  hasFetched: boolean,
): ProgramRun | null {
  const { stdout, stderr, text } = result.output ?? {};
  const productWords: string[] = [];
  let isMixed = !hasSucceeded(result);
  let isDeletion = false;
  for (const { words, isPiped } of commands) {
    const [program = ""] = words;
    if (hasFetched) for (const name of runPackageOf(machine, words)) machine.packages.add(name);
    if (isProductProgram(machine, words) && !isPiped) {
      productWords.push(...words);
      isDeletion ||= deletes(words);
      isMixed ||= isAboutItself(words) || mentionsFile(machine, words);
    } else if (program === "cat" && words.length > 1 && words.slice(1).every((path) => isMadeFile(machine, path))) {
      productWords.push(...words.slice(1));
    } else if (viewers.has(program)) {
      isMixed ||= !(isPiped && filters.has(program));
    } else if (!silentPrograms.has(program)) {
      const packages = packagesOf(machine, words);
      if (packages.length === 0) return null;
      if (!hasFetched) return null;
      for (const name of packages) machine.packages.add(name);
      machine.installers.add(program);
      isMixed = true;
    }
  }
  const output = valueTextsIn([stdout, stderr, text]).join("\n");
  return { seq: result.seq, output, words: isMixed ? [] : productWords, deletes: isDeletion };
}
