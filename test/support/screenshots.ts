/** `bun run screenshots [FOLDER]`: pictures of the main pages, from an organization whose history is real runs of the explorer over Debian's docs. */
import { looking, openBrowser } from "./browser.ts";
import { buildExecutable, call, client, emptyFolder, serve, untilRun } from "./executable.ts";
import { realDocs } from "./real-docs.ts";

/** Two of them stand in the README. */
const folder = process.argv[2] ?? "src/web/docs";
await buildExecutable();
const cwd = emptyFolder();
const service = await serve({ cwd, env: { EVALD_ALLOW_PRIVATE: "127.0.0.1" } });
await call(["org", "create", "Acme"], { cwd });
const ask = client(service.url, (await call(["key", "create", "--name", "screenshots"], { cwd })).stdout.trim());
const key = (await call(["key", "create", "--name", "pictures"], { cwd })).stdout.trim();

const slugs: string[] = [];
for (const [name, title] of [
  ["sqlite", "Full-text search"],
  ["bun", "Serve HTTP and read SQLite"],
  ["git", "Undo the last commit"],
] as const) {
  const { serve: serveDocs, start, goal } = realDocs[name];
  const docs = serveDocs();
  const prompt = { title, text: `${goal}. Docs: ${docs.url}${start}`, endGoal: goal };
  const { id } = (await ask("POST", "/api/v1/prompts", prompt)).body;
  for (let i = 0; i < 3; i++) {
    const { runId } = (await ask("POST", `/api/v1/prompts/${id}/run`, { urlMap: {} })).body;
    slugs.push((await untilRun(ask, runId, "completed", "failed")).report.slug);
  }
  docs.stop();
}

const newest = `/reports/${slugs.at(-1)}`;
const pages = {
  report: newest,
  session: `${newest}/session`,
  reports: "/reports",
  compare: `/compare?slugs=${slugs.slice(-2).join()}`,
};
const browser = await openBrowser();
const context = await browser.newContext({
  ...looking(1440, "light"),
  extraHTTPHeaders: { authorization: `Bearer ${key}` },
});
const page = await context.newPage();
for (const [name, path] of Object.entries(pages)) {
  await page.goto(service.url + path);
  await page.screenshot({ path: `${folder}/${name}.png` });
}
await browser.close();
await service.stop();
