import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { readStoredSession } from "../src/agents/coding/stored/stored-session.ts";
import { createKey } from "../src/auth/keys.ts";
import { extractSession } from "../src/field/session-extract.ts";
import { testApp } from "./support/app.ts";

const folder = join(import.meta.dir, "fixtures/agent-sessions");
const product = {
  urls: [new URL("https://docs.acme.test/latest/"), new URL("https://api.acme.test")],
  programs: ["acme"],
};

/** What must not be in an extract, by where it is planted. */
const secrets = {
  task: ["Project Nightingale", "Umbrella Corp"],
  thought: ["merge with Initech"],
  command: [
    "Globex-Retail",
    "7Qk2vXw9LmZp4RtY8sBn",
    "4921",
    "SELECT iban FROM payroll",
    "hunter2hunter2",
    "EU-KEY-zz81",
  ],
  output: [
    "jane",
    "roe@globex-retail.example",
    "/home/jane/keys",
    "/home/jane/work/globex/billing.py",
    "db7.prod.globex.internal",
    "10.20.30.41",
    "8fh3kq9d0s7g2m4x6z1c",
    "margin = cost * 1.87",
    "src/globex/payout.ts",
    "https://git.globex-retail.example/core",
    "sk-ant-api03-Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4",
    "postgres://billing:Tr0ub4dor@",
    "55512345678",
  ],
  other: ["def secret_formula", "AKIAQ3EGRZX7T2LWNB4C"],
};
const command =
  "cd /home/jane/work && ACME_TOKEN=hunter2hunter2 acme deploy --customer Globex-Retail --token 7Qk2vXw9LmZp4RtY8sBn --pin=4921 --query 'SELECT iban FROM payroll' EU-KEY-zz81";
const output = [
  "Error: customer Globex-Retail has no region, pin 4921 is wrong, key EU-KEY-zz81",
  `  File "/home/jane/work/globex/billing.py", line 12, in pay`,
  "    margin = cost * 1.87",
  "jane.roe@globex-retail.example with /home/jane/keys on db7.prod.globex.internal (10.20.30.41) in src/globex/payout.ts",
  "see https://git.globex-retail.example/core or https://docs.acme.test/latest/regions?user=jane",
  "token 8fh3kq9d0s7g2m4x6z1c, sk-ant-api03-Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4",
  "postgres://billing:Tr0ub4dor@db7/x, phone 55512345678",
].join("\n");
const otherOutput = "def secret_formula(): pass # AKIAQ3EGRZX7T2LWNB4C";
const task = "For Project Nightingale of Umbrella Corp";

/** The lines of a real session, in which its texts are replaced. */
function plant(file: string, replacements: [string | RegExp, string][]): string {
  const inText = (text: string): string => {
    if (/^\{"cmd"/.test(text)) return JSON.stringify(inValue(JSON.parse(text)));
    return replacements.reduce((rest, [from, to]) => rest.replace(from, () => to), text);
  };
  const inValue = (value: unknown): unknown =>
    typeof value === "string"
      ? inText(value)
      : Array.isArray(value)
        ? value.map(inValue)
        : value !== null && typeof value === "object"
          ? Object.fromEntries(Object.entries(value).map(([name, each]) => [name, inValue(each)]))
          : value;
  const lines = readFileSync(join(folder, file), "utf8").trim().split("\n");
  return lines.map((line) => JSON.stringify(inValue(JSON.parse(line)))).join("\n");
}

const hello = /^echo hello$/;
/** What Claude Code stores: the session that continues another one has its lines once more. */
function claudeSession(): string {
  const session = plant("claude.jsonl", [
    [/^echo failed >&2; exit 3$/, command],
    [/failed\n$/, `${output}\n`],
    [hello, "cat billing.py"],
    [/^hello\n$/, otherOutput],
    [/^Run the steps$/, task],
    [/^The next step is.*/, "merge with Initech"],
  ]);
  return [session, ...session.split("\n").slice(6, 9)].join("\n");
}

/** Sessions that were stored by these agents, and one in the format of Claude Code. */
const sessions: Record<string, () => string> = {
  "Claude Code 2.1.183": claudeSession,
  "GitHub Copilot CLI 1.0.71": () =>
    plant("copilot.jsonl", [
      [/^echo oops >&2; exit 3$/, command],
      [/^oops\n/, `${output}\n`],
      [/^echo hello; pwd; id -u$/, "cat billing.py"],
      [/^hello\n\/workspace\n1000/, otherOutput],
      [/^Read https:\/\/docs\.test\/guide and.*/, task],
      [/^Let me do that\.$/, "merge with Initech"],
    ]),
  "Codex 0.169.0": () =>
    plant("codex.jsonl", [
      [hello, command],
      [/^echo more$/, "cat billing.py"],
      [/with code 0([\s\S]*)hello\n$/, `with code 3\nOutput:\n${output}`],
      [/more\n$/, otherOutput],
      [/^Run the commands\.$/, task],
      [/^Done\.$/, "merge with Initech"],
    ]),
  "Gemini CLI": () =>
    plant("gemini.jsonl", [
      [hello, command],
      [/^echo more$/, "cat billing.py"],
      [/Output: hello/, `Output: ${output}\nExit Code: 3`],
      [/Output: more/, otherOutput],
      [/^Run the commands\.$/, task],
      [/^Done\.$/, "merge with Initech"],
    ]),
  pi: () =>
    plant("pi.jsonl", [
      [/^echo failed >&2; exit 3$/, command],
      [/^failed\n/, `${output}\n`],
      [hello, "cat billing.py"],
      [/^hello\n$/, otherOutput],
      [/^Run the steps$/, task],
      [/^The next step is.*/, "merge with Initech"],
    ]),
  "opencode 1.18.33": () =>
    plant("opencode.jsonl", [
      [/^echo failed >&2; exit 3$/, command],
      [/^failed\n/, `${output}\n`],
      [hello, "cat billing.py"],
      [/^hello\n$/, otherOutput],
      [/^"?Run the steps"?\n?$/, task],
      [/^The next step is.*/, "merge with Initech"],
    ]),
};

for (const [agent, read] of Object.entries(sessions))
  test(`a stored session of ${agent} keeps what failed at the product, and nothing private`, () => {
    const content = read();
    const session = readStoredSession(content);
    const planted = Object.values(secrets).flat();
    expect(planted.filter((secret) => !content.includes(JSON.stringify(secret).slice(1, -1)))).toEqual([]);
    const { input, calls } = extractSession(session!, product);
    const own = input.calls.filter(({ input: call }) => call.startsWith("acme"));
    expect(input.agent).toBe(agent);
    expect(calls).toBeGreaterThan(input.calls.length);
    expect(own).toEqual([
      {
        ...{ tool: "run_command", ok: false, exitCode: 3 },
        input: "acme deploy --customer … --token … --pin=… --query … …",
        text: expect.stringContaining("has no region"),
      },
    ]);
    const sent = JSON.stringify(input);
    expect(planted.filter((secret) => sent.includes(secret))).toEqual([]);
    expect(own[0]?.text).toContain("https://docs.acme.test/latest/regions");
  });

test("exit codes of commands are read from all versions of stored sessions", () => {
  const codesOf = (file: string) =>
    readStoredSession(readFileSync(join(folder, file), "utf8"))!.events.flatMap((event) =>
      event.type === "tool_result" && event.tool === "run_command" ? [[event.output.exitCode, event.ok]] : [],
    );
  expect(codesOf("claude.jsonl")).toEqual([
    [3, false],
    [null, true],
  ]);
  expect(codesOf("copilot.jsonl")).toEqual([
    [0, true],
    [3, false],
    [4, false],
  ]);
});

test("calls of another product, and files that are no session, give nothing", () => {
  const other = { urls: [new URL("https://docs.other.test")], programs: ["other"] };
  expect(extractSession(readStoredSession(claudeSession())!, other)).toMatchObject({ input: { calls: [] }, calls: 3 });
  for (const content of ["", "{}", "not json", '{"type":"user"}\n{"type":"assistant"}', '{"info":{},"messages":[]}'])
    expect(readStoredSession(content)).toBeNull();
});

test("the result of a line with other programs stays on the machine", () => {
  const events = (line: string) => [
    { type: "tool_call" as const, id: line, tool: "run_command", input: { command: line } },
    {
      type: "tool_result" as const,
      id: line,
      tool: "run_command",
      ok: false,
      output: { exitCode: 1, text: otherOutput },
    },
  ];
  const session = {
    agent: "pi",
    version: "",
    events: ["cat pay.py; acme status", "cd x && acme status"].flatMap(events),
  };
  const { input } = extractSession(session, product);
  expect(input.calls.map(({ text }) => text === null)).toEqual([true, false]);
});

test("URLs of a shared host are only the product's below its owner", () => {
  const fetched = (url: string) => [
    { type: "tool_call" as const, id: url, tool: "fetch_page", input: { url } },
    { type: "tool_result" as const, id: url, tool: "fetch_page", ok: false, output: { text: "404" } },
  ];
  const urls = [
    "https://github.com/acme/sdk/wiki?tab=1",
    "https://github.com/globex/secret",
    "https://github.com/acme-x/y",
  ];
  const session = { agent: "pi", version: "", events: urls.flatMap(fetched) };
  const { input } = extractSession(session, { urls: [new URL("https://github.com/acme/sdk")], programs: [] });
  expect(input.calls.map(({ input: url }) => url)).toEqual(["https://github.com/acme/sdk/wiki"]);
});

test("the failed calls of a session become unverified friction by place and category", async () => {
  const { send, service, a } = testApp();
  const { key } = createKey(service.ctx, a.org, "field", { scopes: ["report_friction"] });
  const headers = { authorization: `Bearer ${key}` };
  const page = { tool: "fetch_page", input: "https://docs.acme.test/sdk", ok: false, exitCode: null, text: "HTTP 404" };
  const deploy = { tool: "run_command", input: "acme deploy --region …", ok: false, exitCode: 3, text: "no region" };
  const body = {
    agent: "Claude Code 2.1.3",
    calls: [page, deploy, page, { ...deploy, ok: true, exitCode: 0, text: null }],
  };
  const sent = await send("POST", "/api/v1/field-sessions", { body, headers });
  expect([sent.status, sent.body.reports.length]).toEqual([201, 2]);
  const friction = (await send("GET", "/api/v1/field-friction")).body;
  expect(
    friction.map((each: Record<string, unknown>) => [each.where, each.category, each.reports, each.isVerified]).sort(),
  ).toEqual([
    ["acme deploy", "other", 1, false],
    ["https://docs.acme.test/sdk", "missing_docs", 1, false],
  ]);
  await send("POST", "/api/v1/field-sessions", { body: { ...body, calls: [page] }, headers });
  const again = (await send("GET", "/api/v1/field-friction?category=missing_docs")).body;
  expect(again).toMatchObject([{ reports: 2 }]);
  expect((await send("GET", "/api/v1/reports")).body).toEqual([]);
  const reading = createKey(service.ctx, a.org, "reading", { scopes: ["read"] });
  const refused = await send("POST", "/api/v1/field-sessions", {
    body,
    headers: { authorization: `Bearer ${reading.key}` },
  });
  expect(refused.status).toBe(403);
  expect((await send("POST", "/api/v1/field-sessions", { body: { agent: "x", calls: [] }, headers })).status).toBe(400);
});
