import { afterAll, afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { AgentEvent } from "../src/agents/agent.ts";
import { type Egress, type EgressRun, startEgress } from "../src/agents/egress/egress.ts";
import { createReader } from "../src/agents/reader.ts";
import { openRelay } from "../src/agents/relay/relay.ts";
import { forwardSocket } from "../src/net/forwarder.ts";
import { wideLimits } from "./support/limits.ts";

const folder = mkdtempSync(join(tmpdir(), "evald-proxy-"));
const stops: (() => unknown)[] = [];
let egress: Egress;
beforeEach(async () => {
  egress = await startEgress({
    socketPath: join(folder, `${crypto.randomUUID().slice(0, 8)}.sock`),
    operatorHosts: ["tunnel.test"],
    now: () => 0,
    lookup: async () => [{ address: "127.0.0.1", family: 4 }],
  });
});
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
  await egress.close();
});
afterAll(() => rmSync(folder, { recursive: true }));

/** One end of a connection, with everything that it has received. */
type End = {
  socket: net.Socket;
  received: () => string;
  /** Resolves once the text has arrived, or the connection has ended. */
  until: (text: string) => Promise<string>;
  /** Resolves once the other side has ended the connection. */
  ended: () => Promise<string>;
};

function endOf(socket: net.Socket): End {
  let text = "";
  let isOver = false;
  const waiting = new Set<() => void>();
  const notify = () => {
    for (const resolve of waiting) resolve();
    waiting.clear();
  };
  socket.on("error", () => {});
  socket.on("data", (chunk) => {
    text += chunk.toString("latin1");
    notify();
  });
  for (const event of ["end", "close"])
    socket.on(event, () => {
      isOver = true;
      notify();
    });
  const wait = async (isDone: () => boolean) => {
    while (!isDone() && !isOver) await new Promise<void>((resolve) => waiting.add(resolve));
    return text;
  };
  return {
    socket,
    received: () => text,
    until: (part) => wait(() => text.includes(part)),
    ended: () => wait(() => false),
  };
}

/** A server of raw bytes on loopback, with its connections in order. */
async function serve(accept: (end: End) => void): Promise<{ port: number; ends: End[] }> {
  const ends: End[] = [];
  const server = net.createServer({ allowHalfOpen: true }, (socket) => {
    const end = endOf(socket);
    ends.push(end);
    accept(end);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  stops.push(() => {
    for (const { socket } of ends) socket.destroy();
    server.close();
  });
  return { port: (server.address() as net.AddressInfo).port, ends };
}

/** Answers each connection with the same bytes as soon as the head of its request has arrived. */
const answering = (answer: string) => (end: End) => void end.until("\r\n\r\n").then(() => end.socket.write(answer));

/** A run that may reach `docs.test` and `tunnel.test`; `connect` opens a connection to its proxy. */
async function open(way: string, run: Partial<EgressRun> = {}) {
  const events: AgentEvent[] = [];
  let notify = () => {};
  const session = egress.open({
    urls: [],
    docsUrls: ["http://docs.test/"],
    urlMap: {},
    allowPrivate: [{ host: "127.0.0.1", port: null }],
    onEvent(event) {
      events.push(event);
      notify();
    },
    ...run,
  });
  stops.push(() => session.close());
  let path = egress.socketPath;
  if (way === "relay") {
    const task = {
      text: "Read",
      endGoal: null,
      limits: wideLimits,
      startUrls: ["http://docs.test/"],
      productUrl: null,
      urlMap: {},
      declaredChecks: [],
    };
    const home = mkdtempSync(join(folder, "run-"));
    const own = { path: egress.socketPath, token: session.token };
    const relay = await openRelay({
      folder: home,
      egress: own,
      task,
      reader: createReader(task),
      report: () => {},
      now: Date.now,
    });
    stops.push(() => relay[Symbol.asyncDispose]());
    path = relay.toProxy().path;
  }
  const authorization = `Proxy-Authorization: Bearer ${session.token}\r\n`;
  const connect = () => {
    const socket = net.connect({ path, allowHalfOpen: true });
    stops.push(() => socket.destroy());
    return endOf(socket);
  };
  return {
    session,
    events,
    connect,
    /** Sends a request with raw header lines. */
    send(url: string, lines: string[] = [], { method = "GET", body = "" } = {}) {
      const end = connect();
      const host = lines.some((line) => /^host:/i.test(line)) ? [] : [`Host: ${URL.parse(url)?.host}`];
      end.socket.write(`${method} ${url} HTTP/1.1\r\n${authorization}${[...host, ...lines, "", body].join("\r\n")}`);
      return end;
    },
    async tunnel(target: string) {
      const end = connect();
      end.socket.write(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n${authorization}\r\n`);
      await end.until("\r\n\r\n");
      return end;
    },
    async told(count: number) {
      while (events.length < count) await new Promise<void>((resolve) => (notify = resolve));
      return events;
    },
  };
}

const upgrading = ["Connection: Upgrade", "Upgrade: echo"];
const switching = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n";
const mebibyte = 1024 * 1024;

/** Writes until the other side stops reading, and returns how much was written by then. */
async function fill(socket: net.Socket, maxBytes: number): Promise<number> {
  const chunk = Buffer.alloc(65_536, "x");
  let bytes = 0;
  for (;;) {
    while (bytes < maxBytes && socket.write(chunk)) bytes += chunk.length;
    if (bytes >= maxBytes) return bytes;
    bytes += chunk.length;
    const drained = Promise.withResolvers<boolean>();
    socket.once("drain", () => drained.resolve(true));
    const timer = setTimeout(() => drained.resolve(false), 300);
    const isDrained = await drained.promise;
    clearTimeout(timer);
    if (!isDrained) return bytes;
  }
}

describe.each(["egress", "relay"])("the %s proxy", (way) => {
  test("forwards no headers of one connection, in either direction", async () => {
    const lines = ["Connection: close, X-Theirs", "X-Theirs: 1", "Keep-Alive: timeout=9", "X-End: 1"];
    const closing = ["Proxy-Authenticate: Basic", "Trailer: X-T", "Content-Length: 2"];
    const { port, ends } = await serve(
      answering(`HTTP/1.1 200 OK\r\n${[...lines, ...closing].join("\r\n")}\r\n\r\nok`),
    );
    const { send } = await open(way);
    const named = ["Connection: keep-alive, X-Mine", "X-Mine: 1", "Keep-Alive: 5", "Proxy-Connection: keep-alive"];
    const answer = await send(`http://docs.test:${port}/`, [
      ...named,
      "TE: trailers",
      "Trailer: X-T",
      "X-End: 1",
    ]).until("ok");
    const namesIn = (text = "") => [...text.matchAll(/^([\w-]+):/gm)].map(([, name]) => name?.toLowerCase());
    expect(namesIn(ends[0]?.received()).filter((name) => /^(x-|keep|proxy|te$|trailer)/.test(name ?? ""))).toEqual([
      "x-end",
    ]);
    expect(answer.toLowerCase()).not.toMatch(/x-theirs|proxy-authenticate|trailer|timeout=9/);
    expect(namesIn(answer)).toContain("x-end");
  });

  test("uses the host in the URL of a request", async () => {
    const { port, ends } = await serve(answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"));
    const { send, told } = await open(way);
    await send(`http://docs.test:${port}/`, ["Host: other.test"]).until("\r\n\r\n");
    expect(ends[0]?.received()).toMatch(new RegExp(`^host: docs\\.test:${port}\r$`, "im"));
    expect(ends[0]?.received()).not.toContain("other.test");
    expect((await told(1))[0]).toMatchObject({ url: `http://docs.test:${port}/`, status: 200 });
  });

  test.each([
    ["two lengths", ["Content-Length: 4", "Content-Length: 40"]],
    ["a length and chunks", ["Content-Length: 4", "Transfer-Encoding: chunked"]],
    ["an unknown coding", ["Transfer-Encoding: xchunked"]],
    ["a coding after chunks", ["Transfer-Encoding: chunked, identity"]],
    ["a space before the colon", ["Content-Length : 4"]],
    ["a negative length", ["Content-Length: -1"]],
    ["a length with a sign", ["Content-Length: +4"]],
    ["a line break in a value", ["X-A: b\nContent-Length: 4"]],
    ["a carriage return in a value", ["X-A: b\rContent-Length: 4"]],
  ])("lets no request reach a host unrecorded: %s", async (_, lines) => {
    const { port, ends } = await serve(answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"));
    const { send, events } = await open(way);
    const url = `http://docs.test:${port}/`;
    const hidden = `0\r\n\r\nGET ${url}hidden HTTP/1.1\r\nHost: docs.test\r\n\r\n`;
    const end = send(url, lines, { method: "POST", body: hidden });
    await Promise.race([end.ended(), Bun.sleep(200)]);
    const recorded = events.flatMap((event) => (event.type === "http" ? `${event.method} ${event.url}` : []));
    const requests = ends.flatMap(({ received }) => {
      const [, method, path] = /^(\S+) \/(\S*)/.exec(received()) ?? [];
      return method === undefined ? [] : `${method} ${url}${path}`;
    });
    expect(requests.filter((request) => !recorded.includes(request))).toEqual([]);
    for (const { received } of ends) expect(received().match(/HTTP\/1\.1\r\n/g)?.length ?? 0).toBeLessThanOrEqual(1);
  });

  test.each(["GET", "DELETE", "OPTIONS"])("keeps the chunked body of a %s request as its body", async (method) => {
    const { port, ends } = await serve(answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"));
    const { send, told } = await open(way);
    const body = "29\r\nGET /hidden HTTP/1.1\r\nHost: docs.test\r\n\r\n\r\n0\r\n\r\n";
    await send(`http://docs.test:${port}/`, ["Transfer-Encoding: chunked"], { method, body }).until("\r\n\r\n");
    expect((await told(1))[0]).toMatchObject({ method, status: 200, bytesOut: 41 });
    expect(ends[0]?.received()).toMatch(/^transfer-encoding: chunked\r$/im);
    expect(ends[0]?.received()).toMatch(/\r\n\r\n29\r\nGET \/hidden/);
  });

  test("doesn't take bytes after a response for the next one", async () => {
    const { port } = await serve((end) => {
      end.until("\r\n\r\n").then((text) => {
        const path = text.split(" ")[1] ?? "";
        end.socket.write(
          `HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n${path}HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil`,
        );
      });
    });
    const { send, session } = await open(way);
    const end = send(`http://docs.test:${port}/a`);
    await end.until("/a");
    end.socket.write(
      `GET http://docs.test:${port}/b HTTP/1.1\r\nHost: docs.test\r\nProxy-Authorization: Bearer ${session.token}\r\n\r\n`,
    );
    await end.until("/b");
    expect(end.received()).not.toContain("evil");
  });

  test("doesn't take informational responses for answers", async () => {
    const { port } = await serve(
      answering("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nreal"),
    );
    const { send, told } = await open(way);
    expect(await send(`http://docs.test:${port}/`).until("real")).toMatch(/^HTTP\/1\.1 200 /);
    expect((await told(1))[0]).toMatchObject({ status: 200, bytes: 4, error: null });
  });

  test("passes on a response before the end of the request body", async () => {
    const { port } = await serve(
      answering("HTTP/1.1 413 Payload Too Large\r\nConnection: close\r\nContent-Length: 5\r\n\r\nlarge"),
    );
    const { send, told } = await open(way);
    const end = send(`http://docs.test:${port}/`, ["Content-Length: 100000000"], { method: "POST", body: "begin" });
    expect(await end.until("large")).toMatch(/^HTTP\/1\.1 413 /);
    expect((await told(1))[0]).toMatchObject({ status: 413, bytes: 5 });
  });

  test("counts a client that ends its connection as disconnected", async () => {
    const { port, ends } = await serve(() => {});
    const { send, told } = await open(way);
    send(`http://docs.test:${port}/`).socket.end();
    expect((await told(1))[0]).toMatchObject({ status: null, error: { kind: "aborted" } });
    await Promise.all(ends.map((end) => end.ended()));
  });

  test.each([
    ["with a length", "Content-Length: 100\r\n\r\nbegin"],
    ["in chunks", "Transfer-Encoding: chunked\r\n\r\n5\r\nbegin\r\n"],
  ])("reports a response that breaks off as incomplete: %s", async (_, rest) => {
    const { port } = await serve((end) => {
      end
        .until("\r\n\r\n")
        .then(() => end.socket.write(`HTTP/1.1 200 OK\r\n${rest}`, () => setTimeout(() => end.socket.destroy(), 50)));
    });
    const { send, told } = await open(way);
    const text = await send(`http://docs.test:${port}/`).ended();
    expect(text).toContain("begin");
    expect(text).not.toContain("\r\n0\r\n");
    expect((await told(1))[0]).toMatchObject({ status: 200, error: { kind: "protocol" } });
  });

  test("ends the request when the client disconnects before the response", async () => {
    const closed = Promise.withResolvers<void>();
    const { port } = await serve((end) => {
      end.ended().then(() => closed.resolve());
    });
    const { send, told } = await open(way);
    const end = send(`http://docs.test:${port}/`);
    await Bun.sleep(50);
    end.socket.destroy();
    await closed.promise;
    expect((await told(1))[0]).toMatchObject({ status: null, error: { kind: "aborted" } });
  });

  test("waits with a response for a client that doesn't read it, and then completes it", async () => {
    const written = Promise.withResolvers<number>();
    const { port } = await serve((end) => {
      end.until("\r\n\r\n").then(async () => {
        end.socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${64 * mebibyte}\r\n\r\n`);
        const before = await fill(end.socket, 64 * mebibyte);
        written.resolve(before);
        end.socket.write(Buffer.alloc(64 * mebibyte - before, "x"));
      });
    });
    const { send, told } = await open(way);
    const { socket } = send(`http://docs.test:${port}/`);
    socket.pause();
    expect(await written.promise).toBeLessThan(32 * mebibyte);
    socket.resume();
    expect((await told(1))[0]).toMatchObject({ status: 200, bytes: 64 * mebibyte, error: null });
  });

  test("waits with a request for a host that doesn't read it, and then completes it", async () => {
    let resume = () => {};
    const { port } = await serve((end) => {
      end.until("\r\n\r\n").then(() => {
        end.socket.pause();
        let left = 64 * mebibyte - (end.received().split("\r\n\r\n")[1]?.length ?? 0);
        end.socket.on("data", (chunk) => {
          left -= chunk.length;
          if (left <= 0) end.socket.write("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nall");
        });
        resume = () => end.socket.resume();
      });
    });
    const { send, told } = await open(way, { limits: { bytesOut: 64 * mebibyte } });
    const { socket, until } = send(`http://docs.test:${port}/`, [`Content-Length: ${64 * mebibyte}`], {
      method: "POST",
    });
    const before = await fill(socket, 64 * mebibyte);
    expect(before).toBeLessThan(32 * mebibyte);
    resume();
    socket.write(Buffer.alloc(64 * mebibyte - before, "x"));
    expect(await until("all")).toContain("200 OK");
    expect((await told(1))[0]).toMatchObject({ status: 200, bytesOut: 64 * mebibyte, error: null });
  });
});

describe.each(["egress", "relay"])("a tunnel through the %s proxy", (way) => {
  test("passes on what the client sends with its request", async () => {
    const { port, ends } = await serve(() => {});
    const { connect, session } = await open(way);
    const end = connect();
    end.socket.write(
      `CONNECT tunnel.test:${port} HTTP/1.1\r\nProxy-Authorization: Bearer ${session.token}\r\n\r\nearly`,
    );
    await end.until("\r\n\r\n");
    expect(await ends[0]?.until("early")).toBe("early");
  });

  test("lets the host speak first", async () => {
    const { port } = await serve(({ socket }) => void socket.write("220 ready"));
    const { tunnel } = await open(way);
    expect(await (await tunnel(`tunnel.test:${port}`)).until("ready")).toContain("220 ready");
  });

  test("can be ended by each side first", async () => {
    const { port, ends } = await serve(({ socket }) => void socket.end("bye"));
    const { tunnel, told } = await open(way);
    const end = await tunnel(`tunnel.test:${port}`);
    expect(await end.ended()).toContain("bye");
    end.socket.end("x".repeat(100_000));
    const [event] = await told(1);
    await ends[0]?.until("x".repeat(100_000));
    expect(ends[0]?.received().length).toBe(100_000);
    expect(event).toMatchObject({ method: "CONNECT", status: 200, bytes: 3, bytesOut: 100_000, error: null });
  });

  test("disconnects the client when the host resets the connection", async () => {
    const { port } = await serve(({ socket }) => void socket.once("data", () => socket.resetAndDestroy()));
    const { tunnel, told } = await open(way);
    const end = await tunnel(`tunnel.test:${port}`);
    end.socket.write("go");
    await end.ended();
    await told(1);
  });

  test("stops one side while the other doesn't read", async () => {
    const written = Promise.withResolvers<number>();
    const { port } = await serve(
      ({ socket }) => void socket.once("data", async () => written.resolve(await fill(socket, 64 * mebibyte))),
    );
    const { tunnel } = await open(way);
    const { socket } = await tunnel(`tunnel.test:${port}`);
    socket.pause();
    socket.write("go");
    expect(await written.promise).toBeLessThan(32 * mebibyte);
  });

  test("gets a response if it is refused, and the connection is closed", async () => {
    const { connect, session, told } = await open(way);
    const end = connect();
    end.socket.write(`CONNECT other.test:443 HTTP/1.1\r\nProxy-Authorization: Bearer ${session.token}\r\n\r\nearly`);
    expect(await end.ended()).toMatch(/^HTTP\/1\.1 403 [\s\S]*evald-failure: refused/i);
    expect((await told(1))[0]).toMatchObject({ method: "CONNECT", status: null, error: { kind: "refused" } });
  });
});

describe.each(["egress", "relay"])("an upgrade through the %s proxy", (way) => {
  test("passes on bytes that were sent early, in both directions", async () => {
    const { port, ends } = await serve(answering(`${switching}hello`));
    const { send, told } = await open(way);
    const end = send(`http://docs.test:${port}/`, upgrading, { body: "early" });
    expect(await end.until("hello")).toMatch(/^HTTP\/1\.1 101 [\s\S]*upgrade: echo/i);
    expect(await ends[0]?.until("early")).toMatch(/\r\n\r\nearly$/);
    expect(ends[0]?.received()).toMatch(/^upgrade: echo\r$/im);
    end.socket.end("more");
    await ends[0]?.until("earlymore");
    ends[0]?.socket.end("done");
    expect(await end.until("done")).toContain("hellodone");
    const [event] = await told(1);
    expect(event).toMatchObject({ url: `http://docs.test:${port}/`, status: 101, bytesOut: 9, error: null });
  });

  test("is answered with the host's response if the host refuses it", async () => {
    const { port } = await serve(answering("HTTP/1.1 426 Upgrade Required\r\nContent-Length: 5\r\n\r\nnever"));
    const { send, told } = await open(way);
    const text = await send(`http://docs.test:${port}/`, upgrading).ended();
    expect(text).toMatch(/^HTTP\/1\.1 426 [\s\S]*never$/);
    expect((await told(1))[0]).toMatchObject({ status: 426, bytes: 5, error: null });
  });

  test("is refused if the request has a body, because its end is unknown", async () => {
    const { send, events } = await open(way);
    const lines = [...upgrading, "Content-Length: 7"];
    const end = send("http://docs.test/", lines, { method: "POST", body: "a=1&b=2" });
    expect(await end.ended()).toMatch(/^HTTP\/1\.1 400 /);
    expect(events).toEqual([]);
  });

  test("has the limits of the run in both directions", async () => {
    const { port } = await serve((end) => {
      end.until("\r\n\r\n").then(() => {
        end.socket.write(switching);
        end.until("in").then(() => fill(end.socket, mebibyte));
      });
    });
    for (const [limits, text] of [
      [{ bytesIn: 100_000 }, "in"],
      [{ bytesOut: 1_000 }, "x".repeat(10_000)],
    ] as const) {
      const { send, told } = await open(way, { limits });
      const end = send(`http://docs.test:${port}/`, upgrading);
      await end.until("\r\n\r\n");
      end.socket.write(text);
      await end.ended();
      const events = await told(2);
      expect(events.map(({ type }) => type)).toEqual(["limit", "http"]);
      expect(events[1]).toMatchObject({ status: 101, error: { kind: "too_large" } });
      expect(end.received().length).toBeLessThan(150_000);
    }
  });

  test("has the limits of the run in the response to a refusal", async () => {
    const { port } = await serve((end) => {
      end.until("\r\n\r\n").then(() => {
        end.socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${8 * mebibyte}\r\n\r\n`);
        fill(end.socket, 8 * mebibyte);
      });
    });
    const { send, told } = await open(way, { limits: { bytesIn: 100_000 } });
    const end = send(`http://docs.test:${port}/`, upgrading);
    await end.ended();
    expect(end.received().length).toBeLessThan(mebibyte);
    expect((await told(2))[1]).toMatchObject({ status: 200, error: { kind: "too_large" } });
  });

  test("ends after the timeout of a request if the host doesn't answer", async () => {
    const { port } = await serve(() => {});
    const { send, told } = await open(way, { limits: { requestMs: 50 } });
    expect(await send(`http://docs.test:${port}/`, upgrading).ended()).toMatch(/^HTTP\/1\.1 504 /);
    expect((await told(1))[0]).toMatchObject({ status: null, error: { kind: "timeout" } });
  });

  test.each([
    ["before", ""],
    ["after", switching],
  ])("ends the connection to the host if the client disconnects %s the response", async (_, answer) => {
    const asked = Promise.withResolvers<void>();
    const closed = Promise.withResolvers<void>();
    const { port } = await serve((end) => {
      end.until("\r\n\r\n").then(() => {
        end.socket.write(answer);
        asked.resolve();
      });
      end.ended().then(() => closed.resolve());
    });
    const { send, told } = await open(way);
    const end = send(`http://docs.test:${port}/`, upgrading);
    await asked.promise;
    if (answer !== "") await end.until("\r\n\r\n");
    end.socket.destroy();
    await closed.promise;
    expect((await told(1))[0]).toMatchObject({ status: answer === "" ? null : 101 });
  });

  test("can't reach a host outside the run", async () => {
    const { send, told } = await open(way);
    const end = send("http://other.test/", upgrading, { body: "early" });
    expect(await end.ended()).toMatch(/^HTTP\/1\.1 403 /);
    expect((await told(1))[0]).toMatchObject({ status: null, error: { kind: "refused" } });
  });
});

describe("the gateway's socket on a worker", () => {
  async function openGateway(baseUrl: string) {
    const path = join(folder, `${crypto.randomUUID().slice(0, 8)}.sock`);
    const server = await forwardSocket(path, baseUrl);
    stops.push(() => server.close());
    return (init?: RequestInit & { path?: string }) =>
      fetch(`http://gateway${init?.path ?? "/openai/v1?a=1"}`, { ...init, unix: path } as RequestInit);
  }

  test("passes requests and responses on as they arrive, without connection-specific headers", async () => {
    const { port, ends } = await serve((end) => {
      end.until("question").then(() => {
        end.socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: X-Own\r\nX-Own: 1\r\n\r\n");
        end.socket.write("5\r\nfirst\r\n");
      });
    });
    const send = await openGateway(`http://127.0.0.1:${port}/base`);
    const headers = { "x-api-key": "secret", connection: "keep-alive, x-mine", "x-mine": "1" };
    const response = await send({ method: "POST", body: "question", headers });
    expect([response.status, response.headers.get("x-own")]).toEqual([200, null]);
    const reader = response.body?.getReader();
    expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toBe("first");
    ends[0]?.socket.write("4\r\nlast\r\n0\r\n\r\n");
    expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toBe("last");
    expect((await reader?.read())?.done).toBe(true);
    expect(ends[0]?.received()).toMatch(/^POST \/base\/openai\/v1\?a=1 HTTP/);
    expect(ends[0]?.received()).toMatch(/^x-api-key: secret\r$/im);
    expect(ends[0]?.received()).not.toMatch(/x-mine/i);
  });

  test("doesn't follow a redirect", async () => {
    const { port, ends } = await serve(
      answering("HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"),
    );
    const send = await openGateway(`http://127.0.0.1:${port}`);
    expect((await send({ redirect: "manual" })).status).toBe(302);
    expect(ends).toHaveLength(1);
  });

  test("reports an unavailable service as an error in the format of the gateway", async () => {
    const send = await openGateway("http://127.0.0.1:1");
    const response = await send();
    expect([response.status, await response.json()]).toEqual([
      502,
      { type: "error", error: { type: "gateway", message: expect.stringContaining("the gateway did not respond") } },
    ]);
  });

  test("reports a response that breaks off as incomplete", async () => {
    const { port } = await serve((end) => {
      end.until("\r\n\r\n").then(() => {
        end.socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nbegin\r\n");
        setTimeout(() => end.socket.destroy(), 50);
      });
    });
    const send = await openGateway(`http://127.0.0.1:${port}`);
    const response = await send();
    expect(response.text()).rejects.toThrow();
  });

  test("ends the request when the agent disconnects", async () => {
    const asked = Promise.withResolvers<void>();
    const closed = Promise.withResolvers<void>();
    const { port } = await serve((end) => {
      end.until("\r\n\r\n").then(() => asked.resolve());
      end.ended().then(() => closed.resolve());
    });
    const send = await openGateway(`http://127.0.0.1:${port}`);
    const controller = new AbortController();
    const response = send({ signal: controller.signal }).catch(() => "aborted");
    await asked.promise;
    controller.abort();
    expect(await response).toBe("aborted" as never);
    await closed.promise;
  });
});
