import { createExplorer } from "../../src/agents/explorer/explorer.ts";
import { createPrompt } from "../../src/prompts/prompts.ts";
import { createProvider } from "../../src/providers/providers.ts";
import { getPagesVisited } from "../../src/reports/pages-visited.ts";
import { getReport } from "../../src/reports/reports.ts";
import type { Report } from "../../src/reports/schema.ts";
import { getSession } from "../../src/reports/trace.ts";
import { examplePrompt, exampleProviderName, exampleReport } from "../../src/web/example.ts";
import { testApp } from "./app.ts";
import { signedIn } from "./people.ts";

/** Runs the example on its docs, as the first start does. End it with `stop()`. */
export async function runExample() {
  let handle: (request: Request) => Response | Promise<Response> = () => new Response();
  const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: (request) => handle(request) });
  const base = server.url.origin;
  const env = { EVALD_BASE_URL: base, EVALD_ALLOW_PRIVATE: server.url.host };
  const app = testApp({ agent: createExplorer({ version: "1.0.0" }), env });
  handle = (request) => app.app.handle(request);
  const { ctx } = app.service;
  const { org } = app.a;
  const { id: targetProviderId } = createProvider(ctx, org, { name: exampleProviderName, docsUrl: `${base}/example` });
  const { id } = createPrompt(ctx, org, { ...examplePrompt, targetProviderId });
  await app.send("POST", `/api/v1/prompts/${id}/run`, { body: { urlMap: {} } });
  await app.runJobs();
  const [{ slug }] = (await app.send("GET", "/api/v1/reports")).body;
  return {
    app,
    base,
    slug: slug as string,
    person: await signedIn(app),
    report: getReport(ctx, org, slug),
    pagesVisited: getPagesVisited(ctx, getSession(ctx, org, slug)),
    stop: () => server.stop(true),
  };
}

/** What depends neither on the machine nor on the time. */
export const resultOf = ({ score, keyFinding, dimensions, frictionPoints, recommendations }: Report) => ({
  score,
  keyFinding,
  dimensions: dimensions.map(({ name, score }) => ({ name, score })),
  friction: frictionPoints.map(({ title }) => title).sort(),
  fixes: recommendations.map(({ title, action, lostPoints }) => ({ title, action, lostPoints })),
});

/**
 * The report as visitors see it: without the address of the service, and with the same IDs each time. null: the stored one has the same result.
 */
export async function toStoredExample(): Promise<string | null> {
  const { report, pagesVisited, base, stop } = await runExample();
  stop();
  const { report: stored } = exampleReport({ baseUrl: base });
  if (Bun.deepEquals(resultOf(report), resultOf(stored))) return null;
  const ids = new Map<string, string>();
  const toId = (id: string) => {
    const known = ids.get(id) ?? `00000000-0000-7000-8000-${String(ids.size + 1).padStart(12, "0")}`;
    ids.set(id, known);
    return known;
  };
  return `${JSON.stringify({ report, pagesVisited }, null, 1)
    .replaceAll(base, "{base}")
    .replaceAll(new URL(base).host, "{host}")
    .replaceAll(report.slug, "upload-a-file-00000000")
    .replace(/[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}/g, toId)}\n`;
}
