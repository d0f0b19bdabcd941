import { afterAll, expect, test } from "bun:test";
import { join } from "node:path";
import { createExplorer } from "../src/agents/explorer/explorer.ts";
import { importFile } from "../src/exchange/import.ts";
import { digestOf, type Edits, listFetchedUrls, meetsUrl } from "../src/net/edits.ts";
import type { Report } from "../src/reports/schema.ts";
import { instantAgent, testApp } from "./support/app.ts";
import { emptyFolder } from "./support/executable.ts";
import { signedIn } from "./support/people.ts";
import { type SiteRoute, serveSite } from "./support/site.ts";

const long = "Acme stores notes and files, and every client can read them over HTTP. ".repeat(6);
const markdown = (body: string): SiteRoute => ({ type: "text/markdown; charset=utf-8", body });
const secretWord = "zanzibar";
const install = `# Install the client\n\n${long}\n\nInstall it with \`npm install acme-client\`.\n\n\`\`\`sh\nnpm install acme-client\n\`\`\`\n`;
const secret = `# Quotas\n\n${long}\n\nThe quota of a client is ${secretWord}.\n`;
const site = serveSite({
  "/docs/": markdown(`# Acme\n\n${long}\n\nRead [Install the client](install), [Moved](moved) and [Quotas](quotas).\n`),
  "/docs/install": markdown(install),
  "/docs/quotas": markdown(secret),
  "/docs/moved": () => new Response(null, { status: 302, headers: { location: "/docs/quotas" } }),
  "/llms.txt": () =>
    new Response(
      `# Acme\n\n> Notes and files.\n\n- [Install the client](${site.url}/docs/install)\n- [Quotas](/docs/quotas): how much\n`,
    ),
  "/sitemap.xml": () =>
    new Response(
      `<?xml version="1.0"?><urlset>${["install", "quotas"].map((page) => `<url><loc>${site.url}/docs/${page}</loc></url>`).join("")}</urlset>`,
      { headers: { "content-type": "application/xml" } },
    ),
});
const app = testApp({
  agent: createExplorer({ version: "test" }),
  env: { EVALD_ALLOW_PRIVATE: `127.0.0.1:${site.port}` },
});
afterAll(() => site.stop());

const edits: Edits = {
  hidden: [`${site.url}/docs/quotas`],
  replacements: [
    { url: `${site.url}/docs/install`, find: "acme-client", replacement: "acme-sdk" },
    { url: `${site.url}/docs/install`, find: "never written", replacement: "x" },
  ],
};
const { body: prompt } = await app.send("POST", "/api/v1/prompts", {
  body: { title: "Install", text: `Install the client and find its quota. ${site.url}/docs/` },
});
const requestRun = (body: object) =>
  app.send("POST", `/api/v1/prompts/${prompt.id}/run`, { body: { urlMap: {}, ...body } });

/** Runs to the end, and returns the report and the events. */
async function runWith(body: object) {
  const { body: accepted, status } = await requestRun(body);
  expect(status).toBe(200);
  await app.runJobs();
  const { body: run } = await app.send("GET", `/api/v1/runs/${accepted.runId}`);
  expect(run.status).toBe("completed");
  const report: Report = (await app.send("GET", `/api/v1/reports/${run.report.slug}`)).body;
  const { events } = (await app.send("GET", `/api/v1/reports/${run.report.slug}/trace?limit=500`)).body;
  return { run, report, events };
}

test("the explorer reads edited pages, and nothing of hidden ones, while the site stays the same", async () => {
  const from = site.requests.length;
  const { report, events } = await runWith({ edits });
  const http = events.filter(({ type }: { type: string }) => type === "http");
  const editsAt = (path: string) =>
    http
      .filter(({ url }: { url: string }) => url === site.url + path)
      .map(({ status, edit }: { status: number; edit: object }) => ({ status, ...edit }));
  const edited = install.replaceAll("acme-client", "acme-sdk");
  expect(editsAt("/docs/install")[0]).toEqual({
    status: 200,
    kind: "replaced",
    originalDigest: digestOf(Buffer.from(install)),
    editedDigest: digestOf(Buffer.from(edited)),
    replacements: [0],
  });
  expect(editsAt("/docs/quotas")[0]).toEqual({
    status: 404,
    kind: "hidden",
    originalDigest: digestOf(Buffer.from(secret)),
    editedDigest: digestOf(Buffer.from("Not found\n")),
  });
  expect(editsAt("/docs/")[0]).toEqual({ status: 200 });
  // The site was asked for the pages, and has sent them as they are.
  expect(site.requests.slice(from)).toEqual(expect.arrayContaining(["GET /docs/install", "GET /docs/quotas"]));
  const told = JSON.stringify(events);
  expect(told).toContain("acme-sdk");
  expect(told).not.toContain("acme-client");
  expect(told).not.toContain(secretWord);
  const listed = events.flatMap(({ name, detail }: { name: string; detail: { urls: string[] } }) =>
    name === "pages_listed" ? detail.urls : [],
  );
  expect(listed).toContain(`${site.url}/docs/install`);
  expect(listed).not.toContain(`${site.url}/docs/quotas`);
  for (const path of ["/llms.txt", "/sitemap.xml"])
    expect(editsAt(path)[0]).toMatchObject({ status: 200, kind: "replaced" });
  expect(meetsUrl(events, `${site.url}/docs/qu*`)).toBe(true);
  expect(meetsUrl(events, `${site.url}/docs/none`)).toBe(false);
  // A redirect leads to nothing either.
  expect(editsAt("/docs/moved")[0]).toMatchObject({ status: 404, kind: "hidden" });
  const moved = http.filter(({ url }: { url: string }) => url.endsWith("/docs/moved"));
  expect(meetsUrl(moved, edits.hidden[0] as string)).toBe(true);
  const fetched = ["moved", "quotas"].map((page) => ({ url: `${site.url}/docs/${page}`, status: 404 }));
  expect(listFetchedUrls(moved.slice(0, 1))).toEqual(fetched);
  // A text that occurs nowhere is a fact of the session and of the report.
  const { hidden, replacements } = report.context?.edits ?? { hidden: [], replacements: [] };
  expect(hidden[0]).toBeGreaterThan(0);
  expect(replacements[0]?.applied).toBeGreaterThan(0);
  expect(replacements[1]).toEqual({ requests: replacements[0]?.requests ?? 0, applied: 0 });
  expect(report.run.edits).toEqual(edits);
});

test("a run with edits counts in no figure of its prompt", async () => {
  const figures = async () => {
    const { body: trends } = await app.send("GET", `/api/v1/trends?promptId=${prompt.id}`);
    const { body: friction } = await app.send("GET", `/api/v1/friction?promptId=${prompt.id}`);
    const { body: map } = await app.send("GET", `/api/v1/prompts/${prompt.id}/docs-map`);
    const { body: inbox } = await app.send("GET", "/api/v1/inbox");
    const { body: change } = await app.send("GET", `/api/v1/prompts/${prompt.id}/score-change`);
    const { body: badge } = await app.send("GET", `/badges/${token}.json`, { headers: { authorization: "" } });
    return { trends, friction, map, inbox, change, badge };
  };
  const { body: shared } = await app.send("PATCH", `/api/v1/prompts/${prompt.id}`, { body: { hasPublicBadge: true } });
  const token = /badges\/([\w-]+)\./.exec(shared.badgeUrl)?.[1];
  const live = await runWith({});
  expect(live.report.context).toBeNull();
  expect(live.report.run.edits).toBeUndefined();
  const before = await figures();
  expect(before.badge.message).not.toContain("no report");
  const without = { hidden: [`${site.url}/docs/*`], replacements: [] };
  const edited = await runWith({ edits: without });
  expect(edited.report.score).not.toBe(live.report.score);
  expect(await figures()).toEqual(before);
  // The next live run is compared with live ones only.
  const again = await runWith({});
  expect(again.report.baseline?.score?.change ?? 0).toBe(0);
  const { status, body } = await app.send("PATCH", `/api/v1/prompts/${prompt.id}`, {
    body: { baselineRequestId: edited.report.run.evalRequestId },
  });
  expect([status, body.detail]).toEqual([400, expect.stringContaining("edits")]);
  // A retry has the edits of its run.
  const { body: rerun } = await app.send("POST", `/api/v1/runs/${edited.run.runId}/rerun`);
  await app.runJobs();
  const { body: repeated } = await app.send("GET", `/api/v1/runs/${rerun.runId}`);
  const { body: report } = await app.send("GET", `/api/v1/reports/${repeated.report.slug}`);
  expect([report.run.edits, report.score]).toEqual([without, edited.report.score]);
  // No edits are the same as none.
  const none = await runWith({ edits: { hidden: [], replacements: [] } });
  expect(none.report.run.edits).toBeUndefined();
}, 30_000);

test("a report and its run say that the docs were edited", async () => {
  const { report } = await runWith({ edits });
  const { get } = await signedIn(app);
  const paths = [
    `/reports/${report.slug}`,
    `/reports/${report.slug}.md`,
    `/runs/${report.run.runId}`,
    "/reports",
    "/runs",
  ];
  for (const path of paths)
    expect((await get(path)).body.toLowerCase()).toContain(
      path.startsWith("/reports/") ? "edited in flight" : "edited docs",
    );
});

test.each<[string, object, string]>([
  ["a relative URL", { hidden: ["/docs/a"] }, "edits.hidden.0"],
  [
    "a section of a page that does not answer",
    { hidden: ["https://docs.test/a", "https://docs.test/a#b"] },
    "edits.hidden.1",
  ],
  ["a URL with a password", { hidden: ["https://me:secret@docs.test/"] }, "edits.hidden.0"],
  ["another scheme", { hidden: ["ftp://docs.test/*"] }, "edits.hidden.0"],
  ["too many URLs", { hidden: Array.from({ length: 201 }, (_, i) => `https://docs.test/${i}`) }, "edits.hidden"],
  ["an empty text", { replacements: [{ find: "" }] }, "edits.replacements.0.find"],
  ["a replacement by the same", { replacements: [{ replacement: "a" }] }, "edits.replacements.0.replacement"],
  ["the same text twice", { replacements: [{}, { replacement: "c" }] }, "edits.replacements.1.find"],
  ["a hidden page", { hidden: ["https://docs.test/*"], replacements: [{}] }, "edits.replacements.0.url"],
  ["too much", { replacements: [0, 1, 2].map((i) => ({ find: `${i}`, replacement: "x".repeat(99_999) })) }, "edits"],
])(
  "edits with %s are refused",
  async (_, { hidden = [], replacements = [] }: Partial<Record<string, object[]>>, field) => {
    const whole = replacements.map((each) => ({ url: "https://docs.test/a", find: "a", replacement: "b", ...each }));
    const { status, body } = await requestRun({ edits: { hidden, replacements: whole } });
    expect([status, body.error, body.detail]).toEqual([
      400,
      "bad_request",
      expect.stringContaining(`Invalid ${field}: `),
    ]);
  },
);

test("an agent that searches the live web at the provider of its model gets no edits", async () => {
  const searcher = {
    id: "searcher",
    version: "test",
    model: null,
    kind: "rules",
    options: { webSearch: null },
  } as const;
  const { send } = testApp({ agents: { searcher: { ...instantAgent, describe: () => searcher } } });
  const { body: searching } = await send("POST", "/api/v1/prompts", {
    body: { text: "See https://docs.test/", agents: [{ agent: "searcher", options: { webSearch: true } }] },
  });
  const hiding = { hidden: ["https://docs.test/a"], replacements: [] };
  const { status, body } = await send("POST", `/api/v1/prompts/${searching.id}/run`, {
    body: { urlMap: {}, edits: hiding },
  });
  expect([status, body.detail]).toEqual([400, expect.stringContaining("webSearch")]);
});

test("an export keeps the edits of a run, and its copy counts nowhere either", async () => {
  const { report } = await runWith({ edits });
  const file = join(emptyFolder(), "export.jsonl");
  await Bun.write(file, (await app.send("GET", "/api/v1/export")).body);
  const copy = testApp();
  importFile(copy.service.ctx, copy.a.org, file);
  const { body: copied } = await copy.send("GET", `/api/v1/reports/${report.slug}`);
  expect([copied.run.edits, copied.context]).toEqual([report.run.edits, report.context]);
  const pointsOf = async ({ send }: Pick<typeof app, "send">) =>
    (await send("GET", `/api/v1/trends?promptId=${prompt.id}`)).body;
  expect(await pointsOf(copy)).toEqual(await pointsOf(app));
}, 30_000);
