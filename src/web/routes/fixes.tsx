import { Value } from "@sinclair/typebox/value";
import { Elysia } from "elysia";
import type { Context } from "../../context.ts";
import { invalidField } from "../../errors.ts";
import { markFixDone } from "../../fixes/done-fixes.ts";
import { DismissalInput, dismissFriction, withdrawDismissal } from "../../friction/dismissals.ts";
import { getReport } from "../../reports/reports.ts";
import { getRunTask } from "../../runs/runs.ts";
import { submitForm } from "../page-requests.tsx";
import { seeOther } from "../page-responses.ts";
import { webSourceOf } from "../viewer.ts";
import { requireCostConsent } from "./prompts.tsx";

const seeFixes = (ctx: Context, slug: string) => seeOther(ctx, `/reports/${slug}#advice`);

/** Forms on the recommended fixes of a report. */
export const fixPages = (ctx: Context) =>
  new Elysia({ name: "fix pages" })
    .post("/reports/:slug/done/:fingerprint", ({ request, params }) =>
      submitForm(ctx, request, "run", async (viewer, fields) => {
        const { prompt, run } = getReport(ctx, viewer.org, params.slug);
        requireCostConsent(ctx, viewer.org, prompt.id, fields);
        const { urlMap } = getRunTask(ctx, viewer.org, run.runId);
        const who = { by: viewer.person.name, ...webSourceOf(viewer) };
        const input = { promptId: prompt.id, note: fields.get("note") || null, urlMap };
        await markFixDone(ctx, viewer.org, params.fingerprint, input, who);
        return seeFixes(ctx, params.slug);
      }),
    )
    .post("/reports/:slug/dismissals", ({ request, params }) =>
      submitForm(ctx, request, "write", (viewer, fields) => {
        // Throws not_found if there is no such report.
        getReport(ctx, viewer.org, params.slug);
        const input = { fingerprints: fields.getAll("fingerprint"), reason: (fields.get("reason") ?? "").trim() };
        if (!Value.Check(DismissalInput, input)) throw invalidField("reason", "must be 1 to 2000 characters long");
        dismissFriction(ctx, viewer.org, input, viewer.person.name);
        return seeFixes(ctx, params.slug);
      }),
    )
    .post("/reports/:slug/dismissals/:dismissalId/undo", ({ request, params }) =>
      submitForm(ctx, request, "write", (viewer) => {
        // Throws not_found if there is no such report.
        getReport(ctx, viewer.org, params.slug);
        withdrawDismissal(ctx, viewer.org, params.dismissalId, viewer.person.name);
        return seeFixes(ctx, params.slug);
      }),
    );
