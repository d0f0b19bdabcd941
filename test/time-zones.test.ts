import { describe, expect, test } from "bun:test";
import { updateOrg } from "../src/auth/orgs.ts";
import { exportOrg } from "../src/exchange/export.ts";
import { createPrompt, updatePrompt } from "../src/prompts/prompts.ts";
import { createProvider } from "../src/providers/providers.ts";
import { testApp } from "./support/app.ts";
import { browse, signedIn } from "./support/people.ts";
import { evaluation, niceGrade } from "./support/reports.ts";

// The organization is 13 hours ahead of UTC, so its November began at 11:00 on the 31st of October.
const zone = "Pacific/Auckland";
const [october, november] = ["2026-10-31T10:59:00Z", "2026-10-31T11:01:00Z"];

/** An organization with a run in the last minute of its October and one in the first minute of its November. */
function setUp() {
  let now = Date.parse(october);
  const app = testApp({ now: () => now });
  const { service, a } = app;
  updateOrg(service.ctx, a.org, { name: "Acme", timeZone: zone });
  const shown = { isOnResultsPage: true, hasPublicBadge: true };
  const prompt = createPrompt(service.ctx, a.org, { text: "Upload. https://docs.example.com", ...shown });
  const [before] = evaluation(app, prompt.id, [niceGrade]);
  now = Date.parse(november);
  const [after] = evaluation(app, prompt.id, [niceGrade]);
  const get = async (path: string) => (await app.send("GET", path)).body;
  return {
    app,
    prompt,
    before: before?.slug ?? "",
    after: after?.slug ?? "",
    get,
    at: (time: string) => (now = Date.parse(time)),
  };
}

describe("a date in since or until begins at midnight in the time zone of the organization", () => {
  test("in lists of reports and in exports", async () => {
    const { app, before, after, get } = setUp();
    const listed = async (query: string) =>
      (await get(`/api/v1/reports${query}`)).map(({ slug }: { slug: string }) => slug);
    expect([await listed("?since=2026-11-01"), await listed("?until=2026-11-01")]).toEqual([[after], [before]]);
    const exported = (filter: object) =>
      [...exportOrg(app.service.ctx, app.a.org, filter)]
        .join("")
        .split("\n")
        .flatMap((line) => /"slug":"([^"]+)"/.exec(line)?.[1] ?? []);
    expect([exported({ since: "2026-11-01" }), exported({ until: "2026-11-01" })]).toEqual([[after], [before]]);
    expect(exported({ since: "2026-11-01T00:00:00Z" })).toEqual([]);
  });

  test("in regrades", async () => {
    const { app } = setUp();
    const planned = await app.send("POST", "/api/v1/regrades", {
      body: { since: "2026-10-31", until: "2026-11-01", dryRun: true },
    });
    expect(planned.body).toMatchObject({
      since: "2026-10-30T11:00:00.000Z",
      until: "2026-10-31T11:00:00.000Z",
      total: 1,
    });
  });

  test("in the docs map, which counts whole months", async () => {
    const { app, prompt, before, get } = setUp();
    const map = (query: string) => get(`/api/v1/prompts/${prompt.id}/docs-map${query}`);
    expect(await map("?since=2026-11-01")).toMatchObject({
      since: "2026-10-31T11:00:00.000Z",
      until: "2026-11-30T11:00:00.000Z",
      runs: 1,
    });
    // Clocks go forward on the 27th of September.
    const both = await map("?since=2026-09-30&until=2026-10-31T11:00:00Z");
    expect(both).toMatchObject({ since: "2026-08-31T12:00:00.000Z", until: "2026-11-30T11:00:00.000Z", runs: 2 });
    expect(await map("?since=2026-10-15&until=2026-10-31")).toMatchObject({ runs: 1 });
    await app.send("PATCH", `/api/v1/reports/${before}`, { body: { status: "archived" } });
    expect([(await map("?until=2026-10-31")).runs, (await map("?since=2026-11-01")).runs]).toEqual([0, 1]);
  });
});

test("pages, badges and the public results page show dates in the organization's time zone, and name the zone with the time", async () => {
  const { app, prompt, after, at } = setUp();
  at("2026-10-31T12:30:00Z");
  updatePrompt(app.service.ctx, app.a.org, prompt.id, { frequency: "0 6 * * *" });
  const owner = await signedIn(app);
  const found = async (path: string) => (await owner.get(path)).body;
  const event = await found(`/reports/${after}/session/0`);
  expect([event.includes("2026-11-01 00:01 GMT+13"), event.includes(">2026-10-31")]).toEqual([true, false]);
  const shared = (await app.send("POST", `/api/v1/reports/${after}/shares`, { body: { days: 7, withSession: true } }))
    .body;
  const strangers = (await browse(app).get(`${new URL(shared.url).pathname}/session/0`)).body;
  expect(strangers).toContain("2026-11-01 00:01 GMT+13");
  const { id } = createProvider(app.service.ctx, app.a.org, { name: "Acme", docsUrl: "https://docs.example.com" });
  expect(await found(`/providers/${id}`)).toMatch(/>2026-09-01<.* to .*>2026-11-01</);
  for (const path of [`/prompts/${prompt.id}`]) {
    const body = await found(path);
    expect([path, body.includes("Sun 1 Nov 2026, 06:00"), body.includes(`(${zone})`)]).toEqual([path, true, true]);
  }
  const stranger = browse(app);
  const { resultsPath } = updateOrg(app.service.ctx, app.a.org, { hasResultsPage: true });
  const badge = await app.send("GET", new URL(prompt.badgeUrl ?? "").pathname.replace(".svg", ".json"));
  expect((await stranger.get(resultsPath ?? "")).body).toContain(`datetime="2026-11-01"`);
  expect(badge.body.message).toEndWith("2026-11-01");
});
