import { afterAll, beforeAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Glob, gzipSync } from "bun";
import { eq, getTableColumns, getTableName, is } from "drizzle-orm";
import { SQLiteTable } from "drizzle-orm/sqlite-core";
import { createKey } from "../../src/auth/keys.ts";
import { updateOrg } from "../../src/auth/orgs.ts";
import { fixes } from "../../src/db/tables/friction.ts";
import { inboxMarks } from "../../src/db/tables/inbox.ts";
import { earlierAttempts, jobs } from "../../src/db/tables/jobs.ts";
import { archives } from "../../src/db/tables/prompts.ts";
import { artifacts, runs } from "../../src/db/tables/runs.ts";
import { scheduledEvaluations } from "../../src/db/tables/schedules.ts";
import { budgets } from "../../src/db/tables/spending.ts";
import { listedPages } from "../../src/db/tables/trends.ts";
import { exportOrg } from "../../src/exchange/export.ts";
import { type ImportOptions, importFile } from "../../src/exchange/import.ts";
import { omittedTables } from "../../src/exchange/omitted-tables.ts";
import { shapes, typesOfOrg } from "../../src/exchange/rows.ts";
import { advanceGates } from "../../src/gates/progress.ts";
import { listPrompts } from "../../src/prompts/lists.ts";
import { createPrompt, getPrompt } from "../../src/prompts/prompts.ts";
import { createShare } from "../../src/shares/shares.ts";
import { testApp } from "../support/app.ts";
import { emptyFolder } from "../support/executable.ts";
import { furnished, secret } from "../support/furnished.ts";
import { finishRuns, niceGrade } from "../support/reports.ts";

type App = Pick<ReturnType<typeof testApp>, "send" | "service" | "a" | "db">;

const folder = emptyFolder();
let files = 0;
const exportOf = ({ service, a }: App, filter = {}) => [...exportOrg(service.ctx, a.org, filter)].join("");
/** The lines after the first one, without what differs between instances: who signed the file. */
const rowsIn = (text: string) => text.replace(/^.*\n/, "").replace(/,"publicKey":.*\}/, "}");
const withoutEnd = (text: string) => rowsIn(text).replace(/\{"type":"end".*/, "");
const headerOf = (text: string) => JSON.parse(text.split("\n", 1)[0] ?? "");
function importInto({ service, a }: App, text: string, options: ImportOptions = {}) {
  const file = join(folder, `${files++}.jsonl`);
  writeFileSync(file, text);
  return importFile(service.ctx, a.org, file, options);
}
const promptsOf = ({ service, a }: App) =>
  listPrompts(service.ctx, a.org, { limit: 10, offset: 0, includeArchived: true }).items.map(({ id }) =>
    getPrompt(service.ctx, a.org, id),
  );

/** Every table of the database. */
const tables: SQLiteTable[] = [];
for (const path of new Glob(`${import.meta.dir}/../../src/db/tables/*.ts`).scanSync())
  tables.push(...Object.values(await import(path)).filter((value): value is SQLiteTable => is(value, SQLiteTable)));
const exportedTables = new Map(Object.values(shapes).map((shape) => [getTableName(shape.table), shape]));
// audit.test.ts moves the audit log, which an export has to ask for.
const omitted = new Set([...Object.values(omittedTables).map(getTableName), "audit_entries"]);

/** The rows of a table that belong to an organization and have ended, without what belongs to the instance. */
function rowsOf({ db, a }: App, table: SQLiteTable) {
  const name = getTableName(table);
  const { omittedColumns = [], withheldColumns = {} } = exportedTables.get(name) ?? {};
  const columns = getTableColumns(table);
  const instance = ["orgId", ...omittedColumns, ...Object.keys(withheldColumns)].map((each) => columns[each]?.name);
  const unfinished = "select eval_request_id from runs where completed_at is null";
  const ended: Record<string, string> = {
    ...{ runs: "completed_at is not null", gates: "status != 'running'", regrades: "completed_at is not null" },
    eval_requests: `id not in (${unfinished})`,
    jobs: "kind = 'run' and completed_at is not null",
    earlier_attempts: "job_id in (select id from jobs where kind = 'run' and completed_at is not null)",
  };
  const owner = name === "orgs" ? "id = ?1" : columns.orgId ? "org_id = ?1" : "?1 is not null";
  const rows = db.$client
    .query<Record<string, unknown>, [string]>(`select * from ${name} where ${owner} and ${ended[name] ?? "true"}`)
    .all(a.org)
    .map((row) => Object.fromEntries(Object.entries(row).filter(([column]) => !instance.includes(column))))
    // A count of zero is as good as none.
    .filter((row) => !(columns.count && row.count === 0))
    .map((row) => JSON.stringify(row).replaceAll(secret, "evals_[redacted]"));
  return rows.sort();
}

/** An organization with rows in every table, of which all runs have ended. */
async function wholeOrg() {
  const app = await furnished({ EVALD_SECRET_KEY: Buffer.alloc(32, 7).toString("base64") });
  const { send, service, a, db, slug } = app;
  finishRuns(app, () => 70, 0.01);
  await advanceGates(service.ctx);
  const post = async (path: string, body: unknown, headers = {}) => {
    const response = await send("POST", `/api/v1/${path}`, { body, headers });
    expect([path, response.status]).toEqual([path, 201]);
    return response.body;
  };
  updateOrg(service.ctx, a.org, {
    ...{ timeZone: "America/New_York", maxRunsAtOnce: 3, maxRunsADay: 200, maxUsdAMonth: 50, maxUsdARun: 2.5 },
    judgeModels: ["openai/gpt-5"],
    hasResultsPage: true,
  });
  await post("destinations", { kind: "webhook", url: "https://hooks.example/x", events: ["run.failed"] });
  await post("destinations", {
    kind: "slack",
    url: "https://hooks.slack.com/services/T/B/token",
    events: ["run.failed"],
  });
  const [print] = niceGrade.frictions;
  await post("dismissals", { fingerprints: [print?.fingerprint], reason: "It is meant to be so." });
  const { key } = createKey(service.ctx, a.org, "field", { scopes: ["report_friction"] });
  const report = { where: "https://docs.acme.dev/upload", tried: "Ran the sample.", happened: "It failed." };
  await post("field-friction", report, { authorization: `Bearer ${key}` });
  createShare(service.ctx, a.org, slug, { days: 7, withSession: true });
  const run = db.select().from(runs).where(eq(runs.orgId, a.org)).get();
  if (!run) throw new Error("there is no run");
  const { id: runId, promptId, evalRequestId, createdAt } = run;
  const orgId = a.org;
  const tar = Buffer.from(gzipSync(Buffer.alloc(1024)));
  const digest = new Bun.CryptoHasher("sha256").update(tar).digest("hex");
  const archive = { id: crypto.randomUUID(), digest, bytes: tar.length, files: 0, data: tar };
  db.insert(archives)
    .values({ ...archive, orgId, createdAt })
    .run();
  const data = Buffer.from("RIFF....WEBP, a picture");
  db.insert(artifacts).values({ orgId, runId, attempt: 1, name: "shot-1.webp", data }).run();
  const listed = { page: "https://docs.acme.dev/upload", url: "https://docs.acme.dev/upload", llmsTxtAt: createdAt };
  db.insert(listedPages)
    .values({ orgId, promptId, ...listed })
    .run();
  const marked = { itemId: `runs-${runId}`, snoozedUntil: createdAt, assignee: "ann@acme.dev", markedBy: "Ann" };
  db.insert(inboxMarks)
    .values({ orgId, ...marked, markedAt: createdAt })
    .run();
  db.insert(budgets).values({ id: crypto.randomUUID(), orgId, promptId, maxUsdAMonth: 5 }).run();
  const slots = [
    { outcome: "ran", evalRequestId, reason: null },
    { outcome: "missed", evalRequestId: null, reason: "The service was down." },
  ] as const;
  for (const [i, slot] of slots.entries())
    db.insert(scheduledEvaluations)
      .values({ orgId, promptId, scheduledAt: createdAt + i, createdAt, ...slot })
      .run();
  const fix = { promptId, title: "Mend the link", fingerprints: ["00000000000000a1"], doneBy: "Ann", note: null };
  const verified = { beforeId: evalRequestId, afterId: evalRequestId };
  db.insert(fixes)
    .values({ id: crypto.randomUUID(), orgId, ...fix, createdAt, ...verified })
    .run();
  const job = db.select().from(jobs).where(eq(jobs.subject, runId)).get();
  const lost = {
    owner: "vm",
    startedAt: createdAt,
    completedAt: createdAt,
    outcome: "lost",
    reason: "It crashed.",
  } as const;
  db.update(jobs).set({ attempt: 2 }).where(eq(jobs.subject, runId)).run();
  db.insert(earlierAttempts)
    .values({ jobId: job?.id ?? "", attempt: 1, ...lost })
    .run();
  return { ...app, runId };
}

let source: Awaited<ReturnType<typeof wholeOrg>>;
let text: string;
beforeAll(async () => {
  source = await wholeOrg();
  text = exportOf(source);
}, 120_000);
afterAll(() => source.stop());

test("each table of an organization moves with it, is derived from one that does, or is named as omitted", async () => {
  const other = testApp({ env: { EVALD_SECRET_KEY: Buffer.alloc(32, 8).toString("base64") } });
  const result = importInto(other, text);
  expect(rowsIn(exportOf(other))).toBe(rowsIn(text));
  expect(result.omitted).toEqual(expect.arrayContaining(Object.keys(omittedTables)));
  expect(result).toMatchObject({
    there: 0,
    scheduled: 1,
    paused: 0,
    keptSettings: [],
    omitted: headerOf(text).omitted,
  });
  const compared: string[] = [];
  for (const table of tables) {
    const name = getTableName(table);
    const isOfOrg = "orgId" in getTableColumns(table) || exportedTables.has(name);
    if (!isOfOrg || omitted.has(name)) continue;
    const rows = rowsOf(source, table);
    expect([name, rowsOf(other, table)]).toEqual([name, rows]);
    if (rows.length > 0) compared.push(name);
  }
  expect([...exportedTables.keys()].filter((name) => !compared.includes(name) && !omitted.has(name))).toEqual([]);
  for (const path of [`runs/${source.runId}/attempts`, `reports/${source.slug}/shares`, "spending"]) {
    const [there, here] = await Promise.all([source, other].map((app) => app.send("GET", `/api/v1/${path}`)));
    // The forecast depends on the models of the instance.
    const bodyOf = (response: typeof here) => ({ ...response?.body, forecast: null });
    expect([path, here?.status, bodyOf(here)]).toEqual([path, there?.status, bodyOf(there)]);
  }
});

test("secrets and addresses of destinations stay behind, and imported destinations are disabled until they have new ones", async () => {
  for (const secret of ["T/B/token", "whsec_", "ann@acme.dev", source.a.key])
    expect([secret, text.includes(secret)]).toEqual([secret, false]);
  const other = testApp({ env: { EVALD_SECRET_KEY: Buffer.alloc(32, 8).toString("base64") } });
  importInto(other, text);
  const destinations = (await other.send("GET", "/api/v1/destinations")).body as { id: string; kind: string }[];
  expect(destinations).toMatchObject([{ status: "disabled" }, { status: "disabled" }]);
  const idOf = (kind: string) => destinations.find((each) => each.kind === kind)?.id;
  const patch = (kind: string, body: object) => other.send("PATCH", `/api/v1/destinations/${idOf(kind)}`, { body });
  const refused = await patch("slack", { status: "active" });
  expect([refused.status, refused.body.detail]).toEqual([400, expect.stringContaining("url")]);
  const url = "https://hooks.slack.com/services/T/B/other";
  expect((await patch("slack", { status: "active", url })).body).toMatchObject({ status: "active" });
  expect((await patch("webhook", { status: "active" })).body).toMatchObject({ status: "active" });
  const rotated = await other.send("POST", `/api/v1/destinations/${idOf("webhook")}/rotate`, {});
  expect(rotated.body.secret).toStartWith("whsec_");
  // Without a key for secrets, the rest of the file is imported all the same.
  const keyless = testApp();
  expect(importInto(keyless, text).rows.destination).toBe(2);
});

test("schedules go on in the time zone of the source, or paused", () => {
  const app = testApp();
  updateOrg(app.service.ctx, app.a.org, { timeZone: "America/New_York" });
  const schedule = { text: "See https://docs.test/", frequency: "0 6 * * 1-5" };
  const { nextRunsAt } = createPrompt(app.service.ctx, app.a.org, schedule);
  const file = exportOf(app);
  const next = (other: App) => promptsOf(other).map((each) => [each.status, each.nextRunsAt]);

  const moved = testApp({ now: app.service.ctx.now });
  expect(importInto(moved, file)).toMatchObject({ scheduled: 1, keptSettings: [] });
  expect(next(moved)).toEqual([["active", nextRunsAt]]);

  // An organization that is in use keeps its settings, so the schedules would run at other times.
  const used = testApp();
  createPrompt(used.service.ctx, used.a.org, { text: "See https://docs.test/" });
  for (const check of [true, false]) expect(() => importInto(used, file, { check })).toThrow("America/New_York");
  expect(promptsOf(used).length).toBe(1);
  expect(importInto(used, file, { isPaused: true })).toMatchObject({
    scheduled: 0,
    paused: 1,
    keptSettings: ["timeZone"],
  });
  expect(next(used)).toContainEqual(["paused", null]);
  // Importing the file once more starts nothing either.
  expect(importInto(used, file)).toMatchObject({ rows: {}, scheduled: 0, paused: 0 });
});

test("an export of one prompt names what belongs to the organization as omitted", () => {
  const [prompt] = promptsOf(source);
  const part = exportOf(source, { promptId: prompt?.id });
  const types = new Set(
    rowsIn(part)
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line).type),
  );
  for (const [type, words] of Object.entries(typesOfOrg)) {
    expect([type, types.has(type)]).toEqual([type, false]);
    expect(headerOf(part).omitted).toContain(words);
  }
  const other = testApp();
  importInto(other, part, { isPaused: true });
  const again = exportOf(other, { promptId: prompt?.id }).replaceAll('"status":"paused"', '"status":"active"');
  expect(withoutEnd(again)).toBe(withoutEnd(part));
});
