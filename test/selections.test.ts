import { describe, expect, test } from "bun:test";
import { getReport } from "../src/reports/reports.ts";
import { countRuns } from "../src/runs/runs.ts";
import { testApp } from "./support/app.ts";
import { signedIn } from "./support/people.ts";
import { evaluation, niceGrade } from "./support/reports.ts";

const app = testApp({ env: { OPENAI_API_KEY: "sk-test" } });
const make = (title: string, more = {}) =>
  app.service.prompts.createPrompt(app.a.org, { title, text: "Do it. https://docs.example.com", ...more }).id;
const [upload, stream] = [make("Upload"), make("Stream")];
const [one, two, failed] = evaluation(app, upload, [niceGrade, niceGrade, "timeout: too slow"]);
const owner = await signedIn(app);
const member = await signedIn(app, { role: "member" });
const viewer = await signedIn(app, { role: "viewer" });
const on = (...names: (string | undefined)[]) => Object.fromEntries(names.map((name) => [name ?? "", "1"]));
/** The hidden fields of the form of a page. */
const hiddenOf = (page: string, html = page.slice(page.indexOf(`class="confirm"`))) =>
  Object.fromEntries(
    [...html.matchAll(/<input type="hidden" name="([^"]+)" value="([^"]*)"/g)].map(([, name, value]) => [name, value]),
  );
const runCount = () => countRuns(app.service.ctx, app.a.org);

describe("selected rows", () => {
  test("are checkboxes in a form, whose buttons depend on the role", async () => {
    const actions = async (who: typeof owner, path: string) =>
      [...(await who.get(path)).body.matchAll(/formaction="([^"]+)" formmethod="(\w+)"/g)].map(
        ([, path, method]) => `${method} ${path}`,
      );
    expect(await actions(owner, "/reports")).toEqual([
      "get /compare",
      "get /reports/selected/export",
      "post /reports/selected/rerun",
      "post /reports/selected/archive",
    ]);
    expect(await actions(viewer, "/reports")).toEqual(["get /compare", "get /reports/selected/export"]);
    expect(await actions(member, "/prompts")).toEqual(["post /prompts/selected/run"]);
    expect(await actions(viewer, "/prompts")).toEqual([]);
    expect(await actions(viewer, "/runs")).toEqual(["get /compare", "get /runs/selected/export"]);
    for (const path of ["/reports", "/runs", "/prompts"])
      expect([path, (await owner.get(path)).body.includes('type="checkbox" id="select-')]).toEqual([path, true]);
    for (const path of ["/reports/selected/archive", "/reports/selected/rerun", "/prompts/selected/archive"])
      expect([path, (await viewer.post(path, on(one?.slug))).status]).toEqual([path, 403]);
  });

  test("are compared and exported, runs by their reports", async () => {
    const compared = await viewer.get(`/compare?madeFor=x&${one?.runId}=1&${two?.runId}=1`);
    expect(compared.location).toBe(`/compare?slugs=${two?.slug}%2C${one?.slug}`);
    const reports = await viewer.get(`/reports/selected/export?${one?.slug}=1&${two?.slug}=1`);
    expect(reports.headers.get("content-disposition")).toContain("attachment");
    expect(reports.body.map(({ slug }: { slug: string }) => slug)).toEqual([one?.slug, two?.slug]);
    const runs = await viewer.get(`/runs/selected/export?${failed?.runId}=1`);
    expect(runs.body.map(({ status }: { status: string }) => status)).toEqual(["failed"]);
    expect((await viewer.get("/reports/selected/export")).status).toBe(400);
    const foreign = await signedIn(app, { org: app.b.org });
    expect((await foreign.get(`/reports/selected/export?${one?.slug}=1`)).status).toBe(404);
  });

  test("of reports are archived after a question that names them", async () => {
    const asked = await owner.post("/reports/selected/archive", on(one?.slug, two?.slug));
    expect(asked.status).toBe(200);
    for (const each of [one, two]) expect(asked.body).toContain(each?.slug);
    expect(getReport(app.service.ctx, app.a.org, one?.slug ?? "").status).toBe("published");
    const done = await owner.post("/reports/selected/archive", { ...hiddenOf(asked.body), confirmed: "1" });
    expect([done.status, done.location]).toEqual([303, "/reports"]);
    for (const each of [one, two])
      expect(getReport(app.service.ctx, app.a.org, each?.slug ?? "").status).toBe("archived");
    expect((await owner.post("/reports/selected/archive")).status).toBe(400);
  });

  test("start runs once, after consent to their number and price", async () => {
    const before = runCount();
    const asked = await member.post("/runs/selected/rerun", on(one?.runId, failed?.runId));
    expect(asked.body).toContain("Start 2 runs");
    expect(runCount()).toBe(before);
    const fields = { ...hiddenOf(asked.body), confirmed: "1" };
    for (const _ of [1, 2]) expect((await member.post("/runs/selected/rerun", fields)).location).toBe("/runs");
    expect(runCount()).toBe(before + 2);
    const several = make("Several", { runsPerEval: 3 });
    const run = await member.post("/prompts/selected/run", on(stream, several));
    expect(run.body).toContain("Start 4 runs");
    await member.post("/prompts/selected/run", { ...hiddenOf(run.body), confirmed: "1" });
    expect(runCount()).toBe(before + 6);
    const open = make("With a variable", { text: "Use {{name}}. https://docs.example.com" });
    expect((await member.post("/prompts/selected/run", on(open))).status).toBe(400);
  });

  test("of prompts are archived by admins only, and no longer run", async () => {
    expect((await member.post("/prompts/selected/archive", on(upload))).status).toBe(403);
    const asked = await owner.post("/prompts/selected/archive", on(upload));
    await owner.post("/prompts/selected/archive", { ...hiddenOf(asked.body), confirmed: "1" });
    expect(app.service.prompts.getPrompt(app.a.org, upload).status).toBe("archived");
    expect((await owner.post("/runs/selected/rerun", on(one?.runId))).status).toBe(409);
  });
});
