import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import http from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { brotliCompressSync } from "node:zlib";
import type { AgentEvent } from "../src/agents/agent.ts";
import { startEgress } from "../src/agents/egress/egress.ts";
import { digestOf, type Edits, type PageEdit } from "../src/net/edits.ts";
import { createGuard } from "../src/net/guarded.ts";
import { withoutHiddenEntries } from "../src/net/hidden-entries.ts";
import { type SiteRoute, serveSite } from "./support/site.ts";

const text = "The quick brown fox jumps over the lazy dog.\n";
const edited = text.replace("quick", "slow");
const page: SiteRoute = { type: "text/plain", body: text };
const encoded = (coding: string, body: Uint8Array<ArrayBuffer>): SiteRoute => ({
  type: "text/plain",
  headers: { "content-encoding": coding },
  body,
});
const binary = new Uint8Array([...Buffer.from("\x89PNG quick"), 0, 255, 254]);
const utf16 = Buffer.from(`\ufeff${text}`, "utf16le");
const listing = "# Acme\n\n> Read [everything](/hidden/a) first.\n\n- [A](/hidden/a): one\n  of two\n- [B](/plain)\n";
const full = [
  ...["# Acme\n\nEverything.\n", "# A\n\nSource: /hidden/a\n\n```sh\n# not a heading\nzanzibar\n```\n\nzanzibar\n"],
  ...["# B\n\nSource: /plain\n\nkept\n", "---\nurl: /hidden/b.md\n---\n\n# B\n\nzanzibar\n"],
].join("\n");
const index = {
  config: {},
  docs: ["hidden/a/#x", "plain/", "hidden/a"].map((location) => ({ location, text: location })),
};

const site = serveSite({
  "/plain": page,
  "/gzip": encoded("gzip", Bun.gzipSync(text)),
  "/br": encoded("br", new Uint8Array(brotliCompressSync(text))),
  "/latin1": { type: "text/html; charset=iso-8859-1", body: new Uint8Array(Buffer.from("Caf\xe9 quick", "latin1")) },
  "/utf16": { type: "text/plain", body: new Uint8Array(utf16) },
  "/image": { type: "image/png", body: binary },
  "/bytes": { type: "application/octet-stream", body: binary },
  "/vague": { type: "application/octet-stream", body: text },
  "/tagged": (request) =>
    request.headers.get("if-none-match") === '"1"'
      ? new Response(null, { status: 304, headers: { etag: '"1"' } })
      : new Response(text, {
          headers: { etag: '"1"', "last-modified": new Date(0).toUTCString(), "accept-ranges": "bytes" },
        }),
  "/range": (request) =>
    request.headers.get("range")
      ? new Response(text.slice(0, 9), { status: 206, headers: { "content-range": `bytes 0-8/${text.length}` } })
      : new Response(text),
  "/overlap": { type: "text/plain", body: "abcd abcd" },
  "/letters": { type: "text/plain", body: "a".repeat(200_000) },
  "/grows": { type: "text/plain", body: "grow ".repeat(1000) },
  "/missing": { type: "text/plain", status: 404, body: text },
  "/hidden/a": { body: "zanzibar" },
  "/to-hidden": () => new Response(null, { status: 302, headers: { location: "/hidden/a" } }),
  "/hidden/moved": () => new Response(null, { status: 302, headers: { location: "/plain" } }),
  "/hidden/broken": () => new Response("zanzibar", { headers: { "content-encoding": "gzip" } }),
  "/llms.txt": { type: "text/plain", body: listing },
  "/llms-full.txt": { type: "text/plain", body: full },
  "/search/search_index.json": { type: "application/json", body: JSON.stringify(index) },
});
const live = "https://docs.acme.test";
const replace = (path: string, find: string, replacement: string) => ({ url: `${live}${path}`, find, replacement });
const edits: Edits = {
  hidden: [`${live}/hidden/*`],
  replacements: [
    replace("/*", "quick", "slow"),
    ...[replace("/overlap", "abc", "x"), replace("/overlap", "bcd", "y"), replace("/overlap", "x", "z")],
    ...[replace("/letters", "a", "b"), replace("/grows", "grow", "x".repeat(90_000))],
  ],
};
const urlMap = { "docs.acme.test": site.url };
const allow = [{ host: "127.0.0.1", port: null }];

const folder = mkdtempSync(join(tmpdir(), "evald-edits-"));
const egress = await startEgress({ socketPath: join(folder, "egress.sock"), operatorHosts: [], now: Date.now });
const events: AgentEvent[] = [];
const session = egress.open({
  urls: [],
  docsUrls: [live],
  urlMap,
  edits,
  allowPrivate: allow,
  onEvent: (event) => events.push(event),
});
afterAll(async () => {
  session.close();
  await egress.close();
  site.stop();
  rmSync(folder, { recursive: true });
});

type Init = { method?: "GET" | "HEAD" | "POST"; headers?: Record<string, string>; followRedirects?: boolean };
type Answer = { status: number; headers: Headers; body: Buffer; edit: PageEdit | null };

const guard = createGuard({ allow, urlMap, edits, now: Date.now });
const clients: [string, (path: string, init?: Init) => Promise<Answer>][] = [
  [
    "the guarded client",
    async (path, init) => {
      const { status, headers, body, edit } = await guard.request(live + path, { followRedirects: false, ...init });
      return { status, headers, body: Buffer.from(body), edit: edit ?? null };
    },
  ],
  [
    "the egress proxy",
    async (path, { method = "GET", headers = {} } = {}) => {
      const from = events.length;
      const request = http.request({
        socketPath: egress.socketPath,
        path: live + path,
        method,
        headers: {
          host: "docs.acme.test",
          "proxy-authorization": `Bearer ${session.token}`,
          "accept-encoding": "gzip",
          ...headers,
        },
      });
      request.end();
      const response = await new Promise<http.IncomingMessage>((done, fail) =>
        request.on("response", done).on("error", fail),
      );
      const chunks: Buffer[] = [];
      for await (const chunk of response) chunks.push(chunk as Buffer);
      while (events.length === from) await Bun.sleep(1);
      const event = events[from];
      const edit = event?.type === "http" ? (event.edit ?? null) : null;
      return {
        status: response.statusCode ?? 0,
        headers: new Headers(response.headers as HeadersInit),
        body: Buffer.concat(chunks),
        edit,
      };
    },
  ],
];

describe.each(clients)("through %s", (_, ask) => {
  test.each(["/plain", "/gzip", "/br", "/vague", "/utf16"])("a text is replaced in the source of %s", async (path) => {
    const { status, headers, body, edit } = await ask(path);
    expect([status, body.toString()]).toEqual([200, edited]);
    expect(headers.get("content-encoding")).toBeNull();
    expect(headers.get("content-length")).toBe(String(body.length));
    const sent = path === "/utf16" ? utf16 : Buffer.from(text);
    const digests = { originalDigest: digestOf(sent), editedDigest: digestOf(body) };
    expect(edit).toEqual({ kind: "replaced", ...digests, replacements: [0] });
  });

  test("a page in another charset becomes UTF-8", async () => {
    const { headers, body } = await ask("/latin1");
    expect([headers.get("content-type"), body.toString()]).toEqual(["text/html; charset=utf-8", "Café slow"]);
  });

  test.each(["/image", "/bytes"])("binary data stays as it is: %s", async (path) => {
    const { body, edit } = await ask(path);
    expect([body.equals(binary), edit]).toEqual([true, null]);
  });

  test("an edited page has no tag of the site, and answers 200 to those who have one", async () => {
    const conditions = [
      ["accept", "*/*"],
      ["if-none-match", '"1"'],
      ["If-Modified-Since", new Date().toUTCString()],
    ] as const;
    for (const [name, value] of conditions) {
      const headers = { [name]: value };
      const answer = await ask("/tagged", { headers });
      expect([answer.status, answer.body.toString()]).toEqual([200, edited]);
      for (const name of ["etag", "last-modified", "accept-ranges"]) expect(answer.headers.get(name)).toBeNull();
    }
  });

  test("a request for a part gets the whole edited page", async () => {
    const { status, headers, body } = await ask("/range", { headers: { range: "bytes=0-8" } });
    expect([status, headers.get("content-range"), body.toString()]).toEqual([200, null, edited]);
  });

  test("HEAD tells the length of the edited page", async () => {
    const { status, headers, body } = await ask("/gzip", { method: "HEAD" });
    expect([status, headers.get("content-length"), body.length]).toEqual([200, String(edited.length), 0]);
  });

  test("of overlapping replacements the first one applies, and what it inserts is not searched", async () => {
    const { body, edit } = await ask("/overlap");
    expect([body.toString(), edit?.replacements]).toEqual(["xd xd", [1]]);
  });

  test.each(["/letters", "/grows"])("an edit that would make a page huge fails its request: %s", async (path) => {
    const failure = await ask(path).catch(({ kind }) => ({ status: kind }));
    expect([502, "protocol"]).toContain(failure.status);
  });

  test("error pages are not edited", async () => {
    expect(await ask("/missing")).toMatchObject({ status: 404, edit: null, body: Buffer.from(text) });
  });

  test.each(["/hidden/a", "//hidden/a", "/hidden/%61?utm=1", "/hidden/moved", "/hidden/none", "/hidden/broken"])(
    "%s is hidden",
    async (path) => {
      const { status, body, edit } = await ask(path);
      expect([status, body.toString(), edit?.kind]).toEqual([404, "Not found\n", "hidden"]);
      // The site itself knows only one spelling.
      expect(edit?.originalDigest).toBe(path === "/hidden/a" ? digestOf(Buffer.from("zanzibar")) : null);
    },
  );

  test("a hidden URL takes no data", async () => {
    const from = site.requests.length;
    expect(await ask("/hidden/a", { method: "POST" })).toMatchObject({ status: 404, edit: { originalDigest: null } });
    expect(site.requests.slice(from)).toEqual([]);
  });

  test("listings, their texts and search indexes have no hidden pages", async () => {
    const [llmsTxt, llmsFull, search] = await Promise.all(
      ["/llms.txt", "/llms-full.txt", "/search/search_index.json"].map((path) => ask(path)),
    );
    expect(llmsTxt?.body.toString()).toBe("# Acme\n\n> Read everything first.\n\n- [B](/plain)\n");
    expect(llmsFull?.body.toString()).not.toContain("zanzibar");
    expect(llmsFull?.body.toString()).toContain("kept");
    const { docs } = JSON.parse(search?.body.toString() ?? "{}");
    expect(docs.map(({ location }: { location: string }) => location)).toEqual(["plain/"]);
    expect(search?.edit).toMatchObject({ kind: "replaced" });
  });
});

test("the guarded client follows a redirect to a hidden page, and stops there", async () => {
  const { status, url, edit } = await guard.request(`${live}/to-hidden`);
  expect([status, url, edit?.kind]).toEqual([404, `${live}/hidden/a`, "hidden"]);
});

test("a tunnel, which would hide pages, is refused for a host with edited pages", async () => {
  const [from, host] = [events.length, "docs.other.test"];
  const only = { hidden: [`https://${host}/*`], replacements: [] };
  const run = { urls: [], docsUrls: [`https://${host}/`], urlMap: {}, edits: only, allowPrivate: allow };
  const tunnels = egress.open({ ...run, onEvent: (event) => events.push(event) });
  const request = http.request({
    ...{ socketPath: egress.socketPath, method: "CONNECT", path: `${host}:443` },
    headers: { "proxy-authorization": `Bearer ${tunnels.token}` },
  });
  const status = await new Promise((done) => request.on("connect", ({ statusCode }) => done(statusCode)).end());
  tunnels.close();
  expect([status, events[from]]).toMatchObject([403, { method: "CONNECT", status: null, error: { kind: "refused" } }]);
});

test.each([
  ["sitemap.xml", `<urlset>${"<url>".repeat(200_000)}`],
  ["sitemap.xml", `<urlset><url><loc>${" ".repeat(1_000_000)}x</url>`],
  ["sitemap.xml", `<urlset>${" ".repeat(1_000_000)}`],
  ["llms.txt", "[](a".repeat(250_000)],
  ["llms.txt", `[](${"a ".repeat(500_000)}`],
  ["llms-full.txt", `# A\n\nsource${":".repeat(1_000_000)}\n`],
])("a hostile %s takes linear time", (name, hostile) => {
  const startedAt = performance.now();
  expect(withoutHiddenEntries(hostile, new URL(`${live}/${name}`), () => false)).toBe(hostile);
  expect(performance.now() - startedAt).toBeLessThan(3_000);
});
