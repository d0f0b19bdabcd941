import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import { endings } from "../../src/agents/endings.ts";
import { failureCodes, failureRules, ruleOf } from "../../src/agents/failure.ts";
import { auditActions } from "../../src/audit/actions.ts";
import { checks } from "../../src/checks/checks.ts";
import { type CheckOccasion, checkOccasions } from "../../src/checks/finding.ts";
import { causes, problemOf } from "../../src/checks/problems.ts";
import { createProgram } from "../../src/cli/program.ts";
import { settingTable } from "../../src/config/config.ts";
import { maxFaults } from "../../src/jobs/settlement.ts";
import type { Tool } from "../../src/mcp/tool.ts";
import { maxAttempts } from "../../src/runs/requests.ts";

const folder = join(import.meta.dir, "..", "..", "src", "web", "docs");
export const docFile = (name: string): string => join(folder, name);

/** A generated part of a docs page: the text between two comments that name it. */
export function partOf(text: string, name: string): string {
  const [, part] = new RegExp(`^<!-- ${name}: .*-->\\n([\\s\\S]*?)^<!-- end -->$`, "m").exec(text) ?? [];
  if (part === undefined) throw new Error(`the page has no comments around ${name}`);
  return part;
}

export const withPart = (text: string, name: string, part: string): string =>
  text.replace(
    new RegExp(`(^<!-- ${name}: .*-->\\n)[\\s\\S]*?(^<!-- end -->$)`, "m"),
    (_, begin, end) => begin + part + end,
  );

export const toTable = (heading: string[], rows: string[][]): string =>
  [heading, heading.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |\n`).join("");

const sentence = (text: string) => `${text.charAt(0).toUpperCase()}${text.slice(1)}`.replace(/\.?$/, ".");

/** Every setting with its default and meaning. */
export const settingsTable = (): string =>
  toTable(
    ["Setting", "Default", "Description"],
    settingTable.map(({ name, default: fallback, description }) => [
      `\`${name}\``,
      fallback === "" ? "none" : `\`${fallback}\``,
      sentence(description),
    ]),
  );

/** Every action of the audit log. */
export const auditTable = (): string =>
  toTable(
    ["Action", "Meaning"],
    Object.entries(auditActions).map(([action, meaning]) => [`\`${action}\``, sentence(meaning)]),
  );

/** Every way in which a session of an agent with a model can end. */
export function endingsTable(): string {
  const retries = { never: "No", fault: `Up to ${maxFaults - 1} times`, attempt: `Up to ${maxAttempts - 1} times` };
  return toTable(
    ["`ending`", "What happened", "Graded", "Failure", "Tried again"],
    Object.entries(endings).map(([name, { meaning, outcome, failure }]) => [
      `\`${name}\``,
      meaning,
      outcome === null ? "No" : failure === null ? gradedAs[outcome] : `${gradedAs[outcome]}, after a tool call`,
      failure === null ? "" : `\`${failureRules[failure.code].cause}\``,
      failure === null ? "" : retries[failure.retry],
    ]),
  );
}

/** Every code with which a run can fail, and what to do about it. */
export const failuresTable = (): string =>
  toTable(
    ["`code`", "`cause`", "What happened", "`subject`", "What to do", "Running it again can help"],
    failureCodes.map((code) => {
      const { cause, title, subject = "", remedy, command, runAgain = false } = ruleOf(code);
      return [
        `\`${code}\``,
        `\`${cause}\``,
        title,
        subject,
        command === undefined ? remedy : `${remedy} \`${command}\``,
        runAgain ? "Yes" : "No",
      ];
    }),
  );

/** Every check, what it looks at and where it runs. The doctor makes the first two itself. */
export const checksTable = (): string =>
  toTable(
    ["`check`", "What it looks at", "`evald doctor`", "Service, at its start", "Service, daily"],
    [
      ["`service`", "Whether the service of this data directory runs and is ready", "Yes", "", ""],
      ["`database`", "Every page of the database, and the version that wrote it", "Yes", "", ""],
      ...checks.map(({ id, looksAt, occasions }) => [
        `\`${id}\``,
        looksAt,
        ...checkOccasions.map((occasion) => ((occasions as readonly CheckOccasion[]).includes(occasion) ? "Yes" : "")),
      ]),
    ],
  );

/** Every cause of a problem that checks find, and what to do about it. */
export const causesTable = (): string =>
  toTable(
    ["`cause`", "`state`", "What is wrong", "What to do", "Command"],
    causes.map((cause) => {
      const { state, title, remedy, command } = problemOf(cause);
      return [
        `\`${cause}\``,
        `\`${state}\``,
        title,
        remedy,
        command === undefined ? "" : `\`${command.replaceAll("{subject}", "SUBJECT").replaceAll("|", "\\|")}\``,
      ];
    }),
  );

const gradedAs = { claimed: "Yes", goal_not_met: "Yes, as `goal_not_met`" };

/** A systemd unit of the Debian package as a code block, for an executable that was installed by hand. */
export function unitBlock(name: "evald.service" | "evald-worker.service"): string {
  const text = readFileSync(join(import.meta.dir, "..", "..", "release", "debian", name), "utf8");
  return `\n\`\`\`ini\n${text.replace("/usr/bin/evald", "/usr/local/bin/evald")}\`\`\`\n\n`;
}

/** Every executable command, by its full name. */
export const commandsOf = (command: Command, above = ""): [name: string, command: Command][] =>
  command.commands.flatMap((each) => {
    const name = `${above} ${each.name()}`;
    return each.commands.length > 0 ? commandsOf(each, name) : [[name.trim(), each] as [string, Command]];
  });

export const commandsTable = (): string =>
  toTable(
    ["Command", "Description"],
    commandsOf(createProgram({})).map(([name, command]) => [`\`evald ${name}\``, sentence(command.description())]),
  );

/** Every MCP tool with its arguments; required ones in bold. */
export const toolsTable = (tools: Tool[]): string =>
  toTable(
    ["Tool", "Description", "Arguments, required ones in bold"],
    tools.map(({ name, description, input }) => [
      `\`${name}\``,
      sentence(description.split(/(?<=\.) /)[0] ?? ""),
      Object.keys(input.properties)
        .map((key) => (input.required?.includes(key) ? `**\`${key}\`**` : `\`${key}\``))
        .join(", "),
    ]),
  );
