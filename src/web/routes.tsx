import { Elysia } from "elysia";
import type { AppError } from "../errors.ts";
import type { Service } from "../service.ts";
import { wantsHtml } from "./answer.ts";
import { createFront, errorAnswer } from "./front.tsx";
import type { OpenApiDocument } from "./pages/reference.tsx";
import { accountPages } from "./routes/account.tsx";
import { comparePages } from "./routes/compare.tsx";
import { frictionPages } from "./routes/friction.tsx";
import { homePages } from "./routes/home.tsx";
import { memberPages } from "./routes/members.tsx";
import { peoplePages } from "./routes/people.tsx";
import { promptPages } from "./routes/prompts.tsx";
import { providerPages } from "./routes/providers.tsx";
import { publicPages } from "./routes/public.tsx";
import { reportPages } from "./routes/reports.tsx";
import { runPages } from "./routes/runs.tsx";
import { settingsPages } from "./routes/settings.tsx";
import { sharePages } from "./routes/share.tsx";
import { trendPages } from "./routes/trends.tsx";
import { toSite } from "./site.ts";

/** Everything that is served to people, and the documentation for people and agents. */
export const pageRoutes = (service: Service, openApi: () => OpenApiDocument) => {
  const front = createFront(service);
  return new Elysia({ name: "pages" })
    .use(publicPages(front, openApi))
    .use(peoplePages(service, front))
    .use(homePages(service, front))
    .use(promptPages(service, front))
    .use(accountPages(service, front))
    .use(memberPages(service, front))
    .use(reportPages(service, front))
    .use(sharePages(service, front))
    .use(comparePages(service, front))
    .use(trendPages(service, front))
    .use(frictionPages(service, front))
    .use(providerPages(service, front))
    .use(runPages(service, front))
    .use(settingsPages(service, front));
};

/** An error as a page, for a caller that asks for HTML outside the API; null for all others. */
export async function findErrorPage(service: Service, request: Request, error: AppError): Promise<Response | null> {
  const site = toSite(service.deps);
  if (!wantsHtml(request) || new URL(request.url).pathname.startsWith(`${site.base}/api/`)) return null;
  // Whoever is signed in keeps their menu. Where even that cannot be told, the error is all there is to say.
  return await createFront(service)
    .greet(request, ({ viewer }) => errorAnswer(site, request, error, viewer ?? undefined))
    .catch(() => errorAnswer(site, request, error));
}
