import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { findLatest } from "../../comparisons/latest.ts";
import { AppError, notFound } from "../../errors.ts";
import { getPagesVisited } from "../../reports/pages-visited.ts";
import { getReport } from "../../reports/reports.ts";
import { getTimeline } from "../../reports/timeline.ts";
import { getEvent, getSession, getTrace, hasEarlier } from "../../reports/trace.ts";
import { traceQuery } from "../../reports/trace-schema.ts";
import { getEvalRequest } from "../../runs/evals.ts";
import type { Service } from "../../service.ts";
import { getShared } from "../../shares/shares.ts";
import { compressed, privateAnswer } from "../answer.ts";
import { toPage } from "../components/layout.tsx";
import { errorAnswer, type PageRequests } from "../page-requests.tsx";
import { EventPage, renderPayload } from "../pages/event.tsx";
import { ReportPage } from "../pages/report.tsx";
import { SessionPage } from "../pages/session.tsx";
import { withoutBlanks } from "../query.ts";
import type { Site } from "../site.ts";

/** The URL is the secret, so it must not leak through referrers or search engines. */
const secret = { "referrer-policy": "no-referrer", "x-robots-tag": "noindex, nofollow" };
const token = Type.String({ description: "Token of the share link" });

type Shared = { site: Site; path: string } & ReturnType<typeof getShared>;

/** Shared reports: readable by anyone with the link, without signing in. */
export const sharePages = ({ ctx }: Service, pages: PageRequests) => {
  async function show(
    request: Request,
    token: string,
    make: (shared: Shared) => string | Promise<string>,
  ): Promise<Response> {
    const site = pages.site(request);
    try {
      const shared = getShared(ctx, token);
      const body = await make({ ...shared, site, path: `/shared/${token}` });
      return compressed(request, privateAnswer("html", body, 200, secret));
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      const answer = errorAnswer(site, request, error);
      for (const [name, value] of Object.entries(secret)) answer.headers.set(name, value);
      return answer;
    }
  }

  /** Throws not_found when the link shares the report without its session. */
  const sessionOf = ({ withSession, org, slug }: Shared) => {
    if (!withSession) throw notFound("This link does not include the session. Ask the sender for one that does.");
    return getSession(ctx, org, slug);
  };

  return new Elysia({ name: "share pages" })
    .get(
      "/shared/:token",
      ({ request, params }) =>
        show(request, params.token, ({ org, slug, site, path, withSession, orgName, timeZone, expiresAt }) => {
          const report = getReport(ctx, org, slug);
          const session = getSession(ctx, org, slug);
          const isThere = withSession && session.notice === null;
          const side = { session: isThere ? `${site.base}${path}/session` : null, notice: null, shares: [] };
          const visited = getPagesVisited(ctx, session);
          const { result } = getEvalRequest(ctx, org, report.run.evalRequestId);
          const trend = findLatest(ctx, org, report.prompt.id);
          const shared = { orgName, expiresAt };
          return toPage(
            <ReportPage {...{ site, path, report, result, visited, side, shared }} latest={trend} />,
            timeZone,
          );
        }),
      {
        params: Type.Object({ token }),
      },
    )
    .get(
      "/shared/:token/session",
      ({ request, params, query }) =>
        show(request, params.token, async (shared) => {
          const session = sessionOf(shared);
          const { org, slug, site, path } = shared;
          const report = getReport(ctx, org, slug);
          const trace = await getTrace(ctx, session, query);
          const earlier = await hasEarlier(ctx, session, query, trace.events[0]?.seq ?? 0);
          return toPage(
            <SessionPage
              {...{ site, path, report, trace, query }}
              timeline={await getTimeline(ctx, session)}
              hasEarlier={earlier}
            />,
            shared.timeZone,
          );
        }),
      {
        transform: withoutBlanks,
        params: Type.Object({ token }),
        query: Type.Object(traceQuery),
      },
    )
    .get(
      "/shared/:token/session/:seq",
      ({ request, params }) =>
        show(request, params.token, (shared) => {
          const { site, path, timeZone } = shared;
          const event = getEvent(ctx, sessionOf(shared), Number(params.seq));
          return request.headers.has("hx-request")
            ? renderPayload(event)
            : toPage(<EventPage {...{ site, path, event }} />, timeZone);
        }),
      {
        params: Type.Object({ token, seq: Type.String({ description: "Sequence number (seq) of the event" }) }),
      },
    );
};
