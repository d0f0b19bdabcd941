import {
  type AnyMessage,
  type ClientContext,
  client,
  methods,
  PROTOCOL_VERSION,
  RequestError,
} from "@agentclientprotocol/sdk";
import { version } from "../../../package.json" with { type: "json" };
import { type AgentEvent, AgentFailure, toAgentFailure } from "../agent.ts";
import { type EndingName, endingOfError } from "../endings.ts";
import { type Fields, list, number, object, text } from "../fields.ts";
import { linesOf } from "../lines.ts";
import { toPrompt } from "../llm/instructions.ts";
import type { SandboxProcess } from "../sandbox/sandbox.ts";
import type { Task } from "../task.ts";
import { toAcpServers } from "./mcp-servers.ts";
import { countUnreadableLine, report, type SessionReporter } from "./session-reporter.ts";
import {
  exitCodeIn,
  message,
  readLine,
  type StreamResult,
  statusIn,
  thought,
  toCall,
  toResult,
  unfinishedResult,
} from "./streams/stream.ts";

/** evald's names for the protocol's kinds of tools; other tools keep their own names. */
const toolNamesByKind: Record<string, string> = {
  execute: "run_command",
  fetch: "fetch_page",
  edit: "write_file",
  read: "read_file",
};
/** Modes in which agents don't ask for permission. The sandbox limits them. */
const freeModes = /yolo|bypass|full.?access|auto.?(approve|edit)|dont.?ask/i;
const authRequired = -32_000;
/** Reasons for which a turn ends in an ordinary way. */
const endingByStopReason: Record<string, EndingName> = {
  end_turn: "finished",
  refusal: "refused",
  max_tokens: "output_limit",
  max_turn_requests: "turn_limit",
};

/** Runs one prompt over the Agent Client Protocol. Every permission is granted, and nobody can answer questions. */
export async function converse(
  agentProcess: SandboxProcess,
  task: Task,
  reporter: SessionReporter,
  fillGaps: (event: AgentEvent) => Promise<AgentEvent>,
): Promise<StreamResult> {
  const state: UpdateState = { calls: new Map(), partial: null, lastMessage: null, costUsd: null, unknown: new Set() };
  let lastReport: Promise<void> = Promise.resolve();
  const reportAll = (events: AgentEvent[]) => {
    lastReport = lastReport.then(async () => {
      for (const event of events) report(reporter, await fillGaps(event));
    });
  };
  const asksFirst = task.agentOptions?.permissions === "ask";
  const { readable, writable, ended } = openMessageStreams(agentProcess, reporter);
  const endWith = (ending: EndingName, error: StreamResult["error"]): StreamResult => ({
    hasReportedEnd: true,
    ending,
    text: state.lastMessage,
    error,
    claimedUsd: state.costUsd,
  });
  const app = client({ name: "evald" })
    .onRequest(methods.client.session.requestPermission, object, ({ params }) => {
      const call = { ...object(params.toolCall), sessionUpdate: "tool_call_update", status: "in_progress" };
      reportAll(parseUpdate(call, state));
      if (asksFirst) reportAll([toPermissionQuestion(call)]);
      return grantPermission(params);
    })
    .onNotification(methods.client.session.update, object, ({ params }) => {
      reportAll(parseUpdate(object(params.update), state));
    });
  const connection = app.connect({ readable, writable });

  async function prompt(): Promise<StreamResult> {
    const stopReason = await sendPrompt(connection.agent, task);
    reportAll(endPartial(state));
    const ending = endingByStopReason[stopReason];
    return ending === undefined
      ? endWith("agent_error", { status: null, message: `it stopped with ${stopReason}` })
      : endWith(ending, null);
  }

  try {
    const outcome = await Promise.race([prompt(), ended.then(() => null)]);
    await lastReport;
    for (const kind of state.unknown) reporter.unknownKinds.add(kind);
    return outcome ?? unfinishedResult;
  } catch (error) {
    // A connection that ends during a request fails it; how the process exited is the better reason.
    await lastReport;
    if (error instanceof AgentFailure) throw error;
    if (!(error instanceof RequestError)) return unfinishedResult;
    const reasons = [error.message, text(object(error.data).message) || text(object(error.data).details)];
    const message = reasons.filter(Boolean).join(": ");
    const status = statusIn(message);
    return endWith(error.code === authRequired ? "login_needed" : endingOfError(status, message), { status, message });
  } finally {
    connection.close();
  }
}

/** Starts a session in the workspace, sends the task, and returns why the agent stopped. Throws an AgentFailure, and RequestError. */
async function sendPrompt(agent: ClientContext, task: Task): Promise<string> {
  const { authMethods = [], agentCapabilities } = await agent.request(methods.agent.initialize, {
    protocolVersion: PROTOCOL_VERSION,
    clientCapabilities: { fs: { readTextFile: false, writeTextFile: false }, terminal: false },
    clientInfo: { name: "evald", version },
  });
  const mcpServers = toAcpServers(task.workspace?.mcpServers ?? {});
  const remote = mcpServers.find((server) => "url" in server);
  if (remote && !agentCapabilities?.mcpCapabilities?.http)
    throw toAgentFailure(
      "unusable",
      `the agent does not support remote MCP servers (workspace.mcpServers.${remote.name}); use one with a command`,
    );
  const openSession = () => agent.request(methods.agent.session.new, { cwd: "/workspace", mcpServers });
  const session = await openSession().catch(async (error: unknown) => {
    const [method] = authMethods ?? [];
    if (!(error instanceof RequestError) || error.code !== authRequired || !method) throw error;
    await agent.request(methods.agent.authenticate, { methodId: method.id }).catch((problem: unknown) => {
      // The agent may say in its own words that it needs a browser.
      if (problem instanceof RequestError) throw new RequestError(authRequired, problem.message, problem.data);
      throw problem;
    });
    return await openSession();
  });
  const { sessionId } = session;
  const mode = session.modes?.availableModes.find(({ id, name }) => freeModes.test(`${id} ${name}`));
  // Without the mode, it asks for permission and gets it.
  if (mode && task.agentOptions?.permissions !== "ask")
    await agent.request(methods.agent.session.setMode, { sessionId, modeId: mode.id }).catch(() => {});
  const { stopReason } = await agent.request(methods.agent.session.prompt, {
    sessionId,
    prompt: [{ type: "text", text: toPrompt(task) }],
  });
  return stopReason;
}

/** The question of an agent that asks before it does something. */
const toPermissionQuestion = (call: Fields): AgentEvent => ({
  type: "interruption",
  question: `May I do this: ${text(call.title) || text(call.kind) || "a tool call"}?`.slice(0, 1000),
  url: null,
});

/** Grants a permission: for good if the agent offers that. */
function grantPermission(params: Fields) {
  const options = list(params.options).map(object);
  const option =
    options.find(({ kind }) => kind === "allow_always") ?? options.find(({ kind }) => kind === "allow_once");
  if (!option) return { outcome: { outcome: "cancelled" } };
  return { outcome: { outcome: "selected", optionId: option.optionId } };
}

/** Messages over stdio; invalid ones are skipped and reported. */
function openMessageStreams(agentProcess: SandboxProcess, reporter: SessionReporter) {
  const end = Promise.withResolvers<void>();
  const lines = linesOf(agentProcess.stdout);
  const readable = new ReadableStream<AnyMessage>({
    async pull(stream) {
      for (;;) {
        const { done, value: line } = await lines.next();
        if (done) {
          end.resolve();
          return stream.close();
        }
        if (line?.trim() === "") continue;
        const fields = line === null ? null : readLine(line);
        if (fields !== null) return stream.enqueue(fields as AnyMessage);
        countUnreadableLine(reporter, line);
      }
    },
  });
  const writable = new WritableStream<AnyMessage>({
    async write(outgoing) {
      try {
        agentProcess.stdin.write(`${JSON.stringify(outgoing)}\n`);
        await agentProcess.stdin.flush();
      } catch {
        // Exited: its stdout ends as well.
      }
    },
  });
  return { readable, writable, ended: end.promise };
}

/** What is remembered between the updates of a session. */
type UpdateState = {
  calls: Map<string, Call>;
  /** The message or thought that has not ended yet. */
  partial: { kind: "message" | "thought"; text: string } | null;
  lastMessage: string | null;
  costUsd: number | null;
  /** Unknown kinds of updates. */
  unknown: Set<string>;
};

type Call = { name: string; tool: string; input: Fields; isReported: boolean; isDone: boolean };

const updatesWithoutNews = /^(user_message_chunk|plan|notice|usage_update|compaction_\w+|\w+_(mode_)?update)$/;

/** Turns a session update into events. Messages come in pieces, and calls in several updates. */
function parseUpdate(update: Fields, state: UpdateState): AgentEvent[] {
  const kind = text(update.sessionUpdate);
  if (kind === "agent_message_chunk") return addPiece(state, "message", text(object(update.content).text));
  if (kind === "agent_thought_chunk") return addPiece(state, "thought", text(object(update.content).text));
  if (kind === "tool_call" || kind === "tool_call_update") return parseCall(update, state);
  if (kind === "usage_update") state.costUsd = number(object(update.cost).amount) ?? state.costUsd;
  if (!updatesWithoutNews.test(kind)) state.unknown.add(kind);
  return [];
}

function addPiece(state: UpdateState, kind: "message" | "thought", piece: string): AgentEvent[] {
  const events = state.partial?.kind === kind ? [] : endPartial(state);
  state.partial = { kind, text: (state.partial?.text ?? "") + piece };
  return events;
}

function endPartial(state: UpdateState): AgentEvent[] {
  const { partial } = state;
  state.partial = null;
  if (partial === null) return [];
  if (partial.kind === "thought") return thought(partial.text);
  if (partial.text.trim() !== "") state.lastMessage = partial.text;
  return message(partial.text);
}

function parseCall(update: Fields, state: UpdateState): AgentEvent[] {
  const id = text(update.toolCallId);
  const call = state.calls.get(id) ?? { name: "", tool: "", input: {}, isReported: false, isDone: false };
  state.calls.set(id, call);
  const name = text(update.name) || text(object(object(update._meta).claudeCode).toolName) || text(update.title);
  call.name ||= name.slice(0, 100) || "unknown";
  call.tool ||= toolNamesByKind[text(update.kind)] ?? "";
  if (Object.keys(object(update.rawInput)).length > 0) call.input = object(update.rawInput);
  const path = object(list(update.locations)[0]).path;
  if (path !== undefined && call.tool !== "run_command") call.input = { path, ...call.input };
  const isOver = update.status === "completed" || update.status === "failed";
  const events = endPartial(state);
  // The input of a pending call may still be incomplete.
  if (!call.isReported && (isOver || update.status === "in_progress")) {
    call.isReported = true;
    events.push(toCall(id, call.name, call.input, call.tool || undefined));
  }
  if (!isOver || call.isDone) return events;
  call.isDone = true;
  const rawOutput = object(update.rawOutput);
  const blocks = list(update.content).map((block) => text(object(object(block).content).text));
  const output =
    blocks.join("") || text(update.rawOutput) || text(rawOutput.output) || text(rawOutput.formatted_output);
  const exitCode =
    number(rawOutput.exit_code) ??
    number(rawOutput.exitCode) ??
    number(object(rawOutput.metadata).exit) ??
    exitCodeIn(output);
  const result = { id, name: call.name, ok: update.status === "completed", output };
  return [...events, toResult(result, call.tool === "run_command" ? exitCode : null, call.tool || undefined)];
}
