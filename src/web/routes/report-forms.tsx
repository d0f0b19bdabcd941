import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { reportStatuses } from "../../db/tables/reports.ts";
import { badRequest } from "../../errors.ts";
import { pinGrading } from "../../reports/gradings.ts";
import { titleOf } from "../../reports/labels.ts";
import { getReport, setReportStatus } from "../../reports/reports.ts";
import { getSession } from "../../reports/trace.ts";
import type { Service } from "../../service.ts";
import { revokeShare, sharesOfReport } from "../../shares/shares.ts";
import { formatZoned } from "../components/when.tsx";
import { archivedReports, askBefore } from "../confirmation.tsx";
import type { PageRequests } from "../page-requests.tsx";

const slug = Type.Object({ slug: Type.String() });

/** Forms of a report that change it or its share links. */
export const reportForms = ({ ctx }: Service, pages: PageRequests) =>
  new Elysia({ name: "report forms" })
    .post(
      "/reports/:slug/status",
      ({ request, params }) =>
        pages.submit(request, "publish", (viewer, fields) => {
          const status = reportStatuses.find((each) => each === fields.get("status"));
          if (!status) throw badRequest(`The status must be one of ${reportStatuses.join(", ")}.`);
          const path = `/reports/${params.slug}`;
          const { task, status: before } = getReport(ctx, viewer.org, params.slug);
          const asks =
            status === "archived" &&
            before !== "archived" &&
            askBefore(
              pages,
              { request, viewer, form: fields },
              {
                title: `Archive the report for “${titleOf(task)}”?`,
                loses: [archivedReports],
                act: "Archive report",
                back: path,
              },
            );
          if (asks) return asks;
          setReportStatus(ctx, viewer.org, params.slug, status);
          return status === "archived" ? pages.seeChanged(path, "reportArchived") : pages.seeOther(path);
        }),
      { params: slug },
    )
    .post(
      "/reports/:slug/grading",
      ({ request, params }) =>
        pages.submit(request, "publish", (viewer, fields) => {
          pinGrading(ctx, viewer.org, params.slug, fields.get("grading") || null);
          return pages.seeOther(`/reports/${params.slug}#gradings`);
        }),
      { params: slug },
    )
    .post(
      "/reports/:slug/shares/:shareId/revoke",
      ({ request, params }) =>
        pages.submit(request, "share", (viewer, form) => {
          const path = `/reports/${params.slug}`;
          const { report } = getSession(ctx, viewer.org, params.slug);
          const share = sharesOfReport(ctx, report).find(
            ({ id, state }) => id === params.shareId && state === "active",
          );
          const asks =
            share &&
            askBefore(
              pages,
              { request, viewer, form },
              {
                title: "Revoke this share link?",
                loses: [
                  `Anyone with the link immediately loses access to ${share.withSession ? "the report and its session" : "the report"}. The link was created ${formatZoned(Date.parse(share.createdAt), viewer.timeZone)} and expires ${formatZoned(Date.parse(share.expiresAt), viewer.timeZone)} (${viewer.timeZone}).`,
                  "A revoked link can’t be restored, but you can create a new one.",
                ],
                act: "Revoke link",
                back: path,
              },
            );
          if (asks) return asks;
          revokeShare(ctx, viewer.org, params.slug, params.shareId);
          return pages.seeChanged(path, "shareRevoked");
        }),
      {
        params: Type.Object({ slug: Type.String(), shareId: Type.String() }),
      },
    );
