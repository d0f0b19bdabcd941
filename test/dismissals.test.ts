import { expect, test } from "bun:test";
import { createPrompt } from "../src/prompts/prompts.ts";
import { testApp } from "./support/app.ts";
import { evaluation, niceGrade } from "./support/reports.ts";

const print = "00000000000000a1";
const reason = "The page moved on purpose.";

test("dismissed friction stays out of lists and fixes of all reports until the dismissal is undone", async () => {
  const app = testApp();
  const { send, service, a, b } = app;
  const prompt = createPrompt(service.ctx, a.org, { title: "Upload", text: "Upload. https://docs.example.com" });
  const [first] = evaluation(app, prompt.id, [niceGrade]);
  const list = async (more = "") =>
    (await send("GET", `/api/v1/friction?promptId=${prompt.id}${more}`)).body.map(
      ({ fingerprint }: { fingerprint: string }) => fingerprint,
    );
  const dismiss = (body: object, key = a.key) =>
    send("POST", "/api/v1/dismissals", { body, headers: { authorization: `Bearer ${key}` } });
  expect(await list()).toEqual([print]);
  expect((await dismiss({ fingerprints: [print], reason: "  " })).status).toBe(400);
  expect((await dismiss({ fingerprints: ["00000000000000ff"], reason })).status).toBe(404);
  expect((await dismiss({ fingerprints: [print], reason }, b.key)).status).toBe(404);

  const { status, body } = await dismiss({ fingerprints: [print], reason });
  expect([status, body]).toEqual([201, expect.objectContaining({ reason, dismissedBy: 'the API key "test"' })]);
  expect((await dismiss({ fingerprints: [print], reason })).status).toBe(409);
  expect([await list(), await list("&dismissed=true")]).toEqual([[], [print]]);
  const [later] = evaluation(app, prompt.id, [niceGrade]);
  for (const slug of [first?.slug, later?.slug]) {
    const report = (await send("GET", `/api/v1/reports/${slug}`)).body;
    const { dismissedBy, createdAt, id } = body;
    const expected = { id, reason, dismissedBy, createdAt };
    expect([report.frictionPoints[0].dismissed, report.recommendations[0].dismissed]).toEqual([expected, expected]);
    expect(report.score).toBe(niceGrade.score);
  }
  expect((await send("GET", "/api/v1/dismissals")).body).toEqual([body]);

  const undo = (key = a.key) =>
    send("DELETE", `/api/v1/dismissals/${body.id}`, { headers: { authorization: `Bearer ${key}` } });
  expect((await undo(b.key)).status).toBe(404);
  expect([(await undo()).status, (await undo()).status]).toEqual([200, 200]);
  expect([await list(), (await send("GET", "/api/v1/dismissals")).body]).toEqual([[print], []]);
  expect((await send("GET", `/api/v1/reports/${later?.slug}`)).body.recommendations[0].dismissed).toBeNull();
});
