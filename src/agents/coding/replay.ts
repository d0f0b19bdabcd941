import { badRequest } from "../../errors.ts";
import type { AgentEvent } from "../agent.ts";
import type { EndingName } from "../endings.ts";
import { type Fields, list, number, object, parseObject, text } from "../fields.ts";
import { endingByStopReason } from "./acp.ts";
import {
  createUpdateState,
  endUpdates,
  parsePermissionRequest,
  parseUpdate,
  type TerminalText,
  toElicitationQuestion,
} from "./acp-updates.ts";
import { lineParsers } from "./agent-output.ts";
import type { OutputHeader } from "./kept-output.ts";
import { mcpPrefixesOf } from "./mcp-servers.ts";
import type { Preset } from "./preset.ts";
import { report, startReporter } from "./session-reporter.ts";
import { createStreamState, parseLine, readLine } from "./streams/stream.ts";
import { mapTool } from "./tools.ts";

/** What an output contains. `ending`: how the agent ended by its own account; null: it does not say. */
export type Replay = {
  events: AgentEvent[];
  ending: EndingName | null;
  answer: string | null;
  /** Number of lines that could not be read. */
  unreadableLines: number;
  /** Kinds of lines that the parser does not know. */
  unknownKinds: string[];
};

type StreamReading = { ending: EndingName | null; answer: string | null; unknown: Set<string> };

/** The header of a kept output; null if it has none, because someone redirected the output of an agent to a file. */
export function readHeader(output: string): OutputHeader | null {
  const fields = parseObject(output.slice(0, Math.max(0, output.indexOf("\n"))));
  return fields?.evald === "agent-output" ? (fields as OutputHeader) : null;
}

/**
 * Turns the output of a coding agent into events again, as in its session. What evald took from the model calls is missing, and so is what happened
 * outside of the agent. Throws bad_request if the agent has no stream.
 */
export function replayOutput(output: string, preset: Preset): Replay {
  const header = readHeader(output);
  const { stream } = preset;
  if (stream === "none")
    throw badRequest(`The output of ${preset.id} is plain text: its events come from the calls of its model.`);
  const events: AgentEvent[] = [];
  const mcpServers = Object.fromEntries(list(header?.mcpServers).map((name) => [text(name), {}]));
  // The output is kept already.
  const noKeeper = { addLine() {}, addMessage() {}, close() {} };
  const reporter = startReporter(preset, mcpPrefixesOf(preset, mcpServers), noKeeper, (event) => events.push(event));
  const send = (parsed: AgentEvent[]) => {
    for (const event of parsed) report(reporter, mapTool(preset, event));
  };
  let unreadableLines = 0;
  const lines = output.split("\n").slice(header === null ? 0 : 1);
  const objects = lines.flatMap((line) => {
    if (line.trim() === "") return [];
    const fields = readLine(line);
    if (fields === null) unreadableLines++;
    // Notes of evald itself say, for example, that the rest was cut.
    const isNote = fields?.evald !== undefined;
    return fields === null || isNote ? [] : [fields];
  });
  const { ending, answer, unknown } =
    stream === "acp" ? replayMessages(objects, send) : replayLines(objects, lineParsers[stream], send);
  return { events, ending, answer, unreadableLines, unknownKinds: [...unknown] };
}

type ReportEvents = (events: AgentEvent[]) => void;

function replayLines(
  lines: Fields[],
  parse: (typeof lineParsers)[keyof typeof lineParsers],
  send: ReportEvents,
): StreamReading {
  const state = createStreamState();
  for (const line of lines) {
    if (state.end) break;
    send(parseLine(parse, line, state));
  }
  const end = state.end ?? state.likelyEnd;
  return { ending: end?.ending ?? null, answer: end?.text ?? state.lastMessage, unknown: state.unknown };
}

/** Reads messages of the Agent Client Protocol, with who sent them. A message without a sender is the agent's. */
function replayMessages(lines: Fields[], send: ReportEvents): StreamReading {
  const terminals = new Map<string, TerminalText>();
  /** The terminals that the agent asked about, by the ID of its request. */
  const terminalsByRequest = new Map<unknown, string>();
  // Only the prompt says whether the agent should ask before it acts, so its requests for permission don't count as questions here.
  const asksFirst = false;
  const state = createUpdateState((id) => terminals.get(id) ?? null);
  let ending: EndingName | null = null;
  for (const line of lines) {
    const message = object(line.message ?? line);
    const { id, method, result } = message;
    const params = object(message.params);
    if (line.from === "evald") {
      const terminalId = terminalsByRequest.get(id);
      if (terminalId !== undefined) addTerminalText(terminals, terminalId, object(result));
    } else if (method === "session/update") send(parseUpdate(object(params.update), state));
    else if (method === "session/request_permission") send(parsePermissionRequest(params, state, asksFirst));
    else if (method === "elicitation/create") send([toElicitationQuestion(params)]);
    else if (/^terminal\/(output|wait_for_exit)$/.test(text(method)))
      terminalsByRequest.set(id, text(params.terminalId));
    else if (typeof object(result).stopReason === "string") {
      send(endUpdates(state));
      ending = endingByStopReason[text(object(result).stopReason)] ?? "agent_error";
    }
  }
  send(endUpdates(state));
  return { ending, answer: state.lastMessage, unknown: state.unknown };
}

function addTerminalText(terminals: Map<string, TerminalText>, id: string, answer: Fields): void {
  const current = terminals.get(id) ?? { output: "", exitCode: null };
  const exitCode = number(answer.exitCode) ?? number(object(answer.exitStatus).exitCode) ?? current.exitCode;
  terminals.set(id, { output: text(answer.output) || current.output, exitCode });
}
