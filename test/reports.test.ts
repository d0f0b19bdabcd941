import { expect, test } from "bun:test";
import { createPrompt } from "../src/prompts/prompts.ts";
import { testApp } from "./support/app.ts";
import { rpc } from "./support/mcp.ts";
import { evaluation, niceGrade, runWithReport } from "./support/reports.ts";

type Listed = { slug: string };

/** Five reports of A, one day apart: four of one prompt with scores from 60 to 90 or none, and one of another prompt. */
function listed() {
  let now = Date.UTC(2026, 10, 1, 12);
  const app = testApp({ now: () => now });
  const { id } = createPrompt(app.service.ctx, app.a.org, { title: "First", text: "Read https://docs.example.com" });
  const slugs = [
    { ...niceGrade, score: 60 },
    { ...niceGrade, score: 75, outcome: "succeeded" as const },
    { ...niceGrade, score: 90 },
    { ...niceGrade, score: null, grade: null, nullNotice: "Nobody could.", outcome: "no_creds" as const },
  ].map((grade) => {
    now += 24 * 3600_000;
    return evaluation(app, id, [grade])[0]?.slug ?? "";
  });
  now += 24 * 3600_000;
  slugs.push(runWithReport(app, niceGrade, "Second").slug);
  const list = async (query = "") => {
    const { status, body, headers } = await app.send("GET", `/api/v1/reports${query}`);
    if (status !== 200) return body;
    expect(headers.get("x-total-count")).toMatch(/^\d+$/);
    return body.map(({ slug }: Listed) => slugs.indexOf(slug) + 1);
  };
  return { app, slugs, promptId: id, list };
}

test("reports are listed newest first with each filter, over REST and MCP", async () => {
  const { app, list, promptId, slugs } = listed();
  await app.send("PATCH", `/api/v1/reports/${slugs[0]}`, { body: { status: "archived" } });
  await app.send("PATCH", `/api/v1/reports/${slugs[2]}`, { body: { status: "draft" } });
  const cases: [object, number[]][] = [
    [{}, [5, 4, 3, 2, 1]],
    [{ promptId }, [4, 3, 2, 1]],
    [{ promptId: promptId.toUpperCase(), limit: 2, offset: 1 }, [3, 2]],
    [{ status: "published" }, [5, 4, 2]],
    [{ status: "archived" }, [1]],
    [{ status: "draft", promptId }, [3]],
    [{ outcome: "succeeded" }, [2]],
    [{ agent: "explorer" }, [5, 4, 3, 2, 1]],
    [{ agent: "llm" }, []],
    [{ minScore: 75 }, [5, 3, 2]],
    [{ maxScore: 75, minScore: 60 }, [2, 1]],
    [{ minScore: 74.99, maxScore: 75.5, scope: "goal" }, [2]],
    [{ since: "2026-11-04" }, [5, 4, 3]],
    [{ until: "2026-11-04T12:00:00Z" }, [2, 1]],
    [{ since: "2026-11-04T14:00:00+02:00", until: "2026-11-05T12:00:00.001Z" }, [4, 3]],
  ];
  const { call } = rpc(app);
  for (const [filter, expected] of cases) {
    const query = new URLSearchParams(Object.entries(filter).map(([key, value]) => [key, String(value)]));
    expect([filter, await list(`?${query}`)]).toEqual([filter, expected]);
    const { reports } = await call("list_reports", filter);
    expect([filter, reports.map(({ slug }: Listed) => slugs.indexOf(slug) + 1)]).toEqual([filter, expected]);
  }
  const { headers } = await app.send("GET", "/api/v1/reports?limit=1&agent=explorer");
  expect(headers.get("x-total-count")).toBe("5");
});

test("a row has what is needed to select the report", async () => {
  const { app, promptId, slugs } = listed();
  const { body } = await app.send("GET", "/api/v1/reports?outcome=succeeded");
  expect(body).toEqual([
    {
      slug: slugs[1],
      url: `http://localhost:3000/reports/${slugs[1]}`,
      status: "published",
      prompt: { id: promptId, title: "First" },
      runId: expect.stringMatching(/^[0-9a-f-]{36}$/),
      agent: { id: "explorer", version: "test", model: null, contextDigest: null },
      score: 75,
      scope: "goal",
      evidence: null,
      grade: "C+",
      outcome: "succeeded",
      keyFinding: niceGrade.keyFinding,
      createdAt: "2026-11-03T12:00:00.000Z",
    },
  ]);
});

test.each([
  ["limit=0", "Invalid limit: must be"],
  ["limit=1001", "Invalid limit: must be"],
  ["offset=100001", "Invalid offset: must be"],
  ["promptId=first", "Invalid promptId: must be"],
  ["status=done", "Invalid status: must be"],
  ["minScore=-1", "Invalid minScore: must be"],
  ["minScore=1e1", "Invalid minScore: must be"],
  ["minScore=70.", "Invalid minScore: must be"],
  ["maxScore=100.5", "Invalid maxScore: must be"],
  ["since=2026", "Invalid since: must be"],
  ["status=draft&status=draft", "Invalid status: "],
])("the query %s is rejected", async (query, detail) => {
  const { status, body } = await testApp().send("GET", `/api/v1/reports?${query}`);
  expect([status, body]).toEqual([400, { error: "bad_request", detail: expect.stringContaining(detail) }]);
});

test("a person publishes, withdraws and archives; another organization's report does not exist", async () => {
  const { app, slugs } = listed();
  const path = `/api/v1/reports/${slugs[0]}`;
  const patch = (body: unknown, headers = {}) => app.send("PATCH", path, { body, headers });
  for (const status of ["archived", "draft", "published"]) {
    expect((await patch({ status, other: 1 })).body.status).toBe(status);
    expect((await app.send("GET", path)).body.status).toBe(status);
    expect((await app.send("GET", `/api/v1/runs?reportStatus=${status}`)).body.length).toBe(
      status === "published" ? 5 : 1,
    );
  }
  expect((await patch({ status: "gone" })).body.detail).toStartWith("Invalid status: must be");
  expect((await patch({})).status).toBe(400);
  const foreign = await patch({ status: "archived" }, { authorization: `Bearer ${app.b.key}` });
  expect([foreign.status, foreign.body]).toEqual([
    404,
    { error: "not_found", detail: `No report has the slug ${slugs[0]}.` },
  ]);
  expect((await app.send("GET", path)).body.status).toBe("published");
});
