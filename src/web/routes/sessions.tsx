import { Elysia } from "elysia";
import type { Context } from "../../context.ts";
import { getArtifact, toArtifactResponse } from "../../reports/artifacts.ts";
import { getReport } from "../../reports/reports.ts";
import { getTimeline } from "../../reports/timeline.ts";
import { getEvent, getSession, getTrace, hasEarlier } from "../../reports/trace.ts";
import { traceQuery } from "../../reports/trace-schema.ts";
import { listAttempts } from "../../runs/runs.ts";
import { showPage } from "../page-requests.tsx";
import { EventPage, renderPayload } from "../pages/event.tsx";
import { SessionPage } from "../pages/session.tsx";
import { queryOptions } from "../query.ts";
import { privateResponse } from "../responses.ts";

/** Session pages. */
export const sessionPages = (ctx: Context) =>
  new Elysia({ name: "session pages" })
    .get(
      "/reports/:slug/session",
      ({ request, params, query }) =>
        showPage(ctx, request, async (viewer, site) => {
          const report = getReport(ctx, viewer.org, params.slug);
          const session = getSession(ctx, viewer.org, params.slug);
          const timeline = await getTimeline(ctx, session);
          const trace = await getTrace(ctx, session, query, timeline.failedEvents);
          const firstSeq = trace.events[0]?.seq ?? 0;
          const path = `/reports/${params.slug}`;
          const { runId, attempt } = session;
          const attempts = { runId, shown: attempt, all: listAttempts(ctx, viewer.org, runId) };
          return (
            <SessionPage
              {...{ site, viewer, path, report, trace, timeline, query, attempts }}
              hasEarlier={await hasEarlier(ctx, session, query, firstSeq, timeline.failedEvents)}
            />
          );
        }),
      queryOptions(traceQuery),
    )
    .get("/reports/:slug/session/:seq", ({ request, params }) =>
      showPage(ctx, request, (viewer, site) => {
        const event = getEvent(ctx, getSession(ctx, viewer.org, params.slug), Number(params.seq));
        const path = `/reports/${params.slug}`;
        if (request.headers.has("hx-request")) return privateResponse("html", renderPayload(event));
        return <EventPage {...{ site, viewer, path, event }} />;
      }),
    )
    .get("/reports/:slug/artifacts/:name", ({ request, params }) =>
      showPage(ctx, request, ({ org }) =>
        toArtifactResponse(params.name, getArtifact(ctx, org, params.slug, params.name)),
      ),
    );
