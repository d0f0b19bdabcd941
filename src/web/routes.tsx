import { Elysia } from "elysia";
import type { AppError } from "../errors.ts";
import type { Service } from "../service.ts";
import { wantsHtml } from "./answer.ts";
import { createPageRequests, errorAnswer } from "./page-requests.tsx";
import type { OpenApiDocument } from "./pages/reference.tsx";
import { accountPages } from "./routes/account.tsx";
import { badgePages } from "./routes/badge.tsx";
import { comparePages } from "./routes/compare.tsx";
import { docPages } from "./routes/docs.tsx";
import { evaluationPages } from "./routes/evaluations.tsx";
import { examplePages } from "./routes/example.tsx";
import { fieldFrictionPages } from "./routes/field-friction.tsx";
import { fixPages } from "./routes/fixes.tsx";
import { frictionPages } from "./routes/friction.tsx";
import { gatePages } from "./routes/gates.tsx";
import { homePages } from "./routes/home.tsx";
import { keyPages } from "./routes/keys.tsx";
import { memberPages } from "./routes/members.tsx";
import { modelPages } from "./routes/models.tsx";
import { notificationPages } from "./routes/notifications.tsx";
import { onboardingPages } from "./routes/onboarding.tsx";
import { promptFormPages } from "./routes/prompt-form.tsx";
import { promptPages } from "./routes/prompts.tsx";
import { providerPages } from "./routes/providers.tsx";
import { publicPages } from "./routes/public.tsx";
import { reportForms } from "./routes/report-forms.tsx";
import { reportPages } from "./routes/reports.tsx";
import { resultPages } from "./routes/results.tsx";
import { runPages } from "./routes/runs.tsx";
import { searchPages } from "./routes/search.tsx";
import { selectionPages } from "./routes/selections.tsx";
import { sessionPages } from "./routes/sessions.tsx";
import { settingsPages } from "./routes/settings.tsx";
import { sharePages } from "./routes/share.tsx";
import { signInPages } from "./routes/sign-in.tsx";
import { tagSchedulePages } from "./routes/tag-schedule.tsx";
import { trendPages } from "./routes/trends.tsx";
import { trustPages } from "./routes/trusts.tsx";
import { workerPages } from "./routes/workers.tsx";
import { toSite } from "./site.ts";

/** All page routes: the web UI and the documentation. */
export const pageRoutes = (service: Service, openApi: () => OpenApiDocument) => {
  const pages = createPageRequests(service);
  return new Elysia({ name: "pages" })
    .use(publicPages(pages))
    .use(docPages(pages, openApi))
    .use(signInPages(service, pages))
    .use(onboardingPages(service, pages))
    .use(homePages(service, pages))
    .use(tagSchedulePages(service, pages))
    .use(promptPages(service, pages))
    .use(promptFormPages(service, pages))
    .use(accountPages(service, pages))
    .use(memberPages(service, pages))
    .use(selectionPages(service, pages))
    .use(searchPages(service, pages))
    .use(reportPages(service, pages))
    .use(reportForms(service, pages))
    .use(fixPages(service, pages))
    .use(sessionPages(service, pages))
    .use(sharePages(service, pages))
    .use(badgePages(service))
    .use(resultPages(service, pages))
    .use(examplePages(pages))
    .use(comparePages(service, pages))
    .use(trendPages(service, pages))
    .use(fieldFrictionPages(service, pages))
    .use(frictionPages(service, pages))
    .use(providerPages(service, pages))
    .use(runPages(service, pages))
    .use(gatePages(service, pages))
    .use(evaluationPages(service, pages))
    .use(settingsPages(service, pages))
    .use(keyPages(service, pages))
    .use(trustPages(service, pages))
    .use(modelPages(service, pages))
    .use(notificationPages(service, pages))
    .use(workerPages(service, pages));
};

/** An error page for requests for HTML outside the API; null for all others. */
export async function findErrorPage(service: Service, request: Request, error: AppError): Promise<Response | null> {
  const site = toSite(service.ctx, request);
  if (!wantsHtml(request) || new URL(request.url).pathname.startsWith(`${site.base}/api/`)) return null;
  // Signed-in viewers keep their menu, unless finding the viewer fails too.
  return await createPageRequests(service)
    .showPublic(request, (visitor) => errorAnswer(site, request, error, visitor))
    .catch(() => errorAnswer(site, request, error));
}
