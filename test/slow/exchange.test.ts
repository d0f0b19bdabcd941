import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { createExplorer } from "../../src/agents/explorer/explorer.ts";
import { artifacts } from "../../src/db/tables/runs.ts";
import { importFile } from "../../src/exchange/import.ts";
import type { Gate } from "../../src/gates/schema.ts";
import type { Grade } from "../../src/grading/grade.ts";
import { listPrompts } from "../../src/prompts/lists.ts";
import { createPrompt, getPrompt } from "../../src/prompts/prompts.ts";
import { createProvider } from "../../src/providers/providers.ts";
import { getSpending } from "../../src/runs/spending.ts";
import { testApp } from "../support/app.ts";
import { emptyFolder } from "../support/executable.ts";
import { furnished, secret } from "../support/furnished.ts";
import { evaluation, niceGrade, runWithReport } from "../support/reports.ts";
import { serveSite } from "../support/site.ts";
import { isThorough } from "../support/thorough.ts";

type App = Pick<ReturnType<typeof testApp>, "send" | "service" | "a" | "b" | "db">;
type Row = { type: string; row: Record<string, unknown> };

const folder = emptyFolder();
let files = 0;
/** A file with this text. */
function fileOf(text: string | Uint8Array): string {
  const file = join(folder, `${files++}.jsonl`);
  writeFileSync(file, text);
  return file;
}
const exported = async (app: App, query = "", key = app.a.key): Promise<string> => {
  const { status, body } = await app.send("GET", `/api/v1/export${query}`, {
    headers: { authorization: `Bearer ${key}` },
  });
  expect([status, typeof body]).toEqual([200, "string"]);
  return body;
};
const rowsIn = (text: string): Row[] =>
  text
    .trim()
    .split("\n")
    .slice(1, -1)
    .map((line) => JSON.parse(line));
const withoutHeader = (text: string) => text.slice(text.indexOf("\n"));
/** A complete export of these lines. */
function sealed(rows: object[], header: object = { type: "evald export", version: 1 }): string {
  const lines = rows.map((row) => `${JSON.stringify(row)}\n`).join("");
  const sha256 = new Bun.CryptoHasher("sha256").update(lines).digest("hex");
  return `${JSON.stringify(header)}\n${lines}${JSON.stringify({ type: "end", rows: rows.length, sha256 })}\n`;
}
const importInto = (app: App, text: string | Uint8Array, org = app.a.org, options = {}) =>
  importFile(app.service.ctx, org, fileOf(text), options);
const count = (app: App, table: string) =>
  app.db.$client.query<{ n: number }, []>(`select count(*) n from ${table}`).get()?.n;

/** The export, in which a row of one run has the ID of a row of another run. */
function shared(kind: string): string {
  const rows = rowsIn(text);
  const [first, ...more] = rows.filter(({ type }) => type === kind);
  const owner = ({ row }: Row) => row.reportId ?? row.runId;
  const other = more.find((each) => owner(each) !== owner(first as Row));
  if (other) return sealed(rowsIn(text.replaceAll(String(other.row.id), String(first?.row.id))));
  // Only one report was regraded: its grading is also the other's.
  const last = rows.findLastIndex(({ type }) => type === "recommendation");
  const row = { ...first?.row, reportId: rows[last]?.row.reportId };
  return sealed(rows.toSpliced(last + 1, 0, { type: kind, row }));
}

let source: Awaited<ReturnType<typeof furnished>>;
let text: string;
beforeAll(async () => {
  source = await furnished();
  text = await exported(source);
});
afterAll(() => source.stop());

describe("an export as JSON lines", () => {
  test("contains everything of the organization that has ended, and no secrets or rows of others", () => {
    const rows = rowsIn(text);
    const counts: Record<string, number | undefined> = Object.fromEntries(
      [...Map.groupBy(rows, ({ type }) => type)].map(([type, all]) => [type, all.length]),
    );
    expect(counts).toEqual({
      ...{ organization: 1, spending: 1, spending_detail: 4, job: counts.job },
      ...{ provider: 1, suite: 1, prompt: 3, eval_request: 7, gate: 2, regrade: 2, run: 9, report: 7 },
      ...{ event: 17 + 3 * 121 },
      ...{ friction_point: counts.friction_point, recommendation: counts.recommendation, grading: 3, reach: 7 },
    });
    expect(counts.friction_point).toBeGreaterThan(2);
    const [header, ...rest] = text.split("\n").map((line) => line && JSON.parse(line));
    expect(header).toEqual({
      type: "evald export",
      version: 1,
      evald: expect.any(String),
      organization: "A",
      timeZone: "UTC",
      omitted: expect.arrayContaining(["API keys", "members"]),
      exportedAt: expect.any(String),
    });
    expect(rest.at(-2)).toMatchObject({ type: "end", rows: rows.length });
    expect(text).not.toContain(source.a.org);
    expect(text).not.toMatch(/evals_[0-9A-Za-z]{36}/);
    expect(text).toContain("evals_[redacted]");
    expect(text).not.toContain("idempotency");
    expect(JSON.stringify(rows)).not.toContain(source.a.key);
  });

  test("becomes the same in another instance, byte for byte, and nothing runs", async () => {
    const other = testApp();
    const done = importInto(other, text);
    expect(done).toMatchObject({ there: 0, scheduled: 1, rows: { run: 9, report: 7, gate: 2, regrade: 2 } });
    expect(withoutHeader(await exported(other))).toBe(withoutHeader(text));
    for (const path of ["gates", "regrades"]) {
      const [there, here] = await Promise.all([source, other].map((app) => app.send("GET", `/api/v1/${path}`)));
      expect(here?.body).toEqual(there?.body.filter(({ status }: { status: string }) => status !== "running"));
    }
    expect((await other.send("GET", "/api/v1/gates")).body.map(({ spentUsd }: Gate) => spentUsd)).toEqual([0.02, 0.04]);
    expect(count(other, "jobs where completed_at is null")).toBe(0);
    expect(other.db.$client.query("pragma foreign_key_check").all()).toEqual([]);
    for (const slug of [source.slug, source.draft]) {
      for (const path of ["", "/trace", "/gradings", "?methodology=acme-1"].slice(0, slug === source.slug ? 4 : 3)) {
        const [there, here] = [source, other].map((app) => app.send("GET", `/api/v1/reports/${slug}${path}`));
        const expected = JSON.stringify((await there)?.body).replaceAll(secret, "evals_[redacted]");
        expect([path, JSON.stringify((await here)?.body)]).toEqual([path, expected]);
      }
    }
    // The judge was paid there, from the budget that moves along.
    const { spentUsd, unpricedCalls } = getSpending(source.service.ctx, source.a.org);
    expect(getSpending(other.service.ctx, other.a.org)).toMatchObject({ spentUsd, unpricedCalls });
    expect(spentUsd).toBeGreaterThan(0);
    const runs = async (app: App) => (await app.send("GET", "/api/v1/runs")).headers.get("x-total-count");
    // Two runs of the other organization have not ended.
    expect([await runs(other), await runs(source)]).toEqual(["9", "11"]);
    const prompts = listPrompts(other.service.ctx, other.a.org, { limit: 10, offset: 0, includeArchived: true });
    const nightly = getPrompt(other.service.ctx, other.a.org, prompts.items[0]?.id ?? "");
    expect(nightly).toMatchObject({
      baselineRequestId: expect.any(String),
      frequency: "daily",
      nextRunsAt: expect.any(Array),
    });
    // Imported runs can be regraded.
    await other.send("POST", "/api/v1/regrades", { body: { since: "2020-01-01", methodology: "3" } });
    await other.runJobs();
    expect((await other.send("GET", "/api/v1/regrades")).body[0]).toMatchObject({ status: "completed", total: 7 });
  });

  test("adds missing rows and changes nothing if it is imported twice, or in a newer version", async () => {
    const other = testApp();
    importInto(other, text, other.a.org, { check: true });
    expect(count(other, "runs")).toBe(0);
    importInto(other, text);
    await other.send("PATCH", `/api/v1/reports/${source.slug}`, { body: { status: "archived" } });
    const before = withoutHeader(await exported(other));
    expect(importInto(other, text)).toMatchObject({ rows: {}, there: rowsIn(text).length, scheduled: 0 });
    expect(withoutHeader(await exported(other))).toBe(before);
    const first = rowsIn(text).findLastIndex(({ type }) => type === "run");
    const half = testApp();
    importInto(half, sealed(rowsIn(text).slice(0, first)));
    expect(importInto(half, text).rows.run).toBe(1);
    expect(withoutHeader(await exported(half))).toBe(withoutHeader(text));
  });

  test("can be filtered by prompt and time, and is complete in itself", async () => {
    const prompts = rowsIn(text).filter(({ type }) => type === "prompt");
    for (const { row } of prompts) {
      const part = await exported(source, `?promptId=${row.id}`);
      const other = testApp();
      importInto(other, part);
      expect(withoutHeader(await exported(other, `?promptId=${row.id}`))).toBe(withoutHeader(part));
      expect(
        rowsIn(part)
          .filter(({ type }) => type === "run")
          .every((run) => run.row.promptId === row.id),
      ).toBe(true);
    }
    expect(rowsIn(await exported(source, "?since=2999-01-01")).map(({ type }) => type)).toEqual([
      "organization",
      "provider",
      "suite",
      "prompt",
      "prompt",
      "prompt",
    ]);
    importInto(testApp(), await exported(source, "?since=2999-01-01"));
    expect(rowsIn(await exported(source, "", source.b.key)).map(({ type }) => type)).toEqual(["organization"]);
    for (const [query, status, detail] of [
      ["?format=xml", 400, "Invalid format: must be one of jsonl, csv, junit, markdown"],
      ["?since=now", 400, "Invalid since: must be a date"],
      ["?minScore=80", 400, "minScore"],
      ["?format=junit&scope=goal", 400, "scope"],
      ["?promptId=0199f3a2-11b0-7c64-8a0e-5b1d3a9f7c20", 404, "0199f3a2-11b0-7c64-8a0e-5b1d3a9f7c20"],
    ] as const) {
      const { status: got, body } = await source.send("GET", `/api/v1/export${query}`);
      expect([got, body.detail]).toEqual([status, expect.stringContaining(detail)]);
    }
  });

  test("is a snapshot, whatever ends or starts while it is read", async () => {
    const app = testApp();
    const title = "First";
    runWithReport(app, niceGrade, title);
    const request = new Request("http://localhost:3000/api/v1/export", {
      headers: { authorization: `Bearer ${app.a.key}` },
    });
    const before = withoutHeader(await exported(app));
    // This run ends after the start of the export.
    const response = await app.app.handle(request);
    app.service.ctx.now = () => Date.now() + 1000;
    const reader = response.body?.getReader();
    for (let i = 0; i < 3; i++) {
      const late = testAppRun(app);
      expect(late).toMatch(/-[0-9a-f]{8}$/);
    }
    let read = "";
    for (let next = await reader?.read(); next && !next.done; next = await reader?.read())
      read += new TextDecoder().decode(next.value);
    expect(rowsIn(read).filter(({ type }) => type === "run")).toEqual(
      rowsIn(`\n${before}`).filter(({ type }) => type === "run"),
    );
    importInto(testApp(), read);
  });
});

/** A run that ends a second from now, by the service's clock. */
const testAppRun = (app: ReturnType<typeof testApp>): string =>
  evaluation(
    app,
    listPrompts(app.service.ctx, app.a.org, { limit: 1, offset: 0, includeArchived: false }).items[0]?.id ?? "",
    [niceGrade],
  )[0]?.slug ?? "";

test("statistics, a picture and fixes marked as done are the same in the other instance", async () => {
  const state = { isMended: false };
  const html = (body: string) =>
    new Response(`<!doctype html><title>Acme</title><main><h1>Acme</h1><p>${"Words. ".repeat(60)}</p>${body}</main>`, {
      headers: { "content-type": "text/html" },
    });
  const site = serveSite({
    "/": () => html('<a href="/setup">Setup</a> <a href="/more">More</a>'),
    "/setup": () => (state.isMended ? html("<h2>Install</h2>") : new Response("gone", { status: 404 })),
    "/more": () => html("<h2>More</h2>"),
    "/llms.txt": { body: "# Acme\n\n> Acme.\n\n## Docs\n\n- [API](/api): The API.\n" },
  });
  const app = testApp({
    agent: createExplorer({ version: "test" }),
    env: { EVALD_ALLOW_PRIVATE: `127.0.0.1:${site.port}` },
  });
  const provider = createProvider(app.service.ctx, app.a.org, { name: "Acme", docsUrl: `${site.url}/` });
  const { id } = createPrompt(app.service.ctx, app.a.org, { text: "Install it.", targetProviderId: provider.id });
  for (const isMended of [false, false, true]) {
    state.isMended = isMended;
    await app.send("POST", `/api/v1/prompts/${id}/run`, { body: { urlMap: {} } });
    await app.runJobs();
  }
  const friction = (await app.send("GET", `/api/v1/friction?promptId=${id}`)).body;
  expect(friction.map(({ state }: { state: string }) => state)).toContain("fixed");
  const still = friction.find((each: { state: string }) => each.state === "open").fingerprint;
  await app.send("POST", `/api/v1/recommendations/${still}/done`, { body: { promptId: id } });
  await app.runJobs();
  site.stop();
  const { slug, runId } = runWithReport(app, niceGrade, "Seen");
  const data = Buffer.from("RIFF....WEBP, a picture");
  app.db.insert(artifacts).values({ orgId: app.a.org, runId, attempt: 1, name: "shot-1.webp", data }).run();
  const other = testApp();
  const file = await exported(app);
  importInto(other, file);
  expect(importInto(other, file).rows).toEqual({});
  expect(withoutHeader(await exported(other))).toBe(withoutHeader(file));
  for (const path of [
    ...[`friction?promptId=${id}`, `friction/${still}?promptId=${id}`, `recommendations/done?promptId=${id}`],
    ...[
      `providers/${provider.id}/docs-map`,
      `trends?promptId=${id}`,
      "trends",
      `reports/${slug}/artifacts/shot-1.webp`,
    ],
  ]) {
    const [there, here] = await Promise.all([app, other].map((each) => each.send("GET", `/api/v1/${path}`)));
    expect([path, here?.status, here?.body]).toEqual([path, 200, there?.body]);
  }
  const [fix] = (await other.send("GET", `/api/v1/recommendations/done?promptId=${id}`)).body;
  expect(fix.status).toBe("did_not_help");
  const bad = rowsIn(file).map((each) =>
    each.type === "artifact" ? { ...each, row: { ...each.row, data: btoa("<svg onload='alert(1)'/>") } } : each,
  );
  expect(() => importInto(testApp(), sealed(bad))).toThrow(/data must be a WebP image/);
  // A partial export has only rows that belong to it.
  const part = await exported(app, `?promptId=${id}&until=2020-01-01`);
  expect([...new Set(rowsIn(part).map(({ type }) => type))]).toEqual(["provider", "prompt", "listed_page"]);
  importInto(testApp(), part);
});

test("a folder can't be imported", () => {
  const app = testApp();
  expect(() => importFile(app.service.ctx, app.a.org, folder)).toThrow(/cannot be read \(EISDIR.*\)/);
});

describe("a rejected file stores nothing", () => {
  const refused = (app: App, body: string | Uint8Array): string => {
    try {
      importInto(app, body);
    } catch (error) {
      expect([count(app, "prompts"), count(app, "runs"), count(app, "providers")]).toEqual([0, 0, 0]);
      return (error as Error).message;
    }
    throw new Error("the file was imported");
  };

  test("if it is truncated anywhere", () => {
    const app = testApp();
    const bytes = Buffer.from(text);
    const step = Math.floor(bytes.length / 150);
    const cuts = [...Array.from({ length: 150 }, (_, i) => i * step), bytes.length - 2, bytes.length - 1];
    for (const cut of cuts) {
      const said = refused(app, bytes.subarray(0, cut));
      expect([cut, said]).toEqual([cut, expect.stringMatching(/Line \d+: the file is truncated here\. Copy it again/)]);
    }
    expect(importInto(app, bytes).rows.run).toBe(9);
  });

  test("if it is damaged by a single bit anywhere after the header", () => {
    const app = testApp();
    const bytes = Buffer.from(text);
    const start = bytes.indexOf(10) + 1;
    for (let i = 0; i < 60; i++) {
      const at = start + Math.floor((i / 60) * (bytes.length - start));
      const damaged = Buffer.from(bytes);
      damaged[at] = (damaged[at] ?? 0) ^ 1;
      expect(refused(app, damaged)).toMatch(/^bad_request: Line \d+: /);
    }
  });

  const at = (type: string, more: object, drop: string[] = []) => {
    const rows = rowsIn(text);
    const i = rows.findIndex((each) => each.type === type);
    const row = Object.fromEntries(
      Object.entries({ ...rows[i]?.row, ...more }).filter(([name]) => !drop.includes(name)),
    );
    return sealed(rows.with(i, { type, row }));
  };
  const deep = (levels: number) => `${"[".repeat(levels)}${"]".repeat(levels)}`;
  test.each<[string, () => string | Uint8Array, RegExp]>([
    [
      "no export",
      () => "slug,score\n",
      /Line 1: this is not an evald export\. Pass a file created by evald export, uncompressed/,
    ],
    ["compressed content", () => Bun.gzipSync(new TextEncoder().encode(text)), /Line 1: this is not an evald export/],
    ["a backup", () => `SQLite format 3\0${"\0".repeat(100)}\n`, /Line 1: this is not an evald export/],
    ["no content", () => "", /Line 1: the file is truncated here/],
    [
      "a newer version",
      () => sealed([], { type: "evald export", version: 2, evald: "9.0.0" }),
      /Line 1: the file has format 2, written by evald 9.0.0, but this version reads formats up to 1\./,
    ],
    [
      "missing rows",
      () => text.split("\n").toSpliced(4, 1).join("\n"),
      /The file is damaged; export it again\.$|must come earlier in the file/,
    ],
    [
      "a huge line",
      () => `{"type":"evald export","version":1}\n{"type":"${"x".repeat(9 * 1024 * 1024)}`,
      /Line 2: the line is longer than 8 MiB/,
    ],
    ["deep JSON", () => `{"type":"evald export","version":1}\n${deep(100)}\n`, /Line 2: .*64 levels/],
    ["very deep JSON", () => `{"type":"evald export","version":1}\n${deep(500_000)}\n`, /Line 2: .* nested/],
    [
      "text that isn't UTF-8",
      () => Buffer.concat([Buffer.from('{"type":"evald export","version":1}\n'), Buffer.from([0xff, 0xfe, 10])]),
      /Line 2: the line is not valid UTF-8/,
    ],
    [
      "an unknown kind of row",
      () => sealed([{ type: "api_key", row: {} }]),
      /Line 2: "api_key" is not a known row type/,
    ],
    ["a row without content", () => sealed([{ type: "prompt" }]), /Line 2: prompt: row is required/],
    [
      "__proto__",
      () => '{"type":"evald export","version":1}\n{"type":"prompt","row":{"__proto__":{}}}\n',
      /Line 2: .*__proto__/,
    ],
    ["content after the end", () => `${text}{}\n`, /there is data after the end/],
    ["a path in a slug", () => at("report", { slug: "../../etc/passwd-0123abcd" }), /report: Invalid slug: /],
    ["an invalid ID", () => at("run", { id: "1' or 1" }), /run: Invalid id: /],
    ["an organization in a row", () => at("prompt", { orgId: source.b.org }), /prompt: Invalid orgId/],
    [
      "a run that would be executed",
      () => at("run", { status: "pending", completedAt: null }),
      /run: Invalid status: must be one of completed, failed, superseded/,
    ],
    [
      "a failed run without a cause",
      () => at("run", { status: "failed", failureCause: null, failureDetail: null }),
      /a failed run must have failureCause, failureDetail, failureCode/,
    ],
    [
      "a cause without its detail",
      () =>
        at("run", { status: "failed", failureCause: "timeout", failureCode: "server_time_limit", failureDetail: null }),
      /a failed run must have failureCause, failureDetail, failureCode/,
    ],
    [
      "a completed run with a cause",
      () => at("run", { status: "completed", failureCause: "timeout", failureDetail: "too long" }),
      /a completed run must not have failureCause, failureDetail, failureCode/,
    ],
    [
      "an unknown cause",
      () => at("run", { status: "failed", failureCause: "luck", failureDetail: "bad" }),
      /run: Invalid failureCause: must be one of timeout, /,
    ],
    ["a run without its end", () => at("run", { completedAt: null }), /an unfinished run cannot be imported/],
    [
      "a completed run without a report",
      () => sealed(rowsIn(text).filter(({ type }) => !/report|friction|recomm|grading/.test(type))),
      /only a completed run has a report, and it must have one/,
    ],
    [
      "a time out of range",
      () => at("report", { createdAt: 9e15 }),
      /report: Invalid createdAt: must be an integer from 0 to/,
    ],
    [
      "a frequency that never occurs",
      () => at("prompt", { frequency: "0 0 30 2 *", status: "active" }),
      /frequency: "0 0 30 2 \*"/,
    ],
    [
      "variables that don't exist",
      () => at("prompt", { templateVars: ["other"] }),
      /templateVars must match the variables in text and endGoal/,
    ],
    [
      "a foreign prompt",
      () => at("run", { promptId: "0199f3a2-11b0-7c64-8a0e-5b1d3a9f7c20" }),
      /its prompt 0199f3a2-11b0-7c64-8a0e-5b1d3a9f7c20 must come earlier in the file/,
    ],
    [
      "a foreign baseline",
      () => at("prompt", { baselineRequestId: "0199f3a2-11b0-7c64-8a0e-5b1d3a9f7c20" }),
      /its baseline 0199f3a2-11b0-7c64-8a0e-5b1d3a9f7c20 is not in the file/,
    ],
    [
      "an event of another run",
      () => at("event", { runId: "0199f3a2-11b0-7c64-8a0e-5b1d3a9f7c20" }),
      /runId must match the rows above it/,
    ],
    [
      "an event that claims a source",
      () => at("event", { data: { source: "runner" } }),
      /source is not allowed in the data of an event/,
    ],
    ["a score above 100", () => at("report", { score: 101 }), /report: Invalid score: must be a number from 0 to 100/],
    [
      "a fix for nothing",
      () => at("recommendation", { frictionIds: ["0199f3a2-11b0-7c64-8a0e-5b1d3a9f7c20"] }),
      /its friction point 0199f3a2-.* is missing/,
    ],
    [
      "a grading of another methodology",
      () => at("grading", { hash: "0".repeat(64) }),
      /hash must match the methodology in its grade/,
    ],
    ["a missing column", () => at("report", {}, ["verdict"]), /report: verdict is required/],
    ["a row twice", () => sealed([...rowsIn(text).slice(0, 1), ...rowsIn(text)]), /appears twice/],
    ...(["report", "friction_point", "recommendation", "grading"] as const).map(
      (type): [string, () => string, RegExp] => [
        `a ${type} of two runs`,
        () => shared(type),
        new RegExp(`the ${type.replace("_", " ")} [0-9a-f-]{36} appears twice`),
      ],
    ),
    [
      "a gate that runs",
      () => at("gate", { status: "running" }),
      /gate: Invalid status: must be one of passed, failed, error/,
    ],
    ["a gate without an end", () => at("gate", { completedAt: null }), /an unfinished gate cannot be imported/],
    ["a gate without a reason", () => at("gate", { reason: null }), /a gate must have a reason/],
    ["a gate with an invalid comparison", () => at("gate", { comparison: {} }), /gate: comparison\.\w+ is required/],
    [
      "a gate of a foreign head",
      () => at("gate", { headRequestId: "0199f3a2-11b0-7c64-8a0e-5b1d3a9f7c20" }),
      /its evaluation 0199f3a2-.* must come earlier in the file/,
    ],
    [
      "a regrade that would be done",
      () => at("regrade", { status: "pending", completedAt: null }),
      /regrade: Invalid status: must be one of completed, failed, cancelled/,
    ],
    ["a regrade without its end", () => at("regrade", { completedAt: null }), /an unfinished regrade cannot/],
    ["events out of order", () => at("event", { seq: 7 }), /the events of a run must be in order/],
  ])("if it has %s", (_, body, expected) => {
    expect(refused(testApp(), body())).toMatch(expected);
  });

  test("if it has IDs of another organization", async () => {
    const app = testApp();
    importInto(app, text, app.b.org);
    const before = await exported(app, "", app.b.key);
    expect(() => importInto(app, text)).toThrow(/Line 3: the provider .* belongs to another organization/);
    const [first, second] = rowsIn(text).filter(({ type }) => type === "prompt");
    expect(() =>
      importInto(
        app,
        sealed([{ ...second, row: { ...second?.row, targetProviderId: null, baselineRequestId: null } }]),
      ),
    ).toThrow(/Line 2: the prompt/);
    expect(first?.type).toBe("prompt");
    expect(count(app, "prompts")).toBe(3);
    expect(withoutHeader(await exported(app, "", app.b.key))).toBe(withoutHeader(before));
    expect(rowsIn(await exported(app)).map(({ type }) => type)).toEqual(["organization"]);
  });
});

describe("an export for other programs", () => {
  /** The results of three prompts that were created at one moment, with IDs and slugs in random order. */
  function told() {
    const app = testApp({ now: () => Date.UTC(2026, 10, 21, 9, 30) });
    const { id } = createPrompt(app.service.ctx, app.a.org, {
      title: '=1+1 "quoted" <b>',
      text: "See https://docs.test",
    });
    const [met, missed, below, none, broken] = evaluation(app, id, [
      { ...niceGrade, outcome: "succeeded", keyFinding: "Fine,\nreally." },
      { ...niceGrade, outcome: "goal_not_met", score: 55, keyFinding: "-2+3 & <script>\u0000\u001b[0m]]>" },
      { ...niceGrade, score: 60, keyFinding: "＠SUM(A1)" },
      { ...niceGrade, score: null, grade: null, outcome: "no_creds", nullNotice: "No key." },
      "infrastructure: the network is away",
    ]);
    return {
      app,
      id,
      runs: [met, missed, below, none, broken] as { slug: string; runId: string; evalRequestId: string }[],
    };
  }

  test("as CSV has a line per report, and nothing that a spreadsheet would calculate", async () => {
    const { app, id, runs } = told();
    const body = await exported(app, "?format=csv");
    const [met, missed, below, none] = runs;
    const line = (
      run: (typeof runs)[number] | undefined,
      outcome: string,
      score: string,
      grade: string,
      finding: string,
    ) =>
      [
        ...[
          run?.slug,
          "2026-11-21T09:30:00.000Z",
          "published",
          id,
          `"'=1+1 ""quoted"" <b>"`,
          run?.runId,
          run?.evalRequestId,
        ],
        ...[
          "explorer",
          "test",
          "",
          "{}",
          outcome,
          score,
          "goal",
          grade,
          "0.45",
          "3",
          "3f9c0a17aa55",
          "",
          "4.2",
          "0",
          "2",
          "17",
          "0",
        ],
        ...["1", "", "88.2", "64.3", "", "", "", finding],
      ].join(",");
    expect(body.split("\r\n")).toEqual([
      "slug,createdAt,status,promptId,promptTitle,runId,evalRequestId,agent,agentVersion,model,urlMap,outcome,score,scope,grade,coverage,methodology,methodologyHash,judge,timeSeconds,costUsd,errors,toolCalls,interruptions,frictionPoints,Goal achievement,Docs discoverability,Docs quality,Error recovery,Efficiency,Autonomy,keyFinding",
      line(met, "succeeded", "78.4", "C+", '"Fine,\nreally."'),
      line(missed, "goal_not_met", "55", "C+", "'-2+3 & <script>\u0000\u001b[0m]]>"),
      line(below, "not_judged", "60", "C+", "'＠SUM(A1)"),
      line(none, "no_creds", "", "", niceGrade.keyFinding),
      "",
    ]);
  });

  test("as JUnit reports missed goals, scores below the minimum, and failed runs", async () => {
    const { app, runs } = told();
    const [met, missed, below, none, broken] = runs.map(({ slug, runId }) => slug || runId);
    const name = "=1+1 &#34;quoted&#34; &#60;b&#62;";
    const verdict = niceGrade.verdict;
    expect(await exported(app, "?format=junit&minScore=70")).toBe(`<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="evald">
  <testsuite name="${name}" tests="5" failures="2" errors="2" skipped="0">
    <testcase name="${met}" classname="explorer" time="4.2"/>
    <testcase name="${missed}" classname="explorer" time="4.2">
      <failure type="goal_not_met" message="-2+3 &#38; &#60;script&#62;\ufffd\ufffd[0m]]&#62;">${verdict}</failure>
    </testcase>
    <testcase name="${below}" classname="explorer" time="4.2">
      <failure type="score" message="Score 60 is below 70. ＠SUM(A1)">${verdict}</failure>
    </testcase>
    <testcase name="${none}" classname="explorer" time="4.2">
      <error type="no_creds" message="No key.">${verdict}</error>
    </testcase>
    <testcase name="${broken}" classname="explorer" time="0">
      <error type="infrastructure" message="infrastructure: the network is away"></error>
    </testcase>
  </testsuite>
</testsuites>
`);
    expect(await exported(app, "?format=junit")).toContain('tests="5" failures="1" errors="2"');
    // A score of another scope can't be compared with the minimum.
    const docs = await exported(app, "?format=junit&minScore=70&scope=docs_only");
    expect([docs.includes('tests="5" failures="1" errors="4"'), docs.match(/<error type="scope"/g)?.length]).toEqual([
      true,
      2,
    ]);
    // An archived report counts as nobody's failure.
    await app.send("PATCH", `/api/v1/reports/${missed}`, { body: { status: "archived" } });
    const left = await exported(app, "?format=junit");
    expect([left.includes('tests="4" failures="0" errors="2"'), left.includes(`"${missed}"`)]).toEqual([true, false]);
  });

  test("as Markdown equals the page of each report", async () => {
    const { app, runs } = told();
    const headers = { authorization: `Bearer ${app.a.key}` };
    const pages = await Promise.all(
      runs.slice(0, 4).map(async ({ slug }) => (await app.send("GET", `/reports/${slug}.md`, { headers })).body),
    );
    expect(await exported(app, "?format=markdown")).toBe(pages.join("\n---\n\n"));
  });
});

test("hostile text in a file stays text, even on the page", async () => {
  const script = "<script>alert(1)</script>";
  const rows = rowsIn(text).map(({ type, row }) => {
    if (type === "report") return { type, row: { ...row, keyFinding: script, verdict: script } };
    if (type === "friction_point")
      return { type, row: { ...row, title: script, url: "javascript:alert(1)", quote: script } };
    if (type === "event")
      return { type, row: { ...row, data: { ...(row.data as object), text: script, url: "javascript:alert(1)" } } };
    return { type, row };
  });
  const app = testApp();
  importInto(app, sealed(rows));
  for (const path of [`/reports/${source.slug}`, `/reports/${source.slug}/session`]) {
    const headers = { authorization: `Bearer ${app.a.key}`, accept: "text/html" };
    const { status, body } = await app.send("GET", path, { headers });
    expect(status).toBe(200);
    expect(body).not.toContain("<script>alert");
    expect(body).not.toContain('href="javascript:');
  }
});

test("an export of an import is identical, whatever it contains", async () => {
  const words = fc.string({ unit: "grapheme", maxLength: 40 }).map((each) => each.toWellFormed() || "x");
  const grade = fc
    .record({
      keyFinding: words,
      verdict: words,
      score: fc.option(fc.double({ min: 0, max: 100, noNaN: true })),
      coverage: fc.double({ min: 0, max: 1, noNaN: true }),
      title: words,
      quote: fc.option(words),
      seconds: fc.option(fc.double({ noNaN: true, noDefaultInfinity: true, min: 0 })),
    })
    .map(({ keyFinding, verdict, score, coverage, title, quote, seconds }): Grade => {
      const [point] = niceGrade.frictions as [Grade["frictions"][number]];
      const made = {
        ...niceGrade,
        keyFinding,
        verdict,
        coverage,
        frictions: [{ ...point, title, quote, lostSeconds: seconds }],
      };
      return score === null ? { ...made, score, grade: null, nullNotice: "Why." } : { ...made, score };
    });
  const ends = fc.array(fc.oneof(grade, fc.constant("timeout: too long")), { minLength: 1, maxLength: 3 });
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(words, fc.dictionary(words, words, { noNullPrototype: true }), ends), { maxLength: 3 }),
      async (all) => {
        const [from, to] = [testApp(), testApp()];
        for (const [title, defaults, grades] of all) {
          const own = { title, text: `${title} https://docs.example.com`, templateDefaults: defaults };
          evaluation(from, createPrompt(from.service.ctx, from.a.org, own).id, grades);
        }
        const first = await exported(from);
        importInto(to, first);
        expect(withoutHeader(await exported(to))).toBe(withoutHeader(first));
      },
    ),
    { numRuns: isThorough ? 15 : 3, seed: 7 },
  );
});
