/** `bun run screenshots [FOLDER]`: takes the screenshot of the README: a report on docs with one wrong line, as an admin sees it. */

import { updateOrg } from "../../src/auth/orgs.ts";
import { findLatestResults } from "../../src/comparisons/latest.ts";
import { createPrompt } from "../../src/prompts/prompts.ts";
import { createProvider } from "../../src/providers/providers.ts";
import { requestEval } from "../../src/runs/requests.ts";
import { looking, openBrowser } from "./browser.ts";
import { goal, guessedPathAnswer, guessedPathSession } from "./guessed-path.ts";
import { judgedApp, says } from "./judged.ts";
import { signedIn } from "./people.ts";

const folder = process.argv[2] ?? "src/web/docs";
const app = judgedApp({ id: "llm", turns: [says(guessedPathAnswer())], sessions: [guessedPathSession()] });
const { service, a } = app;
updateOrg(service.ctx, a.org, { name: "Acme" });
const docsUrl = "https://docs.notes.example/";
const { id: targetProviderId } = createProvider(service.ctx, a.org, {
  name: "Notes",
  docsUrl,
  productUrl: "https://notes.example",
});
const { id } = createPrompt(service.ctx, a.org, {
  ...{ title: "Add a note", text: "Add a note.", endGoal: goal, agent: "llm", targetProviderId },
});
await requestEval(service.ctx, a.org, id, { urlMap: {}, trigger: "api", runs: 4 });
await app.runJobs();
const { slug } = findLatestResults(service.ctx, a.org, id) ?? {};

const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: (request) => app.app.handle(request) });
const cookie = (await signedIn(app, { role: "admin" })).cookie();
const browser = await openBrowser();
const context = await browser.newContext({ ...looking(1440, "light"), extraHTTPHeaders: { cookie } });
const page = await context.newPage();
await page.goto(new URL(`/reports/${slug}`, server.url).href);
await page.screenshot({ path: `${folder}/report.png` });
await browser.close();
server.stop(true);
await app.stop();
