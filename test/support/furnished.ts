import { advanceGates } from "../../src/gates/progress.ts";
import { createPrompt, updatePrompt } from "../../src/prompts/prompts.ts";
import { createProvider } from "../../src/providers/providers.ts";
import { requestEval } from "../../src/runs/requests.ts";
import { createSuitePrompts } from "../../src/suites/members.ts";
import { createSuite } from "../../src/suites/suites.ts";
import { answer, judgedApp, says } from "./judged.ts";
import { evaluation, finishRuns, judge, niceGrade, steps } from "./reports.ts";

/** A text that looks like an API key, as someone may paste into a prompt. */
export const secret = "evals_0123456789abcdefghijABCDEFGHIJ012345";

/**
 * An organization with everything that can be exported: judged sessions, several gradings, failed and superseded runs,
 * drafts, a schedule.
 */
export async function furnished(more: Record<string, string> = {}) {
  const env = {
    ...more,
    EVALD_METHODOLOGY: JSON.stringify({
      id: "acme-1",
      weights: {
        "Goal achievement": 50,
        "Docs discoverability": 10,
        "Docs quality": 10,
        "Error recovery": 10,
        Efficiency: 10,
        Autonomy: 10,
      },
    }),
  };
  const app = judgedApp({ turns: [says(answer())], env });
  const { service, a } = app;
  const { report } = await app.run();
  await app.send("POST", "/api/v1/regrades", {
    body: { since: "2020-01-01", methodology: "3", judge: "openai-compatible/agent", repeats: 2, maxUsd: 1 },
  });
  await app.runJobs();
  const { body: called } = await app.send("POST", "/api/v1/regrades", { body: { since: "0001-01-01" } });
  await app.send("POST", `/api/v1/regrades/${called.regradeId}/cancel`);
  const provider = createProvider(service.ctx, a.org, { name: "Acme", docsUrl: "https://docs.acme.dev/" });
  const slot = { slot: "upload", title: "Upload", text: "Upload a file with {{product}}.", endGoal: null };
  createSuite(service.ctx, a.org, {
    ...{ id: "storage", version: 1, title: "Storage", limits: { toolCalls: 80 }, agents: null },
    slots: [{ ...slot, declaredChecks: [{ url: "https://docs.acme.dev/", contains: "Acme" }] }],
  });
  createSuitePrompts(service.ctx, a.org, "storage", { providerId: provider.id, values: { product: "Acme" } });
  const prompt = createPrompt(service.ctx, a.org, {
    title: "Nightly",
    text: `Upload a {{thing}}. Key: ${secret}`,
    frequency: "daily",
    templateDefaults: { thing: "file" },
    targetProviderId: provider.id,
    additionalUrls: [{ url: "https://docs.acme.dev/llms.txt", ...{ note: { any: ["thing", 1, null] } } }],
    declaredChecks: [{ url: "https://docs.acme.dev/", contains: "Acme" }],
    reviewBeforePublishing: true,
  });
  const args = { templateArgs: { thing: "file" } };
  const session = steps("Upload", 120);
  const grades = [{ ...niceGrade, judge }, niceGrade, "infrastructure: no network"];
  const drafts = evaluation(app, prompt.id, grades, args, session);
  updatePrompt(service.ctx, a.org, prompt.id, { baselineRequestId: drafts[0]?.evalRequestId });
  evaluation(app, prompt.id, ["timeout: too long"], {
    ...args,
    urlMap: { "docs.acme.dev": "https://preview.example" },
  });
  evaluation(
    app,
    prompt.id,
    [{ ...niceGrade, score: null, grade: null, nullNotice: "None.", outcome: "no_creds" }],
    args,
    session,
  );
  const gate = (more: object) => app.send("POST", "/api/v1/gates", { body: { promptId: prompt.id, ...args, ...more } });
  await gate({ urlMap: { "docs.acme.dev": "https://preview.example" }, runs: 2, minScore: 60 });
  await gate({ runs: 1 });
  finishRuns(app, ({ urlMap }) => (Object.keys(urlMap).length > 0 ? 55 : 78), 0.02);
  await advanceGates(service.ctx);
  // Unfinished, so not exported.
  await gate({ runs: 1 });
  await requestEval(service.ctx, a.org, prompt.id, { urlMap: {}, trigger: "api", ...args });
  return { ...app, slug: report.slug as string, draft: drafts[0]?.slug ?? "" };
}
