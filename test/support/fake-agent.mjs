#!/usr/bin/env node
// A coding agent that misbehaves: `fake-agent MODE [MARK] [WORK]`. It writes the stream of Claude Code, or speaks ACP in modes that start with
// "acp". WORK: the lines of another stream, with a tool call and its result.
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";

const [mode = "fine", , ownWork] = process.argv.slice(2);
const { GATEWAY, TOKEN, MODEL } = process.env;
const write = (text) => new Promise((resolve) => process.stdout.write(text, resolve));
const say = (line) => write(`${JSON.stringify(line)}\n`);
const block = (role, content) => say({ type: role, message: { role, content: [content] } });
const text = (said) => block("assistant", { type: "text", text: said });
const use = (id, name, input) => block("assistant", { type: "tool_use", id, name, input });
const result = (id, content, is_error = false) =>
  block("user", { type: "tool_result", tool_use_id: id, content, is_error });
const done = (said, more = {}) =>
  say({ type: "result", subtype: "success", is_error: false, result: said, total_cost_usd: 0.5, ...more });
const forever = () => new Promise(() => setInterval(() => {}, 1000));

async function work() {
  if (ownWork !== undefined) return write(ownWork);
  await say({ type: "system", subtype: "init" });
  await use("c1", "Bash", { command: "echo hello" });
  await result("c1", "hello");
}

/** Calls the model, with a tool on offer. */
async function ask(content = "Go on.") {
  const response = await fetch(`${GATEWAY}/openai-compatible/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" },
    body: JSON.stringify({
      model: MODEL,
      messages: [{ role: "user", content }],
      tools: [{ type: "function", function: { name: "Bash", parameters: { type: "object" } } }],
    }),
  });
  return { status: response.status, body: await response.json() };
}

const lookup = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "lookup", arguments: { name: "acme" } } };

const lookUpLocal = ({ command, args }) =>
  spawnSync(command, args, { input: `${JSON.stringify(lookup)}\n`, encoding: "utf8" }).stdout;

const lookUpRemote = ({ url }) => {
  const headers = ["content-type: application/json", "accept: application/json, text/event-stream"];
  const args = ["-sS", url, ...headers.flatMap((header) => ["-H", header]), "-d", JSON.stringify(lookup)];
  return spawnSync("curl", args, { encoding: "utf8" }).stdout;
};

const modes = {
  async fine() {
    await work();
    await text("All done.");
    await done("All done.");
    await forever();
  },
  async told() {
    const { READ } = process.env;
    const said = {
      args: process.argv.slice(5),
      stdin: readFileSync(0, "utf8"),
      file: READ && readFileSync(READ, "utf8"),
    };
    await work();
    await done(JSON.stringify(said));
  },
  async "own-tools"() {
    await use("c1", "terminal", { cmd: "make" });
    await result("c1", "no rule\nexit status 7");
    await use("c2", "save", { path: "a.txt", content: "a" });
    await result("c2", "saved");
    await done("All done.");
  },
  /** Uses a login, repeats it everywhere, and tries to change it. */
  async login() {
    const file = `${process.env.HOME}/.acme/auth.json`;
    const content = existsSync(file) ? readFileSync(file, "utf8") : "{}";
    const { access_token = "", refresh_token } = JSON.parse(content).tokens ?? {};
    let canChange = true;
    try {
      writeFileSync(file, content);
    } catch {
      canChange = false;
    }
    if (existsSync(file)) writeFileSync(`${process.env.HOME}/.acme/state.json`, "{}");
    await use("c1", "Bash", { command: `curl -H "x-login: ${access_token}" https://api.acme.test/` });
    const headers = ["-H", `x-login: ${access_token}`];
    const { stdout } = spawnSync("curl", ["-sS", ...headers, "http://api.acme.test/"], { encoding: "utf8" });
    const spellings = [content, access_token, Buffer.from(access_token).toString("base64")];
    await result("c1", [...spellings, Buffer.from(access_token).toString("hex")].join("\n"));
    process.stderr.write(content);
    await write(`${content} is no message\n`);
    const digest = createHash("sha256").update(access_token).digest("hex");
    const said = { digest, refresh_token, canChange, vendor: stdout, hasGateway: GATEWAY !== undefined };
    await text(`My login is ${access_token}.`);
    await done(JSON.stringify(said), /rejected/.test(ownWork) ? { is_error: true, api_error_status: 401 } : {});
  },
  /** Requests each URL of a list. */
  async requests() {
    await use("c1", "Bash", { command: "curl" });
    const seen = JSON.parse(ownWork).map((url) => {
      const args = ["-sS", "-o", "/dev/null", "-w", "%{http_code} %{http_connect}", url];
      return spawnSync("curl", args, { encoding: "utf8" }).stdout;
    });
    await result("c1", "");
    await done(JSON.stringify(seen));
  },
  /** Prints the status and the body of each URL of a list. */
  async pages() {
    await use("c1", "Bash", { command: "curl" });
    const seen = JSON.parse(ownWork).map((url) => {
      const { stdout } = spawnSync("curl", ["-sS", "-w", " %{http_code}", url], { encoding: "utf8" });
      return stdout.trim();
    });
    await result("c1", seen.join("\n"));
    await done("All done.");
  },
  async crash() {
    await work();
    process.stderr.write("Segmentation fault of my own\n");
    process.exit(3);
  },
  async hang() {
    await work();
    await forever();
  },
  async garbage() {
    await write("this is not JSON\n[1, 2\n");
    await modes.fine();
  },
  async long() {
    await work();
    await text("x".repeat(3_000_000));
    await done("All done.");
  },
  async cut() {
    await ask();
    await work();
    await write('{"type":"result","subtype":"succ');
  },
  async question() {
    await work();
    await use("q1", "AskUserQuestion", { questions: [{ question: "Which color?" }] });
    await result("q1", "the tool is not available", true);
    await done("I chose red.");
  },
  async secrets() {
    await use("c1", "Bash", { command: "env", password: "hunter2-hunter2-hunter2" });
    await result("c1", "GITHUB_TOKEN=ghp_0a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R");
    for (const piece of ["The token is ghp_0a1B2c3D4e5F", "6g7H8i9J0k1L2m", "3N4o5P6q7R."]) await text(piece);
    await done("All done.");
  },
  async loop() {
    for (let i = 0; ; i++) {
      await use(`c${i}`, "Bash", { command: "echo again" });
      await result(`c${i}`, "again");
    }
  },
  async asks() {
    await work();
    await write("Do you trust the files in this folder? [y/N] ");
    process.exit(1);
  },
  async "login-wait"() {
    await write("To log in, open https://auth.acme.test/device and enter the code ABCD-1234\n");
    await forever();
  },
  async "login-exit"() {
    process.stderr.write("\u001b[31mNot logged in.\u001b[0m Run acme login.\n");
    process.exit(1);
  },
  async waits() {
    await work();
    await write("Waiting for the update server of acme");
    await forever();
  },
  async killed() {
    await work();
    process.kill(process.pid, "SIGKILL");
    await forever();
  },
  async mute() {
    await work();
  },
  async colored() {
    await write(`\u001b[36m${JSON.stringify({ type: "system", subtype: "init" })}\u001b[0m\n`);
    await write(
      `\u001b[1m${JSON.stringify({ type: "result", subtype: "success", is_error: false, result: "In color." })}\u001b[22m\n`,
    );
  },
  async children() {
    spawn("setsid", ["sleep", "4321.5"], { stdio: "ignore", detached: true }).unref();
    spawn("sleep", ["4321.5"], { stdio: "inherit" });
    await modes.fine();
  },
  async empty() {
    await say({ type: "system", subtype: "init" });
    await done("");
  },
  async silent() {},
  async model() {
    await work();
    const { status, body } = await ask();
    const failed = status >= 400;
    const said = failed ? body.error.message : body.choices[0].message.content;
    await done(said, failed ? { is_error: true, api_error_status: status } : {});
    process.exit(failed ? 1 : 0);
  },
  /** Shortens its conversation without end. */
  async compacts() {
    await work();
    for (;;) if ((await ask()).status !== 400) return await done("It fits.");
  },
  async budget() {
    await work();
    for (;;) {
      const { status, body } = await ask();
      if (status < 400) continue;
      // As some do: a call that was refused is an answer like any other.
      await done(body.error.message);
      return;
    }
  },
  async context() {
    // It reads AGENTS.md, and knows only one of its skills.
    const skill = readFileSync(".agents/skills/acme-guide/SKILL.md", "utf8");
    await ask(`${readFileSync("AGENTS.md", "utf8")}\n\nSkills:\n${skill}`);
    await use("s1", "Skill", { skill: "acme-guide" });
    await result("s1", skill);
    await done("All done.");
  },
  async memory() {
    await work();
    const kept = [];
    for (;;) kept.push(Buffer.alloc(16 * 1024 * 1024, 1));
  },
  /** Starts processes until it may start no more. */
  async forks() {
    await work();
    spawnSync("perl", ["-e", "while (defined($child = fork)) { $child or sleep 100 }"], { timeout: 20_000 });
    process.exit(1);
  },
  async acp() {
    const lines = createInterface({ input: process.stdin });
    const send = (message) => say({ jsonrpc: "2.0", ...message });
    const update = (sessionUpdate, fields) =>
      send({ method: "session/update", params: { sessionId: "s1", update: { sessionUpdate, ...fields } } });
    let promptId;
    for await (const line of lines) {
      const { id, method, params, result: answer } = JSON.parse(line);
      if (method === "initialize") {
        const authMethods = [{ id: "key", name: "API key" }];
        await send({ id, result: { protocolVersion: 1, agentCapabilities: {}, authMethods } });
      } else if (method === "session/new") await send({ id, result: { sessionId: "s1" } });
      else if (method === "session/prompt") {
        promptId = id;
        await write("not a message\n");
        const call = { toolCallId: "t1", title: "Run echo", kind: "execute", rawInput: { command: "echo hello" } };
        await update("agent_thought_chunk", { content: { type: "text", text: "Let me " } });
        await update("agent_thought_chunk", { content: { type: "text", text: "see." } });
        await update("tool_call", { ...call, rawInput: {}, status: "pending" });
        const options = [
          { optionId: "no", name: "No", kind: "reject_once" },
          { optionId: "yes", name: "Yes", kind: "allow_once" },
        ];
        await send({
          id: "p1",
          method: "session/request_permission",
          params: { sessionId: "s1", toolCall: call, options },
        });
        await send({ id: "e1", method: "elicitation/create", params: { sessionId: "s1", mode: "form", message: "?" } });
        if (params.prompt[0].text === "") process.exit(1);
      } else if (id === "p1") {
        const status = answer?.outcome?.optionId === "yes" ? "completed" : "failed";
        const content = [{ type: "content", content: { type: "text", text: "hello" } }];
        await update("tool_call_update", { toolCallId: "t1", status, content });
      } else if (id === "e1") {
        await update("agent_message_chunk", { content: { type: "text", text: "All " } });
        await update("agent_message_chunk", { content: { type: "text", text: "done." } });
        await send({ id: promptId, result: { stopReason: ownWork ?? "end_turn" } });
      } else if (id !== undefined) await send({ id, error: { code: -32601, message: "Method not found" } });
    }
  },
  /** Sends every kind of update, and uses every method of the client. */
  async "acp-all"() {
    const waiting = new Map();
    let lastId = 0;
    const send = (message) => say({ jsonrpc: "2.0", ...message });
    const request = (method, params) =>
      new Promise((resolve) => {
        const id = `r${++lastId}`;
        waiting.set(id, resolve);
        send({ id, method, params: { sessionId: "s1", ...params } });
      });
    const update = (sessionUpdate, fields) =>
      send({ method: "session/update", params: { sessionId: "s1", update: { sessionUpdate, ...fields } } });
    const chunk = (content) => update("agent_message_chunk", { content });
    const textBlock = (said) => ({ type: "content", content: { type: "text", text: said } });
    const prompt = async (id) => {
      const entries = [
        { content: "Look", priority: "high", status: "completed" },
        { content: "Write", priority: "low", status: "pending" },
      ];
      await update("plan", { entries });
      await update("plan", { entries });
      await chunk({ type: "text", text: "See " });
      await chunk({ type: "image", mimeType: "image/png", data: "aGVsbG8=" });
      await chunk({ type: "resource_link", uri: "https://docs.test/a", name: "Guide" });
      await chunk({ type: "resource", resource: { uri: "file:///a", text: " and this." } });
      await update("tool_call", {
        toolCallId: "a1",
        title: "Ask",
        kind: "execute",
        rawInput: "ls -la",
        status: "pending",
      });
      await update("tool_call_update", { toolCallId: "a1", status: "completed", content: [textBlock("total 0")] });
      const diff = { type: "diff", path: "/workspace/a.txt", oldText: "old\n", newText: "new\n" };
      await update("tool_call", {
        toolCallId: "a2",
        title: "Edit",
        kind: "edit",
        status: "completed",
        content: [diff],
      });
      const image = { type: "content", content: { type: "image", mimeType: "image/png", data: "aGVsbG8=" } };
      await update("tool_call", {
        toolCallId: "a3",
        title: "Shot",
        kind: "other",
        status: "completed",
        content: [image],
      });
      const parent = { claudeCode: { parentToolUseId: "task-1" } };
      await update("tool_call", {
        toolCallId: "a4",
        title: "Find",
        kind: "search",
        status: "completed",
        _meta: parent,
      });
      const asked = await request("elicitation/create", {
        mode: "url",
        message: "Sign in?",
        url: "https://acme.test/",
      });
      // Outside of its own calls.
      await request("fs/write_text_file", { path: "/workspace/notes/b.txt", content: "one\ntwo\nthree\n" });
      const { result: part } = await request("fs/read_text_file", {
        path: "/workspace/notes/b.txt",
        line: 2,
        limit: 1,
      });
      const missing = await request("fs/read_text_file", { path: "/etc/shadow" });
      // Within one.
      await update("tool_call", {
        toolCallId: "a5",
        title: "Run",
        kind: "execute",
        rawInput: { command: "count" },
        status: "pending",
      });
      const command = { command: "sh", args: ["-c", 'cat b.txt; echo "$WORD"; exit 3'], cwd: "/workspace/notes" };
      const { result: made } = await request("terminal/create", { ...command, env: [{ name: "WORD", value: "four" }] });
      const { result: exit } = await request("terminal/wait_for_exit", made);
      await request("terminal/output", made);
      const terminal = [{ type: "terminal", ...made }];
      await update("tool_call_update", { toolCallId: "a5", status: "completed", content: terminal });
      await request("terminal/release", made);
      const { result: other } = await request("terminal/create", { command: "sleep 1000" });
      await request("terminal/kill", other);
      const { result: killed } = await request("terminal/wait_for_exit", other);
      await update("tool_call", {
        toolCallId: "a6",
        title: "Never ends",
        kind: "other",
        rawInput: { x: 1 },
        status: "pending",
      });
      const seen = {
        asked: asked.result,
        part: part.content,
        missing: missing.error?.code,
        exit,
        killed: killed.signal,
      };
      await chunk({ type: "text", text: JSON.stringify({ ...seen, token: process.env.TOKEN !== undefined }) });
      await send({ id, result: { stopReason: "end_turn" } });
    };
    for await (const line of createInterface({ input: process.stdin })) {
      const { id, method, params, ...answer } = JSON.parse(line);
      if (method === undefined) waiting.get(id)?.(answer);
      else if (method === "initialize") {
        const { fs, terminal } = params.clientCapabilities;
        if (!(fs.readTextFile && fs.writeTextFile && terminal)) process.exit(5);
        await send({ id, result: { protocolVersion: 1, agentCapabilities: {}, authMethods: [] } });
      } else if (method === "session/new") await send({ id, result: { sessionId: "s1" } });
      else if (method === "session/prompt") prompt(id);
    }
  },
  async "acp-context"() {
    const send = (message) => say({ jsonrpc: "2.0", ...message });
    let servers = [];
    for await (const line of createInterface({ input: process.stdin })) {
      const { id, method, params } = JSON.parse(line);
      const agentCapabilities = { mcpCapabilities: { http: true } };
      if (method === "initialize")
        await send({ id, result: { protocolVersion: 1, agentCapabilities, authMethods: [] } });
      else if (method === "session/new") {
        servers = params.mcpServers;
        await send({ id, result: { sessionId: "s1" } });
      } else if (method === "session/prompt") {
        const skill = readFileSync(".agents/skills/acme-guide/SKILL.md", "utf8");
        await ask(`${skill}\n\nTools: ${servers.map(({ name }) => `mcp__${name}__lookup`).join(", ")}`);
        const report = (toolCallId, update) =>
          send({
            method: "session/update",
            params: { sessionId: "s1", update: { sessionUpdate: "tool_call", toolCallId, ...update } },
          });
        const read = { title: "Read SKILL.md", kind: "read", rawInput: { path: ".agents/skills/acme-guide/SKILL.md" } };
        await report("t0", { ...read, status: "completed" });
        for (const [i, server] of servers.entries()) {
          const said = server.url ? lookUpRemote(server) : lookUpLocal(server);
          const content = [{ type: "content", content: { type: "text", text: said } }];
          const call = { title: `mcp__${server.name}__lookup`, kind: "other", rawInput: { name: "acme" } };
          await report(`t${i + 1}`, { ...call, status: "completed", content });
        }
        const update = { sessionUpdate: "agent_message_chunk", content: { type: "text", text: "All done." } };
        await send({ method: "session/update", params: { sessionId: "s1", update } });
        await send({ id, result: { stopReason: "end_turn" } });
      }
    }
  },
  async "acp-login"() {
    for await (const line of createInterface({ input: process.stdin })) {
      const { id, method } = JSON.parse(line);
      const authMethods = [{ id: "browser", name: "Log in with a browser" }];
      if (method === "initialize")
        await say({ jsonrpc: "2.0", id, result: { protocolVersion: 1, agentCapabilities: {}, authMethods } });
      else if (method === "session/new")
        await say({ jsonrpc: "2.0", id, error: { code: -32000, message: "Authentication required" } });
      else await say({ jsonrpc: "2.0", id, error: { code: -32603, message: "a browser is needed" } });
    }
  },
  async "acp-crash"() {
    for await (const line of createInterface({ input: process.stdin })) {
      const { id, method } = JSON.parse(line);
      if (method === "session/new") process.exit(4);
      await say({ jsonrpc: "2.0", id, result: { protocolVersion: 1, agentCapabilities: {}, authMethods: [] } });
    }
  },
};

await modes[mode]();
process.exit(0);
