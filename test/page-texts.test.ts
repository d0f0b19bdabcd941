import { afterEach, expect, test } from "bun:test";
import { createExplorer } from "../src/agents/explorer/explorer.ts";
import { testApp } from "./support/app.ts";
import { type Site, serveSite } from "./support/site.ts";

const sites: Site[] = [];
afterEach(() => {
  for (const site of sites.splice(0)) site.stop();
});

const html = (title: string, lines: string[]) =>
  `<!doctype html><html lang="en"><title>${title}</title><main><h1>${title}</h1>${lines.map((line) => `<p>${line}</p>`).join("")}</main></html>`;

const secret = `sk-proj-${"a1B2c3D4".repeat(6)}`;

/** A service whose explorer reads two pages, of which the test changes one. */
async function openDocs() {
  const filler = Array.from({ length: 40 }, (_, i) => `Line ${i} about the client and its options.`);
  const page = { install: "Run npm install acme." };
  const site = serveSite({
    "/": { body: html("Acme", ['<a href="/install">Install the client</a>', ...filler]) },
    "/install": () =>
      new Response(html("Install the client", [...filler, page.install, `The key ${secret}`]), {
        headers: { "content-type": "text/html" },
      }),
  });
  sites.push(site);
  let at = Date.UTC(2026, 10, 2, 9);
  const app = testApp({
    now: () => at,
    agent: createExplorer({ version: "test" }),
    env: { EVALD_ALLOW_PRIVATE: `127.0.0.1:${site.port}` },
  });
  const post = async (path: string, body: unknown) => (await app.send("POST", path, { body })).body;
  const prompt = await post("/api/v1/prompts", { text: `Install the client. See ${site.url}/` });
  const evaluate = async (): Promise<string> => {
    const { runId } = await post(`/api/v1/prompts/${prompt.id}/run`, { urlMap: {} });
    await app.runJobs();
    return (await app.send("GET", `/api/v1/runs/${runId}`)).body.evalRequestId;
  };
  const count = (table: string) =>
    app.db.$client.query<{ n: number }, []>(`select count(*) n from ${table}`).get()?.n ?? 0;
  const pass = (days: number) => {
    at += days * 24 * 3600_000;
  };
  return { ...app, pass, site, page, prompt, evaluate, count };
}

test("a change has the lines that the explorer read differently, and each version of a page is stored once", async () => {
  const docs = await openDocs();
  const first = await docs.evaluate();
  const versions = docs.count("page_texts");
  expect(versions).toBe(2);
  await docs.evaluate();
  expect([docs.count("page_texts"), docs.count("session_pages")]).toEqual([versions, 2 * versions]);
  docs.page.install = "Run npm install @acme/client.";
  const second = await docs.evaluate();
  expect(docs.count("page_texts")).toBe(versions + 1);
  const windows = `base=${first}&head=${second}`;
  const { status, body } = await docs.send("GET", `/api/v1/prompts/${docs.prompt.id}/score-change?${windows}`);
  expect([status, body.detail]).toEqual([200, undefined]);
  const changes = body.pages.map(({ url, lines }: { url: string; lines: { change: string; text: string }[] }) => ({
    url,
    lines: lines.filter(({ change }) => change !== "none"),
  }));
  expect(changes).toEqual([
    {
      url: `${docs.site.url}/install`,
      lines: [
        { change: "removed", text: "Run npm install acme." },
        { change: "added", text: "Run npm install @acme/client." },
      ],
    },
  ]);
  expect(JSON.stringify(body)).not.toContain(secret);
  expect((await docs.send("GET", `/prompts/${docs.prompt.id}/why?${windows}`)).body).toContain("@acme/client");
});

test("a page that was rewritten has no lines, because comparing thousands takes seconds", async () => {
  const docs = await openDocs();
  const first = await docs.evaluate();
  docs.page.install = Array.from({ length: 100 }, (_, i) => `Other line ${i}.`).join("</p><p>");
  const second = await docs.evaluate();
  docs.page.install = Array.from({ length: 300 }, (_, i) => `Third line ${i}.`).join("</p><p>");
  const third = await docs.evaluate();
  const linesBetween = async (base: string, head: string) =>
    (await docs.send("GET", `/api/v1/prompts/${docs.prompt.id}/score-change?base=${base}&head=${head}`)).body.pages[0]
      .lines.length;
  expect(await linesBetween(first, second)).toBeGreaterThan(100);
  expect(await linesBetween(second, third)).toBe(0);
});

test("a text is deleted with the last session that read it", async () => {
  const docs = await openDocs();
  await docs.send("PATCH", "/api/v1/retention", { body: { sessions: 4 } });
  const sessionsAndTexts = [];
  for (let day = 0; day <= 8; day += 2) {
    if (day <= 2) await docs.evaluate();
    await docs.service.upkeep.runOnce();
    sessionsAndTexts.push([docs.count("session_pages") / 2, docs.count("page_texts")]);
    docs.pass(2);
  }
  expect(sessionsAndTexts).toEqual([
    [1, 2],
    [2, 2],
    [2, 2],
    [1, 2],
    [0, 0],
  ]);
});
