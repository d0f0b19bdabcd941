import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inArray } from "drizzle-orm";
import type { Locator, Page } from "playwright-core";
import { createKey, listKeys } from "../../src/auth/keys.ts";
import { updateOrg } from "../../src/auth/orgs.ts";
import { findPerson } from "../../src/auth/people.ts";
import { jobs } from "../../src/db/tables/jobs.ts";
import { exportOrg } from "../../src/exchange/export.ts";
import { importFile } from "../../src/exchange/import.ts";
import { createDestination, deleteDestination } from "../../src/notifications/destinations.ts";
import { createPrompt } from "../../src/prompts/prompts.ts";
import { testApp } from "../support/app.ts";
import { complaintsOf, looking, openBrowser } from "../support/browser.ts";
import { demo } from "../support/demo.ts";
import { join as joinOrg, signedIn } from "../support/people.ts";
import { startReceiver } from "../support/receiver.ts";
import { evaluation, niceGrade } from "../support/reports.ts";
import { until } from "../support/until.ts";

// The tasks of a team after three weeks, with their clicks counted. Typing and choosing in a list are not clicks.

let isDown = true;
const receiver = startReceiver(() => new Response(null, { status: isDown ? 503 : 204 }));
const app = await demo([receiver.host]);
const { service, a, b, prompts } = app;
const leaver = "lena@acme.example";
joinOrg(app, a.org, "admin", leaver);
createKey(service.ctx, a.org, "Key of Lena", { createdBy: findPerson(service.ctx, leaver)?.id });
const owner = await signedIn(app, { email: "ada@acme.example" });
const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: (request) => app.app.handle(request) });
await service.notifier.runner.start();
const browser = await openBrowser();
const complaints: string[][] = [];
afterAll(async () => {
  await browser.close();
  server.stop(true);
  await service.notifier.runner.stop(0);
  receiver.close();
  await app.stop();
});

async function newPage(cookie = "", look = looking(1440, "light"), url = server.url.href): Promise<Page> {
  const context = await browser.newContext(look);
  const cookies = [...cookie.matchAll(/([^=; ]+)=([^;]*)/g)];
  await context.addCookies(cookies.map(([, name = "", value = ""]) => ({ name, value, url })));
  const page = await context.newPage();
  page.setDefaultTimeout(20_000);
  complaints.push(complaintsOf(page));
  return page;
}
const owners = await newPage(owner.cookie());

/** A journey from a page, by default as the owner, that counts its clicks. */
async function open(path: string, page = owners) {
  await page.goto(new URL(path, server.url).href);
  const journey = {
    page,
    main: page.locator("main"),
    clicks: 0,
    async click(what: Locator) {
      journey.clicks++;
      await what.click();
    },
    link: (name: string | RegExp) => page.getByRole("link", { name, exact: true }).first(),
    button: (name: string | RegExp) => page.getByRole("button", { name, exact: true }).first(),
  };
  return journey;
}
const text = async ({ main }: { main: Locator }) => (await main.textContent()) ?? "";

test("what got worse last week is on Home, and 1 click away from its reasons", async () => {
  const journey = await open("/");
  await journey.click(journey.page.locator('[data-kind="score_fell"]').getByRole("link", { name: "See why" }).first());
  await journey.page.waitForURL(/\/why$/);
  expect([await text(journey), journey.clicks]).toEqual([expect.stringContaining("Search the notes"), 1]);
});

test("what a failed run needs is 1 click away, on the main button of its notice", async () => {
  const failed = app.db.$client.query("select id from runs where failure_code is not null limit 1").values()[0]?.[0];
  const journey = await open(`/runs/${failed}`);
  await journey.click(journey.page.locator(".failure .main"));
  await journey.page.waitForURL(/\/(prompts|docs|settings|runs)\//);
  expect(journey.clicks).toBe(1);
});

test("the gate that failed is 1 click away from the friction behind it", async () => {
  const journey = await open("/gates");
  await journey.click(journey.main.locator('a[href*="/gates/"]').last());
  await journey.page.waitForURL(/\/gates\/[0-9a-f-]{36}$/);
  await journey.page.locator('main a[href*="/friction/"], main a[href*="/reports/"]').first().waitFor();
  expect(journey.clicks).toBe(1);
});

test("what models cost is 1 click away", async () => {
  const journey = await open("/");
  await journey.click(journey.link("Spending"));
  await journey.page.locator("#by-prompt").waitFor();
  expect(journey.clicks).toBe(1);
});

test("agents are side by side 2 clicks from Home, and 1 more from the runs of a cell", async () => {
  const journey = await open("/");
  await journey.click(journey.link("Prompts"));
  await journey.click(journey.link("Compare agents side by side"));
  const cell = journey.page.locator(".matrix td a").last();
  await cell.waitFor();
  expect(await journey.page.locator(".matrix thead th").count()).toBe(3);
  expect(await journey.page.getByText("No runs").count()).toBeGreaterThan(0);
  expect(journey.clicks).toBe(2);
  await journey.click(cell);
  await journey.page.waitForURL(/\/runs\?promptId=/);
  await journey.page.locator('.run-list a, main table a[href*="/runs/"]').first().waitFor();
});

test("a change of a prompt is 2 clicks away in Trends, with what it is compared with", async () => {
  const journey = await open("/");
  await journey.click(journey.link("Trends"));
  await journey.page.getByLabel("Prompt or tag").selectOption(prompts.search);
  await journey.click(journey.link("Compare before and after"));
  await journey.page.locator(".verdict-card").waitFor();
  expect(journey.clicks).toBe(2);
});

test("a viewer reads everything, and sees no button that they can't use", async () => {
  const viewer = await signedIn(app, { role: "viewer" });
  const page = await newPage(viewer.cookie());
  for (const path of ["/", `/prompts/${prompts.search}`, `/reports/${app.slug}`, "/prompts", "/gates", "/matrix"]) {
    const journey = await open(path, page);
    const buttons = await journey.main.getByRole("button").allTextContents();
    expect([path, buttons.filter((name) => /^(Run|New|Archive|Share|Edit|Delete|Cancel)/.test(name.trim()))]).toEqual([
      path,
      [],
    ]);
    expect([path, await journey.main.getByRole("link", { name: /^(New|Edit) / }).count()]).toEqual([path, 0]);
  }
});

test("a writer with a shared link sees the fix without a click, and copies it with one", async () => {
  const journey = await open(app.sharedPath, await newPage());
  await journey.page.locator("#fix-1").waitFor();
  const copy = journey.page.locator("#fix-1 button[data-copy]").first();
  expect([await copy.isVisible(), journey.clicks]).toEqual([true, 0]);
});

test("customers read the results page without an account", async () => {
  const { resultsPath } = updateOrg(service.ctx, a.org, { hasResultsPage: true });
  const journey = await open(resultsPath ?? "", await newPage());
  expect(await text(journey)).toContain("Add a note");
  expect(await text(journey)).not.toContain("Untitled");
});

test("the other organization is 2 clicks away", async () => {
  const both = await signedIn(app, { role: "member", email: "both@acme.example" });
  joinOrg(app, b.org, "member", "both@acme.example");
  const journey = await open("/", await newPage(both.cookie()));
  const current = journey.page.locator("details.org summary");
  const other = (await current.textContent()) === "B" ? "Acme" : "B";
  await journey.click(current);
  await journey.click(journey.button(other));
  await journey.page.locator("details.org summary", { hasText: new RegExp(`^${other}$`) }).waitFor();
  expect(journey.clicks).toBe(2);
}, 60_000);

test("a person who leaves is removed with their keys in 5 clicks", async () => {
  const journey = await open("/");
  await journey.click(journey.link("Settings"));
  await journey.click(journey.link("Members"));
  const row = journey.page.locator("tr", { hasText: leaver });
  await journey.click(row.getByRole("button", { name: /^Remove/ }));
  await journey.click(journey.page.getByLabel("Revoke this API key"));
  await journey.click(journey.button("Remove member"));
  await journey.page.getByText("Member removed.").waitFor();
  expect(journey.clicks).toBe(5);
  const key = listKeys(service.ctx, a.org).find(({ name }) => name === "Key of Lena");
  expect([key?.revokedAt === null, key?.createdBy?.isMember]).toEqual([false, false]);
}, 60_000);

/** Like `evaluation`, on a service whose runner works. */
function evaluated(...[promptId, ends, more, events, version]: Ended) {
  const ended = evaluation(app, promptId, ends, more, events, version);
  const subjects = ended.map(({ runId }) => runId);
  app.db.update(jobs).set({ state: "done", completedAt: 0 }).where(inArray(jobs.subject, subjects)).run();
  return ended;
}
type Ended = Parameters<typeof evaluation> extends [unknown, ...infer Rest] ? Rest : never;
const promptOf = (title: string) =>
  createPrompt(service.ctx, a.org, { title, text: `${title}. https://docs.notes.example/`, agent: "llm" }).id;

test("events that a broken webhook missed are sent again 2 clicks from Home", async () => {
  const { id } = createDestination(service.ctx, a.org, {
    kind: "webhook",
    url: receiver.url,
    events: ["run.completed"],
  });
  await app.send("POST", `/api/v1/destinations/${id}/test`, { body: {} });
  await until("the first try has failed", async () =>
    (await app.send("GET", "/api/v1/inbox")).body.problems.some(({ kind }: { kind: string }) =>
      /^destination/.test(kind),
    ),
  );
  isDown = false;
  const triedBefore = receiver.received.length;
  const journey = await open("/");
  await journey.click(
    journey.page.locator('[data-kind="destination_failing"]').getByRole("link", { name: "Open destination" }),
  );
  await journey.click(journey.button("Replay 1 missed delivery"));
  await until("the event is sent again", () => receiver.received.length > triedBefore);
  expect(journey.clicks).toBe(2);
  deleteDestination(service.ctx, a.org, id);
});

test("a refused model key is replaced 3 clicks from the failed run", async () => {
  const [failed] = evaluated(promptOf("Use a model"), ["model_key_refused: 401 invalid x-api-key"]);
  const journey = await open(`/runs/${failed?.runId}`);
  await journey.click(journey.page.locator(".failure .main"));
  await journey.page.waitForURL(/\/settings\/models/);
  const provider = journey.main.locator("details", { has: journey.page.locator('input[value="anthropic"]') });
  await journey.click(provider.locator("summary"));
  await provider.getByLabel("API key").fill("sk-ant-012345wxyz");
  await journey.click(provider.getByRole("button", { name: "Save key" }));
  await journey.main.getByText("Organization key (…wxyz)").waitFor();
  expect(journey.clicks).toBe(3);
});

test("an imported organization has its reports 1 click from Home, and starts no runs", async () => {
  const folder = mkdtempSync(join(tmpdir(), "evald-import-"));
  const file = join(folder, "acme.jsonl");
  writeFileSync(file, [...exportOrg(service.ctx, a.org, { since: "2026-11-18" })].join(""));
  const target = testApp({ now: service.ctx.now });
  importFile(target.service.ctx, target.a.org, file, { isPaused: true });
  rmSync(folder, { recursive: true });
  const other = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: (request) => target.app.handle(request) });
  const page = await newPage((await signedIn(target)).cookie(), undefined, other.url.href);
  const journey = await open(other.url.href, page);
  await journey.click(journey.link("Reports"));
  await page.locator('#reports a[href^="/reports/"]', { hasText: "Add a note" }).first().waitFor();
  const { body: imported } = await target.send("GET", "/api/v1/prompts");
  const paused = imported.filter(({ status }: { status: string }) => status === "paused");
  expect([journey.clicks, paused.map(({ title }: { title: string }) => title)]).toEqual([
    1,
    ["Search the notes of a team"],
  ]);
  await page.context().close();
  other.stop(true);
});

test("the failure among 20,000 events is 2 clicks away from its session, on the first screen", async () => {
  const thought = { type: "thought", text: "I read the next page.", by: "model" } as const;
  const events = Array.from({ length: 20_000 }, (_, i) =>
    i === 15_000
      ? ({ type: "tool_result", id: "t1", tool: "run_command", ok: false, output: { exitCode: 22 } } as const)
      : thought,
  );
  const [run] = evaluated(
    promptOf("A long session"),
    [{ ...niceGrade, frictions: [], recommendations: [] }],
    {},
    events,
  );
  const journey = await open(`/reports/${run?.slug}/session`);
  await journey.click(journey.page.getByLabel("Failures only"));
  await journey.click(journey.button("Filter"));
  const event = journey.main.getByText("run_command failed");
  await event.first().waitFor();
  expect([journey.clicks, ((await event.first().boundingBox())?.y ?? 9e9) < 900]).toEqual([2, true]);
});

test("a phone with a keyboard opens the reports with two keys, and sees where the focus is", async () => {
  const page = await newPage(owner.cookie(), looking(390, "dark"));
  const journey = await open("/", page);
  let presses = 0;
  const press = async (what: Locator) => {
    for (let i = 0; i < 30 && !(await what.evaluate((each) => each === document.activeElement)); i++)
      await page.keyboard.press("Tab");
    expect(await what.evaluate((each) => getComputedStyle(each).outlineStyle)).not.toBe("none");
    await page.keyboard.press("Enter");
    presses++;
  };
  await press(journey.button("Menu"));
  await press(journey.link("Reports"));
  await page.waitForURL(/\/reports$/);
  expect(presses).toBe(2);
});

test("a printed report has its date, its organization and all its parts, and no buttons", async () => {
  const { page } = await open(`/reports/${app.slug}`);
  await page.emulateMedia({ media: "print" });
  const paper = await page.evaluate(() => {
    const isShown = (each: Element) => each.checkVisibility() && (each as HTMLElement).offsetHeight > 0;
    const parts = [...document.querySelectorAll(".report details.fold > :not(summary)")];
    return {
      parts: parts.length,
      closed: parts
        .filter((each) => !isShown(each) && each.textContent !== "")
        .map((each) => each.outerHTML.slice(0, 200)),
      buttons: [...document.querySelectorAll("button, .button")].filter(isShown).length,
      heads: [...document.querySelectorAll(".on-paper")].filter(isShown).map((each) => each.textContent),
    };
  });
  await page.emulateMedia({ media: null });
  expect(paper.parts).toBeGreaterThan(0);
  expect(paper).toMatchObject({ closed: [], buttons: 0 });
  expect(paper.heads).toEqual([expect.stringMatching(/Acme.*2026-\d\d-\d\d/s)]);
});

test("a title in another script is found by search with one key, and reads in its direction", async () => {
  const titles = ["画像をアップロードする 🚀", "رفع ملف إلى المجلد"];
  for (const title of titles) {
    const promptId = promptOf(title);
    const journey = await open("/");
    await journey.page.keyboard.press("/");
    await journey.page.getByRole("combobox").fill(title.slice(0, 4));
    await journey.page.locator("#palette-hits").getByText(title).first().waitFor();
    await journey.page.keyboard.press("Enter");
    await journey.page.waitForURL(new RegExp(`/prompts/${promptId}$`));
    const heading = journey.page.getByRole("heading", { level: 1 });
    const isRightToLeft = title === titles[1];
    expect([await heading.textContent(), await heading.evaluate((each) => getComputedStyle(each).direction)]).toEqual([
      title,
      isRightToLeft ? "rtl" : "ltr",
    ]);
    expect(journey.clicks).toBe(0);
  }
});

test("a new version of an agent is a mark in Trends, 1 click from Home", async () => {
  const promptId = promptOf("Update an agent");
  for (const version of ["2.1.0", "2.2.0"])
    for (const score of [80, 81, 82]) evaluated(promptId, [{ ...niceGrade, score }], {}, undefined, version);
  const journey = await open("/");
  await journey.click(journey.link("Trends"));
  await journey.page.getByLabel("Prompt or tag").selectOption(promptId);
  await journey.main.locator(".changes").getByText("2.1.0 → 2.2.0").waitFor();
  expect(journey.clicks).toBe(1);
});

test("the browser reports no problem", () => {
  expect(complaints.flat()).toEqual([]);
});
