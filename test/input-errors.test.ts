import { describe, expect, test } from "bun:test";
import { Value } from "@sinclair/typebox/value";
import { rowTypes, schemaOf } from "../src/exchange/rows.ts";
import { invalidInput } from "../src/schema.ts";
import { testApp } from "./support/app.ts";
import { rpc } from "./support/mcp.ts";

// The part of a JSON schema that requests use.
type Schema = {
  type?: string;
  properties?: Record<string, Schema>;
  patternProperties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  anyOf?: Schema[];
  enum?: unknown[];
  additionalProperties?: unknown;
  examples?: unknown[];
  [keyword: string]: unknown;
};

/** An invalid value, the keyword that it breaks, and the place that the error must name. */
type Wrong = { keyword: string; limit?: unknown; value: unknown; place: string[] };

const uuid = "0199f3a1-5d7c-7b1e-9c55-3f6a2f0d8e11";
const hex = "0123456789abcdef";
/** For each pattern, a text that matches it and, at the end, one that doesn't. */
const texts = [
  "2026-11",
  "a",
  "https://docs.test/",
  hex,
  hex.repeat(4),
  uuid,
  "H4sI",
  `${"A".repeat(43)}=`,
  "a.webp",
  "a-01234567",
  "/a",
  " ",
  "a b",
  "é",
  "!",
];
const fits = (pattern: unknown) => (text: string) => new RegExp(String(pattern)).test(text);
const formats: Record<string, string> = {
  uuid,
  uri: "https://docs.test/",
  "date-time": "2026-11-21T09:30:00Z",
};

const without = (value: object, name: string) =>
  Object.fromEntries(Object.entries(value).filter(([key]) => key !== name));
const choiceOf = ({ anyOf = [] }: Schema) => anyOf.filter(({ type }) => type !== "null");

function valid(schema: Schema): unknown {
  if (schema.examples) return schema.examples[0];
  if (schema.anyOf) return valid(schema.anyOf[0] as Schema);
  if (schema.enum) return schema.enum[0];
  switch (schema.type) {
    case "object":
      return Object.fromEntries((schema.required ?? []).map((name) => [name, valid(schema.properties?.[name] ?? {})]));
    case "array":
      return Array.from({ length: Number(schema.minItems ?? 0) }, (_, i) => {
        const item = valid(schema.items ?? {});
        return schema.uniqueItems && typeof item === "string" ? `${item}${i}` : item;
      });
    case "integer":
    case "number":
      return schema.minimum ?? Number(schema.exclusiveMinimum ?? 0) + 1;
    case "boolean":
      return true;
    default:
      return schema.pattern === undefined ? (formats[String(schema.format)] ?? "a") : texts.find(fits(schema.pattern));
  }
}

/** One invalid value for each keyword of a schema and of those in it. */
function* wrongs(schema: Schema): Generator<Wrong> {
  const choices = choiceOf(schema);
  // Any value is allowed.
  if (!schema.type && !schema.enum && !schema.anyOf && !("const" in schema)) return;
  if (schema.anyOf) {
    if (choices.length === 1) yield* wrongs(choices[0] as Schema);
    return;
  }
  const own = (keyword: string, value: unknown, place: string[] = []) =>
    ({ keyword, limit: schema[keyword], value, place }) satisfies Wrong;
  yield own("type", schema.type === "object" ? [] : {});
  if (schema.enum) yield own("enum", "no such value");
  for (const keyword of ["minimum", "exclusiveMinimum", "maximum"].filter((each) => each in schema))
    yield own(keyword, Number(schema[keyword]) + (keyword === "maximum" ? 1 : keyword === "minimum" ? -1 : 0));
  if (schema.minLength) yield own("minLength", "");
  if (schema.maxLength) yield own("maxLength", "a".repeat(Number(schema.maxLength) + 1));
  if (schema.pattern)
    yield own(
      "pattern",
      texts.findLast((text) => !fits(schema.pattern)(text)),
    );
  if (schema.format) yield own("format", "a");
  if (schema.type === "array") yield* wrongArrays(schema, own);
  if (schema.type === "object") yield* wrongObjects(schema, own);
}

function* wrongArrays(schema: Schema, own: (keyword: string, value: unknown) => Wrong): Generator<Wrong> {
  const item = valid(schema.items ?? {});
  if (schema.minItems) yield own("minItems", []);
  if (schema.maxItems) yield own("maxItems", Array(Number(schema.maxItems) + 1).fill(item));
  if (schema.uniqueItems) yield own("uniqueItems", [item, item]);
  for (const each of wrongs(schema.items ?? {}))
    yield {
      ...each,
      value: Array(Number(schema.minItems ?? 1))
        .fill(item)
        .with(0, each.value),
      place: ["0", ...each.place],
    };
}

function* wrongObjects(
  schema: Schema,
  own: (keyword: string, value: unknown, place?: string[]) => Wrong,
): Generator<Wrong> {
  const base = valid(schema) as Record<string, unknown>;
  const names = (count: number) => Array.from({ length: count }, (_, i) => [`a${i}`, ""]);
  if (schema.maxProperties) yield own("maxProperties", Object.fromEntries(names(Number(schema.maxProperties) + 1)));
  for (const name of schema.required ?? []) yield own("required", without(base, name), [name]);
  const [[pattern, map] = []] = Object.entries(schema.patternProperties ?? {});
  const stranger = pattern === undefined ? "!" : (texts.find((text) => !fits(pattern)(text)) ?? "!");
  if (schema.additionalProperties === false) yield own("additionalProperties", { ...base, [stranger]: "" }, [stranger]);
  const key = new RegExp(pattern ?? "").test("any text!") ? "a\nb" : "a";
  for (const [name, inner] of Object.entries(schema.properties ?? (map ? { [key]: map } : {})))
    for (const each of wrongs(inner))
      yield { ...each, value: { ...base, [name]: each.value }, place: [name, ...each.place] };
}

/** What is wrong with an error: it must name the place, say in words what the keyword allows, and be true. */
function objectionTo(detail: string, { keyword, limit, place }: Wrong): string | null {
  const name = place.join(".") || "body";
  if (!detail.startsWith(`Invalid ${name}: `) && !detail.startsWith(`${name} is required: `)) return "another place";
  if (/[\^\\$]|\[\w-|\{\d/.test(detail) || detail.includes("undefined")) return "a regex";
  if (typeof limit === "number" && !(keyword === "minLength" && limit === 1) && !detail.includes(String(limit)))
    return "not the limit";
  const said = detail.slice(detail.indexOf(": ") + 2).replace(/ (of|with) (at (most|least) )?\d+.*/, "");
  const isBare = /^(it )?must be an? (non-empty )?(string|array|object|number|integer)\.?$/.test(said);
  if (isBare && ["pattern", "format", "enum", "additionalProperties"].includes(keyword)) return "only the type";
  if (keyword === "uniqueItems" && !detail.includes("duplicates")) return "only the type";
  return null;
}

const app = testApp({ env: { EVALD_SECRET_KEY: Buffer.alloc(32, 7).toString("base64") } });
const routes = (await app.app.loadRoutes()).filter(({ path }) => path.startsWith("/api/v1/"));

type Failure = { where: string; wrong: Wrong; status: number; detail: string };

/** Sends one request for each invalid value of a part of a request. */
async function sendWrong(part: "body" | "query" | "headers", keywords?: string[]): Promise<Failure[]> {
  const sent: Failure[] = [];
  for (const { method, path, hooks } of routes) {
    const schemas = hooks as Record<string, Schema | undefined>;
    const schema = schemas[part];
    const url = path.replace(/:\w+/g, crypto.randomUUID());
    for (const wrong of schema ? wrongs(schema) : []) {
      // Requests may have fields that evald doesn't know.
      if (wrong.place.join() === "!" || (keywords && !keywords.includes(wrong.keyword))) continue;
      const fields = wrong.value as Record<string, string>;
      const query = part === "query" ? `?${new URLSearchParams(fields)}` : "";
      const body = part === "body" ? wrong.value : schemas.body && valid(schemas.body);
      const answer = await app.send(method, url + query, { body, headers: part === "headers" ? fields : {} });
      sent.push({ where: `${method} ${path}`, wrong, status: answer.status, detail: answer.body.detail });
    }
  }
  return sent;
}

const objections = (sent: Failure[]) =>
  sent.flatMap(({ where, wrong, status, detail }) => {
    const objection = status === 400 ? objectionTo(detail, wrong) : `status ${status}`;
    return objection ? [`${where}: ${wrong.place.join(".")} (${wrong.keyword}): ${objection}: ${detail}`] : [];
  });

const keywordsOf = (sent: Failure[]) => new Set(sent.map(({ wrong }) => wrong.keyword));

describe("an error says in words what is allowed", () => {
  test("in a body, for every keyword of every schema", async () => {
    const sent = await sendWrong("body");
    expect(objections(sent)).toEqual([]);
    expect([...keywordsOf(sent)].sort()).toEqual([
      ...["additionalProperties", "enum", "exclusiveMinimum", "format", "maxItems", "maxLength", "maxProperties"],
      ...["maximum", "minItems", "minLength", "minimum", "pattern", "required", "type", "uniqueItems"],
    ]);
  });

  test("in a query", async () => {
    const keywords = ["enum", "format", "maxLength", "maximum", "minLength", "minimum", "pattern"];
    const sent = await sendWrong("query", keywords);
    expect(objections(sent)).toEqual([]);
    expect([...keywordsOf(sent)].sort()).toEqual(keywords);
  });

  test("in a header", async () => {
    const sent = await sendWrong("headers", ["pattern"]);
    expect(objections(sent)).toEqual([]);
    expect(new Set(sent.map(({ where }) => where)).size).toBe(3);
  });

  test("in the arguments of a tool", async () => {
    const { ask } = rpc(app);
    const { tools } = (await ask("tools/list")).result;
    const sent: Failure[] = [];
    for (const { name, inputSchema } of tools as { name: string; inputSchema: Schema }[])
      for (const wrong of wrongs(inputSchema)) {
        // Fields that a tool doesn't have are rejected by the tool's name.
        if (["", "!"].includes(wrong.place.join())) continue;
        const { isError, content } = (await ask("tools/call", { name, arguments: wrong.value })).result;
        const { error, detail } = JSON.parse(content[0].text);
        sent.push({ where: name, wrong, status: isError && error === "bad_request" ? 400 : 200, detail });
      }
    expect(objections(sent)).toEqual([]);
    expect(keywordsOf(sent)).toContain("pattern");
  });

  test("in a line of an import", () => {
    const sent = rowTypes.flatMap((type) => {
      const schema = schemaOf(type);
      return [...wrongs(schema as Schema)].flatMap((wrong): Failure[] => {
        const error = Value.Errors(schema, wrong.value).First();
        const where = `line of type ${type}`;
        return [{ where, wrong, status: error ? 400 : 200, detail: error ? invalidInput(error, "body").detail : "" }];
      });
    });
    expect(objections(sent)).toEqual([]);
    expect(keywordsOf(sent)).toContain("pattern");
  });
});
