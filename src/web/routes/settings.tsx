import { Elysia } from "elysia";
import { getOrg, updateOrgAsPerson } from "../../auth/orgs.ts";
import { badRequest } from "../../errors.ts";
import { getSpending } from "../../runs/spending.ts";
import type { Service } from "../../service.ts";
import { privateAnswer } from "../answer.ts";
import { toPage } from "../components/layout.tsx";
import type { PageRequests } from "../page-requests.tsx";
import { OrgPage } from "../pages/settings.tsx";
import { type FormResult, settingsForms } from "../settings-forms.ts";
import type { Site } from "../site.ts";
import { may, type Viewer } from "../viewer.ts";

/** Settings page of the organization. */
export const settingsPages = ({ ctx }: Service, pages: PageRequests) => {
  const { config } = ctx;
  const act = settingsForms(pages);

  const orgPage = (viewer: Viewer, site: Site, result: FormResult = {}, status = 200) =>
    privateAnswer(
      "html",
      toPage(
        <OrgPage
          {...{ site, viewer, ...result }}
          org={getOrg(ctx, viewer.org)}
          spentUsd={getSpending(ctx, viewer.org).spentUsd}
          defaults={{ runsAtOnce: config.runsPerOrg, runsADay: config.runsADay }}
          mayChange={may(viewer, "organization")}
        />,
      ),
      status,
    );
  return new Elysia({ name: "settings pages" })
    .get("/settings", ({ request }) => pages.show(request, (viewer, site) => orgPage(viewer, site)))
    .post("/settings", ({ request }) =>
      act(request, "organization", orgPage, (viewer, form, site) => {
        updateOrgAsPerson(ctx, viewer.org, {
          name: form.get("name") ?? undefined,
          timeZone: form.get("timeZone") ?? undefined,
          maxRunsAtOnce: toLimit(form, "maxRunsAtOnce", "Concurrent runs"),
          maxRunsADay: toLimit(form, "maxRunsADay", "Daily run limit"),
          maxUsdAMonth: toUsd(form, "maxUsdAMonth", "Monthly budget"),
          maxUsdARun: toUsd(form, "maxUsdARun", "Budget per run"),
          judgeModels: toNames(form, "judgeModels"),
          hasResultsPage: form.has("hasResultsPage"),
        });
        const { name, timeZone } = getOrg(ctx, viewer.org);
        return orgPage({ ...viewer, orgName: name, timeZone }, site, { done: "Settings saved." });
      }),
    );
};

function toLimit(form: URLSearchParams, name: string, label: string): number | null {
  const text = (form.get(name) ?? "").trim();
  if (text === "") return null;
  if (!/^\d{1,9}$/.test(text))
    throw badRequest(
      `${label}: ${JSON.stringify(text)} is not a whole number. Leave it blank to use the server default.`,
    );
  return Number(text);
}

function toUsd(form: URLSearchParams, name: string, label: string): number | null {
  const text = (form.get(name) ?? "").trim();
  if (text === "") return null;
  if (!/^\d{1,7}(\.\d{1,6})?$/.test(text))
    throw badRequest(
      `${label}: ${JSON.stringify(text)} is not an amount in USD, such as 50 or 0.5. Leave it blank for no limit.`,
    );
  return Number(text);
}

const toNames = (form: URLSearchParams, name: string): string[] | null => {
  const names = (form.get(name) ?? "")
    .split(",")
    .map((each) => each.trim())
    .filter(Boolean);
  return names.length === 0 ? null : names;
};
