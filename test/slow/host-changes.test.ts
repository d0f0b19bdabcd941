import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { buildExecutable, call, client, emptyFolder, executable, serve, untilRun } from "../support/executable.ts";
import { serveFakeModel, type Turn } from "../support/fake-model.ts";
import { finish, modelKey, call as use } from "../support/model-runs.ts";
import { until } from "../support/until.ts";

const asRoot = process.getuid?.() === 0;
const hold = (turn: Turn): Turn => ({ ...turn, hold: true });
const done = finish("succeeded", "Done.");
const touch = use("run_command", { command: "echo hello > hello.txt", seconds: 60 });
let fake: ReturnType<typeof serveFakeModel>;

beforeAll(async () => {
  await buildExecutable();
  fake = serveFakeModel({
    key: modelKey,
    scenarios: {
      held: { turns: [touch, hold(use("run_command", { command: "cat hello.txt", seconds: 60 })), done] },
      done: { turns: [touch, done] },
      waits: { turns: [{ text: "Done.", hold: true }] },
      fills: {
        first: [use("run_command", { command: "head -c 9000000 /dev/zero > big", seconds: 60 })],
        turns: [touch, done],
      },
    },
  });
}, 300_000);
afterAll(() => fake.stop());

type Options = { cwd?: string; env?: Record<string, string>; file?: string };

/** Starts the service with an organization; returns what a test does with it. */
async function furnishService({ cwd = emptyFolder(), env = {}, file = executable }: Options) {
  await call(["org", "create", "Acme"], { cwd, env });
  const key = (await call(["key", "create", "--name", "test"], { cwd, env })).stdout.trim();
  const service = await serve({ cwd, env, file });
  const ask = client(service.url, key);
  async function start(prompt: object): Promise<string> {
    const { body } = await ask("POST", "/api/v1/prompts", { text: "Do it. See https://docs.test/", ...prompt });
    return (await ask("POST", `/api/v1/prompts/${body.id}/run`, { urlMap: {} })).body.runId;
  }
  const end = (runId: string) => untilRun(ask, runId, "completed", "failed");
  const attemptsOf = async (runId: string): Promise<{ outcome: string; reason: string | null }[]> => {
    const { body } = await ask("GET", `/api/v1/runs/${runId}/attempts`);
    return Array.isArray(body) ? body : body.attempts;
  };
  return { ask, start, end, attemptsOf, service, key, url: service.url };
}

/** The same in a mount namespace of its own with another /etc, after a script that mounts more. `change` runs a script in there. */
async function serveApart({
  model = "held",
  mounts = "true",
  env = {},
}: {
  model?: string;
  mounts?: string;
  env?: Record<string, string>;
}) {
  const [cwd, folder] = [emptyFolder(), emptyFolder()];
  const file = join(folder, "evald");
  const script = `cp -a /etc ${folder}/etc; mount --bind ${folder}/etc /etc; ${mounts}; exec ${executable} "$@"`;
  writeFileSync(file, `#!/bin/sh\nexec unshare --mount --propagation private sh -ec '${script}' sh "$@"\n`, {
    mode: 0o755,
  });
  const settings = {
    PATH: process.env.PATH ?? "",
    EVALD_DATA_DIR: join(cwd, "data"),
    OPENAI_COMPATIBLE_API_KEY: modelKey,
    OPENAI_COMPATIBLE_BASE_URL: fake.baseUrls["openai-compatible"],
    EVALD_AGENT_MODEL: `openai-compatible/${model}`,
    ...env,
  };
  const furnished = await furnishService({ cwd, file, env: settings });
  const change = (changes: string) => {
    const { exitCode, stderr } = Bun.spawnSync(
      ["nsenter", "-t", String(furnished.service.pid), "-m", "sh", "-ec", changes],
      { stderr: "pipe" },
    );
    if (exitCode !== 0) throw new Error(stderr.toString());
  };
  return { ...furnished, change };
}

/** Waits until a run has asked its model this many times. */
const untilAsked = async (count: number, start: () => Promise<string>): Promise<string> => {
  const before = fake.requests.length;
  const runId = await start();
  await until("the model was asked", () => fake.requests.length >= before + count);
  return runId;
};

const declaredChecks = [{ file: "hello.txt" }, { command: "grep -q hello hello.txt" }];
const succeeded = { status: "completed", attempt: 1, report: { outcome: "succeeded" } };
const fakeAgent = JSON.stringify([
  {
    ...{ id: "fake", command: "fake-cli", stream: "claude", provider: "openai-compatible" },
    env: { GATEWAY: "{gateway}", TOKEN: "{token}", MODEL: "{model}" },
  },
]);
/** What ldconfig does to its cache, and dpkg to every file of a package. */
const replaceEtc =
  "for file in ld.so.cache ld.so.conf mime.types; do [ ! -e /etc/$file ] || { cp /etc/$file /etc/new; mv /etc/new /etc/$file; }; done";

describe.if(asRoot)("on a machine that changes", () => {
  test.each([
    ["replaces", replaceEtc],
    ["removes", "rm /etc/ld.so.cache"],
  ])(
    "sessions go on if a package manager %s files of /etc",
    async (_, script) => {
      const { start, end, change, service } = await serveApart({});
      const runId = await untilAsked(2, () => start({ declaredChecks }));
      change(script);
      fake.release("held");
      expect(await end(runId)).toMatchObject(succeeded);
      // A process waits for the next run since before this change.
      change(replaceEtc);
      const nextId = await untilAsked(2, () => start({ declaredChecks }));
      fake.release("held");
      expect(await end(nextId)).toMatchObject(succeeded);
      await service.stop();
    },
    300_000,
  );

  test.each([
    ["a command in its workspace", {}],
    ["an archive that it starts with", { archive: true }],
  ])(
    "a sandbox that cannot start is tried again in a new attempt: for %s",
    async (_, { archive = false }: { archive?: boolean }) => {
      const broken = "mount --bind /bin/false /usr/bin/bwrap";
      const packages = emptyFolder();
      install(packages, "1.0.0");
      const { ask, start, end, attemptsOf, change, service, url, key } = await serveApart({
        model: "done",
        env: { PATH: `${join(packages, "node_modules", ".bin")}:${process.env.PATH}`, EVALD_AGENTS: fakeAgent },
      });
      expect(await end(await start({}))).toMatchObject({ status: "completed" });
      let workspace: object | undefined;
      if (archive) {
        const body = Bun.spawnSync(["tar", "-czf", "-", "-C", "/etc", "hostname"]).stdout;
        const headers = { authorization: `Bearer ${key}`, "content-type": "application/gzip" };
        const response = await fetch(`${url}/api/v1/archives`, { method: "POST", headers, body: new Uint8Array(body) });
        workspace = { archive: ((await response.json()) as { id: string }).id };
      }
      // The process that waits for the next run can't serve it, and no other one can start.
      install(packages, "2.0.0");
      change(broken);
      const runId = await start({ declaredChecks: [{ file: "hello.txt" }], ...(workspace && { workspace }) });
      await until("an attempt has failed", async () => (await attemptsOf(runId))[0]?.outcome === "retried");
      change("umount /usr/bin/bwrap");
      const run = await end(runId);
      const attempts = await attemptsOf(runId);
      expect(run).toMatchObject({ ...succeeded, attempt: attempts.length });
      const [first] = attempts;
      expect(first?.reason).toStartWith("infrastructure: ");
      expect((await ask("GET", `/api/v1/runs/${runId}`)).body.failureReason).toBeNull();
      await service.stop();
    },
    300_000,
  );

  test("a full disk during a session is a fault of the machine, which is tried again", async () => {
    // Too large for memory, so that the workspace is on disk.
    const { start, end, attemptsOf, service } = await serveApart({
      model: "fills",
      mounts: 'mkdir -p "$EVALD_DATA_DIR/workspaces" && mount -t tmpfs -o size=4m tmpfs "$EVALD_DATA_DIR/workspaces"',
      env: { EVALD_WORKSPACE_MB: "1000000" },
    });
    const runId = await start({ declaredChecks });
    expect(await end(runId)).toMatchObject({ ...succeeded, attempt: 2 });
    const attempts = await attemptsOf(runId);
    expect(attempts.map(({ outcome }) => outcome)).toEqual(["retried", "done"]);
    expect(attempts[0]?.reason).toStartWith("infrastructure: the disk of the workspace is full");
    await service.stop();
  }, 300_000);
});

/** A package with a program that calls its model, then reads another file of the package, and ends. */
function install(folder: string, version: string, library = "lib.sh"): void {
  const home = join(folder, "node_modules", "fake-package");
  rmSync(home, { recursive: true, force: true });
  mkdirSync(home, { recursive: true });
  mkdirSync(join(folder, "node_modules", ".bin"), { recursive: true });
  writeFileSync(join(home, "package.json"), JSON.stringify({ name: "fake-package", version }));
  const tools = [{ type: "function", function: { name: "Bash", parameters: { type: "object" } } }];
  const body = JSON.stringify({ model: "MODEL", messages: [{ role: "user", content: "Go." }], tools });
  const script = `#!/bin/sh
body='${body}'
curl -sS "$GATEWAY/openai-compatible/v1/chat/completions" -H "authorization: Bearer $TOKEN" \\
  -H "content-type: application/json" -d "$(echo "$body" | sed "s/MODEL/$MODEL/")" >/dev/null
. "$(dirname "$(realpath "$0")")/${library}"
`;
  writeFileSync(join(home, "cli.sh"), script, { mode: 0o755 });
  const end = { type: "result", subtype: "success", is_error: false, result: `Done by ${version}.`, total_cost_usd: 0 };
  writeFileSync(
    join(home, library),
    `echo '${JSON.stringify(end)}'
`,
  );
  if (!existsSync(join(folder, "node_modules", ".bin", "fake-cli")))
    symlinkSync("../fake-package/cli.sh", join(folder, "node_modules", ".bin", "fake-cli"));
}

test("an upgrade of an agent during its session is a fault of the machine, and the next attempt runs the new version", async () => {
  const [cwd, packages] = [emptyFolder(), emptyFolder()];
  install(packages, "1.0.0");
  const env = {
    PATH: `${join(packages, "node_modules", ".bin")}:${process.env.PATH}`,
    OPENAI_COMPATIBLE_API_KEY: modelKey,
    OPENAI_COMPATIBLE_BASE_URL: fake.baseUrls["openai-compatible"],
    EVALD_AGENT_MODEL: "openai-compatible/waits",
    EVALD_AGENTS: fakeAgent,
  };
  const { start, end, attemptsOf, service } = await furnishService({ cwd, env });
  const runId = await untilAsked(1, () => start({ agent: "fake" }));
  install(packages, "2.0.0", "other.sh");
  fake.release("waits");
  await until("the model was asked again", () => fake.requests.filter(({ model }) => model === "waits").length >= 2);
  fake.release("waits");
  const version = expect.stringContaining("2.0.0");
  expect(await end(runId)).toMatchObject({ status: "completed", attempt: 2, agent: { version } });
  const attempts = await attemptsOf(runId);
  expect(attempts.map(({ outcome }) => outcome)).toEqual(["retried", "done"]);
  expect(attempts[0]?.reason).toStartWith("infrastructure: ");
  await service.stop();
}, 300_000);
