import { expect, test } from "bun:test";
import type { AgentEvent } from "../src/agents/agent.ts";
import { toPreset } from "../src/agents/coding/preset.ts";
import { serveScriptedModel } from "../src/agents/coding/scripted-model.ts";
import { findSteps, type Trial } from "../src/cli/trial-diagnosis.ts";

// What `evald agent try` says about a new agent. test/slow/real-agents.test.ts runs it with real ones.

const preset = toPreset({ id: "acme", command: "acme", stream: "none", provider: "openai" });

const diagnosesOf = (events: AgentEvent[], trial: Partial<Trial> = {}) => {
  const stored = events.map((event, seq) => ({ ...event, seq, at: 0, tMs: 0, source: "agent" as const }));
  const steps = findSteps({ events: stored, requests: [], preset, host: "docs.test", failureReason: null, ...trial });
  return Object.fromEntries(steps.map(({ name, diagnosis }) => [name, diagnosis]));
};

test("a program that asks something instead of calling its model is quoted", () => {
  const reason = "Do you trust the files in this folder?";
  const printed = { kind: "no_model_call", printed: reason };
  expect(diagnosesOf([{ type: "end", outcome: "not_judged", reason }])).toMatchObject({
    command: printed,
    answer: printed,
    usage: printed,
  });
  expect(diagnosesOf([], { failureReason: reason }).command).toEqual({ kind: "no_model_call", printed: reason });
});

test("a file counts as written only if it is in the workspace", () => {
  const call = { path: "/v1", isKnownPath: true, hasTask: true, toolNames: ["write_file"] };
  const requests = [{ ...call, call: { step: "file" as const, tool: "write_file" } }];
  const output = { text: "Validation failed: use another path" };
  const written: AgentEvent[] = [
    { type: "tool_call", id: "a", tool: "write_file", input: { path: "hello.txt" } },
    { type: "tool_result", id: "a", tool: "write_file", ok: null, output },
  ];
  const changed = (files: number): AgentEvent => ({
    type: "milestone",
    name: "workspace_changed",
    detail: { files, isCut: false },
  });
  expect(diagnosesOf([...written, changed(0)], { requests }).file).toEqual({
    ...{ kind: "no_file", tool: "write_file", output: output.text },
  });
  expect(diagnosesOf([...written, changed(1)], { requests }).file).toBeNull();
});

test("the scripted model writes its file again if the path must be relative", async () => {
  const model = serveScriptedModel("https://docs.test/guide", ["file"]);
  const properties = { path: { type: "string" }, content: { type: "string" } };
  const tools = [{ type: "function", function: { name: "write_file", parameters: { type: "object", properties } } }];
  const ask = async (...results: string[]) => {
    const messages = [
      { role: "user", content: "See https://docs.test/guide" },
      ...results.map((content, i) => ({ role: "tool", tool_call_id: `${i}`, content })),
    ];
    const body = JSON.stringify({ model: "m", messages, tools });
    const response = await fetch(`${model.url}/v1/chat/completions`, { method: "POST", body });
    const { message } = (await response.json()).choices[0];
    return message.tool_calls ? JSON.parse(message.tool_calls[0].function.arguments).path : message.content;
  };
  const refusal = "Invalid file path. Path must be relative.";
  expect([await ask(), await ask(refusal), await ask("written")]).toEqual([
    "/workspace/hello.txt",
    "hello.txt",
    expect.stringContaining("Done"),
  ]);
  await model.stop();
});
