import { beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { createProgram } from "../../src/cli/program.ts";
import { buildExecutable, call, emptyFolder, executable, serve } from "../support/executable.ts";
import { commandsOf as allCommandsOf } from "../support/generated.ts";

beforeAll(buildExecutable, 300_000);

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/;

test("links have the URL of the running service", async () => {
  const cwd = emptyFolder();
  await call(["org", "create", "Acme"], { cwd });
  const linkOf = async () => (await call(["org", "setup-link", "Acme"], { cwd })).stdout;
  const service = await serve({ cwd });
  expect(await linkOf()).toStartWith(`${service.url}/setup/`);
  await service.stop();
  expect(await linkOf()).toStartWith("http://127.0.0.1:3000/setup/");
  const behindProxy = await serve({ cwd, env: { EVALD_BASE_URL: "https://evals.acme.dev/ax" } });
  expect(await linkOf()).toStartWith("https://evals.acme.dev/ax/setup/");
  await behindProxy.stop("SIGKILL");
  expect(await linkOf()).toStartWith("http://127.0.0.1:3000/setup/");
});

test("evald alone names the commands to start with, on stdout", async () => {
  const { code, stdout, stderr } = await call([], { cwd: emptyFolder() });
  expect([code, stderr]).toEqual([0, ""]);
  for (const command of ["serve", "eval", "help"]) expect(stdout).toContain(`  evald ${command} `);
  expect(stdout.trimEnd().split("\n").length).toBeLessThanOrEqual(12);
});

test("a setup link needs no name if there is one organization", async () => {
  const cwd = emptyFolder();
  await call(["org", "create", "Acme"], { cwd });
  expect((await call(["org", "setup-link"], { cwd })).stdout).toContain("/setup/");
  await call(["org", "create", "Other"], { cwd });
  expect((await call(["org", "setup-link"], { cwd })).code).toBe(2);
});

test("a failure of a command with --json is JSON on stdout", async () => {
  const cwd = emptyFolder();
  for (const [args, code] of [
    [["key", "list"], 2],
    [["key", "list", "--orgs", "x"], 2],
    [["gate", "x", "--url", "http://127.0.0.1:1"], 2],
  ] as const) {
    const failed = await call([...args, "--json"], { cwd });
    expect([args, failed.code, JSON.parse(failed.stdout).error]).toEqual([args, code, "bad_request"]);
  }
  const env = { EVALD_KEY: `evals_${"0".repeat(36)}` };
  const away = await call(["gate", "x", "--url", "http://127.0.0.1:1", "--json"], { cwd, env });
  expect([away.code, JSON.parse(away.stdout).error]).toEqual([3, "unavailable"]);
});

test("an organization, a key, a provider and a prompt are created, listed and archived, with IDs on stdout and messages on stderr", async () => {
  const cwd = emptyFolder();
  const run = async (...args: string[]) => await call(args, { cwd });
  const org = await run("org", "create", "Acme", "--time-zone", "Europe/Berlin");
  expect(org).toEqual({
    code: 0,
    stdout: expect.any(String),
    stderr: expect.stringMatching(/^Created organization Acme\. .*evald key create --org "Acme"/),
  });
  expect(org.stdout.trim()).toMatch(uuid);
  expect(JSON.parse((await run("org", "list", "--json")).stdout)).toEqual([
    {
      id: org.stdout.trim(),
      name: "Acme",
      timeZone: "Europe/Berlin",
      maxRunsAtOnce: null,
      maxRunsADay: null,
      maxUsdAMonth: null,
      maxUsdARun: null,
      judgeModels: null,
      resultsPath: null,
      spentUsd: 0,
      createdAt: expect.any(String),
    },
  ]);

  const key = (await run("key", "create", "--org", "Acme", "--name", "ci", "--expires-days", "30")).stdout;
  expect(key).toMatch(/^evals_[0-9A-Za-z]{36}\n$/);
  const listed = JSON.parse((await run("key", "list", "--json")).stdout);
  expect(listed).toEqual([
    {
      id: expect.stringMatching(uuid),
      name: "ci",
      display: `${key.slice(0, 10)}…${key.trim().slice(-4)}`,
      scopes: null,
      usesCompatibilityMode: false,
      createdBy: null,
      trustId: null,
      createdAt: expect.any(String),
      expiresAt: new Date(Date.parse(listed[0].createdAt) + 30 * 24 * 3600_000).toISOString(),
      revokedAt: null,
      lastUsedAt: null,
    },
  ]);
  expect((await run("key", "revoke", listed[0].id)).stdout.trim()).toBe(listed[0].id);
  expect((await run("key", "list")).stdout).toMatch(/ ci +all except operate,audit +Operator +never +revoked\n$/);

  const provider = (
    await run("provider", "create", "--name", "Acme", "--docs-url", "https://docs.acme.example/")
  ).stdout.trim();
  expect(JSON.parse((await run("provider", "list", "--json")).stdout)).toEqual([
    {
      id: provider,
      name: "Acme",
      docsUrl: "https://docs.acme.example/",
      productUrl: null,
      createdAt: expect.any(String),
    },
  ]);

  const checksFile = join(emptyFolder(), "checks.json");
  writeFileSync(checksFile, '[{"url": "https://a.example/rows", "method": "POST", "json": {"pointer": "/id"}}]');
  const options = [
    "--title",
    "First query",
    "--text",
    "Run {{what}}.",
    "--goal",
    "Rows were printed.",
    "--provider",
    provider,
  ];
  const prompt = JSON.parse(
    (
      await run(
        "prompt",
        "create",
        ...options,
        "--start-url",
        "https://a.example/",
        "--start-url",
        "https://b.example/",
        "--runs",
        "5",
        "--tag",
        "sdk",
        "--worker-label",
        "gpu",
        "--wording",
        "Show rows.",
        "--wording",
        "List rows.",
        "--limit",
        "toolCalls=80",
        "--limit",
        "costUsd=0.5",
        "--success-bar",
        "docs_only=80",
        "--checks",
        checksFile,
        "--supersede",
        "--json",
      )
    ).stdout,
  );
  expect({ ...prompt }).toMatchObject({
    id: expect.stringMatching(uuid),
    title: "First query",
    text: "Run {{what}}.",
    endGoal: "Rows were printed.",
    wordings: ["Show rows.", "List rows."],
    status: "active",
    templateVars: ["what"],
    createdAt: expect.any(String),
    frequency: null,
    runsPerEval: 5,
    targetProviderId: provider,
    additionalUrls: [{ url: "https://a.example/" }, { url: "https://b.example/" }],
    templateDefaults: null,
    declaredChecks: [{ url: "https://a.example/rows", method: "POST", json: { pointer: "/id" } }],
    workspace: null,
    agents: null,
    agent: null,
    model: null,
    limits: { toolCalls: 80, costUsd: 0.5 },
    reviewBeforePublishing: false,
    isCanary: false,
    tags: ["sdk"],
    successBar: { scope: "docs_only", minScore: 80 },
    supersedesByDefault: true,
    isOnResultsPage: false,
    workerLabels: ["gpu"],
    hasPublicBadge: false,
    badgeUrl: null,
    baselineRequestId: null,
    nextRunsAt: null,
    warnings: [],
  });
  const tagged = async (tag: string) => JSON.parse((await run("prompt", "list", "--tag", tag, "--json")).stdout).length;
  expect([await tagged("sdk"), await tagged("docs")]).toEqual([1, 0]);
  await run("prompt", "edit", prompt.id, "--clear", "worker-label");
  expect(JSON.parse((await run("prompt", "show", prompt.id, "--json")).stdout)).toMatchObject({ workerLabels: [] });
  expect((await run("prompt", "archive", prompt.id)).stdout.trim()).toBe(prompt.id);
  expect((await run("prompt", "list", "--json")).stdout).toBe("[]\n");
  expect((await run("prompt", "list", "--archived")).stdout).toContain(`${prompt.id}  archived  First query`);
});

test("an organization can be changed, and a scheduled prompt shows its next runs", async () => {
  const cwd = emptyFolder();
  const run = async (...args: string[]): Promise<[code: number | null, stdout: string, stderr: string]> => {
    const { code, stdout, stderr } = await call(args, { cwd });
    return [code, stdout, stderr];
  };
  const [, id] = await run("org", "create", "Acme");
  const set = async (...args: string[]) => await run("org", "set", "Acme", ...args);
  const changed: [number, string, string] = [0, id, expect.stringMatching(/^Updated organization Acme\./)];
  expect(await set("--time-zone", "Asia/Kolkata", "--runs-at-once", "3")).toEqual(changed);
  expect(await set("--runs-a-day", "200")).toEqual(changed);
  expect(JSON.parse((await set("--runs-at-once", "0", "--json"))[1])).toMatchObject({
    timeZone: "Asia/Kolkata",
    maxRunsAtOnce: null,
    maxRunsADay: 200,
  });
  const refused = (names: string): [number, string, string] => [
    2,
    "",
    expect.stringMatching(new RegExp(`^error: .*${names}`)),
  ];
  expect(await set()).toEqual(refused("Nothing to change"));
  expect(await set("--time-zone", "Mars/Base")).toEqual(refused('"Mars/Base"'));
  for (const limit of ["-1", "1.5", "many", ""])
    expect(await set(`--runs-a-day=${limit}`)).toEqual(
      refused(`Invalid value for --runs-a-day: ${JSON.stringify(limit)}`),
    );
  const money = ["--max-usd-a-month", "50", "--max-usd-a-run", "0.5", "--judge-model", "openai/gpt-5, google/x"];
  expect(JSON.parse((await set(...money, "--json"))[1])).toMatchObject({
    maxUsdAMonth: 50,
    maxUsdARun: 0.5,
    judgeModels: ["openai/gpt-5", "google/x"],
  });
  expect(await run("org", "list")).toEqual([0, expect.stringMatching(/SPENT THIS MONTH\n.* \$0\.00 of \$50\n$/), ""]);
  expect(JSON.parse((await set("--max-usd-a-month", "0", "--judge-model", "", "--json"))[1])).toMatchObject({
    maxUsdAMonth: null,
    judgeModels: null,
  });
  expect(await set("--max-usd-a-run", "much")).toEqual(refused('Invalid value for --max-usd-a-run: "much"'));
  expect((await set("--judge-model", "gpt-5"))[2]).toStartWith('error: Invalid model "gpt-5"');
  expect(await set("--runs-at-once", "1000001")).toEqual(refused("1000001"));
  expect(await run("org", "set", "Nobody", "--runs-a-day", "1")).toEqual(refused('"Nobody"'));

  const [, prompt, said] = await run(
    "prompt",
    "create",
    "--title",
    "Daily",
    "--text",
    "See https://docs.test/",
    "--frequency",
    "30 5 * * *",
  );
  expect(said).toMatch(/\nNext scheduled runs: (\S+T00:00:00\.000Z, ){2}\S+T00:00:00\.000Z\n$/);
  await run("prompt", "create", "--title", "By hand", "--text", "x");
  const [, listed] = await run("prompt", "list");
  expect(listed).toMatch(
    /^ID +STATUS +TITLE +NEXT RUN\n\S+ +active +By hand\n\S+ +active +Daily +\S+T00:00:00\.000Z\n$/,
  );
  expect(listed).toContain(prompt.trim());
});

test("only an archived prompt is unarchived, and it shows its warnings and next runs", async () => {
  const cwd = emptyFolder();
  const run = async (...args: string[]) => await call(args, { cwd });
  await run("org", "create", "Acme");
  const scheduled = ["--text", "See https://docs.test/", "--frequency", "daily"];
  const id = (await run("prompt", "create", "--title", "Daily", ...scheduled)).stdout.trim();
  const status = async () => JSON.parse((await run("prompt", "show", id, "--json")).stdout).status;
  const active = await run("prompt", "unarchive", id, "--json");
  expect([active.code, JSON.parse(active.stdout).error, await status()]).toEqual([2, "conflict", "active"]);
  await run("prompt", "edit", id, "--pause");
  const paused = await run("prompt", "unarchive", "Daily", "--json");
  expect([paused.code, JSON.parse(paused.stdout).error, await status()]).toEqual([2, "conflict", "paused"]);
  expect(paused.stderr).toContain("--resume");
  expect((await run("prompt", "edit", id, "--resume")).stderr).toMatch(/\nNext scheduled runs: \S+Z, /);
  await run("prompt", "archive", id);
  const back = await run("prompt", "unarchive", id);
  expect([back.code, back.stdout.trim(), back.stderr]).toEqual([
    0,
    id,
    expect.stringMatching(/^Unarchived .*\nNext scheduled runs: \S+Z, /),
  ]);
  const aimless = (await run("prompt", "create", "--text", "x")).stdout.trim();
  await run("prompt", "archive", aimless);
  expect((await run("prompt", "unarchive", aimless)).stderr).toContain("\nWarning: ");
});

test("failures print the reason on stderr, with exit code 2", async () => {
  const cwd = emptyFolder();
  const run = async (...args: string[]) => {
    const { code, stdout, stderr } = await call(args, { cwd });
    return [code, stdout, stderr];
  };
  expect(await run("key", "create", "--name", "ci")).toEqual([
    2,
    "",
    expect.stringMatching(/^error: .*evald org create/),
  ]);
  await run("org", "create", "Acme");
  await run("org", "create", "Beta");
  expect(await run("org", "create", " Acme ")).toEqual([2, "", expect.stringMatching(/^error: .*"Acme"/)]);
  expect(await run("org", "create", " ")).toEqual([2, "", expect.stringMatching(/^error: Invalid name: /)]);
  expect(await run("org", "create", "C", "--time-zone", "Mars/Base")).toEqual([
    2,
    "",
    expect.stringMatching(/^error: .*"Mars\/Base"/),
  ]);
  expect(await run("key", "create", "--name", "ci")).toEqual([
    2,
    "",
    expect.stringMatching(/^error: .*--org: Acme, Beta\n$/),
  ]);
  expect(await run("key", "create", "--name", "ci", "--org", "Nobody")).toEqual([
    2,
    "",
    expect.stringMatching(/^error: .*"Nobody"/),
  ]);
  expect(await run("provider", "create", "--org", "Acme", "--name", "x", "--docs-url", "ftp://x")).toEqual([
    2,
    "",
    expect.stringMatching(/^error: Invalid docsUrl: /),
  ]);
  const several = ["--agent", "explorer", "--agent", "llm=openai/gpt-5", "--model", "openai/gpt-5"];
  expect(await run("prompt", "create", "--org", "Acme", "--text", "x", ...several)).toEqual([
    2,
    "",
    expect.stringMatching(/^error: .*--model/),
  ]);
  for (const [agent, problem] of [
    ["codex=openai/gpt-5,effort=highest", /effort must be one of/],
    ["codex,speed=9", /"speed=9" is not an option of an agent/],
    ["codex,env=A", /"env=A" is not an option/],
    ["codex,systemPrompt=@missing.md", /missing\.md does not exist/],
    ["codex,webSearch=maybe", /webSearch must be/],
  ] as const)
    expect(await run("prompt", "create", "--org", "Acme", "--text", "x", "--agent", agent)).toEqual([
      2,
      "",
      expect.stringMatching(problem),
    ]);
  expect(await run("prompt", "create", "--org", "Acme", "--text", "x", "--frequency", "0 0 30 2 *")).toEqual([
    2,
    "",
    expect.stringMatching(/^error: Invalid frequency: "0 0 30 2 /),
  ]);
  expect(await run("prompt", "create", "--org", "Acme", "--text", "x", "--frequency", "daily")).toEqual([
    2,
    "",
    expect.stringMatching(/^error: Invalid frequency: scheduled prompts need a start URL/),
  ]);
  expect(await run("prompt", "create", "--org", "Acme", "--text", "x", "--runs", "51")).toEqual([
    2,
    "",
    "error: option '--runs <n>' argument '51' is invalid. Must be a whole number from 1 to 50.\n",
  ]);
  expect(await run("prompt", "create", "--org", "Acme", "--text", "x", "--limit", "toolCalls=0")).toEqual([
    2,
    "",
    "error: option '--limit <name=number>' argument 'toolCalls=0' is invalid. toolCalls must be an integer from 1 to 9007199254740991.\n",
  ]);
  expect(await run("key", "create", "--org", "Acme")).toEqual([
    2,
    "",
    "error: required option '--name <name>' not specified\n",
  ]);
});

test("a wrong path is a usage error that names it in a sentence", async () => {
  const cwd = emptyFolder();
  await call(["org", "create", "Acme"], { cwd });
  await Bun.write(join(cwd, "file"), "x");
  const missing = join(cwd, "missing");
  for (const [args, named] of [
    [["export", "missing/x"], missing],
    [["export", "file/x"], join(cwd, "file")],
    [["export", "data"], "data"],
    [["export", "file"], "--force"],
    [["export", "data/evald.db", "--force"], "data/evald.db"],
    [["backup", "missing/x"], missing],
    [["backup", "file/x"], join(cwd, "file")],
    [["restore", "missing"], "missing"],
    [["restore", "file/x"], "file/x"],
    [["import", "missing"], "missing"],
    [["archive", "upload", "missing"], "missing"],
    [["archive", "upload", "file/x"], "file/x"],
    [["gate", "x", "--junit", "missing/x"], missing],
    [["gate", "x", "--markdown", "data"], "data"],
    [["org", "list", "--data", "file"], "file"],
    [["org", "list", "--data", "file/x"], "file/x"],
  ] as const) {
    const { code, stdout, stderr } = await call([...args], { cwd });
    expect([args, code, stdout, stderr]).toEqual([args, 2, "", expect.stringContaining(named)]);
    // Otherwise, the error would only have the system's error name at the start.
    expect(stderr).toMatch(/^error: (?!E[A-Z]+:)[^\n]+\n$/);
  }
  const doctor = await call(["doctor", "--data", "file", "--json"], { cwd });
  expect(doctor.code).toBe(1);
  expect(JSON.parse(doctor.stdout)).toContainEqual(expect.objectContaining({ cause: "data_directory_invalid" }));
});

test("an invalid setting is named as it was entered", async () => {
  const cwd = emptyFolder();
  for (const [args, env, named] of [
    [["agent", "list"], { EVALD_AGENTS: "/nope.json" }, "EVALD_AGENTS"],
    [["serve"], { EVALD_PORT: "abc" }, "EVALD_PORT"],
    [["serve", "--port", "abc"], {}, "--port"],
    [["serve", "--port", "abc"], { EVALD_PORT: "0" }, "--port"],
    [["worker", "--slots", "0"], {}, "--slots"],
    [["worker"], { EVALD_REDIS_URL: "x" }, "EVALD_REDIS_URL"],
    [["org", "list", "--data="], {}, "--data"],
  ] as const) {
    const { code, stderr } = await call([...args], { cwd, env });
    expect([args, code, stderr]).toEqual([args, 2, expect.stringContaining(`error: Invalid ${named}`)]);
  }
});

describe("output", () => {
  const shell = async (cwd: string, script: string) => {
    const { code, stdout, stderr } = await call(["-c", `set -o pipefail; ${script}`, executable], {
      cwd,
      file: "bash",
    });
    return [code, stdout, stderr];
  };

  test("ends a command quietly if nobody reads it", async () => {
    const cwd = emptyFolder();
    await call(["org", "create", "Acme"], { cwd });
    for (const command of ["runs --json", "--help", "completion bash"])
      expect([command, await shell(cwd, `{ yes 2>/dev/null; "$0" ${command}; } | true`)]).toEqual([
        command,
        [141, "", ""],
      ]);
  });

  test("is an error if it can't be written, and never a missed requirement", async () => {
    const cwd = emptyFolder();
    await call(["org", "create", "Acme"], { cwd });
    const oneLine = expect.stringMatching(/^error: [^\n]*stdout[^\n]*\n$/);
    for (const command of ["runs --json", "--help"])
      expect([command, await shell(cwd, `"$0" ${command} >/dev/full`)]).toEqual([command, [3, "", oneLine]]);
  });

  test("reaches a slow reader in full, even if the command fails", async () => {
    const cwd = emptyFolder();
    const option = "x".repeat(100_000);
    const [code, stdout] = await shell(cwd, `"$0" org list --${option} --json | (read -r line; echo "$line"; cat)`);
    expect([code, JSON.parse(String(stdout)).error]).toEqual([2, "bad_request"]);
  });

  test("doesn't stop the service if it can't be written", async () => {
    const child = Bun.spawn([executable, "serve"], {
      cwd: emptyFolder(),
      env: { PATH: process.env.PATH, EVALD_PORT: "0", EVALD_WELCOME: "1", EVALD_DRAIN_SECONDS: "0" },
      stdout: Bun.file("/dev/full"),
      stderr: "pipe",
    });
    let said = "";
    for await (const text of child.stderr.pipeThrough(new TextDecoderStream())) {
      said += text;
      const url = /^listening on (\S+)$/m.exec(said)?.[1];
      if (!url || !said.includes("stdout: the disk is full")) continue;
      expect((await fetch(`${url}/healthz`)).status).toBe(200);
      child.kill();
      break;
    }
    expect(await child.exited).toBe(0);
  });
});

test("commands that start at the same time on a new data folder all succeed", async () => {
  for (let round = 0; round < 10; round++) {
    const cwd = emptyFolder();
    const names = ["A", "B", "C", "D"];
    const made = await Promise.all(names.map((name) => call(["org", "create", name], { cwd })));
    expect(made.map(({ code, stderr }) => [code, stderr])).toEqual(
      names.map((name) => [0, expect.stringContaining(`organization ${name}`)]),
    );
    const listed = JSON.parse((await call(["org", "list", "--json"], { cwd })).stdout);
    expect(listed.map(({ name }: { name: string }) => name)).toEqual(names);
  }
});

test("one of several commands that create the same organization succeeds, and the others say so", async () => {
  const cwd = emptyFolder();
  const made = await Promise.all([1, 2, 3, 4].map(() => call(["org", "create", "Acme"], { cwd })));
  const refused = /^error: .*"Acme"/;
  expect(made.filter(({ code }) => code === 0).length).toBe(1);
  expect(made.filter(({ code, stderr }) => code === 2 && refused.test(stderr)).length).toBe(3);
});

test("an unknown option of any command is a usage error, as JSON with --json", async () => {
  const cwd = emptyFolder();
  const calls = allCommandsOf(createProgram({})).map(([name, command]) => {
    const values = command.registeredArguments.map(({ argChoices }) => argChoices?.[0] ?? "x");
    const json = command.options.some(({ long }) => long === "--json") ? ["--json"] : [];
    return [...name.split(" "), ...values, "--nope", ...json];
  });
  const results = await inTurns(4, calls, async (args) => ({ args, ...(await call(args, { cwd })) }));
  for (const { args, code, stdout, stderr } of results) {
    const error = args.at(-1) === "--json" ? JSON.parse(stdout).error : "bad_request";
    expect([args, code, error, stderr]).toEqual([args, 2, "bad_request", expect.stringMatching(/^error: /)]);
  }
  expect(results.length).toBeGreaterThan(60);
}, 120_000);

/** Does something with each item, so many at once. */
async function inTurns<T, R>(atOnce: number, items: T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  let next = 0;
  const turn = async () => {
    for (let i = next++; i < items.length; i = next++) results[i] = await work(items[i] as T);
  };
  await Promise.all(Array.from({ length: atOnce }, turn));
  return results;
}

test("every command has a help text with a description and valid examples", async () => {
  const cwd = emptyFolder();
  const help = async (...command: string[]) => {
    const { code, stdout, stderr } = await call([...command, "--help"], { cwd });
    expect([command, code, stderr]).toEqual([command, 0, ""]);
    return stdout;
  };
  const commandsOf = (text: string) =>
    [...(text.split("\nCommands:\n")[1] ?? "").matchAll(/^ {2}([\w-]+) /gm)].map(([, name = ""]) => name);
  const top = commandsOf(await help()).filter((name) => name !== "help");
  const leaves: string[][] = [];
  for (const command of top) {
    const below = commandsOf(await help(command)).filter((name) => name !== "help");
    leaves.push(...(below.length > 0 ? below.map((name) => [command, name]) : [[command]]));
  }
  expect(leaves.map((words) => words.join(" ")).sort()).toEqual(
    allCommandsOf(createProgram({}))
      .map(([name]) => name)
      .sort(),
  );
  const home = emptyFolder();
  mkdirSync(join(home, ".codex"));
  writeFileSync(join(home, ".codex", "auth.json"), "{}");
  // The setup of a shell, and what says how to mend an installation, must not fail because of a setting.
  for (const command of leaves.filter(([name = ""]) => !["completion", "upgrade", "stack"].includes(name))) {
    const text = await help(...command);
    expect(text).toStartWith(`Usage: evald ${command.join(" ")} `);
    const examples = text.split(/^Examples?:\n/m)[1] ?? "";
    expect(examples).toContain(`evald ${command.join(" ")}`);
    for (const example of examples.trim().split(/\n(?! {4})/)) {
      // An invalid setting stops every command after it is parsed, before it does anything.
      const run = Bun.spawnSync(["bash", "-c", example], {
        cwd,
        env: { PATH: `${dirname(executable)}:${process.env.PATH}`, HOME: home, EVALD_PROT: "1" },
      });
      expect([example, run.stderr.toString()]).toEqual([
        example,
        "error: EVALD_PROT is not a setting. Did you mean EVALD_PORT?\n",
      ]);
    }
  }
  expect((await call(["--version"], { cwd })).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
});
