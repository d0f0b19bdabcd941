import { afterAll, expect, test } from "bun:test";
import { gzipSync } from "node:zlib";
import { inProcessAgents } from "../../src/agents/all.ts";
import { createPrompt } from "../../src/prompts/prompts.ts";
import { testApp } from "../support/app.ts";
import { type SiteRoute, serveSite } from "../support/site.ts";

const agent = inProcessAgents({}).explorer;
const stops: (() => void)[] = [];
afterAll(() => {
  for (const stop of stops) stop();
});

function site(routes: Record<string, SiteRoute>) {
  const made = serveSite(routes);
  stops.push(made.stop);
  return made;
}

const endGoal = "A file was uploaded with the SDK.";
const good =
  '<!doctype html><html lang="en"><title>Upload</title><main><h1>Upload a file</h1><p>Upload a file with the SDK.</p><pre><code class="language-js">await sdk.upload("a.txt");</code></pre></main></html>';

type Ask = {
  endGoal?: string;
  urlMap?: Record<string, string>;
  env?: Record<string, string>;
  /** URLs that follow the first start URL. */
  also?: string[];
  declaredChecks?: { url: string }[];
};

/** A run of a prompt that starts at `url`, over REST, with its report and trace if there is one. */
async function runAt(url: string, { endGoal: goal = endGoal, urlMap = {}, env = {}, also = [], ...more }: Ask = {}) {
  const { send, runJobs, service, a } = testApp({ agent, env: { EVALD_ALLOW_PRIVATE: "127.0.0.1", ...env } });
  // Saved when the operator allowed all addresses: since then, prompts with such URLs are refused.
  const before = { ...service.ctx, allow: () => ["0.0.0.0/0", "::/0"].map((host) => ({ host, port: null })) };
  const prompt = createPrompt(before, a.org, {
    text: "Upload a file.",
    endGoal: goal,
    additionalUrls: [url, ...also].map((one) => ({ url: one })),
    ...more,
  });
  const accepted = await send("POST", `/api/v1/prompts/${prompt.id}/run`, { body: { urlMap } });
  expect(accepted.status).toBe(200);
  await runJobs();
  const run = (await send("GET", `/api/v1/runs/${accepted.body.runId}`)).body;
  if (!run.report) return { run, report: null, events: [] };
  const report = (await send("GET", `/api/v1/reports/${run.report.slug}`)).body;
  const trace = (await send("GET", `/api/v1/reports/${run.report.slug}/trace?limit=500`)).body;
  return { run, report, events: trace.events };
}

const failed = (failureReason: RegExp) => ({
  status: "failed",
  report: null,
  failureReason: expect.stringMatching(failureReason),
});
const categories = (report: { frictionPoints: { category: string }[] }) =>
  new Set(report.frictionPoints.map(({ category }) => category));

test("a run fails with the cause if nobody listens at the address", async () => {
  const gone = serveSite({});
  gone.stop();
  const { run } = await runAt(`${gone.url}/`);
  expect(run).toMatchObject(failed(/^infrastructure: .*127\.0\.0\.1:\d+ refused the connection/));
  expect(run.attempt).toBe(5);
});

test("a run fails with the cause if the host name does not exist", async () => {
  const { run } = await runAt("http://docs.acme.invalid/");
  expect(run).toMatchObject(failed(/^infrastructure: .*docs\.acme\.invalid/));
});

test("a run fails with the cause if the host never responds", async () => {
  const silent = site({ "/": () => new Promise<Response>(() => {}) });
  const { run } = await runAt(`${silent.url}/`, { env: { EVALD_RUN_TIMEOUT_SECONDS: "1" } });
  expect(run).toMatchObject(
    failed(/^timeout: http:\/\/127\.0\.0\.1:\d+\/ did not respond before the run reached its time limit/),
  );
});

test("a run fails with the cause if a small gzip contains 50 MB", async () => {
  const bomb = gzipSync(Buffer.alloc(50 * 1024 * 1024, 97));
  const bombs = site({ "/": { body: bomb, headers: { "content-encoding": "gzip" } } });
  const { run } = await runAt(`${bombs.url}/`);
  expect(run).toMatchObject(failed(/^infrastructure: .*127\.0\.0\.1:\d+ sent a body larger than/));
});

test("a redirect loop scores 0", async () => {
  const loop = site({ "/": () => new Response(null, { status: 302, headers: { location: "/" } }) });
  const { run } = await runAt(`${loop.url}/`);
  expect(run).toMatchObject({ status: "completed", report: { scope: "docs_only", score: 0 } });
});

test("a page in another charset is decoded", async () => {
  const latin = Buffer.from(good.replace("Upload a file with", "Téléverser: upload a file with"), "latin1");
  const french = site({ "/": { body: new Uint8Array(latin), type: "text/html; charset=iso-8859-1" } });
  const { run, events } = await runAt(`${french.url}/`);
  expect(run.status).toBe("completed");
  expect(JSON.stringify(events)).toContain("Téléverser: upload");
});

test("an error page with status 200 is not taken for documentation", async () => {
  const soft =
    "<!doctype html><title>Page not found</title><main><h1>404: page not found</h1><p>The page you asked for does not exist.</p></main>";
  const lying = site({ "/": { body: soft } });
  const { run, report } = await runAt(`${lying.url}/`);
  expect(run.status).toBe("completed");
  expect(categories(report)).toContain("silent_failure");
  expect(report.score).toBeLessThan(50);
});

test("docs that need JavaScript are reported as unreadable", async () => {
  const shell = `<!doctype html><title>Docs</title><div id="root"></div><script>${"x();".repeat(5000)}</script>`;
  const empty = site({ "/": { body: shell } });
  const { run, report } = await runAt(`${empty.url}/`);
  expect(run.status).toBe("completed");
  expect(categories(report)).toContain("unreadable_page");
  expect(report.frictionPoints[0].severity).toBe("critical");
});

test("a goal in another language than the docs doesn't lower the score", async () => {
  const docs = site({ "/": { body: good } });
  const { run, report } = await runAt(`${docs.url}/`, { endGoal: "Загрузить файл через библиотеку" });
  expect(run.status).toBe("completed");
  const discoverability = report.dimensions.find(({ name }: { name: string }) => name === "Docs discoverability");
  expect(discoverability.unmeasured).toEqual(["Path to the goal"]);
});

test("a goal in the script of the docs lowers the score if no page answers it", async () => {
  const docs = site({ "/": { body: good } });
  const { report } = await runAt(`${docs.url}/`, { endGoal: "Die Rechnung stornieren" });
  const discoverability = report.dimensions.find(({ name }: { name: string }) => name === "Docs discoverability");
  expect(discoverability.unmeasured).toEqual([]);
  const path = discoverability.parts.find(({ name }: { name: string }) => name === "Path to the goal");
  expect(path.score).toBeLessThanOrEqual(40);
});

test("a dead site scores 0, whatever the script of the goal", async () => {
  const gone =
    '<!doctype html><html lang="en"><title>Page not found</title><main><h1>Page not found</h1></main></html>';
  const docs = site({ "/": { status: 404, body: gone } });
  const { run, report } = await runAt(`${docs.url}/`, { endGoal: "Загрузить файл через библиотеку" });
  expect(run.status).toBe("completed");
  const discoverability = report.dimensions.find(({ name }: { name: string }) => name === "Docs discoverability");
  expect(discoverability).toMatchObject({ grade: "F", score: 0 });
});

test("an empty goal is rejected with the field's name", async () => {
  const { send } = testApp({ agent });
  const blank = await send("POST", "/api/v1/prompts", { body: { text: "Upload a file.", endGoal: "  " } });
  expect(blank).toMatchObject({
    status: 400,
    body: { error: "bad_request", detail: expect.stringMatching(/endGoal/) },
  });
});

test("a file: URL is rejected on creation", async () => {
  const { send } = testApp({ agent });
  const file = await send("POST", "/api/v1/prompts", {
    body: { text: "Upload.", additionalUrls: [{ url: "file:///etc/passwd" }] },
  });
  expect(file).toMatchObject({
    status: 400,
    body: { error: "bad_request", detail: expect.stringMatching(/additionalUrls/) },
  });
});

test("a URL in the text with another scheme is not a start URL", async () => {
  const { send, runJobs } = testApp({ agent });
  const prompt = await send("POST", "/api/v1/prompts", { body: { text: "Read file:///etc/passwd" } });
  const accepted = await send("POST", `/api/v1/prompts/${prompt.body.id}/run`, { body: { urlMap: {} } });
  await runJobs();
  expect((await send("GET", `/api/v1/runs/${accepted.body.runId}`)).body).toMatchObject(
    failed(/^infrastructure: no start URL/),
  );
});

test.each(["http://127.0.0.1:9/", "http://10.0.0.1/", "http://[::1]/", "http://2130706433/"])(
  "a private address is rejected with the remedy: %s",
  async (url) => {
    const { run } = await runAt(url, { env: { EVALD_ALLOW_PRIVATE: "" } });
    expect(run).toMatchObject(failed(/^infrastructure: .*EVALD_ALLOW_PRIVATE/));
    expect(run.attempt).toBe(1);
  },
);

test("a page that links to the metadata address is read, and the address is not", async () => {
  const trap = site({
    "/": { body: `${good}<a href="/meta">upload file sdk</a>` },
    "/meta": () => Response.redirect("http://169.254.169.254/", 302),
  });
  const { run, events } = await runAt(`${trap.url}/`);
  expect(run.status).toBe("completed");
  const asked: Http[] = requests(events).filter(({ url }) => url.endsWith("/meta"));
  expect(asked.length).toBeGreaterThan(0);
  for (const { status, error } of asked)
    expect([status, error]).toEqual([null, { kind: "refused", message: expect.stringContaining("169.254.169.254") }]);
});

type Http = { type: string; url: string; status: number | null; purpose: string; error: object | null };
const requests = (events: Http[]) => events.filter(({ type }) => type === "http");

/** The report without values that depend on the clock. */
const charged = ({ report }: Awaited<ReturnType<typeof runAt>>) => ({
  score: report.score,
  outcome: report.outcome,
  errors: report.metrics.errors,
  dimensions: report.dimensions.map(({ name, score }: { name: string; score: number }) => [name, score]),
  frictions: report.frictionPoints.map(({ title }: { title: string }) => title).sort(),
});

test("requests that the service blocks don't count against the docs", async () => {
  const start = (link: string) => ({
    body: `<!doctype html><html lang="en"><title>Acme</title><main><h1>Acme</h1>${link}<p>Begin with <a href="/guide">the guide to files</a>.</p></main></html>`,
  });
  const trap = site({
    "/": start('<p><a href="/meta">Upload a file with the SDK</a></p>'),
    "/meta": () => Response.redirect("http://169.254.169.254/", 302),
    "/guide": { body: good },
  });
  const plain = site({ "/": start(""), "/guide": { body: good } });
  const [trapped, free] = [await runAt(`${trap.url}/`), await runAt(`${plain.url}/`)];
  expect(requests(trapped.events)).toContainEqual(
    expect.objectContaining({
      url: `${trap.url}/meta`,
      purpose: "task",
      error: expect.objectContaining({ kind: "refused" }),
    }),
  );
  expect(charged(trapped)).toEqual(charged(free));
});

test("a site check that needs a blocked URL is skipped", async () => {
  const links = `- [Here](/)\n- [There](http://10.0.0.1/guide)\n`;
  const docs = site({ "/": { body: good }, "/llms.txt": { body: `# Acme\n\n> Files.\n\n## Docs\n\n${links}` } });
  const { events } = await runAt(`${docs.url}/`);
  const checks = events.flatMap(({ checks: all = [] }: { checks?: { id: string }[] }) => all);
  expect(checks.find(({ id }: { id: string }) => id === "llms-txt-links-resolve")).toMatchObject({
    status: "skip",
    message: "Not tested: this service may not reach a URL that this check needs",
  });
});

test("a blocked start URL is skipped if another can be read", async () => {
  const closed = "http://10.0.0.1/guide";
  const docs = site({
    "/": { body: good.replace("</main>", `<a href="${closed}/more">Upload a file with the SDK</a></main>`) },
  });
  const docsAlone = site({ "/": { body: good } });
  const goal = { endGoal: "A file was uploaded with the SDK and its webhook verified." };
  const both = await runAt(closed, { ...goal, also: [`${docs.url}/`], declaredChecks: [{ url: closed }] });
  expect(
    requests(both.events)
      .filter(({ error }) => error)
      .map(({ url }) => url),
  ).toContain(closed);
  expect(charged(both)).toEqual(charged(await runAt(`${docsAlone.url}/`, goal)));
});

test.each([
  [
    "a start URL",
    "http://10.0.0.1/",
    {},
    /^infrastructure: http:\/\/10\.0\.0\.1\/ is not allowed: .*EVALD_ALLOW_PRIVATE/,
  ],
  [
    "a mapped URL",
    "https://docs.acme.example/a",
    { "docs.acme.example": "http://10.0.0.1" },
    /^infrastructure: https:\/\/docs\.acme\.example\/a is not allowed: 10\.0\.0\.1 .*EVALD_ALLOW_PRIVATE.*urlMap/,
  ],
])("%s fails the run if it is blocked and nothing else can be read", async (_, url, urlMap, reason) => {
  const bare = site({});
  for (const also of [[], [`${bare.url}/gone`]]) {
    const { run } = await runAt(url, { urlMap, also });
    expect(run).toMatchObject(failed(reason));
    expect(run.attempt).toBe(1);
  }
});

test("a mapped host is read at its preview, and reported under its own name", async () => {
  const docs = site({ "/base/guide": { body: good } });
  const { run, events } = await runAt("https://docs.acme.example/guide", {
    urlMap: { "docs.acme.example": `${docs.url}/base` },
  });
  expect(run.status).toBe("completed");
  expect(docs.requests).toContain("GET /base/guide");
  expect(events.find(({ type }: { type: string }) => type === "http")).toMatchObject({
    url: expect.stringContaining("https://docs.acme.example/"),
    mappedUrl: expect.stringContaining(`${docs.url}/base/`),
  });
});

test("the same site gives the same report, except for times", async () => {
  const docs = site({ "/": { body: `${good}<a href="/gone">old</a>` } });
  const [first, second] = [await runAt(`${docs.url}/`), await runAt(`${docs.url}/`)];
  const lasting = ({ report }: Awaited<ReturnType<typeof runAt>>) => ({
    score: report.score,
    outcome: report.outcome,
    dimensions: report.dimensions.map(({ name, score }: { name: string; score: number }) => [name, score]),
    frictions: report.frictionPoints.map(({ fingerprint, title }: { fingerprint: string; title: string }) => [
      fingerprint,
      title,
    ]),
    advice: report.recommendations.map(({ title }: { title: string }) => title),
  });
  expect(lasting(second)).toEqual(lasting(first));
});
