import { Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { Elysia } from "elysia";
import { invalidField } from "../../errors.ts";
import { DismissalInput } from "../../friction/dismissals.ts";
import { getReport } from "../../reports/reports.ts";
import { getRunTask } from "../../runs/runs.ts";
import type { Service } from "../../service.ts";
import type { PageRequests } from "../page-requests.tsx";
import { promptViews } from "../prompt-views.ts";

const slug = Type.Object({ slug: Type.String() });

/** Forms on the recommended fixes of a report. */
export const fixPages = (service: Service, pages: PageRequests) => {
  const { ctx, recommendations, dismissals } = service;
  const { checkAgreed } = promptViews(service);
  const seeFixes = (slug: string) => pages.seeOther(`/reports/${slug}#advice`);

  return new Elysia({ name: "fix pages" })
    .post(
      "/reports/:slug/done/:fingerprint",
      ({ request, params }) =>
        pages.submit(request, "run", async (viewer, fields) => {
          const { prompt, run } = getReport(ctx, viewer.org, params.slug);
          checkAgreed(viewer.org, prompt.id, fields);
          const { urlMap } = getRunTask(ctx, viewer.org, run.runId);
          const who = { by: viewer.person.name, trigger: "web" as const };
          const input = { promptId: prompt.id, note: fields.get("note") || null, urlMap };
          await recommendations.markDone(viewer.org, params.fingerprint, input, who);
          return seeFixes(params.slug);
        }),
      {
        params: Type.Object({ slug: Type.String(), fingerprint: Type.String() }),
      },
    )
    .post(
      "/reports/:slug/dismissals",
      ({ request, params }) =>
        pages.submit(request, "write", (viewer, fields) => {
          getReport(ctx, viewer.org, params.slug);
          const input = { fingerprints: fields.getAll("fingerprint"), reason: (fields.get("reason") ?? "").trim() };
          if (!Value.Check(DismissalInput, input)) throw invalidField("reason", "must be 1 to 2000 characters long");
          dismissals.dismiss(viewer.org, input, viewer.person.name);
          return seeFixes(params.slug);
        }),
      { params: slug },
    )
    .post(
      "/reports/:slug/dismissals/:dismissalId/undo",
      ({ request, params }) =>
        pages.submit(request, "write", (viewer) => {
          getReport(ctx, viewer.org, params.slug);
          dismissals.withdraw(viewer.org, params.dismissalId, viewer.person.name);
          return seeFixes(params.slug);
        }),
      {
        params: Type.Object({ slug: Type.String(), dismissalId: Type.String() }),
      },
    );
};
