import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import pino from "pino";
import { testApp } from "../support/app.ts";
import { buildExecutable, call, client, emptyFolder, executable, serve } from "../support/executable.ts";
import { niceGrade, runWithReport } from "../support/reports.ts";
import { until } from "../support/until.ts";

// This file tests everything between the network, the operator and the service: sockets, headers, settings, folders, the
// log.

beforeAll(buildExecutable, 300_000);

async function started(env: Record<string, string> = {}) {
  const cwd = emptyFolder();
  const service = await serve({ cwd, env });
  await call(["org", "create", "Acme"], { cwd });
  const key = (await call(["key", "create", "--name", "test"], { cwd })).stdout.trim();
  return { ...service, cwd, key, port: Number(new URL(service.url).port) };
}

/** Writes raw bytes to a port, and returns everything until the server closes the connection. */
function exchange(port: number, bytes: string, more: (socket: Socket) => void = () => {}) {
  return new Promise<{ status: number; head: string; body: string }>((resolve) => {
    let answer = "";
    const socket = connect(port, "127.0.0.1", () => {
      socket.write(Buffer.from(bytes, "latin1"));
      more(socket);
    });
    socket.on("data", (data) => (answer += data));
    // A reset after the response is one way to close.
    socket.on("error", () => {});
    socket.on("close", () => {
      const [head = "", body = ""] = answer.split(/\r\n\r\n(.*)/s);
      resolve({ status: Number(head.split(" ")[1]), head, body });
    });
  });
}

describe("the gate checks the path that is served", () => {
  let service: Awaited<ReturnType<typeof started>>;
  beforeAll(async () => {
    service = await started();
  });
  afterAll(() => service.stop());
  const ask = (line: string, headers: string[]) =>
    exchange(service.port, [line, ...headers, "Connection: close", "", ""].join("\r\n"));

  const hosts = [
    "a",
    "ab:1",
    "[",
    "a b",
    "/api/",
    "x?y",
    "x#y",
    "me@localhost",
    "a:99999999",
    "999.9.9.9",
    "xn--a",
    "\xff",
    "",
  ];
  test.each(hosts.map((host) => [JSON.stringify(host), host]))("with the Host %s", async (_, host) => {
    const asked: [target: string, status: number][] = [
      ["/api/v1/runs", 401],
      ["/api/v1/prompts?limit=1", 401],
      ["/x/../api/v1/runs", 401],
      ["http://example.com/api/v1/runs", 401],
      ["/xx/api/v1/runs", 404],
      ["//xx/api/v1/runs", 404],
      ["/runs/x", 303],
      ["/reports/x.md", 303],
      ["/nothing", 404],
      ["/docs/start", 200],
    ];
    for (const [target, status] of asked) {
      const answer = await ask(`GET ${target} HTTP/1.1`, [`Host: ${host}`, "Accept: text/html"]);
      expect([target, answer.status]).toEqual([target, status]);
    }
  });

  test("with HTTP/1.0, without a Host, and with targets of other forms", async () => {
    const asked: [line: string, status: number][] = [
      ["GET /api/v1/runs HTTP/1.0", 401],
      ["GET /xx/api/v1/runs HTTP/1.0", 404],
      ["GET /healthz HTTP/1.0", 200],
      ["GET /api/v1/runs HTTP/1.1", 400],
      ["OPTIONS * HTTP/1.1", 400],
      ["GET api/v1/runs HTTP/1.1", 400],
    ];
    for (const [line, status] of asked) expect([line, (await ask(line, [])).status]).toEqual([line, status]);
    expect((await ask("CONNECT a:80 HTTP/1.1", ["Host: a:80"])).status).toBe(404);
  });

  test("and accepts a key under every Host, with a body too", async () => {
    for (const host of ["a", "[", "a b", "localhost:3000"]) {
      const headers = [`Host: ${host}`, `Authorization: Bearer ${service.key}`];
      const read = await ask("GET /api/v1/runs?limit=1 HTTP/1.1", headers);
      expect([host, read.status, read.body]).toEqual([host, 200, "[]"]);
      const body = '{"text":"x"}';
      const head = ["POST /api/v1/prompts HTTP/1.1", ...headers, `Content-Length: ${body.length}`, "Connection: close"];
      const made = await exchange(service.port, [...head, "", body].join("\r\n"));
      expect([host, made.status, JSON.parse(made.body).text]).toEqual([host, 201, "x"]);
    }
  });
});

describe("a large body, or one without a length", () => {
  let service: Awaited<ReturnType<typeof started>>;
  beforeAll(async () => {
    service = await started();
  });
  afterAll(() => service.stop());
  const head = (method: string, path: string) =>
    `${method} ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${service.key}\r\nTransfer-Encoding: chunked\r\n\r\n`;
  const chunk = `10000\r\n${" ".repeat(0x10000)}\r\n`;
  const endless = (socket: Socket) => {
    const write = () => {
      while (!socket.destroyed && socket.write(chunk));
    };
    socket.on("drain", write);
    write();
  };

  test.each([
    ["POST", "/api/v1/prompts"],
    ["POST", "/api/v1/nothing"],
    ["POST", "/healthz"],
    ["GET", "/docs"],
  ])("is cut off if it has no length or end: %s %s", async (method, path) => {
    await exchange(service.port, head(method, path), endless);
    expect((await fetch(`${service.url}/healthz`)).status).toBe(200);
  });

  test("returns 413 with an Error body above 1 MiB; without a length the connection closes", async () => {
    const error = { error: "too_large", detail: expect.any(String) };
    const untold = await exchange(service.port, head("POST", "/api/v1/prompts") + chunk.repeat(17));
    expect([untold.status, JSON.parse(untold.body)]).toEqual([413, error]);
    expect(untold.head).toMatch(/^connection: close$/im);
    const told = await fetch(`${service.url}/api/v1/prompts`, {
      method: "POST",
      headers: { authorization: `Bearer ${service.key}` },
      body: "x".repeat(5 * 1024 * 1024),
    });
    expect([told.status, await told.json()]).toEqual([413, error]);
  });

  test("with a length above 16 MiB is rejected before it is sent, whatever the route", async () => {
    const size = 16 * 1024 * 1024 + 1;
    const answer = await exchange(
      service.port,
      `POST /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${size}\r\n\r\n`,
    );
    expect(answer.status).toBe(413);
  });

  test("leaves the connection open if it has no length and was read", async () => {
    const body = '{"text":"x"}';
    const post = `${head("POST", "/api/v1/prompts")}${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
    const { head: first, body: rest } = await exchange(
      service.port,
      `${post}GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`,
    );
    expect(first).toStartWith("HTTP/1.1 201");
    expect(rest).toContain('{"status":"alive",');
  });
});

test("a last use that can't be stored is logged and doesn't end the service", async () => {
  const service = await started();
  expect((await client(service.url, service.key)("GET", "/api/v1/whoami")).status).toBe(200);
  const db = new Database(join(service.cwd, "data", "evald.db"));
  db.run("create trigger refuse before update on api_keys begin select raise(abort, 'the disk is full'); end");
  db.close();
  expect(await service.stop()).toBe(0);
  expect(service.stderr()).toMatch(
    /"level":50.*the disk is full.*"msg":"could not store when API keys were last used"/,
  );
});

test.each(["/dev/full", "a pipe that nobody reads"])("the service continues if stderr is %s", async (where) => {
  const cwd = emptyFolder();
  const child = Bun.spawn([executable, "serve"], {
    cwd,
    env: { EVALD_PORT: "0", EVALD_WELCOME: "0", EVALD_LOG_LEVEL: "debug" },
    stderr: where === "/dev/full" ? Bun.file(where) : "pipe",
  });
  if (child.stderr instanceof ReadableStream) await child.stderr.cancel();
  const url = await until("its URL is known", async () => (await call(["open", "--print"], { cwd })).stdout.trim());
  const alive = async () => {
    while (child.exitCode === null) {
      const answer = await fetch(`${url}healthz`).catch(() => null);
      if (answer) return answer.status;
    }
    return `ended with ${child.exitCode}`;
  };
  for (let i = 0; i < 100; i++) expect(await alive()).toBe(200);
  child.kill();
  expect(await child.exited).toBe(0);
});

const hasIpv6 = Object.values(networkInterfaces()).some((all) => all?.some(({ address }) => address === "::1"));

test.each([...(hasIpv6 ? [["::", "[::1]"] as const] : []), ["0.0.0.0", "127.0.0.1"]])(
  "a service with EVALD_HOST=%s uses a reachable URL for itself, and reads its own pages there",
  async (host, own) => {
    const service = await serve({ cwd: emptyFolder(), env: { EVALD_HOST: host, EVALD_WELCOME: "1" } });
    expect(new URL(service.url).hostname).toBe(own);
    expect((await fetch(`${service.url}/healthz`)).status).toBe(200);
    const [, address] = await service.said(/Read it\s+(\S+)/);
    expect(address).toStartWith(`${service.url}/reports/`);
    expect(await service.stop()).toBe(0);
  },
  300_000,
);

test("an unusable data folder is reported with the remedy", async () => {
  const cwd = emptyFolder();
  const noise = "this is no database, and longer than a header would be".repeat(50);
  for (const name of ["evald.db", "evald.lock"]) {
    mkdirSync(join(cwd, name));
    writeFileSync(join(cwd, name, name), noise);
  }
  const said = async (folder: string, code = 3) => {
    const ended = await call(["serve"], { cwd, env: { EVALD_PORT: "0", EVALD_DATA_DIR: folder } });
    expect(ended.code).toBe(code);
    return ended.stderr;
  };
  expect(await said("/etc/passwd", 2)).toMatch(/^error: .* \/etc\/passwd .*--data/);
  expect(await said("evald.db")).toMatch(/^error: evald\.db\/evald\.db is damaged\. .*--data/);
  expect(await said("evald.lock")).toMatch(/^error: evald\.lock\/evald\.lock is damaged\. .*--data/);
  // Nobody can write there, not even root.
  expect(await said("/proc/self")).toMatch(/^error: \/proc\/self\/evald\.lock cannot be opened for writing\. .*--data/);
});

test("each request is logged with its status, at debug level if it reads, else at info", async () => {
  const lines: { level: number; path: string; status: number }[] = [];
  const log = pino({ level: "debug" }, { write: (line: string) => lines.push(JSON.parse(line)) });
  const app = testApp({ log });
  const { slug } = runWithReport(app, niceGrade);
  const html = { accept: "text/html" };
  const etag = (await app.send("GET", "/docs")).headers.get("etag") ?? "";
  await app.send("GET", "/docs", { headers: { "if-none-match": etag } });
  await app.send("GET", `/reports/${slug}`, { headers: { authorization: "" } });
  await app.send("GET", `/reports/${slug}?x=1`);
  await app.send("GET", "/reports/none-00000000");
  await app.send("GET", "/docs/nothing", { headers: html });
  await app.send("GET", "/nothing", { headers: html });
  await app.send("GET", "/api/v1/runs", { headers: { authorization: "" } });
  await app.send("GET", "/api/v1/runs?limit=1");
  await app.send("POST", "/api/v1/prompts", { body: { text: "x" } });
  expect(lines.filter(({ path }) => path).map(({ level, path, status }) => [level, path, status])).toEqual([
    [20, "/docs", 200],
    [20, "/docs", 304],
    [30, `/reports/${slug}`, 401],
    [20, `/reports/${slug}`, 200],
    [20, "/reports/none-00000000", 404],
    [20, "/docs/nothing", 404],
    [20, "/nothing", 404],
    [30, "/api/v1/runs", 401],
    [20, "/api/v1/runs", 200],
    [30, "/api/v1/prompts", 201],
  ]);
});
