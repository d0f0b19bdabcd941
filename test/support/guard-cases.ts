import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import zlib from "node:zlib";
import { type AllowRule, parseAllowRules } from "../../src/config/allow-rules.ts";
import { createAddressPolicy } from "../../src/net/addresses.ts";
import { type Guard, GuardError, type GuardedRequest, type GuardOptions } from "../../src/net/guarded.ts";
import { createRobots } from "../../src/net/robots.ts";
import { userAgent } from "../../src/net/user-agent.ts";
import { type Site, serveSite } from "./site.ts";

/** How the operator allows an address, with its value written as VALUE. */
const remedy = "to allow it, the operator can set EVALD_ALLOW_PRIVATE=VALUE";
const metadataRemedy = "only EVALD_ALLOW_PRIVATE with its exact address and port allows it";
/** What a guard promises, however it connects. */
export function testGuard(create: (options: GuardOptions) => Guard): void {
  const stops: (() => void)[] = [];
  afterAll(() => stops.map((stop) => stop()));

  const own: AllowRule[] = [{ host: "127.0.0.1", port: null }];

  function guard(allow: AllowRule[] = own, options: Partial<GuardOptions> = {}): Guard {
    return create({ allow, now: () => 0, ...options });
  }

  function site(routes: Parameters<typeof serveSite>[0]): Site {
    const served = serveSite(routes);
    stops.push(served.stop);
    return served;
  }

  /** A server that responds with raw bytes; `sockets` are its connections so far. */
  async function rawServer(
    talk: (socket: net.Socket) => void,
  ): Promise<{ url: string; port: number; sockets: net.Socket[] }> {
    const sockets: net.Socket[] = [];
    const server = net.createServer((socket) => {
      sockets.push(socket);
      socket.on("error", () => {});
      talk(socket);
    });
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
    stops.push(() => {
      for (const socket of sockets) socket.destroy();
      server.close();
    });
    const { port } = server.address() as net.AddressInfo;
    return { url: `http://127.0.0.1:${port}`, port, sockets };
  }

  /** Result of a request, with loopback ports written as PORT. */
  async function outcome(guarded: Guard, url: string, init?: GuardedRequest) {
    const result = await guarded.request(url, init).then(
      ({ headers: _headers, body: _body, ms: _ms, ...rest }) => rest,
      (error) => {
        if (!(error instanceof GuardError)) throw error;
        return { kind: error.kind, url: error.url, message: error.message };
      },
    );
    const text = JSON.stringify(result)
      .replace(
        /can (?:set EVALD_ALLOW_PRIVATE=|add )[^ "]+(?: to EVALD_ALLOW_PRIVATE)?/g,
        "can set EVALD_ALLOW_PRIVATE=VALUE",
      )
      .replace(/(127\.0\.0\.1|\.test):\d+/g, "$1:PORT");
    return JSON.parse(text);
  }

  const refused = (url: string, message: string) => ({ kind: "refused", url, message });
  const answered = (url: string) => ({ url, mappedUrl: null, status: 200, redirects: [] });

  describe("an address", () => {
    let home: Site;
    beforeAll(() => {
      home = site({ "/": { body: "home" } });
    });

    test.each([
      ["http://127.0.0.1/", "127.0.0.1 is a loopback address"],
      ["http://127.1/", "127.0.0.1 is a loopback address"],
      ["http://2130706433/", "127.0.0.1 is a loopback address"],
      ["http://0x7f.0.0.1/", "127.0.0.1 is a loopback address"],
      ["http://0/", "0.0.0.0 is an unspecified address"],
      ["http://10.1.2.3/", "10.1.2.3 is a private address"],
      ["http://100.64.0.1/", "100.64.0.1 is a carrier-grade NAT address"],
      ["http://169.254.169.254/", "169.254.169.254 is a link-local address"],
      ["http://168.63.129.16/", "168.63.129.16 is a cloud metadata address"],
      ["http://198.18.0.1/", "198.18.0.1 is a reserved address"],
      ["http://[::1]/", "::1 is a loopback address"],
      ["http://[::7f00:1]/", "::7f00:1 is a reserved address"],
      ["http://[::ffff:127.0.0.1]/", "::ffff:7f00:1 is a loopback address"],
      ["http://[64:ff9b::7f00:1]/", "64:ff9b::7f00:1 is a NAT64 address"],
      ["http://[2002:7f00:1::]/", "2002:7f00:1:: is a 6to4 address"],
      ["http://[fd00:ec2::254]/", "fd00:ec2::254 is a unique local address"],
      ["http://[fe80::1]/", "fe80::1 is a link-local address"],
    ])("such as %s is blocked", async (url, what) => {
      const isMetadata = /169\.254|168\.63|ec2/.test(url);
      expect(await outcome(guard([]), url)).toEqual(
        refused(new URL(url).href, `${what}; ${isMetadata ? metadataRemedy : remedy}`),
      );
    });

    test.each([
      "http://127.0.0.1:4000/",
      "http://[::1]/",
      "https://10.1.2.3/",
      "http://docs.test/",
      "http://docs.test:81/",
    ])("such as %s is allowed by the setting that the refusal names", async (url) => {
      const lookup = async () => [{ address: "10.0.0.7", family: 4 }];
      for (const others of ["", "docs.internal"]) {
        const refusal = await guard(parseAllowRules(others), { lookup }).request(url).catch(String);
        const [, set, added] =
          /set EVALD_ALLOW_PRIVATE=(\S+)$|add (\S+) to EVALD_ALLOW_PRIVATE$/.exec(`${refusal}`) ?? [];
        expect([others, set === undefined]).toEqual([others, others !== ""]);
        const { hostname, port, protocol } = new URL(url);
        const policy = createAddressPolicy(parseAllowRules(set ?? `${others},${added}`));
        const host = hostname.replace(/^\[|\]$/g, "");
        const address = host === "docs.test" ? "10.0.0.7" : host;
        expect(policy.objection(host, address, Number(port) || (protocol === "https:" ? 443 : 80))).toBe(null);
      }
    });

    test.each([
      ["file:///etc/passwd", "file:///etc/passwd is a file: URL; only http and https are allowed"],
      ["data:text/plain,hi", "data:text/plain,hi is a data: URL; only http and https are allowed"],
      ["s3://bucket/key", "s3://bucket/key is a s3: URL; only http and https are allowed"],
      ["http://user:pw@127.0.0.1/", "The URL of 127.0.0.1 contains a user name or password, which is not allowed"],
      ["not an address", '"not an address" is not a valid URL'],
      [
        "https://example.com:8443/",
        "example.com cannot be reached on port 8443: only ports 80 and 443 are allowed; to allow it, the operator can set EVALD_ALLOW_PRIVATE=VALUE",
      ],
    ])("such as %s is blocked without a DNS lookup", async (url, message) => {
      const lookup = () => Promise.reject(new Error("looked up"));
      expect(await outcome(guard([], { lookup }), url)).toEqual(refused(url, message));
    });

    test("is allowed by a rule for one port, a host name, an address or a range", async () => {
      const { port } = home;
      const lookup = async () => [{ address: "127.0.0.1", family: 4 }];
      const named = `http://docs.test:${port}/`;
      const reached = async (host: string, rulePort: number | null, url: string) =>
        (await outcome(guard([{ host, port: rulePort }], { lookup }), url)).status ?? "refused";
      expect({
        port: await reached("127.0.0.1", port, home.url),
        otherPort: await reached("127.0.0.1", port === 4000 ? 4001 : 4000, home.url),
        range: await reached("127.0.0.0/8", null, home.url),
        otherRange: await reached("10.0.0.0/8", null, home.url),
        mapped: await reached("127.0.0.1", port, `http://[::ffff:127.0.0.1]:${port}/`),
        name: await reached("docs.test", port, named),
        nameWithDot: await reached("docs.test", port, `http://docs.test.:${port}/`),
        nameOtherPort: await reached("docs.test", 4000, named),
        otherName: await reached("test", port, named),
        nameByAddress: await reached("127.0.0.1", port, named),
        nameByRange: await reached("127.0.0.0/8", null, named),
      }).toEqual({
        port: 200,
        otherPort: "refused",
        range: 200,
        otherRange: "refused",
        mapped: 200,
        name: 200,
        nameWithDot: 200,
        nameOtherPort: "refused",
        otherName: "refused",
        nameByAddress: 200,
        nameByRange: 200,
      });
    });

    test("for metadata requires a rule for its exact address and port", async () => {
      const lookup = async () => [{ address: "169.254.169.254", family: 4 }];
      const kind = async (rule: AllowRule, url: string, timeoutMs?: number) =>
        (await outcome(guard([rule], { lookup }), url, { timeoutMs })).kind;
      expect({
        range: await kind({ host: "169.254.0.0/16", port: null }, "http://169.254.169.254/"),
        anyPort: await kind({ host: "169.254.169.254", port: null }, "http://169.254.169.254/"),
        name: await kind({ host: "meta.test", port: 80 }, "http://meta.test/"),
        thatRange: await kind({ host: "169.254.169.254/32", port: 80 }, "http://169.254.169.254/"),
      }).toEqual({ range: "refused", anyPort: "refused", name: "refused", thatRange: "refused" });
      expect(await kind({ host: "169.254.169.254", port: 80 }, "http://169.254.169.254/", 1)).not.toBe("refused");
    });

    test("that is private is blocked even among public ones", async () => {
      const lookup = async () => [
        { address: "93.184.216.34", family: 4 },
        { address: "10.0.0.7", family: 4 },
      ];
      expect(await outcome(guard([], { lookup }), "http://mixed.test/")).toEqual(
        refused("http://mixed.test/", `mixed.test resolves to 10.0.0.7, which is a private address; ${remedy}`),
      );
    });

    test("isn't allowed on a port just because a private host is", async () => {
      const lookup = async () => [{ address: "93.184.216.34", family: 4 }];
      expect(
        await outcome(guard([{ host: "10.0.0.0/8", port: null }], { lookup }), "http://public.test:8080/"),
      ).toEqual(
        refused(
          "http://public.test:PORT/",
          `public.test cannot be reached on port 8080: only ports 80 and 443 are allowed; ${remedy}`,
        ),
      );
    });

    test("is resolved once per request, and the connection uses the result", async () => {
      let lookups = 0;
      const lookup = async () => [{ address: lookups++ === 0 ? "127.0.0.1" : "10.0.0.7", family: 4 }];
      const guarded = guard([{ host: "127.0.0.1", port: home.port }], { lookup, keepsAlive: false });
      const url = `http://rebind.test:${home.port}/`;
      expect({ first: await outcome(guarded, url), lookups }).toEqual({
        first: answered("http://rebind.test:PORT/"),
        lookups: 1,
      });
      expect((await outcome(guarded, url)).message).toBe(
        `rebind.test resolves to 10.0.0.7, which is a private address; ${remedy}`,
      );
    });

    test("in an invalid range is rejected immediately", () => {
      expect(() => guard([{ host: "10.0.0.0/99", port: null }])).toThrow(
        "10.0.0.0/99 is not a valid range: the prefix length must be 0 to 32",
      );
    });
  });

  describe("redirects", () => {
    test("are followed and listed, at most five", async () => {
      const to = (location: string) => ({ status: 302, headers: { location } });
      const { url } = site({
        "/1": to("/2?x=1#part"),
        "/2": to("3"),
        "/3": { body: "third" },
        "/a": to("/b"),
        "/b": to("/a"),
        "/file": to("file:///etc/passwd"),
        "/metadata": to("http://169.254.169.254/latest/"),
        "/port": to("http://127.0.0.1:1/"),
        "/bad": to("http://["),
        "/bare": { status: 302 },
        ...Object.fromEntries([0, 1, 2, 3, 4, 5, 6].map((n) => [`/step${n}`, to(`/step${n + 1}`)])),
      });
      const guarded = guard([{ host: "127.0.0.1", port: Number(new URL(url).port) }]);
      const host = "http://127.0.0.1:PORT";
      expect({
        good: await outcome(guarded, `${url}/1`),
        unfollowed: await outcome(guarded, `${url}/1`, { followRedirects: false }),
        bare: await outcome(guarded, `${url}/bare`),
        loop: await outcome(guarded, `${url}/a`),
        five: await outcome(guarded, `${url}/step2`),
        six: await outcome(guarded, `${url}/step0`),
        file: await outcome(guarded, `${url}/file`),
        metadata: await outcome(guarded, `${url}/metadata`),
        port: await outcome(guarded, `${url}/port`),
        bad: await outcome(guarded, `${url}/bad`),
      }).toEqual({
        good: { url: `${host}/3`, mappedUrl: null, status: 200, redirects: [`${host}/1`, `${host}/2?x=1`] },
        unfollowed: { url: `${host}/1`, mappedUrl: null, status: 302, redirects: [] },
        bare: { url: `${host}/bare`, mappedUrl: null, status: 302, redirects: [] },
        loop: {
          kind: "redirect",
          url: `${host}/a`,
          message: "127.0.0.1:PORT redirects in a loop back to http://127.0.0.1:PORT/a",
        },
        five: {
          url: `${host}/step7`,
          mappedUrl: null,
          status: 404,
          redirects: [2, 3, 4, 5, 6].map((n) => `${host}/step${n}`),
        },
        six: {
          kind: "redirect",
          url: `${host}/step6`,
          message: "More than 5 redirects, the last one to 127.0.0.1:PORT",
        },
        file: refused("file:///etc/passwd", "file:///etc/passwd is a file: URL; only http and https are allowed"),
        metadata: refused(
          "http://169.254.169.254/latest/",
          `169.254.169.254 is a link-local address; ${metadataRemedy}`,
        ),
        port: refused(`${host}/`, `127.0.0.1 is a loopback address; ${remedy}`),
        bad: {
          kind: "redirect",
          url: `${host}/bad`,
          message: '127.0.0.1:PORT redirects to "http://[", which is not a valid URL',
        },
      });
    });

    test("are read as UTF-8 like servers send them, and timed as one request", async () => {
      const { url } = await rawServer((socket) => {
        socket.on("data", (data) => {
          const moved = data.toString().startsWith("GET / ");
          const head = moved ? "HTTP/1.1 301 Moved\r\nLocation: /grün\r\n" : "HTTP/1.1 200 OK\r\n";
          socket.end(`${head}Content-Length: 0\r\n\r\n`);
        });
      });
      let clock = 0;
      const { ms, url: last } = await guard(own, { now: () => clock++ * 7 }).request(url);
      expect({ ms, last }).toEqual({ ms: 14, last: `${url}/gr%C3%BCn` });
    });

    test("keep credentials within an origin and drop them otherwise", async () => {
      const echo = (request: Request) => Response.json(Object.fromEntries(request.headers));
      const other = site({ "/echo": echo });
      const home = site({
        "/in": { status: 307, headers: { location: "/echo" } },
        "/out": { status: 307, headers: { location: `${other.url}/echo` } },
        "/echo": echo,
      });
      const guarded = guard();
      const headers = {
        Authorization: "Bearer x",
        Cookie: "a=b",
        "X-Api-Key": "k",
        Accept: "text/markdown",
        Host: "elsewhere.test",
        "Content-Length": "5",
      };
      const sent = async (path: string) =>
        JSON.parse(guarded.text(await guarded.request(home.url + path, { headers })));
      const rest = {
        accept: "text/markdown",
        "accept-encoding": "gzip, br",
        connection: "keep-alive",
        "user-agent": userAgent,
      };
      expect({ inside: await sent("/in"), outside: await sent("/out") }).toEqual({
        inside: { ...rest, authorization: "Bearer x", cookie: "a=b", "x-api-key": "k", host: `127.0.0.1:${home.port}` },
        outside: { ...rest, host: `127.0.0.1:${other.port}` },
      });
    });

    test("change the method like browsers do", async () => {
      const back = (status: number) => (request: Request) =>
        request.method === "GET"
          ? new Response("done")
          : new Response(null, { status, headers: { location: request.url } });
      const { url, requests } = site({
        "/301": back(301),
        "/303": back(303),
        "/to": { status: 307, headers: { location: "/end" } },
      });
      for (const path of ["/301", "/303", "/to"]) await guard().request(url + path, { method: "POST" });
      await guard().request(`${url}/to`, { method: "HEAD" });
      expect(requests).toEqual([
        "POST /301",
        "GET /301",
        "POST /303",
        "GET /303",
        "POST /to",
        "POST /end",
        "HEAD /to",
        "HEAD /end",
      ]);
    });
  });

  describe("a urlMap", () => {
    test("maps a host, and reports under the original name", async () => {
      const preview: Site = site({
        "/preview/guide?v=2": { body: "guide" },
        "/preview/absolute": () => Response.redirect(`${preview.url}/preview/guide?v=2`),
        "/preview/relative": { status: 302, headers: { location: "guide?v=2" } },
        "/preview/proxied": { status: 302, headers: { location: "/guide?v=2" } },
        "/preview/own-name": { status: 302, headers: { location: "https://docs.example.com/guide?v=2" } },
        "/preview/outside": () => Response.redirect(`${preview.url}/previewer`),
        "/preview/previewer": {},
        "/api/v1": { body: "api" },
        "/preview/api": () => Response.redirect(`${preview.url}/api/v1`),
      });
      const guarded = guard(own, {
        urlMap: {
          "twin.example.com": `${preview.url}/preview`,
          "docs.example.com": `${preview.url}/preview/`,
          "http://api.example.com": `${preview.url}/api`,
        },
      });
      const docs = "https://docs.example.com";
      const guide = (from: string) => ({
        url: `${docs}/guide?v=2`,
        mappedUrl: "http://127.0.0.1:PORT/preview/guide?v=2",
        status: 200,
        redirects: [`${docs}${from}`],
      });
      for (const path of ["/absolute", "/relative", "/proxied", "/own-name"])
        expect(await outcome(guarded, docs + path)).toEqual(guide(path));
      expect((await outcome(guarded, `${docs}/outside`)).url).toBe(`${docs}/previewer`);
      expect(await outcome(guarded, `${docs}/api`)).toEqual({
        url: "http://api.example.com/v1",
        mappedUrl: "http://127.0.0.1:PORT/api/v1",
        status: 200,
        redirects: [`${docs}/api`],
      });
      expect([
        guarded.findMappedUrl(`${docs}:8443/a?b=c`),
        guarded.findMappedUrl("http://api.example.com/x"),
        guarded.findMappedUrl("https://api.example.com/x"),
        guarded.findMappedUrl("https://example.com/"),
      ]).toEqual([`${preview.url}/preview/a?b=c`, `${preview.url}/api/x`, null, null]);
    });

    test("allows nothing by itself, and a failure names the mapped URL", async () => {
      expect(
        await outcome(guard([], { urlMap: { "docs.example.com": "http://10.0.0.7/" } }), "https://docs.example.com/a"),
      ).toEqual(
        refused(
          "https://docs.example.com/a",
          `10.0.0.7 is a private address; ${remedy} (urlMap maps docs.example.com to it)`,
        ),
      );
      for (const target of ["file:///srv", "http://user@127.0.0.1/", "here"])
        expect(() => guard([], { urlMap: { "docs.example.com": target } })).toThrow(
          /^bad_request: Invalid urlMap: .*"docs\.example\.com"/,
        );
    });

    const keys: [key: string, mapped: string[], notMapped: string[]][] = [
      ["docs.example.com", ["http://docs.example.com/", "https://docs.example.com:8443/"], ["https://example.com/"]],
      ["DOCS.Example.COM", ["https://docs.example.com/"], []],
      ["docs.example.com:443", ["https://docs.example.com/"], ["http://docs.example.com/"]],
      ["docs.example.com:80", ["http://docs.example.com/"], ["https://docs.example.com/"]],
      ["docs.example.com:8443", ["https://docs.example.com:8443/"], ["https://docs.example.com/"]],
      ["HTTPS://Docs.example.com:443/", ["https://docs.example.com/"], ["http://docs.example.com/"]],
      ["http://docs.example.com:443", ["http://docs.example.com:443/"], ["https://docs.example.com/"]],
      ["127.1", ["http://127.0.0.1:9/"], []],
      ["http://0x7f000001:80", ["http://127.0.0.1/"], ["https://127.0.0.1/"]],
      ["[0:0::1]:8080", ["http://[::1]:8080/"], ["http://[::1]/"]],
      ["DÖCS.example.com", ["https://xn--dcs-sna.example.com/", "http://döcs.example.com/"], []],
      ["my_docs.internal", ["http://my_docs.internal/"], []],
    ];
    test.each(keys)("accepts a key however it is written: %s", (key, mapped, notMapped) => {
      const guarded = guard(own, { urlMap: { [key]: "http://127.0.0.1:9/preview" } });
      for (const url of mapped) expect([url, guarded.findMappedUrl(url)]).toEqual([url, "http://127.0.0.1:9/preview/"]);
      for (const url of notMapped) expect([url, guarded.findMappedUrl(url)]).toEqual([url, null]);
    });

    test("sends the query of a value to the preview without showing it", async () => {
      const asked: string[] = [];
      const preview = site({
        "/base/a": (request) => {
          asked.push(new URL(request.url).search);
          return Response.redirect(`${preview.url}/base/b${new URL(request.url).search}&more=1`);
        },
        "/base/b": (request) => {
          asked.push(new URL(request.url).search);
          return new Response("here");
        },
      });
      const guarded = guard(own, { urlMap: { "docs.test": `${preview.url}/base/?bypass=s3cret%20&set` } });
      expect(await outcome(guarded, "https://docs.test/a?page=2")).toEqual({
        url: "https://docs.test/b?page=2&more=1",
        mappedUrl: "http://127.0.0.1:PORT/base/b?page=2&more=1",
        status: 200,
        redirects: ["https://docs.test/a?page=2"],
      });
      expect(asked).toEqual(["?page=2&bypass=s3cret%20&set", "?page=2&more=1&bypass=s3cret%20&set"]);
      expect(guarded.findMappedUrl("https://docs.test/a")).toEndWith("/base/a");
    });

    test("prefers the most specific key", () => {
      const at = (n: number) => `http://127.0.0.1:${n}`;
      const urlMap = { "a.test": at(1), "a.test:8443": at(2), "https://a.test:8443": at(3), "a.test:443": at(4) };
      for (const ordered of [urlMap, Object.fromEntries(Object.entries(urlMap).reverse())]) {
        const { findMappedUrl: mapped } = guard(own, { urlMap: ordered });
        const addresses = ["http://a.test/", "http://a.test:8443/", "https://a.test:8443/", "https://a.test/"];
        expect(addresses.map(mapped)).toEqual([1, 2, 3, 4].map((n) => `${at(n)}/`));
      }
    });
  });

  describe("a request", () => {
    const head = "HTTP/1.1 200 OK\r\n";

    test("is stopped on the way if its response is an endless gzip bomb", async () => {
      const member = zlib.gzipSync(Buffer.alloc(1024 * 1024));
      const { promise: closed, resolve: close } = Promise.withResolvers<number>();
      const { url } = await rawServer((socket) => {
        let sentBytes = 0;
        const send = () => {
          if (socket.destroyed) return;
          sentBytes += member.length;
          socket.write(member, () => setImmediate(send));
        };
        socket.once("data", () => socket.write(`${head}Content-Encoding: gzip\r\n\r\n`, send));
        socket.once("close", () => close(sentBytes));
      });
      expect(await outcome(guard(), url, { timeoutMs: 4000 })).toEqual({
        kind: "too_large",
        url: "http://127.0.0.1:PORT/",
        message: "127.0.0.1:PORT sent a body larger than the limit of 5242880 bytes",
      });
      // This is what the socket buffers of both ends hold, and no more.
      expect(await closed).toBeLessThan(16 * 1024 * 1024);
    });

    test("doesn't unpack 50 MiB from 50 KiB of gzip", async () => {
      const bomb = new Uint8Array(zlib.gzipSync(Buffer.alloc(50 * 1024 * 1024)));
      const { url } = site({ "/": () => new Response(bomb, { headers: { "content-encoding": "gzip" } }) });
      expect((await outcome(guard(), url)).kind).toBe("too_large");
    });

    test("reads a body as long as maxBytes and no longer", async () => {
      const { url } = site({
        "/": { body: "12345" },
        "/chunked": () => new Response(new Blob(["12345"]).stream()),
      });
      const kinds = [];
      for (const path of ["/", "/chunked"])
        for (const maxBytes of [5, 4]) kinds.push((await outcome(guard(), url + path, { maxBytes })).kind ?? "whole");
      expect(kinds).toEqual(["whole", "too_large", "whole", "too_large"]);
    });

    test("is rejected immediately if the announced length exceeds the limit", async () => {
      const { url } = await rawServer((socket) => {
        socket.once("data", () => socket.write(`${head}Content-Length: 99999999\r\n\r\n`));
      });
      expect((await outcome(guard(), url, { timeoutMs: 2000 })).kind).toBe("too_large");
    });

    test("accepts at most 64 KiB of headers", async () => {
      const { url } = await rawServer((socket) => {
        socket.once("data", () => socket.end(`${head}X-Big: ${"x".repeat(65 * 1024)}\r\n\r\n`));
      });
      expect(await outcome(guard(), url)).toEqual({
        kind: "too_large",
        url: "http://127.0.0.1:PORT/",
        message: "127.0.0.1:PORT sent more than 64 KiB of headers",
      });
    });

    test("ends at its deadline if the response is slow or missing", async () => {
      const drip = await rawServer((socket) => {
        socket.write(`${head}\r\n`);
        const timer = setInterval(() => socket.write("x"), 10);
        socket.once("close", () => clearInterval(timer));
      });
      const silent = await rawServer(() => {});
      const late = (ms: number) => ({
        kind: "timeout",
        url: "http://127.0.0.1:PORT/",
        message: `127.0.0.1:PORT did not respond completely within ${ms / 1000} s`,
      });
      expect(await outcome(guard(), drip.url, { timeoutMs: 200 })).toEqual(late(200));
      expect(await outcome(guard(), silent.url, { timeoutMs: 50 })).toEqual(late(50));
      const lookup = () => new Promise<never>(() => {});
      expect((await outcome(guard([], { lookup }), "http://slow.test/", { timeoutMs: 20 })).kind).toBe("timeout");
    });

    test("can be aborted in progress, during its DNS lookup and before it starts", async () => {
      const controller = new AbortController();
      const { url } = await rawServer((socket) => {
        socket.once("data", () => controller.abort());
      });
      const off = {
        kind: "aborted",
        url: "http://127.0.0.1:PORT/",
        message: "The request to 127.0.0.1:PORT was cancelled",
      };
      expect(await outcome(guard(), url, { signal: controller.signal })).toEqual(off);
      expect(await outcome(guard(), url, { signal: AbortSignal.abort() })).toEqual(off);
      const looking = new AbortController();
      const lookup = () => {
        queueMicrotask(() => looking.abort());
        return new Promise<never>(() => {});
      };
      expect((await outcome(guard([], { lookup }), "http://slow.test/", { signal: looking.signal })).kind).toBe(
        "aborted",
      );
    });

    test("waits while four others to the same host are active", async () => {
      let held: (() => void)[] = [];
      let most = 0;
      let four = Promise.withResolvers<void>();
      const home = site({
        "/slow": async () => {
          const { promise, resolve } = Promise.withResolvers<void>();
          held.push(resolve);
          most = Math.max(most, held.length);
          if (held.length === 4) four.resolve();
          await promise;
          return new Response("done");
        },
        "/probe": {},
      });
      const guarded = guard();
      const all = Promise.all(Array.from({ length: 12 }, () => guarded.request(`${home.url}/slow`)));
      for (let batch = 0; batch < 3; batch++) {
        await four.promise;
        // If the guard didn't wait, a fifth request would be through by now.
        await guard().request(`${home.url}/probe`);
        const now = held;
        held = [];
        four = Promise.withResolvers();
        for (const release of now) release();
      }
      expect({ done: (await all).length, most }).toEqual({ done: 12, most: 4 });
    });

    test("doesn't count waiting as its own time, and waiting ends with an abort", async () => {
      const { promise: never } = Promise.withResolvers<Response>();
      const controller = new AbortController();
      const home = site({ "/never": () => never, "/": { body: "home" } });
      const guarded = guard(own, { maxPerHost: 1 });
      const first = outcome(guarded, `${home.url}/never`, { timeoutMs: 3_000 });
      const called = outcome(guarded, `${home.url}/called`, { signal: controller.signal });
      const late = outcome(guarded, `${home.url}/called`, { signal: AbortSignal.abort() });
      const patient = outcome(guarded, home.url, { timeoutMs: 2_000 });
      controller.abort();
      expect({
        called: (await called).kind,
        late: (await late).kind,
        first: (await first).kind,
        patient: (await patient).status,
        requests: home.requests,
      }).toEqual({
        called: "aborted",
        late: "aborted",
        first: "timeout",
        patient: 200,
        requests: ["GET /never", "GET /"],
      });
    });
  });

  describe("a host", () => {
    test("fails in distinguishable ways", async () => {
      const broken = {
        garbage: "hello\r\n\r\n",
        cut: "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc",
        silent: "",
        encoding: "HTTP/1.1 200 OK\r\nContent-Encoding: secret\r\n\r\nabc",
      };
      const failed: Record<string, unknown> = {};
      for (const [name, bytes] of Object.entries(broken)) {
        const { url } = await rawServer((socket) => socket.once("data", () => socket.end(bytes)));
        const { kind, message } = await outcome(guard(), url);
        failed[name] = `${kind}: ${message}`;
      }
      const gone = net.createServer();
      await new Promise<void>((done) => gone.listen(0, "127.0.0.1", done));
      const { port } = gone.address() as net.AddressInfo;
      await new Promise((done) => gone.close(done));
      const { kind, message } = await outcome(guard(), `http://127.0.0.1:${port}/`);
      failed.gone = `${kind}: ${message}`;
      expect(failed).toEqual({
        garbage: "protocol: 127.0.0.1:PORT sent a response that is not valid HTTP (HPE_INVALID_CONSTANT)",
        cut: "protocol: 127.0.0.1:PORT closed the connection before the response was complete",
        silent: "unreachable: 127.0.0.1:PORT closed the connection without a response",
        encoding: 'protocol: 127.0.0.1:PORT sent a response in the encoding "secret", which was not requested',
        gone: "unreachable: 127.0.0.1:PORT refused the connection",
      });
    });

    test("with an unknown name is named", async () => {
      expect(await outcome(guard(), "https://nothing.invalid/docs")).toEqual({
        kind: "dns",
        url: "https://nothing.invalid/docs",
        message: "nothing.invalid cannot be found in DNS",
      });
    });

    test("with an untrusted certificate is rejected", async () => {
      const folder = mkdtempSync(join(tmpdir(), "evald-tls-"));
      stops.push(() => rmSync(folder, { recursive: true }));
      const [key, cert] = [join(folder, "key.pem"), join(folder, "cert.pem")];
      const openssl = `openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=localhost -keyout ${key} -out ${cert}`;
      const made = Bun.spawnSync({ cmd: openssl.split(" "), stderr: "ignore" });
      expect(made.exitCode).toBe(0);
      const tls = { key: Bun.file(key), cert: Bun.file(cert) };
      const server = Bun.serve({ hostname: "127.0.0.1", port: 0, tls, fetch: () => new Response("secret") });
      stops.push(() => void server.stop(true));
      expect(await outcome(guard(), `https://127.0.0.1:${server.port}/`)).toEqual({
        kind: "tls",
        url: "https://127.0.0.1:PORT/",
        message: "127.0.0.1:PORT has an untrusted certificate: it is self-signed",
      });
    });

    test("that closed a kept-alive connection is connected again", async () => {
      const { url, sockets } = await rawServer((socket) => {
        socket.once("data", () => {
          socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi");
          socket.once("data", () => socket.destroy());
        });
      });
      const guarded = guard();
      expect([(await outcome(guarded, url)).status, (await outcome(guarded, url)).status, sockets.length]).toEqual([
        200, 200, 2,
      ]);
      // What can't be sent again isn't sent on such a connection.
      const posting = guard();
      const statuses = [(await outcome(posting, url)).status, (await outcome(posting, url, { method: "POST" })).status];
      expect([...statuses, sockets.length]).toEqual([200, 200, 4]);
    });
  });

  describe("a body", () => {
    const text = "Grüße aus dem Netz. ".repeat(2000);
    const encodings = {
      gzip: zlib.gzipSync(text),
      deflate: zlib.deflateSync(text),
      br: zlib.brotliCompressSync(text),
      zstd: zlib.zstdCompressSync(text),
      "gzip, br": zlib.brotliCompressSync(zlib.gzipSync(text)),
    };

    test("is decompressed, and reported if it is cut", async () => {
      const routes = Object.entries(encodings).flatMap(([encoding, body]) => {
        const headers = { "content-encoding": encoding };
        const path = encodeURIComponent(encoding);
        return [
          [`/${path}`, () => new Response(new Uint8Array(body), { headers })],
          [`/cut-${path}`, () => new Response(new Uint8Array(body.subarray(0, -9)), { headers })],
          [`/empty-${path}`, () => new Response("", { headers })],
        ] as const;
      });
      const { url } = site(Object.fromEntries(routes));
      const guarded = guard();
      const seen: Record<string, unknown> = {};
      for (const encoding of Object.keys(encodings)) {
        const path = encodeURIComponent(encoding);
        const whole = await guarded.request(`${url}/${path}`);
        const head = await guarded.request(`${url}/${path}`, { method: "HEAD" });
        seen[encoding] = [
          guarded.text(whole) === text,
          head.body.length,
          (await guarded.request(`${url}/empty-${path}`)).body.length,
          encoding === "zstd" ? "not asked for" : (await outcome(guarded, `${url}/cut-${path}`)).kind,
        ];
      }
      expect(seen).toEqual({
        gzip: [true, 0, 0, "protocol"],
        deflate: [true, 0, 0, "protocol"],
        br: [true, 0, 0, "protocol"],
        zstd: [true, 0, 0, "not asked for"],
        "gzip, br": [true, 0, 0, "protocol"],
      });
    });

    test.each([
      ["the header", "text/html; charset=ISO-8859-1", Buffer.from("caf\xe9", "latin1"), "café"],
      ["a quoted header", 'text/html; charset="windows-1252"', Buffer.from("\x80 5", "latin1"), "€ 5"],
      [
        "a meta tag",
        "text/html",
        Buffer.from('<meta charset="iso-8859-15"><p>\xa4', "latin1"),
        '<meta charset="iso-8859-15"><p>€',
      ],
      [
        "an old meta tag",
        "text/html",
        Buffer.from('<meta http-equiv=x content="text/html; charset=Shift_JIS">\x93\xfa', "latin1"),
        '<meta http-equiv=x content="text/html; charset=Shift_JIS">日',
      ],
      [
        "UTF-8 if the meta tag comes too late",
        "text/html",
        Buffer.from(`${" ".repeat(1024)}<meta charset=latin1>é`),
        `${" ".repeat(1024)}<meta charset=latin1>é`,
      ],
      ["UTF-16 by its byte order mark", "text/html; charset=utf-8", Buffer.from("\ufeffgrün", "utf16le"), "grün"],
      ["UTF-8 by its byte order mark", "text/html; charset=latin1", Buffer.from("\ufeffgrün"), "grün"],
      [
        "UTF-8 if the meta tag can't be true",
        "text/html",
        Buffer.from("<meta charset=utf-16>é"),
        "<meta charset=utf-16>é",
      ],
      ["UTF-8 if the label is unknown", "text/html; charset=klingon", Buffer.from("grün"), "grün"],
      ["UTF-8 by default", "text/html", Buffer.from("grün"), "grün"],
    ])("is decoded by %s", async (_name, type, bytes, expected) => {
      const { url } = site({ "/": () => new Response(new Uint8Array(bytes), { headers: { "content-type": type } }) });
      const guarded = guard();
      expect(guarded.text(await guarded.request(url))).toBe(expected);
    });
  });

  test("robots.txt is read once per origin and obeyed", async () => {
    const asked: string[] = [];
    const files: Record<string, { status: number; text: string } | null> = {
      "https://a.test/robots.txt": {
        status: 200,
        text: "User-agent: *\nDisallow: /\n\nUser-agent: evald\nDisallow: /private\n\nSitemap: https://a.test/map.xml",
      },
      "https://none.test/robots.txt": { status: 404, text: "User-agent: *\nDisallow: /" },
      "https://down.test/robots.txt": { status: 503, text: "" },
      "https://gone.test/robots.txt": null,
    };
    const robots = createRobots(async (url) => {
      asked.push(url);
      return files[url] ?? null;
    }, "evald");
    const urls = ["https://a.test/docs", "https://a.test/private/x", "https://none.test/x", "https://down.test/x"];
    urls.push("https://down.test/robots.txt", "https://gone.test/x");
    const allowed = await Promise.all(urls.map((url) => robots.isAllowed(url)));
    expect({ allowed, sitemaps: await robots.sitemaps("https://a.test/"), asked }).toEqual({
      allowed: [true, false, true, false, true, false],
      sitemaps: ["https://a.test/map.xml"],
      asked: Object.keys(files),
    });
  });
}
