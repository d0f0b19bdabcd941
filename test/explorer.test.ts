import { afterEach, describe, expect, test } from "bun:test";
import { gzipSync } from "node:zlib";
import type { AgentEvent, Check } from "../src/agents/agent.ts";
import { AgentFailure } from "../src/agents/agent.ts";
import { createExplorer } from "../src/agents/explorer/explorer.ts";
import { toTerms } from "../src/agents/explorer/goal.ts";
import { parseSample } from "../src/agents/explorer/samples.ts";
import type { MilestoneDetail, MilestoneName } from "../src/agents/milestones.ts";
import type { Task } from "../src/agents/task.ts";
import { gradeSession } from "../src/grading/score.ts";
import { cpuMsOf } from "./support/cpu.ts";
import { wideLimits } from "./support/limits.ts";
import { type Site, type SiteRoute, serveSite } from "./support/site.ts";

const sites: Site[] = [];
afterEach(() => {
  for (const site of sites.splice(0)) site.stop();
});

const explorer = createExplorer({ version: "1.2.3" });

function open(routes: Record<string, SiteRoute>): Site {
  const site = serveSite(routes);
  sites.push(site);
  return site;
}

type PartOfTask = Partial<Omit<Task, "limits">> & { limits?: Partial<Task["limits"]> };

async function explore(task: PartOfTask, signal = new AbortController().signal): Promise<AgentEvent[]> {
  const now = () => Date.now();
  const whole: Task = {
    text: "",
    endGoal: null,
    startUrls: [],
    productUrl: null,
    urlMap: {},
    declaredChecks: [],
    ...task,
    limits: {
      ...wideLimits,
      wallClockMs: 20_000,
      ...task.limits,
    },
  };
  return Array.fromAsync(
    explorer.run(whole, {
      signal,
      now,
      startedAt: now(),
      allow: [{ host: "127.0.0.1", port: null }],
      resources: null,
    }),
  );
}

async function failure(task: PartOfTask): Promise<{ cause: string; detail: string; retryable: boolean }> {
  const thrown = await explore(task).then(
    () => null,
    (error) => error,
  );
  if (!(thrown instanceof AgentFailure)) throw thrown ?? new Error("it did not fail");
  return { cause: thrown.failure.cause, detail: thrown.detail, retryable: thrown.options.retryable };
}

const checksOf = (events: AgentEvent[], id?: string): Check[] =>
  events
    .flatMap((event) => (event.type === "tool_result" ? (event.checks ?? []) : []))
    .filter((check) => !id || check.id === id);
const milestone = <Name extends MilestoneName>(events: AgentEvent[], name: Name) =>
  events.flatMap((event) =>
    event.type === "milestone" && event.name === name ? [event.detail as MilestoneDetail<Name>] : [],
  );
/** Where a goal is likely to be answered, according to the session. */
const likely = (events: AgentEvent[]) =>
  milestone(events, "goal_answer").flatMap(({ state, sections, nearest }) =>
    state === "likely" ? nearest.slice(0, sections) : [],
  );
const unclear = (events: AgentEvent[]) => milestone(events, "goal_answer").filter(({ state }) => state === "unclear");
const ofType = <T extends AgentEvent["type"]>(events: AgentEvent[], type: T) =>
  events.filter((event): event is Extract<AgentEvent, { type: T }> => event.type === type);
const output = (events: AgentEvent[], tool: string) =>
  ofType(events, "tool_result")
    .filter((event) => event.tool === tool)
    .map((event) => event.output);
const short = (checks: Check[]) =>
  checks.map(({ id, status, share, line, quote }) => ({ id, status, share, line, quote }));

const md = (body: string): SiteRoute => ({
  type: "text/markdown; charset=utf-8",
  body,
  headers: { "cache-control": "max-age=300" },
});
const page = (title: string, body: string): SiteRoute => ({
  body: `<!doctype html><html lang="en"><head><title>${title}</title></head><body><h1 id="top">${title}</h1>${body}</body></html>`,
  headers: { "cache-control": "max-age=300" },
});
const prose = (about: string) => `<p>${`This page is about ${about}, in some detail. `.repeat(12)}</p>`;

/** A site without problems. */
function goodSite(): Site {
  const site: Site = open({
    "/robots.txt": { body: "User-agent: *\nAllow: /\n" },
    "/llms.txt": () =>
      new Response(
        `# Widgets\n\n> How to make widgets.\n\n## Docs\n\n- [Start](${site.url}/docs/start.md): install the client\n- [Webhooks](${site.url}/docs/webhooks.md): receive signed events\n`,
        { headers: { "content-type": "text/plain", "cache-control": "max-age=300" } },
      ),
    "/docs/start.md": () =>
      new Response(
        `# Start\n\n> The index of all docs is at ${site.url}/llms.txt\n\nInstall the client.\n\n\`\`\`sh\nnpm install widgets\n\`\`\`\n`,
        { headers: { "content-type": "text/markdown", "cache-control": "max-age=300" } },
      ),
    "/docs/webhooks.md": () =>
      new Response(
        `# Webhooks\n\n> The index of all docs is at ${site.url}/llms.txt\n\n## Verify a signature\n\nVerify the signature of each webhook event.\n\n\`\`\`ts\nimport { verify } from "widgets";\nawait verify(request, secret);\n\`\`\`\n\n\`\`\`json\n{ "type": "widget.made" }\n\`\`\`\n`,
        { headers: { "content-type": "text/markdown", "cache-control": "max-age=300" } },
      ),
    "/openapi.json": {
      body: JSON.stringify({
        openapi: "3.0.3",
        info: { title: "W", version: "1" },
        paths: { "/w": { get: { responses: { 200: { description: "ok" } } } } },
      }),
    },
  });
  return site;
}

describe("a site without problems", () => {
  test("is read from its llms.txt to the section that is likely to answer the goal", async () => {
    const site = goodSite();
    const events = await explore({
      text: "Follow the docs",
      endGoal: "Verify the signature of a webhook event",
      wordings: ["Use widgets", "Verify the signature of a webhook event"],
      startUrls: [`${site.url}/docs/start.md`],
      declaredChecks: [{ url: `${site.url}/llms.txt`, contains: "# Widgets" }],
    });
    expect(events.slice(0, 3)).toEqual([
      {
        type: "milestone",
        name: "started",
        detail: {
          agent: "explorer",
          version: "1.2.3",
          kind: "rules",
          model: null,
          goal: "Verify the signature of a webhook event",
          starts: [`${site.url}/docs/start.md`],
        },
      },
      { type: "milestone", name: "goal_terms", detail: { terms: ["verify", "signature", "webhook", "event"] } },
      {
        type: "thought",
        by: "rule",
        text: "Looking for a page that shows how to do this: verify, signature, webhook, event.",
      },
    ]);
    expect(milestone(events, "page_read")).toEqual([
      { url: `${site.url}/docs/start.md`, chars: expect.any(Number), form: "markdown", title: "Start" },
      { url: `${site.url}/docs/webhooks.md`, chars: expect.any(Number), form: "markdown", title: "Webhooks" },
    ]);
    expect(milestone(events, "goal_answer")).toEqual([
      {
        state: "likely",
        sections: 1,
        nearest: [
          {
            url: `${site.url}/docs/webhooks.md`,
            title: "Webhooks",
            heading: "Webhooks > Verify a signature",
            line: 5,
            terms: ["verify", "signature", "webhook", "event"],
            missing: [],
            synonyms: expect.any(Array),
            share: expect.any(Number),
            headingShare: expect.any(Number),
            hasSample: true,
            clicks: 2,
          },
        ],
        close: 1,
        unseen: [],
        fit: expect.any(Number),
        clicks: 2,
        noSample: false,
        pages: 2,
        budget: "found",
        wordings: [
          {
            text: "Verify the signature of a webhook event",
            state: "likely",
            fit: expect.any(Number),
            url: expect.any(String),
          },
          { text: "Use widgets", state: "unclear", fit: expect.any(Number), url: expect.any(String) },
        ],
      },
    ]);
    expect(
      ofType(events, "http")
        .filter(({ purpose }) => purpose === "task")
        .map(({ method, url, status, provenance, foundOn, error }) => ({
          method,
          url,
          status,
          provenance,
          foundOn,
          error,
        })),
    ).toEqual([
      { method: "GET", url: `${site.url}/docs/start.md`, status: 200, provenance: "given", foundOn: null, error: null },
      {
        method: "GET",
        url: `${site.url}/docs/webhooks.md`,
        status: 200,
        provenance: "llms.txt",
        foundOn: `${site.url}/llms.txt`,
        error: null,
      },
    ]);
    expect(checksOf(events).filter(({ status }) => status === "fail" || status === "warn")).toEqual([]);
    expect(checksOf(events, "openapi-valid").map(({ status, group, weight }) => ({ status, group, weight }))).toEqual([
      { status: "pass", group: "contract", weight: 7 },
    ]);
    expect(ofType(events, "error")).toEqual([]);
    expect(events.at(-1)).toEqual({ type: "end", outcome: "succeeded", reason: "The success check passed." });
  });

  test("gets the same decisions and checks every time, no repeated requests, and small events", async () => {
    const site = goodSite();
    const task = { text: "Verify the signature of a webhook event", startUrls: [`${site.url}/docs/start.md`] };
    const strip = (events: AgentEvent[]) =>
      events.map((event) => (event.type === "http" ? { ...event, ms: 0 } : event));
    const first = await explore(task);
    const asked = ofType(first, "http").map(
      ({ method, url, contentType, purpose }) => `${method} ${url} ${contentType} ${purpose}`,
    );
    expect(strip(await explore(task))).toEqual(strip(first));
    expect(asked.length).toBeLessThan(40);
    expect(first.every((event) => JSON.stringify(event).length < 24_000)).toBe(true);
    const calls = ofType(first, "tool_call").map(({ id }) => id);
    expect(ofType(first, "tool_result").map(({ id }) => id)).toEqual(calls);
    expect(new Set(calls).size).toBe(calls.length);
  });
});

describe("a start URL", () => {
  const goal = { text: "Install the client" };

  test("that is unreachable fails the run, which can be retried", async () => {
    const site = open({});
    site.stop();
    expect(await failure({ ...goal, startUrls: [`${site.url}/docs`] })).toEqual({
      cause: "infrastructure",
      detail: `127.0.0.1:${site.port} refused the connection.`,
      retryable: true,
    });
  });

  test("that doesn't respond fails the run in time", async () => {
    const site = open({ "/docs": () => new Promise<Response>(() => {}) });
    const begun = performance.now();
    const failed = await failure({
      ...goal,
      startUrls: [`${site.url}/docs`],
      limits: { wallClockMs: 400, maxPages: 5, maxRequests: 50 },
    });
    expect([failed.cause, failed.retryable, performance.now() - begun < 10_000]).toEqual(["timeout", false, true]);
  });

  test.each([
    ["file:///etc/passwd", /file: URL/],
    ["http://169.254.169.254/latest/meta-data/", /169\.254\.169\.254/],
    ["http://10.0.0.1/", /10\.0\.0\.1/],
  ])("such as %s is rejected for good", async (url, words) => {
    const failed = await failure({ ...goal, startUrls: [url] });
    expect([failed.cause, failed.retryable, words.test(failed.detail)]).toEqual(["infrastructure", false, true]);
  });

  test("that is temporarily unavailable can be retried; if another can be read, the session has an error", async () => {
    const site = open({
      "/a": { status: 503 },
      "/b": page("Install the client", `${prose("install client")}<pre>npm i</pre>`),
    });
    expect(await failure({ ...goal, startUrls: [`${site.url}/a`] })).toEqual({
      cause: "infrastructure",
      detail: `${site.url}/a returned status 503.`,
      retryable: true,
    });
    const events = await explore({ ...goal, startUrls: [`${site.url}/a`, `${site.url}/b`] });
    expect(ofType(events, "error")).toEqual([
      {
        type: "error",
        where: "fetch_page",
        message: `${site.url}/a returned status 503`,
        url: `${site.url}/a`,
        retryable: true,
      },
    ]);
    expect(likely(events).length).toBe(1);
  });

  test("that asks to wait sets the longest Retry-After, in seconds or as a date", async () => {
    const inAnHour = new Date(Date.now() + 3600_000).toUTCString();
    const site = open({
      "/seconds": { status: 429, headers: { "retry-after": "120" } },
      "/date": { status: 503, headers: { "retry-after": inAnHour } },
      "/endless": { status: 503, headers: { "retry-after": "9".repeat(400) } },
      "/words": { status: 503, headers: { "retry-after": "tomorrow" } },
      "/gone": { status: 404, headers: { "retry-after": "500" } },
    });
    const waitOf = async (...paths: string[]) => {
      const startUrls = paths.map((path) => `${site.url}/${path}`);
      const thrown = await explore({ ...goal, startUrls }).catch((error) => error);
      return thrown instanceof AgentFailure ? thrown.options.retryAfterMs : "a session";
    };
    expect(await Promise.all([waitOf("seconds"), waitOf("words"), waitOf("endless"), waitOf("gone")])).toEqual([
      120_000,
      undefined,
      Number.MAX_SAFE_INTEGER,
      "a session",
    ]);
    const longest = Number(await waitOf("seconds", "date", "words"));
    expect([longest > 3500_000, longest <= 3600_000]).toEqual([true, true]);
  });

  test("with 50 MB of zeros fails with the cause and is not retried", async () => {
    const bomb = gzipSync(new Uint8Array(50_000_000));
    const site = open({
      "/bomb": () => new Response(bomb, { headers: { "content-type": "text/html", "content-encoding": "gzip" } }),
    });
    const big = await failure({ ...goal, startUrls: [`${site.url}/bomb`] });
    expect([big.retryable, /MiB|large|more than/i.test(big.detail)]).toEqual([false, true]);
  });

  test.each<[what: string, answer: SiteRoute, category: string]>([
    ["404", { status: 404 }, "dead_link"],
    ["410", { status: 410 }, "dead_link"],
    ["500", { status: 500 }, "other"],
    ["403", { status: 403 }, "auth"],
    ["a redirect loop", () => new Response(null, { status: 302, headers: { location: "/docs" } }), "dead_link"],
  ])(
    "of a dead site that answers with %s gets a score of 0 and a critical finding",
    async (_what, answer, category) => {
      const site = open({ "/docs": answer });
      const events = await explore({ ...goal, startUrls: [`${site.url}/docs`] });
      const grade = gradeSession(events.map((event, seq) => ({ ...event, seq, at: 0, tMs: seq, source: "agent" })));
      expect([grade.score, grade.scope, grade.outcome]).toEqual([0, "docs_only", "not_judged"]);
      const worst = grade.frictions.filter(({ severity }) => severity === "critical");
      expect(worst.map((friction) => friction.category)).toEqual([category] as (typeof worst)[number]["category"][]);
    },
  );

  test("that is missing leads to a session that reports it", async () => {
    const site = open({
      "/": page("Home", `<a href="/install">Install the client</a>${prose("things")}`),
      "/install": page("Install the client", `${prose("install client")}<pre>npm i</pre>`),
    });
    const events = await explore({ ...goal, startUrls: [`${site.url}/gone`] });
    expect(ofType(events, "error").map(({ message }) => message)).toEqual([`${site.url}/gone returned status 404`]);
    expect(milestone(events, "page_read").map(({ url }) => url)).toEqual([`${site.url}/`, `${site.url}/install`]);
    expect(
      ofType(events, "http").find(({ url, purpose }) => url === `${site.url}/` && purpose === "task")?.provenance,
    ).toBe("guessed");
    expect(likely(events).length).toBe(1);
  });

  test("behind a sign-in needs a person", async () => {
    const site = open({ "/docs": { status: 401 } });
    const events = await explore({ ...goal, startUrls: [`${site.url}/docs`] });
    expect(ofType(events, "interruption").map(({ url }) => url)).toEqual([`${site.url}/docs`]);
    expect(events.at(-1)).toMatchObject({ type: "end", outcome: "not_judged" });
  });
});

describe("a page", () => {
  test("in Latin-1 is decoded", async () => {
    const body = Buffer.from(
      `<html><head><title>Größe ändern</title></head><body><h1>Größe ändern</h1>${"<p>Die Größe ändern geht so.</p>".repeat(10)}<pre>resize()</pre></body></html>`,
      "latin1",
    );
    const site = open({ "/": { type: "text/html; charset=iso-8859-1", body: new Uint8Array(body) } });
    const events = await explore({ text: "Größe ändern", startUrls: [`${site.url}/`] });
    expect(likely(events).map(({ terms }) => terms)).toEqual([["größe", "ändern"]]);
  });

  test("with an error and a success status, or one that needs JavaScript, is reported and not read", async () => {
    const site = open({
      "/lost": page("Page not found", "<p>Sorry.</p>"),
      "/app": {
        body: `<html><head><title>App</title></head><body><div id="root"></div><script src="/a.js"></script></body></html>`,
      },
    });
    const events = await explore({ text: "Install the client", startUrls: [`${site.url}/lost`, `${site.url}/app`] });
    expect(ofType(events, "error").map(({ message }) => message)).toEqual([
      'The page ("Page not found") is what the host shows for a missing page, but its status indicates success',
      "The page has no text until its scripts have run, so readers without a browser see nothing",
    ]);
    expect(output(events, "fetch_page").map(({ problem }) => problem)).toEqual(["soft_404", "empty_shell"]);
    expect(milestone(events, "page_read")).toEqual([]);
    expect(checksOf(events, "rendering-strategy").map(({ status }) => status)).not.toEqual(["pass"]);
  });

  test("with an error that suggests other pages and isn't to be listed is missing, as with status 404", async () => {
    const suggestion = '<p>Did you mean <a href="/keys">Keys</a>?</p>';
    const missing = (headers: Record<string, string>) => ({ ...page("Page not found", suggestion), headers });
    const site = open({
      "/": page(
        "Acme",
        `${prose("keys")}<a href="/away">Keys of the client</a> <a href="/lost">Lost keys of clients</a>`,
      ),
      "/away": missing({ "x-robots-tag": "noindex" }),
      "/lost": missing({}),
    });
    const events = await explore({ text: "Keys of the client", startUrls: [`${site.url}/`, `${site.url}/away`] });
    const [found] = output(events, "fetch_page").filter(({ url }) => url === `${site.url}/away`);
    expect(found?.problem).toBe("missing");
    const { frictions, exposure } = gradeSession(
      events.map((event, seq) => ({ ...event, seq, at: 0, tMs: seq, source: "agent" })),
    );
    const categoriesOf = (path: string) =>
      frictions
        .filter(({ title, description }) => `${title} ${description}`.includes(path))
        .map((each) => each.category);
    expect(new Set(categoriesOf("/away"))).toEqual(new Set(["dead_link"]));
    expect(categoriesOf("/lost")).toContain("silent_failure");
    expect(exposure.visits.find(({ url }) => url === `${site.url}/away`)).toMatchObject({ reads: 0, found: {} });
  });

  test("in another language than the goal is reported", async () => {
    const site = open({ "/": page("Webhooks", `${prose("verifying signatures")}<pre>verify()</pre>`) });
    const events = await explore({ text: "署名を検証する", startUrls: [`${site.url}/`] });
    expect(unclear(events)).toMatchObject([
      {
        nearest: [],
        unseen: ["署名", "検証"],
        fit: 0,
        clicks: null,
        pages: 1,
        budget: "links",
        noOverlap: true,
        docsLanguage: "en",
        otherScript: { goal: "Han", docs: "Latin" },
      },
    ]);
  });
});

describe("the explorer", () => {
  test("asks an unresponsive host once", async () => {
    const links = ["a", "b", "c"].map((name) => `<a href="http://192.0.2.1:81/${name}">See ${name}</a>`).join(" ");
    const site = open({ "/": page("Install", `${prose("installing the client")}${links}`) });
    const events = await explore({ text: "Install the client", startUrls: [`${site.url}/`] });
    expect(ofType(events, "http").filter(({ url }) => url.startsWith("http://192.0.2.1"))).toMatchObject([
      { url: "http://192.0.2.1:81/a", error: { kind: "refused" } },
    ]);
    expect(output(events, "check_links")[0]).toMatchObject({ targets: 3, dead: 0, notJudged: 3, notTried: 2 });
  });

  test("respects robots.txt, but only for pages that it was not given", async () => {
    const site = open({
      "/robots.txt": { body: "User-agent: *\nDisallow: /secret\n" },
      "/secret/start": page(
        "Start",
        `${prose("things")}<a href="/secret/install">Install the client</a><a href="/open">Open</a>`,
      ),
      "/secret/install": page("Install the client", "<pre>npm i</pre>"),
      "/open": page("Open", prose("nothing much")),
    });
    const events = await explore({ text: "Install the client", startUrls: [`${site.url}/secret/start`] });
    expect(site.requests.filter((request) => request.includes("/secret/install"))).toEqual([]);
    expect(milestone(events, "page_read").map(({ url }) => url)).toEqual([
      `${site.url}/secret/start`,
      `${site.url}/open`,
    ]);
    expect(output(events, "fetch_page")[1]).toEqual({
      url: `${site.url}/secret/install`,
      error: "disallowed",
      message: "disallowed by the host's robots.txt",
      rule: { url: `${site.url}/robots.txt`, line: 2, text: "Disallow: /secret" },
    });
  });

  test("skips what a limit prevents, and doesn't fail it", async () => {
    const many = Object.fromEntries(
      Array.from({ length: 12 }, (_, i) => [
        `/p${i}`,
        page(`Page ${i}`, `${prose("things")}<a href="/p${i + 1}">client ${i + 1}</a>`),
      ]),
    );
    const task = (site: Site, maxRequests: number, maxPages: number) =>
      explore({
        text: "Install the client",
        startUrls: [`${site.url}/p0`],
        limits: { wallClockMs: 20_000, maxPages, maxRequests },
      });
    const whole = await task(open(many), 400, 3);
    const cut = await task(open(many), 12, 3);
    expect(ofType(whole, "limit")).toEqual([{ type: "limit", limit: "pages", value: 3, unit: "pages" }]);
    expect(unclear(whole)[0]?.budget).toBe("pages");
    expect(ofType(cut, "limit")).toContainEqual({ type: "limit", limit: "requests", value: 12, unit: "requests" });
    expect(ofType(cut, "http").length).toBe(12);
    const known = new Set(checksOf(whole).map(({ id, status }) => `${id} ${status}`));
    const worse = checksOf(cut).filter(({ id, status }) => /fail|warn/.test(status) && !known.has(`${id} ${status}`));
    expect(worse).toEqual([]);
    expect(checksOf(cut).some(({ status, message }) => status === "skip" && message.includes("limit"))).toBe(true);
    expect(cut.at(-1)?.type).toBe("end");
  });

  test("stops immediately when it is aborted, with the reason", async () => {
    const controller = new AbortController();
    const reason = new Error("called off");
    // The run is cancelled once its request has arrived, while it waits for the response.
    const silent = () => {
      controller.abort(reason);
      return new Promise<Response>(() => {});
    };
    const site = open({ "/docs": silent });
    const running = explore({ text: "Install", startUrls: [`${site.url}/docs`] }, controller.signal);
    expect(await running.catch((error) => error)).toBe(reason);
    expect(site.requests).toEqual(["GET /docs"]);
  });

  test("reports mapped URLs under their original names", async () => {
    const site = open({
      "/docs": page(
        "Install the client",
        `${prose("install client")}<pre>npm i</pre><a href="https://docs.prod.test/gone">gone</a>`,
      ),
    });
    const events = await explore({
      text: "Install the client",
      startUrls: ["https://docs.prod.test/docs"],
      urlMap: { "https://docs.prod.test": site.url },
    });
    expect(ofType(events, "http")[0]).toMatchObject({
      url: "https://docs.prod.test/docs",
      mappedUrl: `${site.url}/docs`,
      status: 200,
    });
    const dead = { status: "fail", subject: "https://docs.prod.test/gone", url: "https://docs.prod.test/docs" };
    expect(checksOf(events, "link-resolves")).toMatchObject([
      { ...dead, group: "link" },
      { ...dead, group: "page" },
    ]);
    expect(JSON.stringify(checksOf(events))).not.toContain("127.0.0.1");
  });
});

describe("docs in a folder", () => {
  const goal = { text: "Upload a file to a bucket.", endGoal: "A file was uploaded to a bucket." };
  const linkTo = (...paths: string[]) => paths.map((path) => `<a href="${path}">${path}</a>`).join(" ");
  const upload = "<h1>Upload a file to a bucket</h1><p>Upload a file to a bucket:</p><pre>curl -T file</pre>";
  const neighbors = {
    "/llms.txt": { body: "# Host\n\n- [Blog](/blog/a)\n- [Upload](/tool/upload)\n- [Dead](/blog/dead)\n" },
    "/openapi.json": { body: "{}" },
    "/blog/a": { body: `<h1>Blog</h1>${linkTo("/blog/dead")}` },
    "/blog/c": { body: "<h1>Blog</h1>" },
    "/auth/setup": { body: `<h1>Set up a key</h1>${linkTo("/blog/c")}` },
  };
  const project = (links: string) => ({
    ...neighbors,
    "/tool": { body: `<h1>Tool</h1>${linkTo("/tool/upload", "/tool/share")}${links}` },
    "/tool/upload": { body: `${upload}<p>First ${linkTo("/auth/setup")}.</p>` },
    "/tool/share": { body: `<h1>Share</h1>${linkTo("/tool/limits", "/blog/a", "/blog/gone")}` },
    "/tool/limits": { body: "<h1>Limits</h1>" },
  });
  const readPaths = (events: AgentEvent[]) =>
    milestone(events, "page_read")
      .map(({ url }) => new URL(url).pathname)
      .sort();

  test("are all that a survey reads, besides what the answer needs; links that leave them are tested", async () => {
    const { url, requests } = open(project(""));
    const events = await explore({ ...goal, startUrls: [`${url}/tool`] });
    expect(readPaths(events)).toEqual(["/auth/setup", "/tool", "/tool/limits", "/tool/share", "/tool/upload"]);
    expect(
      checksOf(events)
        .filter(({ status, subject }) => status === "fail" && subject.includes("/blog"))
        .map(({ id, subject }) => [id, subject]),
    ).toEqual([["link-resolves", `${url}/blog/gone`]]);
    expect(requests.filter((request) => /openapi/.test(request))).toEqual(
      ["/tool/openapi.json", "/tool/openapi.yaml", "/openapi.json", "/openapi.yaml"].map((path) => `GET ${path}`),
    );
  });

  test("have the API description of their host only if one of their samples calls its API", async () => {
    const description = {
      openapi: "3.0.3",
      info: { title: "Files", version: "1" },
      servers: [{ url: "https://api.tool.test/v1" }],
      paths: { "/files": { post: { responses: { 201: { description: "Created" } } } } },
    };
    const checksWith = async (command: string) => {
      const { url } = open({
        ...project(""),
        "/openapi.json": { body: JSON.stringify(description) },
        "/tool/upload": { body: `${upload}<pre><code class="language-sh">${command}</code></pre>` },
      });
      const events = await explore({ ...goal, startUrls: [`${url}/tool`] });
      return checksOf(events)
        .filter(({ id }) => /openapi-valid|sample-matches-api/.test(id))
        .map(({ id, status, subject }) => [id, status, subject.slice(url.length)]);
    };
    expect(await checksWith("curl -X PUT https://api.tool.test/v1/files")).toEqual([
      ["openapi-valid", "pass", "/openapi.json"],
      ["sample-matches-api", "fail", "/tool/upload#PUT /v1/files"],
    ]);
    expect(await checksWith("curl -X PUT https://api.other.test/v1/files")).toEqual([]);
  });

  test("are the whole host if the start page leads to as much outside of its folder", async () => {
    const { url } = open(project(linkTo("/blog/a", "/auth/setup")));
    const events = await explore({ ...goal, startUrls: [`${url}/tool`] });
    expect(readPaths(events)).toContain("/blog/a");
  });
});

describe("the check", () => {
  test("for headings ignores the titles of a long page and its manual", async () => {
    const text = Array.from({ length: 12 }, (_, at) => prose(`part ${at}`));
    const titled = (...parts: string[]) => ({
      body: `<!doctype html><title>Limits — Acme Manual</title>${parts.join("")}`,
    });
    const site = open({
      "/": page("Home", `<a href="/both">both</a> <a href="/stacked">stacked</a> <a href="/divided">divided</a>`),
      "/both": titled("<h1>Acme Manual</h1><p><a href='/'>Up</a></p><h2>Limits</h2>", ...text),
      "/stacked": titled("<h1>Handbook</h1><h2>How many requests</h2>", ...text),
      "/divided": titled("<h1>Acme Manual</h1><h2>Limits</h2>", ...text.slice(0, 2), "<h3>Bursts</h3>", ...text),
    });
    const events = await explore({ text: "both stacked divided", startUrls: [`${site.url}/`] });
    const headings = checksOf(events).filter(({ id }) => id === "long-page-has-headings");
    expect(Object.fromEntries(headings.map(({ url, status }) => [url?.slice(site.url.length), status]))).toEqual({
      "/both": "warn",
      "/stacked": "warn",
      "/divided": "pass",
    });
  });

  test("of links reports each dead link and missing section once, with the page and the line", async () => {
    const site: Site = open({
      "/": () =>
        new Response(
          `# Home\n\nSee [gone](/gone), [gone again](/gone#x), [alive](/alive), [part](/alive#none), [made](/alive#here),\n[own machine](http://localhost:9/), [example](https://example.com/x), [template](/a/{id}), [image](/i.png).\n`,
          { headers: { "content-type": "text/markdown" } },
        ),
      "/alive": page("Alive", `${prose("life")}<h2 id="here">Here</h2>`),
      "/i.png": { type: "image/png", body: "x" },
    });
    const events = await explore({ text: "alive and well", startUrls: [`${site.url}/`] });
    const links = checksOf(events).filter(({ group }) => group === "link");
    expect(
      links.map(({ id, status, subject, url, line, weight }) => ({ id, status, subject, url, line, weight })),
    ).toEqual([
      { id: "link-resolves", status: "fail", subject: `${site.url}/gone`, url: `${site.url}/`, line: 3, weight: 1 },
      { id: "link-resolves", status: "pass", subject: `${site.url}/`, url: `${site.url}/`, line: null, weight: 1 },
      {
        id: "anchor-resolves",
        status: "warn",
        subject: `${site.url}/alive#none`,
        url: `${site.url}/`,
        line: 3,
        weight: 1,
      },
    ]);
  });

  test("of samples reports unlabeled ones once per page, and each broken one", async () => {
    const site = open({
      "/": md(
        `# Install\n\n\`\`\`json\n{\n  "a": 1,\n}\n\`\`\`\n\n\`\`\`\nbare\n\`\`\`\n\n\`\`\`js\nconst a = {\n  b: 1\n  c: 2\n};\n\`\`\`\n\n\`\`\`sh\nnpm i\n\`\`\`\n`,
      ),
    });
    const events = await explore({ text: "install", startUrls: [`${site.url}/`] });
    const samples = checksOf(events).filter(({ group }) => group === "sample");
    expect(short(samples)).toEqual([
      { id: "sample-labelled", status: "warn", share: 0.75, line: 9, quote: "bare" },
      { id: "sample-parses", status: "pass", share: 1, line: null, quote: null },
      { id: "sample-parses", status: "fail", share: 0, line: 5, quote: '{\n  "a": 1,\n}' },
      { id: "sample-parses", status: "fail", share: 0, line: 15, quote: "const a = {\n  b: 1\n  c: 2\n};" },
    ]);
    expect(samples[2]?.subject).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/#[0-9a-f]{12}$/);
  });

  test("of a call uses the URL that is called, not one in the body or a header of the sample", async () => {
    const document = JSON.stringify({
      openapi: "3.0.3",
      info: { title: "W", version: "1" },
      paths: { "/v1/jobs": { post: { responses: { 201: { description: "ok" } } } } },
    });
    const sample = (body: string) =>
      `\`\`\`sh\ncurl -X POST "$API/v1/jobs" -H 'Referer: https://a.test' -d '${body}'\n\`\`\`\n`;
    const site: Site = open({
      "/": () =>
        new Response(
          `# API\n\nThe [API](/openapi.json).\n\n${sample(`{ "docs": "${site.url}/docs" }`)}\n\`\`\`sh\ncurl -X DELETE ${site.url}/v1/jobs -d '{"url": "${site.url}/x"}'\n\`\`\`\n`,
          { headers: { "content-type": "text/markdown" } },
        ),
      "/openapi.json": { body: document },
    });
    const events = await explore({ text: "api", startUrls: [`${site.url}/`] });
    expect(checksOf(events, "sample-matches-api").map(({ status, subject }) => [status, subject])).toEqual([
      ["fail", `${site.url}/#DELETE /v1/jobs`],
      ["pass", `${site.url}/`],
    ]);
  });

  test("of an API description rejects a dangling reference, and follows no external one", async () => {
    const response = (ref: string) => ({
      200: { description: "ok", content: { "application/json": { schema: { $ref: ref } } } },
    });
    const spec = (ref: string) =>
      JSON.stringify({
        openapi: "3.0.3",
        info: { title: "W", version: "1" },
        paths: { "/w": { get: { responses: response(ref) } } },
      });
    const site: Site = open({
      "/": md("# API\n\nThe [API](/api/openapi.json) and [another](/other/swagger.json).\n"),
      "/api/openapi.json": { body: spec("#/components/schemas/Nope") },
      "/other/swagger.json": () =>
        new Response(spec(`${site.url}/outside.json`), { headers: { "content-type": "application/json" } }),
    });
    const events = await explore({ text: "api", startUrls: [`${site.url}/`] });
    expect(
      checksOf(events, "openapi-valid").map(({ status, subject, message }) => ({ status, subject, message })),
    ).toEqual([
      {
        status: "fail",
        subject: `${site.url}/api/openapi.json`,
        message:
          'The API description is not valid (1 error): Missing $ref pointer "#/components/schemas/Nope". Token "components" does not exist.',
      },
      { status: "pass", subject: `${site.url}/other/swagger.json`, message: "The OpenAPI document is valid" },
    ]);
    expect(site.requests.filter((request) => request.includes("outside"))).toEqual([]);
  });

  test.each([
    [{ path: "/", status: 200 }, "pass", "succeeded", "The success check passed."],
    [{ path: "/gone", status: 404 }, "pass", "succeeded", "The success check passed."],
    [{ path: "/gone" }, "fail", "goal_not_met", "1 of 1 success checks failed."],
    [{ path: "/", contains: "no such words" }, "fail", "goal_not_met", "1 of 1 success checks failed."],
  ])("of success with %p: %s, %s", async ({ path, ...declared }, status, outcome, reason) => {
    const site = open({ "/": page("Home", prose("home")) });
    const events = await explore({
      text: "home",
      startUrls: [`${site.url}/`],
      declaredChecks: [{ url: site.url + path, ...declared }],
    });
    expect(checksOf(events, "declared").map((check) => check.status as string)).toEqual([status]);
    expect(events.at(-1)).toEqual({ type: "end", outcome: outcome as never, reason });
  });

  const rows = { total: 2, none: null, "a/b": { "~": "tilde" }, rows: [{ id: "r-1" }, { id: 7, tags: [] }] };
  test.each([
    [{ pointer: "/total", equals: 2 }, "pass"],
    [{ pointer: "/total", equals: "2" }, "fail"],
    [{ pointer: "/rows/0/id", equals: "r-1" }, "pass"],
    [{ pointer: "/rows/1/id", equals: 8 }, "fail"],
    [{ pointer: "/rows/1/tags" }, "pass"],
    [{ pointer: "/rows/1/tags", equals: "" }, "fail"],
    [{ pointer: "/rows/2" }, "fail"],
    [{ pointer: "/rows/2", exists: false }, "pass"],
    [{ pointer: "/rows/01" }, "fail"],
    [{ pointer: "/rows/length" }, "fail"],
    [{ pointer: "/constructor" }, "fail"],
    [{ pointer: "/none", equals: null }, "pass"],
    [{ pointer: "/none", exists: false }, "fail"],
    [{ pointer: "/a~1b/~0", equals: "tilde" }, "pass"],
    [{ pointer: "" }, "pass"],
  ])("of success with the JSON value %j: %s", async (json, status) => {
    const site = open({ "/": page("Home", prose("home")), "/api": () => Response.json(rows) });
    const events = await explore({
      text: "home",
      startUrls: [`${site.url}/`],
      declaredChecks: [{ url: `${site.url}/api`, json }],
    });
    expect(checksOf(events, "declared").map((check) => check.status as string)).toEqual([status]);
  });

  test("of success fail for a response that is not JSON", async () => {
    const site = open({ "/": page("Home", prose("home")) });
    const declaredChecks = [{ url: `${site.url}/`, json: { pointer: "", exists: false } }];
    const events = await explore({ text: "home", startUrls: [`${site.url}/`], declaredChecks });
    expect(checksOf(events, "declared").map(({ status }) => status)).toEqual(["fail"]);
  });

  test("of success send their method, headers and body, each time", async () => {
    const received: unknown[] = [];
    const other = open({ "/seen": (request) => Response.json({ key: request.headers.get("x-key") }) });
    const site = open({
      "/": page("Home", prose("home")),
      "/rows": async (request) => {
        const { method, headers } = request;
        received.push([method, headers.get("x-key"), headers.get("content-type"), await request.text()]);
        return Response.json({ id: received.length }, { status: 201 });
      },
      "/moved": () => Response.redirect(`${other.url}/seen`, 302),
    });
    const create = {
      url: `${site.url}/rows`,
      method: "POST" as const,
      headers: { "X-Key": "k1", "Content-Type": "application/json" },
      body: '{"name": "a"}',
      status: 201,
    };
    const headers = { "X-Key": "k1" };
    const events = await explore({
      text: "home",
      startUrls: [`${site.url}/`],
      declaredChecks: [
        create,
        { ...create, body: '{"name": "b"}' },
        { url: `${site.url}/rows`, method: "DELETE", status: 204 },
        { url: `${site.url}/moved`, headers, json: { pointer: "/key", equals: null } },
      ],
    });
    const checks = checksOf(events, "declared");
    expect(checks.map(({ status }) => status)).toEqual(["pass", "pass", "fail", "pass"]);
    // Those that differ only in what they send are different checks.
    expect(new Set(checks.map(({ subject }) => subject)).size).toBe(4);
    expect(received.sort()).toEqual([
      ["DELETE", null, null, ""],
      ["POST", "k1", "application/json", '{"name": "a"}'],
      ["POST", "k1", "application/json", '{"name": "b"}'],
    ]);
  });
});

test.each([
  ["### Incorrect\n\n```json\n{'a': }\n```", null],
  ["The following JSON is invalid:\n\n```json\n{'a': }\n```", null],
  ["Don't do this:\n\n```json\n{'a': }\n```", null],
  ["```json example-bad\n{'a': }\n```", null],
  ["### Errors\n\nIf the token is invalid, the API returns an error:\n\n```json\n{'a': }\n```", "fail"],
  ["```json title=error.json\n{'a': }\n```", "fail"],
])("of samples accepts an intentionally wrong one only by its context: %j", async (text, expected) => {
  const site = open({ "/": md(`# Install\n\n${text}\n`) });
  const events = await explore({ text: "Install the client", startUrls: [`${site.url}/`] });
  expect(checksOf(events, "sample-parses").map(({ status }) => status)).toEqual(
    expected === null ? [] : [expected as never],
  );
});

test("of languages ignores a plain <pre> and a synopsis", async () => {
  const site = open({
    "/": page("get(1)", `${prose("get")}<pre>get [--all] FILE</pre><pre><code class="language-sh">get a</code></pre>`),
    "/b": md("# get\n\n## Synopsis\n\n```\nget [--all] FILE\n```\n"),
    "/c": page("list(1)", `${prose("list")}<pre><code>list a</code></pre>`),
  });
  const events = await explore({ text: "get", startUrls: ["/", "/b", "/c"].map((path) => site.url + path) });
  expect(checksOf(events, "sample-labelled").map(({ url, status, share }) => [url, status, share])).toEqual([
    [`${site.url}/`, "pass", 1],
    [`${site.url}/c`, "fail", 0],
  ]);
});

test.each([
  ["js", "const a = 1;", "fine"],
  ["js", "return await x();", "fine"],
  ["ts", "{ a: 1, b() {} }", "fine"],
  ["ts", "a: 1,\nb: 2,", "fine"],
  ["ts", "get(id: string): Promise<X>;\nset(id: string): void;", "fine"],
  ["tsx", "<A b={1}>\n  <C />\n</A>", "fine"],
  ["js", "const a = {\n  ...\n}; f(", "unknown"],
  ["js", "f(a);\n\n{ a: 1, b: 2 }", "unknown"],
  ["js", "const a = 1;\nconst a = 2;", "fine"],
  ["js", 'import x from "y" with { type: "macro" };\nx(}', "broken"],
  ["js", "[a][0]\n['b', , 'c'][1]", "fine"],
  ["js", "const r = parse(a[, b]);\nrun(r);", "unknown"],
  ["js", "const a = [\n  1,\n  2\n;\nconst b = 3;", "broken"],
  ["json", '{"a": 1}', "fine"],
  ["json", '"a": 1,\n"b": 2', "fine"],
  ["json", '{"a":1}\n{"a":2}', "fine"],
  ["json", '{\n  // why\n  "a": 1\n}', "unknown"],
  ["json", '{\n  "a": ...\n}', "unknown"],
  ["json", '{ "a": string }', "unknown"],
  ["json", "{ 'a': 1 }", "broken"],
  ["json", '{"broken": }', "broken"],
  ["json", '{"error": "not_found", "detail": }', "broken"],
  ["json", '{"valid": "do not", "bad": }', "broken"],
  ["js", "const invalid = [\n  1,\n  wrong(\n;", "broken"],
  ["bash", 'echo "an error', "broken"],
  ["yaml", "a:\n  - b", "fine"],
  ["yaml", "a: {{ b }}\n c: 1", "unknown"],
  ["yaml", "a:\n\tb: 1", "broken"],
  ["yaml", "ports: [80, 443\nrun: |\n  echo (\n\n  exit 0\nname: a", "broken"],
  ["yaml", "run: |\n  echo [\n  - a: b: c\nname: a", "fine"],
  ["yaml", "a: b\n  - run: |\n      echo", "broken"],
  ["yaml", "run: !sh |\n  echo\nports: [80", "unknown"],
  ["sh", "npm i <name>", "fine"],
  ["sh", "$ npm i\nadded 1 package in 1s, don't worry", "fine"],
  ["bash", 'echo "a', "broken"],
  ["bash", "if true; then\n  x", "broken"],
  ["console", "output only", "unknown"],
  ["console", '$ git add .\n$ git commit -m "a', "broken"],
  ["console", '$ git commit -m "a\nb"\n$ git push', "fine"],
  ["console", "$ npm i\nadded 1 package in 1s, don't worry ...", "fine"],
  ["python", "def", "unknown"],
  ["toml", "[a]\nb = 1", "fine"],
  ["toml", "[a\nb = 1", "broken"],
  ["toml", "a = 1\na = 2", "unknown"],
  ["go", 'res, err := c.Do(ctx, &Req{Name: "a)"})\n// don\'t {', "fine"],
  ["go", 'res, err := c.Do(ctx, &Req{Name: "a")', "broken"],
  ["java", "Client c = new Client(List.of(1, 2));", "fine"],
  ["java", "Client c = new Client(List.of(1, 2);\nc.run();", "broken"],
  ["rust", "let x: &'a str = foo(|y| y + 1);", "fine"],
  ["rust", 'fn main() {\n  let c = Client::new("x"?;\n}', "broken"],
  ["c", "char c = '(';\n/* it's ( */\nfoo(1);", "fine"],
  ["c", "#define A(x) do { \\\n  f(x); \\\n} while (0", "fine"],
  ["cpp", "auto c = acme::Client{token;\nc.run();", "broken"],
  ["php", '<?php\n$c = new Client("x");\necho $c->run(["a" => 1]);', "fine"],
  ["php", '$c = new Client("x";\necho $c->run();', "broken"],
  [
    "php",
    "<p id='a'>It's 5\" (or so:</p>\n<?php if ($a): ?>\n<i id='b'>yes</i>\n<?php endif ?>\n<?php f($a b) ?>",
    "unknown",
  ],
  ["php", "$a = 'a (';\n$c = new Client('<?xml version=\"1.0\"?>');", "fine"],
  [null, "{", "unknown"],
])("of samples finds that this %s is right or wrong: %j (%s)", async (language, code, expected) => {
  const verdict = await parseSample({ language, code, line: 1, isClosed: true });
  expect(verdict === null ? "unknown" : verdict.broken ? "broken" : "fine").toBe(expected);
});

test("a sample without a label isn't valid if only its first 2,000 characters are", async () => {
  const code = `${"const client = await connect(1);\n".repeat(70)}for (const each of client.list( {\n  run(each);\n}`;
  expect(await parseSample({ language: null, code, line: 1, isClosed: true })).toBeNull();
});

test("a broken sample without a label is reported by the language that it looks like", async () => {
  const site = open({ "/": md('# Install\n\n```\n{\n  "a": 1,\n  "b": }\n```\n') });
  const events = await explore({ text: "install", startUrls: [`${site.url}/`] });
  expect(checksOf(events, "sample-parses").map(({ message }) => message)).toEqual([
    expect.stringMatching(/^The sample has no label and looks like JSON, but does not parse as such: /),
  ]);
});

test.each([
  ["Create an account and send the first e-mail", ["create", "account", "send", "first", "email"]],
  ["Back up your database from C, see https://x.test/secret-path", ["backup", "database", "c"]],
  ["如何使用 Bun 创建 HTTP 服务器", ["bun", "创建", "http", "服务", "器"]],
  ["Wie richte ich einen Webhook ein?", ["richte", "webhook"]],
  ["configure and configuring", ["configure"]],
])("the goal %j is searched for as %j", (goal, words) => {
  expect(toTerms(goal).map(({ word }) => word)).toEqual(words);
});

describe("the path of the explorer", () => {
  const linked = (...links: [string, string][]) =>
    links.map(([to, text]) => `<li><a href="${to}">${text}</a></li>`).join("");
  const wayOf = (events: AgentEvent[], site: Site) =>
    milestone(events, "page_read").map(({ url }) => url.replace(site.url, ""));
  const filler = (paths: string[]) =>
    Object.fromEntries(paths.map((path) => [path, page(path, prose("other things"))]));

  test("ends only at a limit or the last link, however unpromising the links are", async () => {
    const paths = Array.from({ length: 12 }, (_, i) => `/p${i}`);
    const site = open({
      "/": page("Home", `${prose("things")}<ul>${linked(...paths.map((path): [string, string] => [path, path]))}</ul>`),
      ...filler(paths),
      "/p11": page("Undo a commit", `${prose("undoing a commit")}<pre>git reset --soft HEAD^</pre>`),
    });
    const events = await explore({ text: "Undo a commit", startUrls: [`${site.url}/`] });
    expect(wayOf(events, site)).toEqual(["/", ...paths]);
    expect(likely(events).map(({ url }) => url)).toEqual([`${site.url}/p11`]);
    const none = await explore({ text: "Bake bread", startUrls: [`${site.url}/`] });
    expect(unclear(none).map(({ budget, pages }) => ({ budget, pages }))).toEqual([{ budget: "links", pages: 13 }]);
  });

  test("follows the context of links, prefers indexes and beginners' pages, and stays near the start", async () => {
    const site = open({
      "/": page(
        "Tool",
        `${prose("things")}
         <dl><dt><a href="/a">tool-a</a></dt><dd>Lists nothing.</dd>
             <dt><a href="/b">tool-b</a></dt><dd>Finds the commit that introduced a fault.</dd></dl>
         <p>See <a href="/tutorial">tutorial</a> to get started.</p><p><a href="/docs">Documentation</a></p>`,
      ),
      "/b": page("tool-b", prose("nothing much")),
      "/tutorial": page("Tutorial", `${prose("beginning")}<a href="/deep">Deep</a>`),
      ...filler(["/a", "/docs", "/deep"]),
    });
    const events = await explore({ text: "Find the commit that introduced a fault", startUrls: [`${site.url}/`] });
    expect(wayOf(events, site)).toEqual(["/", "/b", "/tutorial", "/docs", "/a", "/deep"]);
    expect(
      ofType(events, "thought")
        .map(({ text }) => text.replaceAll(site.url, ""))
        .filter((text) => text.includes("(/")),
    ).toEqual([
      'Next I open "tool-b" (/b), from a link on /: the text around the link mentions commit, introduced, fault.',
      'No page stands out yet. I try "tutorial" (/tutorial), from a link on /, because such pages often link to others.',
      'No page stands out yet. I try "Documentation" (/docs), from a link on /, because such pages often link to others.',
      'No remaining link mentions a word of the goal. I try "tool-a" (/a), from a link on /.',
      'No remaining link mentions a word of the goal. I try "Deep" (/deep), from a link on /tutorial.',
    ]);
  });

  const twoParts = {
    "/": page("Home", `${prose("things")}<ul>${linked(["/http", "Serve HTTP"], ["/sql", "Select a row"])}</ul>`),
    "/http": page("Serve HTTP requests", `${prose("serving requests")}<pre>serve()</pre>`),
    "/sql": page("Select a row from a database", `${prose("a row of a database")}<pre>row()</pre>`),
  };

  const fitOf = async (routes: Record<string, SiteRoute>, text: string) =>
    milestone(await explore({ text, startUrls: [`${open(routes).url}/`] }), "goal_answer")[0]?.fit;

  test("doesn't prefer a section just because another page loses its words", async () => {
    const other = (text: string) => ({
      "/": page("Home", linked(["/near", "Rotate keys"], ["/other", "Billing"])),
      "/near": page("Rotate keys", `${prose("rotating keys")}<pre>rotate()</pre>`),
      "/other": page("Billing", `${prose(text)}<pre>bill()</pre>`),
    });
    const goal = "Rotate keys of a webhook";
    const before = await fitOf(other("a webhook and how to rotate"), goal);
    expect(before).toBeGreaterThan(0.2);
    expect(await fitOf(other("a webhook"), goal)).toBe(before);
    expect(await fitOf(other("invoices"), goal)).toBeLessThan(Number(before));
  });

  test("matches consecutive words with the same words written as one", async () => {
    const site = open({ "/": page("Fileuploads", `${prose("fileuploads")}<pre>save()</pre>`) });
    const events = await explore({ text: "File upload", startUrls: [`${site.url}/`] });
    expect(milestone(events, "goal_answer")).toMatchObject([
      { state: "likely", nearest: [{ synonyms: [{ synonym: "fileupload" }, { synonym: "fileupload" }] }] },
    ]);
  });

  test("counts a page with the same text as an earlier one as a wasted request", async () => {
    const text = prose("rotating");
    const home = (to: string) => page("Home", linked([to, "Rotate a webhook secret"]));
    const first = {
      "/": home("/one"),
      "/one": page("One", `${text}<p><a href="/two">Rotate a webhook secret</a></p>`),
    };
    const wasted = async (routes: Record<string, SiteRoute>) => {
      const events = await explore({ text: "Rotate a webhook secret", startUrls: [`${open(routes).url}/`] });
      const { dimensions } = gradeSession(
        events.map((event, seq) => ({ ...event, seq, at: 0, tMs: seq, source: "agent" })),
      );
      const parts = dimensions.flatMap(({ parts }) => parts);
      return parts.find(({ name }) => name === "Wasted requests")?.counts;
    };
    expect(await wasted({ ...first, "/two": first["/one"] })).toMatchObject({ repeats: 1, requests: 3 });
    expect(await wasted({ ...first, "/two": page("Two", prose("secrets")) })).toMatchObject({
      repeats: 0,
      requests: 3,
    });
  });

  test("reads a page, and not the source that Sphinx publishes beside it", async () => {
    const source = {
      type: "text/plain",
      body: `Rotate a webhook secret\n=======\n\n${"Rotate the secret. ".repeat(20)}`,
    };
    const site = open({
      "/": page("Home", linked(["/secrets", "Secrets"], ["/_sources/index.rst.txt", "Show Source"])),
      "/secrets": page("Secrets", `${prose("rotating")}<p><a href="/_sources/secrets.rst.txt">Show Source</a></p>`),
      "/_sources/index.rst.txt": source,
      "/_sources/secrets.rst.txt": source,
    });
    const events = await explore({ text: "Rotate a webhook secret", startUrls: [`${site.url}/`] });
    expect(wayOf(events, site)).toEqual(["/", "/secrets"]);
    expect(checksOf(events, "has-text")).toEqual([]);
  });

  test("covers a goal of two parts with two sections on two pages", async () => {
    const site = open(twoParts);
    const events = await explore({
      text: "Serve HTTP requests and select a row from a database",
      startUrls: [`${site.url}/`],
    });
    expect(likely(events).map(({ url, terms }) => [url, terms])).toEqual([
      [`${site.url}/http`, ["serve", "http", "requests"]],
      [`${site.url}/sql`, ["select", "row", "database"]],
    ]);
  });

  test("finds the section that answers a part even if another one has more words of the goal", async () => {
    const notes = `<h2>Notes</h2>${prose("serve HTTP requests, select a row")}<pre>notes()</pre>`;
    const site = open({
      ...twoParts,
      "/http": page("Guide", `${notes}<h2>HTTP</h2>${prose("serving requests")}<pre>serve()</pre>`),
    });
    const events = await explore({
      text: "Serve HTTP requests and select a row from a database",
      startUrls: [`${site.url}/`],
    });
    expect(
      likely(events)
        .map(({ url }) => url)
        .sort(),
    ).toEqual([`${site.url}/http`, `${site.url}/sql`]);
  });

  test("covers a goal of one part with one section, and not with scattered words", async () => {
    const site = open(twoParts);
    const one = await explore({
      text: "Serve HTTP requests to select a row from a database",
      startUrls: [`${site.url}/`],
    });
    expect(likely(one)).toEqual([]);
    const words = ["rotate", "secret", "webhook", "nightly"];
    const far = words.map((word) => `<p>${word} ${"some other words ".repeat(90)}</p>`).join("");
    const scattered = open({ "/": page("Rotate", `${far}<pre>rotate()</pre>`) });
    const events = await explore({ text: words.join(" "), startUrls: [`${scattered.url}/`] });
    expect(likely(events)).toEqual([]);
  });
});

test("a goal with another form of a verb finds the section that names it: undone, undo", async () => {
  const site = open({
    "/": page("Acme", '<a href="/reset">Undo changes</a> <a href="/about">About</a>'),
    "/reset": page(
      "Undo changes",
      "<h2>Undo the last commit</h2><p>Undo the last commit with acme reset.</p><pre>acme reset</pre>",
    ),
    "/about": page("About", "<p>We are a company.</p>"),
  });
  const events = await explore({ text: "Get the last commit undone", startUrls: [`${site.url}/`] });
  expect(likely(events)).toMatchObject([{ url: `${site.url}/reset` }]);
});

test("a page of Bun's docs in Markdown is found from the guides", async () => {
  const root = `${import.meta.dir}/../node_modules/bun-types/docs`;
  const folders = ["runtime", "guides/websocket", "guides/http"];
  const files = folders.flatMap((folder) => [...new Bun.Glob(`${folder}/**/*.mdx`).scanSync(root)]).sort();
  const map = files.map(
    (file) => `- [${file.replace(/.*\/|\.mdx$/g, "").replaceAll("-", " ")}](/docs/${file.replace(/\.mdx$/, "")})`,
  );
  const routes: Record<string, SiteRoute> = {
    "/docs/": md("# Bun\n\nEverything is in llms.txt.\n"),
    "/llms.txt": md(`# Bun\n\n> Docs\n\n${map.join("\n")}\n`),
  };
  for (const file of files)
    routes[`/docs/${file.replace(/\.mdx$/, "")}`] = async () =>
      new Response(await Bun.file(`${root}/${file}`).text(), { headers: { "content-type": "text/markdown" } });
  const site = open(routes);
  let events: AgentEvent[] = [];
  const spentMs = await cpuMsOf(async () => {
    events = await explore({
      text: "Publish a message to a topic over a WebSocket",
      startUrls: [`${site.url}/docs/`],
    });
  });
  expect(likely(events).map(({ url }) => url.includes("websocket"))).toEqual([true]);
  // These pages have one invalid JSON sample, with a comma before its closing brace.
  const broken = checksOf(events).filter(({ id, status }) => id === "sample-parses" && status === "fail");
  expect(broken.map(({ url, line }) => [url.replace(site.url, ""), line])).toEqual([
    ["/docs/runtime/environment-variables", 52],
  ]);
  expect(spentMs).toBeLessThan(10_000);
});

test("a site on a port that fetch blocks is read but not checked", async () => {
  const serve = (): Site => {
    for (const port of [4190, 5060, 5061, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080]) {
      try {
        return serveSite({ "/": { body: "<h1>Docs</h1><p>How to upload a file.</p>" } }, { port });
      } catch {
        // In use.
      }
    }
    throw new Error("all blocked ports are in use");
  };
  const site = serve();
  sites.push(site);
  const events = await explore({ text: "Upload a file", startUrls: [`${site.url}/`] });
  const answers = events.filter((event) => event.type === "tool_result" && event.tool === "check_site");
  expect(answers).toMatchObject([{ ok: false, output: { origin: site.url } }]);
  expect(events.at(-1)).toMatchObject({ type: "end" });
});

test("the product's sign-in page is no docs page behind a sign-in", async () => {
  const form = '<h1>Sign in</h1><form method="post"><input type="email"><input type="password"></form>';
  const site = open({
    "/docs/": {
      body: '<h1>Docs</h1><p>How to upload a file.</p><a href="/">Sign in</a> <a href="/docs/paid">Plans</a>',
    },
    "/": { body: form },
    "/docs/paid": { body: form },
  });
  const events = await explore({ text: "Upload a file", startUrls: [`${site.url}/docs/`] });
  const failed = events.flatMap((event) => (event.type === "tool_result" ? (event.checks ?? []) : []));
  const walls = failed.filter(({ id, status }) => id === "open-access" && status === "fail");
  expect([...new Set(walls.map(({ subject }) => subject))]).toEqual([`${site.url}/docs/paid`]);
});

test("a page with 3,000 nested elements is reported, and not parsed by the checks of the site", async () => {
  const body = (depth: number) =>
    `<!doctype html><html lang="en"><title>Acme</title><h1>Acme</h1><p>${"Upload a file with the SDK. ".repeat(50)}</p>${"<div>".repeat(depth)}`;
  const deep = open({ "/": { body: `${body(3_000)}</html>` } });
  const flat = open({
    "/": { body: `${body(100)}${"</div>".repeat(100)}${"<p>One<br>".repeat(2_000)}</html>` },
  });
  const checksOf = async ({ url }: Site) =>
    (await explore({ text: "Upload a file", startUrls: [`${url}/`] })).flatMap((event) =>
      event.type === "tool_result" && event.tool === "check_site" ? (event.checks ?? []) : [],
    );
  expect(await checksOf(deep)).toContainEqual(
    expect.objectContaining({ id: "nesting-depth", status: "fail", group: "page", url: `${deep.url}/` }),
  );
  expect((await checksOf(flat)).find(({ id }) => id === "nesting-depth")).toBeUndefined();
});
