import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { AgentEvent } from "../src/agents/agent.ts";
import { lineParsers } from "../src/agents/coding/agent-output.ts";
import { presets } from "../src/agents/coding/presets.ts";
import { createStreamState, parseLine } from "../src/agents/coding/streams/stream.ts";
import { mapTool } from "../src/agents/coding/tools.ts";
import { object } from "../src/agents/fields.ts";

const linesOf = async (id: string): Promise<Record<string, unknown>[]> => {
  const text = await Bun.file(join(import.meta.dir, "fixtures", "agent-streams", `${id}.jsonl`)).text();
  return text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
};

const parserOf = (id: string) => {
  const preset = presets.find((each) => each.id === id);
  const parse = lineParsers[preset?.stream as keyof typeof lineParsers];
  const state = createStreamState();
  /** How the session ends if nothing follows. */
  const ending = () => state.end ?? state.likelyEnd;
  return { state, ending, take: (line: Record<string, unknown>) => parseLine(parse, line, state) };
};

/** The calls of a session, each with its result. */
function callsIn(events: AgentEvent[]) {
  return events.flatMap((event) => {
    if (event.type !== "tool_call") return [];
    const result = events.find((each) => each.type === "tool_result" && each.id === event.id);
    if (result?.type !== "tool_result") throw new Error(`${event.id} has no result`);
    const { command, url, path } = event.input;
    expect([result.tool, result.ownName]).toEqual([event.tool, event.ownName]);
    return [{ tool: event.tool, on: command ?? url ?? path, ok: result.ok, exitCode: result.output.exitCode }];
  });
}

/** Agents with a stream of which a session was recorded. */
const recorded = presets
  .map(({ id }) => id)
  .filter((id) => existsSync(join(import.meta.dir, "fixtures", "agent-streams", `${id}.jsonl`)));

// A recorded session of each agent: a command, one that fails, two pages, a file, an answer.
test.each(recorded.filter((id) => id !== "grok-build"))(
  "%s: every line of a recorded session is understood",
  async (id) => {
    const parser = parserOf(id);
    const events: AgentEvent[] = [];
    for (const line of await linesOf(id)) {
      expect(parser.state.end).toBeNull();
      events.push(...parser.take(line));
      if (parser.state.end) break;
    }
    expect([...parser.state.unknown]).toEqual([]);
    expect(parser.ending()).toMatchObject({ ending: "finished", text: "DONE. It is all done.", error: null });
    expect(events.findLast(({ type }) => type === "message")).toMatchObject({ text: "DONE. It is all done." });
    expect(events.some(({ type }) => type === "thought")).toBe(id !== "gemini");

    // Gemini CLI shows a failed command as a success, without an exit code. These calls come from the gateway's record
    // of model calls.
    const isSilent = id === "gemini";
    // Nor do Claude Code, Qwen Code and pi report a code of 0, and none is invented.
    const zero = ["codex", "opencode", "copilot"].includes(id) ? 0 : null;
    const fetches = ["codex", "pi"].includes(id)
      ? { tool: "run_command", on: "curl -sS http://docs.test/guide", ok: true, exitCode: zero }
      : { tool: "fetch_page", on: "http://docs.test/guide", ok: true };
    const [shell, failing, page, , file, ...rest] = callsIn(events);
    expect(rest).toEqual([]);
    expect(shell).toMatchObject({ tool: "run_command", on: "echo hello; pwd; id -u", ok: true });
    expect(shell?.exitCode).toBe(zero);
    expect(failing).toMatchObject({ tool: "run_command", on: "echo oops >&2; exit 3", ok: isSilent });
    expect(failing?.exitCode).toBe(isSilent ? null : 3);
    expect(page).toMatchObject(fetches);
    // The tool was not offered for this model.
    const ok = id !== "copilot";
    expect(file).toMatchObject({ tool: "write_file", on: expect.stringMatching(/hello\.txt$/), ok });
  },
);

test.each([
  ["gemini", { type: "tool_result", tool_id: "c", status: "success", output: "a\nCommand terminated by signal: 9" }],
  [
    "opencode",
    {
      type: "tool_use",
      part: {
        ...{ tool: "bash", callID: "c" },
        state: { status: "completed", output: "shell tool terminated command after exceeding timeout 120000 ms" },
      },
    },
  ],
])("%s: a command that a signal or a time limit ended has failed, with an unknown code", (id, line) => {
  const parser = parserOf(id);
  parser.take({ type: "tool_use", tool_id: "c", tool_name: "run_shell_command", parameters: { command: "sleep 999" } });
  const result = parser.take(line).find(({ type }) => type === "tool_result");
  expect(result).toMatchObject({ ok: false, output: { exitCode: null } });
});

test.each([
  ["claude", 0.02725],
  ["opencode", 0.0267],
  ["pi", 0.0267],
])("%s: the reported cost is kept", async (id, usd) => {
  const parser = parserOf(id);
  for (const line of await linesOf(id)) parser.take(line);
  expect(parser.ending()?.claimedUsd).toBeCloseTo(usd, 4);
});

test("grok-build: a recorded trial is understood, with its own names of tools", async () => {
  const preset = presets.find(({ id }) => id === "grok-build")!;
  const parser = parserOf(preset.id);
  const lines = await linesOf(preset.id);
  const events = lines.flatMap((line) => parser.take(line)).map((event) => mapTool(preset, event));
  expect([...parser.state.unknown]).toEqual([]);
  expect(parser.ending()).toMatchObject({ text: "Done: all steps of the trial were made.", error: null });
  expect(callsIn(events)).toMatchObject([
    { tool: "run_command", on: "echo hello" },
    { tool: "run_command", on: "echo failed >&2; exit 3" },
    { tool: "run_command", on: "curl -sS https://docs.evald.test/guide" },
    { tool: "write_file", on: "/workspace/hello.txt" },
  ]);
});

test.each(recorded)("%s: incomplete lines don't crash the parser", async (id) => {
  const lines = await linesOf(id);
  const parser = parserOf(id);
  for (const line of lines)
    for (const name of Object.keys(line))
      for (const value of [null, undefined, 1, "x", [], {}]) {
        parser.take({ ...line, [name]: value });
        for (const inner of Object.keys(object(line[name])))
          parser.take({ ...line, [name]: { ...object(line[name]), [inner]: value } });
      }
  parser.take({ type: "something_new" });
  expect(parser.state.unknown).toContain("something_new");
});

test.each([
  [{ type: "turn.failed", error: { message: "unexpected status 401 Unauthorized: no key" } }, "codex", 401],
  [{ type: "result", is_error: true, subtype: "success", api_error_status: 429, result: "slow down" }, "claude", 429],
  [{ type: "result", status: "error", error: { message: '{"error":{"code":402}}' } }, "gemini", 402],
  [{ type: "error", error: { name: "APIError", data: { statusCode: 500, message: "broke" } } }, "opencode", 500],
  [{ type: "agent_end", messages: [{ stopReason: "error", errorMessage: "401 no key" }] }, "pi", 401],
  [{ type: "result", exitCode: 1 }, "copilot", null],
])("an error ends the session: %j", (line, id, status) => {
  const parser = parserOf(id);
  parser.take(line);
  expect(parser.ending()).toMatchObject({ text: null, error: { status } });
});

test.each([
  ["prints how another program fails", "On errors, it returns exit code 2 and prints why.\nDone.", true],
  ["prints a limit", "Uploads must not exceed 30 seconds.", true],
  ["was stopped by a time limit", "bash tool terminated command after exceeding timeout 5000 ms", false],
])("a command that %s is told from what it prints", (_, output, ok) => {
  const { take } = parserOf("claude");
  const use = { type: "tool_use", id: "t1", name: "Bash", input: { command: "acme help" } };
  const answer = { type: "tool_result", tool_use_id: "t1", content: output, is_error: false };
  const events = [
    { type: "assistant", message: { content: [use] } },
    { type: "user", message: { content: [answer] } },
  ].flatMap(take);
  expect(events.find(({ type }) => type === "tool_result")).toMatchObject({ ok });
});
