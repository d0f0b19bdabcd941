import { Elysia } from "elysia";
import { getOrg, updateOrgAsPerson } from "../../auth/orgs.ts";
import type { Context } from "../../context.ts";
import { badRequest } from "../../errors.ts";
import { getSpending } from "../../runs/spending.ts";
import { type FormResult, showPage, submitSettings } from "../page-requests.tsx";
import { OrgPage } from "../pages/settings.tsx";
import type { Site } from "../site.ts";
import { may, type Viewer } from "../viewer.ts";

const orgPage = (ctx: Context, viewer: Viewer, site: Site, result: FormResult = {}) => (
  <OrgPage
    {...{ site, viewer, ...result }}
    org={getOrg(ctx, viewer.org)}
    spentUsd={getSpending(ctx, viewer.org).spentUsd}
    defaults={{ runsAtOnce: ctx.config.runsPerOrg, runsADay: ctx.config.runsADay }}
    mayChange={may(viewer, "organization")}
  />
);

/** Settings page of the organization. */
export const settingsPages = (ctx: Context) =>
  new Elysia({ name: "settings pages" })
    .get("/settings", ({ request }) => showPage(ctx, request, (viewer, site) => orgPage(ctx, viewer, site)))
    .post("/settings", ({ request }) =>
      submitSettings(ctx, request, "organization", orgPage, (viewer, form, site) => {
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
        return orgPage(ctx, { ...viewer, orgName: name, timeZone }, site, { done: "Settings saved." });
      }),
    );

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
