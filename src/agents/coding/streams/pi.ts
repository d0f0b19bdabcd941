import {
  exitCodeIn,
  list,
  message,
  number,
  object,
  problem,
  type StreamEnd,
  type StreamParser,
  statusIn,
  text,
  textOf,
  thought,
  toCall,
  toResult,
} from "./stream.ts";

const passing =
  /^(session|agent_start|turn_start|turn_end|message_start|message_update|tool_execution_update|auto_retry_end|compaction_\w+|queue_update)$/;

/** For `pi --mode json`. */
export function createPiParser(): StreamParser {
  const unknown = new Set<string>();
  let last: string | null = null;
  let end: StreamEnd | null = null;

  return {
    unknown,
    end: () => end,
    take(line) {
      if (line.type === "message_end") {
        const { role, content } = object(line.message);
        if (role !== "assistant") return [];
        return list(content).flatMap((part) => {
          const block = object(part);
          if (block.type === "thinking") return thought(block.thinking);
          if (block.type !== "text") return [];
          last = text(block.text);
          return message(block.text);
        });
      }
      const id = text(line.toolCallId);
      const name = text(line.toolName);
      if (line.type === "tool_execution_start") return [toCall(id, name, line.args)];
      if (line.type === "tool_execution_end") {
        const said = textOf(object(line.result).content);
        const ok = line.isError !== true;
        return [toResult({ id, name, ok, said }, name === "bash" ? (ok ? 0 : exitCodeIn(said)) : null)];
      }
      if (line.type === "auto_retry_start") return [problem("model", line.errorMessage)];
      if (line.type === "agent_end") {
        const answers = list(line.messages).map(object);
        const { stopReason, errorMessage } = answers.at(-1) ?? {};
        const why = text(errorMessage);
        const error = stopReason === "error" ? { status: statusIn(why), message: why || "error" } : null;
        const costs = answers.map((each) => number(object(object(each.usage).cost).total) ?? 0);
        const usd = costs.reduce((sum, each) => sum + each, 0);
        end = { text: error ? null : last, error, claimedUsd: usd };
        return [];
      }
      if (!passing.test(text(line.type))) unknown.add(text(line.type));
      return [];
    },
  };
}
