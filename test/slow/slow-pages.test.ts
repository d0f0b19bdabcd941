import { expect, test } from "bun:test";
import { createExplorer } from "../../src/agents/explorer/explorer.ts";
import { testApp } from "../support/app.ts";
import { type SiteRoute, serveSite } from "../support/site.ts";

const prose = `<p>${"Upload a file with the SDK, and read how it is stored. ".repeat(20)}</p>`;
const html = (title: string, body = "") => `<!doctype html><title>${title}</title><h1>${title}</h1>${prose}${body}`;

/** A page whose first responses take 3.2 seconds. */
function slowPage(title: string, responses: number): SiteRoute {
  let sent = 0;
  return async () => {
    if (sent++ < responses) await Bun.sleep(3200);
    return new Response(html(title), { headers: { "content-type": "text/html" } });
  };
}

test("a page that is slow once is no finding, and one that is slow again is", async () => {
  const links = '<a href="/upload">Upload a file</a> <a href="/store">Store a file</a>';
  const site = serveSite({
    "/": { body: html("Acme", links) },
    "/upload": slowPage("Upload a file", 1),
    "/store": slowPage("Store a file", 2),
  });
  const app = testApp({
    agent: createExplorer({ version: "test" }),
    env: { EVALD_ALLOW_PRIVATE: `127.0.0.1:${site.port}` },
  });
  const prompt = (
    await app.send("POST", "/api/v1/prompts", { body: { text: `Upload and store a file with the SDK. ${site.url}/` } })
  ).body;
  const { runId } = (await app.send("POST", `/api/v1/prompts/${prompt.id}/run`, { body: { urlMap: {} } })).body;
  await app.runJobs();
  const { slug } = (await app.send("GET", `/api/v1/runs/${runId}`)).body.report;
  const { frictionPoints } = (await app.send("GET", `/api/v1/reports/${slug}`)).body;
  const slow = frictionPoints.filter(({ category }: { category: string }) => category === "slow");
  expect(slow.map(({ title }: { title: string }) => title)).toEqual([expect.stringContaining("/store")]);
  site.stop();
}, 60_000);
