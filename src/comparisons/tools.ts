import { Type } from "@sinclair/typebox";
import type { Context } from "../context.ts";
import { readOnly, slugArgument, type Tool, takeFitting, tool, Undescribed } from "../mcp/tool.ts";
import { readSlug } from "../reports/names.ts";
import { compareReports, ReportsComparison } from "./side-by-side.ts";

const { reason, method, delta, p } = ReportsComparison.properties.evidence.properties;
const { shared, only, total } = ReportsComparison.properties.friction.properties;
const { slug, score, scope, grade, outcome } = ReportsComparison.properties.reports.items.properties;
/** The fields that an agent needs most; a result has more. */
const BriefComparison = Type.Object({
  ...ReportsComparison.properties,
  reports: Type.Array(Type.Object({ slug, score, scope, grade, outcome })),
  friction: Type.Object({
    shared: Type.Array(Type.Pick(shared.items, ["fingerprint", "severity", "title"]), {
      description: shared.description,
    }),
    only: Type.Array(Type.Pick(only.items, ["fingerprint", "severity", "title", "slugs"])),
    total,
  }),
  evidence: Type.Object({ reason, method, delta, p, sides: Type.Array(Undescribed) }),
});

export const comparisonTools = (ctx: Context): Tool[] => [
  tool({
    name: "compare_reports",
    title: "Compare reports",
    description:
      "Compare 2 to 10 reports side by side: scores, dimensions, metrics, shared and unshared friction points, and whether they are comparable. For a statistical verdict, pass one slug from each of two evaluations with at least 4 runs.",
    input: Type.Object({
      slugs: Type.Array(slugArgument, { minItems: 2, maxItems: 10, uniqueItems: true }),
      acrossAgents: Type.Optional(Type.Boolean({ description: "Compare different agents, versions or models" })),
    }),
    output: BriefComparison,
    annotations: readOnly,
    run({ slugs, acrossAgents }, { caller }) {
      const names = slugs.map((slug) => readSlug(ctx, caller.org, slug));
      const { friction, ...rest } = compareReports(ctx, caller.org, names, { acrossAgents });
      const fit = takeFitting([...friction.shared, ...friction.only], rest).length;
      const shared = friction.shared.slice(0, fit);
      const only = friction.only.slice(0, fit - shared.length);
      return { ...rest, friction: { ...friction, shared, only } };
    },
  }),
];
