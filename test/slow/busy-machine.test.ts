import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { createCodingAgent } from "../../src/agents/coding/coding.ts";
import { toPreset } from "../../src/agents/coding/preset.ts";
import { testApp } from "../support/app.ts";
import { buildExecutable, call, client, emptyFolder, serve, untilRun } from "../support/executable.ts";
import { serveFakeModel } from "../support/fake-model.ts";
import { modelKey } from "../support/model-runs.ts";
import { descendantsOf, processFile } from "../support/processes.ts";
import { until } from "../support/until.ts";

let fake: ReturnType<typeof serveFakeModel>;
beforeAll(async () => {
  await buildExecutable();
  fake = serveFakeModel({
    key: modelKey,
    scenarios: { plain: { turns: [{ text: "Done." }] }, waits: { turns: [{ text: "Done.", hold: true }] } },
  });
}, 300_000);
afterAll(() => fake.stop());

const tools = [{ type: "function", function: { name: "Bash", parameters: { type: "object" } } }];
const end = { type: "result", subtype: "success", is_error: false, result: "Done.", total_cost_usd: 0 };
const callModel = `echo '${JSON.stringify({ model: "MODEL", messages: [{ role: "user", content: "Go." }], tools })}' |
  sed "s/MODEL/$MODEL/" | curl -sS "$GATEWAY/openai-compatible/v1/chat/completions" \\
  -H "authorization: Bearer $TOKEN" -H "content-type: application/json" -d @- >/dev/null`;
const sayEnd = `echo '${JSON.stringify(end)}'`;

/** An agent that runs a shell script, as an operator adds it. */
function agentOf(script: string) {
  const command = join(emptyFolder(), "scripted");
  writeFileSync(command, `#!/bin/sh\n[ "$1" = --version ] && exit\n${script}\n`, { mode: 0o755 });
  const env = { GATEWAY: "{gateway}", TOKEN: "{token}", MODEL: "{model}" };
  return { id: "scripted", command, stream: "claude" as const, env, provider: "openai-compatible" as const };
}

const envOf = (model: string) => ({
  OPENAI_COMPATIBLE_BASE_URL: fake.baseUrls["openai-compatible"],
  OPENAI_COMPATIBLE_API_KEY: modelKey,
  EVALD_AGENT_MODEL: `openai-compatible/${model}`,
});

async function runOf(script: string, limits: object = {}) {
  const preset = toPreset({ ...agentOf(script), args: [] });
  const agents = { scripted: createCodingAgent(preset, { path: process.env.PATH ?? "" }) };
  const { send, runJobs, service } = testApp({ agents, env: envOf("plain") });
  const { body: prompt } = await send("POST", "/api/v1/prompts", {
    body: { text: "See https://docs.test/", agent: "scripted", limits },
  });
  const { body: asked } = await send("POST", `/api/v1/prompts/${prompt.id}/run`, { body: { urlMap: {} } });
  await runJobs();
  const { body: run } = await send("GET", `/api/v1/runs/${asked.runId}`);
  const trace = run.report && (await send("GET", `/api/v1/reports/${run.report.slug}/trace?limit=500`));
  const { body: report } = run.report ? await send("GET", `/api/v1/reports/${run.report.slug}`) : { body: null };
  await service.stop(0);
  const events: { name?: string; detail?: unknown; tMs: number }[] = trace?.body.events ?? [];
  const findMilestone = (name: string) => events.find((event) => event.name === name);
  // biome-ignore lint/suspicious/noExplicitAny: each milestone has other fields.
  const milestoneOf = (name: string): any => findMilestone(name)?.detail;
  const workedMs = (events.at(-1)?.tMs ?? 0) - (findMilestone("work_began")?.tMs ?? 0);
  return { run, report, milestoneOf, workedMs };
}

describe("the time limits of a session", () => {
  test("count from its first model call", async () => {
    const { run, report, milestoneOf, workedMs } = await runOf(`sleep 4; ${callModel}; ${sayEnd}`, {
      wallClockSeconds: 3,
      idleSeconds: 10,
    });
    expect(run).toMatchObject({ status: "completed", failureReason: null });
    const { startMs, cpuWaitMs } = milestoneOf("work_began");
    expect(startMs).toBeGreaterThan(3_000);
    expect(cpuWaitMs).toBeGreaterThanOrEqual(0);
    // What it waited for is no part of its time.
    expect(report.metrics.timeSeconds).toBeCloseTo(workedMs / 1000, 0);
    expect(milestoneOf("cpu_shortage")).toBeUndefined();
  });

  test("still apply after it", async () => {
    const { run } = await runOf(`${callModel}; sleep 60; ${sayEnd}`, { wallClockSeconds: 3, idleSeconds: 30 });
    expect(run).toMatchObject({ status: "failed", failureReason: expect.stringMatching(/^timeout: /) });
  });

  test("end an agent that never calls its model", async () => {
    const { run } = await runOf("sleep 60", { wallClockSeconds: 60, idleSeconds: 1 });
    expect(run).toMatchObject({ status: "failed", failureReason: expect.stringMatching(/^timeout: /) });
  });
});

test("a session that waited for a processor longer than it ran says so in its report", async () => {
  // Five loops on one processor: four of them wait at any time. They start no processes, whose times would be lost when they end.
  const spins = Array.from({ length: 5 }, () => "taskset -c 0 timeout 5 sh -c 'while :; do :; done' &").join("\n");
  const { report, milestoneOf } = await runOf(`${callModel}\n${spins}\nwait\n${sayEnd}`);
  const { ranMs, waitedMs } = milestoneOf("cpu_shortage");
  expect(waitedMs).toBeGreaterThan(Math.max(5_000, ranMs));
  expect(JSON.stringify(report)).toContain("short of CPU time");
});

/** Whether a process handles SIGUSR1 (bit 9 of its mask), which would end it otherwise. */
const catchesUserSignal = (pid: number) =>
  ((BigInt(`0x${/^SigCgt:\s*(\w+)$/m.exec(processFile(pid, "status"))?.[1] ?? 0}`) >> 9n) & 1n) === 1n;

const cpuFolder = "/sys/fs/cgroup/cpu";
test.if(process.getuid?.() === 0 && existsSync(join(cpuFolder, "cgroup.procs")))(
  "sessions share a control group beside that of the service, in which they have a lower weight from their first model call on",
  async () => {
    const cwd = emptyFolder();
    const agent = agentOf(`trap go=1 USR1; while [ -z "$go" ]; do sleep 0.05; done; ${callModel}; ${sayEnd}`);
    const env = {
      ...envOf("waits"),
      PATH: process.env.PATH ?? "",
      EVALD_AGENTS: JSON.stringify([{ ...agent, args: [] }]),
    };
    await call(["org", "create", "Acme"], { cwd, env });
    const key = (await call(["key", "create", "--name", "test"], { cwd, env })).stdout.trim();
    const service = await serve({ cwd, env });
    const ask = client(service.url, key);
    const groupOf = (pid: number) => /^\d+:(?:\w+,)*cpu(?:,\w+)*:(.*)$/m.exec(processFile(pid, "cgroup"))?.[1] ?? "";
    const weightOf = (group: string) => Number(readFileSync(join(cpuFolder, group, "cpu.shares"), "utf8"));
    await until("the service has its group", () => basename(groupOf(service.pid)).startsWith(`evald-${service.pid}-`));
    const own = groupOf(service.pid);
    expect(weightOf(own)).toBe(8192);

    const { body: prompt } = await ask("POST", "/api/v1/prompts", {
      text: "See https://docs.test/",
      agent: "scripted",
    });
    const { body } = await ask("POST", `/api/v1/prompts/${prompt.id}/run`, { urlMap: {} });
    const findScript = () =>
      descendantsOf(service.pid).find((pid) =>
        processFile(pid, "cmdline").startsWith("/bin/sh\0/opt/agent/bin/scripted"),
      );
    const script = await until("the agent runs", findScript);
    await until("it waits for the signal", () => catchesUserSignal(script));
    const group = groupOf(script);
    const common = dirname(group);
    expect(dirname(common)).toBe(dirname(own));
    expect([weightOf(group), weightOf(common)]).toEqual([1024, 1024]);
    const asked = fake.requests.length;
    process.kill(script, "SIGUSR1");
    await until("the model was asked", () => fake.requests.length > asked);
    await until("its weight is lower", () => weightOf(group) === 512);
    fake.release("waits");
    expect(await untilRun(ask, body.runId, "completed", "failed")).toMatchObject({ status: "completed" });
    expect(await service.stop()).toBe(0);
    expect([own, common].filter((each) => existsSync(join(cpuFolder, each)))).toEqual([]);
  },
  300_000,
);
