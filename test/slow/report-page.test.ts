import { afterAll, expect, test } from "bun:test";
import { createPrompt } from "../../src/prompts/prompts.ts";
import { barriersOf, complaintsOf, looking, openBrowser } from "../support/browser.ts";
import { goal, guessedPathAnswer, guessedPathSession, guide } from "../support/guessed-path.ts";
import { judgedApp, says } from "../support/judged.ts";
import { signedIn } from "../support/people.ts";
import { evaluation, niceGrade } from "../support/reports.ts";

const port = 4871;
const base = `http://127.0.0.1:${port}`;
const app = judgedApp({
  turns: [says(guessedPathAnswer())],
  sessions: [guessedPathSession()],
  env: { EVALD_BASE_URL: base },
});
const { report } = await app.run({ endGoal: goal, text: "Add a note. https://docs.notes.example/" });
const member = await signedIn(app, { role: "member" });
const server = Bun.serve({ port, hostname: "127.0.0.1", fetch: (request) => app.app.handle(request) });
const browser = await openBrowser();
afterAll(async () => {
  await browser.close();
  server.stop(true);
  await app.stop();
});

/** A page at a width and in a color scheme, as the member. */
async function open(path: string, width = 1440, scheme: "light" | "dark" = "light") {
  const context = await browser.newContext({
    ...looking(width, scheme),
    extraHTTPHeaders: { cookie: member.cookie() },
    permissions: ["clipboard-read", "clipboard-write"],
  });
  const page = await context.newPage();
  const complaints = complaintsOf(page);
  await page.goto(base + path);
  return { page, complaints };
}

test("the line to change is on the first screen of a report, without a click", async () => {
  const { page } = await open(`/reports/${report.slug}`);
  const fix = page.locator("#fix-1");
  for (const shown of [fix.getByText("line 7"), fix.locator(`a[href="${guide}"]`), fix.locator("ins")]) {
    const box = await shown.boundingBox();
    expect((box?.y ?? 9999) + (box?.height ?? 0)).toBeLessThan(900);
  }
});

test("a shared report is printed with organization, date and validity, and with all its parts open", async () => {
  const owner = await signedIn(app);
  const made = await owner.post(`/reports/${report.slug}/shares`, { days: "7", session: "1" });
  const url = /<code id="made">([^<]+)</.exec(made.body)?.[1] ?? "";
  for (const path of [new URL(url).pathname, `/reports/${report.slug}`]) {
    const { page } = await open(path);
    await page.emulateMedia({ media: "print" });
    const parts = await page.evaluate(() =>
      [...document.querySelectorAll("main details:not(.act)")].map((details) => {
        const content = [...details.children].find((each) => each.tagName !== "SUMMARY");
        return content === undefined || (content.getBoundingClientRect().height > 0 && content.checkVisibility());
      }),
    );
    expect([parts.length > 5, parts.filter((isOpen) => !isOpen)]).toEqual([true, []]);
    const origin = page.locator(".shared, .on-paper");
    expect([await origin.isVisible(), await origin.textContent()]).toEqual([
      true,
      expect.stringMatching(/\bA\b.*\d{4}-\d\d-\d\d/),
    ]);
    expect(await page.locator("header.bar nav, header.menu").isVisible()).toBe(false);
    await page.context().close();
  }
});

test("a prompt whose score changed fits a phone", async () => {
  const prompt = createPrompt(app.service.ctx, app.a.org, { title: "Pay", text: "Pay. https://docs.notes.example/" });
  const conduct = { ...niceGrade, outcome: "not_judged", scope: "conduct_only", grade: null } as const;
  for (const scores of [
    [88.4, 89, 88, 90],
    [60.4, 62, 61, 60],
  ])
    evaluation(
      app,
      prompt.id,
      scores.map((score) => ({ ...conduct, score })),
    );
  const { page } = await open(`/prompts/${prompt.id}`, 390);
  await page.locator(".newest .change-regressed").waitFor();
  expect(await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth)).toBeLessThanOrEqual(0);
});

test("a page without a network says so, and keeps what was typed", async () => {
  const { page } = await open("/prompts/new");
  const notice = page.locator("#offline");
  expect(await notice.count()).toBe(0);
  await page.locator("#title").fill("Upload a file");
  await page.context().setOffline(true);
  await notice.waitFor();
  await page.getByRole("link", { name: "Reports" }).click();
  await page.locator("form.prompt-form button[type=submit].main").click();
  expect([new URL(page.url()).pathname, await page.locator("#title").inputValue()]).toEqual([
    "/prompts/new",
    "Upload a file",
  ]);
  await page.context().setOffline(false);
  await notice.waitFor({ state: "detached" });
  await page.getByRole("link", { name: "Reports" }).click();
  await page.waitForURL("**/reports");
});

test("an event of the evidence is open, and red if it failed", async () => {
  const { page } = await open(`/reports/${report.slug}`);
  await page.locator(".step-of-failed a").click();
  const seq = /#(e\d+)$/.exec(page.url())?.[1];
  const event = page.locator(`details#${seq}[open]`);
  await event.waitFor();
  expect(await event.getAttribute("class")).toContain("failed");
});

test("the cause of a failed run is on its page, without a click", async () => {
  const prompt = createPrompt(app.service.ctx, app.a.org, { text: "Look around. https://docs.notes.example/" });
  const [failed] = evaluation(app, prompt.id, ["timeout: took too long"]);
  const { page } = await open(`/runs/${failed?.runId}`);
  const box = await page.locator('[data-cause="timeout"]').boundingBox();
  expect((box?.y ?? 9999) + (box?.height ?? 0)).toBeLessThan(900);
});

test("the brief for an agent is copied with the line to change", async () => {
  const { page } = await open(`/reports/${report.slug}`);
  await page.getByRole("button", { name: "Copy for your agent" }).click();
  await page.getByRole("button", { name: "Copied" }).waitFor();
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  for (const words of [guide, "line 7", "+ curl -d 'Hello' https://notes.example/api/notes"])
    expect(copied).toContain(words);
});

test("reports and sessions have no barriers, no complaints, and nothing wider than the page", async () => {
  for (const path of [`/reports/${report.slug}`, `/reports/${report.slug}/session`])
    for (const width of [1440, 390])
      for (const scheme of ["light", "dark"] as const) {
        const { page, complaints } = await open(path, width, scheme);
        await page.evaluate(() => {
          for (const each of document.querySelectorAll("details")) each.open = true;
        });
        const wider = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        expect([path, width, await barriersOf(page), complaints, wider]).toEqual([path, width, [], [], 0]);
        await page.context().close();
      }
}, 300_000);

test("a report prints with its details open, on at most three pages", async () => {
  const { page } = await open(`/reports/${report.slug}`);
  const pdf = (await page.pdf({ format: "A4" })).toString("latin1");
  expect(pdf.match(/\/Type\s*\/Page\b/g)?.length).toBeLessThanOrEqual(3);
});
