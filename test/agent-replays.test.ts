import { expect, test } from "bun:test";
import { join } from "node:path";
import type { AgentEvent } from "../src/agents/agent.ts";
import { presets } from "../src/agents/coding/presets.ts";
import { replayOutput } from "../src/agents/coding/replay.ts";

// Trials of real agents over the Agent Client Protocol, as `evald agent try AGENT --save FILE` recorded them, with long texts and lists cut.

const agents = ["copilot", "gemini", "opencode", "qwen"] as const;
const textOf = (agent: string) => Bun.file(join(import.meta.dir, "fixtures", "agent-acp", `${agent}.jsonl`)).text();
const presetOf = (agent: string) => {
  const preset = presets.find(({ id }) => id === `${agent}-acp`);
  if (!preset) throw new Error(`${agent} has no preset for ACP`);
  return preset;
};

/** The calls of a session, each with its result. */
const callsIn = (events: AgentEvent[]) =>
  events.flatMap((event) => {
    if (event.type !== "tool_call") return [];
    const result = events.find((each) => each.type === "tool_result" && each.id === event.id);
    if (result?.type !== "tool_result") throw new Error(`${event.id} has no result`);
    const { command, url, path } = event.input;
    return [[event.tool, command ?? url ?? path ?? "", result.ok, result.output.exitCode]];
  });

const [hello, failing] = ["echo hello", "echo failed >&2; exit 3"];
const guide = "https://docs.evald.test/guide";
const calls: Record<(typeof agents)[number], unknown[][]> = {
  copilot: [
    ["run_command", hello, true, 0],
    ["run_command", failing, false, 3],
    ["fetch_page", guide, true, undefined],
    ["write_file", "/workspace/hello.txt", true, undefined],
  ],
  // It shows neither inputs nor exit codes: in a session, they come from the calls of the model. None is invented.
  gemini: [
    ["run_command", "", true, null],
    ["run_command", "", true, null],
    ["fetch_page", "", true, undefined],
    ["write_file", "/workspace/hello.txt", true, undefined],
  ],
  opencode: [
    ["run_command", hello, true, 0],
    ["run_command", failing, false, 3],
    ["fetch_page", guide, true, undefined],
    ["write_file", "/workspace/hello.txt", true, undefined],
  ],
  qwen: [
    ["run_command", hello, true, 0],
    ["run_command", failing, false, 3],
    ["run_command", `curl -sS ${guide}`, true, 0],
    ["write_file", "/workspace/hello.txt", true, undefined],
  ],
};

test.each(agents)("%s over ACP: the recorded messages give the events of the trial", async (agent) => {
  const replay = replayOutput(await textOf(agent), presetOf(agent));
  expect(replay).toMatchObject({ ending: "finished", unreadableLines: 0, unknownKinds: [] });
  expect(replay.answer).toContain("Done: all steps of the trial were made.");
  expect(callsIn(replay.events)).toEqual(calls[agent]);
  const types = new Set(replay.events.map(({ type }) => type));
  expect([...types].sort()).toEqual(["message", "thought", "tool_call", "tool_result"]);
});

test.each(agents)("%s over ACP: incomplete messages don't crash the parser", async (agent) => {
  const lines = (await textOf(agent))
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  const changed = lines.flatMap((line) => {
    const update = line.message?.params?.update ?? {};
    return Object.keys(update).flatMap((name) =>
      [null, 1, "x", [], {}].map((value) => {
        const params = { ...line.message.params, update: { ...update, [name]: value } };
        return JSON.stringify({ ...line, message: { ...line.message, params } });
      }),
    );
  });
  expect(changed.length).toBeGreaterThan(50);
  expect(replayOutput(changed.join("\n"), presetOf(agent)).unreadableLines).toBe(0);
});
