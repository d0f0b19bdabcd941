import {
  message,
  number,
  object,
  problem,
  type StreamEnd,
  type StreamParser,
  text,
  thought,
  toCall,
  toResult,
} from "./stream.ts";

/** Lines without new information. */
const passing =
  /^(session|user|model|hook|skill|subagent|permission|assistant\.(turn|usage|intent|streaming|message_|reasoning_|tool_call_))/;

/** For `copilot --output-format json`. */
export function createCopilotParser(): StreamParser {
  const names = new Map<string, string>();
  const unknown = new Set<string>();
  let last: string | null = null;
  let error: StreamEnd["error"] = null;
  let end: StreamEnd | null = null;

  return {
    unknown,
    end: () => end,
    take(line) {
      const type = text(line.type);
      const data = object(line.data);
      if (type === "assistant.reasoning") return thought(data.content);
      if (type === "assistant.message") {
        if (text(data.content) !== "") last = text(data.content);
        return message(data.content);
      }
      if (type === "tool.execution_start") {
        names.set(text(data.toolCallId), text(data.toolName));
        return [toCall(text(data.toolCallId), text(data.toolName), data.arguments)];
      }
      if (type === "tool.execution_complete") {
        const id = text(data.toolCallId);
        const said = text(object(data.result).content) || text(object(data.error).message);
        const exitCode = number(object(data.shellExecution).exitCode);
        return [toResult({ id, name: names.get(id) ?? "unknown", ok: data.success === true, said }, exitCode)];
      }
      if (type === "session.error" || type === "model.call_failure") {
        const why = text(data.message) || text(data.errorMessage) || "the model call failed";
        error = { status: number(data.statusCode), message: why };
        return [problem("model", why)];
      }
      if (type === "assistant.idle") {
        end = { text: error ? null : last, error, claimedUsd: null };
        return [];
      }
      if (type === "result") {
        const failed = line.exitCode === 0 ? null : (error ?? { status: null, message: `exit code ${line.exitCode}` });
        end = { text: failed ? null : last, error: failed, claimedUsd: null };
        return [];
      }
      if (line.ephemeral !== true && !passing.test(type)) unknown.add(type);
      return [];
    },
  };
}
