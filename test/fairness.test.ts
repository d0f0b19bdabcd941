import { expect, test } from "bun:test";
import { testApp } from "./support/app.ts";

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
    exchanges: () => post(app, "", "/api/v1/oidc/exchange", Array(100_000).fill(1)),
    calls: (i) => post(app, a.key, "/api/mcp", { jsonrpc: "2.0", id: i, method: "tools/list" }),
  };
  for (const [name, send] of Object.entries(floods)) {
    const order = await orderOf([...flood(send), ["B", readOfB()]]);
    const place = order.findIndex(([tenant]) => tenant === "B");
    expect({ name, isEarly: place < 6, status: order[place]?.[1] }).toEqual({ name, isEarly: true, status: 200 });
  }
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
