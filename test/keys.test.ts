import { afterAll, describe, expect, spyOn, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pino from "pino";
import { createKey, flushLastUsed, isKeyShaped, listKeys, revokeKey, revokeKeysOfTrust } from "../src/auth/keys.ts";
import { closeDb, openDb } from "../src/db/open.ts";
import { listPrompts } from "../src/prompts/lists.ts";
import { createProvider } from "../src/providers/providers.ts";
import { testApp } from "./support/app.ts";

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const folder = mkdtempSync(join(tmpdir(), "evald-keys-"));
afterAll(() => rmSync(folder, { recursive: true }));

const withKey = (key: string) => ({ headers: { authorization: `Bearer ${key}` } });

test("a key has 42 characters, and keys are unique", () => {
  const { service, a } = testApp();
  const keys = Array.from({ length: 200 }, () => createKey(service.ctx, a.org, "k").key);
  expect(keys.filter((key) => !/^evals_[0-9A-Za-z]{36}$/.test(key) || !isKeyShaped(key))).toEqual([]);
  expect(new Set(keys).size).toBe(200);
  // Every character of the alphabet occurs: 7,200 draws omit none.
  expect(new Set(keys.join("").replaceAll("evals_", "")).size).toBe(62);
});

test("2,000 typos are rejected without a database query", async () => {
  const { send, a, db } = testApp();
  const typos = new Set<string>();
  for (let i = 6; i < 42; i++)
    for (const letter of base62) {
      const typo = a.key.slice(0, i) + letter + a.key.slice(i + 1);
      if (typo !== a.key) typos.add(typo);
    }
  const tried = [...typos].slice(0, 2000);
  expect(tried.length).toBe(2000);
  // From here on, every database query fails and would return a 500.
  db.$client.run("drop table api_keys");
  const statuses = new Set<number>();
  for (const typo of tried) statuses.add((await send("GET", "/api/v1/runs", withKey(typo))).status);
  expect([...statuses]).toEqual([401]);
  expect((await send("GET", "/api/v1/runs", withKey(a.key))).status).toBe(500);
});

test("the data folder contains the digest of a key, never the key", async () => {
  const { send, a, db } = testApp({ dataDir: folder });
  expect((await send("GET", "/api/v1/whoami")).status).toBe(200);
  db.$client.run("pragma wal_checkpoint(truncate)");
  const bytes = Buffer.concat(readdirSync(folder).map((name) => readFileSync(join(folder, name))));
  expect(bytes.includes(a.key)).toBe(false);
  expect(bytes.includes(a.key.slice(6, 36))).toBe(false);
  expect(bytes.includes(new Bun.CryptoHasher("sha256").update(a.key).digest())).toBe(true);
  expect(bytes.includes(a.apiKey.display)).toBe(true);
});

test("the log contains no key, wherever a caller sends it", async () => {
  const key = `evals_${"aB3".repeat(12)}`;
  const script = `
    import { createLog } from ${JSON.stringify(join(import.meta.dir, "../src/log.ts"))};
    createLog({ logLevel: "info", logFormat: "json" }).error({ path: "/api/v1/runs/${key}", err: new Error("no run has the id ${key}") }, "${key}");
  `;
  const child = Bun.spawn([process.execPath, "-e", script], { stdout: "pipe", stderr: "pipe" });
  const log = await new Response(child.stderr).text();
  expect(log).not.toContain(key);
  const line = JSON.parse(log);
  expect([line.path, line.msg, line.err.message]).toEqual([
    "/api/v1/runs/evals_[redacted]",
    "evals_[redacted]",
    "no run has the id evals_[redacted]",
  ]);
});

test("the log contains no secret of a link, however its path is written", async () => {
  const lines: string[] = [];
  const { send } = testApp({ log: pino({ level: "debug" }, { write: (line: string) => lines.push(line) }) });
  const secret = "c2VjcmV0LW9mLWEtbGluaw";
  for (const name of ["setup", "invite", "reset", "shared", "results", "badges", "%62adges"]) {
    const before = lines.length;
    await send("GET", `/${name}/${secret}`);
    await send("POST", `/${name}/${secret}`, { body: {} });
    expect([name, lines.length - before >= 2]).toEqual([name, true]);
  }
  expect(lines.filter((line) => line.includes(secret))).toEqual([]);
});

test("a revoked key is rejected on the next request, other keys are not", async () => {
  const { send, service, a } = testApp();
  const second = createKey(service.ctx, a.org, "second");
  expect((await send("GET", "/api/v1/whoami", withKey(second.key))).status).toBe(200);
  revokeKey(service.ctx, a.org, second.apiKey.id);
  expect((await send("GET", "/api/v1/whoami", withKey(second.key))).body).toEqual({
    error: "unauthorized",
    detail: expect.stringContaining("revoked"),
  });
  expect((await send("GET", "/api/v1/whoami")).status).toBe(200);
});

test("used keys stop working once their trust is removed or another process revokes them", async () => {
  const dataDir = mkdtempSync(join(folder, "revoked-"));
  const { send, service, a } = testApp({ dataDir });
  const ofTrust = createKey(service.ctx, a.org, "of a CI job", { trustId: "trust" });
  const byHand = createKey(service.ctx, a.org, "by hand");
  const statusOf = async (key: string) => (await send("GET", "/api/v1/whoami", withKey(key))).status;
  expect([await statusOf(ofTrust.key), await statusOf(byHand.key)]).toEqual([200, 200]);
  revokeKeysOfTrust(service.ctx, a.org, "trust");
  expect([await statusOf(ofTrust.key), await statusOf(byHand.key)]).toEqual([401, 200]);
  const other = openDb(dataDir);
  revokeKey({ ...service.ctx, db: other }, a.org, byHand.apiKey.id);
  while ((await statusOf(byHand.key)) === 200) await new Promise((resolve) => setImmediate(resolve));
  expect(await statusOf(byHand.key)).toBe(401);
  closeDb(other);
});

test("another organization's key can't be revoked", async () => {
  const { send, service, a, b } = testApp();
  expect(() => revokeKey(service.ctx, b.org, a.apiKey.id)).toThrow(`not_found: No API key has the ID ${a.apiKey.id}.`);
  expect((await send("GET", "/api/v1/whoami")).status).toBe(200);
});

test("a key works until it expires", async () => {
  let time = 1_790_000_000_000;
  const { send, service, a } = testApp({ now: () => time });
  const { key } = createKey(service.ctx, a.org, "short", { lifeMs: 1000 });
  time += 999;
  expect((await send("GET", "/api/v1/whoami", withKey(key))).status).toBe(200);
  time += 1;
  expect((await send("GET", "/api/v1/whoami", withKey(key))).status).toBe(401);
});

test("the last use of a key is stored at most once a minute, and on shutdown", async () => {
  let time = 1_790_000_000_000;
  const { send, service, a, db } = testApp({ now: () => time });
  const lastUse = () => listKeys(service.ctx, a.org)[0]?.lastUsedAt;
  const updates = spyOn(db, "update");
  for (let second = 0; second < 180; second++) {
    expect((await send("GET", "/api/v1/whoami")).status).toBe(200);
    flushLastUsed(service.ctx);
    time += 1000;
  }
  expect(updates).toHaveBeenCalledTimes(3);
  expect(lastUse()).toBe(new Date(1_790_000_120_000).toISOString());
  flushLastUsed(service.ctx, { isStopping: true });
  expect(updates).toHaveBeenCalledTimes(4);
  expect(lastUse()).toBe(new Date(1_790_000_179_000).toISOString());
});

test("whoami returns the organization and the key", async () => {
  const { send, a, b } = testApp();
  expect((await send("GET", "/api/v1/whoami")).body).toEqual({
    organization: { id: a.org, name: "A", timeZone: "UTC" },
    key: { id: a.apiKey.id, name: "test", scopes: null },
  });
  expect((await send("GET", "/api/v1/whoami", withKey(b.key))).body.organization.name).toBe("B");
});

describe("an object of another organization", async () => {
  const { send, a, b, runJobs, service } = testApp();
  const asB = withKey(b.key);
  const text = "CANARY-B at https://canary.test/";
  const promptId = (await send("POST", "/api/v1/prompts", { ...asB, body: { title: "CANARY-B", text } })).body.id;
  const runId = (await send("POST", `/api/v1/prompts/${promptId}/run`, { ...asB, body: { urlMap: {} } })).body.runId;
  await runJobs();
  const { slug } = (await send("GET", `/api/v1/runs/${runId}`, asB)).body.report;
  const providerId = createProvider(service.ctx, b.org, { name: "CANARY-B" }).id;
  const nowhere = "01990000-0000-7000-8000-000000000000";
  const noSlug = "canary-b-00000000";
  const go = { body: { urlMap: {} } };

  const none = {};
  const probes: [method: string, path: string, own: string, unknown: string, body: { body?: unknown }][] = [
    ["GET", "/api/v1/prompts/{id}", promptId, nowhere, none],
    ["PATCH", "/api/v1/prompts/{id}", promptId, nowhere, { body: { title: "mine" } }],
    ["POST", "/api/v1/prompts/{id}/run", promptId, nowhere, go],
    ["GET", "/api/v1/runs/{id}", runId, nowhere, none],
    ["GET", "/api/v1/reports/{id}", slug, noSlug, none],
    ["GET", "/api/v1/reports/{id}/trace", slug, noSlug, none],
  ];
  test.each(probes)("is indistinguishable from a missing one for %s %s", async (method, path, own, unknown, body) => {
    const theirs = await send(method, path.replace("{id}", own), body);
    const nobodys = await send(method, path.replace("{id}", unknown), body);
    expect([theirs.status, nobodys.status]).toEqual([404, 404]);
    expect(JSON.stringify(theirs.body).replaceAll(own, "ID")).toBe(
      JSON.stringify(nobodys.body).replaceAll(unknown, "ID"),
    );
    expect([...theirs.headers.keys()]).toEqual([...nobodys.headers.keys()]);
    // Its owner does find it, so the test is meaningful.
    expect((await send(method, path.replace("{id}", own), { ...body, ...asB })).status).toBe(200);
  });

  test("is in no list, count or select", async () => {
    const answers = [
      await send("GET", "/api/v1/prompts?includeArchived=1"),
      await send("GET", "/api/v1/runs"),
      await send("GET", `/api/v1/runs?promptId=${promptId}`),
      await send("GET", "/api/v1/runs?reportStatus=published"),
    ];
    expect(answers.map(({ status, headers, body }) => [status, headers.get("x-total-count"), body])).toEqual(
      Array(4).fill([200, "0", []]),
    );
    const chosen = await send("POST", "/api/v1/prompts", { body: { text: "x", targetProviderId: providerId } });
    const unknown = await send("POST", "/api/v1/prompts", { body: { text: "x", targetProviderId: nowhere } });
    expect([chosen.status, unknown.status]).toEqual([400, 400]);
    expect(chosen.body.detail.replace(providerId, "ID")).toBe(unknown.body.detail.replace(nowhere, "ID"));
    expect(listPrompts(service.ctx, a.org, { limit: 1, offset: 0, includeArchived: true }).total).toBe(0);
  });
});

describe("a key with scopes", () => {
  const { send, service, a } = testApp();
  const keyOf = (...scopes: string[]) => withKey(createKey(service.ctx, a.org, scopes.join("+"), { scopes }).key);
  const call = (name: string, given: object) => ({
    body: { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: given } },
  });
  const ask = async (headers: Record<string, string>) => {
    const { id } = (await send("POST", "/api/v1/prompts", { body: { text: "See https://docs.test/" } })).body;
    const over = async (name: string, given: object) => {
      const { body } = await send("POST", "/api/mcp", { ...call(name, given), headers });
      return body.result.isError
        ? (body.result.structuredContent?.error ?? JSON.parse(body.result.content[0].text).error)
        : "done";
    };
    const status = async (method: string, path: string, body?: unknown) =>
      (await send(method, path, { body, headers })).status;
    const run = (await send("POST", `/api/v1/prompts/${id}/run`, { body: { urlMap: {} } })).body.runId;
    return {
      whoami: await status("GET", "/api/v1/whoami"),
      list: await status("GET", "/api/v1/runs"),
      "list over MCP": await over("list_prompts", {}),
      run: await status("POST", `/api/v1/prompts/${id}/run`, { urlMap: {} }),
      "run over MCP": await over("request_eval", { promptId: id }),
      cancel: await status("POST", `/api/v1/runs/${run}/cancel`),
      rerun: await status("POST", `/api/v1/runs/${run}/rerun`),
      change: await status("PATCH", `/api/v1/prompts/${id}`, { title: "New" }),
      create: await status("POST", "/api/v1/prompts", { text: "See https://docs.test/" }),
    };
  };

  const whoami = { whoami: 200 };
  const reads = { list: 200, "list over MCP": "done" };
  const noReads = { list: 403, "list over MCP": "forbidden" };
  const runs = { run: 200, "run over MCP": "done", cancel: 200, rerun: 200 };
  const noRuns = { run: 403, "run over MCP": "forbidden", cancel: 403, rerun: 403 };
  const changes = { change: 200, create: 201 };
  const noChanges = { change: 403, create: 403 };

  test.each([
    [["read"], { ...whoami, ...reads, ...noRuns, ...noChanges }],
    [["run"], { ...whoami, ...noReads, ...runs, ...noChanges }],
    [["write"], { ...whoami, ...noReads, ...noRuns, ...changes }],
    [["read", "run"], { ...whoami, ...reads, ...runs, ...noChanges }],
    [["write", "run", "read"], { ...whoami, ...reads, ...runs, ...changes }],
  ])("allows exactly the operations of %p", async (scopes, expected) => {
    expect<object>(await ask(keyOf(...scopes).headers)).toEqual(expected);
  });

  test("gets the missing scope in the error", async () => {
    const { status, body } = await send("PATCH", `/api/v1/prompts/${crypto.randomUUID()}`, {
      ...keyOf("run", "read"),
      body: { title: "New" },
    });
    expect([status, body]).toEqual([
      403,
      {
        error: "forbidden",
        detail: expect.stringMatching(/"run\+read" has the scopes read and run\. .* scope write\.$/),
      },
    ]);
  });

  test("requires known scopes", () => {
    const before = listKeys(service.ctx, a.org).length;
    expect(() => createKey(service.ctx, a.org, "odd", { scopes: ["read", "admin"] })).toThrow(
      'Invalid scope "admin". Use one or more of read, run, write, delete, report_friction, report_traffic, operate, audit.',
    );
    expect(() => createKey(service.ctx, a.org, "odd", { scopes: [] })).toThrow(
      "read, run, write, delete, report_friction",
    );
    expect(listKeys(service.ctx, a.org).length).toBe(before);
  });
});
