import type { StreamFormat } from "../../config/agent-entry.ts";
import { settlesWithin } from "../../deadline.ts";
import type { AgentEvent } from "../agent.ts";
import { parseObject, text } from "../fields.ts";
import { linesOf } from "../lines.ts";
import { toPrompt } from "../llm/instructions.ts";
import type { LimitHit } from "../sandbox/bounds.ts";
import type { Task } from "../task.ts";
import type { RunningAgent } from "./acp.ts";
import { keepingLines } from "./kept-output.ts";
import { type Preset, taskChannelOf } from "./preset.ts";
import { addLine } from "./printed.ts";
import { findResult, type ModelRecord } from "./record.ts";
import { countUnreadableLine, report, type SessionReporter } from "./session-reporter.ts";
import { parseClaudeLine } from "./streams/claude.ts";
import { parseCodexLine } from "./streams/codex.ts";
import { parseCopilotLine } from "./streams/copilot.ts";
import { parseGeminiLine } from "./streams/gemini.ts";
import { parseOpencodeLine } from "./streams/opencode.ts";
import { parsePiLine } from "./streams/pi.ts";
import {
  createStreamState,
  type LineParser,
  parseLine,
  readLine,
  type StreamResult,
  toCall,
  toResult,
  unfinishedResult,
} from "./streams/stream.ts";
import { findExitCode, isFailure, mapTool } from "./tools.ts";

/** Parsers of JSON line streams. */
export const lineParsers: Record<Exclude<StreamFormat, "acp" | "none">, LineParser> = {
  claude: parseClaudeLine,
  codex: parseCodexLine,
  gemini: parseGeminiLine,
  opencode: parseOpencodeLine,
  copilot: parseCopilotLine,
  pi: parsePiLine,
};

/** How the program of an agent ended, with what its output says. */
export type ProgramResult = StreamResult & {
  exitCode: number;
  limit: LimitHit | null;
  /** Whether the machine's disk had no room for the workspace. */
  wasDiskFull: boolean;
};

/** How long to wait for the agent's next model call, which contains the complete result. */
const nextCallMs = 2_000;
/** An agent that still runs counts as ended after this silence: one after its answer, the other after an error. */
const silenceAfterAnswerMs = 3_000;
const silenceAfterErrorMs = 60_000;
const maxAnswerChars = 16_000;

/** Sends the task to the agent, and reports its events until it ends or closes its stdout. */
export async function readOutput(
  agent: RunningAgent,
  task: Task,
  reporter: SessionReporter,
  record: ModelRecord,
): Promise<StreamResult> {
  const { preset } = reporter;
  const { stream: format } = preset;
  if (format === "acp") {
    const { converse } = await import("./acp.ts");
    return converse(agent, task, reporter, createResultCompleter(preset, record));
  }
  const { process: agentProcess } = agent;
  try {
    if (taskChannelOf(preset) !== "argument") agentProcess.stdin.write(toPrompt(task));
    await agentProcess.stdin.end();
  } catch {
    // If the process exits before reading, its exit code says why.
  }
  if (format === "none") {
    const result = await readText(agentProcess.stdout, reporter);
    // The text may contain more than the answer, such as every step.
    return { ...result, text: record.lastAnswer ?? result.text };
  }
  const completeResult = createResultCompleter(preset, record);
  return readLines(lineParsers[format], agentProcess.stdout, { reporter, record, completeResult });
}

async function readText(
  stdout: ReadableStream<Uint8Array>,
  { printed, output }: SessionReporter,
): Promise<StreamResult> {
  let answer = "";
  for await (const line of keepingLines(linesOf(stdout), output)) {
    answer = `${answer}${line ?? ""}\n`.slice(-maxAnswerChars);
    addLine(printed, line ?? "");
  }
  return { ...unfinishedResult, text: answer.trim() || null };
}

type LineContext = { reporter: SessionReporter; record: ModelRecord; completeResult: ResultCompleter };

async function readLines(
  parse: LineParser,
  stdout: ReadableStream<Uint8Array>,
  { reporter, record, completeResult }: LineContext,
): Promise<StreamResult> {
  const state = createStreamState();
  const lines = keepingLines(linesOf(stdout), reporter.output);
  while (!state.end) {
    const nextLine = lines.next();
    if (state.likelyEnd) {
      const silenceMs = state.likelyEnd.error ? silenceAfterErrorMs : silenceAfterAnswerMs;
      if (await staysSilent(nextLine, silenceMs, record)) {
        state.end = state.likelyEnd;
        nextLine.catch(() => {});
        break;
      }
    }
    const { done, value: line } = await nextLine;
    if (done) break;
    if (line?.trim() === "") continue;
    const fields = line === null ? null : readLine(line);
    if (fields === null) {
      countUnreadableLine(reporter, line);
      continue;
    }
    for (const event of parseLine(parse, fields, state)) report(reporter, await completeResult(event));
  }
  for (const kind of state.unknown) reporter.unknownKinds.add(kind);
  // An agent that reported an error and exits has ended with it.
  const end = state.end ?? state.likelyEnd;
  return end ? { ...end, hasReportedEnd: true } : unfinishedResult;
}

/** Whether the next line doesn't come within a time in which the agent doesn't call its model either. */
async function staysSilent(nextLine: Promise<unknown>, ms: number, record: ModelRecord): Promise<boolean> {
  for (;;) {
    const callCount = record.callCount;
    if (await settlesWithin(nextLine, ms)) return false;
    if (record.callsInProgress === 0 && record.callCount === callCount) return true;
  }
}

type ResultCompleter = (event: AgentEvent) => Promise<AgentEvent>;

/** Maps tools to evald's names. Adds to results what the stream omits but the model got: the exit code of a command, or the text of a page. */
function createResultCompleter(preset: Preset, record: ModelRecord): ResultCompleter {
  /** Results so far by tool. In protocols without IDs, the nth result of a tool belongs to its nth call. */
  const resultCounts = new Map<string, number>();
  /** The model's names for calls that the agent reports with only a title, by ID. */
  const modelNames = new Map<string, string>();
  const completeCall = createCallCompleter(record, modelNames);
  return async (original) => {
    const event = completeCall(mapTool(preset, original));
    if (event.type !== "tool_result") return event;
    const { id, tool, ok, ownName } = event;
    const name = modelNames.get(id) ?? ownName ?? tool;
    const callNumber = (resultCounts.get(name) ?? 0) + 1;
    resultCounts.set(name, callNumber);
    const findModelOutput = () => waitForResult(record, id, name, callNumber);
    if (tool === "run_command" && event.output.exitCode === null)
      return completeCommand(preset, event, name, findModelOutput);
    return tool === "fetch_page" && ok ? completePage(event, name, findModelOutput) : event;
  };
}

type ResultEvent = Extract<AgentEvent, { type: "tool_result" }>;

/** Adds the exit code of a command. `findModelOutput`: what the model got as its result; null: unknown. */
async function completeCommand(
  preset: Preset,
  event: ResultEvent,
  name: string,
  findModelOutput: () => Promise<string | null>,
): Promise<AgentEvent> {
  const { id, tool, ok } = event;
  const streamOutput = String(event.output.text ?? "");
  const exitCode = preset.exitCode === null ? null : findExitCode(preset, streamOutput);
  if (exitCode !== null) return toResult({ id, name, ok, output: streamOutput }, exitCode, tool);
  const modelOutput = await findModelOutput();
  if (modelOutput === null) return event;
  // The model may get a shortened output, which still says how the command ended.
  // Some agents write an object of their own, while the model gets text.
  const isObject = parseObject(streamOutput) !== null;
  const output = isObject || modelOutput.includes(streamOutput) ? modelOutput : streamOutput;
  const hasSucceeded = isFailure(preset, modelOutput) ? false : ok;
  return toResult({ id, name, ok: hasSucceeded, output }, findExitCode(preset, modelOutput), tool);
}

/** Adds the text of a page if the model got more of it than the stream has. */
async function completePage(
  event: ResultEvent,
  name: string,
  findModelOutput: () => Promise<string | null>,
): Promise<AgentEvent> {
  const output = await findModelOutput();
  if (output === null || output.length <= String(event.output.text ?? "").length) return event;
  return toResult({ id: event.id, name, ok: true, output }, null, event.tool);
}

/**
 * Adds the model's input to calls that the agent reports with only a title, as Gemini CLI does over ACP. The IDs of its calls start with the name of
 * the tool.
 */
function createCallCompleter({ pending }: ModelRecord, modelNames: Map<string, string>) {
  const usedIds = new Set<string>();
  return (event: AgentEvent): AgentEvent => {
    if (event.type !== "tool_call") return event;
    const { id, tool, input } = event;
    const hasInput = tool === "run_command" ? text(input.command) !== "" : Object.keys(input).length > 0;
    if (hasInput) return event;
    const call = pending.values().find((each) => !usedIds.has(each.id) && isCallOf(each, id));
    if (!call) return event;
    usedIds.add(call.id);
    modelNames.set(id, call.name);
    return toCall(id, call.name, call.input, event.ownName === undefined ? undefined : tool);
  };
}

const isCallOf = (call: { id: string; name: string }, id: string): boolean =>
  call.id === id || id.startsWith(`${call.name}__`);

/** The result of a call as the model gets it. It is in the model's next request at the latest; null if that request doesn't come soon. */
async function waitForResult(record: ModelRecord, id: string, name: string, callNumber: number) {
  const result = findResult(record, id, name, callNumber);
  if (result !== null) return result;
  await settlesWithin(record.nextRequest.promise, nextCallMs);
  return findResult(record, id, name, callNumber);
}
