import { Elysia } from "elysia";
import type { Context, OrgId } from "../../context.ts";
import { badRequest, conflict } from "../../errors.ts";
import { count, dollars } from "../../grading/text.ts";
import { getPrompt, updatePrompt } from "../../prompts/prompts.ts";
import { titleOf } from "../../reports/labels.ts";
import { getReport, setReportStatus } from "../../reports/reports.ts";
import type { Estimate } from "../../runs/estimate-schema.ts";
import { getEstimate } from "../../runs/estimates.ts";
import { type EvalSource, requestEval, requestRerun } from "../../runs/requests.ts";
import { getRun, getRunTask } from "../../runs/runs.ts";
import { maxSelected } from "../components/selection.tsx";
import { showPage, submitForm } from "../page-requests.tsx";
import { seeOtherWithToast } from "../page-responses.ts";
import { requireConfirmation } from "../pages/confirm.tsx";
import { toJsonDownload } from "../responses.ts";
import { webSourceOf } from "../viewer.ts";
import { archivingEffect } from "./report-forms.tsx";

/** Field with an idempotency key. With this key, a form that is sent twice starts its runs only once. */
const keyField = "key";
/** Matches fields that represent rows. Their names are slugs of reports or IDs, which end like this. */
const rowNameEnd = /-[0-9a-f]{8,12}$/i;

/** The selected rows of a form. Each of them has a field with its name. Throws bad_request. */
function selectedRowsIn(fields: Iterable<string>): string[] {
  const selected = [...new Set(fields)].filter((name) => rowNameEnd.test(name));
  if (selected.length === 0 || selected.length > maxSelected) throw badRequest(`Select 1 to ${maxSelected} rows.`);
  return selected;
}

/** Runs to start: what they repeat, how many there are, and what they cost. */
type Plan = { title: string; runs: number; estimate: Estimate; start: (key: string) => Promise<unknown> };

const queryFieldsOf = (request: Request) => new URL(request.url).searchParams.keys();

function planRun(ctx: Context, org: OrgId, runId: string, source: EvalSource): Plan {
  const { prompt } = getRun(ctx, org, runId);
  const { task } = getRunTask(ctx, org, runId);
  if (prompt.status === "archived")
    throw conflict(`“${titleOf(prompt)}” is archived. Unarchive it, or deselect its runs.`);
  const estimate = getEstimate(ctx, org, prompt.id, task.chosen);
  const agentCount = 1 + estimate.others.length;
  const start = (key: string) => requestRerun(ctx, org, runId, { ...source, idempotencyKey: `${key}-${runId}` });
  return { title: titleOf(task), runs: agentCount, estimate, start };
}

function planPrompt(ctx: Context, org: OrgId, promptId: string, source: EvalSource): Plan {
  const prompt = getPrompt(ctx, org, promptId);
  if (prompt.templateVars) throw badRequest(`“${titleOf(prompt)}” has variables. Run it from its page.`);
  if (prompt.status === "archived") throw conflict(`“${titleOf(prompt)}” is archived. Unarchive it, or deselect it.`);
  const estimate = getEstimate(ctx, org, promptId);
  const input = { urlMap: {}, runs: null, ...source };
  const start = (key: string) => requestEval(ctx, org, promptId, { ...input, idempotencyKey: `${key}-${promptId}` });
  return { title: titleOf(prompt), runs: estimate.runs * (1 + estimate.others.length), estimate, start };
}

/** Asks for consent to the price, and then starts what was selected. */
const startSelected = (
  ctx: Context,
  request: Request,
  back: string,
  plan: (ctx: Context, org: OrgId, id: string, source: EvalSource) => Plan,
) =>
  submitForm(ctx, request, "run", async (viewer, form) => {
    const plans = selectedRowsIn(form.keys()).map((id) => plan(ctx, viewer.org, id, webSourceOf(viewer)));
    if (!form.has(keyField)) form.set(keyField, crypto.randomUUID());
    const total = plans.reduce((sum, { runs }) => sum + runs, 0);
    requireConfirmation(form, {
      title: `Start ${count(total, "run")}?`,
      consequences: [...Map.groupBy(plans, ({ title }) => title)].map(([title, sameTitle]) =>
        priceText(title, sameTitle),
      ),
      buttonText: `Start ${count(total, "run")}`,
      back,
      isDestructive: false,
    });
    for (const { start } of plans) await start(form.get(keyField) ?? "");
    return seeOtherWithToast(ctx, "/runs", "runsStarted");
  });

/** Actions on the selected rows of a list. */
export const selectionPages = (ctx: Context) =>
  new Elysia({ name: "selection pages" })
    .get("/reports/selected/export", ({ request }) =>
      showPage(ctx, request, ({ org }) =>
        toJsonDownload(
          selectedRowsIn(queryFieldsOf(request)).map((slug) => getReport(ctx, org, slug)),
          "evald-reports",
        ),
      ),
    )
    .get("/runs/selected/export", ({ request }) =>
      showPage(ctx, request, ({ org }) =>
        toJsonDownload(
          selectedRowsIn(queryFieldsOf(request)).map((runId) => getRun(ctx, org, runId)),
          "evald-runs",
        ),
      ),
    )
    .post("/runs/selected/rerun", ({ request }) => startSelected(ctx, request, "/runs", planRun))
    .post("/reports/selected/rerun", ({ request }) =>
      startSelected(ctx, request, "/reports", (ctx, org, slug, source) =>
        planRun(ctx, org, getReport(ctx, org, slug).run.runId, source),
      ),
    )
    .post("/prompts/selected/run", ({ request }) => startSelected(ctx, request, "/prompts", planPrompt))
    .post("/reports/selected/archive", ({ request }) =>
      submitForm(ctx, request, "publish", (viewer, form) => {
        const selected = selectedRowsIn(form.keys()).map((slug) => getReport(ctx, viewer.org, slug));
        requireConfirmation(form, {
          title: `Archive ${count(selected.length, "report")}?`,
          consequences: [archivingEffect, ...selected.map(({ task, slug }) => `${titleOf(task)} (${slug})`)],
          buttonText: "Archive reports",
          back: "/reports",
        });
        for (const { slug } of selected) setReportStatus(ctx, viewer.org, slug, "archived");
        return seeOtherWithToast(ctx, "/reports", "reportsArchived");
      }),
    )
    .post("/prompts/selected/archive", ({ request }) =>
      submitForm(ctx, request, "archive", (viewer, form) => {
        const selected = selectedRowsIn(form.keys()).map((id) => getPrompt(ctx, viewer.org, id));
        requireConfirmation(form, {
          title: `Archive ${count(selected.length, "prompt")}?`,
          consequences: [
            "They can no longer be run, and their schedules stop. Their runs and reports are kept. You can unarchive them later.",
            ...selected.map(titleOf),
          ],
          buttonText: "Archive prompts",
          back: "/prompts",
        });
        for (const { id } of selected) updatePrompt(ctx, viewer.org, id, { status: "archived" });
        return seeOtherWithToast(ctx, "/prompts", "promptsArchived");
      }),
    );

/** "Upload a file: 3 runs, with anthropic/x, at most about $0.42". */
function priceText(title: string, plans: Plan[]): string {
  const runs = plans.reduce((sum, each) => sum + each.runs, 0);
  const agents = plans.flatMap((plan) => {
    const agentsOfPlan = [plan.estimate, ...plan.estimate.others];
    // Each agent has the same number of the plan's runs.
    return agentsOfPlan.map(({ model, costUsd }) => ({ model, costUsd, runs: plan.runs / agentsOfPlan.length }));
  });
  const paidAgents = agents.filter(({ model }) => model !== null);
  if (paidAgents.length === 0) return `${title}: ${count(runs, "run")}, no model costs`;
  const models = [...new Set(paidAgents.map(({ model }) => model))].join(" and ");
  const isUnknown = paidAgents.some(({ costUsd }) => costUsd === null);
  const maxUsd = paidAgents.reduce((sum, { costUsd, runs }) => sum + (costUsd?.high ?? 0) * runs, 0);
  const price = isUnknown ? "an unknown cost" : `most about ${dollars(maxUsd)}`;
  return `${title}: ${count(runs, "run")}, with ${models}, at ${price}`;
}
