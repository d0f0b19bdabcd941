import {
  type AnyMessage,
  type ClientContext,
  client,
  methods,
  PROTOCOL_VERSION,
  RequestError,
} from "@agentclientprotocol/sdk";
import { version } from "../../../package.json" with { type: "json" };
import type { ToolName } from "../../config/agent-entry.ts";
import { reasonOf } from "../../errors.ts";
import { ownMember } from "../../schema.ts";
import { type AgentEvent, AgentFailure, toAgentFailure } from "../agent.ts";
import { type EndingName, endingOfError } from "../endings.ts";
import { type Fields, list, object, text } from "../fields.ts";
import { linesOf } from "../lines.ts";
import { toPrompt } from "../llm/instructions.ts";
import type { SandboxProcess } from "../sandbox/sandbox.ts";
import type { Task } from "../task.ts";
import {
  type ClientCommand,
  type ClientMethods,
  closeTerminals,
  createClientMethods,
  createTerminal,
  findTerminalText,
  killTerminal,
  readOutput,
  readTextFile,
  waitForExit,
  writeTextFile,
} from "./acp-client.ts";
import {
  createUpdateState,
  endUpdates,
  hasOpenCall,
  parsePermissionRequest,
  parseUpdate,
  type TerminalText,
  toElicitationQuestion,
  type UpdateState,
} from "./acp-updates.ts";
import { toAcpServers } from "./mcp-servers.ts";
import type { Preset } from "./preset.ts";
import { countUnreadableLine, report, type SessionReporter } from "./session-reporter.ts";
import { readLine, type StreamResult, statusIn, toCall, toResult, unfinishedResult } from "./streams/stream.ts";

/** Modes in which agents don't ask for permission, and modes in which they ask less. The sandbox limits them. */
const freeModes = [/yolo|bypass|full.?access|dont.?ask/i, /auto.?(approve|edit)/i];
const authRequired = -32_000;
/** Reasons for which a turn ends in an ordinary way. */
export const endingByStopReason: Record<string, EndingName> = {
  end_turn: "finished",
  refusal: "refused",
  max_tokens: "output_limit",
  max_turn_requests: "turn_limit",
};

/** The process of an agent, and how to start commands in its name: with its workspace and its network, each in a sandbox of its own. */
export type RunningAgent = { process: SandboxProcess; startCommand: (command: ClientCommand) => SandboxProcess };

/**
 * Runs one prompt over the Agent Client Protocol. Every permission is granted, and nobody can answer questions. The agent may use files and
 * terminals of evald in place of its own.
 */
export async function converse(
  { process: agentProcess, startCommand }: RunningAgent,
  task: Task,
  reporter: SessionReporter,
  fillGaps: (event: AgentEvent) => Promise<AgentEvent>,
): Promise<StreamResult> {
  const clientMethods = createClientMethods(startCommand);
  const state = createUpdateState((id) => findTerminalText(clientMethods, id));
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
      reportAll(parsePermissionRequest(params, state, asksFirst));
      return grantPermission(params);
    })
    .onRequest(methods.client.elicitation.create, object, ({ params }) => {
      reportAll([toElicitationQuestion(params)]);
      return { action: "cancel" as const };
    })
    .onNotification(methods.client.session.update, object, ({ params }) => {
      reportAll(parseUpdate(object(params.update), state));
    });
  if (reporter.preset.clientMethods) offerClientMethods(app, clientMethods, { state, reportAll });
  const connection = app.connect({ readable, writable });

  async function prompt(): Promise<StreamResult> {
    const stopReason = await sendPrompt(connection.agent, task, reporter.preset);
    reportAll(endUpdates(state));
    const ending = ownMember(endingByStopReason, stopReason);
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
    // A connection that ends during a request makes it fail. How the process exited is the better reason.
    await lastReport;
    if (error instanceof AgentFailure) throw error;
    if (!(error instanceof RequestError)) return unfinishedResult;
    const reasons = [error.message, text(object(error.data).message) || text(object(error.data).details)];
    const message = reasons.filter(Boolean).join(": ");
    const status = statusIn(message);
    return endWith(error.code === authRequired ? "login_needed" : endingOfError(status, message), { status, message });
  } finally {
    connection.close();
    await closeTerminals(clientMethods);
  }
}

type ClientApp = ReturnType<typeof client>;
type Reporting = { state: UpdateState; reportAll: (events: AgentEvent[]) => void };

/** Offers files and terminals. If the agent uses them outside of its own calls, that is reported as a call. */
function offerClientMethods(app: ClientApp, clientMethods: ClientMethods, { state, reportAll }: Reporting): void {
  let lastId = 0;
  /** Reports a call, and its result when that is known. */
  const reportCall = (name: string, input: Fields, tool: ToolName, result: Promise<Partial<TerminalText>>) => {
    if (hasOpenCall(state)) return;
    const id = `client-${++lastId}`;
    reportAll([toCall(id, name, input, tool)]);
    result.then(
      ({ output = "", exitCode = null }) =>
        reportAll([toResult({ id, name, ok: exitCode === null || exitCode === 0, output }, exitCode, tool)]),
      (error) => reportAll([toResult({ id, name, ok: false, output: reasonOf(error) }, null, tool)]),
    );
  };
  app
    .onRequest(methods.client.fs.readTextFile, object, ({ params }) => {
      const answer = readTextFile(clientMethods, params);
      const result = answer.then(({ content }) => ({ output: content }));
      reportCall("fs/read_text_file", { path: params.path }, "read_file", result);
      return answer;
    })
    .onRequest(methods.client.fs.writeTextFile, object, ({ params }) => {
      const answer = writeTextFile(clientMethods, params);
      const { path, content } = params;
      reportCall("fs/write_text_file", { path, content }, "write_file", answer);
      return answer;
    })
    .onRequest(methods.client.terminal.create, object, ({ params }) => {
      const { terminalId } = createTerminal(clientMethods, params);
      const command = [params.command, ...list(params.args)].map(text).join(" ");
      const result = waitForExit(clientMethods, { terminalId }).then(
        () => findTerminalText(clientMethods, terminalId) ?? {},
      );
      reportCall("terminal/create", { command }, "run_command", result);
      return { terminalId };
    })
    .onRequest(methods.client.terminal.output, object, ({ params }) => readOutput(clientMethods, params))
    .onRequest(methods.client.terminal.waitForExit, object, ({ params }) => waitForExit(clientMethods, params))
    .onRequest(methods.client.terminal.kill, object, ({ params }) => killTerminal(clientMethods, params))
    .onRequest(methods.client.terminal.release, object, ({ params }) => killTerminal(clientMethods, params));
}

/** Starts a session in the workspace, sends the task, and returns why the agent stopped. Throws an AgentFailure, and RequestError. */
async function sendPrompt(agent: ClientContext, task: Task, { clientMethods }: Preset): Promise<string> {
  const { authMethods = [], agentCapabilities } = await agent.request(methods.agent.initialize, {
    protocolVersion: PROTOCOL_VERSION,
    clientCapabilities: {
      fs: { readTextFile: clientMethods, writeTextFile: clientMethods },
      terminal: clientMethods,
    },
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
  const { availableModes = [], currentModeId } = session.modes ?? {};
  const [mode] = freeModes.flatMap((pattern) => availableModes.filter(({ id, name }) => pattern.test(`${id} ${name}`)));
  // Without this mode, the agent asks for permission, and gets it.
  if (mode && mode.id !== currentModeId && task.agentOptions?.permissions !== "ask")
    await agent.request(methods.agent.session.setMode, { sessionId, modeId: mode.id }).catch(() => {});
  const { stopReason } = await agent.request(methods.agent.session.prompt, {
    sessionId,
    prompt: [{ type: "text", text: toPrompt(task) }],
  });
  return stopReason;
}

/** Grants a permission: for good if the agent offers that. */
function grantPermission(params: Fields) {
  const options = list(params.options).map(object);
  const option =
    options.find(({ kind }) => kind === "allow_always") ?? options.find(({ kind }) => kind === "allow_once");
  if (!option) return { outcome: { outcome: "cancelled" } };
  return { outcome: { outcome: "selected", optionId: option.optionId } };
}

/** Messages over stdio. Invalid messages are skipped and reported. */
function openMessageStreams(agentProcess: SandboxProcess, reporter: SessionReporter) {
  const { output } = reporter;
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
        if (fields !== null) {
          output.addMessage("agent", fields);
          return stream.enqueue(fields as AnyMessage);
        }
        countUnreadableLine(reporter, line);
      }
    },
  });
  const writable = new WritableStream<AnyMessage>({
    async write(outgoing) {
      output.addMessage("evald", outgoing);
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
