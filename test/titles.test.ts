import { expect, test } from "bun:test";
import { updateOrg } from "../src/auth/orgs.ts";
import { createPrompt } from "../src/prompts/prompts.ts";
import { getEvalRequest } from "../src/runs/evals.ts";
import { testApp } from "./support/app.ts";
import { rpc } from "./support/mcp.ts";
import { signedIn } from "./support/people.ts";
import { evaluation, niceGrade } from "./support/reports.ts";

const untitled = [
  ["Upload a file to a bucket. Then print its URL.", /^Upload a file to a bucket$/, /^upload-a-file-to-a-bucket$/],
  ["\n\n  Follow the guide!  Then stop", /^Follow the guide!$/, /^follow-the-guide$/],
  ["画像をアップロードする。その後共有する。", /^画像をアップロードする$/, /^[a-z]+(-[a-z]+)*$/],
  ["Загрузить файл. Показать адрес.", /^Загрузить файл$/, /^zagruzit-fayl$/],
  ["Größe ändern", /^Größe ändern$/, /^grosse-andern$/],
  ["🚀", /^🚀$/, /^report$/],
  [`Read the ${"very ".repeat(40)}long guide`, /^Read the (very )+very…$/, /^read-the(-very){6}$/],
  ["長".repeat(200), /^長+…$/, /^[a-z]/],
] as const;

test("prompts without a title are called after their task everywhere, in any script", async () => {
  const app = testApp();
  const { ctx } = app.service;
  const { org } = app.a;
  const ids: string[] = [];
  for (const [text, , slugShape] of untitled) {
    const { id } = createPrompt(ctx, org, { text, isOnResultsPage: true });
    ids.unshift(id);
    const [{ slug = "", evalRequestId = "" } = {}] = evaluation(app, id, [niceGrade]);
    expect(slug.replace(/-[0-9a-f]{8}$/, "")).toMatch(slugShape);
    expect(getEvalRequest(ctx, org, evalRequestId).prompt.title).not.toBe(null);
    // The prompt itself has none.
    expect((await app.send("GET", `/api/v1/prompts/${id}`)).body.title).toBe(null);
  }
  const { body: reports } = await app.send("GET", "/api/v1/reports");
  const names: string[] = reports.map(({ prompt }: { prompt: { title: string } }) => prompt.title);
  for (const [i, [, title]] of untitled.toReversed().entries()) expect(names[i]).toMatch(title);
  expect(Math.max(...names.map((name) => name.length))).toBeLessThanOrEqual(81);
  // A title that is shown can be used.
  const listed = await rpc(app).call("list_reports", { promptId: names[0] });
  expect(listed.reports.map(({ prompt }: { prompt: { id: string } }) => prompt.id)).toEqual([ids[0]]);

  const person = await signedIn(app);
  const { resultsPath } = updateOrg(ctx, org, { hasResultsPage: true });
  const lists = ["/prompts", "/reports", "/trends", "/friction", "/runs", "/gates"];
  for (const path of [...lists, resultsPath ?? ""]) {
    const { body } = await person.get(path);
    const visible = body.replace(/<(script|style)[\s\S]*?<\/\1>/g, "").replace(/<[^>]*>/g, " ");
    const shown = names.filter((name) => visible.includes(name.slice(0, 50)));
    expect([path, ids.some((id) => visible.includes(id)), /Untitled/.test(visible)]).toEqual([path, false, false]);
    if (path !== "/gates") expect([path, shown.length]).toEqual([path, names.length]);
  }
  expect((await person.get("/search?q=guide")).body).toContain("Follow the guide!");
});

/** Other words for the two states, which nothing uses. */
const otherWords = /not judged|unjudged|no score|no grade|untested|unmeasured/i;

test.each([
  [
    "Goal not tested",
    "Docs 70.3",
    /^No grade: the goal was not tested/,
    { score: 70.3, outcome: "not_judged", nullNotice: null },
  ],
  [
    "Not measured",
    "Not measured",
    /^Not measured/,
    { score: null, outcome: "no_creds", nullNotice: "Not measured: no key." },
  ],
] as const)(
  "%s is the only word for its state, on pages, in lists and Markdown, and the API names the same state",
  async (state, title, notice, part) => {
    const app = testApp();
    const { id } = createPrompt(app.service.ctx, app.a.org, {
      title: "Upload",
      text: "Upload a file.",
      isOnResultsPage: true,
    });
    const grade = { ...niceGrade, ...part, grade: null, scope: "docs_only", evidence: null } as const;
    const [{ slug = "", runId = "", evalRequestId = "" } = {}] = evaluation(app, id, [grade]);
    const person = await signedIn(app);
    const { resultsPath } = updateOrg(app.service.ctx, app.a.org, { hasResultsPage: true });
    const lists = ["/prompts", "/reports", "/runs", "/search?q=Upload"];
    const pages = [
      `/reports/${slug}`,
      `/reports/${slug}.md`,
      `/runs/${runId}`,
      `/evals/${evalRequestId}`,
      resultsPath ?? "",
    ];
    for (const path of [...lists, ...pages]) {
      const { status, body } = await person.get(path);
      const visible = body.replace(/<(script|style)[\s\S]*?<\/\1>/g, "").replace(/<[^>]*>/g, " ");
      const shown = [status, body.includes(title), otherWords.test(visible), /class="grade[^>]*>–</.test(body)];
      expect([path, ...shown]).toEqual([path, 200, true, false, false]);
      if (pages.includes(path)) expect([path, body.includes(state)]).toEqual([path, true]);
    }
    expect((await person.get("/prompts")).body).toMatch(/class="result"[^>]* title="Docs: /);
    const report = (await person.get(`/reports/${slug}`)).body;
    expect(/<title>([^<]*)/.exec(report)?.[1]).toStartWith(`${title}: Upload`);
    const { nullNotice } = await rpc(app).call("get_report", { slug });
    expect(nullNotice).toMatch(notice);
    expect((await app.send("GET", `/api/v1/reports/${slug}`)).body.nullNotice).toBe(nullNotice);
  },
);
