import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { AppError, notFound } from "../../errors.ts";
import { findNotice, getEvent, getTrace, hasEarlier } from "../../reports/trace.ts";
import { traceQuery } from "../../reports/traceschema.ts";
import { getWay } from "../../reports/way.ts";
import type { Service } from "../../service.ts";
import { compressed, privateAnswer } from "../answer.ts";
import { page } from "../describe.ts";
import { errorAnswer, type Front } from "../front.tsx";
import { toPage } from "../layout.tsx";
import { EventPage, toWhole } from "../pages/event.tsx";
import { ReportPage } from "../pages/report.tsx";
import { SessionPage } from "../pages/session.tsx";
import { withoutBlanks } from "../query.ts";
import type { Site } from "../site.ts";

/** The address is the secret: it is told to nobody, and kept by nobody. */
const secret = { "referrer-policy": "no-referrer", "x-robots-tag": "noindex, nofollow" };
const token = Type.String({ description: "What the link bears" });

type Shared = { site: Site; path: string } & ReturnType<Service["shares"]["getShared"]>;

/** Reports under links that their owners made: for whoever has the link, without signing in. */
export const sharePages = ({ deps, reports, evals, shares, getTimeline }: Service, front: Front) => {
  async function show(request: Request, token: string, make: (shared: Shared) => string): Promise<Response> {
    const site = front.site();
    try {
      const shared = shares.getShared(token);
      const body = make({ ...shared, site, path: `/shared/${token}` });
      return compressed(request, privateAnswer("html", body, 200, secret));
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      const answer = errorAnswer(site, request, error);
      for (const [name, value] of Object.entries(secret)) answer.headers.set(name, value);
      return answer;
    }
  }

  /** A link that shows the report only has no session, like one that is none. */
  const session = ({ withSession }: Shared) => {
    if (!withSession) throw notFound("this link shows the report alone; ask whoever sent it for one with the session");
  };

  return new Elysia({ name: "share pages" })
    .get(
      "/shared/:token",
      ({ request, params }) =>
        show(request, params.token, ({ org, slug, site, path, withSession }) => {
          const report = reports.getReport(org, slug);
          const isThere = withSession && findNotice(deps, org, slug) === null;
          const side = { session: isThere ? `${site.base}${path}/session` : null, notice: null, shares: [] };
          const way = getWay(deps, org, slug);
          const { result } = evals.getEvalRequest(org, report.run.evalRequestId);
          return toPage(<ReportPage {...{ site, path, report, result, way, side }} />);
        }),
      {
        params: Type.Object({ token }),
        ...page("sharedReport", "A report under a share link", { misses: true }),
      },
    )
    .get(
      "/shared/:token/session",
      ({ request, params, query }) =>
        show(request, params.token, (shared) => {
          session(shared);
          const { org, slug, site, path } = shared;
          const report = reports.getReport(org, slug);
          const trace = getTrace(deps, org, slug, query);
          const earlier = hasEarlier(deps, org, slug, query, trace.events[0]?.seq ?? 0);
          return toPage(
            <SessionPage
              {...{ site, path, report, trace, query }}
              timeline={getTimeline(org, slug)}
              hasEarlier={earlier}
            />,
          );
        }),
      {
        transform: withoutBlanks,
        params: Type.Object({ token }),
        query: Type.Object(traceQuery),
        ...page("sharedSession", "The session behind a report under a share link", { refuses: true, misses: true }),
      },
    )
    .get(
      "/shared/:token/session/:seq",
      ({ request, params }) =>
        show(request, params.token, (shared) => {
          session(shared);
          const { org, slug, site, path } = shared;
          const event = getEvent(deps, org, slug, Number(params.seq));
          return request.headers.has("hx-request") ? toWhole(event) : toPage(<EventPage {...{ site, path, event }} />);
        }),
      {
        params: Type.Object({ token, seq: Type.String({ description: "seq of the event" }) }),
        ...page("sharedEvent", "One event of a session under a share link, whole", { misses: true }),
      },
    );
};
