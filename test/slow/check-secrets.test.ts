import { afterAll, beforeAll, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import pino from "pino";
import { emptyFolder } from "../support/executable.ts";
import { serveFakeModel } from "../support/fake-model.ts";
import { call, finish, modelRuns } from "../support/model-runs.ts";
import { processesWith } from "../support/processes.ts";
import { serveSite } from "../support/site.ts";

const secretKey = Buffer.alloc(32, 7).toString("base64");
const core = crypto.randomUUID();
/** Its quotes and spaces must be encoded where it is sent. */
const token = `planted "token" ${core}`;
type Received = { path: string; query: string | null; header: string | null; basic: string | null; body: string };

/** What the product and a foreign server received. */
const received: Received[] = [];
const foreign: Received[] = [];
let isDone = false;
/** An argument of a process that the agent leaves behind, and how many there are during the checks. */
const thief = crypto.randomUUID();
let thieves = -1;
let product: ReturnType<typeof serveSite>;
let other: ReturnType<typeof serveSite>;
let fake: ReturnType<typeof serveFakeModel>;

const read = async (request: Request): Promise<Received> => {
  const { pathname, searchParams } = new URL(request.url);
  const header = request.headers.get("x-token");
  const [, encoded] = /^Basic (.+)$/.exec(request.headers.get("authorization") ?? "") ?? [];
  const basic = encoded === undefined ? null : Buffer.from(encoded, "base64").toString();
  return { path: pathname, query: searchParams.get("key"), header, basic, body: await request.text() };
};

beforeAll(() => {
  other = serveSite({
    "/": async (request) => {
      foreign.push(await read(request));
      return Response.json({ ok: true });
    },
  });
  const rows = async (request: Request) => {
    const seen = await read(request);
    if (isDone) thieves = processesWith(thief).length;
    received.push(seen);
    // A careless API repeats the token.
    return Response.json({ token, seen }, { status: isDone && seen.header === token ? 200 : 401 });
  };
  product = serveSite({
    "/rows": rows,
    "/moved": async (request) => {
      received.push(await read(request));
      return Response.redirect(`${other.url}/`, 307);
    },
    "/leak": { type: "text/plain", body: `The token is ${token}.` },
    "/mark": () => {
      isDone = true;
      return new Response("marked");
    },
  });
  const loot = `: ${thief}; while :; do cat /proc/*/environ >> loot.txt 2>/dev/null; sleep 0.05; done`;
  fake = serveFakeModel({
    scenarios: {
      works: {
        turns: [
          call("fetch_page", { url: `${product.url}/mark` }),
          call("run_command", {
            command: `env; ls -la; touch done; nohup sh -c '${loot}' >/dev/null 2>&1 & until test -s loot.txt; do sleep 0.01; done`,
          }),
          finish("succeeded", "Marked."),
        ],
      },
      reads: { turns: [call("fetch_page", { url: `${product.url}/leak` }), finish("succeeded", "Read.")] },
      rests: { turns: [call("run_command", { command: "env" }), finish("succeeded", "Done.")] },
    },
  });
});
afterAll(() => {
  product.stop();
  other.stop();
  fake.stop();
});

const stored = (folder: string): [string, Buffer][] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .map((path) => [path, readFileSync(path)]);

/** The secret in its usual spellings, and as a command prints it. */
const spellings = [
  ...[core, [...core].reverse().join("")],
  ...[Buffer.from(core).toString("hex"), Buffer.from(token).toString("base64").slice(0, 40)],
];

/** Runs a prompt with checks, and keeps everything that was written. `hosts`: those of the secret once the prompt is created. */
async function run(name: string, declaredChecks: object[], hosts: string[] | null = null) {
  const dataDir = emptyFolder();
  const lines: string[] = [];
  const log = pino({ level: "trace" }, { write: (line: string) => void lines.push(line) });
  const result = await modelRuns(fake).runOf(name, {
    ...{ dataDir, log, env: { EVALD_SECRET_KEY: secretKey } },
    before: async (app) => {
      await app.send("PUT", "/api/v1/secrets/TOKEN", { body: { value: token, hosts } });
    },
    prompt: { declaredChecks },
  });
  const exported = await result.app.send("GET", "/api/v1/export");
  const places: [string, string | Buffer][] = [
    ...stored(dataDir),
    ["log", lines.join("")],
    ["model", JSON.stringify(fake.requests)],
    ["export", JSON.stringify(exported.body)],
    ["report", JSON.stringify([result.report, result.events, result.attempts])],
  ];
  const found = places.flatMap(([place, text]) => spellings.filter((each) => text.includes(each)).map(() => place));
  const results = result.events.filter(
    ({ type, tool }: { type: string; tool: string }) => type === "tool_result" && tool === "check_declared",
  );
  return { ...result, places, found, results };
}
const statusesOf = (result: { checks: { status: string }[] }) => result.checks.map(({ status }) => status);

test("checks send their secrets, verify the goal, and leave them nowhere", async () => {
  const digest = new Bun.CryptoHasher("sha256").update(token).digest("hex");
  const { report, results, places, found } = await run("works", [
    {
      url: `${product.url}/rows?key={{secret.TOKEN}}`,
      method: "POST",
      headers: { "X-Token": "{{secret.TOKEN}}", "Content-Type": "application/json" },
      body: '{"key": "{{secret.TOKEN}}"}',
      json: { pointer: "/seen/path", equals: "/rows" },
    },
    {
      command: `test -f done && printf %s "$TOKEN" | sha256sum | grep ${digest} && printf %s "$TOKEN" && printf %s "$TOKEN" | rev`,
      env: { TOKEN: "{{secret.TOKEN}}" },
    },
    // Nothing of the agent is left that could read the variable of a check.
    {
      command: 'test -s loot.txt && ! grep -aqF "$TOKEN" loot.txt && printf %s "$TOKEN" > left.txt',
      env: { TOKEN: "{{secret.TOKEN}}" },
    },
    { file: "done" },
  ]);
  expect(results.map(statusesOf)).toEqual([
    ["fail", "fail", "fail", "fail"],
    ["pass", "pass", "pass", "pass"],
  ]);
  expect(report.outcome).toBe("succeeded");
  expect(thieves).toBe(0);
  const body = `{"key": ${JSON.stringify(token)}}`;
  const sent = { path: "/rows", query: token, header: token, basic: null, body };
  expect(received.splice(0)).toEqual([sent, sent]);
  expect(places.length).toBeGreaterThan(4);
  expect(found).toEqual([]);
}, 60_000);

test("a secret reaches no other origin and no mapped host", async () => {
  const headers = { "X-Token": "{{secret.TOKEN}}" };
  const { results, found } = await run("rests", [
    { url: `${product.url}/moved?key={{secret.TOKEN}}`, method: "POST", headers, body: "{{secret.TOKEN}}" },
    { url: "https://notes.test/api/notes", headers },
  ]);
  expect(received.splice(0).map(({ path, header }) => [path, header])).toEqual([
    ["/moved", token],
    ["/moved", token],
  ]);
  expect(foreign).toEqual([]);
  expect(results.map(statusesOf)).toEqual([
    ["fail", "skip"],
    ["fail", "skip"],
  ]);
  expect(found).toEqual([]);
}, 60_000);

test("a command never gets a secret with hosts: it is filled in on the way to them, and to no other host", async () => {
  const { results, found } = await run(
    "rests",
    [
      // Neither the command nor what it starts has more than the name.
      { command: `printf %s "$TOKEN" | grep -qxF '{{''secret.TOKEN}}'`, env: { TOKEN: "{{secret.TOKEN}}" } },
      {
        command: `curl -sS -o /dev/null -H "X-Token: $TOKEN" ${product.url}/rows && curl -sS -o /dev/null -u "me:$TOKEN" ${product.url}/rows`,
        env: { TOKEN: "{{secret.TOKEN}}" },
      },
      { command: `curl -sSL -H "X-Token: $TOKEN" ${product.url}/moved`, env: { TOKEN: "{{secret.TOKEN}}" } },
      // Its host is one of the run.
      { url: `${other.url}/`, status: 404 },
      { command: `curl -sS -H "X-Token: $TOKEN" ${other.url}/`, env: { TOKEN: "{{secret.TOKEN}}" } },
    ],
    [new URL(product.url).host],
  );
  expect(results.map(statusesOf)).toEqual(Array(2).fill(["fail", "pass", "pass", "pass", "pass"]));
  const reference = "{{secret.TOKEN}}";
  expect(received.splice(0, 3).map(({ header, basic }) => [header, basic])).toEqual([
    [token, null],
    [null, `me:${token}`],
    [token, null],
  ]);
  received.splice(0);
  expect(new Set(foreign.splice(0).map(({ header }) => header))).toEqual(new Set([null, reference]));
  expect(found).toEqual([]);
}, 60_000);

test("a secret that the product shows to an agent is removed from everything that is stored", async () => {
  const { events, found } = await run("reads", [
    { command: "true", env: { TOKEN: "{{secret.TOKEN}}" } },
    { url: `${product.url}/leak`, contains: "The token is" },
  ]);
  expect(JSON.stringify(events)).toContain("The token is");
  expect(new Set(found)).toEqual(new Set(["model"]));
}, 60_000);
