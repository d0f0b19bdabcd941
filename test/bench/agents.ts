import { mkdirSync, writeFileSync } from "node:fs";
import { loadavg } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { argsAndEnvOf, presetFilesOf } from "../../src/agents/coding/mcp-servers.ts";
import { fillAsText, type Preset } from "../../src/agents/coding/preset.ts";
import { presets } from "../../src/agents/coding/presets.ts";
import { findProgram, programBinFolder } from "../../src/agents/coding/program.ts";
import { fileSystem } from "../../src/agents/sandbox/bubblewrap.ts";
import { client, furnish } from "../support/executable.ts";
import type { Turn } from "../support/fake-model.ts";
import { childrenOf, descendantsOf, isWaiting, processFile } from "../support/processes.ts";
import { toSigned } from "./figures.ts";
import { median, percentile, type SessionBench } from "./load.ts";

/** Milliseconds of a session: from its request to the first model call, from the last one to its end, and in total. */
type Times = { first: number; after: number; whole: number };
type Side = "ours" | "floor";

const repeats = 3;
/** Time after a session in which the service starts the process that waits for the next one. That would take from whichever session is next. */
const pauseMs = 3_000;
/** Sessions in progress, and busy programs of others, beside a session on the busy machine. */
const besides = { sessions: 4, programs: 2 };
const cache = process.env.EVALD_AGENTS_CACHE ?? join(process.env.HOME ?? "", ".cache", "evald-agents");
const binOf = (name: string) => join(cache, name, "node_modules", ".bin");
const PATH = [
  ...["node", "codex", "gemini", "opencode", "qwen", "pi", "claude", "copilot"].map(binOf),
  process.env.PATH,
].join(delimiter);
const text = "Run the commands.";
const heldModel = "acme-held";
const busyModel = "acme-busy";

/** The tool with which each agent runs commands, and its model. Those that aren't installed are left out: not all have a free license. */
const agents: Record<string, { model: string; tool: (command: string) => NonNullable<Turn["toolCalls"]>[number] }> = {
  codex: { model: "openai/gpt-5.6-sol", tool: (cmd) => ({ name: "exec_command", input: { cmd } }) },
  gemini: {
    model: "google/gemini-3.1-pro-preview",
    tool: (command) => ({ name: "run_shell_command", input: { command, description: "Run it" } }),
  },
  opencode: {
    model: "anthropic/claude-opus-4-8",
    tool: (command) => ({ name: "bash", input: { command, description: "Run it" } }),
  },
  pi: { model: "anthropic/claude-sonnet-4-8", tool: (command) => ({ name: "bash", input: { command } }) },
  qwen: {
    model: "openai-compatible/qwen3-coder-plus",
    tool: (command) => ({ name: "run_shell_command", input: { command, is_background: false, description: "Run it" } }),
  },
  claude: {
    model: "anthropic/claude-opus-4-7",
    tool: (command) => ({ name: "Bash", input: { command, description: "Run it" } }),
  },
  copilot: {
    model: "openai/gpt-5.5",
    tool: (command) => ({ name: "bash", input: { command, description: "Run it", mode: "sync" } }),
  },
};
const presetOf = (agent: string) => presets.find(({ id }) => id === agent) as Preset;
const installedAgents = () =>
  presets.map(({ id }) => id).filter((id) => agents[id] && !("missing" in findProgram(presetOf(id), PATH)));
const nameOf = (model: string) => model.slice(model.indexOf("/") + 1);
const commands = ["echo hello", "echo more", "echo hi > hello.txt"];
const scenarioOf = (agent: string): { turns: Turn[]; side: Turn } => ({
  turns: [
    ...commands.map((command) => ({ toolCalls: agents[agent] ? [agents[agent].tool(command)] : [] })),
    { text: "Done." },
  ],
  side: { text: "A title." },
});

/** Memory of processes in MiB, where each page counts in equal parts for all processes that share it. */
const pssMib = (pids: number[]): number =>
  pids.reduce((sum, pid) => {
    const kib = Number(/^Pss:\s+(\d+)/m.exec(processFile(pid, "smaps_rollup"))?.[1] ?? 0);
    return sum + kib / 1024;
  }, 0);

/** An agent without evald, in a sandbox with the same options but with the machine's network, which starts at normal priority. */
function startBare(preset: Preset, modelUrl: string, model: string, folder: () => string) {
  const program = findProgram(preset, PATH);
  if ("missing" in program) throw new Error(`run test/support/agents.sh: ${preset.id} is missing`);
  const workspace = folder();
  const home = "/workspace/.home";
  const provider = Object.keys(preset.providers)[0] as keyof typeof preset.providers;
  const values = { ...preset.providers[provider], gateway: modelUrl, token: "none", model, provider, home };
  for (const [path, content] of Object.entries(presetFilesOf(preset, values, {}, []))) {
    const file = join(workspace, ".home", path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, content);
  }
  const { args, env } = argsAndEnvOf(preset, {});
  const variables = {
    // Without IS_SANDBOX, Claude Code refuses to run commands unasked as root.
    PATH: `${programBinFolder}:/usr/local/bin:/usr/bin:/bin`,
    ...{ HOME: home, TERM: "dumb", TMPDIR: "/tmp", LANG: "C.UTF-8", IS_SANDBOX: "1" },
    ...Object.fromEntries(Object.entries(env).map(([name, value]) => [name, fillAsText(value, values)])),
  };
  const binds = [...program.binds, { from: workspace, to: "/workspace", writable: true }];
  const options = [
    ...fileSystem(binds, 2 * 1024 ** 3),
    ...["--share-net", "--ro-bind", "/etc/hosts", "/etc/hosts", "--chdir", "/workspace"],
    ...Object.entries(variables).flatMap(([name, value]) => ["--setenv", name, value]),
  ];
  const argv = [...program.argv, ...args.map((arg) => fillAsText(arg, values))];
  return Bun.spawn(["bwrap", ...options, "--", ...argv], {
    cwd: "/",
    detached: true,
    env: { PATH: process.env.PATH ?? "" },
    stdin: new Blob([text]),
    stdout: "ignore",
    stderr: "ignore",
  });
}

/** Other programs that use all the CPU time that they get, each in a session of its own. Returns a function that ends them. */
function startPrograms(count: number): () => void {
  const programs = Array.from({ length: count }, () =>
    Bun.spawn(["sh", "-c", "while :; do :; done"], { detached: true, stdio: ["ignore", "ignore", "ignore"] }),
  );
  return () => {
    for (const program of programs) program.kill("SIGKILL");
  };
}

/**
 * What evald adds to sessions of coding agents, against a model that answers at once. Floor: the same agent without evald, in the same kind of
 * sandbox. On an idle machine, and on a busy one beside sessions and other programs.
 */
export async function benchAgents({ start, row, folder, env, executable }: SessionBench): Promise<void> {
  const cwd = folder();
  const scenarios = join(cwd, "scenarios.json");
  const spin = agents.codex?.tool("while :; do :; done");
  writeFileSync(
    scenarios,
    JSON.stringify({
      ...Object.fromEntries(Object.entries(agents).map(([id, { model }]) => [nameOf(model), scenarioOf(id)])),
      [heldModel]: { turns: [{ text: "Done.", hold: true }] },
      [busyModel]: { turns: [{ toolCalls: spin && [spin] }] },
    }),
  );
  const model = await start(["bun", join(import.meta.dir, "../support/fake-model.ts"), scenarios], {});
  const { key } = await furnish(cwd);
  const service = await start([executable, "serve"], {
    ...env(`${cwd}/data`),
    PATH,
    EVALD_CONCURRENCY: "8",
    EVALD_RUNS_PER_ORG: "8",
    EVALD_RUNS_PER_HOST: "8",
    EVALD_ALLOW_PRIVATE: "127.0.0.1",
    EVALD_WORKSPACE_MB: "256",
    ...Object.fromEntries(
      ["ANTHROPIC", "OPENAI", "GOOGLE_GENERATIVE_AI", "OPENAI_COMPATIBLE"].flatMap((provider) => [
        [`${provider}_API_KEY`, "none"],
        [`${provider}_BASE_URL`, `${model.url}/v1${provider.startsWith("GOOGLE") ? "beta" : ""}`],
      ]),
    ),
  });
  const ask = client(service.url, key);
  const idle = Bun.spawn(["bun", join(import.meta.dir, "../soak/idle.ts")], { detached: true, stdout: "pipe" });
  const idleUrl = new TextDecoder().decode((await idle.stdout.getReader().read()).value).trim();
  const promptOf = async (agent: string, modelId: string): Promise<string> => {
    const { body } = await ask("POST", "/api/v1/prompts", {
      text: `${text} https://docs.acme.test/`,
      agent,
      model: modelId,
    });
    return body.id;
  };
  const startRun = async (promptId: string): Promise<{ id: string; createdAt: string }> => {
    const { body } = await ask("POST", `/api/v1/prompts/${promptId}/run`, { urlMap: {} });
    const { createdAt } = (await ask("GET", `/api/v1/runs/${body.runId}`)).body;
    return { id: body.runId, createdAt };
  };
  const callsOf = async (name: string, since: number): Promise<number[]> => {
    const asked: { model: string; at: number }[] = await (await fetch(`${model.url}/requests`)).json();
    return asked.filter((each) => each.model === name && each.at >= since).map(({ at }) => at);
  };
  async function timesOf(name: string, begun: number, ended: number): Promise<Times> {
    const calls = await callsOf(name, begun);
    if (calls.length <= commands.length) throw new Error(`${name} was asked ${calls.length} times`);
    return { first: Math.min(...calls) - begun, after: ended - Math.max(...calls), whole: ended - begun };
  }

  /** One session of evald; `gets`: latencies of a client that reads its run meanwhile, and asks a server that does nothing else. */
  async function ofService(promptId: string, name: string, gets: Record<Side, number[]> | null): Promise<Times> {
    const { id, createdAt } = await startRun(promptId);
    for (;;) {
      const at = performance.now();
      const { body, status } = await ask("GET", `/api/v1/runs/${id}`);
      if (status !== 200) throw new Error(`run ${id}: ${JSON.stringify(body)}`);
      gets?.ours.push(performance.now() - at);
      if (body.completedAt) {
        if (body.status !== "completed") throw new Error(`a run failed: ${JSON.stringify(body.failureReason)}`);
        return await timesOf(name, Date.parse(createdAt), Date.parse(body.completedAt));
      }
      if (gets) {
        const askedAt = performance.now();
        await (await fetch(idleUrl)).text();
        gets.floor.push(performance.now() - askedAt);
      }
      await Bun.sleep(gets ? 10 : 50);
    }
  }

  async function ofBare(preset: Preset, name: string): Promise<Times> {
    const begun = Date.now();
    const child = startBare(preset, model.url, name, folder);
    await child.exited;
    return await timesOf(name, begun, Date.now());
  }

  /** Alternating sessions of an agent, with evald and without. */
  async function compareAgent(agent: string, gets: Record<Side, number[]> | null): Promise<Record<Side, Times[]>> {
    const preset = presetOf(agent);
    const { model: modelId } = agents[agent] as (typeof agents)[string];
    const promptId = await promptOf(agent, modelId);
    const name = nameOf(modelId);
    const times: Record<Side, Times[]> = { ours: [], floor: [] };
    if (!gets) {
      await ofBare(preset, name);
      await ofService(promptId, name, null);
    }
    for (let i = 0; i < repeats; i++) {
      await Bun.sleep(pauseMs);
      times.floor.push(await ofBare(preset, name));
      times.ours.push(await ofService(promptId, name, gets));
    }
    return times;
  }

  const load = () => `load ${loadavg()[0]?.toFixed(1)}`;
  const report = (
    what: string,
    at: string,
    { ours, floor }: Record<Side, Times[]>,
    aims: Record<keyof Times, string>,
  ) => {
    const names = { first: "request to first model call", after: "last model call to report", whole: "total" };
    for (const [name, label] of Object.entries(names) as [keyof Times, string][]) {
      const [a, b] = [median(ours.map((each) => each[name])), median(floor.map((each) => each[name]))];
      const ratio = name === "whole" || aims.first.includes("×") ? `${(a / b).toFixed(2)} ×` : `${toSigned(a - b)} ms`;
      row(`${what}: ${label}`, `${a.toFixed(0)} ms, ${at}`, `${b.toFixed(0)} ms`, ratio, aims[name]);
    }
  };

  const measured = installedAgents();
  for (const agent of measured) {
    const at = load();
    const times = await compareAgent(agent, null);
    report(agent, at, times, { first: "≤ +150 ms", after: "≤ 200 ms", whole: "≤ 1.25 ×" });
  }
  await compareMemory();

  const busyPrompt = await promptOf("codex", `openai/${busyModel}`);
  const runs: string[] = [];
  for (let i = 0; i < besides.sessions; i++) runs.push((await startRun(busyPrompt)).id);
  while ((await callsOf(busyModel, 0)).length < besides.sessions) await Bun.sleep(50);
  const stopPrograms = startPrograms(besides.programs);
  const gets: Record<Side, number[]> = { ours: [], floor: [] };
  // Else the latencies were those of this client, which waits for a processor like any other program.
  const setOwnPriority = (niceness: number) => writeFileSync("/proc/self/autogroup", String(niceness));
  setOwnPriority(-20);
  for (const agent of measured) {
    const at = load();
    const times = await compareAgent(agent, gets);
    report(`${agent} on a busy machine`, at, times, { first: "≤ 1.5 ×", after: "", whole: "≤ 1.5 ×" });
  }
  stopPrograms();
  setOwnPriority(0);
  const latencyOf = (side: Side) =>
    `p50 ${percentile(gets[side], 0.5).toFixed(1)}, p99 ${percentile(gets[side], 0.99).toFixed(1)} ms`;
  row(
    `Get one run on the busy machine, ${gets.ours.length} requests`,
    latencyOf("ours"),
    `${latencyOf("floor")}, of a server that does nothing else`,
    "",
    "p99 ≤ 50 ms",
  );
  idle.kill();
  for (const id of runs) await ask("POST", `/api/v1/runs/${id}/cancel`);
  await service.stop();
  await model.stop();

  /** Memory of the processes of a session that waits for its model. */
  async function compareMemory(): Promise<void> {
    const preset = presetOf("codex");
    const promptId = await promptOf("codex", `openai/${heldModel}`);
    const memory: Record<Side, number> = { ours: 0, floor: 0 };
    for (const side of ["floor", "ours"] as const) {
      const begun = Date.now();
      const child = side === "floor" ? startBare(preset, model.url, heldModel, folder) : null;
      const run = child ? null : await startRun(promptId);
      while ((await callsOf(heldModel, begun)).length === 0) await Bun.sleep(20);
      const roots = child ? [child.pid] : childrenOf(service.pid);
      const trees = roots.map((pid) => [pid, ...descendantsOf(pid)]).filter((tree) => !tree.some(isUnused));
      memory[side] = pssMib(trees.flat());
      await fetch(`${model.url}/release?model=${heldModel}`, { method: "POST" });
      if (child) await child.exited;
      while (run && !(await ask("GET", `/api/v1/runs/${run.id}`)).body.completedAt) await Bun.sleep(20);
    }
    const { ours, floor } = memory;
    const words = (mib: number) => `${mib.toFixed(0)} MiB`;
    row(
      "codex: memory of the processes of a session",
      words(ours),
      words(floor),
      `${toSigned(ours - floor)} MiB`,
      "≤ +40 MiB",
    );
  }
}

/** A process that waits for a run and does not take part in one: it has started no agent. */
const isUnused = (pid: number) => isWaiting(pid) && descendantsOf(pid).length === 0;
