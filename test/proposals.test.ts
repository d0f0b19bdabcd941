import { afterAll, describe, expect, test } from "bun:test";
import type { Agent } from "../src/agents/agent.ts";
import { createExplorer } from "../src/agents/explorer/explorer.ts";
import { auditEntries } from "../src/db/tables/audit.ts";
import { jobs } from "../src/db/tables/jobs.ts";
import { prompts } from "../src/db/tables/prompts.ts";
import { runs } from "../src/db/tables/runs.ts";
import { createPrompt } from "../src/prompts/prompts.ts";
import type { TaskProposal } from "../src/proposals/proposal.ts";
import { testApp } from "./support/app.ts";
import { serveMcp } from "./support/mcp-server.ts";
import { signedIn } from "./support/people.ts";
import { completeProposals } from "./support/proposals.ts";
import { evaluation, niceGrade } from "./support/reports.ts";
import { type SiteRoute, serveSite } from "./support/site.ts";

const page = (title: string, body: string): SiteRoute => ({
  body: `<!doctype html><html lang="en"><title>${title} | Acme docs</title><main><h1>${title}</h1><p>${"Acme keeps your files safe. ".repeat(20)}</p>${body}</main></html>`,
});
const sample = (code: string) => `<pre><code class="language-sh">${code}</code></pre>`;

let backup = page(
  "Backups",
  `<h2>Back up a folder</h2><p>To back up a folder, run acme with its path.</p>${sample("acme backup ./photos")}
  <h2>Restore a folder</h2><p>To restore a folder from a backup, run this command.</p>${sample("acme restore ./photos")}`,
);
const json = { content: { "application/json": { schema: {} } } };
const description = {
  openapi: "3.1.0",
  components: { securitySchemes: { key: { type: "http", scheme: "bearer" } } },
};
const pathsOf = (path: string) => ({
  [path]: {
    get: { summary: "List projects", responses: { 200: json } },
    post: {
      summary: "Create a project",
      requestBody: { content: { "application/json": { schema: { properties: { name: { type: "string" } } } } } },
      responses: { 201: json },
    },
  },
  [`${path}/{id}`]: { get: { summary: "Get a project", responses: { 200: json } } },
});
let projects: object = {};
let stored: string[] = [];
const keysSeen: (string | null)[] = [];

const site = serveSite({
  "/": page("Acme", '<a href="/backups">Backups</a> <a href="/install">Install Acme</a>'),
  "/backups": () => new Response((backup as { body: string }).body, { headers: { "content-type": "text/html" } }),
  "/install": page("Install Acme", `<h2>Install the client</h2><p>Install it with Bun.</p>${sample("bun add acme")}`),
  "/projects.json": () => Response.json(projects),
  "/projects": (request) => {
    keysSeen.push(request.headers.get("authorization"));
    return Response.json({ items: stored.map((name) => ({ name })) });
  },
  "/api.json": { body: JSON.stringify({ openapi: "3.1.0", info: { title: "Acme", version: "1" }, paths: {} }) },
});
const closed = serveSite({
  "/": page("Acme", ""),
  "/robots.txt": { type: "text/plain", body: "User-agent: *\nDisallow: /\n" },
});
const signIn = serveSite({
  "/": { body: '<!doctype html><title>Sign in</title><h1>Sign in</h1><form><input type="password"></form>' },
});
const sites = [site, closed, signIn];
afterAll(() => {
  for (const each of sites) each.stop();
});

/** Does nothing until it is aborted. */
async function* hanging(signal: AbortSignal) {
  await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  yield { type: "end", outcome: "not_judged", reason: "" } as const;
}

const newApp = (agent: Agent = createExplorer({ version: "test" }), hosts: string[] = []) =>
  testApp({
    agent,
    env: {
      EVALD_SECRET_KEY: Buffer.alloc(32, 7).toString("base64"),
      EVALD_ALLOW_PRIVATE: [...sites.map(({ port }) => `127.0.0.1:${port}`), ...hosts].join(","),
    },
  });

async function propose(app: ReturnType<typeof newApp>, body: object) {
  const { status, body: accepted } = await app.send("POST", "/api/v1/proposals", { body });
  expect(status).toBe(202);
  await app.runJobs();
  return (await app.send("GET", `/api/v1/proposals/${accepted.proposalSetId}`)).body;
}

describe("proposals from docs", () => {
  test("reads the docs, quotes their lines, and creates prompts that rest on them", async () => {
    const app = newApp();
    const docsUrl = `${site.url}/`;
    const set = await propose(app, { docsUrl, openapiUrl: `${site.url}/api.json`, primaryTask: "restore a folder" });
    expect(set).toMatchObject({ status: "completed", read: { pages: 3 }, costUsd: 0, failure: null, prompts: {} });
    const titles: string[] = set.proposals.map(({ title }: { title: string }) => title);
    expect(titles).toContain("Restore a folder");
    for (const { source, additionalUrls } of set.proposals) {
      expect(additionalUrls).toEqual([{ url: docsUrl }]);
      expect(source.url.startsWith(site.url)).toBe(true);
    }

    const number = titles.indexOf("Restore a folder") + 1;
    const accept = (body: object) => app.send("POST", `/api/v1/proposals/${set.proposalSetId}/prompts`, { body });
    const other = number === 1 ? 2 : 1;
    const edits = [{ number: other, endGoal: "It works, in my words." }];
    const created = await accept({ only: [number, other], edits });
    expect([created.status, created.body.prompts.length]).toEqual([201, 2]);
    // A second try creates nothing.
    expect((await accept({ only: [number, other], edits })).body).toEqual(created.body);
    expect(app.db.select().from(prompts).all()).toHaveLength(2);
    const [first, second] = created.body.prompts;
    const getPrompt = async (id: string) => (await app.send("GET", `/api/v1/prompts/${id}`)).body;
    const { source } = set.proposals[number - 1];
    const prompt = await getPrompt(first.promptId);
    expect(prompt.basis).toMatchObject({ ...source, repeatsDocs: true, changedAt: null, changedInRunId: null });
    expect((await getPrompt(second.promptId)).basis.repeatsDocs).toBe(false);
    await app.send("PATCH", `/api/v1/prompts/${first.promptId}`, { body: { endGoal: "The folder is back." } });
    expect((await getPrompt(first.promptId)).basis.repeatsDocs).toBe(false);

    // A run that reads the page notices that the text has changed, and the next one that it is back.
    const before = backup;
    backup = page("Backups", `<h2>Recover files</h2><p>Recover files with one command.</p>${sample("acme recover")}`);
    const run = await app.send("POST", `/api/v1/prompts/${first.promptId}/run`, { body: { urlMap: {} } });
    await app.runJobs();
    const changed = await getPrompt(first.promptId);
    expect(changed.basis.changedInRunId).toBe(run.body.runId);
    const changedLines = async () =>
      (await app.send("GET", "/api/v1/inbox")).body.problems.filter(
        ({ kind }: { kind: string }) => kind === "basis_changed",
      );
    expect(await changedLines()).toMatchObject([
      { prompt: { id: first.promptId }, runId: run.body.runId, ...source, assignee: null },
    ]);
    const owner = await signedIn(app);
    expect(String((await owner.get("/")).body)).toContain('data-kind="basis_changed"');
    backup = before;
    await app.send("POST", `/api/v1/prompts/${first.promptId}/run`, { body: { urlMap: {} } });
    await app.runJobs();
    expect((await getPrompt(first.promptId)).basis.changedAt).toBeNull();
    expect(await changedLines()).toEqual([]);

    const actions = app.db
      .select()
      .from(auditEntries)
      .all()
      .map(({ action }) => action);
    expect(actions).toEqual(expect.arrayContaining(["proposal_set.requested", "proposal_set.accepted"]));
  }, 30_000);

  test("reads the tools of an MCP server without calling them, and gives them to the prompts", async () => {
    const mcp = serveMcp([
      { name: "backups_create", description: "Creates a schedule for archives.", annotations: { readOnlyHint: false } },
      { name: "backups_verify", description: "Verify all stored archives. Slow.", annotations: { readOnlyHint: true } },
    ]);
    try {
      const app = newApp(undefined, [new URL(mcp.url).host]);
      const mcpUrl = `${mcp.url}/mcp`;
      const set = await propose(app, { docsUrl: `${site.url}/`, mcpUrl });
      const ofTools = set.proposals.filter(({ why }: { why: string }) => why === "tool");
      expect(ofTools.map(({ title }: { title: string }) => title)).toEqual([
        "Create a schedule for archives",
        "Verify all stored archives",
      ]);
      expect([ofTools[0].source.url, mcp.calls]).toEqual([mcpUrl, []]);
      const number = set.proposals.indexOf(ofTools[0]) + 1;
      const path = `/api/v1/proposals/${set.proposalSetId}/prompts`;
      const [{ promptId }] = (await app.send("POST", path, { body: { only: [number] } })).body.prompts;
      const { body: prompt } = await app.send("GET", `/api/v1/prompts/${promptId}`);
      expect(prompt.workspace.mcpServers).toEqual({ product: { url: mcpUrl } });
      const wrong = await propose(app, { docsUrl: `${site.url}/`, mcpUrl: `${mcp.url}/other` });
      expect(wrong.failure.code).toBe("no_mcp_server");
    } finally {
      mcp.stop();
    }
  }, 30_000);

  test("runs the checks before: those that pass are removed, and those that can't run say why", async () => {
    const app = newApp();
    const openapi = (paths: object) => ({ ...description, servers: [{ url: site.url }], paths });
    projects = openapi(pathsOf("/projects"));
    const api = { docsUrl: `${site.url}/`, product: "Other", openapiUrl: `${site.url}/projects.json`, count: 20 };
    const created = async () => {
      const { proposals } = await propose(app, api);
      return proposals.find(
        ({ declaredChecks, tags, why }: TaskProposal) => why === "operation" && tags[0] === "core" && declaredChecks,
      );
    };
    expect(await created()).toMatchObject({ declaredChecks: [{ url: `${site.url}/projects` }], checksNotRun: null });
    stored = ["evald-task-7f3a"];
    expect(await created()).toMatchObject({ declaredChecks: [], checksNotRun: null });

    projects = { ...openapi(pathsOf("/projects")), security: [{ key: [] }] };
    expect((await created()).checksNotRun).toContain("API_KEY");
    const secret = { value: "a-key-of-the-api", hosts: null };
    await app.send("PUT", "/api/v1/secrets/API_KEY", { body: secret });
    expect((await created()).checksNotRun).toContain("any host");
    expect(keysSeen).toEqual([null, null]);
    await app.send("PUT", "/api/v1/secrets/API_KEY", { body: { ...secret, hosts: [new URL(site.url).host] } });
    expect(await created()).toMatchObject({ declaredChecks: [], checksNotRun: null });
    expect(keysSeen.at(-1)).toBe(`Bearer ${secret.value}`);
  }, 30_000);

  test.each([
    ["robots", closed],
    ["sign_in", signIn],
  ])("docs that can't be read are refused: %s", async (code, { url }) => {
    const set = await propose(newApp(), { docsUrl: `${url}/` });
    expect(set).toMatchObject({ status: "failed", failure: { code }, proposals: [] });
  });

  test("refuses requests that it can't serve, and sets of another organization", async () => {
    const app = newApp();
    const fieldOf = async (body: object) => (await app.send("POST", "/api/v1/proposals", { body })).body.detail;
    expect(await fieldOf({ docsUrl: "http://10.0.0.1/" })).toContain("docsUrl");
    expect(await fieldOf({ docsUrl: `${site.url}/`, count: 21 })).toContain("count");
    const { body } = await app.send("POST", "/api/v1/proposals", { body: { docsUrl: `${site.url}/` } });
    const path = `/api/v1/proposals/${body.proposalSetId}`;
    const headers = { authorization: `Bearer ${app.b.key}` };
    expect((await app.send("POST", `${path}/prompts`, { body: { only: [1] } })).status).toBe(409);
    await app.runJobs();
    expect((await app.send("GET", path, { headers })).status).toBe(404);
    expect((await app.send("POST", `${path}/prompts`, { headers, body: { only: [1] } })).status).toBe(404);
    expect((await app.send("POST", `${path}/prompts`, { body: { only: [20] } })).status).toBe(400);
  });
});

describe("what agents asked for and didn't find", () => {
  test("is proposed with the URL and how often, up to half of the proposals, only for these docs", async () => {
    const app = newApp();
    const { id } = createPrompt(app.service.ctx, app.a.org, { text: `Look. ${site.url}/` });
    const visit = (url: string, guesses: number) => ({
      ...{ page: url, url, reads: 0, errors: 0, misses: guesses, guesses, found: {} },
    });
    const visits = [visit(`${site.url}/guides/rotate-keys.md`, 3), visit("https://other.example.com/sdk", 9)];
    evaluation(app, id, [{ ...niceGrade, exposure: { ...niceGrade.exposure, visits } }]);
    // The jobs of its runs, which have ended.
    app.db.update(jobs).set({ state: "done", completedAt: app.service.ctx.now() }).run();
    const where = `${site.url}/delete-account`;
    await app.send("POST", "/api/v1/field-friction", {
      body: { where, tried: "I looked for it.", happened: "Nothing says how." },
    });
    const set = await propose(app, { docsUrl: `${site.url}/`, count: 4 });
    const demand = set.proposals.filter(({ by }: { by: string }) => by === "demand");
    expect(demand.map(({ title, why, source }: TaskProposal) => [title, why, source.url])).toEqual([
      ["Rotate keys", "guessed_url", `${site.url}/guides/rotate-keys.md`],
      ["Delete account", "field_report", where],
    ]);
    expect(set.proposals.length).toBeLessThanOrEqual(4);
    const without = await propose(app, { docsUrl: `${site.url}/`, includeDemand: false });
    expect(without.proposals.some(({ by }: { by: string }) => by === "demand")).toBe(false);
  });
});

test("a set whose reading was interrupted is read again after a restart", async () => {
  const started = Promise.withResolvers<void>();
  let attempts = 0;
  const explorer = createExplorer({ version: "test" });
  const app = newApp({
    ...explorer,
    run: (task, context) => {
      if (++attempts > 1) return explorer.run(task, context);
      started.resolve();
      return hanging(context.signal);
    },
  });
  const { body } = await app.send("POST", "/api/v1/proposals", { body: { docsUrl: `${site.url}/` } });
  const statusOf = async () => (await app.send("GET", `/api/v1/proposals/${body.proposalSetId}`)).body.status;
  await app.service.runner.start();
  await started.promise;
  expect(await statusOf()).toBe("running");
  await app.service.runner.stop(0);
  expect(await statusOf()).toBe("pending");
  await app.runJobs();
  expect([await statusOf(), attempts]).toEqual(["completed", 2]);
});

test("a goal in the docs' own words doesn't count in trends of docs scores until it is edited", async () => {
  const app = newApp();
  const { ctx } = app.service;
  const { body: requested } = await app.send("POST", "/api/v1/proposals", { body: { docsUrl: `${site.url}/` } });
  completeProposals(app, requested.proposalSetId);
  const path = `/api/v1/proposals/${requested.proposalSetId}/prompts`;
  const [{ promptId }] = (await app.send("POST", path, { body: { only: [1] } })).body.prompts;
  const { id: own } = createPrompt(ctx, app.a.org, { text: `Look. ${site.url}/` });
  const docsOnly = { ...niceGrade, scope: "docs_only", outcome: "not_judged", grade: null } as const;
  evaluation(app, promptId, [{ ...docsOnly, score: 100 }]);
  evaluation(app, own, [{ ...docsOnly, score: 50 }]);
  const means = async (query = "") => {
    const { points } = (await app.send("GET", `/api/v1/trends${query}`)).body;
    return points.map(({ score }: { score: { mean: number } }) => score.mean);
  };
  expect([await means(), await means(`?promptId=${promptId}`)]).toEqual([[50], [100]]);
  await app.send("PATCH", `/api/v1/prompts/${promptId}`, { body: { endGoal: "Files are safe." } });
  evaluation(app, own, [{ ...docsOnly, score: 50 }]);
  expect(await means()).toEqual([75]);
});

test("sets are erased after 30 days, with their jobs", async () => {
  let at = Date.UTC(2026, 10, 1);
  const app = testApp({ now: () => at, env: { EVALD_ALLOW_PRIVATE: `127.0.0.1:${site.port}` } });
  const { body } = await app.send("POST", "/api/v1/proposals", { body: { docsUrl: `${site.url}/` } });
  completeProposals(app, body.proposalSetId);
  const statusAfter = async (days: number) => {
    at = Date.UTC(2026, 10, 1) + days * 24 * 3600_000;
    await app.service.upkeep.runOnce();
    return (await app.send("GET", `/api/v1/proposals/${body.proposalSetId}`)).status;
  };
  expect([await statusAfter(29.9), await statusAfter(30.1)]).toEqual([200, 404]);
  expect(app.db.select().from(jobs).all()).toEqual([]);
});

describe("pages of proposals", () => {
  test("lead from the docs to prompts and their runs", async () => {
    const app = newApp();
    const person = await signedIn(app);
    expect((await person.get("/")).body).toContain('formAction="/prompts/propose"'.toLowerCase());
    const wrong = await person.post("/prompts/propose", { docsUrl: "docs" });
    expect([wrong.status, wrong.body.includes('id="docsUrl-wrong"')]).toEqual([400, true]);
    const skill = "---\ndescription: Use it to rotate the signing keys.\n---\n";
    const empty = await person.post("/prompts/propose", { docsUrl: `${site.url}/`, skill: "# Keys" });
    expect([empty.status, empty.body.includes('id="skill-wrong"')]).toEqual([400, true]);
    const { location } = await person.post("/prompts/propose", { docsUrl: `${site.url}/`, primaryTask: "", skill });
    const path = location ?? "";
    expect((await person.get(path)).body).toContain('http-equiv="refresh"');
    await app.runJobs();
    const { body } = await person.get(path);
    const choices = body.match(/name="only"/g)?.length ?? 0;
    expect([body.includes('http-equiv="refresh"'), choices >= 2]).toEqual([false, true]);
    expect(body).toContain("Rotate the signing keys");

    expect((await person.post(path, { do: "run" })).status).toBe(400);
    const edited = { only: "2", "title.2": "My title", "endGoal.2": "My goal.", do: "run" };
    expect((await person.post(path, edited)).location).toBe("/runs");
    await person.post(path, edited);
    const [prompt, ...others] = app.db.select().from(prompts).all();
    expect([prompt?.title, prompt?.endGoal, others.length]).toEqual(["My title", "My goal.", 0]);
    expect(app.db.select().from(runs).all()).toHaveLength(1);
    expect((await person.get(path)).body.match(/name="only"/g)).toHaveLength(choices - 1);
    expect((await person.get(`/prompts/${prompt?.id}`)).body).toContain('data-changed="false"');

    const viewer = await signedIn(app, { email: "viewer@acme.example", role: "viewer" });
    expect((await viewer.post(path, { only: "1" })).status).toBe(403);
  });
});

test("a skill without a description is refused, and the error names the field of its text", async () => {
  const files = [
    { name: "guide.md", text: "# Guide" },
    { name: "SKILL.md", text: "# Keys" },
  ];
  const body = { docsUrl: "https://docs.test/", files };
  const refused = await newApp().send("POST", "/api/v1/proposals", { body });
  expect([refused.status, refused.body.detail]).toEqual([400, expect.stringMatching(/^Invalid files\.1\.text: /)]);
});

test("tasks come from the description of a skill, and an experiment says which prompts did", async () => {
  const description =
    "Stores files. Use when the user wants to upload a file to a bucket, delete old buckets, or restore a folder. Do not use it to copy local files.";
  const text = `---\nname: uploads\ndescription: ${description}\n---\n\nCall the upload API.\n`;
  const app = newApp();
  const set = await propose(app, { docsUrl: `${site.url}/`, files: [{ name: "SKILL.md", text }], count: 20 });
  const ofSkill = (set.proposals as TaskProposal[]).filter(({ why }) => why === "skill");
  expect(ofSkill.map(({ title, source }) => [title, source.url, source.line])).toEqual([
    ["Upload a file to a bucket", "SKILL.md", 3],
    ["Delete old buckets", "SKILL.md", 3],
    ["Restore a folder", "SKILL.md", 3],
  ]);
  const only = [1 + set.proposals.indexOf(ofSkill[0])];
  const path = `/api/v1/proposals/${set.proposalSetId}/prompts`;
  const { body: created } = await app.send("POST", path, { body: { only } });
  const should = [created.prompts[0].promptId];
  const other = await app.send("POST", "/api/v1/prompts", { body: { text: `Read ${site.url}/`, tags: ["other"] } });
  const edits = { hidden: [`${site.url}/backups`], replacements: [] };
  const body = { arms: [{ name: "base" }, { name: "hidden", edits }], triggering: { should, shouldNot: ["other"] } };
  const experiment = await app.send("POST", "/api/v1/experiments", { body });
  expect(experiment.body.prompts).toMatchObject([
    { id: should[0], shouldTrigger: true, fromSkill: true },
    { id: other.body.id, shouldTrigger: false, fromSkill: false },
  ]);
});
