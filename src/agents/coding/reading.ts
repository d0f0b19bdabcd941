import type { StreamFormat } from "../../config/custom-agents.ts";
import type { AgentEvent } from "../agent.ts";
import type { LimitHit } from "../sandbox/bounds.ts";
import type { Sandboxed } from "../sandbox/sandbox.ts";
import type { Task } from "../task.ts";
import { toPrompt } from "./assignment.ts";
import { linesOf } from "./lines.ts";
import { parsers } from "./parsers.ts";
import type { ModelRecord } from "./record.ts";
import { exitCodeIn, type Fields, type Said, type StreamParser, toResult } from "./streams/stream.ts";
import type { Telling } from "./telling.ts";

export type Outcome = Said & { exitCode: number; limit: LimitHit | null; stderr: string };

/** How long to wait for the agent's next model call, which contains the complete result. */
const fillMs = 2_000;
const maxAnswerChars = 16_000;

/** Sends the task to the agent, and reports its events until it ends or closes its stdout. */
export async function readStream(
  format: StreamFormat,
  box: Pick<Sandboxed, "stdin" | "stdout">,
  task: Task,
  telling: Telling,
  record: ModelRecord,
): Promise<Said> {
  if (format === "acp") {
    const { converse } = await import("./acp.ts");
    return converse(box, task, telling, createFilling(record));
  }
  try {
    box.stdin.write(toPrompt(task));
    await box.stdin.end();
  } catch {
    // If the process exits before reading, its exit code says why.
  }
  return format === "none" ? readText(box.stdout) : readLines(parsers[format](), box.stdout, telling, record);
}

async function readText(stdout: ReadableStream<Uint8Array>): Promise<Said> {
  let text = "";
  for await (const line of linesOf(stdout)) text = `${text}${line ?? ""}\n`.slice(-maxAnswerChars);
  return { isEnded: false, text: text.trim() || null, error: null, claimedUsd: null };
}

async function readLines(
  parser: StreamParser,
  stdout: ReadableStream<Uint8Array>,
  telling: Telling,
  record: ModelRecord,
): Promise<Said> {
  const fill = createFilling(record);
  for await (const line of linesOf(stdout)) {
    if (line?.trim() === "") continue;
    const fields = line === null ? null : fieldsIn(line);
    if (fields === null) {
      telling.misread(line);
      continue;
    }
    for (const event of parser.take(fields)) telling.tell(await fill(event));
    if (parser.end()) break;
  }
  for (const kind of parser.unknown) telling.unknown(kind);
  const end = parser.end();
  return { ...(end ?? { text: null, error: null, claimedUsd: null }), isEnded: end !== null };
}

function fieldsIn(line: string): Fields | null {
  try {
    const value: unknown = JSON.parse(line);
    return value !== null && typeof value === "object" && !Array.isArray(value) ? { ...value } : null;
  } catch {
    return null;
  }
}

/** Adds to results what the stream omits but the model got: the exit code of a command, the text of a page. */
function createFilling(record: ModelRecord) {
  const counts = new Map<string, number>();
  return async (event: AgentEvent): Promise<AgentEvent> => {
    if (event.type !== "tool_result") return event;
    const { id, tool, ownName: name = event.tool } = event;
    const nth = (counts.get(name) ?? 0) + 1;
    counts.set(name, nth);
    const shown = String(event.output.text ?? "");
    const lacksCode = tool === "run_command" && event.output.exitCode === undefined;
    const lacksText = tool === "fetch_page" && event.ok;
    if (!lacksCode && !lacksText) return event;
    const find = () => record.findResult(id, name, nth);
    if (find() === null) await record.next(fillMs);
    const said = find();
    if (said === null) return event;
    if (lacksCode)
      return toResult({ id, name, ok: event.ok, said: shown || said }, exitCodeIn(said) ?? (event.ok ? 0 : null), tool);
    return said.length > shown.length ? toResult({ id, name, ok: true, said }, null, tool) : event;
  };
}
