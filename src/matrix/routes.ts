import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { Context } from "../context.ts";
import { orgOf } from "../http/caller.ts";
import { alsoCsv, toCsvResponse } from "../http/csv.ts";
import { errors, operation } from "../http/operation.ts";
import { pageOf, pageQuery } from "../http/paging.ts";
import { OneOf } from "../schema.ts";
import { matrixCsv } from "./csv.ts";
import { getMatrix } from "./matrix.ts";
import { Matrix, matrixFilter } from "./schema.ts";

/** The results of agents on prompts, side by side. */
export const matrixRoutes = (ctx: Context) =>
  new Elysia({ name: "matrix" }).get(
    "/api/v1/matrix",
    ({ request, query: { format, limit, offset, ...filter } }) => {
      const matrix = getMatrix(ctx, orgOf(request), filter, pageOf({ limit, offset }));
      return format === "csv" ? toCsvResponse(matrixCsv(matrix), "evald-agents.csv") : matrix;
    },
    {
      query: Type.Object({
        ...matrixFilter,
        ...pageQuery,
        format: Type.Optional(OneOf(["json", "csv"], "csv: one row per agent, then one per prompt and agent")),
      }),
      ...alsoCsv(
        operation("Reports", "getMatrix", "Compare agents side by side on prompts", {
          200: Matrix,
          ...errors(400, 404),
        }),
      ),
    },
  );
