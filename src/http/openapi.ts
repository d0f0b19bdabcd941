import { version } from "../../package.json" with { type: "json" };
import { anyKey } from "../schema.ts";
import { isTagged } from "./delivery.ts";
import { exampleOf } from "./examples.ts";
import { type Json, type JsonObject, mergeNull } from "./json-schema.ts";
import { ApiError } from "./operation.ts";

const statusTexts: Record<string, string> = {
  200: "OK",
  304: "Not modified: the client has the version with the ETag in If-None-Match",
  201: "Created",
  400: "The request is invalid; the detail says why",
  401: "The API key is missing, unknown, expired or revoked",
  403: "The API key lacks the required scope",
  404: "Not found, or it belongs to another organization",
  409: "Conflicts with the current state",
  413: "The request body is larger than 1 MiB",
  429: "Too many requests",
  500: "Internal error",
  503: "Temporarily unavailable; retry after the time in Retry-After",
};

const headers = {
  RequestId: {
    description: "ID of the request in the server log",
    schema: { type: "string", format: "uuid" },
  },
  RetryAfter: {
    description: "Seconds to wait before the next attempt",
    schema: { type: "integer", minimum: 1 },
  },
  ETag: { description: "Version of the response, for If-None-Match", schema: { type: "string" } },
  Authenticate: { description: "Always Bearer", schema: { type: "string", const: "Bearer" } },
  Robots: { description: "Search engines must not list the page", schema: { type: "string" } },
  SetCookie: {
    description: "Session of the person, or a message that the next page shows",
    schema: { type: "string" },
  },
  Unbuffered: { description: "no: proxies pass each message on at once", schema: { type: "string", const: "no" } },
} as const;
export const header = (name: keyof typeof headers) => ({ $ref: `#/components/headers/${name}` });

/** A map with keys of any or one shape, as most generators expect it. */
function withMaps({ patternProperties, ...schema }: JsonObject): JsonObject {
  const [only, ...more] = Object.entries((patternProperties ?? {}) as JsonObject);
  if (!only || more.length > 0) return patternProperties === undefined ? schema : { ...schema, patternProperties };
  const [pattern, values] = only;
  const isAny = pattern === anyKey;
  return { ...schema, additionalProperties: values, ...(isAny ? {} : { propertyNames: { pattern } }) };
}

/** Turns the document of the plugin into valid OpenAPI 3.1 with shared schemas, tags and servers. */
export function toOpenApi({ paths }: { paths: object }, baseUrl: string, events: WebhookEvents): object {
  const schemas: JsonObject = {};
  const operations = Object.entries(JSON.parse(JSON.stringify(paths)) as Record<string, Record<string, JsonObject>>);
  const described = operations.map(([path, methods]) => [
    path,
    Object.fromEntries(
      Object.entries(methods).map(([method, each]) => {
        const operation = toOperation(path, each, schemas);
        return [method, method === "get" && isTagged(path) ? withEtag(operation) : operation];
      }),
    ),
  ]);
  for (const [, methods] of described as [string, JsonObject][])
    for (const operation of Object.values(methods)) addExamples(operation as JsonObject, schemas);
  return {
    openapi: "3.1.0",
    info: {
      title: "evald",
      version: "1.0.0",
      description: `Measure how well AI agents can use a developer tool: manage prompts, run evaluations and read reports. Served by evald ${version}.`,
      license: { name: "MIT", identifier: "MIT" },
      contact: { name: "Operator of this service", url: baseUrl },
    },
    servers: [{ url: baseUrl }],
    tags: [
      { name: "Prompts", description: "Tasks for agents, each with an end goal" },
      { name: "Providers", description: "Developer tools under test" },
      { name: "Runs", description: "Executions of a prompt by an agent" },
      { name: "Reports", description: "Results of runs: score, friction points and recommended fixes" },
      { name: "OIDC", description: "API keys for CI jobs in exchange for their ID tokens" },
      { name: "Friction", description: "Friction points over time, and the fixes for them" },
      { name: "Gates", description: "Pass or fail verdicts for CI on whether a change made results worse" },
      {
        name: "Notifications",
        description: "Webhooks, Slack messages and email digests, with a log of their deliveries",
      },
      { name: "MCP", description: "Tools, resources and prompts over the Model Context Protocol" },
      { name: "Workers", description: "Machines that run agents" },
      { name: "System", description: "Health and API description" },
      {
        name: "Pages",
        description: "Web pages and their forms. Only browsers need them, and they may change at any time",
      },
    ],
    paths: Object.fromEntries(described),
    webhooks: toWebhooks(events, schemas),
    components: {
      schemas: Object.fromEntries(Object.entries(schemas).sort(([a], [b]) => (a < b ? -1 : 1))),
      headers,
      securitySchemes: {
        bearer: { type: "http", scheme: "bearer", description: "API key: evals_ followed by 36 characters" },
        session: {
          type: "apiKey",
          in: "cookie",
          name: "evald.session_token",
          description:
            "Cookie of a signed-in person, for pages. Over https its name starts with __Host- or, if the service has a path, __Secure-",
        },
      },
    },
  };
}

/** What webhooks receive, by the type of the event. */
export type WebhookEvents = Record<string, { description: string; data: object; example: object }>;

const webhookHeader = (name: string, description: string) => ({
  ...{ name, in: "header", required: true, description, schema: { type: "string" } },
});
const webhookHeaders = [
  webhookHeader("webhook-id", "ID of the event: the same in all tries and replays, so that you can ignore duplicates"),
  webhookHeader("webhook-timestamp", "Time of the try, in seconds since 1970"),
  webhookHeader("webhook-signature", "Signatures by Standard Webhooks 1.0.0, separated by spaces"),
];

function toWebhooks(events: WebhookEvents, schemas: JsonObject): JsonObject {
  const timestamp = "2026-11-21T09:31:00.000Z";
  return Object.fromEntries(
    Object.entries(events).map(([type, { description, data, example }]) => {
      const schema = {
        type: "object",
        required: ["type", "timestamp", "data"],
        properties: {
          type: { type: "string", const: type },
          timestamp: { type: "string", format: "date-time" },
          data: share(JSON.parse(JSON.stringify(data)) as Json, schemas),
        },
      };
      const content = { "application/json": { schema, example: { type, timestamp, data: example } } };
      const post = {
        ...{
          tags: ["Notifications"],
          operationId: `webhook ${type}`.replace(/[ .]+(\w)/g, (_, next) => next.toUpperCase()),
        },
        ...{ summary: description, description: `${description}.`, security: [], parameters: webhookHeaders },
        requestBody: { required: true, content },
        responses: { "2XX": { description: "Received. Any other status means that it is sent again" } },
      };
      return [type, { post }];
    }),
  ) as unknown as JsonObject;
}

/** Adds the ETag of JSON responses, and the response to a client that has the same version. */
function withEtag(operation: JsonObject): JsonObject {
  const { 200: found, ...others } = operation.responses as Record<string, JsonObject>;
  if (!(found?.content as JsonObject | undefined)?.["application/json"]) return operation;
  const ETag = header("ETag");
  const own = { ...found, headers: { ...(found?.headers as JsonObject), ETag } };
  const unchanged = { description: statusTexts[304] as string, headers: { ETag, "X-Request-Id": header("RequestId") } };
  return { ...operation, responses: { 200: own, 304: unchanged, ...others } };
}

/** Errors that every operation may return; it rejects a repeated query key, for example. Pages return them as pages to browsers. */
function commonErrors(path: string): Record<string, JsonObject> {
  const schema = JSON.parse(JSON.stringify(ApiError)) as JsonObject;
  const isPage = !path.startsWith("/api/");
  const content = { "application/json": { schema }, ...(isPage && { "text/html": { schema: { type: "string" } } }) };
  return { 400: { content }, 500: { content }, 503: { content } };
}

function toOperation(path: string, operation: JsonObject, schemas: JsonObject): JsonObject {
  const { parameters, requestBody, responses, ...rest } = operation;
  return {
    description: `${rest.summary}.`,
    ...rest,
    ...(parameters === undefined ? {} : { parameters: (parameters as JsonObject[]).map((each) => toParameter(each)) }),
    ...(requestBody === undefined ? {} : { requestBody: share(requestBody, schemas) }),
    responses: Object.fromEntries(
      Object.entries({ ...commonErrors(path), ...(responses as Record<string, JsonObject>) }).map(([status, each]) => [
        status,
        toResponse(status, each, schemas),
      ]),
    ),
  };
}

/** Moves the description from the schema to the parameter, where OpenAPI readers look for it. */
function toParameter(parameter: JsonObject): JsonObject {
  const { description, ...schema } = share(parameter.schema ?? {}, {}) as JsonObject;
  const name = String(parameter.name);
  return {
    ...parameter,
    name: parameter.in === "header" ? name.replace(/\b[a-z]/g, (letter) => letter.toUpperCase()) : name,
    ...(description === undefined ? {} : { description }),
    schema,
  };
}

function toResponse(status: string, response: JsonObject, schemas: JsonObject): JsonObject {
  const generated = String(response.description ?? "Response for status").startsWith("Response for status");
  const { headers: own, ...shared } = share(response, schemas) as JsonObject;
  return {
    ...shared,
    headers: {
      ...(own as JsonObject | undefined),
      "X-Request-Id": header("RequestId"),
      ...(status === "401" && { "WWW-Authenticate": header("Authenticate") }),
      ...(["429", "503"].includes(status) && { "Retry-After": header("RetryAfter") }),
    },
    ...(generated ? { description: statusTexts[status] ?? "OK" } : {}),
  };
}

/** Adds an example to each JSON body of a request and of a success. */
function addExamples({ requestBody, responses }: JsonObject, schemas: JsonObject): void {
  const successes = Object.entries(responses as Record<string, JsonObject>).filter(([status]) =>
    status.startsWith("2"),
  );
  for (const part of [requestBody as JsonObject | undefined, ...successes.map(([, response]) => response)]) {
    const media = (part?.content as JsonObject | undefined)?.["application/json"] as JsonObject | undefined;
    if (media) media.example ??= exampleOf(media.schema as JsonObject, schemas);
  }
}

/** Moves every schema with a title to `schemas` and replaces it with a reference. */
function share(value: Json, schemas: JsonObject): Json {
  if (Array.isArray(value)) return value.map((item) => share(item, schemas));
  if (value === null || typeof value !== "object") return value;
  const inner = Object.fromEntries(
    Object.entries(value)
      // Elysia adds additionalProperties: false to schemas it has served, but responses may gain fields.
      .filter(([key, item]) => key !== "additionalProperties" || item !== false)
      .map(([key, item]) => [key, key === "examples" ? item : share(item, schemas)]),
  );
  const whole = mergeNull(withMaps(inner));
  const { title, ...schema } = whole;
  if (typeof title !== "string" || !("type" in schema)) return whole;
  const nullable = Array.isArray(schema.type) && schema.type.includes("null");
  schemas[title] = { ...schema, type: nullable ? "object" : (schema.type as Json) };
  const reference = { $ref: `#/components/schemas/${title}` };
  return nullable ? { anyOf: [reference, { type: "null" }] } : reference;
}
