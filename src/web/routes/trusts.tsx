import { Elysia } from "elysia";
import type { Context } from "../../context.ts";
import { TrustInput } from "../../trusts/schema.ts";
import { createTrust, deleteTrust, listTrusts } from "../../trusts/trusts.ts";
import { readForm } from "../form-values.ts";
import { showPage, submitForm, submitOrShowAgain } from "../page-requests.tsx";
import { requireConfirmation } from "../pages/confirm.tsx";
import type { FormResult } from "../pages/settings.tsx";
import { TrustsPage } from "../pages/trusts.tsx";
import type { Site } from "../site.ts";
import { may, type Viewer } from "../viewer.ts";

/** The limit is higher than the number of trusts that an organization can have. */
const wholeList = { limit: 1000, offset: 0 };

const trustsPage = (ctx: Context, viewer: Viewer, site: Site, result: FormResult = {}) => (
  <TrustsPage
    {...{ site, viewer, ...result }}
    trusts={listTrusts(ctx, viewer.org, wholeList).items}
    mayChange={may(viewer, "organization")}
  />
);

/** Settings page of trusted CI jobs. */
export const trustPages = (ctx: Context) =>
  new Elysia({ name: "trust pages" })
    .get("/settings/ci", ({ request }) => showPage(ctx, request, (viewer, site) => trustsPage(ctx, viewer, site)))
    .post("/settings/ci", ({ request }) =>
      submitOrShowAgain(ctx, request, "organization", trustsPage, (viewer, form, site) => {
        const { repository } = createTrust(ctx, viewer.org, readForm(TrustInput, form), viewer.person.id);
        return trustsPage(ctx, viewer, site, { successMessage: `Jobs of ${repository} can now get API keys.` });
      }),
    )
    .post("/settings/ci/:trustId/remove", ({ request, params }) =>
      submitForm(ctx, request, "organization", (viewer, form, site) => {
        const trust = listTrusts(ctx, viewer.org, wholeList).items.find(({ id }) => id === params.trustId);
        // Without a trust, there is nothing to confirm, and `deleteTrust` throws not_found.
        if (trust)
          requireConfirmation(form, {
            title: `Stop trusting ${trust.repository}?`,
            consequences: ["Its jobs can’t get API keys, and keys that they have stop working."],
            buttonText: "Remove",
            back: "/settings/ci",
          });
        const { repository } = deleteTrust(ctx, viewer.org, params.trustId);
        return trustsPage(ctx, viewer, site, { successMessage: `${repository} is no longer trusted.` });
      }),
    );
