import { afterAll, expect, test } from "bun:test";
import type { AgentEvent } from "../src/agents/agent.ts";
import { createExplorer } from "../src/agents/explorer/explorer.ts";
import { diffOf } from "../src/reports/fix-brief.ts";
import type { Report } from "../src/reports/schema.ts";
import { testApp } from "./support/app.ts";
import { judgedApp } from "./support/judged.ts";
import { signedIn } from "./support/people.ts";

const long = "Acme stores notes and files, and every client can read them over HTTP. ".repeat(6);
const pages: Record<string, string> = {
  "/docs/": `# Acme\n\n${long}\n\nFirst [install the client](instal), then read [the basics](start) and [the API](/docs/api).\n`,
  "/docs/start": `# Start\n\n${long}\n\nSee [Rate limits](/docs/limits#day), [Install](install) and [Home](/docs/).\n`,
  "/docs/api": `# API\n\n${long}\n\nSee [this page](/docs/old/webhooks.html), [Rate limits](/docs/quotas) and [events](webhooks).\n`,
  "/docs/install": `# Install\n\n${long}\n\nKeep the [price list](/docs/prices) at hand.\n`,
  "/docs/quotas": `# Quotas\n\n${long}\n\nBack to [Home](/docs/).\n`,
  "/docs/webhooks": `# Webhooks\n\n${long}\n\nDeliveries: [Events and deliveries](http://HOST/docs/deliveries).\n`,
  "/docs/reference": `# Events and deliveries | Acme\n\n${long}\n`,
  "/llms.txt":
    "# Acme\n\n> Notes and files.\n\n- [The reference](/docs/reference): everything\n- [All](/docs/refrence): as a list\n",
};
const site: Bun.Server<undefined> = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  fetch(request) {
    const body = pages[new URL(request.url).pathname];
    if (body === undefined) return new Response("Not found", { status: 404 });
    return new Response(body.replace("HOST", site.url.host), { headers: { "content-type": "text/markdown" } });
  },
});
const app = testApp({ agent: createExplorer({ version: "test" }), env: { EVALD_ALLOW_PRIVATE: site.url.host } });
afterAll(() => site.stop(true));

const editsOf = ({ recommendations }: Report) =>
  recommendations.flatMap(({ evidence }) => {
    const diff = diffOf(evidence);
    return diff ? [[URL.parse(evidence?.url ?? "")?.pathname, evidence?.line, diff.after]] : [];
  });

test("the explorer shows where a dead link should lead, in the line of the page", async () => {
  const { body: prompt } = await app.send("POST", "/api/v1/prompts", {
    body: { text: `Install the client. ${site.url}docs/` },
  });
  await app.send("POST", `/api/v1/prompts/${prompt.id}/run`, { body: { urlMap: {} } });
  await app.runJobs();
  const [{ slug }] = (await app.send("GET", "/api/v1/reports")).body;
  const report: Report = (await app.send("GET", `/api/v1/reports/${slug}`)).body;
  const at = site.url.href.slice(0, -1);
  expect(editsOf(report).sort()).toEqual([
    // This page has nearly the same name in the same folder.
    ["/docs/", 5, "First [install the client](install), then read [the basics](start) and [the API](/docs/api)."],
    // This page has the same name in another folder.
    ["/docs/api", 5, "See [this page](/docs/webhooks), [Rate limits](/docs/quotas) and [events](webhooks)."],
    // This is another link with the same text, without the fragment.
    ["/docs/start", 5, "See [Rate limits](/docs/quotas#day), [Install](install) and [Home](/docs/)."],
    // This page has the title of the link.
    ["/docs/webhooks", 5, `Deliveries: [Events and deliveries](${at}/docs/reference).`],
    ["/llms.txt", 6, "- [All](/docs/reference): as a list"],
  ]);
  // No page that was read resembles the price list.
  const prices = report.frictionPoints.find(({ title }) => title.includes("/docs/prices"));
  const fix = report.recommendations.find(({ frictionIds }) => frictionIds.includes(prices?.id ?? ""));
  expect(fix).toMatchObject({ evidence: { expected: null } });
  const member = await signedIn(app, { role: "member" });
  const { body } = await member.get(`/reports/${slug}`);
  expect(body).toContain("<ins>+ See [Rate limits](/docs/quotas#day)");
});

test("the report of a model agent also shows where a dead link should lead", async () => {
  const docs = "https://docs.acme.example";
  const read = (id: string, path: string, title: string, text: string): AgentEvent[] => [
    { type: "tool_call", id, tool: "fetch_page", input: { url: docs + path } },
    asked(id, docs + path, 200),
    {
      type: "milestone",
      name: "page_read",
      detail: { url: docs + path, title, chars: 900, form: "markdown" as const },
    },
    { type: "tool_result", id, tool: "fetch_page", ok: true, output: { url: docs + path, title, text } },
  ];
  const asked = (id: string, url: string, status: number): AgentEvent => ({
    type: "http",
    ...{
      id,
      method: "GET",
      url,
      mappedUrl: null,
      status,
      ms: 90,
      bytes: 300,
      contentType: "text/markdown",
      error: null,
    },
    ...{ provenance: "link", foundOn: `${docs}/`, purpose: "task" },
  });
  const detail = {
    agent: "llm",
    version: "test",
    kind: "model" as const,
    model: "m",
    goal: "Install it.",
    starts: [`${docs}/`],
  };
  const session: AgentEvent[] = [
    { type: "milestone", name: "started", detail },
    ...read("1", "/", "Acme", `# Acme\n\n1. [Install](/instal)\n2. [Use](/use)`),
    { type: "tool_call", id: "2", tool: "fetch_page", input: { url: `${docs}/instal` } },
    asked("2", `${docs}/instal`, 404),
    { type: "tool_result", id: "2", tool: "fetch_page", ok: false, output: { url: `${docs}/instal`, status: 404 } },
    ...read("3", "/install", "Install", "# Install\n\nnpm i acme"),
    { type: "end", outcome: "not_judged", reason: "Done." },
  ];
  const judged = judgedApp({ turns: [], sessions: [session] });
  const { report } = await judged.run({ text: `Install it. ${docs}/` });
  expect(editsOf(report as Report)).toEqual([["/", 3, "1. [Install](/install)"]]);
  await judged.stop();
});
