import type { ToolName } from "../../config/agent-entry.ts";
import { ownMember } from "../../schema.ts";
import type { AgentEvent } from "../agent.ts";
import { type Fields, number } from "../fields.ts";
import type { Preset } from "./preset.ts";
import { type ExitCode, exitCodeIn, toCall, toResult } from "./streams/stream.ts";

/** evald's name for a tool according to the agent's entry; undefined: none. */
export const findToolName = ({ tools }: Preset, name: string): ToolName | undefined => ownMember(tools, name);

/** A call or result, translated by the agent's entry: it has evald's name for the tool, and is a failure if its text says so. */
export function mapTool(preset: Preset, event: AgentEvent): AgentEvent {
  if (event.type !== "tool_call" && event.type !== "tool_result") return event;
  const name = event.ownName ?? event.tool;
  const tool = findToolName(preset, name) ?? event.tool;
  if (event.type === "tool_call") return tool === event.tool ? event : toCall(event.id, name, event.input, tool);
  const { id, output } = event;
  const outputText = String(output.text ?? "");
  const ok = isFailure(preset, outputText) ? false : event.ok;
  if (tool === event.tool && ok === event.ok) return event;
  return toResult({ id, name, ok, output: outputText }, exitCodeOf(output), tool);
}

function exitCodeOf({ exitCode, exitCodeSource }: Fields): ExitCode {
  const code = number(exitCode);
  return code !== null && exitCodeSource === "text" ? { inText: code } : code;
}

/** Whether the text of a result says, by the pattern of the agent's entry, that the call failed. */
export const isFailure = ({ failure }: Preset, output: string): boolean =>
  failure !== null && new RegExp(failure).test(output);

/** The exit code in the output of a command, by the pattern of the agent's entry or as most agents write it; null: unknown. */
export function findExitCode({ exitCode: pattern }: Preset, output: string): ExitCode {
  if (pattern === null) return exitCodeIn(output);
  const code = [...output.matchAll(new RegExp(pattern, "gm"))].at(-1)?.[1];
  return code === undefined || !/^\d{1,3}$/.test(code) ? null : { inText: Number(code) };
}
