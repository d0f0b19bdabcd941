import { describe, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { runs } from "../src/db/tables/runs.ts";
import type { Grade } from "../src/grading/grade.ts";
import { createPrompt, updatePrompt } from "../src/prompts/prompts.ts";
import { createProvider, listProviders } from "../src/providers/providers.ts";
import { noisy, testApp } from "./support/app.ts";
import { rpc } from "./support/mcp.ts";
import { evaluation, niceGrade } from "./support/reports.ts";

const at = 1_790_000_000_000;
const setUp = () => {
  const t = testApp({ now: () => at });
  const create = (body: unknown) => t.send("POST", "/api/v1/prompts", { body });
  return {
    ...t,
    create,
    id: async (body: unknown): Promise<string> => (await create(body)).body.id,
    change: (id: string, body: unknown) => t.send("PATCH", `/api/v1/prompts/${id}`, { body }),
    /** The stored task for the agent. */
    taskOf: (runId: string) => t.db.select().from(runs).where(eq(runs.id, runId)).get()?.task,
  };
};

test("a prompt is created from the given fields, and the rest is null", async () => {
  const { create, send } = setUp();
  const { status, body } = await create({ text: "Look around" });
  expect(status).toBe(201);
  expect(body).toEqual({
    id: body.id,
    title: null,
    text: "Look around",
    endGoal: null,
    wordings: null,
    status: "active",
    frequency: null,
    runsPerEval: null,
    ...{ catchUp: "automatic", catchUpHours: null, overlap: "skip" },
    targetProviderId: null,
    additionalUrls: null,
    templateVars: null,
    templateDefaults: null,
    declaredChecks: null,
    workspace: null,
    agent: null,
    model: null,
    agents: null,
    limits: null,
    reviewBeforePublishing: false,
    isCanary: false,
    tags: [],
    successBar: null,
    supersedesByDefault: false,
    isOnResultsPage: false,
    workerLabels: [],
    hasPublicBadge: false,
    badgeUrl: null,
    basis: null,
    suite: null,
    baselineRequestId: null,
    // This is accepted, because a run may have a urlMap; without one it fails.
    warnings: [expect.stringContaining("targetProviderId")],
    createdAt: "2026-09-21T14:13:20.000Z",
    nextRunsAt: null,
  });
  expect((await send("GET", `/api/v1/prompts/${body.id}`)).body).toEqual(body);
});

test("a prompt is created only with a status that exists", async () => {
  const { create } = setUp();
  const paused = await create({ text: "Look around", status: "paused", frequency: "daily" });
  expect([paused.status, paused.body.status, paused.body.nextRunsAt]).toEqual([201, "paused", null]);
  expect(await create({ text: "Look around", status: "gone" })).toMatchObject({
    status: 400,
    body: { detail: expect.stringContaining("status") },
  });
});

test("a variable can have any name but __proto__, which JSON can't carry", async () => {
  const { create, change, id, send, taskOf } = setUp();
  for (const [field, body] of [
    ["text", { text: "Use {{__proto__}}" }],
    ["endGoal", { text: "Use {{tool}}", endGoal: "{{__proto__}} works" }],
  ] as const) {
    const refused = { status: 400, body: { detail: expect.stringContaining(`Invalid ${field}`) } };
    expect(await create(body)).toMatchObject(refused);
    expect(await change(await id({ text: "Look around" }), body)).toMatchObject(refused);
  }
  const prompt = await id({ text: "Use {{constructor}} and {{toString}}" });
  const path = `/api/v1/prompts/${prompt}/run`;
  expect((await send("POST", path, { body: { urlMap: {} } })).body.error).toBe("missing_template_vars");
  const templateArgs = { constructor: "a", toString: "b" };
  const run = await send("POST", path, { body: { urlMap: {}, templateArgs } });
  expect(taskOf(run.body.runId)?.text).toBe("Use a and b");
});

test("a prompt is created with all fields, partly changed, and cleared by null", async () => {
  const { create, change, service, a } = setUp();
  const provider = createProvider(service.ctx, a.org, { name: "Tool" });
  const whole = {
    title: "Upload",
    text: "Upload {{file}}",
    endGoal: "{{file}} is there",
    wordings: ["Store {{file}}", "Put {{file}} somewhere"],
    frequency: "0 6 * * 1-5",
    runsPerEval: 3,
    ...{ catchUp: "window", catchUpHours: 12, overlap: "queue" },
    targetProviderId: provider.id,
    additionalUrls: [
      { url: "https://docs.test/", name: "Docs", kind: "docs", owner: { team: ["a", 1, null, { b: true }] } },
    ],
    templateDefaults: { file: "a.txt" },
    declaredChecks: [
      { url: "https://api.test/files", status: 200, contains: "a.txt" },
      { command: "pytest -q", exitCode: 0, invariant: true },
      { file: "out/a.txt", contains: "a" },
    ],
    workspace: { repository: { url: "https://git.test/a.git", ref: "v1.2" }, setup: "make", env: { A: "1" } },
    agent: "explorer",
    model: null,
    agents: null,
    limits: { requests: 50, costUsd: 0.5 },
    reviewBeforePublishing: true,
    isCanary: true,
    tags: ["sdk", "quickstart"],
    successBar: { scope: "docs_only", minScore: 80 },
    supersedesByDefault: true,
    isOnResultsPage: true,
    workerLabels: ["gpu", "eu-1"],
    hasPublicBadge: true,
    baselineRequestId: null,
  };
  const { body: made } = await create(whole);
  const shared = {
    id: made.id,
    status: "active",
    createdAt: "2026-09-21T14:13:20.000Z",
    basis: null,
    suite: null,
    warnings: [expect.stringContaining("workspace")],
    badgeUrl: expect.stringMatching(/^http:\/\/localhost:3000\/badges\/[\w-]{24}\.svg$/),
  };
  const nextRunsAt = ["2026-09-22T06:00:00.000Z", "2026-09-23T06:00:00.000Z", "2026-09-24T06:00:00.000Z"];
  expect(made).toEqual({ ...whole, ...shared, nextRunsAt, templateVars: ["file"] });

  const changed = await change(made.id, {
    title: "Download",
    text: "Download {{name}}",
    templateDefaults: { file: "x", name: "y" },
  });
  expect([changed.status, changed.body]).toEqual([
    200,
    {
      ...whole,
      ...shared,
      nextRunsAt,
      title: "Download",
      text: "Download {{name}}",
      templateVars: ["name", "file"],
      templateDefaults: { file: "x", name: "y" },
    },
  ]);

  const nothing = {
    title: null,
    endGoal: null,
    wordings: null,
    frequency: null,
    runsPerEval: null,
    // The hours belong to the policy.
    ...{ catchUp: "latest", catchUpHours: null, overlap: "queue" },
    targetProviderId: null,
    additionalUrls: null,
    templateDefaults: null,
    declaredChecks: null,
    workspace: null,
    agent: null,
    model: null,
    agents: null,
    limits: null,
    successBar: null,
    baselineRequestId: null,
  };
  const emptied = await change(made.id, nothing);
  expect(emptied.body).toEqual({
    ...shared,
    warnings: [],
    ...nothing,
    nextRunsAt: null,
    text: "Download {{name}}",
    templateVars: ["name"],
    reviewBeforePublishing: true,
    isCanary: true,
    tags: ["sdk", "quickstart"],
    supersedesByDefault: true,
    isOnResultsPage: true,
    workerLabels: ["gpu", "eu-1"],
    hasPublicBadge: true,
  });
  // Empty changes have no effect, and read-only fields are ignored.
  const untouched = await change(made.id, { id: "x", createdAt: "x", orgId: "x", templateVars: ["x"] });
  expect([untouched.status, untouched.body]).toEqual([200, emptied.body]);
});

test("a provider ID is case-insensitive, and provider URLs need a host", async () => {
  const { create, change, service, a } = setUp();
  const { id } = createProvider(service.ctx, a.org, { name: " Tool ", docsUrl: "https://docs.tool.test" });
  const made = await create({ text: "x", targetProviderId: id.toUpperCase() });
  expect([made.status, made.body.targetProviderId]).toEqual([201, id]);
  const changed = await change(made.body.id, { targetProviderId: id.toUpperCase() });
  expect([changed.status, changed.body.targetProviderId]).toEqual([200, id]);
  for (const field of ["docsUrl", "productUrl"])
    expect(() => createProvider(service.ctx, a.org, { name: "Tool", [field]: "http://" })).toThrow(
      `bad_request: Invalid ${field}: `,
    );
  expect(() => createProvider(service.ctx, a.org, { name: " " })).toThrow("bad_request: Invalid name: ");
  expect(listProviders(service.ctx, a.org).map(({ name }) => name)).toEqual(["Tool"]);
});

test("a prompt is paused, archived and unarchived", async () => {
  const { id, change, send } = setUp();
  const own = await id({ text: "x" });
  for (const [status, run] of [
    ["paused", 200],
    ["archived", 409],
    ["paused", 200],
    ["archived", 409],
    ["active", 200],
  ] as const) {
    const answer = await change(own, { status });
    expect([answer.status, answer.body.status]).toEqual([200, status]);
    expect((await send("POST", `/api/v1/prompts/${own}/run`, { body: { urlMap: {} } })).status).toBe(run);
  }
});

describe("an error names the invalid field", () => {
  const refused: [body: Record<string, unknown>, detail: string][] = [
    [{}, "text is required"],
    [{ text: "" }, "Invalid text: must be"],
    [{ text: " \n" }, "Invalid text: must be"],
    [{ text: "x", title: "" }, "Invalid title: must be"],
    [{ text: "x", title: "a".repeat(201) }, "Invalid title: must be"],
    [{ text: "x", runsPerEval: 0 }, "Invalid runsPerEval: must be"],
    [{ text: "x", runsPerEval: 51 }, "Invalid runsPerEval: must be"],
    [{ text: "x", runsPerEval: 1.5 }, "Invalid runsPerEval: must be"],
    [{ text: "x", runsPerEval: "1" }, "Invalid runsPerEval: must be"],
    [{ text: "x", wordings: ["a", " "] }, "Invalid wordings.1: must be"],
    [{ text: "x", wordings: Array(6).fill("a") }, "Invalid wordings: must be"],
    [{ text: "{{a}}", wordings: ["{{a}}", "{{b}}"] }, "Invalid wordings.1: text and endGoal have no variable named b"],
    [{ text: "x", targetProviderId: "7" }, "Invalid targetProviderId: must be"],
    [{ text: "x", additionalUrls: {} }, "Invalid additionalUrls: must be"],
    [{ text: "x", additionalUrls: ["https://a.test"] }, "Invalid additionalUrls.0: must be"],
    [{ text: "x", additionalUrls: [{ name: "Docs" }] }, "additionalUrls.0.url is required"],
    [
      { text: "x", additionalUrls: [{ url: "https://a.test" }, { url: "ftp://a.test" }] },
      "Invalid additionalUrls.1.url: must be",
    ],
    [{ text: "x", additionalUrls: [{ url: "https://a.test" }, { url: "https://" }] }, "Invalid additionalUrls.1.url: "],
    [{ text: "x", declaredChecks: [{ url: "http://" }] }, "Invalid declaredChecks.0.url: "],
    [{ text: "x", declaredChecks: [{ url: "http:///a.test" }] }, "Invalid declaredChecks.0.url: "],
    [{ text: "x", declaredChecks: [{ url: "http://a.test:99999/" }] }, "Invalid declaredChecks.0.url: "],
    [{ text: "x", templateDefaults: { a: 1 } }, "Invalid templateDefaults.a: must be"],
    [{ text: "x", reviewBeforePublishing: null }, "Invalid reviewBeforePublishing: must be"],
    [{ text: "x", agent: "nobody" }, 'Invalid agent: "nobody" '],
    [{ text: "x", model: "a/b" }, "Invalid model: "],
    [{ text: "{{a}} {{b}} {{c}}", frequency: "daily", templateDefaults: { b: "x" } }, "Invalid frequency: "],
  ];
  test.each(refused)("of %j", async (body, detail) => {
    const { create, send } = setUp();
    expect(await create(body)).toMatchObject({
      status: 400,
      body: { error: "bad_request", detail: expect.stringContaining(detail) },
    });
    expect((await send("GET", "/api/v1/prompts")).body).toEqual([]);
  });

  test("and rejects the whole change", async () => {
    const { id, change, send } = setUp();
    const own = await id({ text: "https://x.test/", frequency: "daily" });
    const statuses = [{ status: "deleted" }, { title: "new", runsPerEval: 0 }, { text: "{{a}}" }, { text: null }].map(
      async (body) => (await change(own, body)).status,
    );
    expect(await Promise.all(statuses)).toEqual([400, 400, 400, 400]);
    expect((await send("GET", `/api/v1/prompts/${own}`)).body).toMatchObject({
      title: null,
      text: "https://x.test/",
      status: "active",
    });
    expect((await change(own, { status: "deleted" })).body.detail).toStartWith("Invalid status: must be");
  });
});

test("a schedule that could only fail is rejected", async () => {
  const app = setUp();
  const { create, change, id, send } = app;
  const refusedFor = (field: string) => ({
    status: 400,
    body: { error: "bad_request", detail: expect.stringContaining(`Invalid ${field}: `) },
  });
  const refused = refusedFor("frequency");
  expect(await create({ text: "Look around", frequency: "daily" })).toMatchObject(refused);
  // A competitor's page or the product can't be the start URL.
  const competitor = [{ url: "https://other.test/", kind: "competitor" }];
  expect(await create({ text: "Look", frequency: "daily", additionalUrls: competitor })).toMatchObject(refused);
  const { body: provider } = await send("POST", "/api/v1/providers", { body: { name: "Acme" } });
  expect(await create({ text: "Look", frequency: "daily", targetProviderId: provider.id })).toMatchObject(refused);
  const manual = await id({ text: "Look around" });
  expect(await change(manual, { frequency: "daily" })).toMatchObject(refused);
  const scheduled = await id({
    text: "See {{where}}",
    frequency: "daily",
    templateDefaults: { where: "https://x.test/" },
  });
  // The error names the field that was sent.
  expect(await change(scheduled, { templateDefaults: { where: "there" } })).toMatchObject(
    refusedFor("templateDefaults"),
  );
  expect(await change(scheduled, { text: "Look around", title: "New" })).toMatchObject(refusedFor("text"));
  expect(await change(scheduled, { text: "See {{what}}" })).toMatchObject(refusedFor("text"));
  // It is saved without a schedule or while paused, and can't be resumed.
  expect((await change(scheduled, { templateDefaults: { where: "there" }, status: "paused" })).status).toBe(200);
  expect(await change(scheduled, { status: "active" })).toMatchObject(refusedFor("status"));
  expect(await change(scheduled, { status: "active", frequency: "weekly" })).toMatchObject(refused);
});

test("other fields can be changed after a schedule lost its start URL", async () => {
  const { change, id, send } = setUp();
  const body = { name: "Acme", docsUrl: "https://docs.test/" };
  const { body: provider } = await send("POST", "/api/v1/providers", { body });
  const prompt = await id({ text: "Look", frequency: "daily", targetProviderId: provider.id });
  await send("PATCH", `/api/v1/providers/${provider.id}`, { body: { docsUrl: null } });
  const changed = await change(prompt, { title: "New" });
  expect([changed.status, changed.body.title, changed.body.warnings.length]).toEqual([200, "New", 1]);
});

test("a frequency is a preset or five cron fields that match some time", async () => {
  const { create } = setUp();
  const good = [
    "hourly",
    "daily",
    "weekly",
    "monthly",
    "0 6 * * 1-5",
    "*/15 2 * * *",
    "0 0 29 2 *",
    "0 0 31 * *",
    " 0 6 * * * ",
  ];
  const bad = [
    "",
    "yearly",
    "Daily",
    "@daily",
    "0 0 30 2 *",
    "0 0 31 4,6,9,11 *",
    "* * * * * *",
    "* * * *",
    "60 * * * *",
    "a b c d e",
  ];
  const statusOf = async (frequency: string) => (await create({ text: "https://x.test/", frequency })).status;
  expect(await Promise.all(good.map(statusOf))).toEqual(good.map(() => 201));
  expect(await Promise.all(bad.map(statusOf))).toEqual(bad.map(() => 400));
  expect((await create({ text: "x", frequency: "0 0 30 2 *" })).body.detail).toStartWith(
    'Invalid frequency: "0 0 30 2 *"',
  );
});

test("an evaluation has 1 to 50 runs", async () => {
  const { create } = setUp();
  for (const runsPerEval of [1, 50])
    expect((await create({ text: "x", runsPerEval })).body.runsPerEval).toBe(runsPerEval);
});

test("variables are listed once, in order of first appearance, and not if escaped", async () => {
  const { create } = setUp();
  const varsOf = async (text: string, endGoal: string | null = null) =>
    (await create({ text, endGoal })).body.templateVars;
  expect(await varsOf("{{b}} {{a}} {{b}}", "{{c}} {{a}}")).toEqual(["b", "a", "c"]);
  expect(await varsOf("none")).toBeNull();
  expect(await varsOf("\\{{a}} {{b}}")).toEqual(["b"]);
  expect(await varsOf("\\{{a}}")).toBeNull();
  expect(await varsOf("{{_x1}} {{Ab_9}}")).toEqual(["_x1", "Ab_9"]);
  expect(await varsOf("{{1a}} {{a-b}} {{ a }} {{}} {a} {{a.b}}")).toBeNull();
  expect(await varsOf("{{{a}}}")).toEqual(["a"]);
});

test("variables are filled in once, so text in an argument is not replaced", async () => {
  const { id, send, taskOf } = setUp();
  const own = await id({ text: "{{a}} and {{b}}, \\{{a}} and $& stays", endGoal: "{{b}}{{b}}" });
  const templateArgs = { a: "{{b}} $1 $& \\{{", b: "{{a}}" };
  const { body } = await send("POST", `/api/v1/prompts/${own}/run`, { body: { urlMap: {}, templateArgs } });
  expect(taskOf(body.runId)).toEqual({
    title: null,
    text: "{{b}} $1 $& \\{{ and {{a}}, {{a}} and $& stays",
    endGoal: "{{a}}{{a}}",
    productUrl: null,
    startUrls: [],
    declaredChecks: [],
    limits: null,
    reviewBeforePublishing: false,
  });
  expect((await send("GET", body.statusUrl)).body.templateArgs).toEqual(templateArgs);
});

test("a run keeps its task, whatever happens to the prompt", async () => {
  const { id, send, change, taskOf } = setUp();
  const own = await id({ title: "One", text: "Read https://one.test/." });
  const { body } = await send("POST", `/api/v1/prompts/${own}/run`, { body: { urlMap: {} } });
  await change(own, { title: "Two", text: "Read https://two.test/", status: "archived" });
  expect(taskOf(body.runId)).toMatchObject({
    title: "One",
    text: "Read https://one.test/.",
    startUrls: ["https://one.test/"],
  });
});

test("a session starts at the urlMap, then the provider's docs, additionalUrls and URLs in the text", async () => {
  const { id, send, taskOf, service, a } = setUp();
  const docsUrl = "https://docs.tool.test/start";
  const { id: targetProviderId } = createProvider(service.ctx, a.org, { name: "Tool", docsUrl });
  const own = await id({
    text: "See https://text.test/a, (https://text.test/b) and https://docs.tool.test/start!",
    targetProviderId,
    additionalUrls: [
      { url: "https://more.test/" },
      { url: "https://rival.test/", kind: "competitor" },
      { url: "https://more.test/openapi.json", kind: "openapi" },
    ],
  });
  const urlMap = { "more.test": "http://127.0.0.1:9", "new.test": "http://127.0.0.1:9" };
  const { body } = await send("POST", `/api/v1/prompts/${own}/run`, { body: { urlMap } });
  expect(taskOf(body.runId)?.startUrls).toEqual([
    "https://more.test/",
    "https://more.test/openapi.json",
    "https://new.test/",
    "https://docs.tool.test/start",
    "https://text.test/a",
    "https://text.test/b",
  ]);
});

test.each([
  ["declaredChecks.0", {}],
  ["declaredChecks.0", { url: "https://api.test/", command: "true" }],
  ["declaredChecks.0.exitCode", { url: "https://api.test/", exitCode: 0 }],
  ["declaredChecks.0.status", { command: "true", status: 200 }],
  ["declaredChecks.0.file", { file: "/etc/passwd" }],
  ["declaredChecks.0.file", { file: "a/../../b" }],
  ["declaredChecks.0.command", { command: " " }],
  ["declaredChecks.0.method", { command: "true", method: "POST" }],
  ["declaredChecks.0.method", { url: "https://api.test/", method: "TRACE" }],
  ["declaredChecks.0.headers", { url: "https://api.test/", headers: { Host: "other.test" } }],
  ["declaredChecks.0.headers", { url: "https://api.test/", headers: { Accept: "a", accept: "b" } }],
  ["declaredChecks.0.headers.X-A", { url: "https://api.test/", headers: { "X-A": "a\r\nX-B: b" } }],
  ["declaredChecks.0.body", { url: "https://api.test/", body: "{}" }],
  ["declaredChecks.0.contains", { url: "https://api.test/", method: "HEAD", contains: "a" }],
  ["declaredChecks.0.json", { file: "a.json", json: { pointer: "/a" } }],
  ["declaredChecks.0.json.pointer", { url: "https://api.test/", json: { pointer: "a" } }],
  ["declaredChecks.0.json", { url: "https://api.test/", json: { pointer: "/a", equals: 1, exists: false } }],
  ["declaredChecks.0.env", { url: "https://api.test/", env: { A: "b" } }],
  ["declaredChecks.0.env", { command: "true", env: { LD_PRELOAD: "/a.so" } }],
])("an invalid success check is rejected at %s: %j", async (field, check) => {
  const input = { text: "x", declaredChecks: [check] };
  const { status, body } = await testApp().send("POST", "/api/v1/prompts", { body: input });
  expect([status, body.detail]).toEqual([400, expect.stringContaining(field)]);
});

test("prompts can be filtered by tag over REST, MCP and on the page", async () => {
  const app = setUp();
  const [one, two] = [
    await app.id({ text: "One", tags: ["sdk", "docs"] }),
    await app.id({ text: "Two", tags: ["sdk"] }),
  ];
  const old = await app.id({ text: "Old", tags: ["sdk"] });
  await app.change(old, { status: "archived" });
  const stranger = { headers: { authorization: `Bearer ${app.b.key}` }, body: { text: "Else", tags: ["sdk"] } };
  await app.send("POST", "/api/v1/prompts", stranger);
  const ids = async (query: string) =>
    (await app.send("GET", `/api/v1/prompts?${query}`)).body.map(({ id }: { id: string }) => id);
  expect([await ids("tag=sdk"), await ids("tag=docs"), await ids("tag=sd")]).toEqual([[two, one], [one], []]);
  expect(await ids("tag=sdk&includeArchived=1")).toEqual([old, two, one]);
  const { prompts, total } = await rpc(app).call("list_prompts", { tag: "docs" });
  expect([total, prompts[0].id]).toEqual([1, one]);
  const { body } = await app.send("GET", "/prompts?tag=docs");
  expect([body.includes(`/prompts/${one}`), body.includes(`/prompts/${two}`)]).toEqual([true, false]);
  expect([...body.matchAll(/<option value="(docs|sdk)"/g)].map(([, tag]) => tag)).toEqual(["docs", "sdk"]);
  for (const tags of [
    ["a b"],
    [""],
    ["a,b"],
    ["a", "a"],
    ["x".repeat(51)],
    Array.from({ length: 21 }, (_, i) => `t${i}`),
  ])
    expect([tags, (await app.create({ text: "x", tags })).status]).toEqual([tags, 400]);
});

describe("a badge", () => {
  const tested = { ...niceGrade, score: 88, grade: "B+" };
  const docsOnly = { ...niceGrade, score: 93, scope: "docs_only", grade: null } as const;
  const day = 24 * 3600_000;
  const noon = Date.parse("2026-11-22T12:00:00Z");

  /** A prompt with a public badge and an evaluation with these grades. */
  function badged(grades: Grade[], more: { agent?: string } = {}) {
    let time = noon;
    const app = testApp({ now: () => time, agents: noisy });
    const prompt = createPrompt(app.service.ctx, app.a.org, { text: "x", hasPublicBadge: true, ...more });
    if (grades.length > 0) evaluation(app, prompt.id, grades);
    const get = (path: string, headers = {}) => app.send("GET", path, { headers: { authorization: "", ...headers } });
    const pathOf = (url: string | null) => new URL(url ?? "http://localhost/none").pathname;
    const svg = pathOf(prompt.badgeUrl);
    return {
      ...{ app, prompt, get, svg, pathOf },
      pass: (ms: number) => (time += ms),
      shields: async () => (await get(svg.replace(".svg", ".json"))).body,
    };
  }

  test("shows score, number of runs and date without signing in, as SVG and for Shields", async () => {
    const { get, svg, shields } = badged([tested, { ...tested, score: 92 }], { agent: "noisy" });
    const { status, headers, body } = await get(svg);
    expect([status, headers.get("content-type"), headers.get("cache-control")]).toEqual([
      ...[200, "image/svg+xml", "no-cache"],
    ]);
    const message = "A- (90 of 100) · 2 runs · 2026-11-22";
    expect(body).toContain(`aria-label="evald: ${message}"`);
    expect(await shields()).toEqual({ schemaVersion: 1, label: "evald", message, color: "2e7d32" });
    const etag = headers.get("etag") ?? "";
    expect((await get(svg, { "if-none-match": etag })).status).toBe(304);
  });

  test("is gray for a single run, an outdated result, an untested goal, no report or an archived prompt", async () => {
    const gray = "57606a";
    const single = badged([tested], { agent: "noisy" });
    expect(await single.shields()).toMatchObject({ message: "B+ (88 of 100) · single run · 2026-11-22", color: gray });
    const exact = badged([tested]);
    expect(await exact.shields()).toMatchObject({ message: "B+ (88 of 100) · 1 run · 2026-11-22", color: "558b2f" });
    exact.pass(31 * day);
    expect(await exact.shields()).toMatchObject({
      message: "B+ (88 of 100) · 1 run · 2026-11-22 (outdated)",
      color: gray,
    });
    // The day is that of the report without a score.
    const unmeasured = { ...tested, score: null, grade: null, nullNotice: "none", outcome: "excluded" } as const;
    evaluation(exact.app, exact.prompt.id, [unmeasured]);
    expect(await exact.shields()).toMatchObject({ message: "Not measured · 2026-12-23", color: gray });
    const docs = badged([docsOnly]);
    expect(await docs.shields()).toMatchObject({
      message: "Docs 93 · Goal not tested · 1 run · 2026-11-22",
      color: gray,
    });
    expect(await badged([]).shields()).toMatchObject({ message: "no report yet", color: gray });
    const { app, prompt, shields } = badged([tested]);
    updatePrompt(app.service.ctx, app.a.org, prompt.id, { status: "archived" });
    expect(await shields()).toMatchObject({ message: "archived", color: gray });
  });

  test("has a secret URL, which is revoked for good when the badge is turned off", async () => {
    const { app, prompt, get, svg, pathOf } = badged([tested]);
    const update = (hasPublicBadge: boolean) =>
      updatePrompt(app.service.ctx, app.a.org, prompt.id, { hasPublicBadge }).badgeUrl;
    expect(pathOf(update(true))).toBe(svg);
    expect(pathOf(updatePrompt(app.service.ctx, app.a.org, prompt.id, { title: "y" }).badgeUrl)).toBe(svg);
    expect(update(false)).toBeNull();
    expect((await get(svg)).status).toBe(404);
    const renewed = pathOf(update(true));
    expect([renewed === svg, (await get(svg)).status, (await get(renewed)).status]).toEqual([false, 404, 200]);
    for (const path of [`/badges/${prompt.id}.svg`, "/badges/x", "/badges/.svg", renewed.replace(".svg", "")])
      expect([path, (await get(path)).status]).toEqual([path, 404]);
  });
});

test("a prompt has at most 200 variables", async () => {
  const { create, change, db } = setUp();
  const text = (count: number) => Array.from({ length: count }, (_, i) => `{{v${i}}}`).join(" ");
  const { status, body } = await create({ text: text(150), endGoal: text(200) });
  expect([status, body.templateVars?.length]).toEqual([201, 200]);
  expect((await create({ text: text(150), endGoal: text(201) })).status).toBe(400);
  expect((await change(body.id, { text: text(201) })).status).toBe(400);
  // Prompts of an older version may have more variables, and can still be archived.
  db.$client.run("update prompts set text = ?, template_vars = ?", [
    text(201),
    JSON.stringify(Array.from({ length: 201 }, (_, i) => `v${i}`)),
  ]);
  expect((await change(body.id, { status: "archived" })).body.templateVars?.length).toBe(201);
});
