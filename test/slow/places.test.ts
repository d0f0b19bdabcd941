import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import pino from "pino";
import type { Agent } from "../../src/agents/agent.ts";
import { createChildAgent } from "../../src/agents/child.ts";
import { startProcess } from "../../src/agents/process.ts";
import { createArchive } from "../../src/archives/archives.ts";
import { advanceCalibrations } from "../../src/calibration/progress.ts";
import { createLocalExecutor } from "../../src/places/local.ts";
import { openWorker } from "../../src/places/worker.ts";
import { openWorkerExecutor } from "../../src/places/worker-executor.ts";
import { instantAgent, testApp } from "../support/app.ts";
import { serveFakeModel } from "../support/fake-model.ts";
import { call, finish, modelRuns } from "../support/model-runs.ts";
import { networkedExplorer } from "../support/networked-explorer.ts";
import { startRedis } from "../support/redis.ts";
import { until } from "../support/until.ts";

const log = pino({ level: process.env.TEST_LOG ?? "silent" });
const thought = (text: string) => JSON.stringify({ type: "thought", text, by: "rule" });
const end = JSON.stringify({ type: "end", outcome: "not_judged", reason: "scripted" });
const megabytes = process.env.TEST_SIZE === "full" ? 64 : 6;

let redis: Awaited<ReturnType<typeof startRedis>>;
let fake: ReturnType<typeof serveFakeModel>;
beforeAll(async () => {
  redis = await startRedis();
  fake = serveFakeModel({
    scenarios: {
      works: { turns: [call("run_command", { command: "echo made > /workspace/note" }), finish("succeeded", "Done.")] },
      looks: {
        turns: [
          call("run_command", {
            command: "cat src/app.js .agents/skills/*/SKILL.md; curl -s http://notes.test/guide.md",
          }),
          finish("succeeded", "Done."),
        ],
      },
      spends: {
        turns: Array.from({ length: 50 }, () => ({
          ...call("run_command", { command: "true" }),
          usage: { input: 100_000, cached: 0, output: 100, reasoning: 0 },
        })),
      },
    },
  });
});
afterAll(async () => {
  fake.stop();
  await redis.kill();
});

type Closing = () => Promise<unknown>;
const closings: Closing[] = [];
afterEach(async () => {
  for (const close of closings.splice(0).reverse()) await close();
});

/** One worker in this process, with its service's gateway. */
function onWorker(agents: Record<string, Agent>) {
  const executor = openWorkerExecutor(redis.url, "1", agents, 60_000, log);
  const local = createLocalExecutor(agents, Date.now, null, []);
  const starting = openWorker({
    url: redis.url,
    gatewayUrl,
    version: "1",
    slots: 4,
    agents,
    executor: local,
    log,
  });
  closings.push(
    () => executor.close(),
    async () => (await starting).stop(0),
    () => local.close(),
  );
  return executor;
}

let answerCall: (request: Request) => Promise<Response> = async () => new Response(null, { status: 503 });
const gateway = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: (request) => answerCall(request) });
const gatewayUrl = `http://127.0.0.1:${gateway.port}`;
afterAll(() => gateway.stop(true));

describe.each([
  ["this machine", undefined],
  ["a worker", onWorker],
])("on %s", (_, workers) => {
  /** The service, and a run whose agent is the process of a shell script. */
  async function start(script: string, env: Record<string, string> = {}) {
    const agent = createChildAgent(instantAgent, {
      startAgentProcess: () => startProcess(["sh", "-c", script], { PATH: process.env.PATH ?? "" }),
    });
    const app = testApp({ agent, env, ...(workers && { workers }) });
    const prompt = await app.send("POST", "/api/v1/prompts", { body: { text: "See https://docs.test/" } });
    const asked = await app.send("POST", `/api/v1/prompts/${prompt.body.id}/run`, { body: { urlMap: {} } });
    const get = async () => (await app.send("GET", `/api/v1/runs/${asked.body.runId}`)).body;
    const thoughts = async () => {
      const { body } = await app.send("GET", `/api/v1/reports/${(await get()).report.slug}/trace?limit=500`);
      return body.events.filter(({ type }: { type: string }) => type === "thought");
    };
    return { ...app, runId: asked.body.runId as string, get, thoughts };
  }

  async function runOf(script: string, env: Record<string, string> = {}) {
    const app = await start(script, env);
    await app.runJobs();
    return { ...app, run: await app.get() };
  }

  const isRunning = async (pid: string) => (await Bun.$`kill -0 ${pid}`.nothrow().quiet()).exitCode === 0;

  /** A run that has started and waits; `pid` is its process. */
  async function startWaiting(env: Record<string, string> = {}) {
    const file = `/tmp/evald-test-${crypto.randomUUID()}`;
    const app = await start(`echo $$ > ${file}; echo '${thought("waiting")}'; sleep 600`, env);
    await app.service.runner.start();
    const text = () => Bun.file(file).text();
    const pid = await until("the agent runs", async () => (await Bun.file(file).exists()) && (await text()).trim());
    return { ...app, pid: pid as string };
  }

  test("a session completes with its events in order", async () => {
    const { run, thoughts } = await runOf(`echo '${thought("one")}'; echo '${thought("two")}'; echo '${end}'`);
    expect(run).toMatchObject({ status: "completed", attempt: 1, failureReason: null });
    expect((await thoughts()).map(({ text }: { text: string }) => text)).toEqual(["one", "two"]);
  });

  test("a calibration finds what was planted into sites that have no port", async () => {
    const app = testApp({ agent: networkedExplorer("test"), ...(workers && { workers }) });
    answerCall = app.service.answerModelCall;
    await app.send("POST", "/api/v1/calibrations", { body: { agent: "explorer", sites: 1 } });
    await app.runJobs();
    await advanceCalibrations(app.service.ctx);
    const [calibration] = (await app.send("GET", "/api/v1/calibrations")).body;
    expect(calibration.figures).toMatchObject({ found: { n: 4, of: 4 }, falseAlarms: { n: 0, of: 1 }, failedRuns: 0 });
  });

  test("a crash uses up the attempts", async () => {
    const { run } = await runOf("echo boom >&2; exit 3");
    const failureReason = "agent_crashed: its process exited with code 3 without a result; stderr: boom";
    expect(run).toMatchObject({ status: "failed", attempt: 3, failureReason });
  });

  test("cancelling ends the process", async () => {
    const { send, runId, get, pid, service } = await startWaiting();
    await send("POST", `/api/v1/runs/${runId}/cancel`);
    await until("the process has ended", async () => !(await isRunning(pid)));
    expect(await get()).toMatchObject({ status: "failed", failureReason: expect.stringMatching(/^cancelled: /) });
    await service.runner.stop(0);
  });

  test("draining ends the process and requeues the run without using an attempt", async () => {
    const { get, pid, service, send, runId } = await startWaiting();
    await service.runner.stop(0);
    await until("the process has ended", async () => !(await isRunning(pid)));
    expect((await get()).status).toBe("pending");
    const { body } = await send("GET", `/api/v1/runs/${runId}/attempts`);
    expect(body).toMatchObject([{ outcome: "released" }]);
  });

  test("an idle agent is stopped", async () => {
    const { get, pid, service } = await startWaiting({ EVALD_IDLE_TIMEOUT_SECONDS: "3" });
    await until("the run has failed", async () => (await get()).status === "failed");
    expect((await get()).failureReason).toStartWith("timeout: ");
    await until("the process has ended", async () => !(await isRunning(pid)));
    await service.runner.stop(0);
  });

  test("an agent that needs too much memory is stopped", async () => {
    const script = `echo '${thought("more")}'; exec ${process.execPath} -e 'const all = []; for (;;) { all.push(Buffer.alloc(1e7, 1)); await Bun.sleep(5); }'`;
    const { run } = await runOf(script, { EVALD_AGENT_MEMORY_MB: "256" });
    expect(run).toMatchObject({ status: "failed", failureReason: expect.stringMatching(/^budget: .*memory/) });
  });

  test("files that the agent created are kept", async () => {
    const artifact = { name: "note.txt", bytes: 5, data: Buffer.from("hello").toString("base64") };
    const event = { type: "milestone", name: "workspace_changed", detail: { files: 1, isCut: false }, artifact };
    const { run, send } = await runOf(`echo '${JSON.stringify(event)}'; echo '${end}'`);
    const { body } = await send("GET", `/api/v1/reports/${run.report.slug}/trace?types=milestone`);
    expect(body.events.find(({ artifact: kept }: { artifact?: object }) => kept)).toMatchObject({
      artifact: { name: "note.txt", bytes: 5 },
    });
  });

  test(`${megabytes} MB of events arrive`, async () => {
    const large = thought("x".repeat(20_000));
    const many = megabytes * 50;
    const { run, db } = await runOf(`yes '${large}' | head -n ${many}; echo '${end}'`);
    expect(run).toMatchObject({ status: "completed", failureReason: null });
    const row = db.$client.query<{ n: number }, []>("select count(*) n from session_events where type = 'thought'");
    expect(row.get()?.n).toBe(many);
  });

  test("a failure with a time to wait requeues the run until then", async () => {
    const failure = {
      type: "failure",
      code: "model_server_error",
      detail: "busy",
      retryable: true,
      retryAfterMs: 600_000,
    };
    const { service, send, runId, db } = await start(`echo '${JSON.stringify(failure)}'`);
    await service.runner.start();
    const attempts = async () => (await send("GET", `/api/v1/runs/${runId}/attempts`)).body;
    await until("the attempt has ended", async () => (await attempts())[0]?.outcome);
    expect(await attempts()).toMatchObject([{ outcome: "retried", reason: "infrastructure: busy" }]);
    const job = db.$client.query<{ at: number }, [string]>("select available_at at from jobs where subject = ?");
    expect((job.get(runId)?.at ?? 0) - Date.now()).toBeGreaterThan(500_000);
    await service.runner.stop(0);
  });

  const { runOf: modelRun } = modelRuns({
    get baseUrls() {
      return fake.baseUrls;
    },
  } as ReturnType<typeof serveFakeModel>);
  const options = {
    ...(workers && { workers }),
    before: (app: ReturnType<typeof testApp>) => {
      answerCall = app.service.answerModelCall;
    },
  };

  test("an agent with a model calls it through the service and works in the sandbox", async () => {
    const { run, report, events, tokens } = await modelRun("works", options);
    expect(run).toMatchObject({ status: "completed", failureReason: null });
    expect(report.metrics.toolCalls).toBeGreaterThan(0);
    expect(
      events.some(({ source, type }: { source: string; type: string }) => source === "gateway" && type === "usage"),
    ).toBe(true);
    for (const token of tokens) expect(JSON.stringify(events)).not.toContain(token);
  });

  test("an agent gets its files, and its requests to the product are recorded", async () => {
    const workspace: Record<string, unknown> = {};
    const archives = {
      archive: { "src/app.js": "from-archive\n" },
      skills: { "notes/SKILL.md": "---\nname: notes\ndescription: Adds notes.\n---\nfrom-skills\n" },
    };
    const before = async (app: ReturnType<typeof testApp>) => {
      options.before(app);
      for (const [name, files] of Object.entries(archives)) {
        const data = await new Bun.Archive(files, { compress: "gzip" }).bytes();
        const { id } = createArchive(app.service.ctx, app.a.org, { data, files: 1 });
        workspace[name] = name === "skills" ? { archive: id } : id;
      }
    };
    const { run, events } = await modelRun("looks", { ...options, before, prompt: { workspace } });
    expect(run).toMatchObject({ status: "completed", failureReason: null });
    const result = events.find(
      ({ type, tool }: { type: string; tool?: string }) => type === "tool_result" && tool === "run_command",
    );
    for (const text of ["from-archive", "from-skills", "Add a note"]) expect(result.output.stdout).toContain(text);
    expect(events.filter(({ source }: { source: string }) => source === "egress")).toMatchObject([
      { type: "http", url: "http://notes.test/guide.md", status: 200 },
    ]);
  });

  test("a success check gets its secret, and its session doesn't contain it", async () => {
    const value = crypto.randomUUID();
    const before = async (app: ReturnType<typeof testApp>) => {
      options.before(app);
      await app.send("PUT", "/api/v1/secrets/TOKEN", { body: { value } });
    };
    const declaredChecks = [
      { command: `test -f note && test "$TOKEN" = ${value}`, env: { TOKEN: "{{secret.TOKEN}}" } },
    ];
    const env = { EVALD_SECRET_KEY: Buffer.alloc(32, 7).toString("base64") };
    const { report, events } = await modelRun("works", { ...options, env, before, prompt: { declaredChecks } });
    expect(report.outcome).toBe("succeeded");
    expect(JSON.stringify(events)).not.toContain(value);
  });

  test("a run ends when its money is used up", async () => {
    const { events } = await modelRun("spends", { ...options, env: { EVALD_MAX_COST_USD: "3" } });
    expect(
      events.some(({ type, limit }: { type: string; limit?: string }) => type === "limit" && limit === "model_cost"),
    ).toBe(true);
  });

  test("a model that asks to wait is called again after that time", async () => {
    // This model has a different name because it asks only once.
    const name = `throttled-${crypto.randomUUID()}`;
    const fail = { status: 429, message: "slow down", headers: { "retry-after": "1" } };
    fake.add(name, { first: [{ fail }], turns: [finish("succeeded", "Done.")] });
    const { run } = await modelRun(name, options);
    expect(run).toMatchObject({ status: "completed", failureReason: null });
    const [first, second] = fake.requests.filter(({ model }) => model === name);
    expect((second?.at ?? 0) - (first?.at ?? 0)).toBeGreaterThanOrEqual(1000);
  });
});
