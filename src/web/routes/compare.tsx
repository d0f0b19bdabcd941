import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { compareSides } from "../../comparisons/compare.ts";
import { compareReports } from "../../comparisons/side-by-side.ts";
import type { SideQuery } from "../../comparisons/sides.ts";
import type { Context, OrgId } from "../../context.ts";
import { badRequest } from "../../errors.ts";
import { titleOf } from "../../reports/labels.ts";
import { getReport } from "../../reports/reports.ts";
import { docsVariantOf } from "../../runs/lists.ts";
import { getRun } from "../../runs/runs.ts";
import { orgField } from "../components/layout.tsx";
import { showPage } from "../page-requests.tsx";
import { seeOther, seeOtherWithToast } from "../page-responses.ts";
import { ComparePage, CompareSidesPage } from "../pages/compare.tsx";

/** The slug for a selected row, which is a run or a report. */
const slugOf = (ctx: Context, org: OrgId, name: string) =>
  /^[0-9a-f-]{36}$/.test(name) ? (getRun(ctx, org, name).report?.slug ?? null) : name;

/** The minimum and maximum number of reports in a side-by-side comparison. */
const [minReports, maxReports] = [2, 10];

/**
 * Redirects to the comparison of the reports that were selected in a list. The list sends one parameter for each row, newest first. A comparison
 * shows the oldest report first.
 */
function redirectToComparison(ctx: Context, org: OrgId, selectedRows: Record<string, string>): Response {
  const names = Object.keys(selectedRows).filter((name) => name !== orgField);
  const slugs = names.flatMap((name) => slugOf(ctx, org, name) ?? []).reverse();
  if (slugs.length < minReports || slugs.length > maxReports)
    return seeOtherWithToast(ctx, "/reports", "reportsNotSelected");
  return seeOther(ctx, `/compare?${new URLSearchParams({ slugs: slugs.join(",") })}`);
}

/** At least one UUID. */
const idList = { minLength: 36, maxLength: 4000 };
const idsIn = (list: string) => list.split(",").filter((id) => id !== "");

/** The comparison pages: reports side by side, or all runs of evaluations. */
export const comparePages = (ctx: Context) =>
  new Elysia({ name: "compare pages" }).get(
    "/compare",
    ({ request, query: { slugs, base, head, agent, model, acrossAgents, ...selectedRows } }) =>
      showPage(ctx, request, (viewer, site) => {
        if (base !== undefined && head !== undefined) {
          const sideOf = (ids: string): SideQuery => ({ of: idsIn(ids), agent, model });
          const comparison = compareSides(ctx, viewer.org, sideOf(base), sideOf(head));
          return <CompareSidesPage {...{ site, viewer, comparison }} />;
        }
        if (slugs === undefined) return redirectToComparison(ctx, viewer.org, selectedRows);
        const slugList = slugs.split(",").filter((slug) => slug !== "");
        if (slugList.length < minReports || slugList.length > maxReports)
          throw badRequest("Select 2 to 10 reports in the list of reports to compare them.");
        const isAcrossAgents = acrossAgents === "1";
        const comparison = compareReports(ctx, viewer.org, slugList, { acrossAgents: isAcrossAgents });
        const reports = slugList.map((slug) => getReport(ctx, viewer.org, slug));
        const titles = reports.map(({ task }) => titleOf(task));
        const docsVariants = reports.map(({ run }) => docsVariantOf(run));
        const [promptId, ...others] = new Set(reports.map(({ prompt }) => prompt.id));
        return (
          <ComparePage
            {...{ site, viewer, comparison, titles, docsVariants, isAcrossAgents }}
            promptId={others.length === 0 ? promptId : undefined}
          />
        );
      }),
    {
      query: Type.Object(
        {
          slugs: Type.Optional(
            Type.String({ maxLength: 2000, description: "2 to 10 report slugs, separated by commas" }),
          ),
          base: Type.Optional(Type.String({ ...idList, description: "IDs of evaluations, separated by commas" })),
          head: Type.Optional(Type.String({ ...idList, description: "IDs of later evaluations" })),
          agent: Type.Optional(Type.String({ maxLength: 200, description: "Only runs of this agent" })),
          model: Type.Optional(Type.String({ maxLength: 200, description: "Only runs with this model" })),
          acrossAgents: Type.Optional(
            Type.Literal("1", { description: "Compare different agents, versions and models" }),
          ),
        },
        { additionalProperties: Type.String() },
      ),
    },
  );
