import { randomOf } from "./random.ts";

type Schema = {
  $ref?: string;
  type?: string | string[];
  enum?: unknown[];
  const?: unknown;
  anyOf?: Schema[];
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  patternProperties?: Record<string, Schema>;
  additionalProperties?: Schema | boolean;
  format?: string;
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  examples?: unknown[];
};
export type Operation = {
  parameters?: { in: string; name: string; schema: Schema }[];
  requestBody?: { content: Record<string, { schema: Schema }> };
  responses: Record<string, { content?: Record<string, { schema?: Schema }> }>;
};
export type ApiDocument = {
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Schema> };
};
const wild: unknown[] = [
  ...[
    null,
    true,
    [],
    {},
    "",
    " ",
    -1,
    0.5,
    1e21,
    Number.MAX_SAFE_INTEGER + 2,
    "\u0000",
    "\ud800",
    "😀",
    "ｅ\u0301\u202e",
  ],
  ...[
    "a".repeat(10_000),
    "../../etc/passwd",
    "' or 1=1 --",
    "<script>alert(1)</script>",
    "2026-13-45T99:00:00Z",
    "NaN",
  ],
  ...[
    "{{__proto__}}",
    "{{a}} {{",
    "http://169.254.169.254/",
    "javascript:alert(1)",
    "https://[::1",
    "%00",
    "%",
    "\r\nX: y",
  ],
  ...[
    { __proto__: null, constructor: { prototype: 1 } },
    JSON.parse('{"__proto__":{"a":1}}'),
    [[[[[[1]]]]]],
    [null, {}],
  ],
];
const rawBodies = [
  "",
  "{",
  "null",
  "[]",
  '"a"',
  "1e999",
  `${"[".repeat(2000)}${"]".repeat(2000)}`,
  '{"a":1}{"b":2}',
  "\ufeff{}",
];

type Options = {
  seed: number;
  document: ApiDocument;
  /** Existing IDs by the name of their path parameter. */
  ids: Record<string, string[]>;
  baseUrl: string;
  /** API keys to use, the first one most. */
  keys: [string, string];
  /** The cookie of a signed-in person, for pages. */
  cookie: string;
};

/** Requests derived from an API description: valid, almost valid and invalid. The same seed gives the same requests. */
export function createFuzzer({ seed, document, ids, baseUrl, keys, cookie }: Options) {
  const random = randomOf(seed);
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
  const chance = (share: number) => random() < share;
  const everyId = [...new Set(Object.values(ids).flat())];
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  );

  function makeValue(schema: Schema, depth = 0): unknown {
    if (chance(0.08)) return pick(wild);
    if (schema.$ref) return makeValue(document.components.schemas[schema.$ref.split("/").at(-1) ?? ""] ?? {}, depth);
    if (schema.enum) return pick(schema.enum);
    if (schema.const !== undefined) return schema.const;
    if (schema.anyOf) return makeValue(pick(schema.anyOf), depth);
    const type = Array.isArray(schema.type) ? pick(schema.type) : schema.type;
    const { minimum = 0, maximum = 1000, minLength = 0, maxLength = 40 } = schema;
    if (type === "integer" || type === "number")
      return pick([minimum, maximum, minimum - 1, maximum + 1, Math.floor(minimum + random() * (maximum - minimum))]);
    if (type === "boolean") return chance(0.5);
    if (type === "null") return null;
    if (type === "array")
      return Array.from({ length: pick([0, 1, 2, 30]) }, () => makeValue(schema.items ?? {}, depth + 1));
    if (type === "object" || schema.properties) return objectOf(schema, depth);
    if (type !== "string") return pick(wild);
    if (schema.format === "uuid") return chance(0.8) ? pick(everyId) : crypto.randomUUID();
    if (schema.format === "uri")
      return pick(["https://docs.acme.dev/", "http://localhost:1/", "https://a.example/?b=c#d"]);
    const length = pick([minLength, maxLength, maxLength + 1, Math.max(0, minLength - 1), minLength + 3]);
    return pick([...everyId, "a".repeat(length), "daily", "0 0 31 2 *", "2026-11-21", "explorer", "{{thing}}"]);
  }

  function objectOf(
    { properties = {}, required = [], patternProperties, additionalProperties }: Schema,
    depth: number,
  ) {
    const names = Object.keys(properties).filter((name) => required.includes(name) || (depth < 4 && chance(0.3)));
    const entries = names.map((name) => [name, makeValue(properties[name] ?? {}, depth + 1)] as const);
    const map = patternProperties ? Object.values(patternProperties)[0] : additionalProperties;
    const extra =
      map && typeof map === "object"
        ? [[pick(["docs.acme.dev", "thing", "__proto__", ""]), makeValue(map, depth + 1)]]
        : [];
    return Object.fromEntries([...entries, ...extra, ...(chance(0.05) ? [["unknown", pick(wild)]] : [])]);
  }

  const inUrl = (value: unknown) =>
    encodeURIComponent((typeof value === "string" ? value : JSON.stringify(value)).toWellFormed()).slice(0, 3000);

  function toRequest({ path, method, operation }: (typeof operations)[number]): Request {
    const place = path.replace(/\{(\w+)\}/g, (_, name: string) => {
      const own = ids[name] ?? [];
      return inUrl(own.length > 0 && chance(0.75) ? pick(own) : pick([...everyId, ...wild])) || "none";
    });
    const query = (operation.parameters ?? [])
      .filter((each) => each.in === "query" && chance(0.35))
      .flatMap(({ name, schema }) =>
        Array.from({ length: chance(0.05) ? 2 : 1 }, () => `${name}=${inUrl(makeValue(schema))}`),
      );
    const isApi = path.startsWith("/api/");
    const headers: Record<string, string> = {
      accept: pick([
        "*/*",
        "text/html",
        "application/json",
        "text/markdown",
        "text/event-stream",
        "application/json, text/event-stream",
      ]),
      "accept-encoding": pick(["identity", "gzip", "br;q=0, gzip", "*"]),
    };
    if (isApi)
      headers.authorization = chance(0.95)
        ? `Bearer ${chance(0.9) ? keys[0] : keys[1]}`
        : pick(["", "Bearer x", "Basic YTpi"]);
    else Object.assign(headers, { cookie, origin: new URL(baseUrl).origin });
    for (const { name, schema } of (operation.parameters ?? []).filter((each) => each.in === "header" && chance(0.3)))
      headers[name] = JSON.stringify(makeValue(schema))
        .replace(/[^\x21-\x7e]/g, "x")
        .slice(0, 300);
    const url = new URL(place + (query.length > 0 ? `?${query.join("&")}` : ""), baseUrl);
    return new Request(url, { method: method.toUpperCase(), headers, body: bodyOf(operation, method, isApi, headers) });
  }

  function bodyOf({ requestBody }: Operation, method: string, isApi: boolean, headers: Record<string, string>) {
    if (method === "get" || method === "head") return undefined;
    if (!isApi) {
      headers["content-type"] = "application/x-www-form-urlencoded";
      const names = [
        "name",
        "email",
        "role",
        "do",
        "member",
        "org",
        "provider",
        "key",
        "model",
        "days",
        "text",
        "status",
        "promptId",
      ];
      const form = names
        .filter(() => chance(0.5))
        .map((name) => `${name}=${inUrl(chance(0.5) ? pick(everyId) : pick(wild))}`);
      return form.join("&");
    }
    const [[type, described] = ["application/json", undefined]] = Object.entries(requestBody?.content ?? {});
    headers["content-type"] = chance(0.95)
      ? type
      : pick(["text/plain", "application/xml", "application/json; charset=latin1"]);
    if (chance(0.05)) return pick(rawBodies);
    const schema = described?.schema;
    const named = schema?.$ref ? document.components.schemas[schema.$ref.split("/").at(-1) ?? ""] : schema;
    const [example] = (named?.examples ?? []) as Record<string, unknown>[];
    if (!example || chance(0.4)) return JSON.stringify(makeValue(named ?? {}));
    const name = pick(Object.keys(named?.properties ?? example));
    return JSON.stringify({ ...example, [name]: makeValue(named?.properties?.[name] ?? {}) });
  }

  return () => {
    const chosen = pick(operations);
    return { ...chosen, request: toRequest(chosen) };
  };
}
