import { Database } from "bun:sqlite";
import { beforeAll, describe, expect, test } from "bun:test";
import { readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createPrompt } from "../../src/prompts/prompts.ts";
import { testApp } from "../support/app.ts";
import { buildExecutable, call, client, emptyFolder, serve } from "../support/executable.ts";
import { cpuOf } from "../support/processes.ts";
import { evaluation, niceGrade, steps } from "../support/reports.ts";

beforeAll(buildExecutable, 300_000);

const reports = 40;
const weights = {
  "Goal achievement": 30,
  "Docs discoverability": 15,
  "Docs quality": 20,
  "Error recovery": 15,
  Efficiency: 10,
  Autonomy: 10,
};
const own = { EVALD_METHODOLOGY: JSON.stringify({ id: "acme-1", weights }) };
const rowsOf = (file: string) => readFileSync(file, "utf8").replace(/^.*\n/, "");

/** An export file with many sessions: some thousand rows. */
const file = join(emptyFolder(), "acme.jsonl");
beforeAll(async () => {
  const app = testApp();
  const { id } = createPrompt(app.service.ctx, app.a.org, { title: "First", text: "See https://docs.test" });
  for (let i = 0; i < reports; i++) evaluation(app, id, [niceGrade], {}, steps("Upload", 120));
  writeFileSync(file, (await app.send("GET", "/api/v1/export")).body);
});

async function newFolder() {
  const cwd = emptyFolder();
  await call(["org", "create", "Acme"], { cwd });
  return { cwd, run: (...args: string[]) => call(args, { cwd }) };
}

test("an export of one instance is imported by another, next to running services, and each error names its remedy", async () => {
  const { cwd, run } = await newFolder();
  const service = await serve({ cwd });
  const sized = /^Exported \d+\.\d MiB\.\n$/;
  expect(await run("import", file, "--check", "--json")).toMatchObject({
    code: 0,
    stderr: expect.stringContaining(
      `Would import 1 prompt, ${reports} runs and ${reports} reports; skipped 0 existing rows`,
    ),
  });
  expect(await run("import", file)).toEqual({
    code: 0,
    stdout: `${reports}\n`,
    stderr: expect.stringContaining(
      `Imported 1 prompt, ${reports} runs and ${reports} reports; skipped 0 existing rows`,
    ),
  });
  const key = (await run("key", "create", "--name", "test")).stdout.trim();
  const ask = client(service.url, key);
  expect((await ask("GET", "/api/v1/runs?limit=1")).headers.get("x-total-count")).toBe(String(reports));

  expect(await run("export", "copy.jsonl")).toEqual({
    code: 0,
    stdout: "copy.jsonl\n",
    stderr: expect.stringMatching(sized),
  });
  expect(rowsOf(join(cwd, "copy.jsonl"))).toBe(rowsOf(file));
  expect(statSync(join(cwd, "copy.jsonl")).mode & 0o777).toBe(0o600);
  for (const format of ["csv", "junit", "markdown"]) {
    const made = JSON.parse((await run("export", `copy.${format}`, "--format", format, "--json")).stdout);
    const { body } = await ask("GET", `/api/v1/export?format=${format}`).catch(async () => ({
      body: await (
        await fetch(`${service.url}/api/v1/export?format=${format}`, { headers: { authorization: `Bearer ${key}` } })
      ).text(),
    }));
    const text = readFileSync(join(cwd, made.file), "utf8");
    // URLs in a report are those of the current instance.
    expect(text.replaceAll("http://127.0.0.1:3000", service.url)).toBe(body);
    expect(made.bytes).toBe(Buffer.byteLength(text));
  }
  await service.stop();

  const refused: [string[], RegExp][] = [
    [["export", "copy.jsonl"], /^error: copy\.jsonl .*--force/],
    [["export", "data/evald.db"], /already exists|is a file of the data directory/],
    [["export", "other", "--format", "xml"], /Allowed choices are jsonl, csv, junit, markdown/],
    [["export", "other", "--min-score", "80"], /minScore/],
    [["import", "nowhere.jsonl"], /nowhere\.jsonl/],
    [["import", "copy.csv"], /Line 1: /],
    [["import", "copy.jsonl", "--org", "Other"], /"Other"/],
  ];
  for (const [args, words] of refused) {
    const { code, stdout, stderr } = await run(...args);
    expect([args, code > 0, stdout, stderr]).toEqual([args, true, "", expect.stringMatching(words)]);
  }
  expect((await run("export", "copy.jsonl", "--force")).code).toBe(0);
  truncateSync(join(cwd, "copy.jsonl"), 5000);
  expect((await run("import", "copy.jsonl")).stderr).toMatch(/Line \d+: the file is truncated here\. Copy it again/);
  expect(readdirSync(cwd).filter((name) => name.includes("unfinished"))).toEqual([]);
});

test("a command that exports closes the database, because no thread of it goes on", async () => {
  const { cwd, run } = await newFolder();
  await run("import", file);
  expect((await run("export", "copy.jsonl")).code).toBe(0);
  expect(readdirSync(join(cwd, "data")).filter((name) => /-(wal|shm)$/.test(name))).toEqual([]);
});

test("an export of 100 MB doesn't delay requests of another organization", async () => {
  const { cwd, run } = await newFolder();
  await run("import", file);
  await run("org", "create", "Other");
  const keyOf = async (org: string) => (await run("key", "create", "--name", "test", "--org", org)).stdout.trim();
  const [key, other] = [await keyOf("Acme"), await keyOf("Other")];
  const db = new Database(join(cwd, "data", "evald.db"));
  db.run(`
    with recursive number (n) as (select 1 union all select n + 1 from number where n < 3500)
    insert into session_events (org_id, run_id, attempt, seq, at, t_ms, type, source, data)
    select org_id, run_id, attempt, seq + n, at, t_ms, 'thought', source, json_object('by', 'rule', 'text', '${"word ".repeat(6000)}')
    from number, (select * from session_events order by run_id, attempt desc, seq desc limit 1)`);
  db.close();
  const service = await serve({ cwd });
  const ask = client(service.url, other);
  await ask("GET", "/api/v1/prompts");
  const headers = { authorization: `Bearer ${key}` };
  const { body } = await fetch(`${service.url}/api/v1/export`, { headers });
  let bytes = 0;
  let isDone = false;
  const busy = cpuOf(service.pid);
  const reading = (async () => {
    for await (const piece of body as unknown as AsyncIterable<Uint8Array>) bytes += piece.length;
    isDone = true;
  })();
  let answered = 0;
  for (; !isDone; answered++) {
    expect((await ask("GET", "/api/v1/prompts")).status).toBe(200);
    // The CPU time of the main thread is to be that of the export.
    if (answered > 20) await Bun.sleep(20);
  }
  await reading;
  expect(answered).toBeGreaterThan(20);
  const now = cpuOf(service.pid);
  // The thread that answers requests only passes the file on.
  expect(now.main - busy.main).toBeLessThan((now.all - busy.all) / 2);
  expect(bytes).toBeGreaterThan(100_000_000);
  await service.stop();
});

test.each([5, 30, 200])(
  "an import that is killed at write %i resumes when it is requested again",
  async (nth) => {
    const { cwd, run } = await newFolder();
    const under = [
      ...["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=pwrite64"],
      ...["-e", `inject=pwrite64:signal=KILL:when=${nth}`],
    ];
    expect((await call(["import", file], { cwd, under })).code).not.toBe(0);
    const done = JSON.parse((await run("import", file, "--json")).stdout);
    expect(done.there + Object.values<number>(done.rows).reduce((sum, n) => sum + n, 0)).toBe(
      rowsOf(file).trim().split("\n").length - 1,
    );
    expect((await run("export", "copy.jsonl")).code).toBe(0);
    expect(rowsOf(join(cwd, "copy.jsonl"))).toBe(rowsOf(file));
  },
  300_000,
);

describe("a regrade from the command line", () => {
  test("is done by the service, resumes after a kill, and grades each report once", async () => {
    const { cwd, run } = await newFolder();
    await run("import", file);
    const key = (await run("key", "create", "--name", "test")).stdout.trim();
    const asked = ["regrade", "--since", "2020-01-01"];
    const planned = await call([...asked, "--dry-run"], { cwd, env: own });
    expect(planned).toEqual({
      code: 0,
      stdout: "dry run\n",
      stderr: expect.stringContaining(`would regrade ${reports} of ${reports} reports`),
    });
    const { stdout, stderr } = await call(asked, { cwd, env: own });
    const id = stdout.trim();
    expect(stderr).toMatch(new RegExp(`^Queued a regrade of ${reports} reports .*/api/v1/regrades/${id}`));
    let kills = 0;
    for (let last = ""; last !== "completed"; ) {
      const service = await serve({ cwd, env: own });
      const ask = client(service.url, key);
      const look = async () => (await ask("GET", `/api/v1/regrades/${id}`)).body;
      const before = (await look()).graded;
      let now = await look();
      // It is killed three times after some progress, then it may finish.
      while (now.status !== "completed" && (kills >= 3 || now.graded === before)) now = await look();
      last = now.status;
      if (last === "completed") {
        expect(now).toMatchObject({ total: reports, graded: reports, unchanged: 0, failureReason: null });
        for (const { slug } of (await ask("GET", "/api/v1/reports?limit=1000")).body) {
          const { gradings } = (await ask("GET", `/api/v1/reports/${slug}/gradings`)).body;
          expect(gradings.map(({ methodology }: { methodology: { id: string } }) => methodology.id)).toEqual([
            "3",
            "acme-1",
          ]);
        }
      }
      kills++;
      await service.stop("SIGKILL");
    }
    expect(kills).toBeGreaterThan(1);
  });

  test.each([
    [[], /required option '--since <date>'/],
    [["--since", "2026-01-01", "--repeats", "0"], /whole number from 1 to 20/],
    [["--since", "2026-01-01", "--judge", "openai/gpt-5"], /maxUsd is required with judge/],
    [["--since", "2026-01-01", "--max-usd", "much"], /maxUsd: must be a number/],
    [["--since", "2026-01-01", "--prompt", "x"], /promptId: must be a UUID/],
    [["--since", "2026-01-01", "--methodology", "9"], /methodology: "9"/],
  ])("is rejected for the options %p", async (args, words) => {
    const { run } = await newFolder();
    const { code, stderr } = await run("regrade", ...args);
    expect([code > 0, stderr]).toEqual([true, expect.stringMatching(words)]);
  });
});
