import { expect, test } from "bun:test";
import { createExplorer } from "../src/agents/explorer/explorer.ts";
import { createPrompt } from "../src/prompts/prompts.ts";
import { testApp } from "./support/app.ts";
import { signedIn } from "./support/people.ts";
import { niceGrade, runWithReport } from "./support/reports.ts";
import { serveSite } from "./support/site.ts";

const sample = (language: string, code: string) => `\n\n\`\`\`${language}\n${code}\n\`\`\``;
const markdown = (body: string) => ({ body, type: "text/markdown" });

test("a report lists the samples whose language can't be parsed, wherever it is shown", async () => {
  const site = serveSite({
    "/": markdown(
      `# Ledgers\n\n[Close a ledger](/close)${sample("cobol", "CLOSE LEDGER")}${sample("text", "closed")}${sample("json", "{}")}`,
    ),
    "/close": markdown(
      `# Close a ledger\n\nThis closes it.${sample("<b>abap</b>", "CLOSE.")}${sample("cobol", "CLOSE 1")}${sample("cobol", "CLOSE 2")}`,
    ),
  });
  const app = testApp({
    agent: createExplorer({ version: "test" }),
    env: { EVALD_ALLOW_PRIVATE: `127.0.0.1:${site.port}` },
  });
  const { id } = createPrompt(app.service.ctx, app.a.org, { text: `Close a ledger. ${site.url}/` });
  await app.send("POST", `/api/v1/prompts/${id}/run`, { body: { urlMap: {} } });
  await app.runJobs();
  site.stop();
  const { body: reports } = await app.send("GET", "/api/v1/reports");
  const { slug } = reports[0];
  const { body: report } = await app.send("GET", `/api/v1/reports/${slug}`);
  expect(report.notChecked[0]).toEqual({ language: "cobol", samples: 3 });
  expect(report.notChecked.map(({ language }: { language: string }) => language)).not.toContainAnyValues([
    "text",
    "json",
  ]);
  const person = await signedIn(app, { role: "viewer" });
  expect((await person.get(`/reports/${slug}`)).body).toContain("3 in cobol");
  expect((await person.get(`/reports/${slug}.md`)).body).toContain("3 in cobol");
});

test("labels of samples are text, and a report without such samples doesn't mention them", async () => {
  const app = testApp();
  const person = await signedIn(app, { role: "viewer" });
  const pagesOf = async (notChecked: { language: string; samples: number }[]) => {
    const { slug } = runWithReport(app, { ...niceGrade, notChecked });
    return Promise.all(["", ".md"].map(async (form) => (await person.get(`/reports/${slug}${form}`)).body));
  };
  const [html, text] = await pagesOf([{ language: "<b>*abap*</b>", samples: 1 }]);
  expect(html).toContain("1 in &lt;b>*abap*&lt;/b>");
  expect(text).toContain("1 in \\<b>\\*abap\\*\\</b>");
  for (const page of await pagesOf([])) expect(page).not.toContain("not checked");
});
