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

test("a score without a tested goal is shown without a grade, in lists and in the title of its report", async () => {
  const app = testApp();
  const { id } = createPrompt(app.service.ctx, app.a.org, { title: "Upload", text: "Upload a file." });
  const [{ slug = "" } = {}] = evaluation(app, id, [
    { ...niceGrade, score: 70.3, grade: null, scope: "docs_only", outcome: "not_judged", evidence: null },
  ]);
  const person = await signedIn(app);
  for (const path of ["/prompts", "/reports", "/runs"]) {
    const { body } = await person.get(path);
    expect([path, body.includes("Docs 70.3"), /class="grade[^>]*>–</.test(body)]).toEqual([path, true, false]);
  }
  expect((await person.get("/prompts")).body).toMatch(/class="result"[^>]* title="Docs: /);
  const report = (await person.get(`/reports/${slug}`)).body;
  expect(/<title>([^<]*)/.exec(report)?.[1]).toStartWith("Docs 70.3: Upload");
  expect(report).toContain("Goal not tested");
  expect(report).not.toMatch(/not judged|No score|No grade/i);
});
