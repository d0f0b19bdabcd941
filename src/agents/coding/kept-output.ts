import { mapTexts } from "../../redaction/texts.ts";
import { type AgentEvent, maxAgentOutputBytes } from "../agent.ts";
import { parseObject } from "../fields.ts";

/** The first line of a kept output: which agent printed it, and the format of the lines after it. */
export type OutputHeader = {
  evald: "agent-output";
  agent: string;
  version: string;
  stream: string;
  /** Names of the MCP servers of the session. */
  mcpServers: string[];
};

/** Lines are sent once they have this size, or this long after the first of them was added. */
const partBytes = 64 * 1024;
const partMs = 5_000;
/** Texts in longer lines are cut. */
const maxLineChars = 64 * 1024;
const maxTextChars = 16_000;

/** The beginning of a line of JSON that repeats what a later line says as a whole, such as `{"type":"item.updated"` while a command still runs. */
const progress = /^\{"type":\s?"(?:stream_event|[a-z_.]*(?:[._](?:updated?|progress|partial_result)|delta))"/;

/** The note in place of the lines after the limit. */
const outputCut = JSON.stringify({ evald: "agent-output-cut" });

/**
 * Keeps what an agent prints, line by line, and sends it in parts, which become artifacts of the session. After `maxAgentOutputBytes`, further
 * lines are left out. Stop it with `close`, which sends the rest.
 */
export function keepOutput(header: OutputHeader, send: (event: AgentEvent) => void) {
  let part = `${JSON.stringify(header)}\n`;
  let parts = 0;
  let bytes = part.length;
  let isCut = false;
  let timer: ReturnType<typeof setTimeout> | undefined;

  function sendPart(): void {
    clearTimeout(timer);
    timer = undefined;
    if (part === "") return;
    const data = Buffer.from(part);
    part = "";
    const artifact = {
      name: `agent-output-${String(++parts).padStart(4, "0")}.jsonl`,
      bytes: data.length,
      data: data.toString("base64"),
    };
    send({ type: "milestone", name: "agent_output", detail: {}, artifact });
  }

  function add(line: string): void {
    if (isCut) return;
    const text = line.length > maxLineChars ? shortenLine(line) : line;
    bytes += Buffer.byteLength(text) + 1;
    isCut = bytes > maxAgentOutputBytes - outputCut.length - 1;
    part += `${isCut ? outputCut : text}\n`;
    if (part.length >= partBytes) sendPart();
    else timer ??= setTimeout(sendPart, partMs);
  }

  return {
    /** Keeps a line; null: the line was too long to be read. */
    addLine(line: string | null): void {
      if (line !== null && line.trim() !== "" && !progress.test(line)) add(line);
    },
    /** Keeps a message of the Agent Client Protocol. `from`: who sent it. */
    addMessage: (from: "agent" | "evald", message: object): void => add(JSON.stringify({ from, message })),
    close: sendPart,
  };
}

export type OutputKeeper = ReturnType<typeof keepOutput>;

/** Keeps the lines of a stream as they are read. */
export async function* keepingLines(
  lines: AsyncIterable<string | null>,
  keeper: OutputKeeper,
): AsyncGenerator<string | null, void> {
  for await (const line of lines) {
    keeper.addLine(line);
    yield line;
  }
}

function shortenLine(line: string): string {
  const value = parseObject(line);
  const cut = (text: string) => (text.length > maxTextChars ? `${text.slice(0, maxTextChars).toWellFormed()}…` : text);
  const shortened = value === null ? cut(line) : JSON.stringify(mapTexts(value, cut));
  return shortened.length > 4 * maxLineChars ? shortened.slice(0, maxTextChars) : shortened;
}
