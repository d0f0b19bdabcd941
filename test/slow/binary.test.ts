import { Database } from "bun:sqlite";
import { beforeAll, expect, test } from "bun:test";
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { presets } from "../../src/agents/coding/presets.ts";
import { checkIds } from "../../src/checks/checks.ts";
import { buildExecutable, call, client, emptyFolder, serve, untilRun } from "../support/executable.ts";

beforeAll(buildExecutable, 300_000);

const page = (title: string, body: string) =>
  new Response(`<!doctype html><html lang="en"><title>${title}</title><main><h1>${title}</h1>${body}</main></html>`, {
    headers: { "content-type": "text/html; charset=utf-8" },
  });

/** A small docs site; `hold` delays its upload page until the promise resolves. */
function docsSite(hold?: Promise<void>) {
  let asked = () => {};
  const upload = new Promise<void>((resolve) => (asked = resolve));
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const { pathname } = new URL(request.url);
      if (pathname === "/")
        return page(
          "Acme docs",
          '<p>Everything about Acme.</p><ul><li><a href="/upload">Upload a file</a></li><li><a href="/gone">Old guide</a></li></ul>',
        );
      if (pathname === "/upload") {
        asked();
        await hold;
        return page(
          "Upload a file",
          '<p>Upload a file with the SDK and print its address.</p><pre><code class="language-js">const file = await acme.upload("a.txt");\nconsole.log(file.address);</code></pre>',
        );
      }
      return new Response("nothing here", { status: 404 });
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}`,
    port: server.port,
    uploadAsked: upload,
    stop: () => server.stop(true),
  };
}

async function organization(cwd: string): Promise<string> {
  await call(["org", "create", "Acme"], { cwd });
  return (await call(["key", "create", "--org", "Acme", "--name", "test"], { cwd })).stdout.trim();
}

const uploadPrompt = {
  title: "Upload a file",
  text: "Upload a file with Acme. The docs are at https://docs.acme.example/",
  endGoal: "A file was uploaded with the SDK and its address was printed.",
};

test("an empty folder is enough for a key, a prompt, a run with a urlMap, and a report as specified", async () => {
  const cwd = emptyFolder();
  const site = docsSite();
  const service = await serve({ cwd, env: { EVALD_ALLOW_PRIVATE: `127.0.0.1:${site.port}` } });
  const key = await organization(cwd);
  expect(key).toMatch(/^evals_[0-9A-Za-z]{36}$/);
  const ask = client(service.url, key);
  const prompt = await ask("POST", "/api/v1/prompts", uploadPrompt);
  expect(prompt.status).toBe(201);
  const accepted = await ask("POST", `/api/v1/prompts/${prompt.body.id}/run`, {
    urlMap: { "docs.acme.example": site.url },
  });
  expect(accepted.body).toEqual({
    runId: expect.any(String),
    statusUrl: `${service.url}/api/v1/runs/${accepted.body.runId}`,
    runUrl: `${service.url}/runs/${accepted.body.runId}`,
  });
  const run = await untilRun(ask, accepted.body.runId, "completed", "failed");
  expect(run).toMatchObject({
    status: "completed",
    failureReason: null,
    report: {
      outcome: "not_judged",
      status: "published",
      score: expect.any(Number),
      scope: "docs_only",
      grade: null,
    },
    agent: { id: "explorer", model: null },
    attempt: 1,
  });
  const { body: report } = await ask("GET", `/api/v1/reports/${run.report.slug}`);
  const gone = report.frictionPoints.find((point: { category: string }) => point.category === "dead_link");
  expect(gone).toMatchObject({ url: expect.stringContaining("https://docs.acme.example/"), state: "new" });
  const { body: trace } = await ask("GET", `/api/v1/reports/${run.report.slug}/trace?limit=500`);
  const proof = trace.events.filter(({ seq }: { seq: number }) => gone.events.includes(seq));
  expect(proof.length).toBe(gone.events.length);
  expect(trace.events.find(({ type }: { type: string }) => type === "http")).toMatchObject({
    url: expect.stringContaining("https://docs.acme.example/"),
    mappedUrl: expect.stringContaining(site.url),
  });
  expect(await service.stop()).toBe(0);
  site.stop();
  expect(readdirSync(cwd)).toEqual(["data"]);
});

test("a service that is killed during a run finishes the run after a restart", async () => {
  const cwd = emptyFolder();
  let release = () => {};
  const site = docsSite(new Promise<void>((resolve) => (release = resolve)));
  const env = { EVALD_ALLOW_PRIVATE: `127.0.0.1:${site.port}` };
  const first = await serve({ cwd, env });
  const key = await organization(cwd);
  const ask = client(first.url, key);
  const prompt = await ask("POST", "/api/v1/prompts", { ...uploadPrompt, text: `Upload a file. Docs: ${site.url}/` });
  const { body } = await ask("POST", `/api/v1/prompts/${prompt.body.id}/run`, { urlMap: {} });
  await site.uploadAsked;
  await first.stop("SIGKILL");
  release();
  const second = await serve({ cwd, env });
  const run = await untilRun(client(second.url, key), body.runId, "completed", "failed");
  expect(run).toMatchObject({
    status: "completed",
    attempt: 2,
    failureReason: null,
    report: { outcome: "not_judged" },
  });
  expect(await second.stop()).toBe(0);
  site.stop();
});

test("after SIGTERM, the service is immediately not ready, requeues the active run without counting it, and exits with 0", async () => {
  const cwd = emptyFolder();
  let release = () => {};
  const site = docsSite(new Promise<void>((resolve) => (release = resolve)));
  const env = { EVALD_ALLOW_PRIVATE: `127.0.0.1:${site.port}`, EVALD_DRAIN_SECONDS: "3" };
  const service = await serve({ cwd, env });
  const key = await organization(cwd);
  const ask = client(service.url, key);
  const prompt = await ask("POST", "/api/v1/prompts", { ...uploadPrompt, text: `Upload a file. Docs: ${site.url}/` });
  const { body } = await ask("POST", `/api/v1/prompts/${prompt.body.id}/run`, { urlMap: {} });
  await site.uploadAsked;
  expect((await fetch(`${service.url}/readyz`)).status).toBe(200);
  service.signal("SIGTERM");
  await service.said(/"msg":"stopping"/);
  expect((await fetch(`${service.url}/readyz`)).status).toBe(503);
  expect(await service.exited).toBe(0);
  release();
  const again = await serve({ cwd, env });
  const run = await untilRun(client(again.url, key), body.runId, "completed", "failed");
  expect(run).toMatchObject({ status: "completed", attempt: 2 });
  await again.stop();
  site.stop();
});

test("a second process on the same data folder names the holder; a port in use is reported", async () => {
  const cwd = emptyFolder();
  const service = await serve({ cwd });
  const second = await call(["serve"], { cwd, env: { EVALD_PORT: "0" } });
  expect(second).toEqual({
    code: 2,
    stdout: "",
    stderr: expect.stringMatching(
      new RegExp(`^error: .* ./data is in use by evald process ${service.pid}, started \\S+`),
    ),
  });
  const { port } = new URL(service.url);
  const third = await call(["serve", "--data", "./other"], { cwd, env: { EVALD_PORT: port } });
  expect(third.code).toBe(2);
  expect(third.stderr).toMatch(new RegExp(`^error: Port ${port} .*--port or EVALD_PORT`));
  await service.stop();
});

test("an invalid setting prevents the start and is reported with its name, its value and valid values", async () => {
  const cwd = emptyFolder();
  const wrong = async (args: string[], env: Record<string, string> = {}) => await call(args, { cwd, env });
  expect(await wrong(["serve"], { EVALD_PORT: "http" })).toEqual({
    code: 2,
    stdout: "",
    stderr: expect.stringMatching(/^error: Invalid EVALD_PORT "http": /),
  });
  expect(await wrong(["serve"], { EVALD_PROT: "80" })).toEqual({
    code: 2,
    stdout: "",
    stderr: expect.stringMatching(/^error: EVALD_PROT .*EVALD_PORT/),
  });
  expect(await wrong(["org", "list", "--jsn"])).toEqual({
    code: 2,
    stdout: "",
    stderr: "error: unknown option '--jsn'\n(Did you mean --json?)\n",
  });
  expect(await wrong(["serve"], { EVALD_HOST: "nowhere.invalid", EVALD_PORT: "0" })).toEqual({
    code: 2,
    stdout: "",
    // The resolver may not know the name, be unreachable, or invent an address.
    stderr: expect.stringMatching(/^error: .*"nowhere\.invalid": .*EVALD_HOST .*127\.0\.0\.1/),
  });
  expect(await wrong(["serve", "--data", "/dev/null/data"])).toEqual({
    code: 2,
    stdout: "",
    stderr: expect.stringMatching(/^error: .* \/dev\/null\/data /),
  });
  expect((await wrong(["srve"])).code).toBe(2);
});

test.each([
  ["text", /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ INFO {2}stopping signal=SIGTERM graceMs=0$/m],
  ["json", /^\{"level":30,.*"signal":"SIGTERM","graceMs":0,"msg":"stopping"\}$/m],
])("a line of the %s log has time, level, message and facts", async (format, line) => {
  const service = await serve({ cwd: emptyFolder(), env: { EVALD_LOG_FORMAT: format, EVALD_DRAIN_SECONDS: "0" } });
  expect(await service.stop()).toBe(0);
  expect(service.stderr()).toMatch(line);
});

test("another project's bunfig.toml and .env in the folder are not read", async () => {
  const cwd = emptyFolder();
  writeFileSync(join(cwd, "preload.ts"), 'require("node:fs").writeFileSync("ran", "");');
  writeFileSync(join(cwd, "bunfig.toml"), 'preload = ["./preload.ts"]\n');
  writeFileSync(join(cwd, ".env"), "EVALD_PORT=nonsense\n");
  expect((await call(["org", "list", "--json"], { cwd })).stdout).toBe("[]\n");
  expect(existsSync(join(cwd, "ran"))).toBe(false);
});

const firstStart = { EVALD_WELCOME: "1" };
const aKey = /^evals_[0-9A-Za-z]{36}$/m;

test("a first start prints only a key on stdout, once, and reports what to fix in the example docs", async () => {
  const cwd = emptyFolder();
  const service = await serve({ cwd, env: firstStart });
  const key = (await service.printed(aKey))[0];
  const [, slug] = await service.said(/Read it\s+\S+\/reports\/(\S+)/);
  const { body } = await client(service.url, key)("GET", `/api/v1/reports/${slug}`);
  expect(body).toMatchObject({
    outcome: "not_judged",
    scope: "docs_only",
    grade: null,
    score: expect.any(Number),
    prompt: { title: "Upload a file" },
  });
  const { frictionPoints, recommendations } = body as {
    frictionPoints: { category: string; url: string }[];
    recommendations: { url: string; expectedGain: number }[];
  };
  const found = frictionPoints.map(({ category, url }) => `${category} ${url.split("/example/")[1] ?? ""}`);
  expect(found).toContain("dead_link quickstart");
  expect(found).toContain("broken_sample upload");
  expect(recommendations[0]?.expectedGain).toBeGreaterThan(0);
  expect(recommendations.filter(({ url }) => url.includes("/example/")).length).toBeGreaterThanOrEqual(2);
  await service.stop();
  expect(service.stdout()).toBe(`${key}\n`);
  expect(service.stderr()).not.toContain(key);
  const again = await serve({ cwd, env: firstStart });
  expect((await client(again.url, key)("GET", "/api/v1/runs")).headers.get("x-total-count")).toBe("1");
  await again.stop();
  expect(again.stdout()).toBe("");
});

test("a first start that is interrupted by a fault or a kill leaves nothing, and the next one is a first start", async () => {
  const cwd = emptyFolder();
  const organizations = async () => (await call(["org", "list", "--json"], { cwd })).stdout;
  expect(await organizations()).toBe("[]\n");
  const db = new Database(join(cwd, "data", "evald.db"));
  db.run("create trigger fault before insert on jobs begin select raise(abort, 'no room'); end");
  const failed = await call(["serve"], { cwd, env: { ...firstStart, EVALD_PORT: "0" } });
  expect(failed).toMatchObject({ code: 3, stdout: "", stderr: expect.stringMatching(/^error: no room$/m) });
  expect(await organizations()).toBe("[]\n");
  db.run("drop trigger fault");
  // The job is the last row of a start. Before it is written, the process counts to a billion with the lock held, and is
  // killed.
  db.run(
    "create view billion as with recursive c(n) as (select 1 union all select n + 1 from c limit 1e9) select n from c",
  );
  db.run("create trigger wait before insert on jobs begin select count(*) from billion; end");
  const killed = await serve({ cwd, env: firstStart });
  // Every other transaction of a start is much faster.
  db.run("pragma busy_timeout = 200");
  const isCounting = () => {
    try {
      db.run("begin immediate");
      db.run("rollback");
      return false;
    } catch {
      return true;
    }
  };
  while (!isCounting()) await new Promise((resolve) => setImmediate(resolve));
  await killed.stop("SIGKILL");
  expect(killed.stdout()).toBe("");
  expect(await organizations()).toBe("[]\n");
  db.run("drop trigger wait");
  db.close();
  const service = await serve({ cwd, env: firstStart });
  const key = (await service.printed(aKey))[0];
  expect((await client(service.url, key)("GET", "/api/v1/runs")).headers.get("x-total-count")).toBe("1");
  await service.stop();
});

test("a first start that is killed after printing its key leaves a valid key, or the next one prints another", async () => {
  const cwd = emptyFolder();
  const killed = await serve({ cwd, env: firstStart });
  const printed = (await killed.printed(aKey))[0];
  await killed.stop("SIGKILL");
  const kept = (await call(["org", "list", "--json"], { cwd })).stdout !== "[]\n";
  const service = await serve({ cwd, env: firstStart });
  const key = kept ? printed : (await service.printed(aKey))[0];
  expect((await client(service.url, key)("GET", "/api/v1/runs")).headers.get("x-total-count")).toBe("1");
  await service.stop();
  expect(service.stdout()).toBe(kept ? "" : `${key}\n`);
});

test("the welcome message uses the public URL before a proxy serves it", async () => {
  const cwd = emptyFolder();
  const service = await serve({ cwd, env: { EVALD_WELCOME: "1", EVALD_BASE_URL: "https://evals.acme.invalid/ax" } });
  const key = (await service.printed(aKey))[0];
  const [, score, slug] = await service.said(
    /Example report\s+Docs (\S+) of 100 · [\s\S]*Read it\s+https:\/\/evals\.acme\.invalid\/ax\/reports\/(\S+)/,
  );
  expect(Number(score)).toBeGreaterThan(80);
  const { body } = await client(service.url, key)("GET", `/ax/api/v1/reports/${slug}/trace?types=http&limit=1`);
  expect(body.events).toMatchObject([
    { url: "https://evals.acme.invalid/ax/example", mappedUrl: `${service.url}/ax/example`, status: 200 },
  ]);
  await service.stop();
});

test("eval prints progress on stderr and the report on stdout, and exits with 1 below the minimum, 2 for bad usage, 3 without a report", async () => {
  const cwd = emptyFolder();
  const site = docsSite();
  const goal = "Upload a file with the SDK";
  const json = await call(["eval", `${site.url}/`, "--goal", goal, "--json"], { cwd });
  expect(json.code).toBe(0);
  expect(JSON.parse(json.stdout)).toMatchObject({ outcome: "not_judged", agent: { id: "explorer" } });
  expect(json.stderr).toContain(`200 ${site.url}/`);
  const untested = await call(["eval", `${site.url}/`, "--goal", goal, "--min-score", "1"], { cwd });
  expect(untested.code).toBe(3);
  const other = await call(["eval", `${site.url}/`, "--goal", goal, "--min-score", "1", "--scope", "conduct_only"], {
    cwd,
  });
  expect([other.code, other.stderr]).toEqual([3, expect.stringContaining("--scope docs_only")]);
  const accepted = await call(["eval", `${site.url}/`, "--goal", goal, "--min-score", "1", "--scope", "docs_only"], {
    cwd,
  });
  expect(accepted.code).toBe(0);
  const unknown = await call(["eval", `${site.url}/`, "--goal", goal, "--scope", "all"], { cwd });
  expect([unknown.code, unknown.stderr]).toEqual([2, expect.stringContaining("--scope")]);
  const bar = ["--min-score", "100", "--scope", "docs_only"];
  const text = await call(["eval", `${site.url}/`, "--goal", goal, ...bar], { cwd });
  expect(text.code).toBe(1);
  expect(text.stdout).toStartWith("# ");
  expect(text.stderr).toMatch(/error: The score [\d.]+ is below the minimum of 100\.\n$/);
  site.stop();
  const dead = await call(["eval", `${site.url}/`, "--goal", goal, "--json"], { cwd });
  expect([dead.code, JSON.parse(dead.stdout).error, dead.stderr]).toEqual([
    3,
    "infrastructure",
    expect.stringMatching(/error: Site not reachable\. .*refused/),
  ]);
  const failure = async (...args: string[]) => {
    const { code, stdout } = await call(["eval", ...args, "--json"], { cwd });
    const { error, detail } = JSON.parse(stdout);
    expect(detail).toBeString();
    return [code, error];
  };
  expect(await failure(`${site.url}/`, "--goal", goal, "--agent", "none")).toEqual([2, "bad_request"]);
  expect(await failure("docs.acme.test", "--goal", goal)).toEqual([2, "bad_request"]);
  const modelless = await call(["eval", `${site.url}/`, "--goal", goal, "--agent", "llm"], { cwd });
  expect([modelless.code, modelless.stderr]).toEqual([2, expect.stringMatching(/^error: .*llm.*--model/)]);
  expect(await failure(`${site.url}/`)).toEqual([2, "bad_request"]);
  const blank = await call(["eval", `${site.url}/`, "--goal", " "], { cwd });
  expect(blank).toEqual({ code: 2, stdout: "", stderr: expect.stringMatching(/^error: .*--goal/) });
  const file = await call(["eval", "file:///etc/passwd", "--goal", goal], { cwd });
  expect(file.stderr).toMatch(/^error: .*"file:\/\/\/etc\/passwd"/);
  expect(readdirSync(cwd)).toEqual([]);
});

test("doctor lists what is available, and exits with 1 on a fault", async () => {
  const cwd = emptyFolder();
  const healthy = await call(["doctor", "--json"], { cwd });
  expect(healthy.code).toBe(0);
  const found: { check: string; subject: string | null; state: string }[] = JSON.parse(healthy.stdout);
  expect(found.filter(({ state }) => state === "failed")).toEqual([]);
  for (const check of checkIds.filter((id) => id !== "workers"))
    expect(found.map((each) => each.check)).toContain(check);
  for (const { id } of presets) expect(found.map(({ subject }) => subject)).toContain(id);
  await call(["org", "create", "Acme"], { cwd });
  writeFileSync(join(cwd, "data", "evald.db"), "this is no database, and longer than a header would be".repeat(50));
  const damaged = await call(["doctor"], { cwd });
  expect(damaged.code).toBe(1);
  expect(damaged.stdout).toMatch(/^failed +database +\S/m);
});
