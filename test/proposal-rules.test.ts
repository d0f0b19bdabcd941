import { expect, test } from "bun:test";
import { readPage } from "../src/agents/page.ts";
import type { ProposalSource } from "../src/proposals/proposal.ts";
import { proposeTasks } from "../src/proposals/propose.ts";

const root = "https://docs.acme.example/";
const page = (path: string, markdown: string) => readPage(`${root}${path}`, "text/markdown", markdown);
const sample = "\n```python\nimport acme\n```\n";

const sourceOf = (fields: Partial<ProposalSource>): ProposalSource => ({
  product: "acme",
  docsUrl: root,
  pages: [],
  apiDescriptions: [],
  readme: null,
  skill: null,
  helpTexts: [],
  mcpServers: [],
  primaryTask: null,
  count: 20,
  ...fields,
});
const titlesOf = (fields: Partial<ProposalSource>) =>
  proposeTasks(sourceOf(fields)).proposals.map(({ title }) => title);
const droppedOf = (fields: Partial<ProposalSource>) =>
  Object.fromEntries(proposeTasks(sourceOf(fields)).dropped.map(({ reason, count }) => [reason, count]));

test("actions that a guide shows become tasks, with the root as start and a quote at its line", () => {
  const guide = page(
    "guide/backups.md",
    `# Backups\n\n## Backing up a folder to S3${"\n"}${sample}\n## Retention\n${sample}`,
  );
  const { proposals } = proposeTasks(sourceOf({ pages: [guide] }));
  expect(proposals).toMatchObject([
    {
      title: "Back up a folder to S3",
      additionalUrls: [{ url: root }],
      source: { url: guide.url, line: 3, quote: "Backing up a folder to S3" },
      by: "rules",
      why: "heading",
      docsOwnWords: true,
      declaredChecks: [],
    },
  ]);
  expect(proposals[0]!.endGoal).toContain("back up a folder to S3");
});

test("tasks that need their page come last and only where there are few", () => {
  const section = (heading: string, text: string, ...languages: string[]) =>
    `## ${heading}\n\n${text}\n\n${languages.map((language) => `\`\`\`${language}\nacme\n\`\`\`\n`).join("\n")}\n`;
  const shell = (heading: string) => section(heading, "", "sh");
  const fields = `# 3. Relational queries | Acme\n\n${section("Print a report", "Of a relational query.", "json")}`;
  const pages = [
    page("guide/fields.md", `${fields}${section("Hash a password", "Never store it.", "go", "sh")}`),
    page("guide/plugins.md", `# Plugins\n\n${section("Create a plugin", "", "ts", "yaml")}`),
    page("guide/swarm.md", `## Swarm\n\n${shell("Test the swarm")}${shell("Apply the manifest")}`),
    page("guide/custom-tokens.md", `## First\n\n${shell("Encrypt an archive")}`),
  ];
  const few = proposeTasks(sourceOf({ pages }));
  expect(few.proposals.map(({ title }) => title)).toEqual(
    expect.arrayContaining(["Create a plugin", "Encrypt an archive", "Hash a password", "Print a report"]),
  );
  expect(few.dropped).toContainEqual({ reason: "needs_page", count: 2 });
  const clear = [
    "Encrypt a large archive",
    "Mount a remote snapshot",
    "Rotate the signing keys",
    "Compress the daily exports",
    "Back up a folder to S3",
  ];
  const { proposals } = proposeTasks(
    sourceOf({ pages: [...pages, ...clear.map((each, i) => page(`guide/${i}.md`, `# ${each}\n\n${shell(each)}`))] }),
  );
  expect(proposals.map(({ title }) => title).sort()).toEqual([
    "Back up a folder to S3",
    "Compress the daily exports",
    "Encrypt a large archive",
    "Mount a remote snapshot",
    "Rotate the signing keys",
  ]);
});

test("a problem is a task to find its cause, unless its title has a placeholder", () => {
  const markdown = `# FAQ\n\n## Uploads fail with status 413\n${sample}\n## Acme doesn't work with <YOUR_TOOL>\n${sample}`;
  const { proposals } = proposeTasks(sourceOf({ pages: [page("faq.md", markdown)] }));
  expect(proposals.map(({ title, why }) => [title, why])).toEqual([
    ["Find the cause of this problem and a fix: “Uploads fail with status 413”", "symptom"],
  ]);
});

test("nouns, words that need their page, and tasks without a sample are no tasks", () => {
  const markdown = ["Log rotation", "Caching strategy", "Configure this further", "Merging of configuration"]
    .map((heading) => `## ${heading}\n${sample}`)
    .join("\n");
  expect(titlesOf({ pages: [page("guide/a.md", `# A\n\n${markdown}\n## Encrypt a backup\n\nText only.\n`)] })).toEqual(
    [],
  );
});

test("pages about the project and steps of a tutorial are left out, and counted", () => {
  const steps = ["Create a repository", "Add a remote", "Push the branch"].map((h) => `## ${h}\n${sample}`).join("\n");
  const pages = [
    page("contributing.md", `# Contributing\n\n## Build a package\n${sample}`),
    page("tutorial.md", `# Tutorial\n\n${steps}`),
  ];
  expect(titlesOf({ pages })).toEqual([]);
  expect(droppedOf({ pages })).toMatchObject({ page_kind: 1, step: 3 });
});

test("pages in the folder of a tutorial are steps, unless each is a tutorial of its own", () => {
  const pagesIn = (folder: string) =>
    ["Encrypt an archive", "Rotate signing keys", "Mount a remote snapshot"].map((heading, i) =>
      page(`${folder}/${i}.md`, `# Part ${i}\n\n## ${heading}\n${sample}`),
    );
  expect(titlesOf({ pages: pagesIn("tutorial") })).toEqual([]);
  expect(titlesOf({ pages: pagesIn("tutorials") })).toHaveLength(3);
});

test("orders without an object, of a given state, and advice are no tasks", () => {
  const guide = ["Verify in CI", "Merge with a child router", "Migrate an existing project", "Connect to a replica set"]
    .map((heading) => `## ${heading}\n${sample}`)
    .join("\n");
  const advice = page("best-practices.md", `# Best practices\n\n## Compress a large archive\n${sample}`);
  expect(titlesOf({ pages: [page("guide/a.md", `# A\n\n${guide}`), advice] })).toEqual(["Connect to a replica set"]);
});

test("the product is installed and used as its docs do first, and named where it belongs", () => {
  const install = page("install.md", "# Install\n\n```sh\npip install acme\n```\n");
  const start = page("start.md", `# Quickstart\n\n## Make a connection with MongoClient\n${sample}`);
  const setUp = page("guide/shell.md", `# Shell\n\n## Set up bash completion\n${sample}`);
  const textsOf = (...pages: ReturnType<typeof page>[]) =>
    proposeTasks(sourceOf({ pages })).proposals.map(({ text }) => text);
  expect(titlesOf({ pages: [install] })).toEqual(["Install acme and show with a minimal example that it works"]);
  expect(titlesOf({ pages: [install, start] })[0]).toBe("Install acme and make a connection with MongoClient");
  expect(textsOf(setUp)[0]).toStartWith("Set up bash completion for acme.");
});

test("only the package of the product itself is installed", () => {
  const other = page("a.md", "# Acme\n\n```sh\npip install acme-debug\n```\n");
  const own = page("b.md", "# Acme\n\n```sh\npip install acme\n```\n");
  expect(titlesOf({ pages: [other] })).toEqual([]);
  const [proposal] = proposeTasks(sourceOf({ pages: [other, own] })).proposals;
  expect(proposal).toMatchObject({ source: { url: own.url, line: 4 }, needs: ["workspace"] });
  expect(proposal!.declaredChecks).toEqual([{ command: "python3 -m pip show acme", contains: "acme" }]);
});

test("what most people do first comes first", () => {
  const guide = (name: string, heading: string) => page(`guide/${name}.md`, `# ${name}\n\n## ${heading}\n${sample}`);
  const pages = [
    guide("one", "Encrypt an archive"),
    guide("two", "Rotate the keys daily"),
    guide("three", "Mount a snapshot"),
  ];
  const { proposals } = proposeTasks(sourceOf({ pages, primaryTask: "Mount snapshots" }));
  expect(proposals[0]).toMatchObject({ title: "Mount a snapshot", why: "primary" });
});

const json = { content: { "application/json": { schema: {} } } };
const description = {
  openapi: "3.1.0",
  servers: [{ url: "https://api.acme.example/v1" }],
  security: [{ key: [] }],
  components: { securitySchemes: { key: { type: "http", scheme: "bearer" } } },
  paths: {
    "/projects": {
      get: { summary: "List projects", responses: { 200: json } },
      post: {
        summary: "Create a project",
        requestBody: { content: { "application/json": { schema: { properties: { name: { type: "string" } } } } } },
        responses: { 201: json, 409: json },
      },
    },
    "/projects/{id}": {
      get: { summary: "Get a project", responses: { 200: json } },
      delete: { summary: "Delete a project", responses: { 204: {} } },
    },
    "/tokens": { post: { summary: "Create a token", responses: { 201: json } } },
    "/tokens/{id}": { get: { summary: "Get a token", responses: { 200: json } } },
    "/points": { post: { summary: "Search points", responses: { 200: json } } },
    "/points/{id}": { get: { summary: "Get a point", responses: { 200: json } } },
    "/forms": { post: { summary: "Send a form", responses: { 302: {}, 409: {} } } },
  },
};

test("an API's operations are created, read back with a key, deleted again, and fail as documented", () => {
  const apiDescriptions = [{ url: `${root}openapi.json`, document: description }];
  const { proposals, dropped } = proposeTasks(sourceOf({ apiDescriptions }));
  expect(proposals.map(({ tags }) => tags[0]).sort()).toEqual(["cleanup", "core", "core", "errors"]);
  const created = proposals.find(({ tags }) => tags[0] === "core")!;
  expect(created.needs).toEqual(["account", "secret"]);
  expect(created.declaredChecks).toMatchObject([
    { url: "https://api.acme.example/v1/projects", headers: { Authorization: "Bearer {{secret.API_KEY}}" } },
  ]);
  expect(dropped).toContainEqual({ reason: "not_json", count: 1 });
});

test("commands and tools become tasks that don't name them", () => {
  const text = `Commands:
  prune     Remove unused snapshots from a repository, a bucket, or a folder
  link      Link the local folder to a Vercel organization and enable
            a remote cache.
  version   Print the version
`;
  const tools = [{ name: "send_report", description: "Sends a weekly report by e-mail.", isReadOnly: false }];
  const mcpServers = [{ url: "https://mcp.acme.example/", tools }];
  const helpTexts = [{ url: "acme --help", command: "acme", text }];
  const { proposals } = proposeTasks(sourceOf({ helpTexts, mcpServers }));
  expect(proposals.map(({ title, why, needs }) => ({ title, why, needs }))).toEqual([
    { title: "Remove unused snapshots from a repository", why: "command", needs: [] },
    { title: "Link the local folder to a Vercel organization and enable a remote cache", why: "command", needs: [] },
    { title: "Send a weekly report by e-mail", why: "tool", needs: ["approval"] },
  ]);
  expect(proposals[0]!.source.line).toBe(2);
});

test("a section that names a key or token, also as an environment variable, needs a secret", () => {
  const section = (text: string) =>
    page("guide/upload.md", `# Uploads\n\n## Upload a file to a bucket\n\n${text}\n${sample}`);
  const needsOf = (text: string) => proposeTasks(sourceOf({ pages: [section(text)] })).proposals[0]?.needs;
  expect(needsOf("Set ACME_TOKEN first.")).toEqual(["secret"]);
  expect(needsOf("Set ACME_API_KEY first.")).toEqual(["secret"]);
  expect(needsOf("Pass an access token.")).toEqual(["secret"]);
  expect(needsOf("Pass a name.")).toEqual([]);
});
