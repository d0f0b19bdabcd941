import { afterAll, beforeAll, expect, test } from "bun:test";
import { cpuMsOf } from "../support/cpu.ts";
import { withOwnParts } from "../support/openapi.ts";
import { signedIn } from "../support/people.ts";
import { type ApiDocument, idsOf, probesOn, toolProbes } from "../support/probes.ts";
import { tenants } from "../support/tenants.ts";

// Bodies, fields and queries that are slow to parse, to check or to show. None may cause a 5xx or occupy the event loop.

const isLong = process.env.ATTACK === "long";
/** CPU time of one request in ms. The slowest takes about 30. */
const maxCpuMs = 1000;

/** Texts of these parts are slow for a regular expression that backtracks. */
const parts = [
  ..."a0 ([{.-=/\\'`*<#&|\n\t\u0000é".split(""),
  ...["{{", "{{a", "{{a}}", "http://", "https://a.b/", "a@", "a.", "a:", "a,", "1.", "%25", "<!--", "->", "password="],
  ...["cookie: a=", "eyJ", "| ", "\ud83d\ude00", "❌", "(a+)+$", "-----BEGIN PRIVATE KEY-----"],
];
const fill = (part: string, length: number) => part.repeat(Math.ceil(length / part.length)).slice(0, length);
/** Lengths around those of the limits of fields, and the most that a body may have. */
const lengths = [190, 1990, 19_900, 700_000];

const levels = 100_000;
const bodies: Record<string, string> = {
  "100,000 nested arrays": "[".repeat(levels) + "]".repeat(levels),
  "100,000 nested objects": `${'{"text":'.repeat(levels)}1${"}".repeat(levels)}`,
  "100,000 nested arrays in a field": `{"text":${"[".repeat(levels)}${"]".repeat(levels)}}`,
  "a million open brackets": "[".repeat(1_000_000),
  "300,000 arrays": `[${Array(300_000).fill("[]").join(",")}]`,
  "60,000 fields": JSON.stringify(Object.fromEntries(Array.from({ length: 60_000 }, (_, i) => [`field${i}`, 1]))),
  "the same field 100,000 times": `{${Array(100_000).fill('"text":1').join(",")}}`,
  "a number of a million digits": `[1${"0".repeat(1_000_000)}]`,
  "a million escapes": `["${"\\ud800".repeat(170_000)}"]`,
  "2 MiB": JSON.stringify({ text: "x".repeat(2 * 1024 * 1024) }),
};

type World = ReturnType<typeof tenants>;
let world: World;
let document: ApiDocument;
let ids: ReturnType<typeof idsOf>;
let cookie: string;

beforeAll(async () => {
  world = tenants();
  await world.furnish(world.as(world.a));
  document = withOwnParts((await world.send("GET", "/openapi.json", { headers: { authorization: "" } })).body);
  ids = idsOf(world, world.a.org, 1);
  cookie = (await signedIn(world)).cookie();
});
afterAll(() => world.stop());

const wrong: string[] = [];
let requests = 0;

/** Sends a request, with the API key or as the owner, and notes what is wrong with it. */
async function send(
  name: string,
  path: string,
  { method = "GET", body, type }: { method?: string; body?: string; type?: string } = {},
) {
  const { app, a, baseUrl } = world;
  const headers: Record<string, string> = path.startsWith("/api/")
    ? { authorization: `Bearer ${a.key}` }
    : { cookie, accept: "text/html", origin: new URL(baseUrl).origin };
  if (type) headers["content-type"] = type;
  let status = 0;
  let text = "";
  const ms = await cpuMsOf(async () => {
    const response = await app.handle(new Request(baseUrl + path, { method, headers, body }));
    status = response.status;
    if (response.headers.get("content-type")?.startsWith("text/event-stream")) await response.body?.cancel();
    else text = await response.text();
  });
  requests++;
  const what = `${method} ${path.slice(0, 100)}, ${name}: ${status}, ${Math.round(ms)} ms`;
  if (status >= 500 || status === 0 || ms > maxCpuMs) wrong.push(what);
  return { status, text };
}

const withIds = (path: string) => path.replace(/\{(\w+)\}/g, (_, name: string) => ids[name]?.[0] ?? "x");
const operations = () =>
  Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(() => path.startsWith("/api/"))
      .map(([method, { parameters = [], requestBody }]) => {
        const [schema] = Object.values(requestBody?.content ?? {}).map((each) => each.schema);
        const named = schema?.$ref?.split("/").at(-1);
        const body = named === undefined ? schema : document.components.schemas[named];
        return { method: method.toUpperCase(), path, body, queries: parameters.filter((each) => each.in === "query") };
      }),
  );

let turn = 0;
/** All cases in the long form, else the next `count`. */
function some<T>(all: readonly T[], count: number): T[] {
  return isLong ? [...all] : Array.from({ length: count }, () => all[(turn++ * 7) % all.length] as T);
}
/** The hostile texts for one field. */
function textsFor(most = Number.POSITIVE_INFINITY): [name: string, text: string][] {
  const all = parts.flatMap((part) =>
    lengths.filter((length) => length <= most).map((length) => [part, length] as const),
  );
  return some(all, 1).map(([part, length]) => [`${length} characters of ${JSON.stringify(part)}`, fill(part, length)]);
}

function expectNothingWrong(least: number) {
  expect(wrong.splice(0)).toEqual([]);
  console.log(`hostile input: ${requests} requests`);
  expect(requests).toBeGreaterThan(least);
  requests = 0;
}

test("deep, wide and large bodies are rejected", async () => {
  for (const { method, path, body } of operations()) {
    if (!body || path.endsWith("/archives")) continue;
    for (const [name, sent] of some(Object.entries(bodies), 2)) {
      const { status } = await send(name, withIds(path), { method, body: sent, type: "application/json" });
      // Unknown fields are ignored, and MCP responds to some with an error of JSON-RPC.
      if (path !== "/api/mcp" && !name.includes("field") && ![400, 404, 409, 413].includes(status))
        wrong.push(`${status}: ${method} ${path}, ${name}`);
    }
  }
  const deep = JSON.stringify({
    jsonrpc: "2.0",
    id: 1,
    method: "tools/call",
    params: { name: "list_prompts", arguments: "DEEP" },
  });
  for (const [name, sent] of Object.entries(bodies))
    await send(name, "/api/mcp", {
      method: "POST",
      body: deep.replace('"DEEP"', () => sent),
      type: "application/json",
    });
  const form = Array.from({ length: 60_000 }, (_, i) => `f${i}=${i}`).join("&");
  for (const path of ["/prompts", "/sign-in", "/settings/keys"])
    for (const sent of [form, "x=".repeat(400_000), "&".repeat(900_000), `text=${"%".repeat(900_000)}`])
      await send("large form", path, { method: "POST", body: sent, type: "application/x-www-form-urlencoded" });
  const parts = Array.from(
    { length: 10_000 },
    (_, i) => `--x\r\nContent-Disposition: form-data; name="f${i}"\r\n\r\n1\r\n`,
  );
  await send("10,000 parts", "/prompts", {
    method: "POST",
    body: `${parts.join("")}--x--\r\n`,
    type: "multipart/form-data; boundary=x",
  });
  expectNothingWrong(50);
}, 600_000);

test("no text in a field, a query or a tool takes long", async () => {
  for (const { method, path, body, queries } of operations()) {
    const example = (body?.examples?.[0] ?? {}) as Record<string, unknown>;
    for (const field of path === "/api/mcp" ? [] : Object.keys(body?.properties ?? {}))
      for (const [name, text] of textsFor())
        for (const value of [text, [text], { [text.slice(0, 50)]: text }]) {
          const sent = JSON.stringify({ ...example, [field]: value });
          const { status, text: answer } = await send(`${field}: ${name}`, withIds(path), {
            method,
            body: sent,
            type: "application/json",
          });
          if (status === 201 && path === "/api/v1/prompts") await send(name, `/prompts/${JSON.parse(answer).id}`);
        }
    // The server itself refuses longer headers.
    for (const query of method === "GET" ? queries : [])
      for (const [name, text] of textsFor(1990))
        await send(name, `${withIds(path)}?${query.name}=${encodeURIComponent(text)}`);
  }
  const tools = new Map(
    toolProbes(world.service, ids).map(({ body }) => {
      const { params } = body as { params: { name: string; arguments: object } };
      return [params.name, params.arguments];
    }),
  );
  const listed = (await world.send("POST", "/api/mcp", { body: { jsonrpc: "2.0", id: 1, method: "tools/list" } })).body;
  for (const { name: tool, inputSchema } of listed.result.tools)
    for (const field of Object.keys(inputSchema.properties ?? {}))
      for (const [name, text] of textsFor()) {
        const params = { name: tool, arguments: { ...tools.get(tool), [field]: text } };
        const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params });
        await send(`${tool} ${field}: ${name}`, "/api/mcp", { method: "POST", body, type: "application/json" });
      }
  expectNothingWrong(300);
}, 3_600_000);

test("many words in the docs search and a long URL in a urlMap don't take long", async () => {
  for (const part of ["a.", "a@", "1."]) await send(part, `/docs/search?q=${encodeURIComponent(fill(part, 1990))}`);
  const [promptId] = ids.promptId ?? [];
  const body = JSON.stringify({ urlMap: { "docs.acme.dev": fill("http://", 700_000) } });
  const { status } = await send("a long URL", `/api/v1/prompts/${promptId}/run`, {
    ...{ method: "POST", body, type: "application/json" },
  });
  expect(status).toBe(400);
  expectNothingWrong(3);
});

test("no text in a form takes long", async () => {
  const forms = new Map<string, Record<string, string>>();
  const [prompt] = ids.promptId ?? [];
  for (const page of [
    "/",
    "/prompts/new",
    `/prompts/${prompt}`,
    "/settings",
    "/settings/members",
    "/settings/models",
    "/settings/keys",
    "/account",
    "/search",
    "/compare",
  ]) {
    const { text } = await send("page", page);
    for (const { method, path, form } of probesOn(text))
      if (method === "POST" && form && path !== "/sign-out") forms.set(path, form);
  }
  expect(forms.size).toBeGreaterThan(5);
  for (const [path, form] of forms)
    for (const field of Object.keys(form))
      for (const [name, text] of textsFor(19_900)) {
        const body = new URLSearchParams({ ...form, [field]: text }).toString();
        await send(`${field}: ${name}`, path, { method: "POST", body, type: "application/x-www-form-urlencoded" });
      }
  for (const place of ["/search?q=", "/reports?q=", "/runs?q=", "/prompts?q=", "/docs/search?q="])
    for (const [name, text] of textsFor(1990)) await send(name, place + encodeURIComponent(text));
  expectNothingWrong(50);
}, 3_600_000);
