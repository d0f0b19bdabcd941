import { beforeAll, describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { getPriority } from "node:os";
import { join } from "node:path";
import { AgentFailure } from "../../src/agents/agent.ts";
import { createChildAgent } from "../../src/agents/child.ts";
import { startProcess } from "../../src/agents/process.ts";
import { instantAgent, testApp } from "../support/app.ts";
import { buildExecutable, call, client, emptyFolder, executable, serve, untilRun } from "../support/executable.ts";
import { wideLimits } from "../support/limits.ts";
import { childrenOf, isGone, isWaiting, memoryOf, processFile } from "../support/processes.ts";
import { serveSite } from "../support/site.ts";
import { until } from "../support/until.ts";

beforeAll(buildExecutable, 300_000);

const shell = (script: string) => ["sh", "-c", script];
const bun = (script: string) => [process.execPath, "-e", script];
const thought = JSON.stringify({ type: "thought", text: "hm", by: "rule" });
const end = JSON.stringify({ type: "end", outcome: "not_judged", reason: "scripted" });
const failure = (code: string, options: object) =>
  JSON.stringify({ type: "failure", code, detail: "so it is", ...options });

/** One run over REST whose agent is the process of a command. */
async function runOf(command: string[], env: Record<string, string> = {}, silentCpuMs?: number) {
  return (await appWithRun(command, env, silentCpuMs)).run;
}

async function appWithRun(command: string[], env: Record<string, string> = {}, silentCpuMs?: number) {
  const { send, runJobs } = testApp({
    agent: createChildAgent(instantAgent, { startAgentProcess: () => startProcess(command, {}), silentCpuMs }),
    env,
  });
  const prompt = await send("POST", "/api/v1/prompts", { body: { text: "See https://docs.test/" } });
  const asked = await send("POST", `/api/v1/prompts/${prompt.body.id}/run`, { body: { urlMap: {} } });
  await runJobs();
  return { send, run: (await send("GET", `/api/v1/runs/${asked.body.runId}`)).body };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

describe("the output of a process", () => {
  test.each([
    ["in one piece", `echo '${thought}'; echo '${end}'`],
    ["in pieces", `printf '%s' '${end.slice(0, 20)}'; sleep 0.05; printf '%s\\n' '${end.slice(20)}'`],
    ["with more output on stderr than a pipe holds", `yes complaint | head -c 1000000 >&2; echo '${end}'`],
  ])("is the session: %s", async (_, script) => {
    expect(await runOf(shell(script))).toMatchObject({ status: "completed", attempt: 1, failureReason: null });
  });

  test.if(existsSync("/proc/self/autogroup"))(
    "comes from a process with a lower priority than everything else on the machine",
    async () => {
      const script = `until grep -q "nice 5" /proc/self/autogroup; do sleep 0.1; done; test "$(nice)" = 19 && echo '${end}'`;
      expect(await runOf(shell(script))).toMatchObject({ status: "completed", failureReason: null });
    },
  );

  test.each([
    ["an exit status", "echo boom >&2; exit 3", "exited with code 3 without a result; stderr: boom"],
    ["an exit status after its end", `echo '${end}'; exit 4`, "exited with code 4 without a result"],
    ["no end", `echo '${thought}'`, "exited with code 0 without a result"],
    ["a truncated line", `printf '%s' '${end}'`, "exited with code 0 without a result"],
    ["a signal", "kill -SEGV $$", "was killed by SIGSEGV without a result"],
    ["garbage", "echo hello", 'wrote an invalid event: "hello"'],
    ["an empty line", "echo", 'wrote an invalid event: ""'],
    ["null", "echo null", 'wrote an invalid event: "null"'],
    ["an unknown event", `echo '{"type":"joy"}'`, String.raw`wrote an invalid event: "{\"type\":\"joy\"}"`],
    ["an unknown outcome", `echo '{"type":"end"}'`, String.raw`wrote an invalid event: "{\"type\":\"end\"}"`],
    ["bytes that aren't text", String.raw`printf '\377\376\n'`, 'wrote an invalid event: "��"'],
    ["an endless line", "yes | tr -d '\\n'", "wrote a line longer than 1 MiB"],
  ])("is a crash that is tried three times: %s", async (_, script, reason) => {
    const run = await runOf(shell(script));
    expect(run).toMatchObject({ status: "failed", attempt: 3, failureReason: `agent_crashed: its process ${reason}` });
  });

  test.each([
    ["stops a run that computes without an event", `console.log(${JSON.stringify(thought)}); for (;;);`, "failed"],
    // The total is more than the limit.
    [
      "starts again with each event",
      `const used = () => process.cpuUsage().user + process.cpuUsage().system; for (let i = 1; i <= 4; i++) { while (used() < i * 6e5); console.log(${JSON.stringify(thought)}); await Bun.sleep(50); } console.log(${JSON.stringify(end)})`,
      "completed",
    ],
  ])("is limited in CPU time, and the limit %s", async (_, script, status) => {
    const run = await runOf(bun(script), {}, 2000);
    expect(run).toMatchObject({ status, attempt: 1 });
    if (status === "failed") expect(run.failureReason).toStartWith("budget: the agent used 2 s of CPU time");
  });

  test("keeps a milestone that is unknown or malformed as it was sent", async () => {
    const odd = [{ name: "celebrated", detail: {} }, { name: "page_read" }];
    const lines = odd.map((fields) => `echo '${JSON.stringify({ type: "milestone", ...fields })}'; `).join("");
    const { send, run } = await appWithRun(shell(`${lines}echo '${end}'`));
    expect(run).toMatchObject({ status: "completed", failureReason: null });
    const { body } = await send("GET", `/api/v1/reports/${run.report.slug}/trace?types=milestone`);
    expect(body.events).toMatchObject(odd.map((raw) => ({ name: null, raw })));
  });

  test("is a crash if an event is nested too deeply", async () => {
    const depth = 200_000;
    const deep = `console.log('{"type":"tool_call","input":' + "[".repeat(${depth}) + "]".repeat(${depth}) + "}")`;
    expect((await runOf(bun(deep))).failureReason).toStartWith("agent_crashed: ");
  });

  test("on stderr is reported up to its last 4 KiB", async () => {
    const { failureReason } = await runOf(shell("yes complaint | head -c 100000 >&2; echo last words >&2; exit 1"));
    expect(failureReason).toEndWith("complaint\nlast words");
    expect(failureReason.length).toBeWithin(4000, 4300);
  });

  test("can report a failure, which is retried only if that may help", async () => {
    const told = async (line: string) => {
      const { status, attempt, failureReason } = await runOf(shell(`echo '${line}'`));
      return [status, attempt, failureReason];
    };
    expect(await told(failure("model_key_refused", { retryable: false }))).toEqual([
      "failed",
      1,
      "credentials: so it is",
    ]);
    expect(await told(failure("model_server_error", { retryable: true }))).toEqual([
      "failed",
      5,
      "infrastructure: so it is",
    ]);
    expect((await told(failure("boredom", {})))[2]).toStartWith("agent_crashed: its process wrote an invalid event");
  });

  test("is missing by the service's fault if the process can't be started", async () => {
    const { attempt, failure, failureReason } = await runOf(["/nowhere/evald"]);
    expect([attempt, failure.code, failureReason]).toEqual([
      5,
      "agent_not_started",
      expect.stringMatching(/^infrastructure: the agent's process could not be started: .*\/nowhere/),
    ]);
  });
});

describe("a process", () => {
  const order = {
    task: {
      text: "",
      endGoal: null,
      startUrls: [],
      productUrl: null,
      urlMap: {},
      declaredChecks: [],
      limits: wideLimits,
    },
    context: { now: () => 0, startedAt: 0, allow: [], resources: null },
  };

  test("that floods the service with events waits, and is stopped", async () => {
    const text = "x".repeat(4000);
    const agent = createChildAgent(instantAgent, {
      startAgentProcess: () => startProcess(["yes", JSON.stringify({ type: "message", text })], {}),
    });
    const { signal } = new AbortController();
    // Memory in use, without uncollected garbage.
    const used = () => {
      Bun.gc(true);
      return process.memoryUsage.rss();
    };
    const before = used();
    let most = 0;
    let events = 0;
    const drink = async () => {
      for await (const _ of agent.run(order.task, { ...order.context, signal })) {
        // `yes` writes a gigabyte a second: this is far slower.
        if (events++ % 10 === 0) await turn();
        if (events % 1000 === 0) most = Math.max(most, used() - before);
      }
    };
    expect(await drink().catch((error) => error)).toEqual(
      new AgentFailure("session_too_large", "the agent sent more than 64 MiB of events and was stopped"),
    );
    expect(events).toBeGreaterThan(15_000);
    expect(most / 1024 ** 2).toBeLessThan(100);
  });

  test("whose flood of events is stored as it arrives is stopped without blocking the service", async () => {
    let beats = 0;
    const beat = setInterval(() => beats++, 5);
    const { attempt, failureReason } = await runOf(["yes", thought]);
    clearInterval(beat);
    expect([attempt, failureReason]).toEqual([1, "budget: the agent sent more than 100000 events and was stopped"]);
    expect(beats).toBeGreaterThan(100);
  });

  test("that uses too much memory is stopped", async () => {
    const greedy = bun(`globalThis.kept = Buffer.alloc(400 * 1024 ** 2, 1); setInterval(() => {}, 1000)`);
    const { attempt, failureReason } = await runOf(greedy, { EVALD_AGENT_MEMORY_MB: "256" });
    expect([attempt, failureReason]).toEqual([1, "budget: the agent used more than 256 MiB of memory and was stopped"]);
  });
});

describe("a process leaves nothing behind if it", () => {
  /** Three processes started by a shell: one in its group, one outside of it, and one outside whose parent has exited. */
  const litter = (file: string) =>
    `sleep 1000 & echo $! >> ${file}; setsid sleep 1001 & echo $! >> ${file}; sh -c 'setsid sleep 1002 & echo $! >> ${file}';`;
  const pidsIn = (file: string) => readFileSync(file, "utf8").trim().split("\n").map(Number);

  test.each([
    ["has ended", `echo '${end}'`, {}, "completed"],
    ["has crashed", "exit 1", {}, "failed"],
    ["has killed itself", "kill -KILL $$", {}, "failed"],
    [
      "ignores signals when its time is up",
      `trap "" TERM; echo '${thought}'; while :; do sleep 0.1; done`,
      // Long enough for the shell to write all IDs.
      { EVALD_RUN_TIMEOUT_SECONDS: "4" },
      "failed",
    ],
  ])(
    "%s",
    async (_, script, env, status) => {
      const file = join(emptyFolder(), "pids");
      expect(await runOf(shell(litter(file) + script), env)).toMatchObject({ status });
      const left = pidsIn(file);
      expect(left.length).toBeGreaterThanOrEqual(3);
      await until("they are gone", () => left.every(isGone));
    },
    300_000,
  );
});

async function organization(cwd: string): Promise<string> {
  await call(["org", "create", "Acme"], { cwd });
  return (await call(["key", "create", "--org", "Acme", "--name", "test"], { cwd })).stdout.trim();
}

/** A service with the real explorer, and runs of a site. */
async function served(url: string, count: number, env: Record<string, string> = {}) {
  const cwd = emptyFolder();
  const service = await serve({
    cwd,
    env: { EVALD_ALLOW_PRIVATE: new URL(url).host, EVALD_LOG_LEVEL: "warn", ...env },
  });
  const ask = client(service.url, await organization(cwd));
  const body = { title: "Upload", text: `Upload a file. Docs: ${url}`, endGoal: "A file was uploaded with the SDK." };
  const prompt = await ask("POST", "/api/v1/prompts", body);
  const runIds: string[] = [];
  while (runIds.length < count)
    runIds.push((await ask("POST", `/api/v1/prompts/${prompt.body.id}/run`, { urlMap: {} })).body.runId);
  return { service, ask, runIds };
}

describe("the explorer in the executable", () => {
  test("has no key or data, and exits with the service even if it doesn't get CPU time", async () => {
    const { promise: asked, resolve: arrived } = Promise.withResolvers<void>();
    const site = serveSite({
      "/": () => {
        arrived();
        return new Promise<Response>(() => {});
      },
    });
    const env = { OPENAI_API_KEY: "sk-secret", SSL_CERT_DIR: "/etc/ssl/certs" };
    const { service } = await served(`${site.url}/`, 1, env);
    await asked;
    const own = processFile(service.pid, "cmdline");
    const children = await until("each process runs its own program", () => {
      const found = childrenOf(service.pid);
      return found.every((child) => !["", own].includes(processFile(child, "cmdline"))) && found;
    });
    for (const child of children) {
      const environment = readFileSync(`/proc/${child}/environ`, "utf8").split("\0").filter(Boolean);
      expect(environment.map((entry) => entry.split("=")[0]).sort()).toEqual([
        "AGENT_PROCESS",
        "BUN_FEATURE_FLAG_NO_ORPHANS",
        "PATH",
        "SSL_CERT_DIR",
      ]);
      process.kill(child, "SIGSTOP");
      await until("it has stopped", () => /^State:\tT/m.test(processFile(child, "status")));
      const open = readdirSync(`/proc/${child}/fd`).map((fd) => readlinkSync(`/proc/${child}/fd/${fd}`));
      expect(open.filter((path) => path.includes("evald.db"))).toEqual([]);
    }
    await service.stop("SIGKILL");
    await until("they are gone", () => children.every(isGone));
    site.stop();
  });

  test("runs in a sandbox without the machine's files, processes, privileges and keyrings, and ends with the service", async () => {
    const { promise: asked, resolve: arrived } = Promise.withResolvers<void>();
    const site = serveSite({
      "/": () => {
        arrived();
        return new Promise<Response>(() => {});
      },
    });
    const { service } = await served(`${site.url}/`, 1);
    await asked;
    const below = (pid: number): number => childrenOf(pid).map(below)[0] ?? pid;
    const commandOf = (pid: number) => processFile(pid, "cmdline");
    // Another process may be starting for the next run.
    const agent =
      childrenOf(service.pid)
        .map(below)
        .find((pid) => commandOf(pid).startsWith("/run/evald/evald")) ?? 0;
    const status = Object.fromEntries(
      readFileSync(`/proc/${agent}/status`, "latin1")
        .split("\n")
        .map((line) => line.split(/:\s+/)),
    );
    expect(commandOf(agent)).toContain("__agent");
    expect(status).toMatchObject({ Seccomp: "2", NoNewPrivs: "1", CapEff: "0000000000000000" });
    expect(status.Uid).not.toStartWith("0\t");
    expect(status.NSpid.split("\t").length).toBeGreaterThan(1);
    const seen = (path: string) => readdirSync(`/proc/${agent}/root${path}`).sort();
    // This is the folder of the network proxy's socket.
    expect(seen("/tmp")).toEqual([expect.stringMatching(/^evald-egress-/)]);
    expect(seen("/home")).toEqual(["agent"]);
    expect(seen("/")).not.toContain("root");
    const filesystems = readFileSync(`/proc/${agent}/mounts`, "latin1").trim().split("\n");
    const writable = filesystems.filter((line) => / rw[, ]/.test(line)).map((line) => line.split(" ")[1] as string);
    expect(writable.filter((path) => !/^\/(proc|tmp|home|workspace|dev\/.*)$/.test(path))).toEqual([]);
    await service.stop("SIGKILL");
    await until("it is gone", () => isGone(agent));
    site.stop();
  });

  test("reads large pages while the service responds", async () => {
    const paths = ["/", ...Array.from({ length: 8 }, (_, i) => `/page-${i}`)];
    const links = paths.map((path) => `<a href="${path}">Upload a file ${path}</a>`).join(" ");
    const row = "<tr><td><p>Some <b>words</b> about uploads and <code>files</code>.</p></td></tr>";
    const body = `<!doctype html><html lang="en"><title>All</title><main><h1>All</h1>${links}<table>${row.repeat(4_000)}</table></main></html>`;
    const site = serveSite(Object.fromEntries(paths.map((path) => [path, { body }])));
    const { service, ask, runIds } = await served(`${site.url}/`, 1);
    const waits: number[] = [];
    for (let status = ""; status !== "completed"; ) {
      for (let i = 0; i < 20; i++) {
        const begun = performance.now();
        await (await fetch(`${service.url}/healthz`)).text();
        waits.push(performance.now() - begun);
      }
      ({ status } = (await ask("GET", `/api/v1/runs/${runIds[0]}`)).body);
    }
    waits.sort((one, other) => one - other);
    // In the service's own process, the same pages would block its responses for seconds.
    expect(waits.length).toBeGreaterThan(200);
    expect(waits[Math.floor(waits.length * 0.99)]).toBeLessThan(2000);
    await service.stop();
    site.stop();
  });

  test("waits for the next run, and serves only that one", async () => {
    const site = serveSite({ "/": { body: "<title>Acme</title><h1>Acme</h1>" } });
    const { service, ask, runIds } = await served(`${site.url}/`, 1);
    const untilWaiting = async (other?: number): Promise<number> => {
      for (;;) {
        const [pid, ...more] = childrenOf(service.pid).filter((child) => child !== other && isWaiting(child));
        if (pid !== undefined && more.length === 0) return pid;
        await Bun.sleep(20);
      }
    };
    const { prompt } = await untilRun(ask, runIds[0] as string, "completed");
    const first = await untilWaiting();
    // A run that starts must not wait for those in progress.
    expect(getPriority(first)).toBe(getPriority(service.pid));
    const { body } = await ask("POST", `/api/v1/prompts/${prompt.id}/run`, { urlMap: {} });
    await untilRun(ask, body.runId, "completed");
    const second = await untilWaiting(first);
    await until("it is gone", () => isGone(first));
    await service.stop();
    await until("it is gone", () => isGone(second));
    site.stop();
  });

  test("waits in one process for every three concurrent runs, and each process serves one of the next runs", async () => {
    const site = serveSite({ "/": { body: "<title>Acme</title><h1>Acme</h1>" } });
    const { service, ask, runIds } = await served(`${site.url}/`, 1, { EVALD_CONCURRENCY: "9" });
    const waiting = () => childrenOf(service.pid).filter(isWaiting);
    const { prompt } = await untilRun(ask, runIds[0] as string, "completed");
    await until("three processes wait", () => waiting().length === 3);
    const first = waiting();
    const run = () => ask("POST", `/api/v1/prompts/${prompt.id}/run`, { urlMap: {} });
    const asked = await Promise.all([run(), run()]);
    await Promise.all(asked.map(({ body }) => untilRun(ask, body.runId, "completed")));
    await until("two of them are gone", () => first.filter(isGone).length === 2);
    await until("three processes wait again", () => waiting().length === 3);
    expect(first.filter((pid) => waiting().includes(pid)).length).toBe(1);
    const all = waiting();
    await service.stop();
    await until("they are gone", () => all.every(isGone));
    site.stop();
  });

  test("runs 50 times concurrently without losing a run or leaving one behind, and the service stays small", async () => {
    const guide =
      '<!doctype html><html lang="en"><title>Acme</title><main><h1>Upload a file</h1><p>Upload a file with the SDK.</p><pre><code class="language-js">await acme.upload("a.txt");</code></pre></main></html>';
    const headers = { "content-type": "text/html" };
    const { promise: all, resolve: allRun } = Promise.withResolvers<void>();
    const site = serveSite({
      async "/"() {
        await all;
        return new Response(guide, { headers });
      },
    });
    const env = { EVALD_CONCURRENCY: "50", EVALD_RUNS_PER_HOST: "50" };
    const { service, ask, runIds } = await served(`${site.url}/`, 50, env);
    await until("each run has a process", () => childrenOf(service.pid).length >= 50);
    allRun();
    const runs = await Promise.all(runIds.map((id) => untilRun(ask, id, "completed", "failed")));
    expect(runs.filter(({ status }) => status !== "completed")).toEqual([]);
    await until("only waiting processes are left", () => childrenOf(service.pid).every(isWaiting));
    expect(childrenOf(service.pid).length).toBeLessThanOrEqual(16);
    expect(memoryOf(service.pid, "VmHWM")).toBeLessThan(300 * 1024 ** 2);
    await service.stop();
    site.stop();
  }, 300_000);

  test("reports what is wrong with an order", async () => {
    const cwd = emptyFolder();
    expect(await call(["__agent"], { cwd })).toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringContaining("ended before its first line"),
    });
    expect(existsSync(join(cwd, "data"))).toBe(false);
    const run = await runOf(shell(`echo '{"agent":"nobody"}' | ${executable} __agent`));
    expect(run.failureReason).toContain('no agent named "nobody"');
  });
});

test("an unavailable agent is not offered, and a run that waits for it says why", async () => {
  const agent = { ...instantAgent, preflight: () => [{ what: "model key", isMet: false, detail: "none is set" }] };
  const { send, runJobs } = testApp({ agent });
  const body = { text: "See https://docs.test/" };
  const named = await send("POST", "/api/v1/prompts", { body: { ...body, agent: "explorer" } });
  expect([named.status, named.body.detail]).toEqual([
    400,
    expect.stringMatching(/^Invalid agent: explorer is not available /),
  ]);
  const prompt = await send("POST", "/api/v1/prompts", { body });
  const { body: asked } = await send("POST", `/api/v1/prompts/${prompt.body.id}/run`, { body: { urlMap: {} } });
  await runJobs();
  expect((await send("GET", `/api/v1/runs/${asked.runId}`)).body.failureReason).toMatch(
    /^infrastructure: the agent explorer .*: model key: none is set$/,
  );
});
