import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { Context } from "../../context.ts";
import { invalidField } from "../../errors.ts";
import { listPromptChoices, listTags } from "../../prompts/lists.ts";
import { OneOf } from "../../schema.ts";
import { setBudget } from "../../spending/budgets.ts";
import { spendingCsv } from "../../spending/csv.ts";
import { findFirstSpending, getSpendingReport } from "../../spending/report.ts";
import { spendingQuery } from "../../spending/schema.ts";
import { showPage, submitOrShowAgain } from "../page-requests.tsx";
import { seeOther } from "../page-responses.ts";
import { SpendingPage } from "../pages/spending.tsx";
import { queryOptions } from "../query.ts";
import { toDownload, toJsonDownload } from "../responses.ts";
import type { Site } from "../site.ts";
import { may, type Viewer } from "../viewer.ts";

/** The month that is `months` later. The number can be negative. A month is a text such as 2026-11. */
const monthAfter = (month: string, months: number): string =>
  Temporal.PlainYearMonth.from(month).add({ months }).toString();

type SpendingPageProps = { month?: string; successMessage?: string; errorMessage?: string };

function spendingPage(
  ctx: Context,
  viewer: Viewer,
  site: Site,
  { month: chosenMonth, ...messages }: SpendingPageProps = {},
) {
  const report = getSpendingReport(ctx, viewer.org, chosenMonth);
  // A month begins at midnight in the time zone of the organization. Its second day is in the same month in UTC.
  const month = new Date(Date.parse(report.from) + 36 * 3600_000).toISOString().slice(0, 7);
  const earliest = findFirstSpending(ctx, viewer.org);
  const isCurrent = Date.parse(report.until) > ctx.now();
  return (
    <SpendingPage
      {...{ site, viewer, report, month, ...messages }}
      previousMonth={earliest !== null && earliest < Date.parse(report.from) ? monthAfter(month, -1) : null}
      nextMonth={isCurrent ? null : monthAfter(month, 1)}
      prompts={listPromptChoices(ctx, viewer.org)}
      tags={listTags(ctx, viewer.org)}
      mayChange={may(viewer, "organization")}
    />
  );
}

/** The prompt or tag that the value of a form field names. */
function subjectOf(field: string): { promptId: string } | { tag: string } {
  const [kind = "", ...rest] = field.split(":");
  return kind === "prompt" ? { promptId: rest.join(":") } : { tag: rest.join(":") };
}

/** What models cost, and the budgets of prompts and tags. */
export const spendingPages = (ctx: Context) =>
  new Elysia({ name: "spending pages" })
    .get(
      "/spending",
      ({ request, query: { month } }) =>
        showPage(ctx, request, (viewer, site) => spendingPage(ctx, viewer, site, { month })),
      queryOptions(spendingQuery),
    )
    .get(
      "/spending/export",
      ({ request, query: { month, format = "json" } }) =>
        showPage(ctx, request, (viewer) => {
          const report = getSpendingReport(ctx, viewer.org, month);
          const name = `evald-spending-${report.from.slice(0, 10)}`;
          return format === "csv" ? toDownload("csv", spendingCsv(report), name) : toJsonDownload(report, name);
        }),
      queryOptions({ ...spendingQuery, format: Type.Optional(OneOf(["json", "csv"])) }),
    )
    .post("/spending/budgets", ({ request }) =>
      submitOrShowAgain(ctx, request, "organization", spendingPage, (viewer, form) => {
        const removedSubject = form.get("remove");
        const amountText = (form.get("maxUsdAMonth") ?? "").trim();
        const maxUsdAMonth = removedSubject === null ? Number(amountText) : null;
        if (maxUsdAMonth !== null && !(maxUsdAMonth > 0 && maxUsdAMonth <= 1_000_000))
          throw invalidField("maxUsdAMonth", "must be an amount above 0");
        setBudget(ctx, viewer.org, { ...subjectOf(removedSubject ?? form.get("of") ?? ""), maxUsdAMonth });
        return seeOther(ctx, "/spending#budgets");
      }),
    );
