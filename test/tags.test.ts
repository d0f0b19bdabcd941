import { describe, expect, test } from "bun:test";
import { createPrompt } from "../src/prompts/prompts.ts";
import { testApp } from "./support/app.ts";
import { rpc } from "./support/mcp.ts";
import { signedIn } from "./support/people.ts";
import { evaluation, niceGrade } from "./support/reports.ts";

const text = "Upload. https://docs.example.com";

function setUp() {
  const app = testApp();
  const create = (title: string, more: object = {}) =>
    createPrompt(app.service.ctx, app.a.org, { title, text, tags: ["nightly"], ...more }).id;
  const schedule = async (body: object) => await app.send("POST", "/api/v1/prompts/schedule", { body });
  const get = async (path: string) => (await app.send("GET", `/api/v1/${path}`)).body;
  return { ...app, create, schedule, get };
}

describe("the schedule of a tag", () => {
  test("is set on its prompts, except for archived ones and those that can't have it", async () => {
    const { create, schedule, get, send } = setUp();
    const ids = [create("One", { runsPerEval: 3 }), create("Two", { status: "paused" })];
    const other = create("Other", { tags: ["weekly"] });
    const archived = create("Archived");
    await send("PATCH", `/api/v1/prompts/${archived}`, { body: { status: "archived" } });
    const unready = create("Variable", { text: `${text} {{file}}` });
    const { status, body } = await schedule({ tag: "nightly", frequency: "0 3 * * *" });
    expect([status, body]).toEqual([
      200,
      { scheduled: 2, skipped: 1, problems: [{ promptId: unready, detail: expect.stringContaining("file") }] },
    ]);
    const found = async (id: string) => {
      const { frequency, runsPerEval, nextRunsAt } = await get(`prompts/${id}`);
      return [frequency, runsPerEval, nextRunsAt === null];
    };
    expect(await Promise.all([...ids, other, archived, unready].map(found))).toEqual([
      ["0 3 * * *", 3, false],
      ["0 3 * * *", null, true],
      [null, null, true],
      [null, null, true],
      [null, null, true],
    ]);
    expect((await schedule({ tag: "nightly", frequency: null })).body).toEqual({
      scheduled: 3,
      skipped: 0,
      problems: [],
    });
    expect(await found(ids[0] as string)).toEqual([null, 3, true]);
  });

  test.each([
    ["frequency", { tag: "nightly", frequency: "0 0 30 2 *" }],
    ["frequency", { tag: "nightly" }],
    ["tag", { tag: "none", frequency: "daily" }],
  ])("can't have an invalid %s", async (field, body) => {
    const { create, schedule } = setUp();
    create("One");
    const answer = await schedule(body);
    expect([answer.status, answer.body.detail]).toEqual([400, expect.stringContaining(field)]);
  });

  test("changes nothing in another organization", async () => {
    const { create, send, b, get } = setUp();
    const id = create("One");
    const headers = { authorization: `Bearer ${b.key}` };
    const body = { tag: "nightly", frequency: "daily" };
    expect((await send("POST", "/api/v1/prompts/schedule", { body, headers })).status).toBe(400);
    expect((await get(`prompts/${id}`)).frequency).toBeNull();
  });

  test("is changed on its page, after a confirmation", async () => {
    const { create, get, ...app } = setUp();
    const id = create("One");
    const member = await signedIn(app, { role: "member" });
    expect((await member.get("/prompts?tag=nightly")).body).toContain("/prompts/schedule?tag=nightly");
    const form = { tag: "nightly", frequency: "daily" };
    expect((await member.post("/prompts/schedule", form)).status).toBe(200);
    expect((await get(`prompts/${id}`)).frequency).toBeNull();
    const confirmed = { ...form, confirmed: "1" };
    expect((await member.post("/prompts/schedule", confirmed)).body).toContain('role="status"');
    expect((await get(`prompts/${id}`)).frequency).toBe("daily");
    expect((await member.post("/prompts/schedule", { ...confirmed, frequency: "often" })).status).toBe(400);
    const viewer = await signedIn(app, { role: "viewer" });
    expect((await viewer.get("/prompts/schedule")).status).toBe(403);
    expect((await viewer.post("/prompts/schedule", confirmed)).status).toBe(403);
  });
});

test("the trend of a tag has its prompts, without canaries", async () => {
  const { create, get, send, ...app } = setUp();
  const all = { ...app, send };
  for (const [title, score, more] of [
    ["One", 60, {}],
    ["Two", 80, {}],
    ["Canary", 10, { isCanary: true }],
    ["Other", 20, { tags: ["weekly"] }],
  ] as const)
    evaluation(all, create(title, more), [{ ...niceGrade, score }]);
  const { points } = await get("trends?tag=nightly");
  expect(points).toMatchObject([{ prompts: 2, n: 2, score: { mean: 70 } }]);
  expect((await get("trends?tag=weekly")).points).toMatchObject([{ prompts: 1, score: { mean: 20 } }]);
  expect((await get("trends?tag=none")).points).toEqual([]);
  expect(await rpc(all).call("get_trends", { tag: "nightly" })).toMatchObject({ points });
  const promptId = create("Three");
  expect((await send("GET", `/api/v1/trends?tag=nightly&promptId=${promptId}`)).status).toBe(400);
  const member = await signedIn(all, { role: "member" });
  expect((await member.get("/trends?of=nightly")).body).toContain("prompts tagged nightly");
  expect((await member.get(`/trends?of=${promptId}`)).status).toBe(200);
});
