import type { Json, JsonObject } from "./json-schema.ts";

/** Example values by the name of the property, for schemas without an example. */
const hints: Record<string, Json> = {
  agent: "explorer",
  artifact: "3.webp",
  at: "2026-11-21T09:31:02.000Z",
  by: "Ada Lovelace",
  data: {},
  day: "2026-11-21",
  desc: "Links (100%): 82 of 100, because 82% of the links tested or followed lead to a page.",
  detail: "One of 14 links is dead.",
  doneBy: "Ada Lovelace",
  fingerprint: "3f9c0a17b2d4e6f8",
  from: "2026-11-21",
  grade: "B-",
  hash: "3f9c0a17",
  judge: "anthropic/claude-opus-4-8",
  keyFinding: "The page for the goal was found after 3 pages.",
  model: "anthropic/claude-opus-4-8",
  name: "Docs quality",
  note: "The link points to /reference/clients now.",
  quote: "See the client reference",
  reason: "The means differ by 8.2 points (p = 0.01).",
  score: 82,
  slug: "upload-a-file-7f3a91c2",
  task: "Upload a file with the Python SDK.",
  text: "Upload a file with the Python SDK.",
  timeZone: "Europe/Berlin",
  title: "Dead link to the client reference",
  token: "kQ2v",
  type: "thought",
  version: "1.0.0",
  weight: "15%",
};

const formats: Record<string, string> = {
  uuid: "0199f3a2-11b0-7c64-8a0e-5b1d3a9f7c20",
  "date-time": "2026-11-21T09:31:02.000Z",
  uri: "https://docs.example.com/quickstart",
};

/** The name of the shared part that a reference points to. */
export const nameOf = (reference: string): string => reference.split("/").at(-1) ?? "";

/** An example that matches a schema: its own example, or one that is composed of the examples of its parts. */
export function exampleOf(schema: JsonObject, schemas: JsonObject, name = ""): Json {
  const { examples, $ref, anyOf, properties, additionalProperties, items } = schema;
  if (Array.isArray(examples) && examples.length > 0) return examples[0] as Json;
  if (typeof $ref === "string") return exampleOf(schemas[nameOf($ref)] as JsonObject, schemas, name);
  for (const key of ["const", "default"]) if (schema[key] !== undefined) return schema[key] as Json;
  if (Array.isArray(schema.enum)) return schema.enum[0] as Json;
  if (Array.isArray(anyOf)) return exampleOf(anyOf[0] as JsonObject, schemas, name);
  const type = Array.isArray(schema.type) ? schema.type[0] : schema.type;
  if (type === "object") {
    const fields = Object.entries((properties ?? {}) as Record<string, JsonObject>);
    if (fields.length === 0 && additionalProperties && typeof additionalProperties === "object") return {};
    return Object.fromEntries(fields.map(([key, each]) => [key, exampleOf(each, schemas, key)]));
  }
  if (type === "array") {
    const length = schema.maxItems === 0 ? 0 : Math.max(1, Number(schema.minItems ?? 0));
    return Array.from({ length }, () => exampleOf(items as JsonObject, schemas, name));
  }
  return exampleOfType(schema, String(type), name);
}

function exampleOfType(schema: JsonObject, type: string, name: string): Json {
  const hint = hints[name];
  switch (type) {
    case "string": {
      const format = formats[String(schema.format)];
      if (format) return format;
      return typeof hint === "string" ? hint : "Upload a file";
    }
    case "number":
    case "integer": {
      const [min, max] = [Number(schema.minimum ?? 0), Number(schema.maximum ?? Number.POSITIVE_INFINITY)];
      return Math.max(min, Math.min(max, typeof hint === "number" ? hint : 1));
    }
    case "boolean":
      return false;
    default:
      return null;
  }
}
