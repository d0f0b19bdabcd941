import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { Context } from "../context.ts";
import { orgOf } from "../http/caller.ts";
import { jsonBody } from "../http/elysia.ts";
import { errors, operation } from "../http/operation.ts";
import { OneOf } from "../schema.ts";
import { setBudget } from "./budgets.ts";
import { spendingCsv } from "./csv.ts";
import { getSpendingReport } from "./report.ts";
import { Budget, BudgetInput, SpendingReport, spendingQuery } from "./schema.ts";

const spendingOperation = operation("Spending", "getSpending", "Get what models cost in a month, and the budgets", {
  200: SpendingReport,
  ...errors(400),
});
Object.assign(spendingOperation.detail.responses["200"]?.content ?? {}, { "text/csv": { schema: { type: "string" } } });

/** What models cost, and the budgets of prompts and tags. */
export const spendingRoutes = (ctx: Context) =>
  new Elysia({ name: "spending" })
    .get(
      "/api/v1/spending",
      ({ request, query: { month, format } }) => {
        const report = getSpendingReport(ctx, orgOf(request), month);
        return format === "csv" ? csvResponse(report) : report;
      },
      {
        query: Type.Object({
          ...spendingQuery,
          format: Type.Optional(OneOf(["json", "csv"], "csv: one row per row of a breakdown")),
        }),
        ...spendingOperation,
      },
    )
    .put("/api/v1/budgets", ({ request, body }) => setBudget(ctx, orgOf(request), body), {
      ...jsonBody(BudgetInput),
      ...operation("Spending", "setBudget", "Set or remove the monthly budget of a prompt or tag", {
        200: Type.Array(Budget, { description: "All budgets of prompts and tags" }),
        ...errors(400, 404, 413),
      }),
    });

const csvResponse = (report: SpendingReport): Response =>
  new Response(spendingCsv(report), {
    headers: {
      "content-type": "text/csv; charset=utf-8",
      "content-disposition": `attachment; filename="evald-spending-${report.from.slice(0, 10)}.csv"`,
      "cache-control": "no-store",
    },
  });
