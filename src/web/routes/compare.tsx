import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { badRequest } from "../../errors.ts";
import { titleOf } from "../../reports/labels.ts";
import type { Service } from "../../service.ts";
import { privateAnswer } from "../answer.ts";
import { toPage } from "../components/layout.tsx";
import { page } from "../describe.ts";
import type { PageRequests } from "../page-requests.tsx";
import { ComparePage } from "../pages/compare.tsx";

/** The comparison page. */
export const comparePages = ({ reports, compare }: Service, pages: PageRequests) =>
  new Elysia({ name: "compare pages" }).get(
    "/compare",
    ({ request, query: { slugs, ...ticked } }) =>
      pages.show(request, (viewer, site) => {
        // The list of reports sends the checked slugs newest first; a comparison reads oldest first.
        if (slugs === undefined) {
          const picked = Object.keys(ticked).reverse();
          return pages.seeOther(`/compare?${new URLSearchParams({ slugs: picked.join(",") })}`);
        }
        const named = slugs.split(",").filter((slug) => slug !== "");
        if (named.length < 2 || named.length > 10)
          throw badRequest("select 2 to 10 reports in the list of reports to compare them");
        const compared = compare.compareReports(viewer.org, named);
        const titles = named.map((slug) => titleOf(reports.getReport(viewer.org, slug).task));
        return privateAnswer("html", toPage(<ComparePage {...{ site, viewer, compared, titles }} />));
      }),
    {
      query: Type.Object(
        {
          slugs: Type.Optional(
            Type.String({ maxLength: 2000, description: "2 to 10 report slugs, separated by commas" }),
          ),
        },
        { additionalProperties: Type.String() },
      ),
      ...page("comparePage", "Report comparison page", {
        refuses: true,
        misses: true,
        needsKey: true,
      }),
    },
  );
