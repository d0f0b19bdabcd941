import { Elysia } from "elysia";
import { listMembers } from "../../auth/members.ts";
import type { Context } from "../../context.ts";
import {
  countDeleted,
  deleteOrg,
  deletePrompt,
  deleteReport,
  deleteRun,
  eraseNow,
  getDeletion,
  listDeletions,
  restore,
} from "../../deletions/deletions.ts";
import { getRetention, setRetention } from "../../deletions/retention.ts";
import { RetentionPatch } from "../../deletions/schema.ts";
import { downloadExport } from "../../exchange/download.ts";
import { exportQuery } from "../../exchange/schema.ts";
import { count } from "../../grading/text.ts";
import { getPromptRow } from "../../prompts/prompts.ts";
import { titleOf } from "../../reports/labels.ts";
import { getReport } from "../../reports/reports.ts";
import { getRun } from "../../runs/runs.ts";
import { readForm } from "../form-values.ts";
import { showPage, submitForm, submitOrShowAgain } from "../page-requests.tsx";
import { seeOther, seeOtherWithToast } from "../page-responses.ts";
import { requireConfirmation } from "../pages/confirm.tsx";
import { DataPage } from "../pages/data.tsx";
import type { FormResult } from "../pages/settings.tsx";
import { queryOptions } from "../query.ts";
import type { Site } from "../site.ts";
import { may, type Viewer } from "../viewer.ts";

const dayMs = 24 * 3600_000;
const path = "/settings/data";
const exportPath = `${path}/export`;
const maxDeletions = 100;
const restorable = "It disappears at once. You can restore it for 24 hours; then it is erased for good.";

const dataPage = (ctx: Context, viewer: Viewer, site: Site, result: FormResult = {}) => (
  <DataPage
    {...{ site, viewer, ...result }}
    retention={getRetention(ctx, viewer.org)}
    defaultDays={ctx.config.keepSessionsMs === null ? null : Math.round(ctx.config.keepSessionsMs / dayMs)}
    deletions={listDeletions(ctx, viewer.org, { limit: maxDeletions, offset: 0 }).items}
    mayChange={may(viewer, "organization")}
    mayDelete={may(viewer, "delete")}
  />
);

/** Retention, deleted items and the deletion of the organization. */
const dataSettingsPages = (ctx: Context) =>
  new Elysia({ name: "data settings pages" })
    .get(path, ({ request }) => showPage(ctx, request, (viewer, site) => dataPage(ctx, viewer, site)))
    .post(path, ({ request }) =>
      submitOrShowAgain(ctx, request, "organization", dataPage, (viewer, form, site) => {
        setRetention(ctx, viewer.org, readForm(RetentionPatch, form));
        return dataPage(ctx, viewer, site, { successMessage: "Retention saved." });
      }),
    )
    .get(
      exportPath,
      ({ request, query }) => showPage(ctx, request, ({ org }) => downloadExport(ctx, org, query)),
      queryOptions({ promptId: exportQuery.promptId, runId: exportQuery.runId }),
    )
    .post(`${path}/delete`, ({ request }) =>
      submitForm(ctx, request, "organization", async (viewer, form) => {
        const { prompts, runs, reports } = countDeleted(ctx, viewer.org);
        const members = listMembers(ctx, viewer.org).length;
        requireConfirmation(form, {
          title: `Delete ${viewer.orgName}?`,
          consequences: [
            `${count(prompts, "prompt")}, ${count(runs, "run")} and ${count(reports, "report")} are deleted, and all API keys stop working.`,
            `${count(members, "member")} ${members === 1 ? "loses" : "lose"} access at once.`,
            "An owner can restore it for 7 days on the account page. Then it is erased for good.",
          ],
          typed: viewer.orgName,
          link: { text: "Export everything first", path: exportPath },
          buttonText: "Delete organization",
          back: path,
        });
        await deleteOrg(ctx, viewer.org, viewer.person.name);
        return seeOther(ctx, "/account?done=deletedOrg");
      }),
    )
    .post("/deletions/:deletionId/restore", ({ request, params }) =>
      submitForm(ctx, request, "delete", async (viewer) => {
        const { kind, subjectId } = await restore(ctx, viewer.org, params.deletionId);
        return seeOtherWithToast(ctx, `/${kind === "run" ? "runs" : "prompts"}/${subjectId}`, "itemRestored");
      }),
    )
    .post("/deletions/:deletionId/erase", ({ request, params }) =>
      submitForm(ctx, request, "delete", async (viewer, form) => {
        const { title } = getDeletion(ctx, viewer.org, params.deletionId);
        requireConfirmation(form, {
          title: `Erase “${title}” now?`,
          consequences: ["It can’t be restored."],
          buttonText: "Delete now",
          back: path,
        });
        await eraseNow(ctx, viewer.org, params.deletionId);
        return seeOtherWithToast(ctx, path, "itemErased");
      }),
    );

/** Pages about kept and deleted data: the settings, and the forms that delete prompts, runs and reports. */
export const dataPages = (ctx: Context) =>
  new Elysia({ name: "data pages" })
    .use(dataSettingsPages(ctx))
    .post("/prompts/:promptId/delete", ({ request, params }) =>
      submitForm(ctx, request, "delete", async (viewer, form) => {
        const prompt = getPromptRow(ctx, viewer.org, params.promptId);
        const { runs, reports } = countDeleted(ctx, viewer.org, prompt.id);
        requireConfirmation(form, {
          title: `Delete “${titleOf(prompt)}”?`,
          consequences: [
            `${count(runs, "run")} and ${count(reports, "report")} are deleted with it. Its schedule stops, and unfinished runs are cancelled.`,
            restorable,
          ],
          typed: titleOf(prompt),
          link: { text: "Export it first", path: `${exportPath}?promptId=${prompt.id}` },
          buttonText: "Delete prompt",
          back: `/prompts/${prompt.id}`,
        });
        const { id } = await deletePrompt(ctx, viewer.org, prompt.id, viewer.person.name);
        return seeOtherWithToast(ctx, "/prompts", "promptDeleted", id);
      }),
    )
    .post("/runs/:runId/delete", ({ request, params }) =>
      submitForm(ctx, request, "delete", async (viewer, form) => {
        const { runId, report, completedAt } = getRun(ctx, viewer.org, params.runId);
        requireConfirmation(form, {
          title: "Delete this run?",
          consequences: [
            `Its session${report ? " and its report are" : " is"} deleted with it, and it no longer counts toward scores and trends.`,
            restorable,
          ],
          link: completedAt === null ? undefined : { text: "Export it first", path: `${exportPath}?runId=${runId}` },
          buttonText: "Delete run",
          back: `/runs/${runId}`,
        });
        const { id } = await deleteRun(ctx, viewer.org, runId, viewer.person.name);
        return seeOtherWithToast(ctx, "/runs", "runDeleted", id);
      }),
    )
    .post("/reports/:slug/delete", ({ request, params }) =>
      submitForm(ctx, request, "delete", async (viewer, form) => {
        const { slug, task, run } = getReport(ctx, viewer.org, params.slug);
        requireConfirmation(form, {
          title: `Delete the report for “${titleOf(task)}”?`,
          consequences: [
            "Its run and session are deleted with it, and it no longer counts toward scores and trends. Its share links stop working.",
            restorable,
          ],
          link: { text: "Export it first", path: `${exportPath}?runId=${run.runId}` },
          buttonText: "Delete report",
          back: `/reports/${slug}`,
        });
        const { id } = await deleteReport(ctx, viewer.org, slug, viewer.person.name);
        return seeOtherWithToast(ctx, "/reports", "runDeleted", id);
      }),
    );
