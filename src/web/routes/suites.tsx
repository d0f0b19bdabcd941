import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { Context } from "../../context.ts";
import { baseline } from "../../suites/baseline.ts";
import { compareSuite } from "../../suites/comparison.ts";
import { listSuites } from "../../suites/suites.ts";
import { showPage } from "../page-requests.tsx";
import { SuitesPage } from "../pages/suites.tsx";
import { queryOptions } from "../query.ts";

/** Pages that show products side by side on a suite. */
export const suitePages = (ctx: Context) =>
  new Elysia({ name: "suite pages" }).get(
    "/suites",
    ({ request, query: { suite = baseline.id } }) =>
      showPage(ctx, request, (viewer, site) => {
        const comparison = compareSuite(ctx, viewer.org, suite);
        return <SuitesPage {...{ site, viewer, comparison }} suites={listSuites(ctx, viewer.org)} />;
      }),
    queryOptions({ suite: Type.Optional(Type.String({ maxLength: 50 })) }),
  );
