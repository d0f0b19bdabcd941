import { beforeAll, describe, expect, test } from "bun:test";
import { createProvider } from "../src/providers/providers.ts";
import { scriptedAgent, testApp } from "./support/app.ts";

// The specification, transcribed by hand. Nothing here is taken from the code.

type Field = [name: string, type: string, required: boolean, nullable: boolean];

const promptSummary: Field[] = [
  ["id", "uuid", true, false],
  ["title", "string", true, true],
  ["text", "string", true, false],
  ["endGoal", "string", true, true],
  ["status", "string", true, false],
  ["templateVars", "strings", true, true],
  ["createdAt", "date-time", true, false],
];
const prompt: Field[] = [
  ["id", "uuid", true, false],
  ["title", "string", true, true],
  ["text", "string", true, false],
  ["endGoal", "string", true, true],
  ["status", "string", true, false],
  ["frequency", "string", true, true],
  ["runsPerEval", "integer", true, true],
  ["targetProviderId", "uuid", true, true],
  ["additionalUrls", "objects", true, true],
  ["templateVars", "strings", true, true],
  ["createdAt", "date-time", true, false],
];
const run: Field[] = [
  ["runId", "uuid", true, false],
  ["status", "string", true, false],
  ["report", "object", true, true],
  ["statusUrl", "uri", true, false],
  ["runUrl", "uri", true, false],
  ["completedAt", "date-time", true, true],
  ["createdAt", "date-time", true, false],
  ["failureReason", "string", true, true],
  ["templateArgs", "string map", false, true],
  ["prompt", "object", true, false],
];
const report: Field[] = [
  ["slug", "string", true, false],
  ["url", "uri", true, false],
  ["score", "0-100", false, true],
  ["grade", "grade", false, true],
  ["metrics", "object", false, false],
  ["dimensions", "objects", false, false],
];
const metrics: Field[] = [
  ["time", "string", true, false],
  ["timeDetail", "string", true, false],
  ["errors", "number", true, false],
  ["errorsDetail", "string", true, false],
  ["toolCalls", "number", true, false],
  ["toolCallsDetail", "string", true, false],
  ["cost", "string", true, false],
  ["costDetail", "string", true, false],
  ["interruptions", "number", true, false],
  ["timeSeconds", "number", false, true],
  ["costUsd", "number", false, true],
];
const dimension: Field[] = [
  ["name", "string", true, false],
  ["weight", "percentage", true, false],
  ["score", "number", true, false],
  ["grade", "string", true, false],
  ["desc", "string", true, false],
];
const runResponse: Field[] = [
  ["runId", "uuid", true, false],
  ["statusUrl", "uri", true, false],
  ["runUrl", "uri", true, false],
];

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const isString = (value: unknown): value is string => typeof value === "string";

const types: Record<string, (value: unknown) => boolean> = {
  string: isString,
  number: (value) => typeof value === "number" && Number.isFinite(value),
  integer: Number.isInteger,
  uuid: (value) => isString(value) && /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(value),
  uri: (value) => isString(value) && /^https?:\/\/[^\s]+$/.test(value) && URL.canParse(value),
  "date-time": (value) => isString(value) && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(value),
  strings: (value) => Array.isArray(value) && value.every(isString),
  object: isObject,
  objects: (value) => Array.isArray(value) && value.every(isObject),
  "string map": (value) => isObject(value) && Object.values(value).every(isString),
  "0-100": (value) => typeof value === "number" && value >= 0 && value <= 100,
  grade: (value) => isString(value) && /^([ABCD][+-]?|F)$/.test(value),
  percentage: (value) => isString(value) && /^\d+(\.\d+)?%$/.test(value),
};

/** The fields of an object that differ from the table. */
function wrong(value: unknown, fields: Field[]): string[] {
  if (!isObject(value)) return [`not an object: ${JSON.stringify(value)}`];
  return fields.flatMap(([name, type, required, nullable]) => {
    if (!(name in value)) return required ? [`${name} is missing`] : [];
    if (value[name] === null) return nullable ? [] : [`${name} is null`];
    return types[type]?.(value[name]) ? [] : [`${name} is no ${type}: ${JSON.stringify(value[name])}`];
  });
}

const isError = (body: unknown) =>
  isObject(body) &&
  isString(body.error) &&
  /^[a-z_]+$/.test(body.error) &&
  (!("detail" in body) || isString(body.detail)) &&
  Object.keys(body).every((key) => key === "error" || key === "detail");

/** One passing check is enough for a score with a dimension. */
const gradedAgent = scriptedAgent(async function* () {
  const check = { id: "link-resolves", group: "link", status: "pass", share: 1, weight: 1 } as const;
  const about = {
    subject: "https://a.test/",
    url: "https://a.test/",
    line: null,
    message: "ok",
    fix: null,
    quote: null,
  };
  yield { type: "tool_call", id: "1", tool: "check_links", input: {} };
  yield { type: "tool_result", id: "1", tool: "check_links", ok: true, output: {}, checks: [{ ...check, ...about }] };
  yield { type: "end", outcome: "not_judged", reason: "scripted" };
});

const t = testApp({ agent: gradedAgent });
const { send } = t;
const nowhere = "01990000-0000-7000-8000-000000000000";
let full: string;
let bare: string;
let runId: string;

beforeAll(async () => {
  const target = createProvider(t.service.ctx, t.a.org, { name: "Tool", docsUrl: "https://docs.tool.test/" });
  full = (
    await send("POST", "/api/v1/prompts", {
      body: {
        title: "Upload",
        text: "Upload with {{language}}",
        endGoal: "{{thing}} is there",
        frequency: "daily",
        runsPerEval: 2,
        targetProviderId: target.id,
        additionalUrls: [{ url: "https://docs.tool.test/llms.txt", kind: "docs", note: { any: [1] } }],
        templateDefaults: { language: "Python", thing: "It" },
      },
    })
  ).body.id;
  bare = (await send("POST", "/api/v1/prompts", { body: { text: "Look around" } })).body.id;
  const accepted = await send("POST", `/api/v1/prompts/${full}/run`, {
    body: { urlMap: {}, templateArgs: { language: "Go", thing: "The file" } },
  });
  runId = accepted.body.runId;
  // A prompt without a start URL: its run fails.
  await send("POST", `/api/v1/prompts/${bare}/run`, { body: { urlMap: {} } });
  await t.runJobs();
});

describe("a response has the documented fields", () => {
  test("if it is a PromptSummary", async () => {
    const { status, body } = await send("GET", "/api/v1/prompts");
    expect([status, body.length]).toEqual([200, 2]);
    for (const item of body) expect(wrong(item, promptSummary)).toEqual([]);
    expect(Object.keys(body[0]).sort()).toEqual(promptSummary.map(([name]) => name).sort());
    expect(body.map((item: { title: unknown; endGoal: unknown; templateVars: unknown }) => item.templateVars)).toEqual([
      null,
      ["language", "thing"],
    ]);
  });

  test("if it is a Prompt with every nullable field set, or with each of them null", async () => {
    const one = await send("GET", `/api/v1/prompts/${full}`);
    const other = await send("GET", `/api/v1/prompts/${bare}`);
    for (const { status, body } of [one, other]) {
      expect(status).toBe(200);
      expect(wrong(body, prompt)).toEqual([]);
    }
    const nullable = prompt.filter(([, , , canBeNull]) => canBeNull).map(([name]) => name);
    expect(nullable.filter((name) => one.body[name] === null)).toEqual([]);
    expect(nullable.filter((name) => other.body[name] !== null)).toEqual([]);
  });

  test("if it is a Run with its report, metrics and dimensions", async () => {
    const { status, body } = await send("GET", `/api/v1/runs/${runId}`);
    expect(status).toBe(200);
    expect(wrong(body, run)).toEqual([]);
    expect(wrong(body.prompt, promptSummary)).toEqual([]);
    expect(wrong(body.report, report)).toEqual([]);
    expect(wrong(body.report.metrics, metrics)).toEqual([]);
    expect(body.report.dimensions.length).toBeGreaterThan(0);
    for (const item of body.report.dimensions) expect(wrong(item, dimension)).toEqual([]);
    expect([body.status, body.failureReason, body.templateArgs]).toEqual([
      "completed",
      null,
      { language: "Go", thing: "The file" },
    ]);
  });

  test("if it is a failed run, which has a reason and no report", async () => {
    const { body } = await send("GET", `/api/v1/runs?promptId=${bare}`);
    expect(body.length).toBe(1);
    expect(wrong(body[0], run)).toEqual([]);
    expect([body[0].status, body[0].report, body[0].templateArgs]).toEqual(["failed", null, null]);
    expect(body[0].failureReason).toStartWith("infrastructure: no start URL");
  });

  test("if it is a RunResponse; the new run is pending and has all nullable fields", async () => {
    const { status, body } = await send("POST", `/api/v1/prompts/${bare}/run`, { body: { urlMap: {} } });
    expect(status).toBe(200);
    expect(wrong(body, runResponse)).toEqual([]);
    expect(Object.keys(body).sort()).toEqual(["runId", "runUrl", "statusUrl"]);
    expect(body.statusUrl).toBe(`http://localhost:3000/api/v1/runs/${body.runId}`);
    const { body: pending } = await send("GET", body.statusUrl);
    expect(wrong(pending, run)).toEqual([]);
    expect([pending.status, pending.report, pending.completedAt, pending.failureReason]).toEqual([
      "pending",
      null,
      null,
      null,
    ]);
  });
});

describe("query parameters", () => {
  const lists = ["/api/v1/prompts", "/api/v1/runs"];
  const table: [query: string, status: number][] = [
    ["limit=1", 200],
    ["limit=1000", 200],
    ["limit=0", 400],
    ["limit=1001", 400],
    ["limit=", 400],
    ["limit=null", 400],
    ["limit=1.0", 400],
    ["limit=1e3", 400],
    ["limit=-1", 400],
    ["limit=%201", 400],
    ["limit=+1", 400],
    ["limit=%2B1", 400],
    ["limit=0x10", 400],
    ["limit=99999999999999999999", 400],
    ["offset=0", 200],
    ["offset=100000", 200],
    ["offset=", 200],
    ["offset=null", 200],
    ["offset=100001", 400],
    ["offset=-1", 400],
    ["offset=1.5", 400],
    ["offset=abc", 400],
    ["limit=1&limit=1", 400],
    ["offset=0&limit=5&offset=0", 400],
    ["other=1&other=2", 400],
    ["other=1", 200],
  ];
  const own: [path: string, query: string, status: number][] = [
    ["/api/v1/prompts", "includeArchived=1", 200],
    ["/api/v1/prompts", "includeArchived=0", 400],
    ["/api/v1/prompts", "includeArchived=", 400],
    ["/api/v1/prompts", "includeArchived=true", 400],
    ["/api/v1/prompts", "includeArchived=1&includeArchived=1", 400],
    ["/api/v1/runs", `promptId=${nowhere}`, 200],
    ["/api/v1/runs", "promptId=", 400],
    ["/api/v1/runs", "promptId=7", 400],
    ["/api/v1/runs", `promptId=${nowhere}x`, 400],
    ["/api/v1/runs", "reportStatus=published", 200],
    ["/api/v1/runs", "reportStatus=draft", 200],
    ["/api/v1/runs", "reportStatus=archived", 200],
    ["/api/v1/runs", "reportStatus=", 400],
    ["/api/v1/runs", "reportStatus=Published", 400],
    ["/api/v1/runs", "reportStatus=published,draft", 400],
  ];
  const cases = [...lists.flatMap((path) => table.map(([query, status]) => [path, query, status] as const)), ...own];

  test.each(cases)("of GET %s are validated: ?%s returns %d", async (path, query, status) => {
    const answer = await send("GET", `${path}?${query}`);
    expect(answer.status).toBe(status);
    if (status === 200) expect(Array.isArray(answer.body)).toBe(true);
    else
      expect(answer.body).toMatchObject({
        error: "bad_request",
        detail: expect.stringContaining(query.split("=")[0] as string),
      });
  });

  test("are explained by an error that says what would be valid", async () => {
    const details = ["limit=0", "offset=x", "includeArchived=2", "limit=1&limit=2"].map(
      async (query) => (await send("GET", `/api/v1/prompts?${query}`)).body,
    );
    expect(await Promise.all(details)).toEqual([
      { error: "bad_request", detail: "Invalid limit: must be an integer from 1 to 1000." },
      { error: "bad_request", detail: "Invalid offset: must be an integer from 0 to 100000." },
      { error: "bad_request", detail: "Invalid includeArchived: must be 1." },
      { error: "bad_request", detail: "Invalid limit: given more than once; send it once." },
    ]);
  });

  test("default to at most 100 rows, newest first, and pages don't overlap", async () => {
    // The clock is stopped, so all 120 have the same time.
    const still = testApp({ now: () => 1_790_000_000_000 });
    const ids: string[] = [];
    for (let i = 0; i < 120; i++)
      ids.push((await still.send("POST", "/api/v1/prompts", { body: { text: `${i}` } })).body.id);
    const idsOf = async (query: string) =>
      (await still.send("GET", `/api/v1/prompts${query}`)).body.map(({ id }: { id: string }) => id);
    ids.reverse();
    expect(await idsOf("")).toEqual(ids.slice(0, 100));
    expect(await idsOf("?limit=1000")).toEqual(ids);
    const pages = await Promise.all([0, 50, 100].map((offset) => idsOf(`?limit=50&offset=${offset}`)));
    expect(pages.flat()).toEqual(ids);
    expect(await idsOf("?offset=120")).toEqual([]);
    const { headers } = await still.send("GET", "/api/v1/prompts?limit=1&offset=119");
    expect(headers.get("x-total-count")).toBe("120");

    for (let i = 0; i < 5; i++) await still.send("POST", `/api/v1/prompts/${ids[i % 2]}/run`, { body: { urlMap: {} } });
    const runs = (await still.send("GET", "/api/v1/runs")).body.map((each: { runId: string }) => each.runId);
    expect(runs).toEqual([...runs].sort().reverse());
    const count = async (query: string) =>
      (await still.send("GET", `/api/v1/runs?${query}`)).headers.get("x-total-count");
    expect([await count("limit=1"), await count(`promptId=${ids[0]}`), await count("reportStatus=draft")]).toEqual([
      "5",
      "3",
      "0",
    ]);
  });

  test("include archived prompts only on request", async () => {
    const { send } = testApp();
    const { id } = (await send("POST", "/api/v1/prompts", { body: { text: "x" } })).body;
    await send("PATCH", `/api/v1/prompts/${id}`, { body: { status: "archived" } });
    const hidden = await send("GET", "/api/v1/prompts");
    const shown = await send("GET", "/api/v1/prompts?includeArchived=1");
    expect([hidden.body, hidden.headers.get("x-total-count")]).toEqual([[], "0"]);
    expect([shown.body[0].status, shown.headers.get("x-total-count")]).toEqual(["archived", "1"]);
    const refused = await send("POST", `/api/v1/prompts/${id}/run`, { body: { urlMap: {} } });
    expect([refused.status, refused.body.error]).toEqual([409, "conflict"]);
  });

  test("filter runs by reportStatus and promptId", async () => {
    const idsOf = async (query: string) =>
      (await send("GET", `/api/v1/runs?${query}`)).body.map((each: { runId: string }) => each.runId);
    expect(await idsOf("reportStatus=published")).toEqual([runId]);
    expect(await idsOf("reportStatus=draft")).toEqual([]);
    expect(await idsOf("reportStatus=archived")).toEqual([]);
    expect(await idsOf(`promptId=${full}`)).toEqual([runId]);
    expect(await idsOf(`promptId=${full.toUpperCase()}`)).toEqual([runId]);
    expect(await idsOf(`promptId=${full}&reportStatus=draft`)).toEqual([]);
    expect(await idsOf(`promptId=${nowhere}`)).toEqual([]);
  });
});

describe("IDs in a path", () => {
  const ids = [nowhere, "7", "not-a-uuid", `${nowhere}0`, "%00", "%zz", "..%2Fruns", "null"];
  test.each(ids)("must exist: %s returns 404", async (id) => {
    const answers = [
      await send("GET", `/api/v1/prompts/${id}`),
      await send("GET", `/api/v1/runs/${id}`),
      await send("POST", `/api/v1/prompts/${id}/run`, { body: { urlMap: {} } }),
    ];
    expect(answers.map(({ status, body }) => [status, body.error])).toEqual(Array(3).fill([404, "not_found"]));
  });

  test("are case-insensitive", async () => {
    expect((await send("GET", `/api/v1/prompts/${full.toUpperCase()}`)).body.id).toBe(full);
    expect((await send("GET", `/api/v1/runs/${runId.toUpperCase()}`)).body.runId).toBe(runId);
  });
});

describe("a RunRequest", () => {
  const args = { language: "Go", thing: "It" };
  const trigger = (body: unknown, headers?: Record<string, string>) =>
    send("POST", `/api/v1/prompts/${full}/run`, { body, headers });

  const urlMaps: [urlMap: unknown, status: number][] = [
    [{ "docs..example": "https://a.example" }, 400],
    [{ ".example": "https://a.example" }, 400],
    [{ [`${"a".repeat(64)}.example`]: "https://a.example" }, 400],
    [{ [`${"a".repeat(63)}.example`]: "https://a.example" }, 200],
    [{ [`${"a.".repeat(127)}example`]: "https://a.example" }, 400],
    [{ "docs.example:0": "https://a.example" }, 400],
    [{ "docs.example.": "https://a.example" }, 200],
    [{ "docs.example.": "https://a.example", "docs.example": "https://b.example" }, 400],
    [{}, 200],
    [{ "docs.example.com": "https://preview.example.com" }, 200],
    [{ "docs.example.com": "http://preview.example.com:8080/base/path?x=1" }, 200],
    [{ "DOCS.example.com": "HTTPS://preview.example.com" }, 200],
    [{ "docs.example.com:8443": "https://preview.example.com" }, 200],
    [{ "https://docs.example.com": "https://preview.example.com" }, 200],
    [{ "https://docs.example.com:8443/": "http://127.0.0.1:4000" }, 200],
    [null, 400],
    [[], 400],
    [["https://preview.example.com"], 400],
    ["https://preview.example.com", 400],
    [{ "docs.example.com": 1 }, 400],
    [{ "docs.example.com": null }, 400],
    [{ "docs.example.com": "" }, 400],
    [{ "docs.example.com": "preview.example.com" }, 400],
    [{ "docs.example.com": "/path" }, 400],
    [{ "docs.example.com": "//preview.example.com" }, 400],
    [{ "docs.example.com": "mailto:a@example.com" }, 400],
    [{ "docs.example.com": "ftp://preview.example.com" }, 400],
    [{ "docs.example.com": "javascript:alert(1)" }, 400],
    [{ "docs.example.com": "file:///etc/passwd" }, 400],
    [{ "docs.example.com": "data:text/plain,x" }, 400],
    [{ "docs.example.com": "https://user@preview.example.com" }, 400],
    [{ "docs.example.com": "https://user:word@preview.example.com" }, 400],
    [{ "docs.example.com": "https://:word@preview.example.com" }, 400],
    [{ "docs.example.com": "https://" }, 400],
    [{ "": "https://preview.example.com" }, 400],
    [{ "docs.example.com/path": "https://preview.example.com" }, 400],
    [{ "https://docs.example.com/path": "https://preview.example.com" }, 400],
    [{ "https://user@docs.example.com": "https://preview.example.com" }, 400],
    [{ "https://:word@docs.example.com": "https://preview.example.com" }, 400],
    [{ "ftp://docs.example.com": "https://preview.example.com" }, 400],
    [{ "docs.example.com:99999": "https://preview.example.com" }, 400],
    [{ "not a host": "https://preview.example.com" }, 400],
    [{ "*": "https://preview.example.com" }, 400],
    [{ "-": "https://preview.example.com" }, 400],
    [JSON.parse('{"__proto__": "https://preview.example.com"}'), 400],
    [{ constructor: "https://preview.example.com" }, 200],
  ];
  test.each(urlMaps.map(([urlMap, status]) => [JSON.stringify(urlMap), status] as const))(
    "has a valid urlMap: %s returns %d",
    async (urlMap, status) => {
      const answer = await trigger(`{"urlMap":${urlMap},"templateArgs":${JSON.stringify(args)}}`);
      expect([answer.status, status === 200 ? wrong(answer.body, runResponse) : answer.body.error]).toEqual([
        status,
        status === 200 ? [] : "bad_request",
      ]);
    },
  );

  const lengths: [name: string, value: unknown, status: number][] = [
    ["an empty string", "", 200],
    ["2000 letters", "a".repeat(2000), 200],
    ["2001 letters", "a".repeat(2001), 400],
    ["1000 emoji with 2000 code units", "😀".repeat(1000), 200],
    ["1000 emoji and a letter", `${"😀".repeat(1000)}a`, 400],
    ["2000 letters of 2 bytes", "ä".repeat(2000), 200],
    ["a number", 1, 400],
    ["null", null, 400],
    ["a list", ["a"], 400],
  ];
  test.each(lengths)("has strings of at most 2,000 characters as templateArgs: %s", async (_, value, status) => {
    const answer = await trigger({ urlMap: {}, templateArgs: { ...args, language: value } });
    expect(answer.status).toBe(status);
    if (status === 400)
      expect(answer.body).toEqual({
        error: "bad_request",
        detail: expect.stringContaining("Invalid templateArgs.language: must be"),
      });
    else expect((await send("GET", answer.body.statusUrl)).body.templateArgs.language).toBe(value);
  });

  test("is rejected unless it is a JSON object with a urlMap", async () => {
    const bodies = [
      "",
      "x",
      "{",
      "[]",
      "null",
      "1",
      '"x"',
      "{}",
      '{"urlMap":{},"templateArgs":null}',
      '{"urlMap":{},"templateArgs":[]}',
    ];
    const answers = await Promise.all(bodies.map(async (body) => (await trigger(body)).body));
    const refusal = (detail: string) => ({ error: "bad_request", detail: expect.stringContaining(detail) });
    expect(answers).toEqual([
      refusal("Invalid body: must be JSON"),
      refusal("Invalid body: must be JSON"),
      refusal("Invalid body: must be JSON"),
      refusal("Invalid body: must be an object"),
      refusal("Invalid body: must be an object"),
      refusal("Invalid body: must be an object"),
      refusal("Invalid body: must be an object"),
      refusal("urlMap is required"),
      refusal("Invalid templateArgs: must be"),
      refusal("Invalid templateArgs: must be"),
    ]);
    expect((await trigger(undefined)).body).toEqual(refusal("Invalid body: must be JSON"));
  });

  test("is parsed as JSON regardless of its content type", async () => {
    const body = JSON.stringify({ urlMap: {}, templateArgs: args });
    for (const type of ["application/json; charset=utf-8", "text/plain", "application/x-www-form-urlencoded"])
      expect((await trigger(body, { "content-type": type })).status).toBe(200);
    expect((await trigger("urlMap=x", { "content-type": "application/x-www-form-urlencoded" })).status).toBe(400);
  });

  test("may have unknown fields, which are ignored", async () => {
    const { status, body } = await trigger({ urlMap: {}, templateArgs: args, runs: 50, trigger: "cli", note: [1] });
    expect(status).toBe(200);
    const { evalRequestId } = (await send("GET", body.statusUrl)).body;
    const siblings = (await send("GET", "/api/v1/runs?limit=1000")).body.filter(
      (each: { evalRequestId: string }) => each.evalRequestId === evalRequestId,
    );
    expect(siblings.length).toBe(1);
  });

  test("needs every variable of the prompt; others are ignored", async () => {
    expect((await trigger({ urlMap: {} })).body).toEqual({
      error: "missing_template_vars",
      detail: expect.stringMatching(/ language, thing\.$/),
    });
    expect(await trigger({ urlMap: {}, templateArgs: { thing: "x" } })).toMatchObject({
      status: 400,
      body: { error: "missing_template_vars", detail: expect.stringMatching(/ language\.$/) },
    });
    const { body } = await trigger({ urlMap: {}, templateArgs: { ...args, more: "x" } });
    expect((await send("GET", body.statusUrl)).body.templateArgs).toEqual(args);
  });

  test("above 1 MiB returns 413, with and without a Content-Length", async () => {
    const large = JSON.stringify({ urlMap: {}, more: "a".repeat(1024 * 1024) });
    const told = await trigger(large, { "content-length": String(large.length) });
    const untold = await trigger(large);
    for (const { status, body } of [told, untold])
      expect([status, body]).toEqual([413, { error: "too_large", detail: expect.any(String) }]);
    const fits = JSON.stringify({ urlMap: {}, templateArgs: args, more: "" });
    expect((await trigger(fits.replace('""', `"${"a".repeat(1024 * 1024 - fits.length)}"`))).status).toBe(200);
  });

  test("that is compressed returns 415", async () => {
    for (const encoding of ["gzip", "br", "zstd"])
      expect(await trigger({ urlMap: {}, templateArgs: args }, { "content-encoding": encoding })).toMatchObject({
        status: 415,
        body: { error: "unsupported_media_type", detail: expect.stringContaining(encoding) },
      });
    expect((await trigger({ urlMap: {}, templateArgs: args }, { "content-encoding": "identity" })).status).toBe(200);
  });

  test("with deep nesting is rejected immediately", async () => {
    const deep = (n: number) => `{"urlMap":{},"x":${"[".repeat(n)}${"]".repeat(n)}}`;
    expect((await trigger(deep(100_000))).body).toEqual({
      error: "bad_request",
      detail: expect.stringContaining("64 levels"),
    });
    expect((await trigger(deep(60))).body.error).toBe("missing_template_vars");
  });
});

describe("authentication", () => {
  const bad: [name: string, headers: Record<string, string>][] = [
    ["no credential", { authorization: "" }],
    ["another scheme", { authorization: "Basic YTpi" }],
    ["no key", { authorization: "Bearer" }],
    ["a malformed key", { authorization: "Bearer x" }],
    ["an unknown key", { authorization: `Bearer evals_${"0".repeat(36)}` }],
    ["two credentials", { authorization: `Bearer ${t.a.key}, Bearer ${t.b.key}` }],
    ["two words", { authorization: `Bearer ${t.a.key} ${t.b.key}` }],
    ["the key without a scheme", { authorization: t.a.key }],
  ];
  const requests: [method: string, path: string, body?: string][] = [
    ["GET", "/api/v1/prompts"],
    ["GET", "/api/v1/prompts?limit=0&limit=0"],
    ["GET", `/api/v1/prompts/${nowhere}`],
    ["POST", `/api/v1/prompts/${nowhere}/run`, "{"],
    ["POST", `/api/v1/prompts/${nowhere}/run`, "x".repeat(1024 * 1024 + 1)],
    ["GET", "/api/v1/runs?promptId=x"],
    ["GET", `/api/v1/runs/${nowhere}`],
    ["GET", "/api/nothing"],
    ["DELETE", "/api/v1/prompts"],
    ["POST", "/api/mcp", "{}"],
  ];
  test.each(bad)("fails with 401, whatever else is wrong: %s", async (_, headers) => {
    for (const [method, path, body] of requests) {
      const length: Record<string, string> = body === undefined ? {} : { "content-length": String(body.length) };
      const answer = await send(method, path, { body, headers: { ...headers, ...length } });
      expect([path, answer.status, answer.headers.get("www-authenticate"), answer.body.error]).toEqual([
        path,
        401,
        "Bearer",
        "unauthorized",
      ]);
      expect(isError(answer.body)).toBe(true);
    }
  });

  test("fails if the header is missing or repeated", async () => {
    const none = await t.app.handle(new Request("http://localhost:3000/api/v1/prompts"));
    const two = new Headers();
    two.append("authorization", `Bearer ${t.a.key}`);
    two.append("authorization", `Bearer ${t.a.key}`);
    const both = await t.app.handle(new Request("http://localhost:3000/api/v1/prompts", { headers: two }));
    expect([none.status, both.status]).toEqual([401, 401]);
    expect(await none.json()).toEqual({
      error: "unauthorized",
      detail: expect.stringContaining("Authorization: Bearer"),
    });
  });

  test("rejects a key in the query, even with a valid header", async () => {
    const alone = await send("GET", `/api/v1/prompts?key=${t.a.key}`, { headers: { authorization: "" } });
    const beside = await send("GET", `/api/v1/prompts?key=${t.a.key}`);
    expect([alone.status, beside.status]).toEqual([401, 401]);
  });

  test("accepts the scheme in any case", async () => {
    for (const scheme of ["Bearer", "bearer", "BEARER"])
      expect(
        (await send("GET", "/api/v1/prompts", { headers: { authorization: `${scheme} ${t.a.key}` } })).status,
      ).toBe(200);
  });
});

describe("a URL", () => {
  test("with an unknown path or method returns 404 with an Error body", async () => {
    const addresses: [method: string, path: string][] = [
      ...["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"].map((m): [string, string] => [m, "/api/v1/nope"]),
      ...["PUT", "DELETE", "OPTIONS"].map((m): [string, string] => [m, "/api/v1/prompts"]),
      ...["POST", "PUT", "PATCH", "DELETE", "OPTIONS"].map((m): [string, string] => [m, "/api/v1/runs"]),
      ...["POST", "PUT", "OPTIONS"].map((m): [string, string] => [m, `/api/v1/prompts/${full}`]),
      ...["GET", "HEAD", "PUT", "DELETE"].map((m): [string, string] => [m, `/api/v1/prompts/${full}/run`]),
      ["GET", "/api/"],
      ["GET", "/api/v2/prompts"],
      ["GET", "/API/v1/prompts"],
    ];
    for (const [method, path] of addresses) {
      const { status, headers, body } = await send(method, path);
      expect([method, path, status, headers.get("content-type")]).toEqual([
        method,
        path,
        404,
        "application/json;charset=utf-8",
      ]);
      if (method !== "HEAD")
        expect(body).toEqual({ error: "not_found", detail: expect.stringContaining("/openapi.json") });
    }
  });

  test("that can't be decoded is unknown, on every route with a parameter", async () => {
    const { app, send } = testApp();
    const routes = (await app.loadRoutes()).filter(({ path }) => path.includes(":"));
    expect(routes.length).toBeGreaterThan(90);
    for (const { method, path } of routes) {
      const { status } = await send(method, path.replace(/:\w+/g, "%ff"));
      expect([method, path, status]).toEqual([method, path, 404]);
    }
  });

  test("returns JSON", async () => {
    for (const path of ["/api/v1/prompts", `/api/v1/prompts/${full}`, "/api/v1/runs", `/api/v1/runs/${runId}`])
      expect((await send("GET", path)).headers.get("content-type")).toBe("application/json;charset=utf-8");
  });

  test("starts with the base path, as do links", async () => {
    const { send, runJobs } = testApp({ agent: gradedAgent, env: { EVALD_BASE_URL: "https://example.com/evals" } });
    const { id } = (await send("POST", "/evals/api/v1/prompts", { body: { text: "See https://docs.tool.test/" } }))
      .body;
    const { body } = await send("POST", `/evals/api/v1/prompts/${id}/run`, { body: { urlMap: {} } });
    expect(body).toEqual({
      runId: body.runId,
      statusUrl: `https://example.com/evals/api/v1/runs/${body.runId}`,
      runUrl: `https://example.com/evals/runs/${body.runId}`,
    });
    await runJobs();
    const { status, body: done } = await send("GET", body.statusUrl);
    expect([status, done.status, done.statusUrl, done.runUrl, done.report.url]).toEqual([
      200,
      "completed",
      body.statusUrl,
      body.runUrl,
      `https://example.com/evals/reports/${done.report.slug}`,
    ]);
    expect((await send("GET", "/api/v1/prompts")).status).toBe(404);
    expect((await send("GET", "/evals/api/v1/prompts", { headers: { authorization: "" } })).status).toBe(401);
    const { body: document } = await send("GET", "/evals/openapi.json");
    expect(document.servers).toEqual([{ url: "https://example.com/evals" }]);
    expect(Object.keys(document.paths).filter((path) => path.startsWith("/evals/api/"))).toEqual([]);
  });
});

describe("an internal error", () => {
  test("reveals nothing to the caller", async () => {
    const { send, db } = testApp();
    db.$client.close();
    const { status, body } = await send("GET", "/api/v1/prompts");
    expect([status, body]).toEqual([
      500,
      {
        error: "internal",
        detail: expect.stringContaining("X-Request-Id"),
      },
    ]);
  });
});
