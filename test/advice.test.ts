import { afterAll, describe, expect, test } from "bun:test";
import { fixBrief } from "../src/reports/fix-brief.ts";
import type { Report } from "../src/reports/schema.ts";
import { createShare } from "../src/shares/shares.ts";
import { goal, guessedPathAnswer, guessedPathSession, guide } from "./support/guessed-path.ts";
import { judgedApp, says } from "./support/judged.ts";
import { signedIn } from "./support/people.ts";

const sample = "curl -d 'Hello' https://notes.example/v1/notes";

/** A report on docs whose only mistake is the path in the guide's sample. */
async function reportOf(way: "command" | "request") {
  const app = judgedApp({ turns: [says(guessedPathAnswer())], sessions: [guessedPathSession(way)] });
  const { report } = await app.run({ endGoal: goal, text: "Add a note. https://docs.notes.example/" });
  return { app, report: report as Report };
}

describe.each(["command", "request"] as const)("a wrong path in a sample, sent with a %s", async (way) => {
  const { app, report } = await reportOf(way);
  afterAll(app.stop);

  test("is one friction point and one fix that names the line of the guide", () => {
    const { frictionPoints, recommendations } = report;
    expect(frictionPoints.map(({ url, category }) => [url, category])).toEqual([[guide, "misleading_docs"]]);
    expect(recommendations).toHaveLength(1);
    expect(recommendations[0]).toMatchObject({
      priority: 1,
      url: guide,
      evidence: { url: guide, line: 7, found: "/v1/notes", expected: "/api/notes", text: sample },
    });
  });

  test("is proven by what was read, what failed, what was guessed and what worked", () => {
    const steps = report.recommendations[0]?.evidence?.steps ?? [];
    expect(steps.map(({ role, what, status }) => [role, what, status])).toEqual([
      ["read", "Add a note", null],
      ["failed", "POST /v1/notes", 404],
      ["guessed", "POST /api/v1/notes", 404],
      ["guessed", "POST /notes", 404],
      ["worked", "POST /api/notes", 201],
    ]);
    const events = steps.map(({ event }) => event);
    expect(events).toEqual(events.toSorted((a, b) => a - b));
  });

  test("owns the points that it costs, and the points of all owners add up to the loss", () => {
    const { lost, score, recommendations } = report;
    const own = recommendations.reduce((sum, { lostPoints }) => sum + (lostPoints ?? 0), 0);
    expect(own).toBeGreaterThan(5);
    expect(lost).toMatchObject({ fixes: own, agent: 0 });
    const { fixes = 0, agent = 0, network = 0, unmeasured = 0 } = lost ?? {};
    expect(fixes + agent + network + unmeasured).toBeCloseTo(100 - (score ?? 0), 5);
  });
});

describe("the page of a report", async () => {
  const { app, report } = await reportOf("command");
  const member = await signedIn(app, { role: "member" });
  afterAll(app.stop);
  const path = `/reports/${report.slug}`;
  const print = report.frictionPoints[0]?.fingerprint ?? "";

  test("starts with the fix: its page and line, the change, and a link to each event", async () => {
    const { body } = await member.get(path);
    expect(body.indexOf('id="fix-1"')).toBeLessThan(body.indexOf('id="dimensions"'));
    expect(body).toContain(`<del>- ${sample}</del>`);
    for (const { event } of report.recommendations[0]?.evidence?.steps ?? [])
      expect(body).toContain(`#e${event}">event ${event}</a>`);
  });

  test("gives every lost point a cause", async () => {
    const { body } = await member.get(path);
    const segments = [...body.matchAll(/data-segment="(\w+)" data-points="([\d.]+)"/g)];
    expect(segments.map(([, kind]) => kind)).toEqual(["score", "fix"]);
    expect(segments.reduce((sum, [, , points]) => sum + Number(points), 0)).toBeCloseTo(100, 5);
  });

  test("claims a verified fix only if its price was accepted", async () => {
    const runs = async () => (await app.send("GET", "/api/v1/runs")).body.length;
    const before = await runs();
    const done = `${path}/done/${print}`;
    expect((await member.get(path)).body).toContain(`action="${done}"`);
    expect([(await member.post(done)).status, await runs()]).toEqual([400, before]);
    expect((await member.post(done, { agreed: "on" })).location).toEndWith(`${path}#advice`);
    expect(await runs()).toBe(before + 1);
  });

  test("dismisses a fix with a reason, names who did it, and undoes it", async () => {
    const form = { fingerprint: print, reason: "Not our docs." };
    expect((await member.post(`${path}/dismissals`, { ...form, reason: " " })).status).toBe(400);
    expect((await member.post(`${path}/dismissals`, form)).location).toEndWith(`${path}#advice`);
    const { body } = await member.get(path);
    const [, undo = ""] = /action="([^"]+\/undo)"/.exec(body) ?? [];
    expect([
      body.includes('id="fix-1"'),
      body.includes("Not our docs."),
      body.includes('data-segment="dismissed"'),
    ]).toEqual([false, true, true]);
    expect((await member.post(undo)).status).toBe(303);
    expect((await member.get(path)).body).toContain('id="fix-1"');
  });

  test("offers a brief with the page, the line and the change for a coding agent", () => {
    const brief = fixBrief(report);
    for (const words of [guide, "line 7", `- ${sample}`, "/api/notes", "404", report.prompt.id])
      expect(brief).toContain(words);
    expect(fixBrief(report, { hasAccess: false })).not.toContain(report.prompt.id);
  });

  test("names the product, the organization and the expiry when it is shared", async () => {
    const { url, expiresAt } = createShare(app.service.ctx, app.a.org, report.slug, { days: 7, withSession: false });
    const { body } = await app.send("GET", new URL(url).pathname, { headers: { authorization: "" } });
    for (const words of ["docs.notes.example", 'Shared by <span dir="auto" lang>A</span>.', `datetime="${expiresAt}"`])
      expect(body).toContain(words);
    expect(body).not.toContain(report.prompt.id);
  });
});

describe("the session of a report", async () => {
  const { app, report } = await reportOf("command");
  afterAll(app.stop);
  const path = `/reports/${report.slug}/session`;

  test("is shown as turns: thought, call and result together, with usage folded", async () => {
    const { body } = await app.send("GET", path);
    const turns = body.split('<li class="agent-turn').slice(1) as string[];
    const guess = turns.find((turn) => turn.includes("I try /v1/notes")) ?? "";
    const types = [...guess.matchAll(/class="event-(\w+)/g)].map(([, type]) => type);
    expect(types).toEqual(["thought", "tool_call", "http", "tool_result", "usage"]);
    expect(guess).toStartWith(" failed");
    expect(guess.indexOf('class="quiet"')).toBeLessThan(guess.indexOf("event-usage"));
  });

  test("shows as many failures as the report counts", async () => {
    const { body } = await app.send("GET", path);
    expect(report.metrics.errors).toBe(3);
    expect(body).toContain(`</i> ${report.metrics.errors} failures`);
  });
});
