import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readdirSync, writeFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { enlarge } from "../soak/worst-session.ts";
import {
  buildExecutable,
  call,
  client,
  emptyFolder,
  executable,
  furnish,
  serve,
  untilRun,
} from "../support/executable.ts";
import { memoryOf } from "../support/processes.ts";
import { serveSite } from "../support/site.ts";
import { until } from "../support/until.ts";

// These clients are slow, many, or stop reading. The service must still serve others, with bounded memory.

const isLong = process.env.ATTACK === "long";
const mib = 1024 * 1024;

beforeAll(buildExecutable, 300_000);

type Service = Awaited<ReturnType<typeof serve>>;

const filesOf = ({ pid }: Service) => readdirSync(`/proc/${pid}/fd`).length;

/** A connection that sends bytes and reads only the status of the response. */
function knock({ url }: Service, bytes: string) {
  const socket = connect(Number(new URL(url).port), "127.0.0.1", () => socket.write(bytes));
  const state: { socket: Socket; status: number; isClosed: boolean } = { socket, status: 0, isClosed: false };
  let head = "";
  socket.on("error", () => {});
  socket.on("close", () => (state.isClosed = true));
  socket.on("data", (data) => {
    head += data;
    state.status = Number(head.slice(9, 12));
    if (head.length >= 12) socket.pause();
  });
  return state;
}

const get = (path: string, key: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n\r\n`;
const repeat = <T>(count: number, make: () => T): T[] => Array.from({ length: count }, make);

describe("connections with an endless request", () => {
  const kinds = (key: string): Record<string, [start: string, more?: string]> => {
    const post = `POST /api/v1/prompts HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n`;
    const form = "Content-Type: application/x-www-form-urlencoded\r\n";
    return {
      idle: [""],
      "half a header": ["GET /healthz HTTP/1.1\r\nHost: x\r\n"],
      "slow headers": ["GET /healthz HTTP/1.1\r\nHost: x\r\n", "X-More: x\r\n"],
      "half a body": [`${post}Content-Length: 1000\r\n\r\n{`],
      "a slow body": [`${post}Content-Length: 1000\r\n\r\n{`, " "],
      "a slow body without a length": [`${post}Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n`, "1\r\n \r\n"],
      "a slow form": [
        `POST /sign-in HTTP/1.1\r\nHost: x\r\nOrigin: http://x\r\n${form}Content-Length: 999\r\n\r\na`,
        "b",
      ],
    };
  };

  test("are closed, and others are served meanwhile", async () => {
    const cwd = emptyFolder();
    const { key } = await furnish(cwd);
    const service = await serve({ cwd, env: { EVALD_LOG_LEVEL: "warn" } });
    const ask = client(service.url, key);
    await ask("GET", "/api/v1/prompts");
    const before = filesOf(service);
    const each = isLong ? 500 : 20;
    const open = Object.values(kinds(key)).flatMap(([start, more]) =>
      repeat(each, () => ({ ...knock(service, start), more })),
    );
    // The kernel accepts an idle connection later.
    await until("those that sent something are accepted", () => filesOf(service) >= before + open.length - each);
    for (let i = 0; i < 20; i++) expect((await ask("GET", "/api/v1/prompts?limit=1")).status).toBe(200);
    expect((await ask("POST", "/api/v1/prompts", { text: "x" })).status).toBe(201);
    if (isLong) {
      const slowly = setInterval(() => {
        for (const { socket, more } of open) if (more !== undefined && socket.writable) socket.write(more);
      }, 1000);
      await until("the service closes them", () => filesOf(service) < before + 10);
      clearInterval(slowly);
    }
    for (const { socket } of open) socket.destroy();
    await until("all are closed", () => filesOf(service) < before + 10);
    expect(await service.stop()).toBe(0);
  }, 300_000);

  test("delay requests if there are more than file descriptors, but lose nothing, and runs work afterwards", async () => {
    const cwd = emptyFolder();
    const { key, promptId } = await furnish(cwd);
    const file = join(cwd, "few-descriptors.sh");
    writeFileSync(file, `#!/bin/sh\nulimit -n 128\nexec ${executable} "$@"\n`, { mode: 0o755 });
    const site = serveSite({ "/": { body: "<h1>Acme</h1>" } });
    const env = { EVALD_LOG_LEVEL: "warn", EVALD_ALLOW_PRIVATE: new URL(site.url).host };
    const service = await serve({ cwd, file, env });
    const open = repeat(300, () => knock(service, "GET /healthz HTTP/1.1\r\nHost: x\r\n"));
    await until("no descriptor is left", () => filesOf(service) >= 128);
    const waiting = client(service.url, key)("POST", "/api/v1/prompts", { text: "x" });
    if (!isLong) for (const { socket } of open) socket.destroy();
    expect((await waiting).status).toBe(201);
    for (const { socket } of open) socket.destroy();
    const ask = client(service.url, key);
    // Checks of the service that ran meanwhile may have failed; it says so until they run again.
    expect((await ask("GET", "/readyz")).body).toMatchObject({ status: "ready" });
    const { body } = await ask("POST", `/api/v1/prompts/${promptId}/run`, { urlMap: { "docs.test": site.url } });
    expect((await untilRun(ask, body.runId, "completed", "failed")).status).toBe("completed");
    expect(await service.stop()).toBe(0);
    site.stop();
  }, 300_000);
});

test("a sandbox that can't be checked is a warning in the log, and the service stays", async () => {
  const cwd = emptyFolder();
  await furnish(cwd);
  const service = await serve({ cwd, env: { EVALD_LOG_LEVEL: "warn", TMPDIR: join(cwd, "missing") } });
  const line = (await service.said(/^\{.*check the sandbox.*$/m))[0];
  expect(JSON.parse(line)).toMatchObject({ level: 40, err: { code: "ENOENT" } });
  expect((await fetch(`${service.url}/readyz`)).status).toBe(200);
  expect(await service.stop()).toBe(0);
});

describe("clients that stop reading large sessions", () => {
  const organizations = isLong ? 5 : 1;
  const perOrg = 200;
  const site = serveSite({
    "/": { body: `<!doctype html><title>Acme</title><h1>Acme</h1><p>${"Upload it. ".repeat(60)}` },
  });
  let service: Service;
  const orgs: { key: string; runId: string; slug: string }[] = [];

  beforeAll(async () => {
    const cwd = emptyFolder();
    const env = { EVALD_ALLOW_PRIVATE: `127.0.0.1:${site.port}`, EVALD_LOG_LEVEL: "warn" };
    const first = await serve({ cwd, env });
    for (let i = 0; i < organizations; i++) {
      await call(["org", "create", `O${i}`], { cwd });
      const key = (await call(["key", "create", "--name", "test", "--org", `O${i}`], { cwd })).stdout.trim();
      const ask = client(first.url, key);
      const { body: prompt } = await ask("POST", "/api/v1/prompts", { text: `Read ${site.url}/` });
      const { body: run } = await ask("POST", `/api/v1/prompts/${prompt.id}/run`, { urlMap: {} });
      const { report } = await untilRun(ask, run.runId, "completed", "failed");
      orgs.push({ key, runId: run.runId, slug: report.slug });
    }
    await first.stop();
    for (const { runId } of orgs) enlarge(join(cwd, "data"), runId, 20 * mib);
    service = await serve({ cwd, env });
  }, 300_000);
  afterAll(async () => {
    site.stop();
    await service.stop();
  });

  /** Opens connections that read only the status, until the memory of the service stops growing. Returns the statuses, the peak growth, and how many had an answer before the next client. */
  async function stalled(requests: string[]) {
    await (await fetch(`${service.url}/healthz`)).text();
    const before = memoryOf(service.pid, "VmRSS");
    const files = filesOf(service);
    writeFileSync(`/proc/${service.pid}/clear_refs`, "5");
    const open = requests.map((request) => knock(service, request));
    await until("the first has a status", () => open.some(({ status }) => status > 0));
    await (await fetch(`${service.url}/healthz`)).text();
    const answeredBefore = open.filter(({ status }) => status > 0).length;
    await until("all have a status", () => open.every(({ status }) => status > 0));
    for (let peak = 0, same = 0; same < 5; ) {
      for (let i = 0; i < 20; i++) expect((await fetch(`${service.url}/healthz`)).status).toBe(200);
      const now = memoryOf(service.pid, "VmHWM");
      same = now > peak ? 0 : same + 1;
      peak = now;
    }
    const counts: Record<number, number> = {};
    for (const { status } of open) counts[status] = (counts[status] ?? 0) + 1;
    const growth = memoryOf(service.pid, "VmHWM") - before;
    for (const { socket } of open) socket.destroy();
    // The service opens a few files of its own, such as the database for an export.
    await until("all are closed", () => filesOf(service) <= files + 16);
    return { counts, growth, answeredBefore };
  }

  test(`make ${perOrg} event streams per organization use bounded memory, and further ones return 429`, async () => {
    const requests = orgs.flatMap(({ key, runId }) =>
      repeat(perOrg + 20, () => get(`/api/v1/runs/${runId}/events`, key)),
    );
    const { counts, growth } = await stalled(requests);
    console.log(`event streams: ${JSON.stringify(counts)}, ${Math.round(growth / mib)} MiB`);
    expect(counts).toEqual({ 200: perOrg * organizations, 429: 20 * organizations });
    expect(growth).toBeLessThan(perOrg * organizations * 1.5 * mib);
  }, 300_000);

  test("make 10 exports per organization use bounded memory, and further ones return 429 until one has ended", async () => {
    const requests = orgs.flatMap(({ key }) => repeat(20, () => get("/api/v1/export", key)));
    const { counts, growth } = await stalled(requests);
    console.log(`exports: ${JSON.stringify(counts)}, ${Math.round(growth / mib)} MiB`);
    expect(counts).toEqual({ 200: 10 * organizations, 429: 10 * organizations });
    expect(growth).toBeLessThan(60 * mib + 10 * organizations * 8 * mib);
    const headers = { authorization: `Bearer ${orgs[0]?.key}` };
    const whole = await (await fetch(`${service.url}/api/v1/export`, { headers })).text();
    expect(JSON.parse(whole.trimEnd().split("\n").at(-1) ?? "").type).toBe("end");
  }, 300_000);

  test("don't block other requests with sessions at the largest page size", async () => {
    const readers = isLong ? 200 : 40;
    const [org] = orgs;
    const requests = repeat(readers, () => get(`/api/v1/reports/${org?.slug}/trace?limit=500`, org?.key ?? ""));
    const { counts, growth, answeredBefore } = await stalled(requests);
    console.log(`sessions: ${JSON.stringify(counts)}, ${Math.round(growth / mib)} MiB`);
    expect(counts).toEqual({ 200: readers });
    expect(growth).toBeLessThan(100 * mib + readers * 4 * mib);
    expect(answeredBefore).toBeLessThan(readers);
  }, 300_000);
});
