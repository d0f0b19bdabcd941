import { afterAll, afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import http from "node:http";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { AgentEvent } from "../src/agents/agent.ts";
import { type Egress, type EgressRun, type EgressSession, startEgress } from "../src/agents/egress/egress.ts";
import type { CheckedAddress } from "../src/net/http-request.ts";
import { type Site, type SiteRoute, serveSite } from "./support/site.ts";

const folder = mkdtempSync(join(tmpdir(), "evald-test-"));
const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});
afterAll(() => rmSync(folder, { recursive: true }));

let names: Record<string, string[]>;
let lookups: string[];
let egress: Egress;
let clock: number;
beforeEach(async () => {
  names = {};
  lookups = [];
  clock = 0;
  egress = await startEgress({
    socketPath: join(folder, `${crypto.randomUUID().slice(0, 8)}.sock`),
    operatorHosts: ["api.operator.test", "*.wide.test"],
    now: () => clock,
    lookup: async (hostname): Promise<CheckedAddress[]> => {
      lookups.push(hostname);
      const address = names[hostname]?.[0];
      if (!address) throw Object.assign(new Error("unknown"), { code: "ENOTFOUND" });
      if ((names[hostname]?.length ?? 0) > 1) names[hostname]?.shift();
      return address.split(" ").map((text) => ({ address: text, family: net.isIP(text) }));
    },
  });
  stops.push(() => egress.close());
});

function site(routes: Record<string, SiteRoute>): Site {
  const served = serveSite(routes);
  stops.push(served.stop);
  return served;
}

/** A server that responds with raw bytes. */
async function rawServer(talk: (socket: net.Socket) => void, host = "127.0.0.1", port = 0): Promise<number> {
  const server = net.createServer({ allowHalfOpen: true }, (socket) => {
    socket.on("error", () => {});
    talk(socket);
  });
  await new Promise<void>((done) => server.listen(port, host, done));
  stops.push(() => server.close());
  return (server.address() as net.AddressInfo).port;
}

/** A run that may reach `*.docs.test`, all on this machine. `told` waits for this many events and returns all. */
function open(run: Partial<EgressRun> = {}) {
  const events: AgentEvent[] = [];
  let heard = () => {};
  const session = egress.open({
    urls: [],
    docsUrls: ["http://docs.test/start"],
    urlMap: {},
    allowPrivate: [{ host: "127.0.0.0/8", port: null }],
    onEvent(event) {
      events.push(event);
      heard();
    },
    ...run,
  });
  stops.push(() => session.close());
  const told = async (count: number) => {
    while (events.length < count) await new Promise<void>((done) => (heard = done));
    return events;
  };
  return { ...session, events, told };
}

const bearer = ({ token }: EgressSession) => ({ "proxy-authorization": `Bearer ${token}` });

type Asked = { method?: string; headers?: http.OutgoingHttpHeaders; body?: string };

/** Starts a request through the proxy. */
function begin(session: EgressSession, url: string, { method, headers = {}, body }: Asked = {}) {
  const request = http.request({
    socketPath: egress.socketPath,
    path: url,
    method: method ?? "GET",
    headers: { host: URL.parse(url)?.host ?? "x", ...bearer(session), ...headers },
  });
  request.on("error", () => {});
  request.end(body);
  const response = new Promise<http.IncomingMessage>((done, fail) => request.on("response", done).on("error", fail));
  return { request, response };
}

async function ask(session: EgressSession, url: string, asked?: Asked) {
  const response = await begin(session, url, asked).response;
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  const { statusCode: status, headers } = response;
  return { status, headers, body: Buffer.concat(chunks).toString() };
}

/** Requests a tunnel and reads the head of the response; what follows arrives as data. */
async function connect(session: EgressSession | null, place: string) {
  const socket = net.connect({ path: egress.socketPath, allowHalfOpen: true });
  stops.push(() => socket.destroy());
  socket.on("error", () => {});
  const auth = session ? `Proxy-Authorization: Basic ${btoa(`run:${session.token}`)}\r\n` : "";
  socket.write(`CONNECT ${place} HTTP/1.1\r\nHost: ${place}\r\n${auth}\r\n`);
  let text = "";
  let more = () => {};
  let over = false;
  socket.on("data", (data) => {
    text += data;
    more();
  });
  for (const end of ["end", "close"])
    socket.on(end, () => {
      over = true;
      more();
    });
  const until = async (done: () => boolean) => {
    while (!done() && !over) await new Promise<void>((next) => (more = next));
    return text;
  };
  await until(() => text.includes("\r\n\r\n"));
  const [head = "", ...rest] = text.split("\r\n\r\n");
  text = rest.join("\r\n\r\n");
  const said = (what: string) => until(() => text.includes(what));
  return { socket, status: Number(head.split(" ")[1]), head, said, whole: () => until(() => over) };
}

const refusal = (host: string, own = "docs.test") =>
  `${host} is not allowed in this run. Allowed hosts: ${own} and the package registries; the operator can add hosts with EVALD_EGRESS_ALLOW`;

const httpEvent = (fields: Partial<Extract<AgentEvent, { type: "http" }>>) => ({
  type: "http",
  id: null,
  method: "GET",
  mappedUrl: null,
  status: null,
  ms: 0,
  bytes: 0,
  contentType: null,
  provenance: "given",
  foundOn: null,
  purpose: "task",
  error: null,
  ...fields,
});

describe("the list of hosts", () => {
  test.each([
    ["docs.test", true],
    ["api.docs.test", true],
    ["API.Docs.Test.", true],
    ["product.test", true],
    ["sub.product.test", false],
    ["extra.test", false],
    ["evil-docs.test", false],
    ["test", false],
    ["registry.npmjs.org", true],
    ["npmjs.org", false],
    ["pypi.org", true],
    ["index.crates.io", true],
    ["proxy.golang.org", true],
    ["repo1.maven.org", true],
    ["rubygems.org", true],
    ["deb.debian.org", true],
    ["api.operator.test", true],
    ["sub.api.operator.test", false],
    ["a.b.wide.test", true],
    ["wide.test", false],
    ["127.0.0.1", false],
  ])("allows %s or not: %p, as an absolute URL and through a tunnel", async (host, allowed) => {
    const served = site({ "/": { body: "home" } });
    names = Object.fromEntries([host, host.toLowerCase()].map((name) => [name.replace(/\.$/, ""), ["127.0.0.1"]]));
    names[new URL(`http://${host}/`).hostname] = ["127.0.0.1"];
    const session = open({ urls: ["https://product.test:8443/api"] });
    const asked = await ask(session, `http://${host}:${served.port}/`);
    const tunnel = await connect(session, `${host}:${served.port}`);
    expect({ absolute: asked.status, tunnel: tunnel.status }).toEqual(
      allowed ? { absolute: 200, tunnel: 200 } : { absolute: 403, tunnel: 403 },
    );
    const why = `evald: ${refusal(host, "docs.test, product.test")}\n`;
    if (!allowed) expect([asked.body, await tunnel.whole()]).toEqual([why, why]);
    if (!allowed) expect(lookups).toEqual([]);
  });

  test("never hides a request: each is reported with its result", async () => {
    const served = site({ "/page": { body: "12345", type: "text/plain" }, "/gone": { status: 404, body: "no" } });
    names = { "docs.test": ["127.0.0.1"] };
    const session = open();
    const url = `http://docs.test:${served.port}`;
    await ask(session, `${url}/page?q=1`);
    await ask(session, `${url}/gone`, { method: "POST", body: "x" });
    await ask(session, "http://other.test/");
    await ask(session, "http://none.docs.test/");
    await connect(session, "other.test:443");
    expect(await session.told(5)).toMatchObject([
      httpEvent({ url: `${url}/page?q=1`, status: 200, bytes: 5, contentType: "text/plain" }),
      httpEvent({
        url: `${url}/gone`,
        method: "POST",
        status: 404,
        bytes: 2,
        bytesOut: 1,
        contentType: expect.any(String),
      }),
      httpEvent({ url: "http://other.test/", error: { kind: "refused", message: refusal("other.test") } }),
      httpEvent({
        url: "http://none.docs.test/",
        error: { kind: "dns", message: "none.docs.test cannot be found in DNS" },
      }),
      httpEvent({
        url: "https://other.test/",
        method: "CONNECT",
        error: { kind: "refused", message: refusal("other.test") },
      }),
    ] as AgentEvent[]);
  });
});

describe("an address", () => {
  test.each([
    ["127.0.0.1", "127.0.0.1, which is a loopback address"],
    ["10.1.2.3", "10.1.2.3, which is a private address"],
    ["93.184.216.34 10.0.0.1", "10.0.0.1, which is a private address"],
    ["::ffff:127.0.0.1", "::ffff:127.0.0.1, which is a loopback address"],
  ])("such as %s is blocked, even for a host of the run", async (address, what) => {
    names = { "docs.test": [address] };
    const session = open({ allowPrivate: [] });
    const why = (port: number) =>
      `evald: docs.test resolves to ${what}; to allow it, the operator can set EVALD_ALLOW_PRIVATE=docs.test:${port}\n`;
    expect(await ask(session, "http://docs.test/")).toMatchObject({ status: 403, body: why(80) });
    const tunnel = await connect(session, "docs.test:443");
    expect([tunnel.status, await tunnel.whole()]).toEqual([403, why(443)]);
  });

  test("is blocked on a port that nobody allowed", async () => {
    const session = open({ allowPrivate: [] });
    expect((await connect(session, "docs.test:22")).status).toBe(403);
    expect(lookups).toEqual([]);
  });

  test("is resolved once per request, and the checked one is used", async () => {
    const good = await rawServer((socket) => socket.end("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood"));
    await rawServer((socket) => socket.end("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbad"), "127.0.0.2", good);
    const session = open({ allowPrivate: [{ host: "127.0.0.1", port: good }] });
    names = { "docs.test": ["127.0.0.1", "127.0.0.2"] };
    expect(await ask(session, `http://docs.test:${good}/`)).toMatchObject({ status: 200, body: "good" });
    expect(await ask(session, `http://docs.test:${good}/`)).toMatchObject({ status: 403 });
    names = { "docs.test": ["127.0.0.1", "127.0.0.2"] };
    const tunnel = await connect(session, `docs.test:${good}`);
    expect(await tunnel.said("good")).toContain("good");
    expect((await connect(session, `docs.test:${good}`)).status).toBe(403);
    expect(lookups.length).toBe(4);
  });

  test("is the first of several that accepts the connection", async () => {
    const port = await rawServer((socket) => socket.end("hello"));
    names = { "docs.test": ["127.0.0.3 127.0.0.1"] };
    const tunnel = await connect(open(), `docs.test:${port}`);
    expect(await tunnel.said("hello")).toBe("hello");
  });
});

describe("the urlMap", () => {
  test("is applied to plain HTTP, and redirects and events use the original URLs", async () => {
    const served = site({
      "/base/page": { body: "mapped" },
      "/base/old": { status: 302, headers: { location: "/base/page" } },
      "/base/out": { status: 302, headers: { location: "http://elsewhere.test/" } },
    });
    const session = open({ urlMap: { "docs.test": `${served.url}/base` } });
    expect(await ask(session, "http://docs.test/page")).toMatchObject({ status: 200, body: "mapped" });
    expect(await ask(session, "https://docs.test/page")).toMatchObject({ status: 200, body: "mapped" });
    expect((await ask(session, "http://docs.test/old")).headers.location).toBe("http://docs.test/page");
    expect((await ask(session, "http://docs.test/out")).headers.location).toBe("http://elsewhere.test/");
    expect((await ask(session, "http://elsewhere.test/")).status).toBe(403);
    expect(session.events[0]).toMatchObject({ url: "http://docs.test/page", mappedUrl: `${served.url}/base/page` });
  });

  test("adds a header to requests whose HTTPS client could only use a tunnel", async () => {
    const served = site({
      "/page": (request) => Response.json(Object.fromEntries(request.headers)),
      "/old": { status: 302, headers: { location: "/page", "evald-failure": "refused" } },
    });
    const session = open({ urlMap: { "https://docs.test": served.url }, purpose: "page" });
    const headers = { "evald-scheme": "https" };
    const { status, body } = await ask(session, "http://docs.test/page", { headers });
    expect([status, Object.keys(JSON.parse(body))]).toEqual([200, expect.not.arrayContaining(["evald-scheme"])]);
    const moved = await ask(session, "http://docs.test/old", { headers });
    // Only the proxy reports that something failed here.
    expect(moved.headers).toMatchObject({ location: "https://docs.test/page" });
    expect(moved.headers["evald-failure"]).toBeUndefined();
    expect((await ask(session, "http://other.test/")).headers["evald-failure"]).toBe("refused");
    expect((await session.told(3)).map((event) => event.type === "http" && [event.url, event.purpose])).toEqual([
      ["https://docs.test/page", "page"],
      ["https://docs.test/old", "page"],
      ["http://other.test/", "page"],
    ]);
  });

  test("rejects a tunnel to a mapped host, and names the URL that works", async () => {
    const session = open({
      urlMap: { "docs.test": "http://127.0.0.1:4000", "https://api.test": "http://127.0.0.1:4001/v1" },
    });
    const why = (host: string, instead: string) =>
      `evald: the urlMap of this run maps ${host} to another URL, which a tunnel cannot follow; request ${instead} instead\n`;
    const docs = await connect(session, "docs.test:443");
    const api = await connect(session, "api.test:443");
    expect([docs.status, await docs.whole()]).toEqual([403, why("docs.test", "http://docs.test/")]);
    expect([api.status, await api.whole()]).toEqual([403, why("api.test", "http://127.0.0.1:4001/v1/")]);
  });

  test("doesn't allow private addresses that the operator didn't allow", async () => {
    const served = site({ "/": { body: "inner" } });
    const session = open({ urlMap: { "docs.test": served.url }, allowPrivate: [] });
    expect((await ask(session, "http://docs.test/")).status).toBe(403);
    expect(served.requests).toEqual([]);
  });
});

describe("the token of a run", () => {
  test("is required: without it, everything is rejected", async () => {
    const served = site({ "/": { body: "home" } });
    names = { "docs.test": ["127.0.0.1"] };
    const url = `http://docs.test:${served.port}/`;
    const run = open();
    const over = open();
    const wrong = { ...run, token: `${run.token}x` };
    const kept = await connect(over, `docs.test:${served.port}`);
    over.close();
    expect(await kept.whole()).toBe("");
    for (const session of [wrong, over]) {
      const answer = await ask(session, url);
      expect(answer).toMatchObject({ status: 407, headers: { "proxy-authenticate": 'Basic realm="evald"' } });
      expect((await connect(session, "docs.test:443")).status).toBe(407);
    }
    expect((await connect(null, "docs.test:443")).status).toBe(407);
    expect(run.events).toEqual([]);
    expect(served.requests).toEqual([]);
  });

  test("gives access only to the run's own hosts", async () => {
    const first = open({ docsUrls: ["http://first.test"] });
    const second = open({ docsUrls: ["http://second.test"] });
    expect((await ask(second, "http://first.test/")).status).toBe(403);
    expect(first.events).toEqual([]);
    expect(second.events.length).toBe(1);
  });

  test("is not forwarded in any header", async () => {
    let seen: string[] = [];
    const served = site({
      "/": (request) => {
        seen = [...request.headers].flat();
        return new Response("ok");
      },
    });
    names = { "docs.test": ["127.0.0.1"] };
    const session = open();
    const { token } = session;
    const headers = { authorization: `Basic ${btoa(`u:${token}`)}`, "x-debug": `t=${token}`, "x-kept": "yes", te: "x" };
    await ask(session, `http://docs.test:${served.port}/`, { headers });
    expect(seen).toContain("yes");
    expect(seen.filter((text) => text.includes(token) || text.includes(btoa(`u:${token}`)))).toEqual([]);
    expect(seen.filter((name) => /^(proxy-|te$|authorization)/.test(name))).toEqual([]);
  });

  test("is needed once per connection", async () => {
    const served = site({ "/a": { body: "first" }, "/b": { body: "second" } });
    names = { "docs.test": ["127.0.0.1"] };
    const session = open();
    const socket = net.connect(egress.socketPath);
    stops.push(() => socket.destroy());
    const head = (path: string) => `GET http://docs.test:${served.port}${path} HTTP/1.1\r\nHost: docs.test\r\n`;
    socket.write(`${head("/a")}Proxy-Authorization: Bearer ${session.token}\r\n\r\n`);
    await session.told(1);
    socket.write(`${head("/b")}\r\n`);
    expect((await session.told(2)).map((event) => "status" in event && event.status)).toEqual([200, 200]);
  });

  test("protects a socket that other users can't access", () => {
    expect(statSync(egress.socketPath).mode & 0o077).toBe(0);
  });
});

describe("a run is limited", () => {
  const limitEvent = (limit: string, value: number, unit: string) => ({ type: "limit", limit, value, unit });

  test("in its requests", async () => {
    const served = site({ "/": { body: "home" } });
    names = { "docs.test": ["127.0.0.1"] };
    const session = open({ limits: { requests: 2 } });
    const url = `http://docs.test:${served.port}/`;
    const statuses = [];
    for (let i = 0; i < 4; i++) statuses.push((await ask(session, url)).status);
    expect(statuses).toEqual([200, 200, 429, 429]);
    expect(session.events.filter(({ type }) => type === "limit") as unknown[]).toEqual([
      limitEvent("egress_requests", 2, "requests"),
    ]);
    expect(served.requests.length).toBe(2);
  });

  test("in its incoming bytes, within a body and a tunnel", async () => {
    const endless = await rawServer((socket) => {
      socket.once("data", () => {
        socket.write("HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n");
        const more = () => {
          while (!socket.destroyed && socket.write("x".repeat(65536)));
        };
        socket.on("drain", more);
        more();
      });
    });
    names = { "docs.test": ["127.0.0.1"] };
    for (const way of ["absolute", "tunnel"]) {
      const session = open({ limits: { bytesIn: 1_000_000 } });
      if (way === "absolute") {
        expect(await ask(session, `http://docs.test:${endless}/`).catch(() => "cut")).toBe("cut" as never);
      } else {
        const tunnel = await connect(session, `docs.test:${endless}`);
        tunnel.socket.write("go");
        expect((await tunnel.whole()).length).toBeLessThan(1_100_000);
      }
      expect((await session.told(2)) as unknown[]).toEqual([
        limitEvent("egress_bytes_in", 1_000_000, "bytes"),
        expect.objectContaining({
          type: "http",
          status: 200,
          error: { kind: "too_large", message: expect.any(String) },
        }),
      ]);
    }
  });

  test("in its outgoing bytes", async () => {
    const served = site({ "/": async (request) => new Response(String((await request.bytes()).length)) });
    names = { "docs.test": ["127.0.0.1"] };
    const session = open({ limits: { bytesOut: 100_000 } });
    const url = `http://docs.test:${served.port}/`;
    expect((await ask(session, url, { method: "POST", body: "x".repeat(90_000) })).body).toBe("90000");
    expect((await ask(session, url, { method: "POST", body: "x".repeat(90_000) })).status).toBe(429);
    const tunnel = await connect(session, `docs.test:${served.port}`);
    tunnel.socket.write("x");
    await tunnel.whole();
    expect((await session.told(4)).at(-1)).toMatchObject({ method: "CONNECT", error: { kind: "too_large" } });
  });

  test("in its concurrent requests; further ones wait", async () => {
    const held: (() => void)[] = [];
    const both = Promise.withResolvers<void>();
    const served = site({
      "/held": async () => {
        await new Promise<void>((done) => {
          held.push(done);
          if (held.length === 2) both.resolve();
        });
        return new Response("done");
      },
      "/free": { body: "free" },
    });
    names = { "docs.test": ["127.0.0.1"] };
    const session = open({ limits: { concurrent: 2 } });
    const url = `http://docs.test:${served.port}`;
    const first = [1, 2].map(() => ask(session, `${url}/held`));
    await both.promise;
    const third = ask(session, `${url}/free`);
    // Another run has its own slots, which shows that there was enough time.
    const other = open();
    for (let i = 0; i < 3; i++) expect((await ask(other, `${url}/free?other`)).body).toBe("free");
    expect(served.requests).not.toContain("GET /free");
    for (const go of held) go();
    const answers = await Promise.all([...first, third]);
    expect(answers.map(({ body }) => body)).toEqual(["done", "done", "free"]);
  });

  test("in the time of a request", async () => {
    const silent = await rawServer(() => {});
    names = { "docs.test": ["127.0.0.1"] };
    const session = open({ limits: { requestMs: 50 } });
    const answer = await ask(session, `http://docs.test:${silent}/`);
    const why = `docs.test:${silent} did not finish within 0.05 s`;
    expect(answer).toMatchObject({ status: 504, body: `evald: ${why}\n` });
    const tunnel = await connect(session, `docs.test:${silent}`);
    expect(await tunnel.whole()).toBe("");
    expect((await session.told(2)).map((event) => "error" in event && event.error)).toEqual(
      Array(2).fill({ kind: "timeout", message: why }),
    );
  });
});

describe("a request", () => {
  test("passes bodies unchanged in both directions, with their headers", async () => {
    const big = "0123456789".repeat(500_000);
    const zipped = Bun.gzipSync("zipped");
    const served = site({
      "/echo": async (request) => new Response(await request.text(), { headers: { "set-cookie": "a=1" } }),
      "/big": { body: big },
      "/zip": { body: zipped, headers: { "content-encoding": "gzip" } },
      "/none": { status: 204 },
    });
    names = { "docs.test": ["127.0.0.1"] };
    const session = open();
    const url = `http://docs.test:${served.port}`;
    const echo = await ask(session, `${url}/echo`, { method: "PUT", body: big });
    expect([echo.status, echo.body === big, echo.headers["set-cookie"]]).toEqual([200, true, ["a=1"]]);
    const chunked = await ask(session, `${url}/echo`, {
      method: "POST",
      body: "ab",
      headers: { "transfer-encoding": "chunked" },
    });
    expect(chunked.body).toBe("ab");
    expect((await ask(session, `${url}/big`)).body === big).toBe(true);
    const head = await ask(session, `${url}/big`, { method: "HEAD" });
    expect([head.status, head.headers["content-length"], head.body]).toEqual([200, String(big.length), ""]);
    expect(await ask(session, `${url}/none`)).toMatchObject({ status: 204, body: "" });
    await ask(session, `${url}/zip`);
    expect(session.events.at(-1)).toMatchObject({ status: 200, bytes: zipped.length });
  });

  test("for a tunnel passes bytes in both directions until both sides are done", async () => {
    const port = await rawServer((socket) => {
      let got = "";
      socket.on("data", (data) => (got += data));
      socket.on("end", () => socket.end(`got ${got.length}`));
    });
    names = { "docs.test": ["127.0.0.1"] };
    const session = open();
    const tunnel = await connect(session, `docs.test:${port}`);
    tunnel.socket.write("x".repeat(3_000_000));
    tunnel.socket.end();
    expect(await tunnel.whole()).toBe("got 3000000");
    expect((await session.told(1)) as unknown[]).toEqual([
      httpEvent({ method: "CONNECT", url: `https://docs.test:${port}/`, status: 200, bytes: 11, bytesOut: 3_000_000 }),
    ]);
  });

  test.each(["absolute", "tunnel"])("ends its upstream connection when the client is killed: %s", async (way) => {
    const gone = Promise.withResolvers<void>();
    const port = await rawServer((socket) => {
      for (const event of ["end", "close"]) socket.on(event, () => gone.resolve());
      socket.once("data", () => socket.write("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nbegin"));
    });
    names = { "docs.test": ["127.0.0.1"] };
    const session = open();
    if (way === "absolute") {
      const { request, response } = begin(session, `http://docs.test:${port}/`);
      await new Promise((done) => response.then((answer) => answer.once("data", done)));
      request.destroy();
    } else {
      const tunnel = await connect(session, `docs.test:${port}`);
      tunnel.socket.write("go");
      await tunnel.said("begin");
      tunnel.socket.destroy();
    }
    await gone.promise;
    const [event] = await session.told(1);
    expect(event).toMatchObject({
      status: 200,
      error: way === "absolute" ? { kind: "aborted", message: "The client disconnected" } : null,
    });
  });

  test("is reported if the upstream breaks off, and the client's response is cut", async () => {
    const port = await rawServer((socket) => {
      socket.once("data", () => {
        socket.write("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nbegin", () => socket.destroy());
      });
    });
    names = { "docs.test": ["127.0.0.1"] };
    const session = open();
    expect(await ask(session, `http://docs.test:${port}/`).catch(() => "cut")).toBe("cut" as never);
    expect((await session.told(1))[0]).toMatchObject({ status: 200, error: { kind: "protocol" } });
  });

  test("that isn't for a proxy is rejected with an explanation", async () => {
    const session = open();
    const answer = await ask(session, "/path");
    expect(answer).toMatchObject({
      status: 400,
      body: "This is the evald proxy. Send an absolute http or https URL.\n",
    });
    expect((await connect(session, "docs.test")).status).toBe(400);
  });
});

test("what is sent to a product is recorded with its answer, without credentials and answers that repeat them", async () => {
  const server = site({
    "/notes": async (request) => Response.json({ id: "n1", text: await request.text() }),
    "/me": (request) => Response.json({ key: request.headers.get("authorization") }),
  });
  const run = open({ urlMap: { "docs.test": server.url } });
  const credentials = { "proxy-authorization": `Bearer ${run.token}` };
  const send = (path: string, body: string, headers: Record<string, string> = {}) =>
    new Promise<void>((done, fail) => {
      const request = http.request(
        {
          socketPath: egress.socketPath,
          method: "POST",
          path: `http://docs.test${path}`,
          headers: { ...headers, ...credentials },
        },
        (response) => response.resume().on("end", done),
      );
      request.on("error", fail).end(body);
    });
  await send("/notes", "hello", { "x-note": "blue" });
  await send("/me", "", { authorization: "Bearer secret-0123456789" });
  const [first, second] = (await run.told(2)) as Extract<AgentEvent, { type: "http" }>[];
  expect(first).toMatchObject({
    body: '{"id":"n1","text":"hello"}',
    sent: expect.stringMatching(/x-note: blue[\s\S]*\n\nhello$/),
  });
  expect(second?.body).toBeUndefined();
  expect(second?.sent).not.toContain("secret-0123456789");
});

describe("the address of the service itself leads to its public pages", () => {
  const answers = () => ({ whole: site({ "/": { body: "whole" } }), pages: site({ "/": { body: "public" } }) });
  const rulesOf = (port: number, publicPort: number) => [
    { host: "127.0.0.0/8", port: null },
    { host: "::1", port: null },
    ...["127.0.0.1", "::1", "evals.internal"].map((host) => ({ host, port, publicPort })),
  ];

  test.each(["127.0.0.1", "2130706433", "0x7f.1", "127.1", "[::ffff:7f00:1]", "[::1]", "evals.test", "evals.internal"])(
    "as %s, by a request and by a tunnel",
    async (host) => {
      const { whole, pages } = answers();
      names = { "evals.test": ["127.0.0.1"], "evals.internal": ["127.0.0.9"] };
      const url = `http://${host}:${whole.port}/`;
      const session = open({ urls: [url], docsUrls: [], allowPrivate: rulesOf(whole.port, pages.port) });
      expect((await ask(session, url)).body).toBe("public");
      const tunnel = await connect(session, `${host}:${whole.port}`);
      expect(tunnel.status).toBe(200);
      tunnel.socket.end(`GET / HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`);
      expect(await tunnel.whole()).toEndWith("public");
      expect(whole.requests).toEqual([]);
    },
  );

  test("even if the name has other addresses, too", async () => {
    const { whole, pages } = answers();
    names = { "evals.test": ["127.0.0.1 127.0.0.2", "127.0.0.2 127.0.0.1"] };
    const url = `http://evals.test:${whole.port}/`;
    const session = open({ urls: [url], docsUrls: [], allowPrivate: rulesOf(whole.port, pages.port) });
    for (let i = 0; i < 2; i++) expect((await ask(session, url)).body).toBe("public");
    expect(whole.requests).toEqual([]);
  });
});
