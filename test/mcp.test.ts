import { describe, expect, test } from "bun:test";
import { Value } from "@sinclair/typebox/value";
import { createKey } from "../src/auth/keys.ts";
import { toEditTools, toTools } from "../src/mcp-endpoints.ts";
import { createPrompt, getPrompt, updatePrompt } from "../src/prompts/prompts.ts";
import { getRun } from "../src/runs/runs.ts";
import { testApp } from "./support/app.ts";
import { rpc, stable } from "./support/mcp.ts";
import { evaluation, hostileGrade, niceGrade, runWithReport } from "./support/reports.ts";

const nine = [
  "list_reports",
  "get_report",
  "get_session_trace",
  "get_friction_points",
  "compare_reports",
  "get_trends",
  "list_prompts",
  "request_eval",
  "list_eval_requests",
];
const unknownId = "0199f3a2-11b0-7c64-8a0e-5b1d3a9f7c20";
const moment = Date.UTC(2026, 10, 21, 9, 30);

/** An organization with one prompt and two reports, with a stopped clock, and IDs that a caller can use. */
function furnished() {
  const app = testApp({ now: () => moment });
  const { runId, slug } = runWithReport(app, niceGrade);
  const promptId = getRun(app.service.ctx, app.a.org, runId).prompt.id;
  const [second] = evaluation(app, promptId, [{ ...niceGrade, score: 83.1, grade: "B" }]);
  return { app, ...rpc(app), promptId, slug, second: second?.slug ?? "" };
}

/** Arguments with which each tool succeeds. */
const goodArguments = ({ promptId, slug, second }: ReturnType<typeof furnished>): Record<string, object> => ({
  list_reports: { promptId, limit: 1 },
  get_report: { slug },
  get_session_trace: { slug, types: ["end"], search: "nobody" },
  get_friction_points: { promptId, severity: "high" },
  compare_reports: { slugs: [slug, second] },
  get_trends: { promptId, interval: "month" },
  list_prompts: {},
  request_eval: { promptId, runs: 2, urlMap: { "docs.example.com": "https://preview-42.example.com" } },
  list_eval_requests: { promptId, limit: 2 },
});

describe("the tools", () => {
  test("are the nine of the specification, in its order, and match the snapshot", async () => {
    const { ask } = rpc(testApp());
    const { tools } = (await ask("tools/list")).result;
    expect(tools.map(({ name }: { name: string }) => name)).toEqual(nine);
    expect(tools).toMatchSnapshot();
    // Every client pays for them in every conversation: about 5,000 tokens of four characters.
    expect(JSON.stringify({ tools }).length).toBeLessThan(21_000);
  });

  test("declare that exactly one of them changes anything", async () => {
    const { tools } = (await rpc(testApp()).ask("tools/list")).result;
    const writers = tools.filter(({ annotations }: Tool) => !annotations.readOnlyHint).map(({ name }: Tool) => name);
    expect(writers).toEqual(["request_eval"]);
  });

  test.each(nine)("%s returns one complete result that matches its schema and the snapshot", async (name) => {
    const world = furnished();
    const result = await world.call(name, goodArguments(world)[name]);
    const { service } = world.app;
    const schema = toTools(service.ctx).find((tool) => tool.name === name)?.output;
    expect(schema && [...Value.Errors(schema, result)]).toEqual([]);
    expect(stable(result, world.app.baseUrl)).toMatchSnapshot();
  });

  test("treat a null argument as omitted", async () => {
    const { call, slug } = furnished();
    expect((await call("get_friction_points", { slug, promptId: null, state: null })).total).toBe(1);
  });
});

type Tool = { name: string; annotations: { readOnlyHint: boolean } };

describe("a missing object", () => {
  const world = furnished();
  const { promptId, slug, second, app } = world;
  const asB = rpc(app, app.b.key);
  const withoutId = (answer: object, ...ids: string[]) =>
    ids.reduce((text, id) => text.replaceAll(id, "ID"), JSON.stringify(answer));

  test.each([
    ["get_report", { slug }, { slug: "upload-a-file-00000000" }],
    ["get_session_trace", { slug }, { slug: "upload-a-file-00000000" }],
    ["get_friction_points", { slug }, { slug: "upload-a-file-00000000" }],
    ["get_friction_points", { promptId }, { promptId: unknownId }],
    ["compare_reports", { slugs: [slug, second] }, { slugs: ["upload-a-file-00000000", second] }],
    ["get_trends", { promptId }, { promptId: unknownId }],
    ["list_reports", { promptId }, { promptId: unknownId }],
    ["list_eval_requests", { promptId }, { promptId: unknownId }],
    ["request_eval", { promptId }, { promptId: unknownId }],
  ])("is indistinguishable from one of another organization: %s", async (name, foreign, unknown) => {
    const own = await world.call(name, foreign);
    expect(own.error).toBeUndefined();
    const answer = await asB.call(name, foreign);
    expect(answer).toEqual({
      error: "not_found",
      detail: expect.stringMatching(/^No (report|prompt) has the (slug|ID) \S+\. .*list_(reports|prompts)\.$/),
    });
    expect(withoutId(answer, slug, promptId)).toBe(
      withoutId(await asB.call(name, unknown), "upload-a-file-00000000", unknownId),
    );
  });

  test.each(["list_reports", "get_friction_points", "get_trends", "request_eval", "list_eval_requests"])(
    "gets an error that says where to find a promptId: %s",
    async (name) => {
      expect(await world.call(name, { promptId: "first" })).toEqual({
        error: "not_found",
        detail: expect.stringMatching(/^No prompt has the ID first\. .*list_prompts/),
      });
    },
  );

  test("and an object of another organization are in no list", async () => {
    expect((await asB.call("list_reports")).total).toBe(0);
    expect((await asB.call("list_prompts")).total).toBe(0);
    expect((await asB.call("list_eval_requests")).total).toBe(0);
    expect((await asB.call("get_trends")).points).toEqual([]);
    expect((await asB.ask("resources/list")).result.resources).toEqual([]);
    expect((await asB.ask("resources/read", { uri: `evald://reports/${slug}` })).error.code).toBe(-32002);
    expect((await asB.ask("prompts/get", { name: "investigate_report", arguments: { slug } })).error).toEqual({
      code: -32602,
      message: `No report has the slug ${slug}.`,
    });
    const ref = { type: "ref/prompt", name: "investigate_report" };
    const values = await asB.ask("completion/complete", { ref, argument: { name: "slug", value: "up" } });
    expect(values.result.completion.values).toEqual([]);
  });

  test("is a protocol error that lists the available tools, if it is a tool", async () => {
    const { error } = await world.ask("tools/call", { name: "get_reports", arguments: {} });
    expect(error).toEqual({ code: -32602, message: expect.stringContaining(nine.join(", ")) });
  });
});

describe("arguments", () => {
  const world = furnished();
  const { promptId, slug } = world;
  const long = "x".repeat(501);
  test.each<[string, object, string]>([
    ["list_reports", { limit: 0 }, "Invalid limit: must be"],
    ["list_reports", { limit: 101 }, "Invalid limit: must be"],
    ["list_reports", { limit: "many" }, "Invalid limit: must be"],
    ["list_reports", { limit: "1e2" }, "Invalid limit: must be"],
    ["list_reports", { limit: "101" }, "Invalid limit: must be"],
    ["list_reports", { limit: 1.5 }, "Invalid limit: must be"],
    ["list_reports", { offset: -1 }, "Invalid offset: must be"],
    ["list_reports", { offset: 100_001 }, "Invalid offset: must be"],
    ["list_reports", { status: "done" }, "Invalid status: must be"],
    ["list_reports", { minScore: 101 }, "Invalid minScore: must be"],
    ["list_reports", { maxScore: -1 }, "Invalid maxScore: must be"],
    ["list_reports", { since: "yesterday" }, "Invalid since: must be"],
    ["list_reports", { until: "2026-02-30T99:00:00Z" }, "Invalid until: must be"],
    ["list_reports", { since: "2026-02-31" }, "Invalid since: must be"],
    ["list_reports", { prompt: promptId }, 'Unknown argument "prompt"'],
    ["get_report", {}, "slug is required"],
    ["get_report", { slug: 7 }, "Invalid slug: must be"],
    ["get_report", { slug: long }, "Invalid slug: must be"],
    ["get_session_trace", { slug, limit: 501 }, "Invalid limit: must be"],
    ["get_session_trace", { slug, fromSeq: -1 }, "Invalid fromSeq: must be"],
    ["get_session_trace", { slug, types: "end" }, "Invalid types: must be"],
    ["get_session_trace", { slug, types: ["talk"] }, "Invalid types.0: must be"],
    ["get_session_trace", { slug, search: "" }, "Invalid search: must be"],
    ["get_friction_points", {}, "Pass either slug"],
    ["get_friction_points", { slug, promptId }, "Pass either slug"],
    ["get_friction_points", { slug, severity: "bad" }, "Invalid severity: must be"],
    ["get_friction_points", { slug, state: "gone" }, "Invalid state: must be"],
    ["compare_reports", { slugs: [slug] }, "Invalid slugs: must be"],
    ["compare_reports", { slugs: Array.from({ length: 11 }, (_, i) => `s${i}`) }, "Invalid slugs: must be"],
    ["compare_reports", { slugs: [slug, slug] }, "Invalid slugs: must be"],
    ["get_trends", { interval: "year" }, "Invalid interval: must be"],
    ["list_prompts", { includeArchived: 1 }, "Invalid includeArchived: must be"],
    ["request_eval", { promptId, runs: 0 }, "Invalid runs: must be"],
    ["request_eval", { promptId, runs: 51 }, "Invalid runs: must be"],
    ["request_eval", { promptId, waitSeconds: 51 }, "Invalid waitSeconds: must be"],
    ["request_eval", { promptId, idempotencyKey: "a b" }, "Invalid idempotencyKey: must be"],
    [
      "request_eval",
      { promptId, urlMap: { "docs.example.com": "preview" } },
      "Invalid urlMap.docs.example.com: must be",
    ],
    [
      "request_eval",
      { promptId, urlMap: { "docs.example.com": "ftp://a.example" } },
      'Invalid urlMap: the value of "docs.example.com"',
    ],
    ["request_eval", { promptId, templateArgs: { a: "x".repeat(2001) } }, "Invalid templateArgs.a: must be"],
    ["list_eval_requests", { status: "done" }, "Invalid status: must be"],
  ])("are rejected with the reason if invalid: %s with %j", async (name, args, detail) => {
    expect(await world.call(name, args)).toEqual({ error: "bad_request", detail: expect.stringContaining(detail) });
  });

  test("may be numbers and booleans as text, as some models send them", async () => {
    for (const [name, args, asText] of [
      ["list_reports", { limit: 1, minScore: 78.4 }, { limit: "1", minScore: "78.4" }],
      ["list_prompts", { includeArchived: true, limit: 1 }, { includeArchived: "true", limit: "1" }],
      ["get_session_trace", { slug, fromSeq: 3, limit: 2 }, { slug, fromSeq: "3", limit: "2" }],
      ["list_reports", { agent: "1" }, { agent: "1" }],
    ] as const) {
      const result = await world.call(name, args);
      expect(result.error).toBeUndefined();
      expect(await world.call(name, asText)).toEqual(result);
    }
  });

  test("may be the URLs that people paste, and titles of prompts", async () => {
    const { call, second, app } = world;
    const { runId } = (await call("get_report", { slug })).run;
    const report = await call("get_report", { slug });
    for (const pasted of [
      `${app.baseUrl}/reports/${slug}`,
      `https://evals.example/a/path/reports/${slug}.md?x=1#friction`,
      `evald://reports/${slug}`,
      `${app.baseUrl}/runs/${runId.toUpperCase()}`,
    ]) {
      expect(await call("get_report", { slug: pasted })).toEqual(report);
      for (const [name, args] of [
        ["get_session_trace", { limit: 1 }],
        ["get_friction_points", {}],
      ] as const)
        expect(await call(name, { ...args, slug: pasted })).toEqual(await call(name, { ...args, slug }));
      const compared = await call("compare_reports", { slugs: [pasted, second] });
      expect(compared.reports.map((each: { slug: string }) => each.slug)).toEqual([slug, second]);
    }
    for (const pasted of [
      "Upload a file",
      `${app.baseUrl}/prompts/${promptId}`,
      `${app.baseUrl}/prompts/${promptId}/edit`,
    ])
      for (const name of ["list_reports", "get_friction_points", "get_trends", "list_eval_requests"])
        expect(await call(name, { promptId: pasted })).toEqual(await call(name, { promptId }));
    expect((await call("request_eval", { promptId: "Upload a file", runs: 1 })).runs.length).toBe(1);
    const [unfinished] = (await call("list_eval_requests", { status: "pending" })).evalRequests;
    expect(await call("get_report", { slug: unfinished.runs[0].runUrl })).toEqual({
      error: "not_found",
      detail: expect.stringContaining(unfinished.runs[0].runId),
    });
    const { id } = createPrompt(app.service.ctx, app.a.org, { title: "Upload a file", text: "Again" });
    expect(await call("list_reports", { promptId: "Upload a file" })).toEqual({
      error: "bad_request",
      detail: expect.stringMatching(new RegExp(`${promptId}|${id}`)),
    });
    updatePrompt(app.service.ctx, app.a.org, id, { status: "archived" });
    expect((await call("list_reports", { promptId: "Upload a file" })).total).toBeGreaterThan(0);
    expect((await rpc(app, app.b.key).call("list_reports", { promptId: "Upload a file" })).error).toBe("not_found");
  });

  test("are accepted at their limits", async () => {
    for (const [name, args] of Object.entries({
      list_reports: { limit: 100, offset: 100_000, minScore: 0, maxScore: 100, since: "2026-11-21", agent: "explorer" },
      get_session_trace: { slug, limit: 500, fromSeq: 1_000_000_000 },
      get_friction_points: { slug, limit: 1, offset: 0 },
      request_eval: { promptId, runs: 50, idempotencyKey: "~".repeat(255), templateArgs: { a: "x".repeat(2000) } },
      list_eval_requests: { limit: 100, offset: 100_000, status: "superseded" },
    }))
      expect((await world.call(name, args)).error).toBeUndefined();
  });
});

describe("request_eval", () => {
  const asking = (text = "Upload a file. https://docs.example.com") => {
    const app = testApp();
    const prompt = createPrompt(app.service.ctx, app.a.org, { title: "Upload", text, runsPerEval: 3 });
    return { app, ...rpc(app), promptId: prompt.id };
  };

  test("starts as many runs as the prompt sets, and no more for a repeated key", async () => {
    const { call, promptId } = asking();
    const first = await call("request_eval", { promptId, idempotencyKey: "monday" });
    expect(first.runs.length).toBe(3);
    expect(await call("request_eval", { promptId, idempotencyKey: "monday" })).toEqual(first);
    expect(await call("request_eval", { promptId, idempotencyKey: "monday", runs: 2 })).toEqual({
      error: "conflict",
      detail: expect.stringContaining("Idempotency-Key"),
    });
    expect((await call("list_eval_requests", { status: "pending" })).total).toBe(1);
  });

  test("is the same evaluation when repeated, even if the prompt changed or the call is written differently", async () => {
    const { app, call, promptId } = asking();
    const first = await call("request_eval", { promptId, idempotencyKey: "monday" });
    updatePrompt(app.service.ctx, app.a.org, promptId, { runsPerEval: 5 });
    for (const spelled of [{ promptId }, { promptId: promptId.toUpperCase() }, { promptId, templateArgs: {} }])
      expect(await call("request_eval", { ...spelled, idempotencyKey: "monday" })).toEqual(first);
    expect((await call("request_eval", { promptId, idempotencyKey: "tuesday" })).runs.length).toBe(5);
  });

  test("waits for the runs, and reports progress to a client that requests it", async () => {
    const { app, promptId } = asking();
    await app.service.runner.start();
    /** Messages of one call to a client that accepts streams; the response is last. */
    async function hear() {
      const params = {
        name: "request_eval",
        arguments: { promptId, runs: 2, waitSeconds: 50, idempotencyKey: "once" },
        _meta: { progressToken: "mine" },
      };
      const response = await app.app.handle(
        new Request(`${app.baseUrl}/api/mcp`, {
          method: "POST",
          headers: {
            authorization: `Bearer ${app.a.key}`,
            "content-type": "application/json",
            accept: "application/json, text/event-stream",
          },
          body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params }),
        }),
      );
      expect(response.headers.get("content-type")).toBe("text/event-stream");
      const messages = [...(await response.text()).matchAll(/^data: (.+)$/gm)].map(([, data = ""]) => JSON.parse(data));
      const said = messages.filter(({ method }) => method === "notifications/progress").map(({ params }) => params);
      return { said, result: messages.at(-1).result.structuredContent };
    }
    const first = await hear();
    expect(first.said[0]).toEqual({ progressToken: "mine", progress: 0, total: 2, message: "queued 2 runs" });
    const end = { progressToken: "mine", progress: 2, total: 2, message: "2 of 2 runs finished" };
    expect(first.said.at(-1)).toEqual(end);
    expect([first.result.status, first.result.runs[0].report.outcome]).toEqual(["completed", "not_judged"]);
    // This is the same evaluation after it ended.
    const again = await hear();
    const { estimate } = again.result;
    expect(again).toEqual({ said: [first.said[0], end], result: { ...first.result, estimate } });
    expect([first.result.estimate, estimate]).toEqual([
      "At most 30 min. Free.",
      expect.stringMatching(/^About .* in the last 2 runs\). Free\.$/),
    ]);
    await app.service.runner.stop(0);
  });

  test("says what to do about an archived prompt and a missing variable", async () => {
    const { app, call, promptId } = asking("Upload with {{language}}.");
    expect(await call("request_eval", { promptId })).toEqual({
      error: "missing_template_vars",
      detail: expect.stringMatching(/ language\.$/),
    });
    updatePrompt(app.service.ctx, app.a.org, promptId, { status: "archived" });
    expect((await call("request_eval", { promptId, templateArgs: { language: "Go" } })).error).toBe("conflict");
    expect((await call("list_prompts")).total).toBe(0);
    expect((await call("list_prompts", { includeArchived: true })).prompts[0].status).toBe("archived");
  });
});

describe("list_eval_requests", () => {
  test("shows one evaluation, for whoever waits for it", async () => {
    const world = furnished();
    const { call, promptId, app } = world;
    const { evalRequestId } = await call("request_eval", { promptId, runs: 2 });
    const { evalRequests, total } = await call("list_eval_requests", { evalRequestId });
    expect([total, evalRequests.map(({ id }: { id: string }) => id)]).toEqual([1, [evalRequestId]]);
    for (const caller of [rpc(app, app.b.key), world])
      expect(
        await caller.call("list_eval_requests", { evalRequestId: caller === world ? unknownId : evalRequestId }),
      ).toEqual({ error: "not_found", detail: expect.stringContaining("list_eval_requests") });
  });

  test.each([
    ["pending", []],
    ["completed", [niceGrade, "timeout: too long"]],
    ["failed", ["timeout: too long", "cancelled: by somebody"]],
  ] as const)("derives %s from the runs, in the list and in its filter", async (status, ends) => {
    const app = testApp();
    const { call } = rpc(app);
    const prompt = createPrompt(app.service.ctx, app.a.org, { text: "Upload. https://docs.example.com" });
    if (ends.length > 0) evaluation(app, prompt.id, [...ends]);
    else await call("request_eval", { promptId: prompt.id });
    const { evalRequests } = await call("list_eval_requests", { status });
    expect(evalRequests.map((each: { status: string }) => each.status)).toEqual([status]);
    for (const other of ["pending", "running", "completed", "failed", "superseded"].filter((one) => one !== status))
      expect((await call("list_eval_requests", { status: other })).total).toBe(0);
  });

  test("shows an evaluation as running from the start of the first run to the end of the last", async () => {
    const app = testApp();
    const { call } = rpc(app);
    const prompt = createPrompt(app.service.ctx, app.a.org, { text: "Upload. https://docs.example.com" });
    const [done] = evaluation(app, prompt.id, [niceGrade, "timeout: too long"]);
    app.db.$client.run(
      "update runs set status = 'pending', completed_at = null, failure_cause = null, failure_code = null, failure_detail = null where status = 'failed'",
    );
    const [running] = (await call("list_eval_requests", { status: "running" })).evalRequests;
    expect([running.status, running.runs[0].report.slug]).toEqual(["running", done?.slug]);
  });
});

describe("a key that names the scope write", () => {
  const keyOf = (app: ReturnType<typeof testApp>, scopes: ("read" | "run" | "write")[] | null) =>
    rpc(app, createKey(app.service.ctx, app.a.org, "agent", { scopes }).key);
  const names = async ({ ask }: ReturnType<typeof rpc>) =>
    (await ask("tools/list")).result.tools.map(({ name }: { name: string }) => name);
  const more = ["create_prompt", "update_prompt", "propose_prompts", "cancel_run"];

  test("has four more tools than all others", async () => {
    const app = testApp();
    for (const scopes of [null, ["read"], ["read", "run"]] as const)
      expect(await names(keyOf(app, scopes && [...scopes]))).toEqual(nine);
    expect(await names(keyOf(app, ["read", "run", "write"]))).toEqual([...nine, ...more]);
    const { error } = await keyOf(app, ["read", "run"]).ask("tools/call", { name: "create_prompt", arguments: {} });
    expect(error.code).toBe(-32602);
  });

  test("creates and changes prompts, and cancels runs with the scope run", async () => {
    const app = testApp();
    const { call, ask } = keyOf(app, ["read", "run", "write"]);
    const created = await call("create_prompt", {
      title: "Upload",
      text: "Upload a file.",
      additionalUrls: [{ url: "https://docs.example.com" }],
      runsPerEval: "2",
    });
    const changed = await call("update_prompt", { promptId: "Upload", endGoal: "A file is there." });
    expect([changed.id, changed.endGoal, changed.text]).toEqual([created.id, "A file is there.", "Upload a file."]);
    const declaredChecks = [{ url: "https://api.example.com/a", method: "POST", json: { pointer: "/a", equals: 1 } }];
    await call("update_prompt", { promptId: created.id, declaredChecks });
    expect(getPrompt(app.service.ctx, app.a.org, created.id).declaredChecks).toEqual(declaredChecks as never);
    const wrong = await call("update_prompt", { promptId: created.id, declaredChecks: [{ url: "a", json: 1 }] });
    expect([wrong.error, wrong.detail]).toEqual(["bad_request", expect.stringContaining("declaredChecks.0.url")]);
    const { runs } = await call("request_eval", { promptId: created.id });
    const [{ runId }] = runs;
    expect(runs.length).toBe(2);
    expect((await keyOf(app, ["read", "write"]).call("cancel_run", { runId })).error).toBe("forbidden");
    expect(await call("cancel_run", { runId })).toMatchObject({ runId, status: "failed" });
    expect((await call("cancel_run", { runId })).error).toBe("conflict");
    expect((await call("cancel_run", { runId: unknownId })).error).toBe("not_found");
    expect((await call("update_prompt", { promptId: created.id, status: "archived" })).status).toBe("archived");
    expect((await call("create_prompt", { title: "No text" })).error).toBe("bad_request");
    const foreign = createKey(app.service.ctx, app.b.org, "agent", { scopes: ["read", "write"] }).key;
    expect((await rpc(app, foreign).call("update_prompt", { promptId: created.id })).error).toBe("not_found");
    const { tools } = (await ask("tools/list")).result;
    for (const tool of toEditTools(app.service.ctx)) {
      const listed = tools.find(({ name }: Tool) => name === tool.name);
      expect([tool.name, listed.annotations.readOnlyHint]).toEqual([tool.name, tool.name === "propose_prompts"]);
    }
    const [createTool] = toEditTools(app.service.ctx);
    expect(createTool && [...Value.Errors(createTool.output, created)]).toEqual([]);
    expect(JSON.stringify({ tools: tools.slice(nine.length) }).length).toBeLessThan(10_000);
  });
});

describe("a long report", () => {
  test("is given in pages of friction points and fixes, most severe first, without gaps", async () => {
    const app = testApp();
    const { call } = rpc(app);
    const [friction] = niceGrade.frictions as [(typeof niceGrade.frictions)[number]];
    const [fix] = niceGrade.recommendations as [(typeof niceGrade.recommendations)[number]];
    const ids = Array.from({ length: 25 }, (_, i) => String(i).padStart(16, "0"));
    const { slug } = runWithReport(app, {
      ...niceGrade,
      frictions: ids.map((fingerprint, i) => ({ ...friction, fingerprint, lostPoints: 25 - i, title: `Point ${i}` })),
      recommendations: ids
        .slice(0, 12)
        .map((each, i) => ({ ...fix, priority: i + 1, frictions: [each], title: `${i}` })),
    });
    const points: string[] = [];
    const fixes: string[] = [];
    for (let offset: number | null = 0; offset !== null; ) {
      const page = await call("get_report", { slug, offset });
      points.push(...page.frictionPoints.map(({ fingerprint }: { fingerprint: string }) => fingerprint));
      fixes.push(...page.recommendations.map(({ title }: { title: string }) => title));
      expect([page.frictionPointsTotal, page.recommendationsTotal]).toEqual([25, 12]);
      expect(page.frictionPoints.length).toBeLessThanOrEqual(10);
      offset = page.nextOffset;
    }
    const all = (await app.send("GET", `/api/v1/reports/${slug}`)).body;
    expect(points).toEqual(all.frictionPoints.map(({ fingerprint }: { fingerprint: string }) => fingerprint));
    expect(fixes).toEqual(all.recommendations.map(({ title }: { title: string }) => title));
  });
});

describe("a long result", () => {
  test("has pages that don't repeat or omit rows", async () => {
    const app = testApp();
    const { call } = rpc(app);
    for (let i = 0; i < 5; i++)
      createPrompt(app.service.ctx, app.a.org, { text: `Task ${i}. ${"long ".repeat(i === 2 ? 9000 : 1)}` });
    const seen: string[] = [];
    const pages: number[] = [];
    for (let offset: number | null = 0; offset !== null; ) {
      const page = await call("list_prompts", { limit: 4, offset });
      seen.push(...page.prompts.map(({ text }: { text: string }) => text.slice(0, 6)));
      pages.push(page.prompts.length);
      offset = page.nextOffset;
    }
    expect(seen).toEqual(["Task 4", "Task 3", "Task 2", "Task 1", "Task 0"]);
    // The third is too long to fit with two others.
    expect(pages).toEqual([2, 1, 2]);
  });

  test("is a trace whose long texts and events are shortened, and continues from there", async () => {
    const { app, call, slug } = furnished();
    app.db.$client.run(`update session_events set data = json_set(data, '$.text', '${"word ".repeat(1000)}')`);
    const first = await call("get_session_trace", { slug, limit: 500 });
    expect(first.events.length).toBeLessThan(25);
    expect(first.events[0].text).toEndWith("… (3000 characters omitted)");
    const next = await call("get_session_trace", { slug, fromSeq: first.nextSeq });
    expect(next.events[0].seq).toBe(first.events.at(-1).seq + 1);
    expect(first.total).toBe(121);
    app.db.$client.run(`update session_events set data = json_set(data, '$.text', '${"x".repeat(1999)}𝕏')`);
    const { events } = await call("get_session_trace", { slug, limit: 1 });
    expect(events[0].text).toBe(`${"x".repeat(1999)}\ufffd… (1 characters omitted)`);
  });
});

describe("friction over the reports of a prompt", () => {
  test("is merged, with its state", async () => {
    const app = testApp();
    const { call } = rpc(app);
    const { id: promptId } = createPrompt(app.service.ctx, app.a.org, { text: "Upload. https://docs.example.com" });
    const [friction] = niceGrade.frictions as [(typeof niceGrade.frictions)[number]];
    const withPoints = (...names: string[]) => ({
      ...niceGrade,
      recommendations: [],
      frictions: names.map((name) => ({ ...friction, fingerprint: name.padEnd(16, "0"), title: name })),
    });
    const slugs = [
      withPoints("fixed", "back", "lasting"),
      withPoints("lasting"),
      withPoints("back", "lasting", "fresh"),
    ].map((grade) => evaluation(app, promptId, [grade])[0]?.slug);
    const { frictionPoints } = await call("get_friction_points", { promptId });
    expect(
      frictionPoints.map(({ title, state, seenIn, slug }: Point) => [title, state, seenIn, slugs.indexOf(slug)]),
    ).toEqual([
      ["lasting", "open", { runs: 3, of: 3 }, 2],
      ["back", "regressed", { runs: 2, of: 3 }, 2],
      // A fixed friction point is no longer updated, and a new one counts from its first evaluation.
      ["fixed", "fixed", { runs: 1, of: 2 }, 0],
      ["fresh", "new", { runs: 1, of: 1 }, 2],
    ]);
    const fixed = await call("get_friction_points", { promptId, state: "fixed" });
    expect(fixed.frictionPoints.map(({ title }: Point) => title)).toEqual(["fixed"]);
    // This is its current state.
    const first = await call("get_friction_points", { slug: slugs[0] });
    expect(first.frictionPoints.map(({ title, state }: Point) => [title, state])).toEqual([
      ["fixed", "fixed"],
      ["back", "regressed"],
      ["lasting", "open"],
    ]);
  });
});

describe("friction over repeats", () => {
  const app = testApp();
  const { call } = rpc(app);
  const [friction] = niceGrade.frictions as [(typeof niceGrade.frictions)[number]];
  const withPoints = (...names: string[]) => ({
    ...niceGrade,
    recommendations: [],
    frictions: names.map((name) => ({ ...friction, fingerprint: name.padEnd(16, "0"), title: name })),
  });
  const newPrompt = () => createPrompt(app.service.ctx, app.a.org, { text: "Upload. https://docs.example.com" }).id;
  const states = async (args: object) => {
    const { frictionPoints } = await call("get_friction_points", args);
    return Object.fromEntries(frictionPoints.map(({ title, state, seenIn }: Point) => [title, [state, seenIn]]));
  };

  test("has a state by evaluation: if any run hit it, the evaluation did", async () => {
    const promptId = newPrompt();
    const [none, all] = [withPoints(), withPoints("old", "new")];
    const often = withPoints("old", "gone");
    evaluation(app, promptId, [withPoints("old", "gone", "rare"), none, often, often]);
    const second = evaluation(app, promptId, [all, withPoints("new"), withPoints("new"), none]);
    expect(await states({ promptId })).toEqual({
      old: ["open", { runs: 4, of: 8 }],
      new: ["new", { runs: 3, of: 4 }],
      gone: ["fixed", { runs: 3, of: 8 }],
      // The chance that four runs in a row miss friction that one in four hits is (3/4)⁴ = .32.
      rare: ["new", { runs: 1, of: 8 }],
    });
    expect(await states({ slug: second[2]?.slug })).toEqual({ new: ["new", { runs: 3, of: 4 }] });
    // With eleven misses it would be .042.
    evaluation(app, promptId, [none, none, none, none, none, none]);
    expect((await states({ promptId })).rare).toEqual(["new", { runs: 1, of: 14 }]);
    evaluation(app, promptId, [none]);
    expect((await states({ promptId })).rare).toEqual(["fixed", { runs: 1, of: 15 }]);
  });

  test("keeps the state of the live docs despite a preview", async () => {
    const promptId = newPrompt();
    const urlMap = { "docs.example.com": "https://preview-42.example.com" };
    evaluation(app, promptId, [withPoints("live")]);
    const [preview] = evaluation(app, promptId, [withPoints("preview")], { urlMap });
    expect(await states({ promptId })).toEqual({
      live: ["new", { runs: 1, of: 1 }],
      preview: ["new", { runs: 1, of: 1 }],
    });
    const [live] = evaluation(app, promptId, [withPoints("live")]);
    evaluation(app, promptId, [withPoints("live")], { urlMap });
    expect(await states({ promptId })).toEqual({
      live: ["open", { runs: 2, of: 2 }],
      preview: ["fixed", { runs: 1, of: 2 }],
    });
    expect(await states({ slug: live?.slug })).toEqual({ live: ["open", { runs: 2, of: 2 }] });
    expect(await states({ slug: preview?.slug })).toEqual({ preview: ["fixed", { runs: 1, of: 2 }] });
  });
});

type Point = { title: string; state: string; seenIn: object; slug: string };

describe("the MCP surface", () => {
  test("lists reports as resources in pages, equal to the Markdown for people", async () => {
    const { app, ask, slug, promptId } = furnished();
    const { resources } = (await ask("resources/list")).result;
    expect(resources.length).toBe(2);
    expect(resources[1]).toEqual({
      uri: `evald://reports/${slug}`,
      name: slug,
      title: "Upload a file: C+ (78.4), 2026-11-21",
      mimeType: "text/markdown",
    });
    const [content] = (await ask("resources/read", { uri: resources[1].uri })).result.contents;
    const page = await app.send("GET", `/reports/${slug}.md`);
    expect(content).toEqual({ uri: resources[1].uri, mimeType: "text/markdown", text: page.body });
    evaluation(
      app,
      promptId,
      Array.from({ length: 49 }, () => niceGrade),
    );
    const first = (await ask("resources/list")).result;
    expect([first.resources.length, first.nextCursor]).toEqual([50, "50"]);
    const second = (await ask("resources/list", { cursor: "50" })).result;
    expect([second.resources.length, second.nextCursor]).toEqual([1, undefined]);
    expect((await ask("resources/list", { cursor: "next" })).error.code).toBe(-32602);
    for (const uri of ["evald://reports/none", "evald://reports/%", "file:///etc/passwd"])
      expect((await ask("resources/read", { uri })).error).toMatchObject({ code: -32002, data: { uri } });
  });

  test("has two prompts that match the snapshot, and contain text of the target as data only", async () => {
    const { app, ask, slug, promptId } = furnished();
    const get = async (name: string, args: object) => (await ask("prompts/get", { name, arguments: args })).result;
    expect(stable((await ask("prompts/list")).result, app.baseUrl)).toMatchSnapshot();
    expect(stable(await get("investigate_report", { slug }), app.baseUrl)).toMatchSnapshot();
    const fix = await get("fix_top_friction", { promptId });
    // What people paste works as well.
    const pasted = `${app.baseUrl}/reports/${slug}`;
    expect(await get("investigate_report", { slug: pasted })).toEqual(await get("investigate_report", { slug }));
    expect(await get("fix_top_friction", { promptId: "Upload a file" })).toEqual(fix);
    expect(stable(fix.messages[0], app.baseUrl)).toMatchSnapshot();
    const hostile = runWithReport(app, hostileGrade);
    const { messages } = await get("investigate_report", { slug: hostile.slug });
    expect(messages[0].content.text).not.toContain("alert");
    expect(messages[1].content.resource.text).not.toMatch(/^#+ heading|^## two/m);
  });

  test("has two prompts that request the same evaluation again: variables, hosts and urlMap", async () => {
    const app = testApp();
    const { ask, call } = rpc(app);
    const { id: promptId } = createPrompt(app.service.ctx, app.a.org, {
      text: "Upload with {{language}}. https://docs.example.com/start",
    });
    const [run] = evaluation(app, promptId, [niceGrade], {
      templateArgs: { language: "Go" },
      urlMap: { "docs.example.com": "https://preview.example.com" },
    });
    expect((await call("get_report", { slug: run?.slug })).task.startUrls).toEqual(["https://docs.example.com/start"]);
    for (const [name, args] of [
      ["investigate_report", { slug: run?.slug }],
      ["fix_top_friction", { promptId }],
    ]) {
      const { messages } = (await ask("prompts/get", { name, arguments: args })).result;
      expect(messages[0].content.text).toContain(`promptId ${promptId}, templateArgs {"language":"Go"}, a urlMap`);
      expect(messages[0].content.text).toContain(
        'started at https://docs.example.com/start with the urlMap {"docs.example.com":"https://preview.example.com"}',
      );
      const { text } = messages[1].content.resource;
      expect(text).toContain('- Template arguments: `{"language":"Go"}`');
      expect(text).toContain('- URL map: `{"docs.example.com":"https://preview.example.com"}`');
    }
  });

  test("completes arguments, and names what is wrong in errors", async () => {
    const { ask, slug, second, promptId } = furnished();
    const complete = async (ref: object, name: string, value: string) =>
      (await ask("completion/complete", { ref, argument: { name, value } })).result.completion;
    const investigate = { type: "ref/prompt", name: "investigate_report" };
    expect(await complete(investigate, "slug", "UPLOAD")).toEqual({ values: [second, slug], total: 2, hasMore: false });
    expect((await complete(investigate, "slug", "zzz")).values).toEqual([]);
    for (const none of ["other", "constructor", "__proto__"])
      expect((await complete(investigate, none, "up")).values).toEqual([]);
    const template = { type: "ref/resource", uri: "evald://reports/{slug}" };
    expect((await complete(template, "slug", "upload")).values).toEqual([second, slug]);
    const fix = { type: "ref/prompt", name: "fix_top_friction" };
    expect((await complete(fix, "promptId", "upload")).values).toEqual([promptId]);
    expect((await complete(fix, "promptId", promptId.slice(0, 8))).values).toEqual([promptId]);
    expect((await complete(fix, "promptId", promptId.slice(0, 8).toUpperCase())).values).toEqual([promptId]);
    const wrong = async (method: string, params: object) => (await ask(method, params)).error;
    expect(await wrong("prompts/get", { name: "fix_everything" })).toEqual({
      code: -32602,
      message: expect.stringMatching(/fix_everything.* investigate_report, fix_top_friction/),
    });
    expect(await wrong("prompts/get", { name: "investigate_report" })).toEqual({
      code: -32602,
      message: expect.stringMatching(/investigate_report.* slug/),
    });
    expect(
      (
        await wrong("completion/complete", {
          ref: { type: "ref/prompt", name: "x" },
          argument: { name: "a", value: "" },
        })
      ).code,
    ).toBe(-32602);
  });
});
