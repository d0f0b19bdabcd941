import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { listInvitations } from "../../auth/invitations.ts";
import { listKeys } from "../../auth/keys.ts";
import { listMembers } from "../../auth/members.ts";
import { isWithoutPeople } from "../../auth/setup.ts";
import { findLatestResults } from "../../comparisons/latest.ts";
import type { Context, OrgId } from "../../context.ts";
import { findExplanation } from "../../inbox/explanation.ts";
import { getInbox, markInboxItem } from "../../inbox/inbox.ts";
import { type ScoreChangeExplanation, toWindows, Windows } from "../../inbox/schema.ts";
import { findFirstPrompt, listPromptItems, listScheduledPrompts } from "../../prompts/lists.ts";
import { agentOfPrompt } from "../../prompts/prompt-check.ts";
import { listProviders } from "../../providers/providers.ts";
import { getReport } from "../../reports/reports.ts";
import type { Report } from "../../reports/schema.ts";
import { listRunPage, listUnfinishedRuns } from "../../runs/lists.ts";
import { toIso } from "../../schema.ts";
import { type FirstSteps, hasOnlyExample, isComplete } from "../components/first-steps.tsx";
import { renderFragment } from "../components/layout.tsx";
import { showPage, showPublic, streamPart, submitForm } from "../page-requests.tsx";
import { seeOther, withCookies } from "../page-responses.ts";
import { DashboardPage, DashboardPart, type Overview } from "../pages/dashboard.tsx";
import { HomePage } from "../pages/home.tsx";
import { WhyPage } from "../pages/why.tsx";
import type { Site } from "../site.ts";
import { verificationsOf } from "../verifications.ts";
import { may, type Viewer } from "../viewer.ts";
import { BarredError } from "../visitors.ts";

/** The maximum number of unfinished runs to count. */
const maxRuns = 100;
const dayMs = 24 * 3600_000;

const stepsCookie = "evald.steps=hidden";
const hidesSteps = (request: Request): boolean =>
  (request.headers.get("cookie") ?? "").split(/; */).includes(stepsCookie);

/** The data for the dashboard. `showsAll`: whether to include snoozed problems. */
function overviewOf(ctx: Context, viewer: Viewer, site: Site, { showsAll = false } = {}): Overview {
  const { org } = viewer;
  return {
    site,
    now: ctx.now(),
    inbox: getInbox(ctx, org, { withSnoozed: showsAll }),
    showsAll,
    promptCount: listPromptItems(ctx, org, {}, { limit: 1, offset: 0 }).total,
    activeRuns: listUnfinishedRuns(ctx, org, maxRuns).length,
    maxRuns,
    next: listScheduledPrompts(ctx, org, 1)[0],
    actions: may(viewer, "write") ? { members: listMembers(ctx, org) } : null,
  };
}

/** The setup steps of an owner; null if they are complete or hidden. */
function findFirstSteps(ctx: Context, viewer: Viewer, request: Request): FirstSteps | null {
  if (!may(viewer, "members") || hidesSteps(request)) return null;
  const { org } = viewer;
  const exampleUrl = `${ctx.baseUrl()}/example`;
  const exampleIds = listProviders(ctx, org).flatMap(({ id, docsUrl }) => (docsUrl === exampleUrl ? [id] : []));
  const promptId = findFirstPrompt(ctx, org, exampleIds);
  const hasRuns = (status?: "completed") =>
    promptId !== null && listRunPage(ctx, org, { promptId, status }, { limit: 1 }).items.length > 0;
  const steps = {
    promptId,
    hasRuns: hasRuns(),
    hasReports: hasRuns("completed"),
    hasSchedule: listScheduledPrompts(ctx, org, 1).length > 0,
    usesKeys: listKeys(ctx, org).some(({ lastUsedAt }) => lastUsedAt !== null),
    hasTeam: listMembers(ctx, org).length > 1 || listInvitations(ctx, org).length > 0,
  };
  return isComplete(steps) ? null : steps;
}

/**
 * The report for the explanation of a change. It is the newest report with the main cause, or otherwise the first report after the change. It has
 * only the fixes for the causes.
 */
function reportOfChange(ctx: Context, org: OrgId, { causes, after }: ScoreChangeExplanation): Report {
  const report = getReport(ctx, org, causes[0]?.slug ?? after.session?.slug ?? "");
  const fingerprints = new Set(causes.map(({ fingerprint }) => fingerprint));
  const causeIds = report.frictionPoints.filter((each) => fingerprints.has(each.fingerprint)).map(({ id }) => id);
  const fixesACause = ({ frictionIds }: Report["recommendations"][number]) =>
    frictionIds.some((id) => causeIds.includes(id));
  return { ...report, recommendations: report.recommendations.filter(fixesACause) };
}

function dashboardPage(ctx: Context, request: Request, viewer: Viewer, site: Site) {
  const { org } = viewer;
  const steps = findFirstSteps(ctx, viewer, request);
  const examples = hasOnlyExample(steps) ? listPromptItems(ctx, org, {}, { limit: 1, offset: 0 }).items : [];
  const showsAll = new URL(request.url).searchParams.has("all");
  return (
    <DashboardPage
      {...{ viewer, steps, ...overviewOf(ctx, viewer, site, { showsAll }) }}
      examples={examples.map((prompt) => ({ prompt, latest: findLatestResults(ctx, org, prompt.id) }))}
      isRunFree={agentOfPrompt(ctx, org, { agent: null, model: null }).model === null}
    />
  );
}

/** The dashboard of an organization, or the landing page for visitors who are not signed in. */
export const homePages = (ctx: Context) =>
  new Elysia({ name: "home pages" })
    .get("/", ({ request }) =>
      showPublic(ctx, request, ({ viewer, signedIn, barred }, site) => {
        if (barred) throw new BarredError(barred);
        if (viewer) return dashboardPage(ctx, request, viewer, site);
        return signedIn ? seeOther(ctx, "/account") : <HomePage site={site} isUnused={isWithoutPeople(ctx)} />;
      }),
    )
    .post("/first-steps/hide", ({ request }) =>
      submitForm(ctx, request, "write", (_viewer, _form, { base }) =>
        withCookies(seeOther(ctx, "/"), [
          `${stepsCookie}; Path=${base}/; Max-Age=${365 * 24 * 3600}; HttpOnly; SameSite=Lax`,
        ]),
      ),
    )
    .get(
      "/prompts/:promptId/why",
      ({ request, params, query }) =>
        showPage(ctx, request, (viewer, site) => {
          const windows = toWindows(query.base, query.head);
          const explanation = findExplanation(ctx, viewer.org, params.promptId, windows);
          if (explanation === null) return seeOther(ctx, `/trends?promptId=${params.promptId}`);
          const report = reportOfChange(ctx, viewer.org, explanation);
          return (
            <WhyPage
              {...{ site, viewer, explanation, report }}
              isNewest={windows === undefined}
              verifications={verificationsOf(ctx, viewer, report)}
            />
          );
        }),
      { query: Type.Object(Windows.properties, { additionalProperties: Type.String() }) },
    )
    .post("/inbox/:itemId", ({ request, params }) =>
      submitForm(ctx, request, "write", (viewer, form) => {
        const days = Number(form.get("days"));
        const mark = {
          assignee: form.get("assignee") || null,
          ...(days > 0 && { snoozedUntil: toIso(ctx.now() + days * dayMs) }),
        };
        markInboxItem(ctx, viewer.org, params.itemId, mark, viewer.person.name);
        return seeOther(ctx, "/");
      }),
    )
    .get("/live", ({ request }) =>
      streamPart(
        ctx,
        request,
        (viewer, site) => () =>
          renderFragment(<DashboardPart {...overviewOf(ctx, viewer, site)} viewer={viewer} />, viewer),
      ),
    );
