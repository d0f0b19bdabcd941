import { type AnyMessage, client, methods, PROTOCOL_VERSION, RequestError } from "@agentclientprotocol/sdk";
import { version } from "../../../package.json" with { type: "json" };
import { type AgentEvent, AgentFailure } from "../agent.ts";
import type { Sandboxed } from "../sandbox/sandbox.ts";
import type { Task } from "../task.ts";
import { toPrompt } from "./assignment.ts";
import { linesOf } from "./lines.ts";
import { toAcpServers } from "./mcp-servers.ts";
import type { Fields, Said } from "./streams/stream.ts";
import {
  exitCodeIn,
  list,
  message,
  number,
  object,
  statusIn,
  text,
  thought,
  toCall,
  toResult,
} from "./streams/stream.ts";
import type { Telling } from "./telling.ts";

/** evald's names for the protocol's kinds of tools; other tools keep their own names. */
const tools: Record<string, string> = {
  execute: "run_command",
  fetch: "fetch_page",
  edit: "write_file",
  read: "read_file",
};
/** Modes in which agents don't ask for permission. The sandbox limits them. */
const freeModes = /yolo|bypass|full.?access|auto.?(approve|edit)|dont.?ask/i;
const authRequired = -32_000;

type Fill = (event: AgentEvent) => Promise<AgentEvent>;

/** Runs one prompt over the Agent Client Protocol. Every permission is granted, and nobody can answer questions. */
export async function converse(
  box: Pick<Sandboxed, "stdin" | "stdout">,
  task: Task,
  telling: Telling,
  fill: Fill,
): Promise<Said> {
  const updates = createUpdates();
  let reported: Promise<void> = Promise.resolve();
  const tell = (events: AgentEvent[]) => {
    reported = reported.then(async () => {
      for (const event of events) telling.tell(await fill(event));
    });
  };
  const { readable, writable, ended } = toStream(box, telling);
  const app = client({ name: "evald" })
    .onRequest(
      methods.client.session.requestPermission,
      (given: unknown) => object(given),
      ({ params }) => {
        tell(updates.take({ ...object(params.toolCall), sessionUpdate: "tool_call_update", status: "in_progress" }));
        const options = list(params.options).map(object);
        const chosen =
          options.find(({ kind }) => kind === "allow_always") ?? options.find(({ kind }) => kind === "allow_once");
        if (!chosen) return { outcome: { outcome: "cancelled" } };
        return { outcome: { outcome: "selected", optionId: chosen.optionId } };
      },
    )
    .onNotification(
      methods.client.session.update,
      (given: unknown) => object(given),
      ({ params }) => {
        tell(updates.take(object(params.update)));
      },
    );
  const connection = app.connect({ readable, writable });
  const { agent } = connection;
  const failed = ended.then(() => null);

  async function work(): Promise<Said> {
    const { authMethods = [], agentCapabilities } = await agent.request(methods.agent.initialize, {
      protocolVersion: PROTOCOL_VERSION,
      clientCapabilities: { fs: { readTextFile: false, writeTextFile: false }, terminal: false },
      clientInfo: { name: "evald", version },
    });
    const mcpServers = toAcpServers(task.workspace?.mcpServers ?? {});
    const remote = mcpServers.find((server) => "url" in server);
    if (remote && !agentCapabilities?.mcpCapabilities?.http)
      throw new AgentFailure(
        "infrastructure",
        `the agent does not support remote MCP servers (workspace.mcpServers.${remote.name}); use one with a command`,
      );
    const open = () => agent.request(methods.agent.session.new, { cwd: "/workspace", mcpServers });
    const session = await open().catch(async (error: unknown) => {
      const [method] = authMethods ?? [];
      if (!(error instanceof RequestError) || error.code !== authRequired || !method) throw error;
      await agent.request(methods.agent.authenticate, { methodId: method.id });
      return await open();
    });
    const { sessionId } = session;
    const mode = session.modes?.availableModes.find(({ id, name }) => freeModes.test(`${id} ${name}`));
    // Without the mode, it asks for permission and gets it.
    if (mode) await agent.request(methods.agent.session.setMode, { sessionId, modeId: mode.id }).catch(() => {});
    const { stopReason } = await agent.request(methods.agent.session.prompt, {
      sessionId,
      prompt: [{ type: "text", text: toPrompt(task) }],
    });
    tell(updates.flush());
    const error = stopReason === "end_turn" ? null : { status: null, message: `it stopped with ${stopReason}` };
    return { isEnded: true, text: error ? null : updates.last(), error, claimedUsd: updates.claimedUsd() };
  }

  try {
    const outcome = await Promise.race([work(), failed]);
    await reported;
    for (const kind of updates.unknown) telling.unknown(kind);
    return outcome ?? { isEnded: false, text: null, error: null, claimedUsd: null };
  } catch (error) {
    // A connection that ends during a request fails it; how the process exited is the better reason.
    await reported;
    if (error instanceof AgentFailure) throw error;
    if (!(error instanceof RequestError)) return { isEnded: false, text: null, error: null, claimedUsd: null };
    const why = [error.message, text(object(error.data).message) || text(object(error.data).details)];
    const said = why.filter(Boolean).join(": ");
    return { isEnded: true, text: null, error: { status: statusIn(said), message: said }, claimedUsd: null };
  } finally {
    connection.close();
  }
}

/** Messages over stdio; invalid ones are skipped and reported. */
function toStream(box: Pick<Sandboxed, "stdin" | "stdout">, telling: Telling) {
  const over = Promise.withResolvers<void>();
  const lines = linesOf(box.stdout);
  const readable = new ReadableStream<AnyMessage>({
    async pull(stream) {
      for (;;) {
        const { done, value: line } = await lines.next();
        if (done) {
          over.resolve();
          return stream.close();
        }
        if (line?.trim() === "") continue;
        try {
          return stream.enqueue(JSON.parse(line ?? ""));
        } catch {
          telling.misread(line);
        }
      }
    },
  });
  const writable = new WritableStream<AnyMessage>({
    async write(sent) {
      try {
        box.stdin.write(`${JSON.stringify(sent)}\n`);
        await box.stdin.flush();
      } catch {
        // Exited: its stdout ends as well.
      }
    },
  });
  return { readable, writable, ended: over.promise };
}

type Call = { name: string; tool: string; input: Fields; isTold: boolean; isDone: boolean };

/** Turns session updates into events. Messages come in pieces, and calls in several updates. */
function createUpdates() {
  const calls = new Map<string, Call>();
  const unknown = new Set<string>();
  let saying: { kind: "message" | "thought"; text: string } | null = null;
  let last: string | null = null;
  let usd: number | null = null;

  function flush(): AgentEvent[] {
    const said = saying;
    saying = null;
    if (said?.kind === "message" && said.text.trim() !== "") last = said.text;
    return said === null ? [] : said.kind === "message" ? message(said.text) : thought(said.text);
  }

  function say(kind: "message" | "thought", piece: string): AgentEvent[] {
    const before = saying?.kind === kind ? [] : flush();
    saying = { kind, text: (saying?.text ?? "") + piece };
    return before;
  }

  function takeCall(update: Fields): AgentEvent[] {
    const id = text(update.toolCallId);
    const given = text(update.name) || text(object(object(update._meta).claudeCode).toolName) || text(update.title);
    const call = calls.get(id) ?? { name: "", tool: "", input: {}, isTold: false, isDone: false };
    calls.set(id, call);
    call.name ||= given.slice(0, 100) || "unknown";
    call.tool ||= tools[text(update.kind)] ?? "";
    if (Object.keys(object(update.rawInput)).length > 0) call.input = object(update.rawInput);
    const path = object(list(update.locations)[0]).path;
    if (path !== undefined && call.tool !== "run_command") call.input = { path, ...call.input };
    const isOver = update.status === "completed" || update.status === "failed";
    const events = flush();
    // The input of a pending call may still be incomplete.
    if (!call.isTold && (isOver || update.status === "in_progress")) {
      call.isTold = true;
      events.push(toCall(id, call.name, call.input, call.tool || undefined));
    }
    if (!isOver || call.isDone) return events;
    call.isDone = true;
    const raw = object(update.rawOutput);
    const blocks = list(update.content).map((block) => text(object(object(block).content).text));
    const said = blocks.join("") || text(update.rawOutput) || text(raw.output) || text(raw.formatted_output);
    const isCommand = call.tool === "run_command";
    const code = number(raw.exit_code) ?? number(raw.exitCode) ?? number(object(raw.metadata).exit) ?? exitCodeIn(said);
    const result = { id, name: call.name, ok: update.status === "completed", said };
    return [...events, toResult(result, isCommand ? code : null, call.tool || undefined)];
  }

  return {
    unknown,
    flush,
    last: () => last,
    claimedUsd: () => usd,
    take(update: Fields): AgentEvent[] {
      const kind = text(update.sessionUpdate);
      if (kind === "agent_message_chunk") return say("message", text(object(update.content).text));
      if (kind === "agent_thought_chunk") return say("thought", text(object(update.content).text));
      if (kind === "tool_call" || kind === "tool_call_update") return takeCall(update);
      if (kind === "usage_update") usd = number(object(update.cost).amount) ?? usd;
      const passing = /^(user_message_chunk|plan|notice|usage_update|compaction_\w+|\w+_(mode_)?update)$/;
      if (!passing.test(kind)) unknown.add(kind);
      return [];
    },
  };
}
