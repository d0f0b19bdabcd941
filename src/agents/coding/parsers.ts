import type { StreamFormat } from "../../config/custom-agents.ts";
import { createClaudeParser } from "./streams/claude.ts";
import { createCodexParser } from "./streams/codex.ts";
import { createCopilotParser } from "./streams/copilot.ts";
import { createGeminiParser } from "./streams/gemini.ts";
import { createOpencodeParser } from "./streams/opencode.ts";
import { createPiParser } from "./streams/pi.ts";
import type { StreamParser } from "./streams/stream.ts";

/** Parsers of JSON line streams. */
export const parsers: Record<Exclude<StreamFormat, "acp" | "none">, () => StreamParser> = {
  claude: createClaudeParser,
  codex: createCodexParser,
  gemini: createGeminiParser,
  opencode: createOpencodeParser,
  copilot: createCopilotParser,
  pi: createPiParser,
};
