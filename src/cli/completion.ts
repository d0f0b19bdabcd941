import { Argument, type Command, type Option } from "commander";
import { print } from "./terminal.ts";

const shells = ["bash", "zsh", "fish"] as const;
type Shell = (typeof shells)[number];

const setupLines: Record<Shell, string> = {
  bash: "source <(evald completion bash)   # in ~/.bashrc",
  zsh: "source <(evald completion zsh)    # in ~/.zshrc, after compinit",
  fish: "evald completion fish > ~/.config/fish/completions/evald.fish",
};

/** Adds `completion`, which prints a completion script for all commands. `createAll`: creates a program with all commands. */
export function addCompletion(program: Command, createAll: () => Command): void {
  program
    .command("completion")
    .addArgument(new Argument("<shell>", "Shell").choices(shells))
    .description("Print a completion script for bash, zsh or fish")
    .addHelpText(
      "after",
      `\nTo set it up:\n  ${Object.values(setupLines).join("\n  ")}\n\nExample:\n  evald completion bash`,
    )
    .action((shell: Shell) => print(scripts[shell](flattenCommands(createAll())).join("\n")));
}

type Word = { word: string; description: string };
type OptionWord = Word & { takesValue: boolean; choices: string[] };
/** The words that may follow a command. `path`: the command without the program's name, such as `prompt list`; `""` for the program itself. */
type CommandNode = { path: string; commands: Word[]; options: OptionWord[]; choices: string[] };

/** Every command with the words that may follow it. The program comes first. */
function flattenCommands(command: Command, path = "", inherited: readonly Option[] = []): CommandNode[] {
  const ownOptions = command.createHelp().visibleOptions(command);
  const otherOptions = inherited.filter(({ long }) => !ownOptions.some((each) => each.long === long));
  const subcommands = command.commands.filter((each) => each.name() !== "help");
  return [
    {
      path,
      commands: subcommands.map((each) => ({ word: each.name(), description: each.description() })),
      options: [...ownOptions, ...otherOptions].flatMap(toOptionWord),
      choices: command.registeredArguments.flatMap((each) => each.argChoices ?? []),
    },
    ...subcommands.flatMap((each) =>
      flattenCommands(each, `${path} ${each.name()}`.trim(), path === "" ? command.options : inherited),
    ),
  ];
}

const toOptionWord = ({ long, description, required, optional, argChoices = [] }: Option): OptionWord[] =>
  long ? [{ word: long, description, takesValue: required || optional, choices: [...argChoices] }] : [];

/** A text in single quotes. */
const quote = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

const quotedPaths = (nodes: CommandNode[]): string[] => nodes.flatMap(({ path }) => (path === "" ? [] : quote(path)));

/** The lines of bash and zsh scripts that set `command` to the path of the typed command. `words`: the words before the cursor, after `evald`. */
const findCommand = (nodes: CommandNode[], words: string): string[] => [
  '  local command="" next word',
  `  for word in ${words}; do`,
  `    next="\${command:+$command }$word"`,
  '    case "$next" in',
  `      ${quotedPaths(nodes).join(" | ")}) command="$next" ;;`,
  "    esac",
  "  done",
];

/** The lines of bash and zsh scripts that complete the value of an option and return. `complete`: a shell command for its choices. */
const completeValues = (nodes: CommandNode[], complete: (choices: string[]) => string): string[] => [
  '  case "$command:$previous" in',
  ...nodes.flatMap(({ path, options }) =>
    options
      .filter(({ takesValue }) => takesValue)
      .map(({ word, choices }) => `    ${quote(`${path}:${word}`)}) ${complete(choices)}; return ;;`),
  ),
  "  esac",
];

/** The lines of bash and zsh scripts that set `names` to the words that may follow: options after a dash, otherwise commands and values. */
const findNames = (nodes: CommandNode[], toNames: (words: Word[]) => string): string[] => [
  '  case "$command:$current" in',
  ...nodes.flatMap(({ path, commands, options, choices }) => {
    const values = choices.map((word) => ({ word, description: "" }));
    return [
      `    ${quote(`${path}:-`)}*) names=${toNames(options)} ;;`,
      `    ${quote(`${path}:`)}*) names=${toNames([...commands, ...values])} ;;`,
    ];
  }),
  "  esac",
];

function bashScript(nodes: CommandNode[]): string[] {
  const offer = (words: string) => `COMPREPLY=($(compgen -W ${words} -- "$current"))`;
  return [
    "# bash completion of evald",
    "_evald() {",
    `  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD - 1]}" names=""`,
    ...findCommand(nodes, `"\${COMP_WORDS[@]:1:COMP_CWORD-1}"`),
    // If the script offers no word, bash completes file names.
    ...completeValues(nodes, (choices) => (choices.length === 0 ? "COMPREPLY=()" : offer(quote(choices.join(" "))))),
    ...findNames(nodes, (words) => quote(words.map(({ word }) => word).join(" "))),
    `  ${offer('"$names"')}`,
    "}",
    "complete -o default -F _evald evald",
  ];
}

function zshScript(nodes: CommandNode[]): string[] {
  // `_describe` reads names as `name:description`.
  const describe = ({ word, description }: Word) =>
    quote(description === "" ? word : `${word}:${description.replaceAll(":", "\\:")}`);
  const offerValues = (choices: string[]) => `names=(${choices.map(quote).join(" ")}); _describe value names`;
  return [
    "#compdef evald",
    "# zsh completion of evald",
    "_evald() {",
    `  local current="\${words[CURRENT]}" previous="\${words[CURRENT - 1]}"`,
    "  local -a names",
    ...findCommand(nodes, `"\${(@)words[2,CURRENT-1]}"`),
    ...completeValues(nodes, (choices) => (choices.length === 0 ? "_files" : offerValues(choices))),
    ...findNames(nodes, (words) => `(${words.map(describe).join(" ")})`),
    `  if (( \${#names} )); then _describe command names; else _files; fi`,
    "}",
    "compdef _evald evald",
  ];
}

/** For each word that may follow a command, fish has a line with the condition that the command is typed. */
const fishScript = (nodes: CommandNode[]): string[] => [
  "# fish completion of evald",
  "function __evald_is",
  '  set -l command ""',
  "  for word in (commandline -opc)[2..]",
  '    set -l next (string trim "$command $word")',
  '    switch "$next"',
  `      case ${quotedPaths(nodes).join(" ")}`,
  '        set command "$next"',
  "    end",
  "  end",
  '  test "$command" = "$argv[1]"',
  "end",
  "complete -c evald -f",
  ...nodes.flatMap(({ path, commands, options, choices }) => {
    const complete = `complete -c evald -n ${quote(`__evald_is ${quote(path)}`)}`;
    const takesFiles = path !== "" && commands.length === 0 && choices.length === 0;
    return [
      ...commands.map(({ word, description }) => `${complete} -a ${word} -d ${quote(description)}`),
      ...(choices.length > 0 ? [`${complete} -a ${quote(choices.join(" "))}`] : []),
      ...(takesFiles ? [`${complete} -F`] : []),
      ...options.map((option) => {
        const values = option.choices.length > 0 ? `-x -a ${quote(option.choices.join(" "))} ` : "-r ";
        return `${complete} -l ${option.word.slice(2)} ${option.takesValue ? values : ""}-d ${quote(option.description)}`;
      }),
    ];
  }),
];

const scripts: Record<Shell, (nodes: CommandNode[]) => string[]> = {
  bash: bashScript,
  zsh: zshScript,
  fish: fishScript,
};
