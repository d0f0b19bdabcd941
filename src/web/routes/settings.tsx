import { Elysia } from "elysia";
import { getOrg, updateOrgAsPerson } from "../../auth/orgs.ts";
import { getSignInPolicy, setSignInPolicy } from "../../auth/sign-in-policy.ts";
import { ssoNameOf } from "../../auth/sso.ts";
import type { Context } from "../../context.ts";
import { getSpending } from "../../runs/spending.ts";
import { findNewerVersion } from "../../telemetry/new-release.ts";
import { readForm } from "../form-values.ts";
import { showPage, submitOrShowAgain } from "../page-requests.tsx";
import { type FormResult, OrgPage, OrgSettings } from "../pages/settings.tsx";
import { SignInPolicyForm, SignInPolicyPage } from "../pages/sign-in-policy.tsx";
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

const signInPolicyPage = (ctx: Context, viewer: Viewer, site: Site, result: FormResult = {}) => (
  <SignInPolicyPage
    {...{ site, viewer, ...result }}
    policy={getSignInPolicy(ctx, viewer.org)}
    ssoName={ssoNameOf(ctx)}
    mayChange={may(viewer, "organization")}
  />
);

/** Settings pages for the organization itself, and for how its members sign in. */
export const settingsPages = (ctx: Context) =>
  new Elysia({ name: "settings pages" })
    .get("/settings", ({ request }) => showPage(ctx, request, (viewer, site) => orgPage(ctx, viewer, site)))
    .post("/settings", ({ request }) =>
      submitOrShowAgain(ctx, request, "organization", orgPage, (viewer, form, site) => {
        updateOrgAsPerson(ctx, viewer.org, readForm(OrgSettings, form));
        const { name, timeZone } = getOrg(ctx, viewer.org);
        return orgPage(ctx, { ...viewer, orgName: name, timeZone }, site, { successMessage: "Settings saved." });
      }),
    )
    .get("/settings/sign-in", ({ request }) =>
      showPage(ctx, request, (viewer, site) => signInPolicyPage(ctx, viewer, site)),
    )
    .post("/settings/sign-in", ({ request }) =>
      submitOrShowAgain(ctx, request, "organization", signInPolicyPage, (viewer, form, site) => {
        const { emailDomains = [], ...required } = readForm(SignInPolicyForm, form);
        setSignInPolicy(ctx, viewer.org, viewer, { ...required, emailDomains });
        return signInPolicyPage(ctx, viewer, site, { successMessage: "Sign-in policy saved." });
      }),
    );
