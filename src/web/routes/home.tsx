import { Elysia } from "elysia";
import { listInvitations } from "../../auth/invitations.ts";
import { listKeys } from "../../auth/keys.ts";
import { listMembers } from "../../auth/members.ts";
import { getOrg } from "../../auth/orgs.ts";
import { findLatest } from "../../comparisons/latest.ts";
import { listProviders } from "../../providers/providers.ts";
import { listBrokenRuns, listNewestRuns, listUnfinishedRuns } from "../../runs/lists.ts";
import type { Service } from "../../service.ts";
import { privateAnswer } from "../answer.ts";
import { type FirstSteps, isComplete } from "../components/first-steps.tsx";
import { toPage, toPart } from "../components/layout.tsx";
import type { PageRequests } from "../page-requests.tsx";
import { DashboardPage, DashboardPart, type Overview } from "../pages/dashboard.tsx";
import { HomePage } from "../pages/home.tsx";
import type { Site } from "../site.ts";
import { may, type Viewer } from "../viewer.ts";

const shownPrompts = 20;
const shownDue = 6;
const mostRuns = 100;
const withinMs = 7 * 24 * 3600_000;

const stepsCookie = "evald.steps=hidden";
const hidesSteps = (request: Request): boolean =>
  (request.headers.get("cookie") ?? "").split(/; */).includes(stepsCookie);

/** The dashboard of an organization, or the landing page for visitors who are not signed in. */
export const homePages = (service: Service, pages: PageRequests) => {
  const { ctx, prompts } = service;

  function overviewOf({ org }: Viewer, site: Site): Overview {
    const { items, total } = prompts.listLines(org, {}, { limit: shownPrompts, offset: 0 });
    return {
      site,
      now: ctx.now(),
      timeZone: getOrg(ctx, org).timeZone,
      prompts: items.map((line) => ({ line, latest: findLatest(ctx, org, line.id) })),
      promptCount: total,
      open: listUnfinishedRuns(ctx, org, mostRuns),
      due: prompts.listDue(org, shownDue),
      broken: listBrokenRuns(ctx, org, { limit: mostRuns, withinMs }),
      most: mostRuns,
    };
  }

  /** What an owner has left to set up; null if it is complete or hidden. */
  function stepsOf(viewer: Viewer, request: Request): FirstSteps | null {
    if (!may(viewer, "members") || hidesSteps(request)) return null;
    const { org } = viewer;
    const example = listProviders(ctx, org).filter(({ docsUrl }) => docsUrl === `${ctx.baseUrl()}/example`);
    const promptId = prompts.findFirst(
      org,
      example.map(({ id }) => id),
    );
    const hasRuns = (status?: "completed") =>
      promptId !== null && listNewestRuns(ctx, org, { promptId, status }, { limit: 1 }).items.length > 0;
    const steps = {
      promptId,
      runs: hasRuns(),
      reports: hasRuns("completed"),
      schedule: prompts.listDue(org, 1).length > 0,
      keys: listKeys(ctx, org).some(({ lastUsedAt }) => lastUsedAt !== null),
      people: listMembers(ctx, org).length > 1 || listInvitations(ctx, org).length > 0,
    };
    return isComplete(steps) ? null : steps;
  }

  const dashboard = (request: Request, viewer: Viewer, site: Site) => (
    <DashboardPage
      {...{ viewer, ...overviewOf(viewer, site) }}
      steps={stepsOf(viewer, request)}
      runsFree={prompts.agentOf(viewer.org, { agent: null, model: null }).model === null}
    />
  );

  return new Elysia({ name: "home pages" })
    .get("/", ({ request }) =>
      pages.showPublic(request, ({ viewer, signedIn }, site) =>
        signedIn && !viewer
          ? pages.seeOther("/account")
          : privateAnswer("html", toPage(viewer ? dashboard(request, viewer, site) : <HomePage site={site} />)),
      ),
    )
    .post("/first-steps/hide", ({ request }) =>
      pages.submit(request, "write", (_viewer, _form, { base }) =>
        pages.withCookies(pages.seeOther("/"), [
          `${stepsCookie}; Path=${base}/; Max-Age=${365 * 24 * 3600}; HttpOnly; SameSite=Lax`,
        ]),
      ),
    )
    .get("/live", ({ request }) =>
      pages.live(request, (viewer, site) => () => toPart(<DashboardPart {...overviewOf(viewer, site)} />, viewer)),
    );
};
