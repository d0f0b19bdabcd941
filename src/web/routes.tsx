import { type AnyElysia, Elysia } from "elysia";
import type { Context } from "../context.ts";
import type { Service } from "../service.ts";
import { redirect } from "./page-responses.ts";
import type { OpenApiDocument } from "./pages/reference.tsx";
import { accountPages } from "./routes/account.tsx";
import { auditPages } from "./routes/audit-log.tsx";
import { backupPages } from "./routes/backups.tsx";
import { badgePages } from "./routes/badge.tsx";
import { bisectPages } from "./routes/bisects.tsx";
import { calibrationPages } from "./routes/calibration.tsx";
import { comparePages } from "./routes/compare.tsx";
import { dataPages } from "./routes/data.tsx";
import { docPages } from "./routes/docs.tsx";
import { evaluationPages } from "./routes/evaluations.tsx";
import { examplePages } from "./routes/example.tsx";
import { experimentPages } from "./routes/experiments.tsx";
import { fieldFrictionPages } from "./routes/field-friction.tsx";
import { fixPages } from "./routes/fixes.tsx";
import { frictionPages } from "./routes/friction.tsx";
import { gatePages } from "./routes/gates.tsx";
import { homePages } from "./routes/home.tsx";
import { keyPages } from "./routes/keys.tsx";
import { matrixPages } from "./routes/matrix.tsx";
import { memberPages } from "./routes/members.tsx";
import { modelPages } from "./routes/models.tsx";
import { notificationPages } from "./routes/notifications.tsx";
import { onboardingPages } from "./routes/onboarding.tsx";
import { promptFormPages } from "./routes/prompt-form.tsx";
import { promptPages } from "./routes/prompts.tsx";
import { proposalPages } from "./routes/proposals.tsx";
import { providerPages } from "./routes/providers.tsx";
import { publicPages } from "./routes/public.tsx";
import { queuePages } from "./routes/queue.tsx";
import { reportForms } from "./routes/report-forms.tsx";
import { reportPages } from "./routes/reports.tsx";
import { resultPages } from "./routes/results.tsx";
import { runPages } from "./routes/runs.tsx";
import { schedulePages } from "./routes/schedules.tsx";
import { searchPages } from "./routes/search.tsx";
import { passkeyPages, secondStepPages, twoFactorPages } from "./routes/second-factors.tsx";
import { secretPages } from "./routes/secrets.tsx";
import { selectionPages } from "./routes/selections.tsx";
import { sessionPages } from "./routes/sessions.tsx";
import { settingsPages } from "./routes/settings.tsx";
import { sharePages } from "./routes/share.tsx";
import { signInPages } from "./routes/sign-in.tsx";
import { spendingPages } from "./routes/spending.tsx";
import { suitePages } from "./routes/suites.tsx";
import { tagSchedulePages } from "./routes/tag-schedule.tsx";
import { trendPages } from "./routes/trends.tsx";
import { trustPages } from "./routes/trusts.tsx";
import { workerPages } from "./routes/workers.tsx";

/** All page routes: the web UI and the documentation. */
export function pageRoutes(service: Service, openApi: () => Promise<OpenApiDocument>): AnyElysia {
  const pages: AnyElysia = allPages(service, openApi);
  return pages.use(formAddresses(service.ctx, pages.routes));
}

/** Redirects requests for the address of a form to the page with the form. A reload or a bookmark can cause such requests. */
function formAddresses({ config }: Context, routes: readonly { method: string; path: string }[]) {
  const pathsOf = (method: string) => routes.filter((route) => route.method === method).map(({ path }) => path);
  const pages = new Set(pathsOf("GET"));
  const addresses = new Elysia({ name: "form addresses" });
  for (const path of new Set(pathsOf("POST"))) {
    if (pages.has(path)) continue;
    const segments = path.split("/");
    while (segments.length > 1 && !pages.has(segments.join("/") || "/")) segments.pop();
    const pageLength = segments.length;
    const showPage = ({ request }: { request: Request }) => {
      const pathname = new URL(request.url).pathname.slice(config.basePath.length);
      return redirect(config.basePath + (pathname.split("/").slice(0, pageLength).join("/") || "/"));
    };
    addresses.get(path, showPage, { detail: { hide: true, tags: ["Form address"] } });
  }
  return addresses;
}

const allPages = ({ ctx, workers }: Service, openApi: () => Promise<OpenApiDocument>) =>
  new Elysia({ name: "pages" })
    .use(publicPages(ctx))
    .use(docPages(ctx, openApi))
    .use(signInPages(ctx))
    .use(secondStepPages(ctx))
    .use(onboardingPages(ctx))
    .use(homePages(ctx))
    .use(tagSchedulePages(ctx))
    .use(schedulePages(ctx))
    .use(proposalPages(ctx))
    .use(promptPages(ctx))
    .use(promptFormPages(ctx))
    .use(accountPages(ctx))
    .use(twoFactorPages(ctx))
    .use(passkeyPages(ctx))
    .use(memberPages(ctx))
    .use(selectionPages(ctx))
    .use(searchPages(ctx))
    .use(reportPages(ctx))
    .use(reportForms(ctx))
    .use(fixPages(ctx))
    .use(sessionPages(ctx))
    .use(sharePages(ctx))
    .use(badgePages(ctx))
    .use(resultPages(ctx))
    .use(examplePages(ctx))
    .use(comparePages(ctx))
    .use(trendPages(ctx))
    .use(matrixPages(ctx))
    .use(suitePages(ctx))
    .use(experimentPages(ctx))
    .use(calibrationPages(ctx))
    .use(spendingPages(ctx))
    .use(fieldFrictionPages(ctx))
    .use(frictionPages(ctx))
    .use(providerPages(ctx))
    .use(runPages(ctx))
    .use(gatePages(ctx))
    .use(bisectPages(ctx))
    .use(evaluationPages(ctx))
    .use(dataPages(ctx))
    .use(settingsPages(ctx))
    .use(keyPages(ctx))
    .use(auditPages(ctx))
    .use(trustPages(ctx))
    .use(modelPages(ctx))
    .use(secretPages(ctx))
    .use(notificationPages(ctx))
    .use(workerPages(ctx, workers))
    .use(queuePages(ctx, workers))
    .use(backupPages(ctx));
