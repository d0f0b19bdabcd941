import { describe, expect, test } from "bun:test";
import { updateOrg } from "../src/auth/orgs.ts";
import { createPrompt, updatePrompt } from "../src/prompts/prompts.ts";
import { setReportStatus } from "../src/reports/reports.ts";
import { testApp } from "./support/app.ts";
import { browse, signedIn } from "./support/people.ts";
import { evaluation, niceGrade } from "./support/reports.ts";

const goal = { ...niceGrade, outcome: "succeeded", scope: "goal", grade: "B+", score: 88 } as const;
const docsOnly = { ...niceGrade, outcome: "not_judged", scope: "docs_only", grade: null, score: 93 } as const;

function setUp() {
  let at = Date.parse("2026-11-21T09:30:00Z");
  const app = testApp({ now: () => at });
  const { service, a } = app;
  const newPrompt = (title: string | null, isOnResultsPage = true) =>
    createPrompt(service.ctx, a.org, {
      title,
      text: "Say hello. Secret task. https://docs.example.com",
      isOnResultsPage,
    }).id;
  const turn = (hasResultsPage: boolean) => updateOrg(service.ctx, a.org, { hasResultsPage }).resultsPath ?? "";
  const stranger = browse(app);
  return { app, newPrompt, turn, get: stranger.get, pass: (days: number) => (at += days * 24 * 3600_000) };
}

describe("the public results page", () => {
  test("shows everyone with the URL the chosen prompts with grade, trend and method, and nothing else", async () => {
    const { app, newPrompt, turn, get, pass } = setUp();
    const tested = newPrompt("Upload a file");
    const slugs = [88, 90].flatMap((score) => {
      pass(1);
      return evaluation(app, tested, [
        { ...goal, score },
        { ...goal, score },
      ]).map(({ slug }) => slug);
    });
    evaluation(app, newPrompt("Read the docs"), [docsOnly]);
    evaluation(app, newPrompt("Not chosen", false), [docsOnly]);
    newPrompt(null);
    const path = turn(true);
    expect(path).toMatch(/^\/results\/[\w-]{24}$/);
    const { status, headers, body } = await get(path);
    expect(status).toBe(200);
    for (const shown of ["A: results", "Upload a file", "A-", "2 runs", "2026-11-23", "Read the docs", "Docs 93"])
      expect([shown, body.includes(shown)]).toEqual([shown, true]);
    for (const shown of ["Goal not tested", "Say hello", "No result yet", "oldest first: 88, 90"])
      expect([shown, body.includes(shown)]).toEqual([shown, true]);
    expect(body).not.toMatch(/href="\/("|docs"|docs\/api|sign-in|llms)/);
    for (const hidden of ["Not chosen", "Secret task", tested, app.a.org, ...slugs])
      expect([hidden, body.includes(hidden)]).toEqual([hidden, false]);
    expect(headers.get("content-security-policy")).toContain("default-src 'none'");
    expect([headers.get("referrer-policy"), headers.get("x-robots-tag")]).toEqual(["no-referrer", "noindex, nofollow"]);
    expect(headers.get("cache-control")).toStartWith("public, max-age=60");
    const known = await app.app.handle(
      new Request(`http://localhost:3000${path}`, { headers: { "if-none-match": headers.get("etag") ?? "" } }),
    );
    expect(known.status).toBe(304);
  });

  test("hides archived prompts, ignores drafts and previews, and marks old results as outdated", async () => {
    const { app, newPrompt, turn, get, pass } = setUp();
    const id = newPrompt("Upload a file");
    evaluation(app, id, [goal, goal]);
    evaluation(app, id, [{ ...goal, score: 11.5 }], { urlMap: { "docs.example.com": "https://p.example.com" } });
    const path = turn(true);
    expect((await get(path)).body).toContain("88");
    expect((await get(path)).body).not.toMatch(/\(outdated\)|\b11\.5\b/);
    pass(31);
    expect((await get(path)).body).toContain("(outdated)");
    const [run] = evaluation(app, id, [{ ...goal, score: 22.5 }]);
    setReportStatus(app.service.ctx, app.a.org, run?.slug ?? "", "draft");
    expect((await get(path)).body).not.toContain("22.5");
    updatePrompt(app.service.ctx, app.a.org, id, { status: "archived" });
    expect((await get(path)).body).not.toContain("Upload a file");
    updatePrompt(app.service.ctx, app.a.org, id, { status: "active" });
    expect((await get(path)).body).toContain("Upload a file");
    updatePrompt(app.service.ctx, app.a.org, id, { isOnResultsPage: false });
    expect((await get(path)).body).not.toContain("Upload a file");
  });

  test("is off until an owner turns it on, and turning it off revokes the URL for good", async () => {
    const { app, turn, get } = setUp();
    const [owner, admin] = [await signedIn(app), await signedIn(app, { role: "admin" })];
    const form = { name: "A", timeZone: "UTC", maxRunsAtOnce: "", maxRunsADay: "", maxUsdAMonth: "", maxUsdARun: "" };
    const pathIn = (html: string) => /\/results\/[\w-]{24}/.exec(html)?.[0] ?? null;
    expect(pathIn((await owner.get("/settings")).body)).toBeNull();
    expect((await admin.post("/settings", { ...form, hasResultsPage: "on" })).status).toBe(403);
    const path = pathIn((await owner.post("/settings", { ...form, hasResultsPage: "on" })).body) ?? "";
    expect((await get(path)).status).toBe(200);
    // Saving other settings keeps the URL.
    expect(
      pathIn((await owner.post("/settings", { ...form, hasResultsPage: "on", timeZone: "Asia/Tokyo" })).body),
    ).toBe(path);
    expect(pathIn((await owner.post("/settings", form)).body)).toBeNull();
    expect((await get(path)).status).toBe(404);
    const other = turn(true);
    expect(other).not.toBe(path);
    expect([(await get(path)).status, (await get(other)).status]).toEqual([404, 200]);
    for (const none of ["/results/none", "/results/null", `/results/${app.a.org}`])
      expect((await get(none)).status).toBe(404);
  });

  test("has no scores of other organizations", async () => {
    const { app, turn, get } = setUp();
    createPrompt(app.service.ctx, app.b.org, { title: "Of B", text: "x", isOnResultsPage: true });
    expect((await get(turn(true))).body).not.toContain("Of B");
  });
});
