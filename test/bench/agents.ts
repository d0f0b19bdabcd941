import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { argsAndEnvOf, presetFilesOf } from "../../src/agents/coding/mcp-servers.ts";
import { fillAsText } from "../../src/agents/coding/preset.ts";
import { presets } from "../../src/agents/coding/presets.ts";
import { findProgram } from "../../src/agents/coding/program.ts";
import { lowerPriority } from "../../src/agents/priority.ts";
import { client, furnish } from "../support/executable.ts";
import type { Turn } from "../support/fake-model.ts";
import { median, percentile, type SessionBench } from "./load.ts";

/** Milliseconds of a session: from its request to the first model call, from the last one to its end, and in total. */
type Times = { before: number; after: number; whole: number };
type Asked = { model: string; at: number };

const atOnce = 8;
const single = 3;
const batches = 2;
const cache = process.env.EVALD_AGENTS_CACHE ?? join(process.env.HOME ?? "", ".cache", "evald-agents");
const PATH = [join(cache, "codex", "node_modules", ".bin"), process.env.PATH].join(delimiter);
const text = "Run the commands.";

const run = (cmd: string): Turn => ({ toolCalls: [{ name: "exec_command", input: { cmd } }] });
const turns = [run("echo hello"), run("echo failed >&2; exit 3"), run("echo hi > hello.txt"), { text: "Done." }];
const modelOf = (nth: number) => `acme-${nth}`;
const heldModel = "acme-held";

const words = (values: number[]) =>
  values.length <= single
    ? `${median(values).toFixed(0)} ms`
    : `p50 ${percentile(values, 0.5).toFixed(0)}, p99 ${percentile(values, 0.99).toFixed(0)} ms`;

/** A process and everything below it. */
function treeOf(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").filter(Boolean);
  return [pid, ...children.flatMap((child) => treeOf(Number(child)))];
}

/** Memory of processes in MB, where each page counts in equal parts for all processes that share it. */
const pssMb = (pids: number[]): number =>
  pids.reduce(
    (sum, pid) => sum + Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, "utf8"))?.[1]) / 1024,
    0,
  );

/** Codex without sandbox, proxy and gateway, with the same settings and priority. */
function createBare(modelUrl: string, folder: () => string) {
  const preset = presets.find(({ id }) => id === "codex");
  const installed = preset && findProgram(preset, PATH);
  if (!preset || !installed || "missing" in installed) throw new Error("run test/support/agents.sh to install Codex");
  const [bind] = installed.binds;
  const program = bind ? installed.argv.map((arg) => arg.replace(bind.to, bind.from)) : installed.argv;
  return (model: string) => {
    const home = folder();
    const values = { gateway: modelUrl, token: "none", model, provider: "openai", home };
    for (const [path, content] of Object.entries(presetFilesOf(preset, values, {}, []))) {
      mkdirSync(join(home, dirname(path)), { recursive: true });
      writeFileSync(join(home, path), content.replace(`${modelUrl}/openai/v1`, `${modelUrl}/v1`));
    }
    const { args, env } = argsAndEnvOf(preset, {});
    const filled = Object.entries(env).map(([name, value]) => [name, fillAsText(value, values)]);
    const child = Bun.spawn([...program, ...args.map((arg) => fillAsText(arg, values))], {
      cwd: home,
      detached: true,
      env: { PATH, HOME: home, ...Object.fromEntries(filled) },
      stdin: new Blob([text]),
      stdout: "ignore",
      stderr: "ignore",
    });
    // Or the floor would get more of the cores than the agents of the service.
    lowerPriority(child.pid);
    return child;
  };
}

/** What evald adds to sessions of Codex, against a model that answers at once. Floor: Codex, started bare with the same model. */
export async function benchAgents({ start, row, folder, env, executable }: SessionBench): Promise<void> {
  const cwd = folder();
  const scenarios = join(cwd, "scenarios.json");
  const own = Array.from({ length: atOnce }, (_, nth) => [modelOf(nth), { turns }]);
  writeFileSync(
    scenarios,
    JSON.stringify({ ...Object.fromEntries(own), [heldModel]: { turns: [{ text: "Done.", hold: true }] } }),
  );
  const model = await start(["bun", join(import.meta.dir, "../support/fake-model.ts"), scenarios], {});
  const startBare = createBare(model.url, folder);
  const { key } = await furnish(cwd);
  const service = await start([executable, "serve"], {
    ...env(`${cwd}/data`),
    PATH,
    EVALD_CONCURRENCY: String(atOnce),
    EVALD_RUNS_PER_ORG: String(atOnce),
    EVALD_RUNS_PER_HOST: String(atOnce),
    EVALD_ALLOW_PRIVATE: "127.0.0.1",
    OPENAI_API_KEY: "none",
    OPENAI_BASE_URL: `${model.url}/v1`,
  });
  const ask = client(service.url, key);
  const promptText = `${text} https://docs.acme.test/`;
  const asked = await ask("POST", "/api/v1/prompts", {
    text: promptText,
    agent: "codex",
    model: `openai/${modelOf(0)}`,
  });
  const promptPath = `/api/v1/prompts/${asked.body.id}/run`;
  const listAsked = async (): Promise<Asked[]> => await (await fetch(`${model.url}/requests`)).json();

  async function timesOf(name: string, begun: number, ended: number): Promise<Times> {
    const at = (await listAsked()).filter((each) => each.model === name && each.at >= begun).map((each) => each.at);
    if (at.length !== turns.length) throw new Error(`${name} got ${at.length} requests, not ${turns.length}`);
    return { before: Math.min(...at) - begun, after: ended - Math.max(...at), whole: ended - begun };
  }

  /** Sessions of evald at once; `gets`: latencies of a client that reads their runs meanwhile. */
  async function ofService(count: number, gets: number[] | null = null): Promise<Times[]> {
    const names = Array.from({ length: count }, (_, nth) => modelOf(nth));
    const requests = await Promise.all(
      names.map((name) => ask("POST", promptPath, { urlMap: {}, model: `openai/${name}` })),
    );
    const left = new Map(requests.map(({ body }, nth) => [body.runId as string, names[nth] as string]));
    const done: Promise<Times>[] = [];
    while (left.size > 0)
      for (const [id, name] of left) {
        const at = performance.now();
        const { body } = await ask("GET", `/api/v1/runs/${id}`);
        gets?.push(performance.now() - at);
        if (body.completedAt) {
          if (body.status !== "completed") throw new Error(`a run failed: ${JSON.stringify(body.failureReason)}`);
          left.delete(id);
          done.push(timesOf(name, Date.parse(body.createdAt), Date.parse(body.completedAt)));
        }
        await Bun.sleep(gets ? 5 : 100);
      }
    return await Promise.all(done);
  }

  /** The same without evald, whose service is only read from. */
  async function ofBare(count: number, gets: number[] = []): Promise<Times[]> {
    let running = count;
    const sessions = Array.from({ length: count }, async (_, nth) => {
      const begun = Date.now();
      const child = startBare(modelOf(nth));
      await child.exited;
      running--;
      if (child.exitCode !== 0) throw new Error(`Codex exited with code ${child.exitCode}`);
      return await timesOf(modelOf(nth), begun, Date.now());
    });
    while (running > 0) {
      const at = performance.now();
      await ask("GET", "/api/v1/runs?limit=1");
      gets.push(performance.now() - at);
      await Bun.sleep(5);
    }
    return await Promise.all(sessions);
  }

  /** Memory of a session that waits for its model. */
  async function memoryOf(side: "ours" | "floor"): Promise<{ agent: number; all: number }> {
    const begun = Date.now();
    const child = side === "floor" ? startBare(heldModel) : null;
    const request = child ? null : await ask("POST", promptPath, { urlMap: {}, model: `openai/${heldModel}` });
    while (!(await listAsked()).some((each) => each.model === heldModel && each.at >= begun)) await Bun.sleep(20);
    const pids = child ? treeOf(child.pid) : treeOf(service.pid).slice(1);
    const isAgent = (pid: number) => readFileSync(`/proc/${pid}/comm`, "utf8").trim() === "codex";
    const memory = { agent: pssMb(pids.filter(isAgent)), all: pssMb(pids) };
    const release = `${model.url}/release?model=${heldModel}`;
    await fetch(release, { method: "POST" });
    if (child) await child.exited;
    while (request && !(await ask("GET", `/api/v1/runs/${request.body.runId}`)).body.completedAt) await Bun.sleep(20);
    return memory;
  }

  const alone = { ours: [] as Times[], floor: [] as Times[] };
  const many = { ours: [] as Times[], floor: [] as Times[] };
  const gets = { ours: [] as number[], floor: [] as number[] };
  await ofBare(1);
  await ofService(1);
  for (let i = 0; i < single; i++) {
    alone.ours.push(...(await ofService(1)));
    alone.floor.push(...(await ofBare(1)));
  }
  for (let i = 0; i < batches; i++) {
    many.ours.push(...(await ofService(atOnce, gets.ours)));
    many.floor.push(...(await ofBare(atOnce, gets.floor)));
  }
  const of = (times: Times[], name: keyof Times) => times.map((each) => each[name]);
  const compared = (what: string, { ours, floor }: typeof alone, name: keyof Times, aim: string) => {
    const [a, b] = [of(ours, name), of(floor, name)];
    row(what, words(a), words(b), `+${(median(a) - median(b)).toFixed(0)} ms`, aim);
  };
  compared("Codex, 1 session: request to first model call", alone, "before", "≤ +500 ms");
  compared("Codex, 1 session: last model call to report (floor: to exit)", alone, "after", "≤ +200 ms");
  compared("Codex, 1 session: total", alone, "whole", "");
  compared(`Codex, ${atOnce} sessions: request to first model call`, many, "before", "");
  compared(`Codex, ${atOnce} sessions: last model call to report (floor: to exit)`, many, "after", "");
  compared(`Codex, ${atOnce} sessions: total`, many, "whole", "");
  row(`Codex, ${atOnce} sessions: get one run`, words(gets.ours), words(gets.floor), "", "p99 < 50 ms");
  const memory = { ours: await memoryOf("ours"), floor: await memoryOf("floor") };
  const mb = (value: number) => `${value.toFixed(0)} MB`;
  row("Codex, 1 session: memory of Codex", mb(memory.ours.agent), mb(memory.floor.agent), "", "");
  const added = `+${mb(memory.ours.all - memory.floor.all)}`;
  row("Codex, 1 session: memory of all its processes", mb(memory.ours.all), mb(memory.floor.all), added, "≤ +150 MB");
  await service.stop();
  await model.stop();
}
