import { version } from "../package.json" with { type: "json" };

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
type JsonObject = { [key: string]: Json };

const statusTexts: Record<string, string> = {
  200: "Done",
  201: "Created",
  400: "Something in the request is not as it must be; the detail names it",
  401: "No API key, or one that is unknown, expired or revoked",
  403: "The caller may not do this; the detail says why",
  404: "There is none, or it is another organisation's",
  409: "It does not go together with what is there already",
  413: "The body is larger than 1 MiB",
  500: "A fault of this service",
  503: "Not now",
};

/** Makes the document that the plugin collects valid OpenAPI 3.1, and adds what no route can know. Schemas with a title are told once. */
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
      description: `How well AI agents get along with a developer tool: prompts, runs, reports. Served by evald ${version}.`,
      license: { name: "MIT", identifier: "MIT" },
      contact: { name: "The operator of this service", url: baseUrl },
    },
    servers: [{ url: baseUrl }],
    tags: [
      { name: "Prompts", description: "Tasks with an end goal" },
      { name: "Providers", description: "Developer tools under evaluation" },
      { name: "Runs", description: "Single executions of a prompt" },
      { name: "Reports", description: "What a run found" },
      { name: "Friction", description: "What stood in agents' way, over time" },
      { name: "Gates", description: "Whether a change made things worse: verdicts for CI" },
      { name: "MCP", description: "For agents: tools, resources and prompts over the Model Context Protocol" },
      { name: "System", description: "The service itself" },
      { name: "Pages", description: "For people" },
    ],
    paths: Object.fromEntries(described),
    components: {
      schemas: Object.fromEntries(Object.entries(schemas).sort(([a], [b]) => (a < b ? -1 : 1))),
      securitySchemes: {
        bearer: { type: "http", scheme: "bearer", description: "An API key: evals_ and 36 characters" },
      },
    },
  };
}

function toOperation(operation: JsonObject, schemas: JsonObject): JsonObject {
  const { parameters, requestBody, responses, ...rest } = operation;
  const answers = responses as Record<string, JsonObject>;
  // A query key that stands twice is refused everywhere.
  const refusal = Object.keys(answers).some((status) => status.startsWith("4")) ? {} : { 400: {} };
  return {
    description: `${rest.summary}.`,
    ...rest,
    ...(parameters === undefined ? {} : { parameters: (parameters as JsonObject[]).map((each) => toParameter(each)) }),
    ...(requestBody === undefined ? {} : { requestBody: share(requestBody, schemas) }),
    responses: Object.fromEntries(
      Object.entries({ ...answers, ...refusal }).map(([status, each]) => [status, toResponse(status, each, schemas)]),
    ),
  };
}

/** The description of a value stands beside its schema, where readers look for it. */
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
    ...(generated ? { description: statusTexts[status] ?? "Done" } : {}),
  };
}

/** Moves every schema with a title to `schemas`, where it is told once, and refers to it. */
function share(value: Json, schemas: JsonObject): Json {
  if (Array.isArray(value)) return value.map((item) => share(item, schemas));
  if (value === null || typeof value !== "object") return value;
  const inner = Object.fromEntries(
    Object.entries(value)
      // Elysia closes schemas that it has served once; fields may be added to an answer at any time.
      .filter(([key, item]) => key !== "additionalProperties" || item !== false)
      .map(([key, item]) => [key, key === "examples" ? item : share(item, schemas)]),
  );
  const whole = orNull(inner);
  const { title, ...schema } = whole;
  if (typeof title !== "string" || !("type" in schema)) return whole;
  const nullable = Array.isArray(schema.type) && schema.type.includes("null");
  schemas[title] = { ...schema, type: nullable ? "object" : (schema.type as Json) };
  const reference = { $ref: `#/components/schemas/${title}` };
  return nullable ? { anyOf: [reference, { type: "null" }] } : reference;
}

/** A value or null is told as one schema of two types, which readers and generators take better than a choice. */
function orNull(schema: JsonObject): JsonObject {
  const { anyOf, ...rest } = schema;
  const [value, none] = Array.isArray(anyOf) && anyOf.length === 2 ? (anyOf as JsonObject[]) : [];
  if (none?.type !== "null" || typeof value?.type !== "string") return schema;
  return { ...value, ...rest, type: [value.type, "null"] };
}
