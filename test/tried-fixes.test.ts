import { afterAll, expect, test } from "bun:test";
import { createExplorer } from "../src/agents/explorer/explorer.ts";
import { runs } from "../src/db/tables/runs.ts";
import { presetArms, withholdingArms } from "../src/experiments/design.ts";
import { advanceExperiments } from "../src/experiments/progress.ts";
import type { Experiment } from "../src/experiments/schema.ts";
import type { Report } from "../src/reports/schema.ts";
import { findSection } from "../src/runs/hidden-sections.ts";
import { testApp } from "./support/app.ts";
import { signedIn } from "./support/people.ts";
import { serveSite } from "./support/site.ts";

const long = "Acme stores notes and files, and every client can read them over HTTP. ".repeat(6);
const page = (body: string) => ({
  type: "text/html; charset=utf-8",
  body: `<!doctype html><html lang="en"><head><title>Acme</title></head><body><main>${body}</main></body></html>`,
});
const routes = {
  "/docs/": page(
    `<h1>Acme</h1><p>${long}</p><p>Read <a href="/docs/instal">Install the client</a> first, then <a href="/docs/upload">upload a file</a>.</p>`,
  ),
  "/docs/install": page(
    `<h1>Install the client</h1><p>${long}</p><pre><code class="language-sh">npm install acme-client</code></pre>`,
  ),
  "/docs/upload": page(
    `<h1>Upload a file</h1><p>${long}</p><p>See <a href="/docs/install">Install the client</a>.</p>`,
  ),
};
const site = serveSite(routes);
const app = testApp({
  agent: createExplorer({ version: "test" }),
  env: { EVALD_ALLOW_PRIVATE: `127.0.0.1:${site.port}` },
});
afterAll(() => site.stop());

const scoreOf = async (promptId: string): Promise<{ report: Report; score: number }> => {
  const { body } = await app.send("POST", `/api/v1/prompts/${promptId}/run`, { body: { urlMap: {} } });
  await app.runJobs();
  const { report } = (await app.send("GET", `/api/v1/runs/${body.runId}`)).body;
  const { body: whole } = await app.send("GET", `/api/v1/reports/${report.slug}`);
  return { report: whole, score: whole.score };
};

test("a recommended fix is worth what the defect costs, before anyone edits the docs", async () => {
  const text = `Install the client. ${site.url}/docs/`;
  const { body: prompt } = await app.send("POST", "/api/v1/prompts", { body: { text } });
  const { report } = await scoreOf(prompt.id);
  const fix = report.recommendations.find(({ evidence }) => evidence?.url && evidence.found && evidence.expected);
  expect(fix?.evidence).toMatchObject({ url: `${site.url}/docs/` });

  const person = await signedIn(app);
  const { body: shown } = await person.get(`/reports/${report.slug}`);
  const path = `/experiments/new?report=${report.slug}&fix=${fix?.id}`;
  expect(shown).toContain(path.replace("&", "&amp;"));
  const { body: form } = await person.get(path);
  const fieldOf = (name: string) =>
    new RegExp(`name="${name}"[^>]*value="([^"]*)"|value="([^"]*)"[^>]*name="${name}"|name="${name}"[^>]*>([^<]*)<`)
      .exec(form)
      ?.slice(1)
      .find(Boolean) ?? "";
  const fields = {
    editUrl: fieldOf("editUrl"),
    editFind: fieldOf("editFind"),
    editReplacement: fieldOf("editReplacement"),
  };
  expect(fields).toEqual({
    editUrl: `${site.url}/docs/`,
    editFind: fix?.evidence?.found ?? "",
    editReplacement: fix?.evidence?.expected ?? "",
  });
  const started = await person.post("/experiments/new", { promptId: prompt.id, ...fields });
  expect(started.status).toBe(303);
  await app.runJobs();
  await advanceExperiments(app.service.ctx);
  const id = started.location?.split("/").at(-1);
  const { analysis }: Experiment = (await app.send("GET", `/api/v1/experiments/${id}`)).body;

  // Now the docs are really fixed.
  const before = (await scoreOf(prompt.id)).score;
  routes["/docs/"] = page(routes["/docs/"].body.replace('/docs/instal"', '/docs/install"'));
  const after = (await scoreOf(prompt.id)).score;
  expect(after).toBeGreaterThan(before);
  const [contrast] = analysis.contrasts;
  expect(contrast?.overall.exact).toBe(true);
  expect(contrast?.overall.score?.delta).toBeCloseTo(after - before, 0);
});

test("a page that the task needs is told from one that is only read", async () => {
  const docs = serveSite({
    "/docs/": page(
      `<h1>Acme</h1><p>${long}</p><p>Read <a href="/docs/news">How to install the client</a> and <a href="/docs/install">Set up</a>.</p>`,
    ),
    "/docs/install": routes["/docs/install"],
    "/docs/news": page(
      `<h1>How to choose a client</h1><p>There are three clients. The one for the command line suits scripts, and needs no other program. The one for Node.js suits servers that already have it. The one for browsers suits pages, and has no access to files.</p><p>All of them have the same operations and the same limits. You can change from one to another at any time, because none of them keeps data of its own on the machine.</p>`,
    ),
  });
  const own = testApp({
    agent: createExplorer({ version: "test" }),
    env: { EVALD_ALLOW_PRIVATE: `127.0.0.1:${docs.port}` },
  });
  const text = `Install the client. ${docs.url}/docs/`;
  const { body: prompt } = await own.send("POST", "/api/v1/prompts", { body: { text } });
  await own.send("POST", `/api/v1/prompts/${prompt.id}/run`, { body: { urlMap: {} } });
  await own.runJobs();
  const { pages } = (await own.send("GET", `/api/v1/prompts/${prompt.id}/docs-map`)).body;
  const arms = withholdingArms(pages, 5);
  expect(arms.map(({ edits }) => edits?.hidden[0]).sort()).toEqual([
    `${docs.url}/docs/install`,
    `${docs.url}/docs/news`,
    undefined,
  ]);
  const { body } = await own.send("POST", "/api/v1/experiments", { body: { promptIds: [prompt.id], arms } });
  await own.runJobs();
  await advanceExperiments(own.service.ctx);
  docs.stop();
  const { analysis }: Experiment = (await own.send("GET", `/api/v1/experiments/${body.id}`)).body;
  const arm = (path: string) => arms.find(({ edits }) => edits?.hidden[0]?.endsWith(path))?.name ?? "";
  const verdictOf = (path: string) => analysis.contrasts.find((each) => each.arm === arm(path))?.verdict;
  expect([verdictOf("/install"), verdictOf("/news")]).toEqual(["worse", "not_distinguishable"]);
});

test.each([
  [
    "HTML",
    '<main><h1>A</h1><h2 id="x">X</h2><p>1</p><h3>Y</h3><p>2</p><h2>Z</h2></main>',
    '<h2 id="x">X</h2><p>1</p><h3>Y</h3><p>2</p>',
  ],
  ["HTML at its end", '<main><h2><a id="x"></a>X</h2><p>1</p></main>', '<h2><a id="x"></a>X</h2><p>1</p>'],
  ["Markdown", "# A\n\n## X\n\n```sh\n# no heading\n```\n\n## Z\n", "## X\n\n```sh\n# no heading\n```\n\n"],
  ["a page without the section", "# A\n\n## Z\n", null],
])("a section is found in %s", (_, source, section) => {
  expect(findSection(source, "x")).toBe(section);
});

test("a section that is withheld is read by no run of its arm, while the rest of its page is", async () => {
  const guide = `<h1>Guide</h1><p>${long}</p><h2 id="install">Install the client</h2><pre><code class="language-sh">npm install acme-client</code></pre><h2 id="limits">Limits</h2><p>A note has 500 letters.</p>`;
  const docs = serveSite({
    "/docs/": page(`<h1>Acme</h1><p>${long}</p><a href="/docs/guide">Install the client</a>`),
    "/docs/guide": page(guide),
  });
  const own = testApp({
    agent: createExplorer({ version: "test" }),
    env: { EVALD_ALLOW_PRIVATE: `127.0.0.1:${docs.port}` },
  });
  const { body: prompt } = await own.send("POST", "/api/v1/prompts", {
    body: { text: `Install the client. ${docs.url}/docs/` },
  });
  const request = (fragment: string) =>
    own.send("POST", "/api/v1/experiments", {
      body: { promptIds: [prompt.id], arms: presetArms({ hidden: [`${docs.url}/docs/guide#${fragment}`] }) },
    });
  expect([(await request("absent")).status, (await request("absent")).body.detail]).toEqual([
    400,
    expect.stringContaining("arms.1.edits.hidden"),
  ]);
  const { body } = await request("install");
  await own.runJobs();
  await advanceExperiments(own.service.ctx);
  docs.stop();
  const { analysis }: Experiment = (await own.send("GET", `/api/v1/experiments/${body.id}`)).body;
  expect(analysis.contrasts[0]).toMatchObject({ arm: "hidden", verdict: "worse" });
  expect(analysis.arms[1]?.used).toEqual({ n: 1, of: 1 });
});

test("a run hides sections, and a repeated request is the same after the page changed", async () => {
  const guide = page('<h2 id="install">Install the client</h2><p>npm</p><h2 id="limits">Limits</h2>');
  const site = { "/guide": guide };
  const docs = serveSite(site);
  const own = testApp({ env: { EVALD_ALLOW_PRIVATE: `127.0.0.1:${docs.port}` } });
  const { body: prompt } = await own.send("POST", "/api/v1/prompts", { body: { text: `Install. ${docs.url}/guide` } });
  const request = (fragment: string) =>
    own.send("POST", `/api/v1/prompts/${prompt.id}/run`, {
      body: { urlMap: {}, edits: { hidden: [`${docs.url}/guide#${fragment}`], replacements: [] } },
      headers: { "Idempotency-Key": fragment },
    });
  const absent = await request("absent");
  expect([absent.status, absent.body.detail]).toEqual([400, expect.stringContaining("edits.hidden.0")]);
  const { body: run } = await request("install");
  site["/guide"] = page('<h2 id="install">Install the client</h2><p>npm 2</p>');
  expect((await request("install")).body.runId).toBe(run.runId);
  docs.stop();
  const find = '<h2 id="install">Install the client</h2><p>npm</p>';
  expect(own.db.select({ task: runs.task }).from(runs).all()).toMatchObject([
    { task: { edits: { hidden: [], replacements: [{ url: `${docs.url}/guide`, find, replacement: "" }] } } },
  ]);
});
