import type { Command } from "commander";
import manifest from "../package.json" with { type: "json" };
import { createProgram } from "../src/cli/program.ts";
import { settingTable } from "../src/config/config.ts";

/** The man page evald(1) in the format of groff, from the help of the commands and the list of settings. `seconds`: its date, since 1970. */
export function toManPage(seconds: number): string {
  const date = new Date(seconds * 1000).toISOString().slice(0, 10);
  const program = createProgram({});
  return [
    `.TH EVALD 1 "${date}" "evald ${manifest.version}" "User Commands"`,
    ".SH NAME",
    "evald \\- measures how well AI agents can use a developer tool",
    ".SH SYNOPSIS",
    ".B evald",
    "[\\fB\\-\\-data\\fR \\fIdir\\fR] \\fIcommand\\fR [\\fIoption\\fR]...",
    ".SH DESCRIPTION",
    "evald sends an agent to do a task with the documentation and the product of a developer tool, records every step, and grades the session into a report.",
    "A running service serves its documentation at",
    ".IR /docs .",
    ".SH OPTIONS",
    ...optionsOf(program),
    ".SH COMMANDS",
    ...program.commands.flatMap((command) => describe(command, "evald")),
    ".SH ENVIRONMENT",
    ...settingTable.flatMap(({ name, default: fallback, description }) =>
      entry(`\\fB${escaped(name)}\\fR`, fallback === "" ? description : `${description} (default: ${fallback})`),
    ),
    ".SH FILES",
    ...entry("\\fI/etc/evald/evald.env\\fR", "Settings of the system service"),
    ...entry("\\fI/var/lib/evald\\fR", "Data directory of the system service"),
    ...entry("\\fI/var/backups/evald\\fR", "Backups made before upgrades of the package"),
    ".SH EXIT STATUS",
    ...entry("0", "Success"),
    ...entry("1", "The result doesn't meet the requirement, such as a score below the minimum"),
    ...entry("2", "The call or a setting is invalid"),
    ...entry("3", "The command could not do its work"),
    "",
  ].join("\n");
}

/** A command and those below it, each with its arguments and options. */
function describe(command: Command, above: string): string[] {
  const name = `${above} ${command.name()}`;
  if (command.commands.length > 0) return command.commands.flatMap((each) => describe(each, name));
  const words = command.registeredArguments.map((argument) => {
    const text = `\\fI${escaped(argument.name())}\\fR${argument.variadic ? "..." : ""}`;
    return argument.required ? text : `[${text}]`;
  });
  return [
    `.SS ${[`"${escaped(name)}`, ...words].join(" ")}"`,
    text(`${command.description()}.`),
    ...optionsOf(command),
  ];
}

const optionsOf = (command: Command): string[] =>
  command.options
    .filter(({ hidden }) => !hidden)
    .flatMap(({ flags, description }) => entry(`\\fB${escaped(flags)}\\fR`, description));

/** A term and its description, as a paragraph. */
const entry = (term: string, description: string): string[] => [".TP", term, text(description)];

/** A line of text: one that begins with a dot or a quote would be a request. */
const text = (line: string): string => escaped(line.replace(/\s+/g, " ")).replace(/^(?=[.'])/, "\\&");

const escaped = (line: string): string => line.replaceAll("\\", "\\e").replaceAll("-", "\\-");
