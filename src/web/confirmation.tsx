import { privateAnswer } from "./answer.ts";
import { toPage } from "./components/layout.tsx";
import type { PageRequests } from "./page-requests.tsx";
import { ConfirmPage, confirmedField, type Loss } from "./pages/confirm.tsx";
import type { Viewer } from "./viewer.ts";

type Sent = { request: Request; viewer: Viewer | null; form: URLSearchParams };

/** The page that asks for confirmation of a destructive form; null if the form was confirmed. */
export function askBefore(pages: PageRequests, { request, viewer, form }: Sent, loss: Loss): Response | null {
  if (form.has(confirmedField)) return null;
  const path = new URL(request.url).pathname;
  const shown = { site: pages.site(request), viewer: viewer ?? undefined, path, form, loss };
  return privateAnswer("html", toPage(<ConfirmPage {...shown} />));
}

/** The effects of archiving reports. */
export const archivedReports =
  "Archived reports no longer count toward scores, trends, friction and baselines, and their share links stop working. You can publish them again.";
