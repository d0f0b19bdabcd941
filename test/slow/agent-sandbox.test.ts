import { afterAll, beforeAll, expect, test } from "bun:test";
import { chmodSync, chownSync, copyFileSync, readdirSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { buildExecutable, call, client, emptyFolder, executable, serve, untilRun } from "../support/executable.ts";
import { serveFakeModel } from "../support/fake-model.ts";
import { treeOf } from "../support/memory.ts";
import { call as use } from "../support/model-runs.ts";
import { childrenOf, isGone, isWaiting, processFile } from "../support/processes.ts";
import { type Site, serveSite } from "../support/site.ts";
import { until } from "../support/until.ts";

const user = 65533;
let fake: ReturnType<typeof serveFakeModel>;
let docs: Site;
let folder = "";
let program = "";

beforeAll(async () => {
  await buildExecutable();
  // A folder that the user can read, and a script that runs a command as that user.
  folder = emptyFolder();
  chmodSync(folder, 0o755);
  copyFileSync(executable, join(folder, "evald"));
  program = join(folder, "as-user");
  const as = `setpriv --reuid ${user} --regid ${user} --clear-groups --`;
  writeFileSync(program, `#!/bin/sh\nexec ${as} ${join(folder, "evald")} "$@"\n`, { mode: 0o755 });
  const look = "echo made > note; head -c 9000000 /dev/zero > big; ls";
  docs = serveSite({
    "/": { body: "<title>Acme</title><h1>Acme</h1>" },
    "/private": () => Response.redirect("http://169.254.169.254/latest/meta-data/"),
  });
  fake = serveFakeModel({
    scenarios: {
      held: {
        turns: [
          use("fetch_page", { url: `${docs.url}/` }),
          use("fetch_page", { url: `${docs.url}/private` }),
          use("run_command", { command: look, seconds: 60 }),
          { ...use("finish", { outcome: "succeeded", summary: "Done." }), hold: true },
        ],
      },
      done: { turns: [use("finish", { outcome: "succeeded", summary: "Done." })] },
    },
  });
}, 300_000);
afterAll(async () => {
  await fake.stop();
  docs.stop();
  rmSync(folder, { recursive: true, force: true });
});

const hasModel = (pid: number): boolean => processFile(pid, "cmdline").endsWith("\0wait\0model\0");
const asRoot = process.getuid?.() === 0;

test.each(["root", "an ordinary user"].slice(asRoot ? 0 : 1))(
  "if the service runs as %s, the process of an agent with a model sees nothing but its run, and starts sandboxes with limited workspaces",
  async (who) => {
    const cwd = emptyFolder();
    const file = asRoot && who !== "root" ? program : join(folder, "evald");
    if (file === program) chownSync(cwd, user, user);
    const env = {
      OPENAI_COMPATIBLE_API_KEY: "sk-test-key",
      OPENAI_COMPATIBLE_BASE_URL: fake.baseUrls["openai-compatible"],
      EVALD_AGENT_MODEL: "openai-compatible/held",
      EVALD_WORKSPACE_MB: "8",
      EVALD_ALLOW_PRIVATE: new URL(docs.url).host,
    };
    const options = { cwd, env, file };
    await call(["org", "create", "Acme"], options);
    const key = (await call(["key", "create", "--name", "test"], options)).stdout.trim();
    const found = JSON.parse((await call(["doctor", "--json"], options)).stdout);
    const stateOf = (name: string) => found.find(({ check }: { check: string }) => check === name).state;
    expect([stateOf("page_sandbox"), stateOf("workspace")]).toEqual(["ok", "ok"]);

    const service = await serve(options);
    const ask = client(service.url, key);
    const { body: prompt } = await ask("POST", "/api/v1/prompts", { text: `Read ${docs.url}/.`, agent: "llm" });
    const asked = fake.requests.length;
    const { body } = await ask("POST", `/api/v1/prompts/${prompt.id}/run`, { urlMap: {} });
    await until("the model was asked for its last turn", () => fake.requests.length === asked + 4);

    const agents = treeOf(service.pid).filter((pid) => processFile(pid, "cmdline") === "/run/evald/evald\0__agent\0");
    expect(agents.length).toBe(1);
    const [agent = 0] = agents;
    const status = processFile(agent, "status");
    expect(status).toMatch(/^Seccomp:\t2$/m);
    expect(status).toMatch(/^NoNewPrivs:\t1$/m);
    expect(status).toMatch(/^CapEff:\t0+$/m);
    expect(status).not.toMatch(/^[UG]id:.*\t0\b/m);
    expect(readlinkSync(`/proc/${agent}/ns/net`)).not.toBe(readlinkSync(`/proc/${service.pid}/ns/net`));
    expect(processFile(agent, "net/route").trim().split("\n").length).toBe(1);
    const seen = (path: string) => readdirSync(`/proc/${agent}/root${path}`);
    // Of all that the service stores, the process sees only the workspace of its run.
    expect(seen(join(cwd, "data"))).toEqual(["workspaces"]);
    expect(seen(join(cwd, "data", "workspaces")).length).toBe(1);
    expect(seen("/")).not.toContain("root");
    expect(seen("/proc").filter((name) => /^\d+$/.test(name)).length).toBeLessThan(10);
    const writable = processFile(agent, "mounts")
      .trim()
      .split("\n")
      .flatMap((line) => (/ rw[, ]/.test(line) ? (line.split(" ")[1] as string) : []))
      .filter((path) => !/^\/(proc|tmp|home|workspace|dev\/.*|sys\/fs\/cgroup.*)$/.test(path));
    const folders = [expect.stringMatching(/^run-\w+$/), expect.stringMatching(/^agent-\w+$/)];
    expect(writable.map((path) => basename(path)).sort()).toEqual(folders.reverse());

    fake.release("held");
    const run = await untilRun(ask, body.runId, "completed", "failed");
    expect([run.status, run.failureReason]).toEqual(["completed", null]);
    const { body: trace } = await ask("GET", `/api/v1/reports/${run.report.slug}/trace?limit=500`);
    const requests = trace.events.filter(({ type }: { type: string }) => type === "http");
    expect(requests).toMatchObject([
      { url: `${docs.url}/`, status: 200, source: "agent", error: null },
      { url: `${docs.url}/private`, status: null, source: "agent", error: { kind: "refused" } },
    ]);
    expect(requests[1].error.message).toContain("169.254.169.254");
    const result = trace.events.find(
      ({ type, tool }: { type: string; tool: string }) => type === "tool_result" && tool === "run_command",
    );
    expect(result.output).toMatchObject({ stdout: "big\nnote\n", stderr: expect.stringContaining("No space left") });
    const { body: limits } = await ask("GET", `/api/v1/reports/${run.report.slug}/trace?types=limit`);
    expect(limits.events.map(({ limit }: { limit: string }) => limit)).toContain("workspace_bytes");
    expect(await service.stop()).toBe(0);
    const groups = Bun.spawnSync(["find", "/sys/fs/cgroup", "-name", `evald-${service.pid}-*`]);
    expect(groups.stdout.toString()).toBe("");
  },
  300_000,
);

test("an agent that is installed while a process waits for the next run works in that run", async () => {
  const cwd = emptyFolder();
  const bin = emptyFolder();
  const agent = { id: "fake", command: "fake-agent", args: ["fine"], stream: "claude", provider: "openai-compatible" };
  const env = {
    OPENAI_COMPATIBLE_API_KEY: "sk-test-key",
    OPENAI_COMPATIBLE_BASE_URL: fake.baseUrls["openai-compatible"],
    EVALD_AGENT_MODEL: "openai-compatible/done",
    EVALD_AGENTS: JSON.stringify([agent]),
    EVALD_ALLOW_PRIVATE: "127.0.0.1",
    PATH: `${process.env.PATH}:${bin}`,
  };
  await call(["org", "create", "Acme"], { cwd, env });
  const key = (await call(["key", "create", "--name", "test"], { cwd, env })).stdout.trim();
  const service = await serve({ cwd, env });
  const ask = client(service.url, key);
  const run = async (agent: string) => {
    // Agents are looked up once a second.
    const prompt = await until("the agent is found", async () => {
      const made = await ask("POST", "/api/v1/prompts", { text: `Read ${docs.url}/.`, agent });
      return made.status === 201 && made.body;
    });
    const { body } = await ask("POST", `/api/v1/prompts/${prompt.id}/run`, { urlMap: {} });
    return untilRun(ask, body.runId, "completed", "failed");
  };
  expect(await run("llm")).toMatchObject({ status: "completed", failureReason: null });
  const waiting = () => childrenOf(service.pid).filter((pid) => isWaiting(pid) && hasModel(pid));
  await until("a process for an agent with a model waits", () => waiting().length === 1);
  const [outdated = 0] = waiting();
  copyFileSync(join(import.meta.dir, "..", "support", "fake-agent.mjs"), join(bin, "fake-agent"));
  expect(await run("fake")).toMatchObject({ status: "completed", failureReason: null });
  await until("the process from before is gone", () => isGone(outdated));
  await service.stop();
}, 120_000);

test.if(asRoot)("the doctor rejects a data directory that sandboxes can see", async () => {
  const cwd = emptyFolder();
  for (const [data, state] of [
    ["/usr/local/evald", "failed"],
    ["/usr2/evald", "ok"],
  ]) {
    const { stdout } = await call(["--data", data as string, "doctor", "--json"], { cwd });
    expect(JSON.parse(stdout)).toContainEqual(expect.objectContaining({ check: "data_directory", state }));
  }
});
