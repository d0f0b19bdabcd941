import { Elysia } from "elysia";
import { findLatestResults } from "../../comparisons/latest.ts";
import type { Context } from "../../context.ts";
import { notFound } from "../../errors.ts";
import { getPagesVisited } from "../../reports/pages-visited.ts";
import { getReport } from "../../reports/reports.ts";
import { getTimeline } from "../../reports/timeline.ts";
import { getEvent, getSession, getTrace, hasEarlier } from "../../reports/trace.ts";
import { traceQuery } from "../../reports/trace-schema.ts";
import { getEvalRequest } from "../../runs/evals.ts";
import { getShared } from "../../shares/shares.ts";
import { renderPage } from "../components/layout.tsx";
import { showByLink } from "../page-requests.tsx";
import { EventPage, renderPayload } from "../pages/event.tsx";
import { ReportPage } from "../pages/report.tsx";
import { SessionPage } from "../pages/session.tsx";
import { queryOptions } from "../query.ts";
import { compress, privateResponse } from "../responses.ts";
import type { Site } from "../site.ts";

type SharedReport = { site: Site; path: string } & ReturnType<typeof getShared>;

const showShare = (
  ctx: Context,
  request: Request,
  token: string,
  render: (share: SharedReport) => string | Promise<string>,
): Promise<Response> =>
  showByLink(ctx, request, async (site) => {
    const html = await render({ ...getShared(ctx, token), site, path: `/shared/${token}` });
    return compress(request, privateResponse("html", html));
  });

/** Throws not_found if the link shares the report without its session. */
function getSharedSession(ctx: Context, { withSession, org, slug }: SharedReport) {
  if (!withSession) throw notFound("This link does not include the session. Ask the sender for one that does.");
  return getSession(ctx, org, slug);
}

/** Shared reports. Anyone with the link can read them without signing in. */
export const sharePages = (ctx: Context) =>
  new Elysia({ name: "share pages" })
    .get("/shared/:token", ({ request, params }) =>
      showShare(ctx, request, params.token, ({ org, slug, site, path, withSession, orgName, timeZone, expiresAt }) => {
        const report = getReport(ctx, org, slug);
        const session = getSession(ctx, org, slug);
        const hasSession = withSession && session.notice === null;
        const extras = { session: hasSession ? `${site.base}${path}/session` : null, notice: null, shares: [] };
        const pagesVisited = getPagesVisited(ctx, session);
        const { result } = getEvalRequest(ctx, org, report.run.evalRequestId);
        const latest = findLatestResults(ctx, org, report.prompt.id);
        const share = { orgName, expiresAt };
        return renderPage(
          <ReportPage {...{ site, path, report, result, pagesVisited, extras, share }} latest={latest} />,
          timeZone,
        );
      }),
    )
    .get(
      "/shared/:token/session",
      ({ request, params, query }) =>
        showShare(ctx, request, params.token, async (share) => {
          const session = getSharedSession(ctx, share);
          const { org, slug, site, path } = share;
          const report = getReport(ctx, org, slug);
          const timeline = await getTimeline(ctx, session);
          const trace = await getTrace(ctx, session, query, timeline.failedEvents);
          const firstSeq = trace.events[0]?.seq ?? 0;
          return renderPage(
            <SessionPage
              {...{ site, path, report, trace, timeline, query }}
              hasEarlier={await hasEarlier(ctx, session, query, firstSeq, timeline.failedEvents)}
              publisher={share.orgName}
            />,
            share.timeZone,
          );
        }),
      queryOptions(traceQuery),
    )
    .get("/shared/:token/session/:seq", ({ request, params }) =>
      showShare(ctx, request, params.token, (share) => {
        const { site, path, timeZone, orgName } = share;
        const event = getEvent(ctx, getSharedSession(ctx, share), Number(params.seq));
        return request.headers.has("hx-request")
          ? renderPayload(event)
          : renderPage(<EventPage {...{ site, path, event }} publisher={orgName} />, timeZone);
      }),
    );
