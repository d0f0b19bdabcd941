import { version } from "../../package.json" with { type: "json" };
import { anyKey } from "../schema.ts";
import { exampleOf, nameOf } from "./examples.ts";
import { type Json, type JsonObject, mergeNull } from "./json-schema.ts";
import { ApiError } from "./operation.ts";
import { hasEtag } from "./responses.ts";

/** The text of each status. `name`: the name of the shared response, if operations share it. */
const statuses: Record<string, { text: string; name?: string }> = {
  200: { text: "OK" },
  201: { text: "Created" },
  304: { name: "NotModified", text: "Not modified: the client has the version with the ETag in If-None-Match" },
  400: { name: "BadRequest", text: "The request is invalid; the detail says why" },
  401: { name: "Unauthorized", text: "The API key is missing, unknown, expired or revoked" },
  403: { name: "Forbidden", text: "The API key lacks the required scope" },
  404: { name: "NotFound", text: "Not found, or it belongs to another organization" },
  409: { name: "Conflict", text: "Conflicts with the current state" },
  413: { name: "TooLarge", text: "The request body is larger than 1 MiB" },
  415: { name: "UnsupportedMediaType", text: "The request body is compressed" },
  429: { name: "TooManyRequests", text: "Too many requests" },
  500: { name: "Internal", text: "Internal error" },
  503: { name: "Unavailable", text: "Temporarily unavailable; retry after the time in Retry-After" },
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
  TotalCount: { description: "Number of items across all pages", schema: { type: "integer", minimum: 0 } },
  Unbuffered: { description: "no: proxies pass each message on immediately", schema: { type: "string", const: "no" } },
} as const;
/** A reference to a response header that several operations share. */
export const header = (name: keyof typeof headers) => ({ $ref: `#/components/headers/${name}` });

/** Replaces a single pattern in the schema of a map with `additionalProperties`, as most generators expect it. Returns other schemas unchanged. */
function withMaps(schema: JsonObject): JsonObject {
  const { patternProperties, ...rest } = schema;
  const [only, ...more] = Object.entries((patternProperties ?? {}) as JsonObject);
  if (!only || more.length > 0) return schema;
  const [pattern, values] = only;
  const isAny = pattern === anyKey;
  return { ...rest, additionalProperties: values, ...(isAny ? {} : { propertyNames: { pattern } }) };
}

const tags = [
  { name: "Prompts", description: "Tasks for agents, each with an end goal" },
  { name: "Providers", description: "Developer tools under test" },
  { name: "Runs", description: "Executions of a prompt by an agent" },
  { name: "Reports", description: "Results of runs: score, friction points and recommended fixes" },
  { name: "OIDC", description: "API keys for CI jobs in exchange for their ID tokens" },
  { name: "Friction", description: "Friction points over time, and the fixes for them" },
  { name: "Deletions", description: "What was deleted, to restore or erase it, and how long data is kept" },
  { name: "Gates", description: "Pass or fail verdicts for CI on whether a change made results worse" },
  { name: "Spending", description: "What models cost, and budgets" },
  { name: "Calibrations", description: "How many planted defects an agent finds" },
  { name: "Experiments", description: "The same prompts in arms that differ in one thing each" },
  { name: "Inbox", description: "What changed and needs attention, over all prompts" },
  { name: "Notifications", description: "Webhooks, Slack messages and email digests, with a log of their deliveries" },
  { name: "MCP", description: "Tools, resources and prompts over the Model Context Protocol" },
  { name: "Workers", description: "Machines that run agents" },
  { name: "Queue", description: "Jobs of all organizations, for operators of the service" },
  { name: "Backups", description: "Backups of the service, for its operators" },
  { name: "System", description: "API description" },
];

/** Turns the document of the plugin into valid OpenAPI 3.1 with tags, servers, and shared schemas and responses. */
export function toOpenApi({ paths }: { paths: object }, baseUrl: string): object {
  const schemas: JsonObject = {};
  const responses: JsonObject = {};
  const examples: JsonObject = {};
  const entries = Object.entries(JSON.parse(JSON.stringify(paths)) as Record<string, Record<string, JsonObject>>);
  const operationsByPath = entries.map(([path, methods]) => {
    const operations = Object.entries(methods).map(([method, each]) => {
      const operation = toOperation(each, schemas);
      return [method, method === "get" && hasEtag(path) ? withEtag(operation) : operation] as const;
    });
    return [path, operations] as const;
  });
  const operations = operationsByPath.flatMap(([, each]) => each.map(([, operation]) => operation));
  // Examples need all schemas, so they come after them.
  for (const operation of operations) {
    addExamples(operation, schemas, examples);
    operation.responses = shareErrors(operation.responses as Record<string, JsonObject>, responses);
  }
  const parameters = shareParameters(operations);
  // An example that is now in `examples` isn't repeated in its schema.
  for (const name of Object.keys(examples)) delete (schemas[name] as JsonObject).examples;
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
    tags,
    paths: Object.fromEntries(operationsByPath.map(([path, operations]) => [path, Object.fromEntries(operations)])),
    components: {
      schemas: sortedByName(schemas),
      responses,
      parameters: sortedByName(parameters),
      examples: sortedByName(examples),
      headers,
      securitySchemes: {
        bearer: { type: "http", scheme: "bearer", description: "API key: evals_ followed by 36 characters" },
      },
    },
  };
}

/** A parameter is shared if at least this many operations have it. */
const minUses = 3;

const sortedByName = (parts: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(parts).sort(([a], [b]) => (a < b ? -1 : 1)));

/** Moves responses that are the same for all operations to `shared`, and replaces them with references. */
function shareErrors(responses: Record<string, JsonObject>, shared: JsonObject): JsonObject {
  const entries = Object.entries(responses).map(([status, response]): [string, Json] => {
    const { name, text } = statuses[status] ?? {};
    if (name === undefined || response.description !== text) return [status, response];
    shared[name] ??= response;
    const isSame = Bun.deepEquals(shared[name], response);
    return [status, isSame ? { $ref: `#/components/responses/${name}` } : response];
  });
  return Object.fromEntries(entries);
}

/** Replaces each parameter that several operations share with a reference. Returns the shared parameters by name. */
function shareParameters(operations: JsonObject[]): JsonObject {
  const all = operations.flatMap(({ parameters = [] }) => parameters as JsonObject[]);
  const uses = Map.groupBy(all, (each) => JSON.stringify(each));
  const shared: JsonObject = {};
  for (const operation of operations) {
    if (!operation.parameters) continue;
    operation.parameters = (operation.parameters as JsonObject[]).map((parameter) => {
      if ((uses.get(JSON.stringify(parameter))?.length ?? 0) < minUses) return parameter;
      const key = `${parameter.name}.${parameter.in}`;
      shared[key] ??= parameter;
      return Bun.deepEquals(shared[key], parameter) ? { $ref: `#/components/parameters/${key}` } : parameter;
    });
  }
  return shared;
}

/** Adds the ETag to JSON responses, and the response for a client that already has the current version. */
function withEtag(operation: JsonObject): JsonObject {
  const { 200: success, ...others } = operation.responses as Record<string, JsonObject>;
  if (!(success?.content as JsonObject | undefined)?.["application/json"]) return operation;
  const ETag = header("ETag");
  const response = { ...success, headers: { ...(success?.headers as JsonObject), ETag } };
  const unchanged = { description: statuses[304]?.text ?? "", headers: { ETag, "X-Request-Id": header("RequestId") } };
  return { ...operation, responses: { 200: response, 304: unchanged, ...others } };
}

const errorContent = { "application/json": { schema: JSON.parse(JSON.stringify(ApiError)) as JsonObject } };

/** Errors that every operation may return. For example, every operation rejects a repeated query key. */
const commonErrors = Object.fromEntries([400, 500, 503].map((status) => [status, { content: errorContent }]));

function toOperation(operation: JsonObject, schemas: JsonObject): JsonObject {
  const { parameters, requestBody, responses, ...rest } = operation;
  return {
    description: `${rest.summary}.`,
    ...rest,
    ...(parameters === undefined ? {} : { parameters: (parameters as JsonObject[]).map((each) => toParameter(each)) }),
    ...(requestBody === undefined ? {} : { requestBody: share(requestBody, schemas) }),
    responses: Object.fromEntries(
      Object.entries({ ...commonErrors, ...(responses as Record<string, JsonObject>) }).map(([status, each]) => [
        status,
        toResponse(status, each, schemas),
      ]),
    ),
  };
}

/** Moves the description from the schema to the parameter, where OpenAPI readers look for it. */
function toParameter(parameter: JsonObject): JsonObject {
  // Shared schemas of parameters are dropped here, because each of them is also in a body.
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
  // `toJsonResponse` writes this description for a schema without one.
  const isGenerated = String(response.description ?? "Response for status").startsWith("Response for status");
  const { headers: ownHeaders, ...shared } = share(response, schemas) as JsonObject;
  return {
    ...shared,
    headers: {
      ...(ownHeaders as JsonObject | undefined),
      "X-Request-Id": header("RequestId"),
      ...(status === "401" && { "WWW-Authenticate": header("Authenticate") }),
      ...(["429", "503"].includes(status) && { "Retry-After": header("RetryAfter") }),
    },
    ...(isGenerated ? { description: statuses[status]?.text ?? "OK" } : {}),
  };
}

/**
 * Adds an example to each JSON body of a request and of a successful response. Removes descriptions that the body repeats. Examples of a shared
 * schema are moved to `examples`.
 */
function addExamples({ requestBody, responses }: JsonObject, schemas: JsonObject, examples: JsonObject): void {
  const successes = Object.entries(responses as Record<string, JsonObject>).filter(([status]) =>
    status.startsWith("2"),
  );
  for (const part of [requestBody as JsonObject | undefined, ...successes.map(([, response]) => response)]) {
    const media = (part?.content as JsonObject | undefined)?.["application/json"] as JsonObject | undefined;
    if (!media || media.example !== undefined) continue;
    const schema = media.schema as JsonObject;
    // The request or response already has this description.
    if (schema.description === part?.description) delete schema.description;
    const example = exampleOf(schema, schemas);
    const name = typeof schema.$ref === "string" ? nameOf(schema.$ref) : undefined;
    if (name === undefined) media.example = example;
    else {
      examples[name] = { value: example };
      media.examples = { [name]: { $ref: `#/components/examples/${name}` } };
    }
  }
}

/** Moves every schema with a title to `schemas` and replaces it with a reference. */
function share(value: Json, schemas: JsonObject): Json {
  if (Array.isArray(value)) return value.map((item) => share(item, schemas));
  if (value === null || typeof value !== "object") return value;
  const copy = Object.fromEntries(
    Object.entries(value)
      // Elysia adds additionalProperties: false to schemas that it has served. Responses may gain fields, so it is removed.
      .filter(([key, item]) => key !== "additionalProperties" || item !== false)
      .map(([key, item]) => [key, key === "examples" ? item : share(item, schemas)]),
  );
  const titled = mergeNull(withMaps(copy));
  const { title, ...schema } = titled;
  if (typeof title !== "string" || !("type" in schema || "anyOf" in schema)) return titled;
  const reference = { $ref: `#/components/schemas/${title}` };
  if (!Array.isArray(schema.type) || !schema.type.includes("null")) {
    schemas[title] = schema;
    return reference;
  }
  // Shared schemas don't include null, because whether a value may be null depends on where the schema is used.
  const types = schema.type.filter((each) => each !== "null");
  schemas[title] = { ...schema, type: types.length === 1 ? (types[0] as Json) : types };
  return { anyOf: [reference, { type: "null" }] };
}
