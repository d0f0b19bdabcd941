import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { setOperator } from "../../src/auth/operators.ts";
import { testApp } from "../support/app.ts";
import { looking, openBrowser, problemsOf } from "../support/browser.ts";
import { signedIn } from "../support/people.ts";
import { until } from "../support/until.ts";

setDefaultTimeout(300_000);

const app = testApp({ env: { EVALD_BASE_URL: "http://127.0.0.1:4893" } });
const server = Bun.serve({ port: 4893, hostname: "127.0.0.1", fetch: (request) => app.app.handle(request) });
let browser: Awaited<ReturnType<typeof openBrowser>>;

beforeAll(async () => {
  browser = await openBrowser();
  await app.service.start();
});
afterAll(async () => {
  await browser.close();
  server.stop(true);
  await app.service.stop(0);
});

test("an operator pauses an agent, sees a run wait and why, resumes, and sees it end", async () => {
  const operator = await signedIn(app);
  setOperator(app.service.ctx, operator.email, true);
  const prompt = await app.send("POST", "/api/v1/prompts", { body: { text: "See https://docs.test/" } });
  const context = await browser.newContext({
    ...looking(1440, "light"),
    extraHTTPHeaders: { cookie: operator.cookie() },
  });
  const page = await context.newPage();
  await page.goto("http://127.0.0.1:4893/settings");
  await page.getByRole("link", { name: "Queue" }).click();
  await page.getByLabel("Name").fill("explorer");
  await page.getByLabel("Reason").fill("upgrade");
  await page.getByRole("button", { name: "Pause", exact: true }).click();
  await page.getByRole("button", { name: "Pause" }).click();
  await page.getByText("Paused the agent explorer.").waitFor();
  const { runId } = (await app.send("POST", `/api/v1/prompts/${prompt.body.id}/run`, { body: { urlMap: {} } })).body;
  await page.goto(`http://127.0.0.1:4893/runs/${runId}`);
  await page.locator('[role=status][data-waiting="paused_agent"]').waitFor();
  for (const [width, scheme] of [
    [1440, "light"],
    [1440, "dark"],
    [390, "light"],
    [390, "dark"],
  ] as const) {
    await page.setViewportSize({ width, height: 900 });
    await page.emulateMedia({ colorScheme: scheme });
    await page.goto("http://127.0.0.1:4893/settings/queue");
    if (process.env.PICTURES)
      await page.screenshot({ path: `${process.env.PICTURES}/queue-${width}-${scheme}.png`, fullPage: true });
  }
  expect(await problemsOf(page, true)).toEqual([]);
  await page.getByRole("button", { name: "Resume explorer" }).click();
  await page.getByText("Resumed the agent explorer.").waitFor();
  await until("the run to end", async () => {
    const { body } = await app.send("GET", `/api/v1/runs/${runId}`);
    return body.status === "completed";
  });
});
