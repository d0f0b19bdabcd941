import { afterAll, expect, test } from "bun:test";
import type { AgentEvent } from "../../src/agents/agent.ts";
import { jobs } from "../../src/db/tables/jobs.ts";
import { createPrompt } from "../../src/prompts/prompts.ts";
import { scriptedAgent, testApp } from "../support/app.ts";
import { complaintsOf, looking, openBrowser } from "../support/browser.ts";
import { signedIn } from "../support/people.ts";
import { evaluation, niceGrade } from "../support/reports.ts";

/** The next event of the session waits for `say`. */
const said: PromiseWithResolvers<AgentEvent>[] = [];
const nth = (i: number) => (said[i] ??= Promise.withResolvers<AgentEvent>());
let spoken = 0;
const say = (event: AgentEvent) => nth(spoken++).resolve(event);
const agent = scriptedAgent(async function* () {
  for (let i = 0; ; i++) {
    const event = await nth(i).promise;
    yield event;
    if (event.type === "end") return;
  }
});
const app = testApp({ agent });
const { service, a } = app;
const [first, second] = ["Upload a file", "Share a file"].map((title) =>
  createPrompt(service.ctx, a.org, { title, text: "Do it. https://docs.notes.example/" }),
);
for (const prompt of [first, second, second]) evaluation(app, prompt?.id ?? "", [niceGrade]);
// These runs have ended, so no work is left.
app.db.update(jobs).set({ state: "done", completedAt: 0 }).run();
const { runId } = (await app.send("POST", `/api/v1/prompts/${first?.id}/run`, { body: { urlMap: {} } })).body;
await service.runner.start();

const server = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  idleTimeout: 60,
  fetch: (request) => app.app.handle(request),
});
const browser = await openBrowser();
afterAll(async () => {
  await browser.close();
  server.stop(true);
  await service.stop(0);
});
const cookie = (await signedIn(app)).cookie();
const context = await browser.newContext(looking(1440, "light"));
const [name = "", value = ""] = cookie.split("=");
await context.addCookies([{ name, value, url: server.url.href }]);
const page = await context.newPage();
page.setDefaultTimeout(20_000);
const complaints = complaintsOf(page);
const open = (path: string) => page.goto(new URL(path, server.url).href);

test("a live run follows its newest event until the reader pauses it, and marks failures", async () => {
  await open(`/runs/${runId}`);
  const rows = page.locator("#timeline li");
  const think = (n: number) => {
    for (let i = 0; i < n; i++) say({ type: "thought", text: `Thought ${spoken}`, by: "rule" });
  };
  const isLastInView = () =>
    rows.last().evaluate((row) => row.getBoundingClientRect().bottom <= window.innerHeight && scrollY > 0);
  think(60);
  say({ type: "http", method: "POST", url: "https://notes.example/v1/notes", status: 404 } as AgentEvent);
  await page.locator("#timeline li.failed", { hasText: "404" }).waitFor();
  await rows.nth(60).waitFor();
  expect([await rows.count(), await isLastInView()]).toEqual([61, true]);

  await page.getByLabel("Follow newest event").uncheck();
  await page.evaluate(() => scrollTo(0, 0));
  think(20);
  await rows.nth(80).waitFor();
  expect(await page.evaluate(() => scrollY)).toBe(0);

  await page.getByLabel("Follow newest event").check();
  expect(await isLastInView()).toBe(true);
  say({ type: "end", outcome: "not_judged", reason: "Done." });
  await page.locator(".run-completed").first().waitFor();
});

test.each([
  ["/reports", "#reports"],
  ["/runs", "#runs"],
  ["/friction", "#friction-list"],
  ["/trends", "main"],
])("%s filters as soon as a prompt is chosen, without empty parameters in the URL", async (path, list) => {
  await open(path);
  await page.locator(list).waitFor();
  await page
    .getByLabel(/^Prompt/)
    .first()
    .selectOption({ label: "Share a file" });
  await page.waitForURL((url) => url.search.includes(second?.id ?? ""));
  const values = [...new URL(page.url()).searchParams.values()];
  expect(values.filter((value) => value === "")).toEqual([]);
});

test("reports can be compared as soon as two are selected, next to the filters", async () => {
  await open("/reports");
  const compare = page.getByRole("button", { name: "Compare" });
  const box = await compare.boundingBox();
  expect([await compare.isDisabled(), (box?.y ?? 9999) < 400]).toEqual([true, true]);
  const boxes = page.locator("tbody input[type=checkbox]");
  await boxes.nth(0).check();
  expect(await compare.isDisabled()).toBe(true);
  await boxes.nth(1).check();
  await compare.click();
  await page.getByRole("heading", { name: /^Comparison of 2/ }).waitFor();
});

test("the browser reports no problem", () => {
  expect(complaints).toEqual([]);
});
