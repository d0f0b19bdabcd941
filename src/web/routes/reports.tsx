import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { traceQuery } from "../../reports/schema.ts";
import { findNotice, getTrace } from "../../reports/trace.ts";
import type { Service } from "../../service.ts";
import { prefersMarkdown, privateAnswer, varyAccept } from "../answer.ts";
import { page } from "../describe.ts";
import type { Front } from "../front.tsx";
import { toPage } from "../layout.tsx";
import { reportMarkdown } from "../markdown.ts";
import { ReportPage } from "../pages/report.tsx";
import { SessionPage } from "../pages/session.tsx";

/** Reports and the sessions behind them. */
export const reportPages = ({ deps, reports }: Service, front: Front) =>
  new Elysia({ name: "report pages" })
    .get(
      "/reports/:slug",
      ({ request, params }) =>
        front.show(request, (viewer, here) => {
          const slug = params.slug.replace(/\.md$/, "");
          const report = reports.getReport(viewer.org, slug);
          const notice = findNotice(deps, viewer.org, slug);
          return slug !== params.slug || prefersMarkdown(request)
            ? privateAnswer("markdown", reportMarkdown(report), 200, varyAccept)
            : privateAnswer(
                "html",
                toPage(<ReportPage site={here} viewer={viewer} report={report} notice={notice} />),
                200,
                varyAccept,
              );
        }),
      {
        params: Type.Object({ slug: Type.String({ description: "slug of the report; with .md for Markdown" }) }),
        ...page("reportPage", "A report, for people", {
          types: ["text/html", "text/markdown"],
          misses: true,
          needsKey: true,
        }),
      },
    )
    .get(
      "/reports/:slug/session",
      ({ request, params, query }) =>
        front.show(request, (viewer, here) => {
          const report = reports.getReport(viewer.org, params.slug);
          const trace = getTrace(deps, viewer.org, params.slug, query);
          return privateAnswer(
            "html",
            toPage(<SessionPage site={here} viewer={viewer} report={report} trace={trace} filter={query} />),
          );
        }),
      {
        params: Type.Object({ slug: Type.String() }),
        query: Type.Object(traceQuery),
        ...page("sessionPage", "The session behind a report, for people", {
          refuses: true,
          misses: true,
          needsKey: true,
        }),
      },
    );
