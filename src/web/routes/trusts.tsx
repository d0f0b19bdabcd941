import { Value } from "@sinclair/typebox/value";
import { Elysia } from "elysia";
import { invalidInput } from "../../schema.ts";
import type { Service } from "../../service.ts";
import { TrustInput } from "../../trusts/schema.ts";
import { createTrust, deleteTrust, listTrusts } from "../../trusts/trusts.ts";
import { privateAnswer } from "../answer.ts";
import { toPage } from "../components/layout.tsx";
import { askBefore } from "../confirmation.tsx";
import type { PageRequests } from "../page-requests.tsx";
import { TrustsPage } from "../pages/trusts.tsx";
import { type FormResult, settingsForms } from "../settings-forms.ts";
import type { Site } from "../site.ts";
import { may, type Viewer } from "../viewer.ts";

/** More than an organization can have. */
const all = { limit: 1000, offset: 0 };

/** Settings page of trusted CI jobs. */
export const trustPages = ({ ctx }: Service, pages: PageRequests) => {
  const act = settingsForms(pages);
  const trustsPage = (viewer: Viewer, site: Site, result: FormResult = {}, status = 200) =>
    privateAnswer(
      "html",
      toPage(
        <TrustsPage
          {...{ site, viewer, ...result }}
          trusts={listTrusts(ctx, viewer.org, all).items}
          mayChange={may(viewer, "organization")}
        />,
      ),
      status,
    );
  return new Elysia({ name: "trust pages" })
    .get("/settings/ci", ({ request }) => pages.show(request, (viewer, site) => trustsPage(viewer, site)))
    .post("/settings/ci", ({ request }) =>
      act(request, "organization", trustsPage, (viewer, form, site) => {
        const trust = createTrust(ctx, viewer.org, toInput(form), viewer.person.id);
        return trustsPage(viewer, site, { done: `Jobs of ${trust.repository} can now get API keys.` });
      }),
    )
    .post("/settings/ci/:trustId/remove", ({ request, params }) =>
      pages.submit(request, "organization", (viewer, form, site) => {
        const trust = listTrusts(ctx, viewer.org, all).items.find(({ id }) => id === params.trustId);
        const asks =
          trust &&
          askBefore(
            pages,
            { request, viewer, form },
            {
              title: `Stop trusting ${trust.repository}?`,
              loses: ["Its jobs can’t get API keys, and keys that they have stop working."],
              act: "Remove",
              back: "/settings/ci",
            },
          );
        if (asks) return asks;
        const { repository } = deleteTrust(ctx, viewer.org, params.trustId);
        return trustsPage(viewer, site, { done: `${repository} is no longer trusted.` });
      }),
    );
};

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
