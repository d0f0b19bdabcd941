import { Elysia } from "elysia";
import { fragments } from "../../http/event-stream.ts";
import type { Service } from "../../service.ts";
import { privateAnswer } from "../answer.ts";
import { toPage, toPart } from "../components/layout.tsx";
import { hidden, page } from "../describe.ts";
import type { PageRequests } from "../page-requests.tsx";
import { DashboardPage, DashboardPart, type Overview } from "../pages/dashboard.tsx";
import { HomePage } from "../pages/home.tsx";
import type { Site } from "../site.ts";
import type { Viewer } from "../viewer.ts";

const shownPrompts = 20;
const shownLines = 6;
const withinMs = 7 * 24 * 3600_000;

/** The dashboard of an organization, or the landing page for visitors who are not signed in. */
export const homePages = (service: Service, pages: PageRequests) => {
  const { deps, orgs, prompts, latest, runs } = service;

  function overviewOf({ org }: Viewer, site: Site): Overview {
    const { items, total } = prompts.listLines(org, {}, { limit: shownPrompts, offset: 0 });
    return {
      site,
      now: deps.now(),
      timeZone: orgs.getOrg(org).timeZone,
      prompts: items.map((line) => ({ line, latest: latest.findLatest(org, line.id) })),
      promptCount: total,
      open: runs.listUnfinished(org, shownLines),
      due: prompts.listDue(org, shownLines),
      broken: runs.listBroken(org, { limit: shownLines, withinMs }),
    };
  }

  return new Elysia({ name: "home pages" })
    .get(
      "/",
      ({ request }) =>
        pages.showPublic(request, ({ viewer }, site) =>
          privateAnswer(
            "html",
            toPage(viewer ? <DashboardPage viewer={viewer} {...overviewOf(viewer, site)} /> : <HomePage site={site} />),
          ),
        ),
      page("home", "Dashboard when signed in, landing page otherwise"),
    )
    .get(
      "/live",
      ({ request }) =>
        pages.stream(
          request,
          (viewer, site) => (gone) =>
            fragments(
              () => toPart(<DashboardPart {...overviewOf(viewer, site)} />, viewer),
              service.follow.watch(gone),
            ),
        ),
      hidden,
    );
};
