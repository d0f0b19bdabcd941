import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { badRequest } from "../../errors.ts";
import type { Service } from "../../service.ts";
import { privateAnswer } from "../answer.ts";
import { page } from "../describe.ts";
import type { Front } from "../front.tsx";
import { toPage } from "../layout.tsx";
import { ComparePage } from "../pages/compare.tsx";
import { titleOf } from "../words.ts";

/** Reports side by side. */
export const comparePages = ({ reports, compare }: Service, front: Front) =>
  new Elysia({ name: "compare pages" }).get(
    "/compare",
    ({ request, query: { slugs, ...ticked } }) =>
      front.show(request, (viewer, site) => {
        // The list of reports ticks them newest first.
        if (slugs === undefined) {
          const picked = Object.keys(ticked).reverse();
          return front.seeOther(`/compare?${new URLSearchParams({ slugs: picked.join(",") })}`);
        }
        const named = slugs.split(",").filter((slug) => slug !== "");
        if (named.length < 2 || named.length > 10)
          throw badRequest("tick 2 to 10 reports in the list of reports, then compare them");
        const compared = compare.compareReports(viewer.org, named);
        const titles = named.map((slug) => titleOf(reports.getReport(viewer.org, slug).task));
        return privateAnswer("html", toPage(<ComparePage {...{ site, viewer, compared, titles }} />));
      }),
    {
      query: Type.Object(
        { slugs: Type.Optional(Type.String({ maxLength: 2000, description: "2 to 10, separated by commas" })) },
        { additionalProperties: Type.String() },
      ),
      ...page("comparePage", "Reports side by side, with the verdict where there are repeats", {
        refuses: true,
        misses: true,
        needsKey: true,
      }),
    },
  );
