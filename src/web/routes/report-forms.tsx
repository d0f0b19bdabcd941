import { Elysia } from "elysia";
import type { Context } from "../../context.ts";
import { reportStatuses } from "../../db/tables/reports.ts";
import { badRequest } from "../../errors.ts";
import { pinGrading } from "../../reports/gradings.ts";
import { titleOf } from "../../reports/labels.ts";
import { getReport, setReportStatus } from "../../reports/reports.ts";
import { listShares, revokeShare } from "../../shares/shares.ts";
import { formatZoned } from "../components/when.tsx";
import { submitForm } from "../page-requests.tsx";
import { seeOther, seeOtherWithToast } from "../page-responses.ts";
import { requireConfirmation } from "../pages/confirm.tsx";

/** The effects of archiving reports. */
export const archivingEffect =
  "Archived reports no longer count toward scores, trends, friction and baselines, and their share links stop working. You can publish them again.";

/** Forms of a report that change it or its share links. */
export const reportForms = (ctx: Context) =>
  new Elysia({ name: "report forms" })
    .post("/reports/:slug/status", ({ request, params }) =>
      submitForm(ctx, request, "publish", (viewer, fields) => {
        const status = reportStatuses.find((each) => each === fields.get("status"));
        if (!status) throw badRequest(`The status must be one of ${reportStatuses.join(", ")}.`);
        const path = `/reports/${params.slug}`;
        const { task, status: before } = getReport(ctx, viewer.org, params.slug);
        if (status === "archived" && before !== "archived")
          requireConfirmation(fields, {
            title: `Archive the report for “${titleOf(task)}”?`,
            consequences: [archivingEffect],
            buttonText: "Archive report",
            back: path,
          });
        setReportStatus(ctx, viewer.org, params.slug, status);
        return status === "archived" ? seeOtherWithToast(ctx, path, "reportArchived") : seeOther(ctx, path);
      }),
    )
    .post("/reports/:slug/grading", ({ request, params }) =>
      submitForm(ctx, request, "publish", (viewer, fields) => {
        pinGrading(ctx, viewer.org, params.slug, fields.get("grading") || null);
        return seeOther(ctx, `/reports/${params.slug}#gradings`);
      }),
    )
    .post("/reports/:slug/shares/:shareId/revoke", ({ request, params }) =>
      submitForm(ctx, request, "share", (viewer, form) => {
        const path = `/reports/${params.slug}`;
        const shares = listShares(ctx, viewer.org, params.slug);
        const share = shares.find(({ id, state }) => id === params.shareId && state === "active");
        if (share)
          requireConfirmation(form, {
            title: "Revoke this share link?",
            consequences: [
              `Anyone with the link immediately loses access to ${share.withSession ? "the report and its session" : "the report"}. The link was created ${formatZoned(Date.parse(share.createdAt), viewer.timeZone)} and expires ${formatZoned(Date.parse(share.expiresAt), viewer.timeZone)} (${viewer.timeZone}).`,
              "A revoked link can’t be restored, but you can create a new one.",
            ],
            buttonText: "Revoke link",
            back: path,
          });
        revokeShare(ctx, viewer.org, params.slug, params.shareId);
        return seeOtherWithToast(ctx, path, "shareRevoked");
      }),
    );
