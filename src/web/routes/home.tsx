import { Elysia } from "elysia";
import type { Service } from "../../service.ts";
import { privateAnswer } from "../answer.ts";
import { hidden, page } from "../describe.ts";
import type { Front } from "../front.tsx";
import { toPage, toPart } from "../layout.tsx";
import { fragments } from "../live.ts";
import { DashboardPage, DashboardPart, type Overview } from "../pages/dashboard.tsx";
import { HomePage } from "../pages/home.tsx";
import type { Site } from "../site.ts";
import type { Viewer } from "../viewer.ts";

const shownPrompts = 20;
const shownLines = 6;
const withinMs = 7 * 24 * 3600_000;

/** The start page: of an organisation for who belongs to one, of the service for everyone else. */
export const homePages = (service: Service, front: Front) => {
  const { deps, orgs, promptLists, latest, runLists } = service;

  function overviewOf({ org }: Viewer, site: Site): Overview {
    const { items, total } = promptLists.findLines(org, {}, { limit: shownPrompts, offset: 0 });
    return {
      site,
      now: deps.now(),
      timeZone: orgs.getOrg(org).timeZone,
      prompts: items.map((line) => ({ line, latest: latest.findLatest(org, line.id) })),
      promptCount: total,
      open: runLists.listUnfinished(org, shownLines),
      due: promptLists.listDue(org, shownLines),
      broken: runLists.listBroken(org, { limit: shownLines, withinMs }),
    };
  }

  return new Elysia({ name: "home pages" })
    .get(
      "/",
      ({ request }) =>
        front.greet(request, ({ viewer }, site) =>
          privateAnswer(
            "html",
            toPage(viewer ? <DashboardPage viewer={viewer} {...overviewOf(viewer, site)} /> : <HomePage site={site} />),
          ),
        ),
      page("home", "The home of the organisation of whoever is signed in; for others what this service is"),
    )
    .get(
      "/live",
      ({ request }) =>
        front.stream(
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
