import { Argument, type Command, type Option } from "commander";
import { print } from "./terminal.ts";

const shells = ["bash", "zsh", "fish"] as const;
type Shell = (typeof shells)[number];

const setupLines: Record<Shell, string> = {
  bash: "source <(evald completion bash)   # in ~/.bashrc",
  zsh: "source <(evald completion zsh)    # in ~/.zshrc, after compinit",
  fish: "evald completion fish > ~/.config/fish/completions/evald.fish",
};

/** Adds `completion`: prints a completion script for all commands. `createAll`: makes a program with them. */
export function addCompletion(program: Command, createAll: () => Command): void {
  program
    .command("completion")
    .addArgument(new Argument("<shell>", "Shell").choices(shells))
    .description("Print a completion script for bash, zsh or fish")
    .addHelpText(
      "after",
      `\nTo set it up:\n  ${Object.values(setupLines).join("\n  ")}\n\nExample:\n  evald completion bash`,
    )
    .action((shell: Shell) => print(scripts[shell](flattenCommands(createAll())).trimEnd()));
}

type Word = { word: string; description: string };
type Choice = Word & { takesValue: boolean; choices: string[] };
/** What may follow a command: `path` is its name without the program's, `""` for the program itself. */
type CommandNode = { path: string; commands: Word[]; options: Choice[]; choices: string[] };

/** Every command with what may follow it, the program first. */
function flattenCommands(command: Command, path = "", inherited: readonly Option[] = []): CommandNode[] {
  const help = command.createHelp();
  const own = help.visibleOptions(command);
  const options = [...own, ...inherited.filter(({ long }) => !own.some((each) => each.long === long))];
  const subcommands = command.commands.filter((each) => each.name() !== "help");
  return [
    {
      path,
      commands: subcommands.map((each) => ({ word: each.name(), description: each.description() })),
      options: options.flatMap((each) =>
        each.long
          ? [
              {
                word: each.long,
                description: each.description,
                takesValue: each.required || each.optional,
                choices: [...(each.argChoices ?? [])],
              },
            ]
          : [],
      ),
      choices: command.registeredArguments.flatMap((each) => each.argChoices ?? []),
    },
    ...subcommands.flatMap((each) =>
      flattenCommands(each, `${path} ${each.name()}`.trim(), path === "" ? command.options : inherited),
    ),
  ];
}

/** A text in single quotes. */
const quote = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/** The commands as patterns of `$at $word`, in which `at` is empty before the first word. */
const commandPatterns = (nodes: CommandNode[]): string[] =>
  nodes.flatMap(({ path }) => (path === "" ? [] : quote(path.includes(" ") ? path : ` ${path}`)));

/** The part of bash and zsh scripts that finds the command: sets `at` to its path. */
const findCommand = (nodes: CommandNode[], words: string): string => `  local at="" word
  for word in ${words}; do
    case "$at $word" in
      ${commandPatterns(nodes).join(" | ")}) at="\${at:+$at }$word" ;;
    esac
  done`;

/** The values after an option, as branches of a case statement over the command and the option. */
const valueBranches = (nodes: CommandNode[], answer: (choices: string[]) => string): string =>
  nodes
    .flatMap(({ path, options }) =>
      options
        .filter(({ takesValue }) => takesValue)
        .map(({ word, choices }) => `    ${quote(`${path} ${word}`)}) ${answer(choices)}; return ;;`),
    )
    .join("\n");

/** The names of options after a dash, otherwise of commands and values: a case statement over the command and the current word. */
const nameBranches = (nodes: CommandNode[], toNames: (words: Word[]) => string): string => `  case "$at:$current" in
${nodes
  .flatMap(({ path, commands, options, choices }) => {
    const others = [...commands, ...choices.map((word) => ({ word, description: "" }))];
    return [
      `    ${quote(`${path}:-`)}*) names=${toNames(options)} ;;`,
      `    ${quote(`${path}:`)}*) names=${toNames(others)} ;;`,
    ];
  })
  .join("\n")}
  esac`;

const scripts: Record<Shell, (nodes: CommandNode[]) => string> = {
  bash: (nodes) => `# bash completion of evald
_evald() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD - 1]}" names=""
${findCommand(nodes, `"\${COMP_WORDS[@]:1:COMP_CWORD-1}"`)}
  case "$at $previous" in
${valueBranches(nodes, (choices) => (choices.length === 0 ? "COMPREPLY=()" : `COMPREPLY=($(compgen -W ${quote(choices.join(" "))} -- "$current"))`))}
  esac
${nameBranches(nodes, (words) => quote(words.map(({ word }) => word).join(" ")))}
  COMPREPLY=($(compgen -W "$names" -- "$current"))
}
complete -o default -F _evald evald
`,
  zsh: (nodes) => `#compdef evald
# zsh completion of evald
_evald() {
  local current="\${words[CURRENT]}" previous="\${words[CURRENT - 1]}"
  local -a names
${findCommand(nodes, `"\${(@)words[2,CURRENT-1]}"`)}
  case "$at $previous" in
${valueBranches(nodes, (choices) => (choices.length === 0 ? "_files" : `names=(${choices.map(quote).join(" ")}); _describe value names`))}
  esac
${nameBranches(nodes, (words) => `(${words.map(describeWord).join(" ")})`)}
  if (( \${#names} )); then _describe command names; else _files; fi
}
compdef _evald evald
`,
  fish: (nodes) => `# fish completion of evald
function __evald_at
${findCommandInFish(nodes)}
  test "$at" = "$argv[1]"
end
complete -c evald -f
${nodes
  .flatMap(({ path, commands, options, choices }) => {
    const when = `complete -c evald -n ${quote(`__evald_at ${quote(path)}`)}`;
    return [
      ...commands.map(({ word, description }) => `${when} -a ${word} -d ${quote(description)}`),
      ...(choices.length > 0 ? [`${when} -a ${quote(choices.join(" "))}`] : []),
      ...(path !== "" && commands.length === 0 && choices.length === 0 ? [`${when} -F`] : []),
      ...options.map((option) => {
        const values = option.choices.length > 0 ? `-x -a ${quote(option.choices.join(" "))} ` : "-r ";
        return `${when} -l ${option.word.slice(2)} ${option.takesValue ? values : ""}-d ${quote(option.description)}`;
      }),
    ];
  })
  .join("\n")}
`,
};

/** A word with its description, as `_describe` reads it. */
const describeWord = ({ word, description }: Word): string =>
  quote(description === "" ? word : `${word}:${description.replaceAll(":", "\\:")}`);

const findCommandInFish = (nodes: CommandNode[]): string => `  set -l at ""
  for word in (commandline -opc)[2..]
    switch "$at $word"
      case ${commandPatterns(nodes).join(" ")}
        set at (string trim "$at $word")
    end
  end`;
