import { describe, expect, test } from "bun:test";
import type { AgentEvent, SessionEvent } from "../src/agents/agent.ts";
import { readMilestone } from "../src/agents/milestones.ts";
import { gradeSession } from "../src/grading/score.ts";
import { readSession } from "../src/reports/session-events.ts";
import { bad } from "./fixtures/grading/wayward.ts";
import { judgedApps } from "./support/judged.ts";
import { signedIn } from "./support/people.ts";

const { judged } = judgedApps();
const toAgentEvent = ({ seq: _, at: __, tMs: ___, source: ____, ...event }: SessionEvent) => event as AgentEvent;

const sound = bad.map(toAgentEvent);
const unknown = { name: "celebrated", detail: { cake: "<b>two</b>" } };
// If missing fields were guessed, the goal's answer would be replaced and a page added.
const malformed = [
  { name: "goal_answer", detail: { state: "unclear", pages: "many" } },
  { name: "page_read", detail: { url: "http://docs.acme.dev/never" } },
];
const odd = [unknown, ...malformed].map((fields) => ({ type: "milestone", ...fields }) as unknown as AgentEvent);
const sessions = [sound, [...sound.slice(0, -1), ...odd, ...sound.slice(-1)]];

describe("a stored milestone that is unknown or malformed", () => {
  const runBoth = async () => {
    const app = judged({ turns: [], judge: null, kind: "rules", sessions });
    return { app, before: await app.run(), after: await app.run() };
  };

  test("does not affect the grade of the session", async () => {
    const { app, before, after } = await runBoth();
    const { score, dimensions, metrics, keyFinding, verdict, frictionPoints } = after.report;
    const titles = (points: { title: string }[]) => points.map(({ title }) => title);
    expect({ score, dimensions, keyFinding, verdict }).toEqual({
      score: before.report.score,
      dimensions: before.report.dimensions,
      keyFinding: before.report.keyFinding,
      verdict: before.report.verdict,
    });
    expect(metrics.errors).toBe(before.report.metrics.errors);
    expect(titles(frictionPoints)).toEqual(titles(before.report.frictionPoints));
    const stored = readSession(app.db, { orgId: app.a.org, runId: after.run.runId, attempt: 1 });
    expect(gradeSession(stored).score).toBe(before.report.score);
  });

  test("is kept and shown as it was stored, in the trace and on pages", async () => {
    const { app, after } = await runBoth();
    const unreadable = after.trace.filter(({ name }: { name?: unknown }) => name === null);
    expect(unreadable.map(({ raw }: { raw: unknown }) => raw)).toEqual([unknown, ...malformed]);
    const rows = app.db.$client
      .query<{ data: string }, [string]>("select data from session_events where run_id = ? and type = 'milestone'")
      .all(after.run.runId);
    expect(rows.map(({ data }) => JSON.parse(data))).toContainEqual(unknown);

    const { get } = await signedIn(app);
    const path = `/reports/${after.report.slug}/session`;
    const { body } = await get(path);
    expect(body).toContain("Unreadable milestone · {&quot;name&quot;:&quot;celebrated&quot;");
    const event = (await get(`${path}/${unreadable[0].seq}`)).body;
    expect(event).toContain("<dt>raw</dt>");
    expect(event.replace(/<span class="\w">|<\/span>/g, "")).toContain(
      "{\n  &quot;name&quot;: &quot;celebrated&quot;,\n  &quot;detail&quot;: {\n    &quot;cake&quot;: &quot;&lt;b>two&lt;/b>&quot;\n  }\n}",
    );
    expect(event).not.toContain("<b>two");
  });
});

test("a milestone that was unreadable when it was stored is read as the same one", () => {
  const once = readMilestone({ type: "milestone", ...unknown });
  expect(once).toEqual({ type: "milestone", name: null, raw: unknown });
  expect(readMilestone(once)).toEqual(once);
});

test.each(["constructor", "__proto__", "", 7, null])("the milestone name %p is unknown", (name) => {
  expect(readMilestone({ name, detail: {} })).toMatchObject({ name: null });
});
