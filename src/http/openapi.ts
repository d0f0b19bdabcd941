import { version } from "../../package.json" with { type: "json" };
import { type Json, type JsonObject, mergeNull } from "./json-schema.ts";

const statusTexts: Record<string, string> = {
  200: "OK",
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

/** Turns the document of the plugin into valid OpenAPI 3.1 with shared schemas, tags and servers. */
export function toOpenApi({ paths }: { paths: object }, baseUrl: string): object {
  const schemas: JsonObject = {};
  const operations = Object.entries(JSON.parse(JSON.stringify(paths)) as Record<string, Record<string, JsonObject>>);
  const described = operations.map(([path, methods]) => [
    path,
    Object.fromEntries(Object.entries(methods).map(([method, each]) => [method, toOperation(each, schemas)])),
  ]);
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
      { name: "Friction", description: "Friction points over time, and the fixes for them" },
      { name: "Gates", description: "Pass or fail verdicts for CI on whether a change made results worse" },
      { name: "MCP", description: "Tools, resources and prompts over the Model Context Protocol" },
      { name: "System", description: "Health and API description" },
      { name: "Pages", description: "Web pages" },
    ],
    paths: Object.fromEntries(described),
    components: {
      schemas: Object.fromEntries(Object.entries(schemas).sort(([a], [b]) => (a < b ? -1 : 1))),
      securitySchemes: {
        bearer: { type: "http", scheme: "bearer", description: "API key: evals_ followed by 36 characters" },
      },
    },
  };
}

function toOperation(operation: JsonObject, schemas: JsonObject): JsonObject {
  const { parameters, requestBody, responses, ...rest } = operation;
  const documented = responses as Record<string, JsonObject>;
  // Every operation rejects a repeated query key.
  const badRequest = Object.keys(documented).some((status) => status.startsWith("4")) ? {} : { 400: {} };
  return {
    description: `${rest.summary}.`,
    ...rest,
    ...(parameters === undefined ? {} : { parameters: (parameters as JsonObject[]).map((each) => toParameter(each)) }),
    ...(requestBody === undefined ? {} : { requestBody: share(requestBody, schemas) }),
    responses: Object.fromEntries(
      Object.entries({ ...documented, ...badRequest }).map(([status, each]) => [
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
  return {
    ...(share(response, schemas) as JsonObject),
    ...(generated ? { description: statusTexts[status] ?? "OK" } : {}),
  };
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
  const whole = mergeNull(inner);
  const { title, ...schema } = whole;
  if (typeof title !== "string" || !("type" in schema)) return whole;
  const nullable = Array.isArray(schema.type) && schema.type.includes("null");
  schemas[title] = { ...schema, type: nullable ? "object" : (schema.type as Json) };
  const reference = { $ref: `#/components/schemas/${title}` };
  return nullable ? { anyOf: [reference, { type: "null" }] } : reference;
}
