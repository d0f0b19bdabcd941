import { Elysia } from "elysia";
import { getOrg, updateOrgAsPerson } from "../../auth/orgs.ts";
import type { Context } from "../../context.ts";
import { getSpending } from "../../runs/spending.ts";
import { findNewerVersion } from "../../telemetry/new-release.ts";
import { readForm } from "../form-values.ts";
import { showPage, submitOrShowAgain } from "../page-requests.tsx";
import type { FormResult } from "../pages/settings.tsx";
import { OrgPage, OrgSettings } from "../pages/settings.tsx";
import type { Site } from "../site.ts";
import { may, type Viewer } from "../viewer.ts";

const orgPage = (ctx: Context, viewer: Viewer, site: Site, result: FormResult = {}) => (
  <OrgPage
    {...{ site, viewer, ...result }}
    org={getOrg(ctx, viewer.org)}
    spentUsd={getSpending(ctx, viewer.org).spentUsd}
    defaults={{ runsAtOnce: ctx.config.runsPerOrg, runsADay: ctx.config.runsADay }}
    mayChange={may(viewer, "organization")}
    newerVersion={viewer.role === "owner" ? findNewerVersion(ctx) : null}
  />
);

/** Settings page of the organization. */
export const settingsPages = (ctx: Context) =>
  new Elysia({ name: "settings pages" })
    .get("/settings", ({ request }) => showPage(ctx, request, (viewer, site) => orgPage(ctx, viewer, site)))
    .post("/settings", ({ request }) =>
      submitOrShowAgain(ctx, request, "organization", orgPage, (viewer, form, site) => {
        updateOrgAsPerson(ctx, viewer.org, readForm(OrgSettings, form));
        const { name, timeZone } = getOrg(ctx, viewer.org);
        return orgPage(ctx, { ...viewer, orgName: name, timeZone }, site, { successMessage: "Settings saved." });
      }),
    );
