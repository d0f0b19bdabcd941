import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { Context } from "../context.ts";
import { orgOf } from "../http/caller.ts";
import { alsoCsv, toCsvResponse } from "../http/csv.ts";
import { jsonBody } from "../http/elysia.ts";
import { errors, operation } from "../http/operation.ts";
import { OneOf } from "../schema.ts";
import { setBudget } from "./budgets.ts";
import { spendingCsv } from "./csv.ts";
import { getSpendingReport } from "./report.ts";
import { Budget, BudgetInput, SpendingReport, spendingQuery } from "./schema.ts";

/** What models cost, and the budgets of prompts and tags. */
export const spendingRoutes = (ctx: Context) =>
  new Elysia({ name: "spending" })
    .get(
      "/api/v1/spending",
      ({ request, query: { month, format } }) => {
        const report = getSpendingReport(ctx, orgOf(request), month);
        return format === "csv"
          ? toCsvResponse(spendingCsv(report), `evald-spending-${report.from.slice(0, 10)}.csv`)
          : report;
      },
      {
        query: Type.Object({
          ...spendingQuery,
          format: Type.Optional(OneOf(["json", "csv"], "csv: one row per row of a breakdown")),
        }),
        ...alsoCsv(
          operation("Spending", "getSpending", "Get what models cost in a month, and the budgets", {
            200: SpendingReport,
            ...errors(400),
          }),
        ),
      },
    )
    .put("/api/v1/budgets", ({ request, body }) => setBudget(ctx, orgOf(request), body), {
      ...jsonBody(BudgetInput),
      ...operation("Spending", "setBudget", "Set or remove the monthly budget of a prompt or tag", {
        200: Type.Array(Budget, { description: "All budgets of prompts and tags" }),
        ...errors(400, 404, 413),
      }),
    });
