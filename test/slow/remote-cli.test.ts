import { afterAll, beforeAll, expect, test } from "bun:test";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { buildExecutable, call, emptyFolder, serve } from "../support/executable.ts";
import { serveSite } from "../support/site.ts";
import { until } from "../support/until.ts";

beforeAll(buildExecutable, 300_000);

const page = (body: string) => ({
  body: `<!doctype html><html lang="en"><title>Acme</title><main><h1>Acme</h1>${body}</main></html>`,
});
const live = serveSite({
  "/": page('<p><a href="/upload">Upload a file</a></p>'),
  "/upload": page("<p>Upload a file with the SDK.</p><pre><code class='language-js'>acme.upload();</code></pre>"),
});
const preview = serveSite({ "/": page('<a href="/gone">Upload a file</a>') });
afterAll(() => {
  live.stop();
  preview.stop();
});

const allowed = { EVALD_ALLOW_PRIVATE: "127.0.0.1", EVALD_RUNS_PER_HOST: "8" };
const secretKey = { EVALD_SECRET_KEY: Buffer.alloc(32, 7).toString("base64") };
const worse = ["--url-map", `${live.url}=${preview.url}`];
const docsOnly = ["--scope", "docs_only"];
const task = ["--text", `Upload a file. ${live.url}/`, "--goal", "Upload a file with the SDK"];

/** A service, and commands in another folder that reach it only by its URL and a key. */
async function remote({ base = "" } = {}) {
  const cwd = emptyFolder();
  await call(["org", "create", "Acme"], { cwd });
  const key = (await call(["key", "create", "--name", "ci"], { cwd })).stdout.trim();
  const service = await serve({
    cwd,
    env: { ...allowed, ...secretKey, ...(base && { EVALD_BASE_URL: `http://evald.test${base}` }) },
  });
  const away = emptyFolder();
  const env = { EVALD_URL: service.url + base, EVALD_KEY: key };
  const run = async (...args: string[]) => {
    const { code, stdout, stderr } = await call(args, { cwd: away, env });
    return { code, out: stdout.trim(), said: stderr };
  };
  return { service, key, away, env, run };
}

test("a prompt is created, run, waited for, reported, edited and gated from the command line of another machine", async () => {
  const { service, run, away, env } = await remote();
  const id = (await run("prompt", "create", "--title", "Upload", ...task)).out;
  expect(JSON.parse((await run("prompt", "show", "Upload", "--json")).out)).toMatchObject({ id, title: "Upload" });

  const started = await run("run", "Upload");
  expect([started.code, started.said]).toEqual([0, `Run ${started.out}: ${service.url}/runs/${started.out}\n`]);
  const waited = await run("run", id, "--wait", "--json");
  const [made] = JSON.parse(waited.out).runs;
  expect([waited.code, made.status, made.prompt.id, made.report.scope]).toEqual([0, "completed", id, "docs_only"]);
  const listed = JSON.parse((await run("runs", "--prompt", "Upload", "--json")).out);
  expect(listed.map(({ runId }: { runId: string }) => runId)).toEqual([made.runId, started.out]);
  const table = await run("runs", "--limit", "1");
  expect(table.said).toBe("Showing 1 of 2. Show more with --limit.\n");
  expect(table.out).toContain(`  explorer ${made.agent.version}  Upload  `);

  expect(JSON.parse((await run("report", made.report.slug, "--json")).out).slug).toBe(made.report.slug);
  expect((await run("report", made.report.slug)).out).toStartWith("# ");

  // The bar is met, missed, and of another scope.
  const barred = (...bar: string[]) => run("run", "Upload", "--min-score", ...bar);
  expect((await barred("1", ...docsOnly)).code).toBe(0);
  expect((await barred("100", ...docsOnly)).code).toBe(1);
  expect((await barred("1")).code).toBe(3);

  expect((await run("gate", "Upload", ...worse)).code).toBe(1);
  const same = await run("gate", "Upload", "--url-map", `${live.url}=${live.url}`, "--json");
  expect([same.code, JSON.parse(same.out).status]).toEqual([0, "passed"]);

  const edited = await run("prompt", "edit", "Upload", "--runs", "3", "--frequency", "daily", "--json");
  expect(JSON.parse(edited.out)).toMatchObject({ runsPerEval: 3, frequency: "daily", title: "Upload" });
  const cleared = await run("prompt", "edit", id, "--clear", "frequency", "--pause", "--json");
  expect(JSON.parse(cleared.out)).toMatchObject({ runsPerEval: 3, frequency: null, status: "paused" });
  expect((await run("prompt", "archive", "Upload")).out).toBe(id);
  for (const name of [id, "Upload"]) {
    const archived = await run("run", name, "--json");
    expect([archived.code, JSON.parse(archived.out).error]).toEqual([2, "conflict"]);
    expect(archived.said).toContain("archived");
  }
  expect((await run("open", "Upload", "--print")).out).toBe(`${service.url}/prompts/${id}`);
  expect(JSON.parse((await run("prompt", "unarchive", id, "--json")).out).status).toBe("active");

  // The browser is the system's program for opening URLs.
  const opened = join(away, "opened");
  writeFileSync(join(away, "xdg-open"), `#!/bin/sh\necho "$1" >> '${opened}'\n`);
  chmodSync(join(away, "xdg-open"), 0o755);
  const withBrowser = { ...env, PATH: `${away}:${process.env.PATH}` };
  for (const [what, path] of [
    [[], "/"],
    [[made.report.slug], `/reports/${made.report.slug}`],
    [[made.runId], `/runs/${made.runId}`],
    [["Upload"], `/prompts/${id}`],
  ] as const)
    expect((await call(["open", ...what], { cwd: away, env: withBrowser })).stdout.trim()).toBe(service.url + path);
  const text = await until("every page was opened", async () => {
    const pages = await Bun.file(opened).text();
    return pages.trim().split("\n").length === 4 ? pages : null;
  });
  expect(text).toContain(`${service.url}/reports/${made.report.slug}\n`);
  await service.stop();
}, 300_000);

test("destinations, archives, trusts, exports and regrades work from another machine, with JSON", async () => {
  const { service, away, run } = await remote();
  const json = async (...args: string[]) => {
    const { code, out } = await run(...args, "--json");
    return [code, JSON.parse(out)] as const;
  };
  const [, made] = await json(
    "destination",
    "create",
    "webhook",
    "--endpoint",
    `${live.url}/`,
    "--events",
    "gate.decided",
  );
  expect(made).toMatchObject({ kind: "webhook", status: "active", secret: expect.stringMatching(/^whsec_/) });
  expect(await json("destination", "disable", made.id)).toEqual([0, expect.objectContaining({ status: "disabled" })]);
  expect((await json("destination", "test", made.id))[1].error).toBe("conflict");
  expect((await json("destination", "enable", made.id))[1].status).toBe("active");
  const [, delivery] = await json("destination", "test", made.id);
  expect((await json("destination", "deliveries", made.id))[1]).toMatchObject([{ id: delivery.id }]);
  const logged = await until("the delivery was tried", async () => {
    const [, shown] = await json("destination", "delivery", made.id, delivery.id);
    return shown.log.length > 0 ? shown : null;
  });
  expect(logged.log).toMatchObject([{ attempt: 1, status: 200, ms: expect.any(Number), body: expect.any(String) }]);
  const [, row] = (await run("destination", "delivery", made.id, delivery.id)).out.split("\n");
  expect(row).toMatch(/^1 .* 200 +\d+ ms +<!doctype html>/);
  expect((await json("destination", "rotate", made.id))[1].secret).not.toBe(made.secret);
  expect((await json("destination", "list"))[1].map(({ id }: { id: string }) => id)).toEqual([made.id]);
  expect((await json("destination", "delete", made.id))[1].id).toBe(made.id);
  expect(await json("destination", "delete", made.id)).toEqual([2, expect.objectContaining({ error: "not_found" })]);

  mkdirSync(join(away, "starter"));
  writeFileSync(join(away, "starter", "a.txt"), "a");
  const [, archive] = await json("archive", "upload", "starter");
  expect(archive).toMatchObject({ files: 1 });
  expect((await json("archive", "list"))[1]).toEqual([archive]);
  expect((await json("archive", "delete", archive.id))[1].id).toBe(archive.id);

  const [, trust] = await json("trust", "add", "acme/docs");
  expect((await json("trust", "list"))[1]).toEqual([trust]);

  await run("prompt", "create", "--title", "Upload", "--tag", "nightly", ...task);
  expect(await json("prompt", "schedule", "daily", "--tag", "nightly")).toEqual([
    0,
    { scheduled: 1, skipped: 0, problems: [] },
  ]);
  expect((await json("prompt", "schedule", "daily", "--tag", "none"))[1].error).toBe("bad_request");

  const [exported, { bytes }] = await json("export", "out.jsonl");
  const file = await Bun.file(join(away, "out.jsonl")).text();
  expect([exported, bytes, JSON.parse(file.trimEnd().split("\n").at(-1) ?? "").type]).toEqual([0, file.length, "end"]);
  expect((await json("export", "out.jsonl"))[1].error).toBe("bad_request");
  expect((await json("export", "none.jsonl", "--prompt", crypto.randomUUID()))[0]).toBe(2);
  expect((await json("regrade", "--since", "2026-01-01", "--dry-run"))[1]).toMatchObject({ total: 0, regradeId: null });
  await service.stop();
  expect(await json("export", "other.jsonl")).toEqual([3, expect.objectContaining({ error: "unavailable" })]);
  expect(await Bun.file(join(away, "other.jsonl")).exists()).toBe(false);
}, 300_000);

test("an unknown result has exit code 3 and a caller's error 2, both as JSON with --json", async () => {
  const { service, away, env, run } = await remote({ base: "/ax" });
  const at = async (more: Record<string, string>, ...args: string[]) => {
    const { code, stdout } = await call([...args, "--json"], { cwd: away, env: { ...env, ...more } });
    return [code, JSON.parse(stdout).error];
  };
  expect((await run("prompt", "list")).code).toBe(0);
  expect(await at({ EVALD_KEY: "evals_wrong" }, "runs")).toEqual([2, "unauthorized"]);
  expect(await at({ EVALD_KEY: "" }, "runs")).toEqual([2, "bad_request"]);
  expect(await at({ EVALD_URL: "ftp://x" }, "runs")).toEqual([2, "bad_request"]);
  const said = async (more: Record<string, string>, ...args: string[]) =>
    (await call(args, { cwd: away, env: { ...env, ...more } })).stderr;
  for (const command of ["runs", "open"]) {
    expect(await said({ EVALD_URL: "nope" }, command)).toStartWith('error: Invalid EVALD_URL "nope"');
    expect(await said({}, command, "--url", "nope")).toStartWith('error: Invalid --url "nope"');
  }
  expect(await said({ EVALD_URL: "http://127.0.0.1:1" }, "runs")).toMatch(
    /^error: Cannot reach http:\/\/127\.0\.0\.1:1: 127\.0\.0\.1:1 refused the connection\./,
  );
  expect(await at({}, "run", "Nothing")).toEqual([2, "not_found"]);
  expect(await at({}, "report", "none-00000000")).toEqual([2, "not_found"]);
  expect(await at({}, "runs", "--org", "Acme", "--url", live.url)).toEqual([2, "bad_request"]);
  expect(await at({}, "run", "Nothing", "--min-score", "many")).toEqual([2, "bad_request"]);
  expect(await at({ EVALD_URL: live.url }, "runs")).toEqual([3, "unavailable"]);
  expect(await at({ EVALD_URL: "" }, "open")).toEqual([3, "unavailable"]);
  // The options --data and --org take precedence over EVALD_URL.
  expect(await at({}, "open", "--data", "./data")).toEqual([3, "unavailable"]);
  expect(await at({}, "runs", "--org", "Acme")).toEqual([2, "not_found"]);
  await service.stop();
  for (const args of [
    ["run", "Upload", "--wait"],
    ["gate", "Upload"],
  ])
    expect(await at({}, ...args)).toEqual([3, "unavailable"]);
});

test("run --wait executes the run itself if there is no service, and run queues it", async () => {
  const cwd = emptyFolder();
  const run = (...args: string[]) => call(args, { cwd, env: allowed });
  await run("org", "create", "Acme");
  await run("prompt", "create", "--title", "Upload", ...task);
  const queued = (await run("run", "Upload")).stdout.trim();
  const waited = await run("run", "Upload", "--wait");
  expect([waited.code, waited.stdout]).toEqual([0, expect.stringMatching(/^# /)]);
  const runs = JSON.parse((await run("runs", "--json")).stdout);
  expect(runs.map(({ runId }: { runId: string }) => runId)).toContain(queued);
  const port = ["--port", "0", "--host", "127.0.0.1"];
  const refused = await call(["serve", "--port", "http", "--host", "127.0.0.1"], { cwd });
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('Invalid --port "http"')]);
  const service = await serve({ cwd, env: { EVALD_PORT: "1" }, args: port });
  expect(new URL(service.url).port).not.toBe("1");
  const { stdout } = await run("open", "--print");
  expect(stdout.trim()).toBe(`${service.url}/`);
  await service.stop();
});

test("shells complete commands, options and their values", async () => {
  const cwd = emptyFolder();
  const scripts: Record<string, string> = {};
  for (const shell of ["bash", "zsh", "fish"]) {
    scripts[shell] = join(cwd, shell);
    writeFileSync(scripts[shell], (await call(["completion", shell], { cwd })).stdout);
  }
  const ask: Record<string, (words: string[]) => string[]> = {
    bash: (words) => [
      "-c",
      `source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _evald; printf "%s\\n" "\${COMPREPLY[@]}"`,
      scripts.bash as string,
      ...words,
    ],
    zsh: (words) => [
      "-fc",
      `compdef() { :; }; _files() { :; }; _describe() { print -rl -- "\${(P@)2%%:*}"; }; source "$0"; words=("$@"); CURRENT=$#; _evald`,
      scripts.zsh as string,
      ...words,
    ],
    fish: (words) => ["--no-config", "-c", `source ${scripts.fish}; complete -C '${words.join(" ")}' | cut -f1`],
  };
  for (const [shell, args] of Object.entries(ask))
    for (const [line, offered, not] of [
      ["evald ", ["gate", "prompt", "run"], "create"],
      ["evald prompt ", ["create", "edit", "unarchive"], "gate"],
      ["evald --data x prompt create --t", ["--tag", "--text", "--title"], "--wait"],
      ["evald run Upload --scope ", ["conduct_only", "docs_only", "goal"], "--wait"],
      ["evald completion ", ["bash", "fish", "zsh"], "gate"],
    ] as const) {
      const found = Bun.spawnSync([shell, ...args(line.split(" "))], {
        cwd,
        env: { PATH: process.env.PATH, HOME: cwd },
      });
      const words = found.stdout.toString().split("\n");
      expect([shell, line, offered.filter((word) => words.includes(word)), words.includes(not)]).toEqual([
        shell,
        line,
        [...offered],
        false,
      ]);
    }
});

test("what others named can't manipulate the terminal, and is complete in JSON", async () => {
  const { env, run, key } = await remote();
  const evil =
    "T\u001b]0;PWNED\u0007\u001b[2J\u009b1m\u202e\u2067\u200f\u2028\u007f\r\nSECOND\u{1f468}\u200d\u{1f469} e";
  const create = async (path: string, body: object) => {
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    const made = await fetch(`${env.EVALD_URL}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
    const answer = await made.json();
    expect([path, made.status < 300, answer.detail]).toEqual([path, true, undefined]);
    return answer;
  };
  const { id, title } = await create("/api/v1/prompts", { title: evil, text: `Look. ${live.url}/\u001b[2J` });
  await create(`/api/v1/prompts/${id}/run`, { urlMap: {} });
  expect(title).toContain("\u001b");
  const manipulating = /(?![\n])[\p{Cc}\p{Bidi_Control}\u2028\u2029]/u;
  const lists = [["runs"], ["prompt", "list"], ["prompt", "show", id]];
  for (const args of lists) {
    const { out, said } = await run(...args);
    expect([args, manipulating.test(out + said)]).toEqual([args, false]);
    // A title is a part of its line.
    expect(out.split("\n").some((line) => line.startsWith("SECOND"))).toBe(false);
  }
  // Emoji of several characters are complete.
  expect((await run("prompt", "list")).out).toContain("\u{1f468}\u200d\u{1f469} e");
  const { out } = await run("prompt", "list", "--json");
  expect([JSON.parse(out)[0].title, manipulating.test(out)]).toEqual([title, false]);
  const { said } = await run("prompt", "show", "\u001b[2J\u202e", "--json");
  expect(manipulating.test(said)).toBe(false);
}, 60_000);
