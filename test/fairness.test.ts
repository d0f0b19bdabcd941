import { expect, spyOn, test } from "bun:test";
import { connect } from "node:net";
import { createKey } from "../src/auth/keys.ts";
import { scriptedAgent, testApp } from "./support/app.ts";

type App = ReturnType<typeof testApp>;

const post = (app: App, key: string, path: string, body: unknown, headers: Record<string, string> = {}) =>
  app.send("POST", path, { body, headers: { authorization: `Bearer ${key}`, ...headers } });

/** Names of responses, in the order in which they arrive. */
async function orderOf(requests: [name: string, response: Promise<{ status: number }>][]) {
  const arrived: [name: string, status: number][] = [];
  await Promise.all(requests.map(async ([name, response]) => arrived.push([name, (await response).status])));
  return arrived;
}

const flood = (send: (i: number) => Promise<{ status: number }>, count = 16) =>
  Array.from({ length: count }, (_, i): [string, Promise<{ status: number }>] => ["A", send(i)]);

test("a read of another organization is answered before a flood of writes, bodies, reads or pages", async () => {
  const app = testApp();
  const { a, b } = app;
  const bearer = { authorization: `Bearer ${a.key}` };
  const readOfB = () => app.send("GET", "/api/v1/whoami", { headers: { authorization: `Bearer ${b.key}` } });
  const floods: Record<string, (i: number) => Promise<{ status: number }>> = {
    writes: (i) => post(app, a.key, "/api/v1/prompts", { title: `Prompt ${i}`, text: "Upload a file." }),
    bodies: () => post(app, a.key, "/api/v1/prompts", { title: "[".repeat(200_000), text: "x" }),
    pages: () => app.send("GET", "/prompts", { headers: { ...bearer, accept: "text/html" } }),
    exchanges: () => post(app, "", "/api/v1/oidc/exchange", Array(19_000).fill(1)),
    calls: (i) => post(app, a.key, "/api/mcp", { jsonrpc: "2.0", id: i, method: "tools/list" }),
  };
  for (const [name, send] of Object.entries(floods)) {
    const order = await orderOf([...flood(send), ["B", readOfB()]]);
    const place = order.findIndex(([tenant]) => tenant === "B");
    expect({ name, isEarly: place < 6, status: order[place]?.[1] }).toEqual({ name, isEarly: true, status: 200 });
  }
}, 60_000);

test("each batch of a stream or a trace takes a turn of its organization", async () => {
  const agent = scriptedAgent(async function* () {
    for (let i = 0; i < 100; i++) yield { type: "thought", text: `thought ${i}`, by: "rule" };
    yield { type: "end", outcome: "not_judged", reason: "scripted" };
  });
  const app = testApp({ agent });
  const reader = async ({ key }: { key: string }) => {
    const headers = { authorization: `Bearer ${key}` };
    const { id } = (await app.send("POST", "/api/v1/prompts", { headers, body: { text: "See https://a.example/" } }))
      .body;
    const { runId } = (await app.send("POST", `/api/v1/prompts/${id}/run`, { headers, body: { urlMap: {} } })).body;
    await app.runJobs();
    const { slug } = (await app.send("GET", `/api/v1/runs/${runId}`, { headers })).body.report;
    return {
      open: () => app.app.handle(new Request(`${app.baseUrl}/api/v1/runs/${runId}/events`, { headers })),
      trace: () => app.send("GET", `/api/v1/reports/${slug}/trace?search=nothing`, { headers }),
    };
  };
  const [a, b] = [await reader(app.a), await reader(app.b)];
  const traces = await orderOf([...flood(a.trace, 24), ["B", b.trace()]]);
  expect(traces.findIndex(([tenant]) => tenant === "B")).toBeLessThan(6);
  const open = [...Array.from({ length: 24 }, () => a.open()), b.open()];
  const [streams, last] = [await Promise.all(open), 24];
  const read = async (response: Response) => ({ status: (await response.text()).length > 1000 ? 200 : 0 });
  const order = await orderOf(streams.map((response, i) => [i === last ? "B" : "A", read(response)]));
  expect(order.findIndex(([tenant, status]) => tenant === "B" && status === 200)).toBeLessThan(6);
}, 60_000);

test("networks without a key take the turns of one organization, and are served in turn", async () => {
  const app = testApp();
  const handle = (address: string) =>
    app.app.handle(new Request(`${app.baseUrl}/sign-in`, { headers: { accept: "text/html" } }), () => address);
  const readOfB = app.send.bind(null, "GET", "/api/v1/whoami");
  const requests = Array.from({ length: 16 }, (_, i): [string, Promise<Response>] => [
    `network ${i}`,
    Promise.resolve(handle(`203.0.113.${i}`)),
  ]);
  const names = (await orderOf([...requests, ["B", readOfB()]])).map(([name]) => name);
  expect(names.indexOf("B")).toBeLessThan(6);
  const flooded = Array.from({ length: 16 }, (): [string, Promise<Response>] => [
    "loud",
    Promise.resolve(handle("203.0.113.1")),
  ]);
  const order = await orderOf([...flooded, ["quiet", Promise.resolve(handle("203.0.113.2"))]]);
  expect(order.findIndex(([name]) => name === "quiet")).toBeLessThan(6);
});

test("a tenant with too many waiting requests gets 503 before its bodies are read, and others don't", async () => {
  const app = testApp();
  let bytesRead = 0;
  const body = () =>
    new ReadableStream(
      {
        pull(controller) {
          bytesRead++;
          controller.enqueue(new TextEncoder().encode("{}"));
          controller.close();
        },
      },
      { highWaterMark: 0 },
    );
  const send = (key: string) =>
    Promise.resolve(
      app.app.handle(
        new Request(`${app.baseUrl}/api/v1/prompts`, {
          method: "POST",
          headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
          body: body(),
        }),
      ),
    );
  const [responses, [other]] = await Promise.all([
    Promise.all(Array.from({ length: 600 }, () => send(app.a.key))),
    Promise.all([send(app.b.key)]),
  ]);
  const refused = responses.filter(({ status }) => status === 503);
  expect(refused.length).toBe(99);
  expect(refused[0]?.headers.get("retry-after")).toBe("5");
  expect(await refused[0]?.json()).toEqual({ error: "unavailable", detail: expect.any(String) });
  expect(bytesRead).toBe(502);
  expect(other?.status).toBe(400);
});

test("people of another network sign in before a flood of one network, whose clients get 429 beyond a limit", async () => {
  const app = testApp();
  const signIn = (address: string, i: number) =>
    Promise.resolve(
      app.app.handle(
        new Request(`${app.baseUrl}/sign-in`, {
          method: "POST",
          headers: { origin: app.baseUrl, "content-type": "application/x-www-form-urlencoded" },
          body: `email=p${i}%40example.com&password=correct+horse+battery`,
        }),
        () => address,
      ),
    );
  // The first one loads what others need.
  await signIn("203.0.113.9", 0);
  let active = 0;
  let most = 0;
  let refused = 0;
  const allRefused = Promise.withResolvers<void>();
  const counted = async (response: Promise<Response>) => {
    const { status } = await response;
    if (status === 429 && ++refused === 11) allRefused.resolve();
    return { status };
  };
  const { hash } = Bun.password;
  const spy = spyOn(Bun.password, "hash").mockImplementation(async (...args) => {
    most = Math.max(most, ++active);
    try {
      await allRefused.promise;
      return await hash(...args);
    } finally {
      active--;
    }
  });
  const loud = Array.from({ length: 62 }, (_, i): [string, Promise<{ status: number }>] => [
    "loud",
    counted(signIn("203.0.113.1", i)),
  ]);
  const order = await orderOf([...loud, ["quiet", signIn("203.0.113.2", 100)]]);
  spy.mockRestore();
  const hashed = order.filter(([, status]) => status === 401);
  expect(most).toBeLessThanOrEqual(4);
  expect(order.filter(([, status]) => status === 429).length).toBeGreaterThan(10);
  expect(hashed.length).toBeGreaterThan(30);
  expect(hashed.findIndex(([name]) => name === "quiet")).toBeLessThan(10);
}, 60_000);

test.each(["x", "abc", "docs.example.com"])("a chunked body over the limit gets 413 with the Host %s", async (host) => {
  const { app } = testApp();
  const server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: (request) => app.handle(request) });
  const { promise, resolve } = Promise.withResolvers<string>();
  const socket = connect(server.port ?? 0, "127.0.0.1", () => {
    socket.write(
      `POST /api/v1/oidc/exchange HTTP/1.1\r\nHost: ${host}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`,
    );
    const chunk = `10000\r\n${" ".repeat(0x10000)}\r\n`;
    socket.write(chunk.repeat(17));
  });
  socket.on("data", (bytes) => resolve(bytes.toString()));
  socket.on("error", () => {});
  expect(await promise).toStartWith("HTTP/1.1 413 ");
  socket.destroy();
  await server.stop(true);
});

test.each([
  ["Content-Length: 6291456", "/api/v1/archives"],
  ["Transfer-Encoding: chunked", "/api/v1/archives"],
  ["Content-Length: 6291456", "/api/v1/prompts"],
  ["Transfer-Encoding: chunked", "/api/v1/prompts"],
  ["Transfer-Encoding: chunked", "/api/mcp"],
])("a proxy that sends a body to its end before it reads the response gets 413: %s, %s", async (length, path) => {
  const { app, a } = testApp();
  const server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: (request) => app.handle(request) });
  const socket = connect(server.port ?? 0, "127.0.0.1");
  const response = Promise.withResolvers<string>();
  let text = "";
  socket.on("data", (bytes) => (text += bytes));
  socket.on("close", () => response.resolve(text)).on("error", response.reject);
  const write = (data: string) =>
    new Promise<void>((resolve, reject) => socket.write(data, (error) => (error ? reject(error) : resolve())));
  // nginx asks its upstream to close the connection.
  await write(
    `POST ${path} HTTP/1.1\r\nHost: docs.example.com\r\nConnection: close\r\nAuthorization: Bearer ${a.key}\r\nContent-Type: application/json\r\n${length}\r\n\r\n`,
  );
  const piece = " ".repeat(0x10000);
  const isChunked = length.startsWith("Transfer");
  for (let i = 0; i < 96; i++) await write(isChunked ? `10000\r\n${piece}\r\n` : piece);
  if (isChunked) await write("0\r\n\r\n");
  const received = await response.promise;
  expect([received.split(" ")[1], received.includes('"error":"too_large"')]).toEqual(["413", true]);
  await server.stop(true);
});

test("no route reads more than 64 KiB of a stranger", async () => {
  const app = testApp();
  const { key: reporter } = createKey(app.service.ctx, app.a.org, "widget", { scopes: ["report_friction"] });
  const routes = (await app.app.loadRoutes()).filter(({ method }) => method !== "GET");
  expect(routes.length).toBeGreaterThan(50);
  const types = ["application/json", "application/x-www-form-urlencoded", "multipart/form-data; boundary=b"];
  const readOf = async (method: string, path: string, headers: Record<string, string>) => {
    let bytesRead = 0;
    const body = new ReadableStream<Uint8Array>(
      {
        pull(controller) {
          bytesRead += 65_536;
          controller.enqueue(new Uint8Array(65_536).fill(32));
          if (bytesRead > 1_000_000) controller.close();
        },
      },
      { highWaterMark: 0 },
    );
    const url = app.baseUrl + path.replaceAll(/:\w+/g, "01900000-0000-7000-8000-000000000000");
    const request = new Request(url, { method, headers: { origin: app.baseUrl, ...headers }, body });
    const { status } = await app.app.handle(request);
    return { method, path, ...headers, isRefused: status >= 400 || status === 303, isLittle: bytesRead <= 131_072 };
  };
  for (const { method, path } of routes)
    for (const type of types)
      for (const [name, value] of [
        ["content-length", "1048576"],
        ["transfer-encoding", "chunked"],
      ] as const)
        for (const key of path.startsWith("/api/") ? ["", `Bearer ${reporter}`] : [""]) {
          const read = await readOf(method, path, { "content-type": type, [name]: value, authorization: key });
          expect(read).toEqual({ ...read, isRefused: true, isLittle: true });
        }
}, 30_000);

test("a JSON body may have 20,000 values", async () => {
  const { send } = testApp();
  const create = (body: string) => send("POST", "/api/v1/prompts", { body });
  expect((await create(`[${"1,".repeat(19_998)}1]`)).status).toBe(400);
  for (const body of [`[${"1,".repeat(20_000)}1]`, `[${"[],".repeat(10_000)}1]`, `[${'{"a":1},'.repeat(12_000)}1]`])
    expect((await create(body)).body).toEqual({ error: "too_large", detail: expect.any(String) });
  // Brackets and commas in a text are no values.
  expect((await create(JSON.stringify(`[,\\",{"`.repeat(50_000)))).status).toBe(400);
});
