import { Value } from "@sinclair/typebox/value";
import { Elysia } from "elysia";
import type { Context } from "../../context.ts";
import { invalidInput } from "../../schema.ts";
import { TrustInput } from "../../trusts/schema.ts";
import { createTrust, deleteTrust, listTrusts } from "../../trusts/trusts.ts";
import { type FormResult, showPage, submitForm, submitSettings } from "../page-requests.tsx";
import { requireConfirmation } from "../pages/confirm.tsx";
import { TrustsPage } from "../pages/trusts.tsx";
import type { Site } from "../site.ts";
import { may, type Viewer } from "../viewer.ts";

/** More than an organization can have. */
const all = { limit: 1000, offset: 0 };

const trustsPage = (ctx: Context, viewer: Viewer, site: Site, result: FormResult = {}) => (
  <TrustsPage
    {...{ site, viewer, ...result }}
    trusts={listTrusts(ctx, viewer.org, all).items}
    mayChange={may(viewer, "organization")}
  />
);

/** Settings page of trusted CI jobs. */
export const trustPages = (ctx: Context) =>
  new Elysia({ name: "trust pages" })
    .get("/settings/ci", ({ request }) => showPage(ctx, request, (viewer, site) => trustsPage(ctx, viewer, site)))
    .post("/settings/ci", ({ request }) =>
      submitSettings(ctx, request, "organization", trustsPage, (viewer, form, site) => {
        const { repository } = createTrust(ctx, viewer.org, toInput(form), viewer.person.id);
        return trustsPage(ctx, viewer, site, { done: `Jobs of ${repository} can now get API keys.` });
      }),
    )
    .post("/settings/ci/:trustId/remove", ({ request, params }) =>
      submitForm(ctx, request, "organization", (viewer, form, site) => {
        const trust = listTrusts(ctx, viewer.org, all).items.find(({ id }) => id === params.trustId);
        if (trust)
          requireConfirmation(form, {
            title: `Stop trusting ${trust.repository}?`,
            loses: ["Its jobs can’t get API keys, and keys that they have stop working."],
            act: "Remove",
            back: "/settings/ci",
          });
        const { repository } = deleteTrust(ctx, viewer.org, params.trustId);
        return trustsPage(ctx, viewer, site, { done: `${repository} is no longer trusted.` });
      }),
    );

/** Throws bad_request as the API does. */
function toInput(form: URLSearchParams): TrustInput {
  const text = (name: string) => form.get(name)?.trim() || undefined;
  const input = {
    provider: text("provider"),
    repository: text("repository"),
    repositoryId: text("repositoryId"),
    ref: text("ref"),
    environment: text("environment"),
    issuer: text("issuer"),
    scopes: form.getAll("scope"),
    minutes: Number(text("minutes")),
  };
  const wrong = Value.Errors(TrustInput, input).First();
  if (wrong) throw invalidInput(wrong, "form");
  return Value.Cast(TrustInput, input);
}
