import { describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { createKey } from "../src/auth/keys.ts";
import { eraseOldData } from "../src/deletions/old-data.ts";
import { createPrompt } from "../src/prompts/prompts.ts";
import { createProvider } from "../src/providers/providers.ts";
import { countLog } from "../src/traffic/log-counts.ts";
import { testApp } from "./support/app.ts";
import { randomOf } from "./support/random.ts";
import { evaluation, niceGrade } from "./support/reports.ts";
import { isThorough } from "./support/thorough.ts";

const docs = "https://docs.acme.example/docs/";
const claudeCode = "Claude-User (claude-code/2.1.283; +https://support.anthropic.com/)";
const clf = (path: string, userAgent: string, { status = 200, accept = "*/*", month = "Nov" } = {}) =>
  `203.0.113.7 - - [01/${month}/2026:10:00:00 +0000] "GET ${path} HTTP/1.1" ${status} 12 "-" "${userAgent}" "${accept}"\n`;
async function* bytesOf(...pieces: (string | Uint8Array)[]) {
  for (const piece of pieces) yield typeof piece === "string" ? Buffer.from(piece) : piece;
}
const counted = (...pieces: (string | Uint8Array)[]) => countLog(bytesOf(...pieces), docs, null);

test.each([
  ["common", '203.0.113.7 - Jane Doe [01/Nov/2026:10:00:00 +0100] "GET /docs/a HTTP/1.1" 200 12', "program"],
  [
    "combined",
    '203.0.113.7 - - [01/Nov/2026:10:00:00 +0000] "GET /docs/a HTTP/2.0" 200 12 "-" "curl/8 \\"b\\""',
    "program",
  ],
  ["Accept", clf("/docs/a", "node", { accept: "text/markdown, */*" }).trim(), "coding"],
  ["virtual host", `docs.acme.example:443 ${clf("/docs/a", "curl/8").trim()}`, "program"],
  [
    "CloudFront",
    "#Version: 1.0\n#Fields: date time cs-method cs-uri-stem sc-status cs(User-Agent)\n2026-11-01\t10:00:00\tGET\t/docs/a\t200\tcurl/8.5.0%2520x",
    "program",
  ],
  [
    "Cloudflare",
    '{"ClientRequestMethod":"GET","ClientRequestURI":"/docs/a?x=1","ClientRequestUserAgent":"GPTBot/1.2","EdgeResponseStatus":200,"EdgeStartTimestamp":1793527200000000000}',
    "training",
  ],
  [
    "Vercel",
    '{"timestamp":1793527200000,"proxy":{"method":"GET","path":"/docs/a","userAgent":["curl/8"],"statusCode":200}}',
    "program",
  ],
  [
    "Netlify",
    '{"timestamp":"2026-11-01T10:00:00Z","method":"GET","url":"https://docs.acme.example/docs/a","status_code":200,"user_agent":"ClaudeBot/1.0"}',
    "training",
  ],
  [
    "nginx JSON",
    '{"time_iso8601":"2026-11-01T10:00:00+00:00","request_uri":"/docs/a","status":"200","http_user_agent":"ChatGPT-User/1.0"}',
    "answer",
  ],
  [
    "Caddy",
    '{"ts":1793527200.1,"request":{"method":"GET","uri":"/docs/a","headers":{"User-Agent":["axios/1.8"],"Accept":["text/markdown"]}},"status":200}',
    "coding",
  ],
  [
    "Traefik",
    '{"RequestMethod":"GET","RequestPath":"/docs/a","DownstreamStatus":200,"StartUTC":"2026-11-01T10:00:00Z","request_User-Agent":"node"}',
    "program",
  ],
  [
    "load balancer",
    'https 2026-11-01T10:00:00.186641Z app/lb/1 203.0.113.7:2817 10.0.0.1:80 0.0 0.0 0.0 200 200 0 57 "GET https://docs.acme.example:443/docs/a HTTP/1.1" "curl/8" - -',
    "program",
  ],
])("a log in the format %s is counted", async (_, lines, kind) => {
  const { unread, pages } = await counted(`${lines}\r\n${lines}`);
  expect(unread).toBe(0);
  expect(pages).toEqual([
    expect.objectContaining({ month: "2026-11", kind, url: "https://docs.acme.example/docs/a", reads: 2, missing: 0 }),
  ]);
});

test.each([
  ["Mozilla/5.0 (compatible; Google-Agent; +https://developers.google.com/crawling)", "answer"],
  ["Kimi-User/1.0", "answer"],
  ["Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko); compatible; NovaAct/1.0", "answer"],
  ["GeminiCLI/0.9.0/gemini-2.5-pro (linux; x64)", "coding"],
  ["meta-externalagent/1.1 (+https://developers.facebook.com/docs/sharing/webmasters/crawler)", "training"],
  ["Mozilla/5.0 (compatible; Terracotta/1.0)", "search"],
  ["AgentTimes/1.0", "program"],
  ["Mozilla/5.0 (Linux; Android 10; K; CUBOT NOTE 20) AppleWebKit/537.36 Chrome/137.0.0.0 Mobile Safari/537.36", null],
  ["Mozilla/5.0 (compatible; MSIE 10.0; Windows NT 6.2; Trident/6.0)", null],
  [
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Safari/605.1.15",
    null,
  ],
  ["Opera/9.80 (Windows NT 6.1) Presto/2.12.388 Version/12.18", null],
])("%s is told apart", async (userAgent, kind) => {
  const { pages } = await counted(clf("/docs/a", userAgent));
  expect(pages.map((page) => page.kind)).toEqual(kind === null ? [] : [kind as never]);
});

describe("the counts of a log", () => {
  test("are those of its lines, by month, agent and page", async () => {
    const random = randomOf(11);
    const pick = <T>(items: readonly T[]) => items[Math.floor(random() * items.length)] as T;
    const agents = [
      [claudeCode, "coding Claude Code"],
      ["opencode/1.18", "coding opencode"],
      ["Mozilla/5.0 (compatible; PerplexityBot/1.0)", "search AI search index"],
      ["Mozilla/5.0 AppleWebKit/537.36; compatible; ChatGPT-User/1.0", "answer ChatGPT"],
      ["Mozilla/5.0 (X11; Linux x86_64; rv:132.0) Gecko/20100101 Firefox/132.0", null],
      ["evald/1.0.0 (agent-experience evaluation)", null],
    ] as const;
    const truth = new Map<string, number>();
    const lines: string[] = [];
    for (let i = 0; i < (isThorough ? 1_000_000 : 30_000); i++) {
      const [userAgent, who] = pick(agents);
      const page = Math.floor(random() * 300);
      const [form, month, status] = [
        pick(["", "/", ".md", "?q=1", "/index.html"]),
        pick(["Oct", "Nov"] as const),
        pick([200, 200, 304, 404, 301]),
      ];
      lines.push(clf(`/docs/p${page}${form}`, userAgent, { status, month }));
      if (who === null || status === 301 || (status === 404 && who.startsWith("search"))) continue;
      const key = `${month === "Oct" ? "2026-10" : "2026-11"} ${who} /docs/p${page} ${status === 404 ? "missing" : "read"}`;
      truth.set(key, (truth.get(key) ?? 0) + 1);
    }
    // The pieces end within lines.
    const text = Buffer.from(lines.join(""));
    const pieces = Array.from({ length: Math.ceil(text.length / 7777) }, (_, i) =>
      text.subarray(i * 7777, (i + 1) * 7777),
    );
    const { pages, lines: read, unread } = await counted(...pieces);
    expect([read, unread]).toEqual([lines.length, 0]);
    const found = new Map<string, number>(
      pages.flatMap(({ month, kind, name, url, reads, missing }) => {
        const key = `${month} ${kind} ${name} ${new URL(url).pathname}`;
        return [[`${key} read`, reads] as const, [`${key} missing`, missing] as const].filter(([, times]) => times > 0);
      }),
    );
    expect(found.size).toBe(truth.size);
    expect([...truth].filter(([key, times]) => found.get(key) !== times)).toEqual([]);
  }, 60_000);

  test("leave out people, evald, other paths, assets and what scanners look for", async () => {
    const { pages } = await counted(
      clf("/docs/guide", "evald/1.0.0", { accept: "text/markdown" }),
      clf("/docs/guide", "Mozilla/5.0 (X11; Linux x86_64; rv:132.0) Gecko/20100101 Firefox/132.0"),
      clf("/account/x", claudeCode),
      clf("/docs/logo.svg", claudeCode),
      clf("/docs/wp-login.php", "curl/8", { status: 404 }),
      clf("/docs/.env", "curl/8", { status: 404 }),
      clf("/docs/guess", "Mozilla/5.0 (compatible; GPTBot/1.3)", { status: 404 }),
    );
    expect(pages).toEqual([]);
  });

  test("are kept when lines are hostile, and each of these is counted as unread", async () => {
    const hostile = ["A".repeat(1_000_000), "[".repeat(60_000), `{"request":${"[".repeat(60_000)}`, "\0\0", "\xff\xfe"];
    const good = clf("/docs/a", "curl/8").repeat(10);
    const { lines, unread, pages } = await counted(good, `${hostile.join("\n")}\n`, good);
    expect([lines, unread, pages[0]?.reads]).toEqual([25, 5, 20]);
  });

  test("keep the most read of too many pages", async () => {
    const scans = Array.from({ length: 90_000 }, (_, i) => clf(`/docs/scan-${i}`, "curl/8"));
    const { pages, leftOut } = await counted(clf("/docs/a", "curl/8").repeat(5), ...scans);
    expect([pages.length, pages[0]?.url, leftOut]).toEqual([20_000, "https://docs.acme.example/docs/a", 70_001]);
  });
});

/** Runs `evald field import` from the sources. */
async function fieldImport(log: string | Uint8Array, ...args: string[]) {
  const folder = mkdtempSync(join(tmpdir(), "evald-test-"));
  try {
    const file = join(folder, "access.log");
    writeFileSync(file, log);
    const command = [
      process.execPath,
      join(import.meta.dir, "..", "src", "main.ts"),
      "field",
      "import",
      file,
      "--docs",
      docs,
    ];
    const child = Bun.spawn([...command, ...args], {
      cwd: folder,
      env: { PATH: process.env.PATH ?? "", HOME: folder },
      stdout: "pipe",
      stderr: "pipe",
    });
    const [stdout, stderr, code] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
      child.exited,
    ]);
    return { stdout, stderr, code };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test("the command prints counts without addresses, queries and user agents, and refuses logs that it can't read", async () => {
  const log = clf("/docs/guide.md?token=planted-token", `${claudeCode} planted-agent`).repeat(3);
  const [result, unknown, cut] = await Promise.all([
    fieldImport(gzipSync(log), "--dry-run", "--json"),
    fieldImport("hello\n".repeat(10), "--dry-run"),
    fieldImport(gzipSync(log.repeat(100)).subarray(0, 100), "--dry-run"),
  ]);
  expect([result.code, unknown.code, cut.code]).toEqual([0, 2, 2]);
  expect(result.stdout).not.toMatch(/planted|203\.0/);
  expect(JSON.parse(result.stdout)[0]).toMatchObject({
    unread: 0,
    pages: [{ month: "2026-11", kind: "coding", name: "Claude Code", reads: 3, markdown: 3, missing: 0 }],
  });
}, 30_000);

const pageOf = (path: string, more: object = {}) => ({
  ...{ month: "2026-11", kind: "coding", name: "Claude Code", url: `https://docs.acme.example${path}` },
  ...{ reads: 10, markdown: 5, missing: 0, ...more },
});
const log = (i: number) => String(i).padStart(64, "0");

describe("counts of access logs in the service", () => {
  const now = Date.UTC(2026, 10, 20);
  const app = testApp({ now: () => now });
  const { service, a, b } = app;
  const { id } = createProvider(service.ctx, a.org, { name: "Acme", docsUrl: docs });
  const { id: promptId } = createPrompt(service.ctx, a.org, { title: "First", text: "Try it", targetProviderId: id });
  const send = (body: object, key = a.key) =>
    app.send("POST", "/api/v1/field-traffic", { body, headers: { authorization: `Bearer ${key}` } });
  const traffic = async (key = a.key, query = "") =>
    app.send("GET", `/api/v1/providers/${id}/field-traffic${query}`, { headers: { authorization: `Bearer ${key}` } });

  test("count a log once, and add up several", async () => {
    const pages = [
      pageOf("/docs/upload"),
      pageOf("/docs/old", { reads: 0, markdown: 0, missing: 4 }),
      pageOf("/docsearch"),
    ];
    expect((await send({ log: log(1), pages })).status).toBe(201);
    expect((await send({ log: log(1), pages })).status).toBe(201);
    await send({
      log: log(2),
      pages: [pageOf("/docs/upload", { kind: "answer", name: "ChatGPT", reads: 3, markdown: 0 })],
    });
    await send({ log: log(3), pages: [pageOf("/docs/llms.txt", { reads: 2, markdown: 0 })] });
    const { status, body } = await traffic();
    expect(status).toBe(200);
    const upload = {
      url: "https://docs.acme.example/docs/upload",
      coding: 10,
      answer: 3,
      other: 0,
      markdown: 5,
      runs: 0,
    };
    expect(body).toMatchObject({
      pages: [upload],
      untested: [{ url: upload.url, reads: 13 }],
      missing: [{ url: "https://docs.acme.example/docs/old", requests: 4, guesses: 0 }],
      llmsTxt: [{ url: "https://docs.acme.example/docs/llms.txt", name: "Claude Code", reads: 2 }],
      visitors: [
        { name: "Claude Code", reads: 12, missing: 4 },
        { name: "ChatGPT", reads: 3 },
      ],
    });
  });

  test("are missing where runs guessed a page that says that there is none", async () => {
    const url = "https://docs.acme.example/docs/sdk";
    const guess = { page: url, url, reads: 0, misses: 2, guesses: 2, errors: 0, found: {} };
    evaluation(app, promptId, [{ ...niceGrade, exposure: { ...niceGrade.exposure, visits: [guess] } }]);
    await send({ log: log(7), pages: [pageOf("/docs/sdk")] });
    const { body } = await traffic();
    expect(body.missing).toContainEqual({ url, requests: 10, guesses: 2 });
    expect([...body.pages, ...body.untested].map((each: { url: string }) => each.url)).not.toContain(url);
  });

  test("belong to their organization, and to months", async () => {
    expect((await traffic(b.key)).status).toBe(404);
    expect((await traffic(a.key, "?until=2026-10-15")).body.pages).toEqual([]);
    await send({ log: log(9), pages: [pageOf("/docs/upload", { reads: 500 })] }, b.key);
    expect((await traffic()).body.pages[0].coding).toBe(10);
  });

  test.each([
    ["a query", pageOf("/docs/a?token=1")],
    ["an unknown kind", pageOf("/docs/a", { kind: "person" })],
    ["a further field", pageOf("/docs/a", { address: "203.0.113.7" })],
    ["more Markdown than reads", pageOf("/docs/a", { markdown: 11 })],
    ["a month that doesn't exist", pageOf("/docs/a", { month: "2026-13" })],
  ])("are refused with %s", async (_, page) => {
    expect((await send({ log: log(4), pages: [page] })).status).toBe(400);
  });

  test("name the field that is wrong", async () => {
    const pages = [pageOf("/docs/a"), pageOf("/docs/b", { markdown: 11 })];
    expect((await send({ log: log(4), pages })).body.detail).toStartWith("Invalid pages.1.markdown: ");
  });

  test("are sent with a key that can do nothing else", async () => {
    const { key } = createKey(service.ctx, a.org, "Logs", { scopes: ["report_traffic"] });
    expect((await send({ log: log(5), pages: [] }, key)).status).toBe(201);
    expect((await traffic(key)).status).toBe(403);
    const writer = createKey(service.ctx, a.org, "Writer", { scopes: ["read", "write"] });
    expect((await send({ log: log(5), pages: [] }, writer.key)).status).toBe(403);
  });

  test("are erased after 25 months", async () => {
    const old = pageOf("/docs/upload", { month: "2024-10", reads: 7 });
    await send({ log: log(6), pages: [old, { ...old, month: "2024-11" }] });
    await eraseOldData(service.ctx, new AbortController().signal);
    const months = app.db.$client.query("select distinct month from field_traffic order by month").values().flat();
    expect(months).toEqual(["2024-11", "2026-11"]);
  });
});
