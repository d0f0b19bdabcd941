import type { AgentEvent } from "../../agent.ts";
import { type Fields, isObject, list, object, parseObject, text } from "../../fields.ts";
import { parseClaudeLine } from "../streams/claude.ts";
import { parseCopilotLine } from "../streams/copilot.ts";
import { parseOpencodeLine } from "../streams/opencode.ts";
import { createStreamState, type LineParser, parseLine } from "../streams/stream.ts";
import { parseStoredCodex } from "./codex.ts";
import { parseStoredGemini } from "./gemini.ts";
import { parseStoredPi } from "./pi.ts";

/** A session that a coding agent stored on the machine of its user. `version`: empty if the file doesn't say. */
export type StoredSession = { agent: string; version: string; events: AgentEvent[] };

/** How an agent stores its sessions. `isOwn`: whether only this agent writes such a line. `versionOf`: its version, from that line. */
type StoredFormat = {
  agent: string;
  isOwn: (line: Fields) => boolean;
  versionOf: (line: Fields) => unknown;
  parse: (lines: Fields[]) => AgentEvent[];
};

/** Parses lines as those of the agent's stream. */
const asStream =
  (parse: LineParser) =>
  (lines: Fields[]): AgentEvent[] => {
    const state = createStreamState();
    return lines.flatMap((line) => parseLine(parse, line, state));
  };

/** Reads each line once, because a session that continues another one repeats its lines. */
const parseStoredClaude = (lines: Fields[]): AgentEvent[] =>
  asStream(parseClaudeLine)([...new Map(lines.map((line, at) => [text(line.uuid) || at, line])).values()]);

/** What `opencode export` prints: messages with their parts. */
const parseStoredOpencode = (lines: Fields[]): AgentEvent[] =>
  asStream(parseOpencodeLine)(
    lines
      .flatMap(({ messages }) => list(messages))
      .filter((each) => object(object(each).info).role === "assistant")
      .flatMap((each) => list(object(each).parts))
      .map((part) => ({ type: object(part).type === "tool" ? "tool_use" : object(part).type, part })),
  );

const formats: StoredFormat[] = [
  {
    agent: "Codex",
    isOwn: ({ type, payload }) => type === "session_meta" && isObject(payload),
    versionOf: ({ payload }) => object(payload).cli_version,
    parse: parseStoredCodex,
  },
  {
    agent: "GitHub Copilot CLI",
    isOwn: ({ type, data }) => type === "session.start" && object(data).copilotVersion !== undefined,
    versionOf: ({ data }) => object(data).copilotVersion,
    parse: asStream(parseCopilotLine),
  },
  {
    agent: "pi",
    isOwn: ({ type, id, cwd }) => type === "session" && typeof id === "string" && typeof cwd === "string",
    versionOf: () => "",
    parse: parseStoredPi,
  },
  {
    agent: "Gemini CLI",
    isOwn: ({ sessionId, projectHash }) => typeof sessionId === "string" && typeof projectHash === "string",
    versionOf: () => "",
    parse: parseStoredGemini,
  },
  {
    agent: "opencode",
    isOwn: ({ info, messages }) => typeof object(info).id === "string" && Array.isArray(messages),
    versionOf: ({ info }) => object(info).version,
    parse: parseStoredOpencode,
  },
  {
    agent: "Claude Code",
    isOwn: ({ type, uuid, sessionId, message }) =>
      (type === "user" || type === "assistant") &&
      typeof uuid === "string" &&
      typeof sessionId === "string" &&
      isObject(message),
    versionOf: ({ version }) => version,
    parse: parseStoredClaude,
  },
];

/** Names of the agents whose stored sessions can be read. */
export const storedAgents = formats.map(({ agent }) => agent);

/** Reads the content of a session file; null if it is not one of a known agent. */
export function readStoredSession(content: string): StoredSession | null {
  const whole = parseObject(content);
  const lines = whole
    ? [whole]
    : content
        .split("\n")
        .map(parseObject)
        .filter((line): line is Fields => line !== null);
  for (const { agent, isOwn, versionOf, parse } of formats) {
    const first = lines.find(isOwn);
    if (!first) continue;
    return { agent, version: text(versionOf(first)).slice(0, 40), events: parse(lines) };
  }
  return null;
}
