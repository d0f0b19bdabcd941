import { afterAll, beforeAll, expect, test } from "bun:test";
import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { type FailureCode, failureRules } from "../../src/agents/failure.ts";
import type { FailureRule } from "../../src/agents/failure-rule.ts";
import { buildExecutable, call, client, emptyFolder, serve, untilRun } from "../support/executable.ts";
import { serveFakeModel } from "../support/fake-model.ts";
import { finish, modelKey } from "../support/model-runs.ts";

// What a machine lacks, read by REST, on the page and in the terminal; then the remedy is done, and the run succeeds.
const fake = serveFakeModel({ key: modelKey, scenarios: { works: { turns: [finish("succeeded", "Done.")] } } });
const cwd = emptyFolder();
afterAll(() => fake.stop());
beforeAll(buildExecutable, 300_000);

/** A coding agent that needs 400 MiB of memory, for longer than it takes to notice. */
const hungry = {
  ...{ id: "hungry", command: "perl", stream: "none", provider: "openai-compatible" },
  memoryMb: 128,
  args: ["-e", "$held = chr(1) x (400 << 20); sleep 1; print qq(Done.)"],
};
const settings = {
  OPENAI_COMPATIBLE_API_KEY: modelKey,
  OPENAI_COMPATIBLE_BASE_URL: fake.baseUrls["openai-compatible"],
  EVALD_AGENT_MODEL: "openai-compatible/works",
  EVALD_AGENTS: JSON.stringify([hungry]),
};

/** A PATH with everything that the agent needs but the program that makes sandboxes. */
function pathWithoutSandbox(): string {
  const bin = emptyFolder();
  for (const name of ["perl", "sh"]) symlinkSync(Bun.which(name) ?? "", join(bin, name));
  return bin;
}

const text = "Do it. See https://docs.test/";
const coding = { text, agent: "hungry" };
const inWorkspace = { text, agent: "llm", workspace: { setup: "true" } };
const mib = 1024 ** 2;

let key = "";
beforeAll(async () => {
  await call(["org", "create", "Acme"], { cwd });
  key = (await call(["key", "create", "--name", "test"], { cwd })).stdout.trim();
});

/** Starts the service with `env`, runs each prompt once, and returns the runs and what the terminal and the pages show of them. */
async function runAll(env: Record<string, string>, prompts: object[]) {
  const service = await serve({ cwd, env: { ...settings, ...env } });
  try {
    const ask = client(service.url, key);
    const runIds: string[] = [];
    for (const prompt of prompts) {
      const { body } = await ask("POST", "/api/v1/prompts", prompt);
      runIds.push((await ask("POST", `/api/v1/prompts/${body.id}/run`, { urlMap: {} })).body.runId);
    }
    const runs = await Promise.all(runIds.map((runId) => untilRun(ask, runId, "completed", "failed")));
    const pages = await Promise.all(
      runIds.map(async (runId) => {
        const headers = { authorization: `Bearer ${key}`, accept: "text/html" };
        return (await fetch(`${service.url}/runs/${runId}`, { headers })).text();
      }),
    );
    const listed = await call(["runs", "--url", service.url], { cwd, env: { EVALD_KEY: key } });
    return runs.map((run, i) => ({
      run,
      page: pages[i] ?? "",
      row: listed.stdout.split("\n").find((line) => line.startsWith(run.runId)),
    }));
  } finally {
    await service.stop();
  }
}

function expectFailure(
  { run, page, row }: Awaited<ReturnType<typeof runAll>>[number],
  code: FailureCode,
  subject: string | null,
) {
  const { cause, title, remedy, command, button }: FailureRule = failureRules[code];
  expect(run.failure).toMatchObject({
    code,
    cause,
    title,
    remedy,
    command: command ?? null,
    subject,
    runAgainHelps: false,
  });
  expect(run.failure.action?.url ?? null).toEndWith(button?.path.replace("{prompt}", run.prompt.id) ?? "");
  expect(/data-code="(\w+)" data-cause="(\w+)"/.exec(page)?.slice(1)).toEqual([code, cause]);
  expect(row).toContain(title);
}

test("without a sandbox, coding agents and workspaces fail at once, and the command of the remedy names what is missing", async () => {
  const PATH = pathWithoutSandbox();
  for (const ended of await runAll({ PATH }, [coding, inWorkspace])) expectFailure(ended, "sandbox_unavailable", null);
  const doctor = await call(["doctor", "--json"], { cwd, env: { PATH } });
  const sandbox = JSON.parse(doctor.stdout).find(({ check }: { check: string }) => check === "sandbox");
  expect(sandbox).toMatchObject({ state: "warning", detail: expect.stringContaining("bubblewrap") });
}, 60_000);

test("an agent that needs more memory than its limit fails, whoever set that, and succeeds with a higher one", async () => {
  const ofPrompt = { ...coding, limits: { memoryBytes: 256 * mib } };
  const [byServer] = await runAll({ EVALD_AGENT_MEMORY_MB: "256" }, [coding]);
  if (byServer) expectFailure(byServer, "server_limit", "EVALD_AGENT_MEMORY_MB");
  const [byPrompt, ...others] = await runAll({ EVALD_AGENT_MEMORY_MB: "1024" }, [ofPrompt, coding, inWorkspace]);
  if (byPrompt) expectFailure(byPrompt, "prompt_limit", "memoryBytes");
  expect(others.map(({ run }) => run.failure)).toEqual([null, null]);
}, 60_000);
