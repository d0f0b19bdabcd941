import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Answer } from "../../src/grading/judge/rubric.ts";
import { buildExecutable, client, emptyFolder, furnish, serve, untilRun } from "../support/executable.ts";
import { serveFakeModel, type Turn } from "../support/fake-model.ts";
import { answer, part } from "../support/judged.ts";
import { call, finish, modelKey } from "../support/model-runs.ts";
import { type Site, serveFolder, serveSite } from "../support/site.ts";

const sqliteDocs = "/usr/share/doc/sqlite3";
const wrong = "score_bm25";
const sites: Site[] = [];
let fake: ReturnType<typeof serveFakeModel>;

/** SQLite's own documentation, with `bm25` renamed to a name that SQLite doesn't know. */
function misleadingDocs(): string {
  const folder = mkdtempSync(join(tmpdir(), "evald-docs-"));
  for (const name of readdirSync(sqliteDocs).filter((each) => each !== "fts5.html"))
    symlinkSync(join(sqliteDocs, name), join(folder, name));
  const page = readFileSync(join(sqliteDocs, "fts5.html"), "utf8");
  writeFileSync(join(folder, "fts5.html"), page.replaceAll("bm25(", `${wrong}(`));
  return folder;
}

/** A product: SQLite behind HTTP, with a log of its queries. */
function serveSqlite() {
  const db = new Database(":memory:");
  const asked: string[] = [];
  const site = serveSite({
    "/query": async (request) => {
      const sql = await request.text();
      asked.push(sql);
      try {
        return Response.json(db.query(sql).all());
      } catch (error) {
        return Response.json({ error: String(error) }, { status: 400 });
      }
    },
  });
  sites.push(site);
  return { site, asked };
}

/** The actions of an agent that trusts its docs. */
const work = (name: string): Turn[] => [
  { reasoning: "The docs first.", ...call("fetch_page", { url: "http://sqlite.test/fts5.html" }) },
  call("search_docs", { query: "order by bm25 function best match" }),
  call("run_command", { command: "npm install --no-audit --no-fund --no-update-notifier axios@1.7.9" }),
  call("write_file", {
    path: "best.mjs",
    text: `import axios from "axios";
const run = (sql) => axios.post("http://api.sqlite.test/query", sql, { headers: { "content-type": "text/plain" } });
const tell = (error) => { console.error(error.response?.data?.error ?? error); process.exit(1); };
const [{ version }] = (await run("SELECT sqlite_version() AS version").catch(tell)).data;
console.log("SQLite", version);
await run("CREATE VIRTUAL TABLE mail USING fts5(subject, body)").catch(tell);
await run("INSERT INTO mail VALUES ('lunch', 'is ranking done?'), ('ranking', 'ranking by bm25: ranking, ranking')").catch(tell);
const [{ rank }] = (await run("SELECT ${name}(mail) AS rank FROM mail WHERE mail MATCH 'ranking' ORDER BY 1").catch(tell)).data;
console.log("best", rank);
`,
  }),
  call("run_command", { command: "node best.mjs" }),
];

/** The number of the last event in a judge's prompt that contains some words. */
const eventWith = (asked: string, type: "tool_result" | "http", ...words: string[]): number =>
  Number(
    asked
      .split("\n")
      .findLast((line) => line.split(" ")[1] === type && words.every((word) => line.includes(word)))
      ?.match(/\d+/),
  );

/** A judge that answers honestly from what it is shown. */
function judge(asked: string): string {
  const versionEvent = eventWith(asked, "http", "version", "3.");
  const [version = ""] = asked.match(/(?<=version\W+)3\.[\d.]+/) ?? [];
  const [rank = ""] = asked.match(/(?<=rank\W+)-\d[\d.e-]+/) ?? [];
  const named = part(1, "yes", [versionEvent], version);
  const quote = `no such function: ${wrong}`;
  const failed = eventWith(asked, "tool_result", "run_command", quote);
  const said: Answer = failed
    ? answer({
        parts: [named, part(2, "no", [failed], quote)],
        frictions: [
          {
            finding: "",
            severity: "critical",
            phase: "execution",
            category: "misleading_docs",
            events: [eventWith(asked, "tool_result", "search_docs"), failed],
            quote: `${wrong}(`,
            title: "The docs name a ranking function that SQLite does not have",
            why: "The query of the docs fails.",
            advice: "Write bm25 again.",
          },
        ],
        keyFinding: "The ranking function of the docs is not there.",
      })
    : answer({
        parts: [named, part(2, "yes", [eventWith(asked, "http", rank)], rank)],
        frictions: [],
        keyFinding: "It works as the docs say.",
      });
  return JSON.stringify(said);
}

beforeAll(async () => {
  await buildExecutable();
  const friction = { title: "The function is not there", severity: "critical", quote: `no such function: ${wrong}` };
  fake = serveFakeModel({
    key: modelKey,
    scenarios: {
      "claude-opus-4-8": { turns: [...work("bm25"), finish("succeeded", "The best row was printed.")] },
      // This agent makes false claims.
      "claude-sonnet-4-5": {
        turns: [...work(wrong), call("report_friction", friction), finish("succeeded", "All was printed.")],
      },
      "gpt-5": { turns: [{ says: judge, usage: { input: 9000, output: 600 } }] },
    },
  });
}, 300_000);
afterAll(() => {
  fake.stop();
  for (const site of sites) site.stop();
});

/** One session with the executable, from the request to the report. */
async function session(model: string, docs: string) {
  const cwd = emptyFolder();
  const { key } = await furnish(cwd);
  const service = await serve({
    cwd,
    env: {
      ANTHROPIC_API_KEY: modelKey,
      ANTHROPIC_BASE_URL: fake.baseUrls.anthropic,
      OPENAI_API_KEY: modelKey,
      OPENAI_BASE_URL: fake.baseUrls.openai,
      // The first judge is of the agent's own family, so the second one judges.
      EVALD_JUDGE_MODEL: "anthropic/claude-opus-4-8,openai/gpt-5",
      // A registry may be a mirror in the same network.
      EVALD_ALLOW_PRIVATE: "127.0.0.1,registry.npmjs.org",
    },
  });
  const ask = client(service.url, key);
  const site = serveFolder(docs);
  sites.push(site);
  const product = serveSqlite();
  const prompt = await ask("POST", "/api/v1/prompts", {
    model,
    text: "Rank mail with FTS5 by http://sqlite.test/fts5.html over http://api.sqlite.test/query, which takes SQL by POST.",
    endGoal: "The version of SQLite was printed. The rank of the best row was printed.",
  });
  const urlMap = { "sqlite.test": site.url, "api.sqlite.test": product.site.url };
  const { runId } = (await ask("POST", `/api/v1/prompts/${prompt.body.id}/run`, { urlMap })).body;
  const run = await untilRun(ask, runId, "completed", "failed");
  expect(run).toMatchObject({ status: "completed", failureReason: null, agent: { id: "llm" } });
  const { body: report } = await ask("GET", `/api/v1/reports/${run.report.slug}`);
  const { body: trace } = await ask("GET", `/api/v1/reports/${run.report.slug}/trace?limit=500`);
  expect(await service.stop()).toBe(0);
  return { report, events: trace.events, asked: product.asked };
}

test("a session reads docs, installs a package, calls the product and reaches the goal, and the report proves it", async () => {
  const { report, events, asked } = await session("anthropic/claude-opus-4-8", sqliteDocs);
  expect(asked.map((sql) => sql.split(" ")[0])).toEqual(["SELECT", "CREATE", "INSERT", "SELECT"]);
  expect(report).toMatchObject({
    outcome: "succeeded",
    keyFinding: "It works as the docs say.",
    metrics: { toolCalls: 6, errors: 0, costUsd: expect.any(Number) },
    judge: { model: "openai/gpt-5", calls: 1, costUsd: expect.any(Number), dropped: [], notice: null },
    evidence: "verified",
  });
  expect(report.score).toBeGreaterThan(55);
  // Each part of the goal has an event that contains its proof.
  const proofs = report.judge.parts.map(({ met, events: [seq] }: { met: string; events: number[] }) => {
    const { type, output, body } = events.find((event: { seq: number }) => event.seq === seq);
    return [met, type, body ?? output];
  });
  expect(proofs).toEqual([
    ["yes", "http", expect.stringMatching(/^.{"version":"3\./)],
    ["yes", "http", expect.stringMatching(/^.{"rank":-/)],
  ]);
  // Requests of the commands went through the proxy, and nowhere else.
  const out = events.filter((event: { source: string }) => event.source === "egress");
  expect([...new Set(out.map(({ url }: { url: string }) => new URL(url).hostname))].sort()).toEqual([
    "api.sqlite.test",
    "registry.npmjs.org",
  ]);
}, 300_000);

test("docs that name something missing lead to a missed goal whatever the agent claims, with friction and a capped score", async () => {
  const { report, events, asked } = await session("anthropic/claude-sonnet-4-5", misleadingDocs());
  expect(asked.at(-1)).toContain(`${wrong}(mail)`);
  expect(events.at(-1)).toMatchObject({ type: "milestone", name: "judged" });
  expect(report).toMatchObject({ outcome: "goal_not_met", judge: { dropped: [] } });
  expect(report.score).toBeLessThanOrEqual(55);
  expect(report.judge.parts.map(({ met }: { met: string }) => met)).toEqual(["yes", "no"]);
  const misled = report.frictionPoints.find(({ category }: { category: string }) => category === "misleading_docs");
  expect(misled).toMatchObject({ quote: `${wrong}(` });
  // The page that names it comes first, then the call that failed because of it.
  const proof = misled.events.map((seq: number) => events.find((event: { seq: number }) => event.seq === seq));
  expect(proof).toMatchObject([
    { type: "tool_result", tool: "search_docs", ok: true },
    { type: "tool_result", tool: "run_command", ok: false, output: { exitCode: 1 } },
  ]);
  expect(JSON.stringify(proof[0].output)).toContain(`${wrong}(`);
  expect(JSON.stringify(report.recommendations)).toContain("Write bm25 again.");
}, 300_000);
