import { expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { listPresets } from "../src/agents/all.ts";
import { addTo, fillFile, taskChannelOf, toPreset } from "../src/agents/coding/preset.ts";
import { presetEntries } from "../src/agents/coding/presets.ts";
import { toEntryText } from "../src/cli/agent-init.ts";
import { checkEntries, parseAgentEntries } from "../src/config/agent-entries.ts";
import { emptyFolder } from "./support/executable.ts";

const entry = { id: "acme", command: "acme", stream: "none", provider: "openai" };

/** The error of a list with one entry. */
function errorOf(fields: object): string {
  try {
    parseAgentEntries(JSON.stringify([{ ...entry, ...fields }]));
    return "none";
  } catch (error) {
    return String(error);
  }
}

test.each(presetEntries.map((each) => [each.id, each] as const))(
  "the entry of %s can be copied and works under another ID",
  (_, preset) => {
    expect(checkEntries(preset, "")).toEqual([preset]);
    const EVALD_AGENTS = JSON.stringify([{ ...preset, id: "copy" }]);
    const { revision, ...copy } = toPreset(preset);
    expect(listPresets({ EVALD_AGENTS }).find(({ id }) => id === "copy")).toMatchObject({ ...copy, id: "copy" });
    expect(revision).toMatch(/^custom\.[0-9a-f]{8}$/);
  },
);

test.each([
  [{ comand: "x" }, /0\.comand is not a known field; use one of id, name, command/],
  [{ command: "" }, /0\.command must be a non-empty string/],
  [{ stream: "json" }, /0\.stream must be one of claude, .*none/],
  [{ provider: "mistral" }, /0\.provider must be one of anthropic, openai/],
  [{ provider: { mistral: {} } }, /0\.provider\.mistral is not a known field; use one of anthropic/],
  [{ provider: { openai: { api: 1 } } }, /0\.provider\.openai\.api must be a string/],
  [{ args: "-p {prompt}" }, /0\.args must be an array/],
  [{ args: ["-p", 1] }, /0\.args\.1 must be a string/],
  [{ args: ["-p", "{task}"] }, /0\.args\.1 has the unknown placeholder \{task\}; use one of gateway, .*prompt/],
  [{ env: { KEY: "{tokn}" } }, /0\.env\.KEY has the unknown placeholder \{tokn\}/],
  [{ acp: { args: ["{tokn}"] } }, /0\.acp\.args\.0 has the unknown placeholder \{tokn\}/],
  [{ args: ["{prompt}"], stream: "acp" }, /0\.args\.0 passes the task, .*over the protocol; remove it/],
  [{ files: { "/etc/acme": "x" } }, /0\.files.\/etc\/acme must have a name of a relative path/],
  [{ files: { "../acme": "x" } }, /0\.files\.\.\.\/acme must have a name of a relative path/],
  [{ files: { "a.json": 1 } }, /0\.files\.a\.json must be a string or an array or an object/],
  [{ mounts: ["opt/acme"] }, /0\.mounts\.0 must be an absolute path/],
  [{ mounts: ["/"] }, /0\.mounts\.0 must be an absolute path/],
  [{ tools: { Shell: "bash" } }, /0\.tools\.Shell must be one of run_command, fetch_page/],
  [{ exitCode: "exit code" }, /0\.exitCode must be a regular expression with one group/],
  [{ exitCode: "exit (" }, /0\.exitCode must be a regular expression with one group/],
  [{ contextFile: "/AGENTS.md" }, /0\.contextFile must be a relative path/],
  [{ skillsFolder: "../skills" }, /0\.skillsFolder must be a relative path/],
  [{ memoryMb: "2G" }, /0\.memoryMb must be an integer from 64/],
  [{ hosts: ["https://api.acme.test"] }, /0\.hosts\.0 must be a host name in lowercase/],
  [{ mcp: { file: "mcp.json", format: "yaml", toolPrefix: "{server}_" } }, /0\.mcp\.format must be one of claude/],
  [
    { mcp: { file: "mcp.json", format: "claude", toolPrefix: "mcp_" } },
    /0\.mcp\.toolPrefix must be text with \{server\}/,
  ],
  [
    { files: { "mcp.json": "{}" }, mcp: { file: "mcp.json", format: "claude", toolPrefix: "{server}_" } },
    /0\.files\.mcp\.json must be an object/,
  ],
  [{ options: { effort: { extreme: {} } } }, /0\.options\.effort\.extreme is not a known field; use one of low/],
  [
    { options: { systemPrompt: { args: ["{system}"] } } },
    /0\.options\.systemPrompt\.args\.0 has the unknown placeholder/,
  ],
])("%j is rejected with the field and the valid values", (fields, message) => {
  expect(errorOf(fields)).toMatch(message);
});

test("every wrong field is named once", () => {
  const message = errorOf({ stream: "json", provider: "mistral", memoryMb: 1 });
  expect(message.match(/0\.(stream|provider|memoryMb) must be/g)).toHaveLength(3);
});

test("agents are read from a file, with comments, or from all files of a folder", () => {
  const folder = join(emptyFolder(), "agents");
  mkdirSync(folder);
  const file = join(folder, "b.jsonc");
  writeFileSync(file, `// A comment\n${JSON.stringify(entry)}`);
  writeFileSync(join(folder, "a.json"), JSON.stringify([{ ...entry, id: "first" }]));
  writeFileSync(join(folder, "notes.md"), "No agent");
  const idsOf = (value: string) => parseAgentEntries(value).map(({ id }) => id);
  expect([idsOf(file), idsOf(folder)]).toEqual([["acme"], ["first", "acme"]]);
  writeFileSync(file, JSON.stringify({ ...entry, stream: "json" }));
  expect(() => parseAgentEntries(folder)).toThrow(/b\.jsonc: stream must be/);
  writeFileSync(file, "{");
  expect(() => parseAgentEntries(folder)).toThrow(/b\.jsonc is not valid JSON/);
});

test("the file of a new agent is a valid entry with what its program shows", () => {
  const help = ["Usage: acme [options] [prompt]", "  -p, --print   Print and exit", "  --yolo   Allow everything"].join(
    "\n",
  );
  const hints = { command: "acme", path: "/opt/acme/bin/acme", package: { name: "@acme/cli", version: "2.4.0" } };
  const read = (more: object) =>
    checkEntries(Bun.JSONC.parse(toEntryText("my-acme", { ...hints, environment: null, help, ...more })), "")[0];
  expect(read({})).toMatchObject({
    ...{ id: "my-acme", command: "acme", package: "@acme/cli", testedVersions: ["2.4.0"], stream: "none" },
    args: ["--yolo", "--print", "{prompt}"],
  });
  const settings = "  --provider   Must be configured in agents.config.json";
  expect(toEntryText("my-acme", { ...hints, environment: null, help: settings })).toContain(
    settings.trim().replace(/ +/g, " "),
  );
  expect(read({ help: "  --acp   Start as a server" })).toMatchObject({ stream: "acp", args: ["--acp"] });
  expect(read({ help: "", path: null, package: null, environment: "/opt/acme" })).toMatchObject({
    ...{ mounts: ["/opt/acme"], args: ["{prompt}"] },
  });
});

test.each([
  [{}, "stdin"],
  [{ args: ["-p", "{prompt}"] }, "argument"],
  [{ env: { TASK: "{prompt}" } }, "argument"],
  [{ args: ["--file", "{promptFile}"] }, "file"],
  [{ stream: "acp" as const }, "protocol"],
] as const)("an agent with %j gets its task by %s", (fields, channel) => {
  expect(taskChannelOf(toPreset({ ...entry, ...fields } as never))).toBe(channel);
});

test("a setting is merged into the files of an agent", () => {
  const files = { "config.toml": ['model = "x"', "[a]"], "settings.json": { a: { b: 1 }, c: 2 } };
  const preset = addTo(toPreset({ ...entry, files } as never), {
    args: ["--effort", "high"],
    files: { "config.toml": ['effort = "high"'], "settings.json": { a: { d: 3 } } },
  });
  expect(preset.args).toEqual(["--effort", "high"]);
  expect(fillFile(preset.files["config.toml"], {})).toBe('effort = "high"\nmodel = "x"\n[a]\n');
  expect(preset.files["settings.json"]).toEqual({ a: { b: 1, d: 3 }, c: 2 });
});
