import { Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { Elysia } from "elysia";
import type { Context } from "../context.ts";
import { badRequest } from "../errors.ts";
import { orgOf } from "../http/caller.ts";
import { errors, operation } from "../http/operation.ts";
import { mapOf, OneOf } from "../schema.ts";
import { Comparison, compareSides } from "./compare.ts";
import { compareReports, ReportsComparison } from "./side-by-side.ts";
import type { SideQuery } from "./sides.ts";

const sideQuery = (side: "base" | "head", description: string) => ({
  [side]: Type.String({ minLength: 1, maxLength: 4000, description }),
  [`${side}Agent`]: Type.Optional(Type.String({ maxLength: 100, description: "Only runs of this agent" })),
  [`${side}Model`]: Type.Optional(Type.String({ maxLength: 200, description: "Only runs of this model" })),
  [`${side}Args`]: Type.Optional(
    Type.String({
      maxLength: 4000,
      description: 'Only runs with these template arguments, such as {"language":"Python"}',
    }),
  ),
});
const acrossAgents = Type.Optional(
  OneOf(["1"], "1: compare even if agent, version, model or context differ; otherwise the verdict is not_comparable"),
);
const CompareQuery = Type.Object({
  ...sideQuery(
    "base",
    "Comma-separated report slugs, evaluation IDs or prompt IDs (their last ten published runs); or baseline, for the baseline of the head",
  ),
  ...sideQuery(
    "head",
    "The other side, in the same form; if both sides have the same 6 or more prompts, results are paired by prompt",
  ),
  acrossAgents,
});

function toSlugs(text: string): string[] {
  const slugs = listIn(text);
  if (slugs.length < 2 || slugs.length > 10)
    throw badRequest("Invalid slugs: must be 2 to 10 report slugs, separated by commas.");
  return slugs;
}

const listIn = (text: string): string[] => text.split(",").filter((item) => item !== "");

function toSide(query: Record<string, string | undefined>, side: "base" | "head"): SideQuery {
  const { [side]: of = "", [`${side}Agent`]: agent, [`${side}Model`]: model, [`${side}Args`]: args } = query;
  return { of: listIn(of), agent, model, templateArgs: args === undefined ? undefined : readArgs(`${side}Args`, args) };
}

function readArgs(field: string, text: string): Record<string, string> {
  try {
    const value: unknown = JSON.parse(text);
    if (Value.Check(mapOf(Type.String()), value)) return value;
  } catch {}
  throw badRequest(`Invalid ${field}: must be a JSON object of strings, such as {"language":"Python"}.`);
}

export const comparisonRoutes = (ctx: Context) =>
  new Elysia({ name: "comparisons" })
    .get(
      "/api/v1/compare",
      ({ request, query }) => {
        const sides = query as Record<string, string | undefined>;
        return compareSides(ctx, orgOf(request), toSide(sides, "base"), toSide(sides, "head"), {
          acrossAgents: query.acrossAgents === "1",
        });
      },
      {
        query: CompareQuery,
        ...operation(
          "Reports",
          "compare",
          "Compare two sets of runs: whether the head is better or worse than its base, with statistics",
          {
            200: Comparison,
            ...errors(400, 404),
          },
        ),
      },
    )
    .get(
      "/api/v1/compare/reports",
      ({ request, query }) =>
        compareReports(ctx, orgOf(request), toSlugs(query.slugs), { acrossAgents: query.acrossAgents === "1" }),
      {
        query: Type.Object({
          slugs: Type.String({ maxLength: 2000, description: "2 to 10 report slugs, separated by commas" }),
          acrossAgents,
        }),
        ...operation("Reports", "compareReports", "Compare 2 to 10 reports side by side", {
          200: ReportsComparison,
          ...errors(400, 404),
        }),
      },
    );
