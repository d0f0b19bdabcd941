import { describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { TSchema } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { parse } from "unbash";
import { presetEntries } from "../src/agents/coding/presets.ts";
import { RunFailure } from "../src/agents/remedies.ts";
import { adviceFor } from "../src/checks/advice.ts";
import type { Cause } from "../src/checks/problems.ts";
import { createProgram, wrapHelp } from "../src/cli/program.ts";
import { checkEntries } from "../src/config/agent-entries.ts";
import { AgentEntry } from "../src/config/agent-entry.ts";
import { readConfig, settingTable } from "../src/config/config.ts";
import { secretVariables } from "../src/config/secret-files.ts";
import { errorStatus } from "../src/errors.ts";
import { rowTypes } from "../src/exchange/rows.ts";
import { ExperimentRequest } from "../src/experiments/schema.ts";
import { ApiError } from "../src/http/operation.ts";
import type { Lease } from "../src/jobs/queue.ts";
import { toTools } from "../src/mcp-endpoints.ts";
import { parseLoginFile } from "../src/models/login-file.ts";
import { events } from "../src/notifications/events.ts";
import type { WorkerStatus } from "../src/places/messages.ts";
import type { WorkerExecutor } from "../src/places/worker-executor.ts";
import { createPrompt } from "../src/prompts/prompts.ts";
import { PromptPatch, PromptSummary } from "../src/prompts/schema.ts";
import { ProposalAcceptance } from "../src/proposals/schema.ts";
import { JudgeVariance } from "../src/reports/judge-variance.ts";
import { RunReport } from "../src/reports/schema.ts";
import { RunRequest, RunResponse } from "../src/runs/schema.ts";
import { Suite } from "../src/suites/schema.ts";
import { countAttempt, countResponse, createMetrics, respondToScrape } from "../src/telemetry/metrics.ts";
import { allDocs, toHtml } from "../src/web/docs.ts";
import { toSigned, withFigures } from "./bench/figures.ts";
import { testApp } from "./support/app.ts";
import { findingsTables, languagesTable } from "./support/explorer-findings.ts";
import {
  auditTable,
  causesTable,
  checksTable,
  commandsOf,
  commandsTable,
  docFile,
  endingsTable,
  failuresTable,
  partOf,
  settingsTable,
  toolsTable,
  unitBlock,
} from "./support/generated.ts";
import { signedIn } from "./support/people.ts";
import { newestFigures, readMeasurements } from "./truth/foreign/measurements.ts";

const csp =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";
const slugs = allDocs().map(({ slug }) => slug);
const root = join(import.meta.dir, "..");
const none = { authorization: "" };
type App = ReturnType<typeof testApp>;
const get = (app: App, path: string, headers: Record<string, string> = {}) =>
  app.send("GET", path, { headers: { ...none, ...headers } });
const linksOf = (html: string) =>
  [...html.matchAll(/\bhref="([^"]+)"/g)].map(([, href = ""]) => href.replaceAll("&amp;", "&"));
const codeOf = (markdown: string, language: string) =>
  [...markdown.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)]
    .filter(([, name]) => name === language)
    .map(([, , code = ""]) => code);

const app = testApp();

describe("documentation", () => {
  test.each(slugs)("has the page %s, which is also served as Markdown under .md and by Accept", async (slug) => {
    const page = await get(app, `/docs/${slug}`);
    const markdown = await get(app, `/docs/${slug}.md`);
    const negotiated = await get(app, `/docs/${slug}`, { accept: "text/markdown, text/html;q=0.5" });
    expect(page.status).toBe(200);
    expect(page.headers.get("content-type")).toBe("text/html; charset=utf-8");
    expect(page.headers.get("vary")).toBe("Accept, Cookie, Accept-Encoding");
    expect(page.headers.get("content-security-policy")).toBe(csp);
    expect(page.headers.get("x-content-type-options")).toBe("nosniff");
    expect(page.body).toContain(`<link rel="canonical" href="http://localhost:3000/docs/${slug}"/>`);
    expect(page.body).toContain(
      `<link rel="alternate" type="text/markdown" href="http://localhost:3000/docs/${slug}.md"/>`,
    );
    expect(page.body).toContain('<a href="/llms.txt">http://localhost:3000/llms.txt</a>');
    expect(page.body).not.toMatch(/<script(?! src="\/client\.js)/);
    expect(page.body.match(/&lt;!--|href="[a-z]+\.md/)).toBeNull();
    expect(markdown.status).toBe(200);
    expect(markdown.headers.get("content-type")).toBe("text/markdown; charset=utf-8");
    expect(markdown.body).toMatch(/^# .+\n\n> .+\n\nFor agents: \[http:\/\/localhost:3000\/llms\.txt\]/);
    expect(negotiated.body).toBe(markdown.body);
    expect(negotiated.headers.get("vary")).toBe("Accept, Cookie, Accept-Encoding");
  });

  test.each(slugs)("names the language of every code block of %s; JSON and shell parse", async (slug) => {
    const { body } = await get(app, `/docs/${slug}.md`);
    const fences = [...body.matchAll(/^```(.*)$/gm)].map(([, name]) => name);
    expect(
      fences
        .filter((_, i) => i % 2 === 0)
        .filter((name) => !/^(bash|js|json|text|ini|toml|nginx|yaml|groovy|dockerfile)$/.test(name ?? "")),
    ).toEqual([]);
    expect(fences.filter((name, i) => i % 2 === 1 && name !== "")).toEqual([]);
    for (const code of codeOf(body, "yaml")) expect(() => Bun.YAML.parse(code), code).not.toThrow();
    for (const code of codeOf(body, "toml")) expect(() => Bun.TOML.parse(code), code).not.toThrow();
    for (const code of codeOf(body, "json")) expect(() => JSON.parse(code), code).not.toThrow();
    for (const code of codeOf(body, "bash")) expect(parse(code).errors ?? [], code).toEqual([]);
  });

  test.each([
    ["text/html", "text/html; charset=utf-8"],
    ["*/*", "text/html; charset=utf-8"],
    ["text/markdown", "text/markdown; charset=utf-8"],
    ["text/html;q=0.8, text/markdown", "text/markdown; charset=utf-8"],
    ["text/markdown;q=0.3, text/html;q=0.9", "text/html; charset=utf-8"],
    ["text/markdown;q=0", "text/html; charset=utf-8"],
  ])("has the type that the client accepts: %s returns %s", async (accept, type) => {
    expect((await get(app, "/docs", { accept })).headers.get("content-type")).toBe(type);
  });

  test("isn't sent again to a client with a valid cached copy", async () => {
    const etag = (await get(app, "/docs/runs")).headers.get("etag") ?? "";
    const again = await get(app, "/docs/runs", { "if-none-match": etag });
    expect([again.status, again.body]).toEqual([304, ""]);
    expect((await get(app, "/docs/runs", { "if-none-match": '"other"' })).status).toBe(200);
  });

  test("lists exactly the error codes in the code, and calls the others reserved", async () => {
    const body = (await get(app, "/docs/rest.md")).body as string;
    const told = [...body.matchAll(/^\| `(\w+)` +\| (\d{3}) /gm)].map(([, code, status]) => [code, Number(status)]);
    const reserved = [...body.matchAll(/`(\w+)` \((\d{3})\)/g)].map(([, code, status]) => [code, Number(status)]);
    expect(Object.fromEntries([...told, ...reserved])).toEqual(errorStatus);
    const sources = [...new Bun.Glob("**/*.{ts,tsx}").scanSync(join(root, "src"))].map((file) =>
      Bun.file(join(root, "src", file)).text(),
    );
    const thrown = (await Promise.all(sources)).flatMap((text) =>
      [...text.matchAll(/new AppError\(\s*"(\w+)"/g)].map(([, code]) => code as string),
    );
    expect(told.map(([code]) => code)).toEqual(Object.keys(errorStatus).filter((code) => thrown.includes(code)));
  });

  test("returns 404 for a missing page, to people and programs", async () => {
    for (const path of ["/docs/nothing", "/docs/nothing.md"]) expect((await get(app, path)).status).toBe(404);
    const page = await get(app, "/nothing", { accept: "text/html" });
    expect([page.status, page.headers.get("content-type")]).toEqual([404, "text/html; charset=utf-8"]);
    expect(page.headers.get("content-security-policy")).toBe(csp);
    expect(page.body).toContain('data-error="not_found"');
    expect((await get(app, "/nothing", { accept: "application/json" })).body.error).toBe("not_found");
    expect((await get(app, "/api/nothing", { accept: "text/html" })).body.error).toBe("unauthorized");
  });
});

describe("search", () => {
  const found = (html: string) =>
    [...html.matchAll(/<ol class="found">[\s\S]*?<\/ol>/g)].flatMap(([list]) => linksOf(list));

  test("finds words in any form, or their beginning, and marks them", async () => {
    const { status, body } = await get(app, "/docs/search?q=api+key");
    expect([status, found(body).some((href) => href.startsWith("/docs/keys"))]).toEqual([200, true]);
    expect(body).toMatch(/<mark>keys?<\/mark>/i);
    expect(found((await get(app, "/docs/search?q=webho")).body).length).toBeGreaterThan(0);
    expect(found(body).length).toBeLessThanOrEqual(20);
  });

  test.each<[question: string, pages: string[]]>([
    ["why is my score low", ["reports"]],
    ["why is my score so low?", ["scoring", "reports"]],
    ["what does a run cost", ["models", "agents"]],
    ["what does a run cost in practice?", ["models"]],
    ["docs behind a login", ["prompts", "runs", "troubleshooting"]],
    ["how do I test docs behind basic auth?", ["prompts", "runs", "troubleshooting"]],
    ["vercel preview protection", ["prompts", "runs", "ci"]],
    ["data retention", ["people", "operations"]],
    ["how do I delete data (GDPR)?", ["people", "operations"]],
    ["delete an organization", ["people"]],
    ["delete my account", ["people"]],
    ["change my email address", ["people"]],
    ["two-factor authentication", ["people"]],
    ["confidence interval", ["gates", "scoring"]],
    ["what is a confidence interval?", ["gates", "scoring"]],
    ["quickstart in the browser", ["start"]],
    ["how do I start without curl?", ["start"]],
    ["getting started", ["start"]],
    ["how do I run evald in GitHub Actions?", ["ci"]],
    ["how do I revoke a key?", ["keys"]],
    ["invite a colleague", ["people"]],
    ["how can I stop a run that is running?", ["runs"]],
    ["my webhook was not received, can it be sent again?", ["webhooks"]],
    ["how do I verify the signature of a webhook?", ["webhooks"]],
    ["can I use Claude Code as the agent?", ["agents"]],
    ["connect evald to Cursor", ["mcp"]],
    ["does evald work with Ollama?", ["models"]],
    ["how do I limit what we spend each month?", ["models"]],
    ["how many runs do I need to see a change?", ["gates", "scoring"]],
    ["what happens when the disk is full?", ["operations"]],
    ["how do I back up the database?", ["operations"]],
    ["how are the weights of the dimensions chosen?", ["scoring"]],
    ["run a prompt every Monday morning", ["schedules"]],
    ["what is urlMap for?", ["runs"]],
    ["where can I see a changelog of fixes that helped?", ["history"]],
    ["allow a private address", ["configuration"]],
    ["which files does an export contain?", ["exports"]],
    ["add a badge to my README", ["prompts"]],
    ["how do workers get the sessions?", ["workers"]],
    ["why did my run time out?", ["runs", "troubleshooting"]],
    ["what does the explorer not find?", ["explorer"]],
  ])("answers the question %s among the first three", async (question, pages) => {
    const { body } = await get(app, `/docs/search?q=${encodeURIComponent(question)}`);
    const slugs = found(body).map((href) => href.replace("/docs/", "").replace(/#.*/, ""));
    expect(slugs.slice(0, 3).filter((slug) => pages.includes(slug))).not.toEqual([]);
  });

  test("leads to existing headings", async () => {
    for (const href of found((await get(app, "/docs/search?q=run")).body)) {
      const [path = "", anchor] = href.split("#");
      if (anchor !== undefined) expect((await get(app, path)).body).toContain(` id="${anchor}"`);
    }
  });

  test.each(["", "%20", "%22", "AND", "a*%20OR%20NEAR(", "%00", "zzzzzz", `${"long+".repeat(500)}`])(
    "accepts any words: %s",
    async (q) => {
      const { status, body } = await get(app, `/docs/search?q=${q}`);
      expect([status, body.includes("<search>")]).toEqual([200, true]);
    },
  );
});

test("signed-in people read the docs with the menu of their organization, and caches don't store that", async () => {
  const ada = await signedIn(app, { role: "viewer" });
  for (const path of ["/docs", "/docs/runs", "/docs/api", "/docs/search?q=gate"]) {
    const inside = await ada.get(path);
    expect([path, inside.headers.get("cache-control")]).toEqual([path, "private, no-store"]);
    expect(inside.body).toContain('aria-label="Organization"');
    expect(inside.body).toMatch(/<p class="back"><a href="\/">[^<]*A<\/a>/);
    const outside = await get(app, path);
    expect([outside.headers.get("cache-control"), outside.headers.get("vary")]).toEqual([
      "public, max-age=300, must-revalidate",
      "Accept, Cookie, Accept-Encoding",
    ]);
    expect(outside.body).not.toContain('aria-label="Organization"');
  }
});

test("every sample has a button that copies it", async () => {
  const { body } = await get(app, "/docs/rest");
  const samples = body.match(/<div class="sample"><pre [\s\S]*?<\/pre><button [^>]*data-copy=""/g) ?? [];
  expect(samples.length).toBe(body.match(/<pre/g).length);
});

test("HTML in the text of a page is escaped", () => {
  const body = "<script>alert(1)</script>\n\nAn <img src=x> and [a link](runs.md).";
  const doc = { slug: "test", section: "Test", title: "Test", description: "Test.", body };
  expect(toHtml(doc, { baseUrl: "https://example.com/evals", base: "/evals", theme: "system" })).toBe(
    '<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>\n<p>An &lt;img src=x&gt; and <a href="/evals/docs/runs">a link</a>.</p>\n',
  );
});

describe.each([["http://localhost:3000"], ["https://example.com/evals"]])("at %s", (baseUrl) => {
  const app = testApp({ env: { EVALD_BASE_URL: baseUrl } });

  test("every link of every page, its Markdown, llms.txt and the sitemap works", async () => {
    const anchors = new Map<string, Set<string>>();
    const seen = new Set<string>();
    const wanted: { from: string; url: URL }[] = [];
    const queue = [`${baseUrl}/`, `${baseUrl}/llms.txt`, `${baseUrl}/sitemap.xml`, `${baseUrl}/robots.txt`];
    for (let address = queue.shift(); address; address = queue.shift()) {
      const { status, headers, body } = await get(app, address);
      expect([address, status]).toEqual([address, 200]);
      const type = headers.get("content-type") ?? "";
      const text = typeof body === "string" ? body : "";
      const found = type.startsWith("text/html")
        ? linksOf(text)
        : type.startsWith("text/css") || type.startsWith("application/json")
          ? []
          : [
              ...text
                .replaceAll(/```[\s\S]*?```|`[^`\n]*`/g, "")
                .matchAll(/\]\(([^)\s]+)\)|<loc>([^<]+)<|^Sitemap: (.+)$/gm),
            ].map((m) => (m[1] ?? m[2] ?? m[3]) as string);
      anchors.set(address, new Set([...text.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id as string)));
      for (const href of found) {
        if (href.startsWith("data:")) continue;
        expect([address, href, /^(https?:\/\/|\/|#)/.test(href)]).toEqual([address, href, true]);
        const url = new URL(href, address);
        wanted.push({ from: address, url });
        const plain = url.href.replace(/#.*$/, "");
        expect([address, plain.startsWith(baseUrl)]).toEqual([address, true]);
        // The docs of the example have dead links on purpose.
        if (/\/example(\/|$)/.test(url.pathname)) continue;
        if (!seen.has(plain)) queue.push(plain);
        seen.add(plain);
      }
    }
    for (const slug of slugs) expect([...seen]).toContain(`${baseUrl}/docs/${slug}.md`);
    const lost = wanted
      .filter(({ url }) => url.hash && !url.pathname.endsWith(".md"))
      .filter(({ url }) => !anchors.get(url.href.replace(/#.*$/, ""))?.has(url.hash.slice(1)));
    expect(lost.map(({ from, url }) => `${from} → ${url.href}`)).toEqual([]);
  });

  test("llms.txt is valid and lists every page", async () => {
    const { body, headers } = await get(app, `${baseUrl}/llms.txt`);
    expect(headers.get("content-type")).toBe("text/plain; charset=utf-8");
    expect(body).toMatch(/^# evald\n\n> .+\n/);
    for (const slug of slugs)
      expect(body).toMatch(new RegExp(`^- \\[.+\\]\\(${RegExp.escape(baseUrl)}/docs/${slug}\\.md\\): .+\\.$`, "m"));
  });
});

test("under a base path, nothing responds outside of it", async () => {
  const app = testApp({ env: { EVALD_BASE_URL: "https://example.com/evals" } });
  expect((await get(app, "https://example.com/evals")).status).toBe(200);
  expect((await get(app, "https://example.com/docs")).status).toBe(404);
  const robots = (await get(app, "https://example.com/evals/robots.txt")).body;
  expect(robots).toContain("Disallow: /evals/api/\n");
  expect(robots).toContain("Sitemap: https://example.com/evals/sitemap.xml\n");
});

/** A value without the fields that are missing in its schema, to detect undocumented ones. */
function expectShape(schema: TSchema, value: unknown): void {
  expect([...Value.Errors(schema, value)].map(({ path, message }) => `${path}: ${message}`)).toEqual([]);
  expect(Value.Clean(schema, structuredClone(value))).toEqual(value);
}

/** The same structure with types in place of values. */
const shapeOf = (value: unknown): unknown =>
  value !== null && typeof value === "object"
    ? Object.fromEntries(Object.entries(value).map(([key, each]) => [key, shapeOf(each)]))
    : typeof value;

const isMcpConfig = (value: unknown) =>
  expect(Object.values(((v) => v.mcpServers ?? v.servers)(value as Record<string, object>) ?? {})).toEqual([
    expect.objectContaining({ url: "http://localhost:3000/api/mcp", headers: expect.anything() }),
  ]);
const isShape = (schema: TSchema) => (value: unknown) => expectShape(schema, value);

function isPayload(value: unknown): void {
  const { type, data } = value as { type: keyof typeof events; data: unknown };
  expectShape(events[type].data, data);
}

/** The schema of each JSON sample of a page, in order. */
const jsonSamples: Record<string, ((value: unknown) => unknown)[]> = {
  start: [async (value) => expect(shapeOf(value)).toEqual(shapeOf((await app.send("GET", "/api/v1/whoami")).body))],
  prompts: [
    isShape(PromptPatch),
    isShape(RunRequest),
    isShape(PromptPatch),
    isShape(PromptPatch),
    isShape(PromptPatch),
    isShape(PromptPatch),
  ],
  proposals: [isShape(ProposalAcceptance)],
  suites: [isShape(Suite)],
  experiments: [isShape(ExperimentRequest)],
  failures: [isShape(RunFailure)],
  runs: [isShape(RunResponse), ...Array(4).fill(isShape(RunRequest))],
  reports: [isShape(RunReport.properties.dimensions.items)],
  regrading: [
    (value) => expect(readConfig({ EVALD_METHODOLOGY: JSON.stringify(value) }).methodology?.id).toBe("acme-1"),
    isShape(JudgeVariance),
  ],
  agents: [
    (value) => {
      const { login } = presetEntries.find(({ id }) => id === "claude") ?? {};
      const { expiresAt } = parseLoginFile("claude", JSON.stringify(value), login ?? { file: "" });
      expect(expiresAt).toBe(1_795_000_000_000);
    },
    isShape(PromptPatch),
    (value) => expect(readConfig({ EVALD_AGENTS: JSON.stringify(value) }).customAgents[0]?.id).toBe("acme"),
    (value) => expect(checkEntries({ ...presetEntries[0], ...(value as object) }, "")).toHaveLength(1),
    (value) => expect(checkEntries({ ...presetEntries[0], ...(value as object) }, "")).toHaveLength(1),
  ],
  doctor: [
    (value) => {
      const { cause, subject } = value as { cause: Cause; subject: string };
      expect(value).toMatchObject(adviceFor(cause, subject));
    },
  ],
  webhooks: [isPayload, isPayload],
  mcp: [isMcpConfig, isMcpConfig, isMcpConfig],
  rest: [
    (value) => {
      expectShape(ApiError, value);
      expect((value as { error: string }).error).toBe("missing_template_vars");
    },
    (value) => (value as unknown[]).forEach(isShape(PromptSummary)),
  ],
  keys: [
    async (value) => {
      const { body } = await app.send("GET", "/api/v1/whoami", { headers: { authorization: "" } });
      expectShape(ApiError, value);
      expect((value as { error: string }).error).toBe(body.error);
    },
  ],
};

test.each(slugs)("every JSON sample of %s matches its schema", async (slug) => {
  const codes = codeOf((await get(app, `/docs/${slug}.md`)).body, "json");
  const checks = jsonSamples[slug] ?? [];
  expect([slug, codes.length]).toEqual([slug, checks.length]);
  for (const [i, code] of codes.entries()) await checks[i]?.(JSON.parse(code));
});

test("each path through the code names at most twelve files, and functions that they define", async () => {
  const [, paths = ""] = (allDocs().find(({ slug }) => slug === "architecture")?.body ?? "").split("\n## Five paths");
  const walks = paths.split("\n## ")[0]?.split("\n### ").slice(1) ?? [];
  expect(walks.length).toBe(5);
  for (const walk of walks) {
    const steps = [...walk.matchAll(/`(\w+)` in `(src\/[^`]+)`/g)].map(([, name = "", file = ""]) => ({ name, file }));
    expect(new Set(walk.match(/src\/[^`]+(?=`)/g)).size).toBeLessThanOrEqual(12);
    expect(steps.length).toBeGreaterThan(5);
    for (const { name, file } of steps)
      expect([file, name, await Bun.file(join(root, file)).text()]).toEqual([
        file,
        name,
        expect.stringMatching(new RegExp(`^export (async )?(function|const) ${name}\\b`, "m")),
      ]);
  }
});

/** Every text that shows commands, fields and URLs. */
const readmes = await Promise.all(
  ["README.md", "CONTRIBUTING.md"].map(async (name) => [name, await Bun.file(join(root, name)).text()] as const),
);
const texts = [
  // The worked examples name things that don't exist yet.
  ...allDocs()
    .filter(({ slug }) => slug !== "extending")
    .map(({ slug, body }) => [slug, body] as const),
  ...readmes,
];

const commands = new Map(commandsOf(createProgram({})));
test("no line of a help text has more than 80 columns, and a broken example stays the same command", () => {
  const wide: string[] = [];
  const broken: string[] = [];
  for (const [name, command] of commands) {
    let text = "";
    command.configureOutput({ writeOut: (part) => (text += part), getOutHelpWidth: () => 80 });
    command.outputHelp();
    const help = wrapHelp(text);
    wide.push(...help.split("\n").filter((line) => line.length > 80));
    const words = (from: string) => from.replaceAll("\\\n", " ").replaceAll(/\s+/g, " ");
    if (words(help) !== words(text)) broken.push(name);
  }
  expect([wide, broken]).toEqual([[], []]);
  expect(commands.size).toBeGreaterThan(40);
});

/** The commands in a text, as words: from `evald` to the end of the shell command. */
function callsOf(text: string): string[][] {
  const shells = [...text.matchAll(/^```(?:bash|text|sh|yaml)\n([\s\S]*?)^```$/gm)].map(([, code = ""]) => code);
  const inline = [...text.replaceAll(/^```[\s\S]*?^```$/gm, "").matchAll(/`([^`\n]+)`/g)].map(([, code = ""]) => code);
  return [...shells.flatMap((code) => code.replaceAll("\\\n", " ").split("\n")), ...inline].flatMap((line) =>
    [...line.matchAll(/(?:^|[\s(])evald (?!evald|http)(?=[a-z-])([^|<>;)]*)/g)].map(
      ([, words = ""]) => words.match(/"[^"]*"|'[^']*'|\S+/g) ?? [],
    ),
  );
}

test.each(texts)("every command in %s exists, with its options", (_, text) => {
  const wrong = callsOf(text).flatMap((words) => {
    const rest = words[0] === "--data" ? words.slice(2) : words;
    const name = [rest.slice(0, 2).join(" "), rest[0] ?? ""].find((each) => commands.has(each));
    const known = commands.get(name ?? "")?.options.map(({ long }) => long);
    if (["help", "COMMAND", "--version"].includes(rest[0] ?? "")) return [];
    if (!known) return [words.join(" ")];
    const options = rest.filter((word) => word.startsWith("--")).map((word) => word.replace(/=.*/, ""));
    return options.filter((each) => ![...known, "--help"].includes(each)).map((each) => `${name} ${each}`);
  });
  expect(wrong).toEqual([]);
});

test.each(texts)("every URL, setting and field in %s exists", async (_, text) => {
  const document = (await get(app, "/openapi.json")).body;
  const paths = Object.keys(document.paths).map((path) => new RegExp(`^${path.replaceAll(/\{[^}]+\}/g, "[^/?]+")}$`));
  const addresses = [...text.matchAll(/(?<![\w.-])\/api\/(?:v1|mcp)[\w/{}$.…-]*/g)].map(([path]) =>
    path.replace(/[.…]+$/, ""),
  );
  const isPrefix = (path: string) => ["/api/v1", "/api/v1/"].includes(path);
  expect(addresses.filter((path) => !isPrefix(path) && !paths.some((each) => each.test(path)))).toEqual([]);

  const settings = [...text.matchAll(/\bEVALD_[A-Z_]+\b/g)].map(([name]) => name);
  const known = [
    ...settingTable.map(({ name }) => name),
    ...secretVariables.map((name) => `${name}_FILE`),
    "EVALD_URL",
    "EVALD_KEY",
    "EVALD_ORG",
    "EVALD_ID_TOKEN",
    "EVALD_CI_KEY",
    "EVALD_PROT",
  ];
  expect(settings.filter((name) => !known.includes(name))).toEqual([]);

  const names = new Set<string>();
  const collect = (value: unknown): void => {
    if (value === null || typeof value !== "object") return;
    const { properties = {}, name } = value as { properties?: object; name?: unknown };
    for (const key of [...Object.keys(properties), name]) if (typeof key === "string") names.add(key);
    Object.values(value).forEach(collect);
  };
  collect(document);
  collect(AgentEntry);
  for (const { input, output } of toTools(app.service.ctx)) collect([input, output]);
  const fields = [...text.matchAll(/^\| ((?:`[A-Za-z]+`(?:, )?)+) +\|/gm)]
    .flatMap(([, cell = ""]) => cell.match(/[A-Za-z]+/g) ?? [])
    .filter((word) => /[a-z][A-Z]/.test(word));
  expect(fields.filter((field) => !names.has(field))).toEqual([]);
});

describe("the metrics", () => {
  /** A scrape of a service with a worker, in which everything that has labels was counted. */
  async function scrape(): Promise<string> {
    const app = testApp({ env: { EVALD_BACKUP_TO: "/var/backups/evald" } });
    const { id } = createPrompt(app.service.ctx, app.a.org, { text: "See https://docs.example.com/" });
    await app.send("POST", `/api/v1/prompts/${id}/run`, { body: { urlMap: {} } });
    await app.runJobs();
    const worker = { name: "worker-1", state: "ready", slots: 2, runIds: [], silentMs: 0 } as unknown as WorkerStatus;
    const workers = { list: () => [worker], waiting: new Map() } as unknown as WorkerExecutor;
    await app.service.healthChecks.runOnce();
    const metrics = createMetrics(app.service.ctx, workers);
    countAttempt(
      app.service.ctx,
      metrics,
      app.db.$client.query<Lease, []>("select id, kind, subject, attempt from jobs").get() as Lease,
    );
    metrics.counters.judgings.inc({ result: "judged" });
    metrics.counters.traces.inc({ result: "sent" });
    countResponse(metrics, "GET", "/docs", 200, 1);
    return await (await respondToScrape(metrics, new Request("http://localhost:9464/metrics"))).text();
  }

  test("in the docs exist", async () => {
    const known = new Set([...(await scrape()).matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name));
    const named = texts.flatMap(([, text]) => text.match(/\bevald_[a-z_]+/g) ?? []);
    expect(named.length).toBeGreaterThan(0);
    expect(named.filter((name) => !known.has(name.replace(/_bucket$/, "")))).toEqual([]);
  });

  test("in the table are complete, with their types and labels", async () => {
    const text = await scrape();
    const served = [...text.matchAll(/^# TYPE (\S+) (\S+)/gm)].map(([, name = "", type]) => {
      const [, labels = ""] = new RegExp(`^${name}(?:_count)?(?:\\{(.*)\\})? `, "m").exec(text) ?? [];
      return [name, type, ...[...labels.matchAll(/(\w+)="/g)].map(([, label]) => label)];
    });
    const table = await Bun.file(docFile("operations.md")).text();
    const namesIn = (cell = "") => [...cell.matchAll(/`(\w+)`/g)].map(([, name = ""]) => name);
    const told = [...table.matchAll(/^\| (`(?:evald|process)_[^|]+)\|([^|]+)\|([^|]*)\|/gm)].flatMap(
      ([, names, type, labels]) => namesIn(names).map((name) => [name, type?.trim(), ...namesIn(labels)]),
    );
    expect(told.sort()).toEqual(served.sort());
  });
});

test("every test file named in the docs exists", () => {
  const named = texts.flatMap(([, text]) =>
    [...text.matchAll(/`((?:test|src)\/[\w./-]+\.[a-z]+)`/g)].map(([, file]) => file),
  );
  expect(named.filter((file) => !existsSync(join(root, file as string)))).toEqual([]);
});

test("the README is short and its links work", async () => {
  const readme = await Bun.file(join(root, "README.md")).text();
  expect(Buffer.byteLength(readme)).toBeLessThanOrEqual(8 * 1024);
  for (const [name, text] of readmes)
    for (const [, file = ""] of text.matchAll(/\]\((?!https?:|#)([^)#\s]+)/g))
      expect([name, file, existsSync(join(root, file))]).toEqual([name, file, true]);
});

test.each([
  ["configuration.md", "settings", settingsTable()],
  ["agents.md", "endings", endingsTable()],
  ["audit.md", "actions", auditTable()],
  ["failures.md", "failures", failuresTable()],
  ["cli.md", "commands", commandsTable()],
  ["explorer.md", "findings", findingsTables(newestFigures(await readMeasurements()))],
  ["doctor.md", "checks", checksTable()],
  ["doctor.md", "causes", causesTable()],
  ["operations.md", "unit", unitBlock("evald.service")],
  ["growing.md", "unit", unitBlock("evald-worker.service")],
  ["explorer.md", "languages", languagesTable(newestFigures(await readMeasurements()))],
  ["mcp.md", "tools", toolsTable(toTools(app.service.ctx))],
])("%s has the %s of the code, as written by bun run docs", async (file, name, table) => {
  expect(partOf(await Bun.file(docFile(file)).text(), name)).toBe(table);
});

test("a difference in the figures has one sign", () => {
  expect([12.4, -295.6, -0.2].map(toSigned)).toEqual(["+12", "-296", "0"]);
});

test("new figures replace old ones of the same name", () => {
  const old = withFigures(
    "| a |\n| --- |\n",
    [
      ["one", "1", "2", "50%", ""],
      ["two", "3", "", "", ""],
    ],
    "then",
  );
  const both = withFigures(
    old,
    [
      ["two", "4", "", "", ""],
      ["three", "5", "", "", ""],
    ],
    "now",
  );
  expect(both.trimEnd().split("\n").slice(2)).toEqual([
    "| one | 1 | 2 | 50% |  | then |",
    "| two | 4 |  |  |  | now |",
    "| three | 5 |  |  |  | now |",
  ]);
});

test("the listed row types equal the row types of an export", async () => {
  const [sample = ""] = codeOf(await Bun.file(docFile("exports.md")).text(), "text");
  const types = [...sample.matchAll(/^\{"type":"(.+?)"/gm)].map(([, type]) => type);
  expect(types).toEqual(["evald export", ...rowTypes, "end"]);
});

test("the error for an unknown setting is as documented", async () => {
  const [sample] = codeOf(await Bun.file(docFile("configuration.md")).text(), "text");
  expect(() => readConfig({ EVALD_PROT: "80" })).toThrow(sample?.replace("error: ", "").trim());
});

test("the response to a request without a key is as documented", async () => {
  const [sample = "{}"] = codeOf(await Bun.file(docFile("keys.md")).text(), "json");
  const response = await app.app.handle(new Request("http://localhost:3000/api/v1/whoami"));
  expect(await response.json()).toEqual(JSON.parse(sample));
});

test("a regrade accepts the methodology in the example and the help", async () => {
  const { body } = await app.send("GET", "/openapi.json");
  const example = body.components.examples.RegradeRequest.value;
  expect(example.methodology).toBeString();
  const since = "2026-01-01";
  const regrade = async (methodology: string) =>
    (await app.send("POST", "/api/v1/regrades", { body: { since, methodology, dryRun: true } })).status;
  expect(await regrade(example.methodology)).toBe(200);
  const help =
    createProgram({})
      .commands.find((each) => each.name() === "regrade")
      ?.helpInformation() ?? "";
  const told = [...(/Methodology ID: ([\w ]+),/.exec(help)?.[1]?.split(" or ") ?? [])];
  expect([told, await Promise.all(told.map(regrade))]).toEqual([[example.methodology], [200]]);
});

test("the pages name the version of the package", async () => {
  const { version } = await Bun.file(join(root, "package.json")).json();
  const named = texts.flatMap(([, text]) =>
    [...text.matchAll(/evald\/(\d+\.\d+\.\d+)|"evald":"(\d+\.\d+\.\d+)"/g)].map((m) => m[1] ?? m[2]),
  );
  expect(new Set(named)).toEqual(new Set([version]));
});

describe("the API reference", () => {
  test("lists every operation with method, path, parameters and responses", async () => {
    const { body } = await get(app, "/docs/api");
    const document = (await get(app, "/openapi.json")).body;
    for (const [path, methods] of Object.entries<Record<string, { operationId: string }>>(document.paths))
      for (const [method, { operationId }] of Object.entries(methods)) {
        const at = body.indexOf(`<section id="${operationId}" class="operation">`);
        expect([operationId, at >= 0]).toEqual([operationId, true]);
        expect(body.slice(at)).toMatch(
          new RegExp(`^.{0,400}>${method.toUpperCase()}</code> <code>${path.replace(/[{}]/g, "\\$&")}<`),
        );
      }
    for (const name of Object.keys(document.components.schemas)) expect(body).toContain(`id="schema-${name}"`);
    for (const [, id] of body.matchAll(/href="#([^"]+)"/g)) expect(body).toContain(`id="${id}"`);
  });

  test("is also served at the URL that other tools expect", async () => {
    const { status, headers } = await get(app, "/swagger");
    expect([status, headers.get("location")]).toEqual([303, "/docs/api"]);
  });
});

test("the example docs are HTML and Markdown, have an index for agents, and are excluded from search engines", async () => {
  const home = await get(app, "/example");
  expect(home.status).toBe(200);
  expect((await get(app, "/robots.txt")).body).toContain("Disallow: /example\n");
  const paths = linksOf(home.body).filter((href) => /:3000\/example\/(?!llms)/.test(href));
  expect(paths.length).toBeGreaterThanOrEqual(4);
  for (const path of paths) {
    const page = await get(app, new URL(path).pathname);
    expect([path, page.status, page.headers.get("content-security-policy")]).toEqual([path, 200, csp]);
    expect((await get(app, `${new URL(path).pathname}.md`)).body).toMatch(/^# .+\n\n> /);
  }
  const index = (await get(app, "/example/llms.txt")).body;
  for (const path of paths) expect(index).toContain(`(${path})`);
  expect((await get(app, "/example.md")).headers.get("content-type")).toStartWith("text/markdown");
  // This is the problem that the first report finds.
  expect((await get(app, "/example/authentication")).status).toBe(404);
});
