import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { Context } from "../../context.ts";
import { matrixCsv } from "../../matrix/csv.ts";
import { getMatrix } from "../../matrix/matrix.ts";
import { matrixFilter } from "../../matrix/schema.ts";
import { listTags } from "../../prompts/lists.ts";
import { OneOf } from "../../schema.ts";
import { showPage } from "../page-requests.tsx";
import { MatrixPage } from "../pages/matrix.tsx";
import { dayAfter, queryOptions } from "../query.ts";
import { toDownload, toJsonDownload } from "../responses.ts";

const perPage = 50;
/** The maximum number of prompts in a file. The API has the same maximum. */
const maxExported = 1000;

/** Pages that show agents side by side. */
export const matrixPages = (ctx: Context) =>
  new Elysia({ name: "matrix pages" })
    .get(
      "/matrix",
      ({ request, query: { offset = 0, ...query } }) =>
        showPage(ctx, request, (viewer, site) => {
          const filter = { ...query, until: dayAfter(query.until) };
          const matrix = getMatrix(ctx, viewer.org, filter, { limit: perPage, offset });
          return <MatrixPage {...{ site, viewer, matrix, query, offset, perPage }} tags={listTags(ctx, viewer.org)} />;
        }),
      queryOptions({ ...matrixFilter, offset: Type.Optional(Type.Integer({ minimum: 0, maximum: 100_000 })) }),
    )
    .get(
      "/matrix/export",
      ({ request, query: { format = "json", ...query } }) =>
        showPage(ctx, request, (viewer) => {
          const filter = { ...query, until: dayAfter(query.until) };
          const matrix = getMatrix(ctx, viewer.org, filter, { limit: maxExported, offset: 0 });
          const name = "evald-agents";
          return format === "csv" ? toDownload("csv", matrixCsv(matrix), name) : toJsonDownload(matrix, name);
        }),
      queryOptions({ ...matrixFilter, format: Type.Optional(OneOf(["json", "csv"])) }),
    );
