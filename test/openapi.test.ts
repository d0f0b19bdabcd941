import { expect, test } from "bun:test";
import { validate } from "@readme/openapi-parser";
import { type TSchema, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { ApiError } from "../src/http/operation.ts";
import { Prompt, PromptSummary } from "../src/prompts/schema.ts";
import { Regrade } from "../src/regrades/schema.ts";
import { GradingList, Report, ReportSummary } from "../src/reports/schema.ts";
import { Trace } from "../src/reports/trace-schema.ts";
import { Run, RunResponse } from "../src/runs/schema.ts";
import { testApp } from "./support/app.ts";
import { openApiFile, servedOpenApi, withOwnParts } from "./support/openapi.ts";
import { operationsFile, operationTypes } from "./support/operation-types.ts";

// Requests to an earlier app of the same process must not affect the description.
await testApp().send("GET", "/api/v1/prompts");
const { app, a, send } = testApp({ env: { EVALD_BASE_URL: "https://evals.acme.dev/ax" } });
const document = (await send("GET", "/ax/openapi.json", { headers: { authorization: "" } })).body;

type Operation = { operationId: string; security?: object[]; responses: Record<string, object> };

const described: Record<string, Record<string, Operation>> = withOwnParts(document).paths;
const operations = Object.entries(described).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, each]) => ({ name: `${method.toUpperCase()} ${path}`, ...each })),
);

test("openapi.json is what the service serves", async () => {
  const served = await servedOpenApi();
  expect(served, "`bun run openapi` updates openapi.json").toEqual(await Bun.file(openApiFile).json());
});

test("the CLI's client is typed by openapi.json", async () => {
  const types = await operationTypes(withOwnParts(await Bun.file(openApiFile).json()));
  expect(types, "`bun run openapi` updates the types").toBe(await Bun.file(operationsFile).text());
});

test("openapi.json has at most 450 kB", () => {
  expect(Bun.file(openApiFile).size).toBeLessThan(450_000);
});

test("the description has all operations of the API, and nothing else", async () => {
  expect(document.webhooks).toBeUndefined();
  const served = (await app.loadRoutes())
    .filter(({ method, path }) => method !== "HEAD" && path.startsWith("/ax/api/"))
    .map(({ method, path }) => `${method} ${path.replace(/^\/ax/, "").replace(/:([A-Za-z]+)/g, "{$1}")}`);
  expect(operations.map(({ name }) => name).sort()).toEqual([...new Set(served)].sort());
});

test("the five operations of the specification have the statuses that it lists", () => {
  const statuses = (name: string) => Object.keys(operations.find((each) => each.name === name)?.responses ?? {});
  expect(statuses("GET /api/v1/prompts")).toEqual(["200", "400", "401", "403", "500", "503"]);
  expect(statuses("GET /api/v1/prompts/{promptId}")).toEqual(["200", "400", "401", "403", "404", "500", "503"]);
  // These are added: 400 for a repeated query key, 403 for a key with other scopes, 409 for an archived prompt, 413 for
  // a body above 1 MiB, 503 for a full disk.
  expect(statuses("POST /api/v1/prompts/{promptId}/run")).toEqual([
    "200",
    "400",
    "401",
    "403",
    "404",
    "409",
    "413",
    "415",
    "500",
    "503",
  ]);
  expect(statuses("GET /api/v1/runs")).toEqual(["200", "400", "401", "403", "500", "503"]);
  expect(statuses("GET /api/v1/runs/{runId}")).toEqual(["200", "400", "401", "403", "404", "500", "503"]);
});

test("every operation under /api/ has a unique ID and requires a bearer key, except the token exchange and the description", () => {
  const open = operations.filter(({ security }) => !security?.length);
  expect(open.map(({ name }) => name)).toEqual(["POST /api/v1/oidc/exchange", "GET /api/openapi"]);
  const ids = operations.map(({ operationId }) => operationId);
  expect(ids.filter((id, i) => ids.indexOf(id) !== i)).toEqual([]);
});

test("every JSON body of a request or a success has an example, and every response has the request ID", () => {
  type Part = { content?: Record<string, { example?: unknown }>; headers?: Record<string, unknown> };
  const missing = (operations as (Operation & { name: string; requestBody?: Part })[]).flatMap(
    ({ name, requestBody, responses }) =>
      Object.entries({ ...responses, ...(requestBody && { request: requestBody }) } as Record<string, Part>).flatMap(
        ([status, { content, headers }]) => [
          ...(/^(2|request)/.test(status) &&
          content?.["application/json"] &&
          !("example" in content["application/json"] || "examples" in content["application/json"])
            ? [`${name} ${status}: example`]
            : []),
          ...(status !== "request" && !headers?.["X-Request-Id"] ? [`${name} ${status}: X-Request-Id`] : []),
          ...(["429", "503"].includes(status) && !headers?.["Retry-After"] ? [`${name} ${status}: Retry-After`] : []),
        ],
      ),
  );
  expect(missing).toEqual([]);
});

test("every field of an update can also be set on creation", () => {
  type Body = { content: { "application/json"?: { schema: { $ref?: string } } } };
  const fieldsOf = (path: string, method: "post" | "patch") => {
    const body = document.paths[path]?.[method]?.requestBody as Body | undefined;
    const name = body?.content["application/json"]?.schema.$ref?.split("/").at(-1);
    return name === undefined ? null : Object.keys(document.components.schemas[name].properties);
  };
  const updates = Object.keys(document.paths).flatMap((path) => {
    const [updated, created] = [fieldsOf(path, "patch"), fieldsOf(path.replace(/\/\{\w+\}$/, ""), "post")];
    return updated && created ? [{ path, missing: updated.filter((field) => !created.includes(field)) }] : [];
  });
  expect(updates).toEqual([
    { path: "/api/v1/prompts/{promptId}", missing: [] },
    { path: "/api/v1/providers/{providerId}", missing: [] },
    // The operation creates an agent's report, which has no state.
    { path: "/api/v1/field-friction/{fieldId}", missing: ["state", "reason"] },
    { path: "/api/v1/destinations/{destinationId}", missing: [] },
  ]);
});

test("maps have additionalProperties, and nullable enums list null", () => {
  const wrong: string[] = [];
  const walk = (value: unknown, path: string) => {
    if (value === null || typeof value !== "object") return;
    const { type, enum: values } = value as { type?: unknown; enum?: unknown };
    if ("patternProperties" in value) wrong.push(path);
    if (Array.isArray(type) && Array.isArray(values) && type.includes("null") !== values.includes(null))
      wrong.push(path);
    for (const [key, inner] of Object.entries(value)) walk(inner, `${path}/${key}`);
  };
  walk(document, "");
  expect(wrong).toEqual([]);
});

test("all keywords belong to one dialect", () => {
  const foreign: string[] = [];
  const walk = (value: unknown, path: string) => {
    if (value === null || typeof value !== "object") return;
    for (const [key, inner] of Object.entries(value)) {
      if (key === "$id" || key === "nullable") foreign.push(`${path}/${key}`);
      walk(inner, `${path}/${key}`);
    }
  };
  walk(document, "");
  expect(foreign).toEqual([]);
});

test("another project's parser accepts the document as OpenAPI 3.1", async () => {
  expect(await validate(structuredClone(document))).toMatchObject({ valid: true, warnings: [] });
});

test("every response matches its schema", async () => {
  const service = testApp();
  const prompt = await service.send("POST", "/api/v1/prompts", {
    body: { text: "Read https://docs.example.com/ with {{tool}}" },
  });
  const path = `/api/v1/prompts/${prompt.body.id}`;
  const run = await service.send("POST", `${path}/run`, { body: { urlMap: {}, templateArgs: { tool: "curl" } } });
  await service.runJobs();
  const got = async (where: string) => (await service.send("GET", where)).body;
  const done = await got(`/api/v1/runs/${run.body.runId}`);
  const answers: [TSchema, unknown][] = [
    [Prompt, prompt.body],
    [Prompt, await got(path)],
    [Prompt, (await service.send("PATCH", path, { body: { status: "paused" } })).body],
    [Type.Array(PromptSummary), await got("/api/v1/prompts")],
    [RunResponse, run.body],
    [Run, done],
    [Type.Array(Run), await got("/api/v1/runs")],
    [Report, await got(`/api/v1/reports/${done.report.slug}`)],
    [Type.Array(ReportSummary), await got("/api/v1/reports")],
    [Report, (await service.send("PATCH", `/api/v1/reports/${done.report.slug}`, { body: { status: "draft" } })).body],
    [Trace, await got(`/api/v1/reports/${done.report.slug}/trace`)],
    [GradingList, await got(`/api/v1/reports/${done.report.slug}/gradings`)],
    [Regrade, (await service.send("POST", "/api/v1/regrades", { body: { since: "2026-01-01" } })).body],
    [Type.Array(Regrade), await got("/api/v1/regrades")],
    [ApiError, await got("/api/v1/runs/none")],
  ];
  expect(
    answers.flatMap(([schema, value]) =>
      [...Value.Errors(schema, value)].map(({ path, message }) => `${path}: ${message}`),
    ),
  ).toEqual([]);
});

test("responses with an ETag, and those without a body, are described", async () => {
  const withEtag = operations.filter(({ responses }) => "304" in responses).map(({ name }) => name);
  expect(withEtag).toContain("GET /api/v1/reports/{slug}");
  const plain = operations.filter(({ name, responses }) => /^GET [^{]*$/.test(name) && "200" in responses);
  expect(plain.length).toBeGreaterThan(20);
  for (const { name } of plain) {
    const response = await app.handle(
      new Request(`https://evals.acme.dev/ax${name.slice(4)}`, { headers: { authorization: `Bearer ${a.key}` } }),
    );
    await response.body?.cancel();
    if (response.ok) expect([name, response.headers.has("etag")]).toEqual([name, withEtag.includes(name)]);
  }
  const first = await send("GET", "/ax/openapi.json");
  const etag = first.headers.get("etag") ?? "";
  expect((await send("GET", "/ax/openapi.json", { headers: { "if-none-match": etag } })).status).toBe(304);
  const other = await send("GET", "/ax/api/openapi", { headers: { authorization: "" } });
  expect([other.status, other.body]).toEqual([200, first.body]);
  // Nothing else at that path is open.
  for (const [method, path] of [
    ["POST", "/ax/api/openapi"],
    ["GET", "/ax/api/openapi.json"],
    ["GET", "/ax/api/v1/oidc/exchange"],
  ] as const)
    expect((await send(method, path, { headers: { authorization: "" } })).status).toBe(401);
  const mcp = operations.find(({ name }) => name === "POST /api/mcp");
  expect(Object.keys(mcp?.responses ?? {})).toContain("202");
});
