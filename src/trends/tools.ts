import { Type } from "@sinclair/typebox";
import { findClearChange } from "../comparisons/latest.ts";
import type { Context } from "../context.ts";
import { promptIdArgument, readOnly, type Tool, takeFitting, tool, Undescribed } from "../mcp/tool.ts";
import { readPromptId } from "../prompts/names.ts";
import { getPromptRow } from "../prompts/prompts.ts";
import { Nullable } from "../schema.ts";
import { getTrends, Trends, trendFilter } from "./trends.ts";

const { points, changes, nextUntil } = Trends.properties;
const BriefTrends = Type.Object({
  agent: Nullable(Type.String()),
  agentVersion: Nullable(Type.String()),
  model: Nullable(Type.String()),
  methodology: Nullable(Undescribed),
  points,
  others: Type.Array(Undescribed),
  changes: Type.Array(Type.Object({ what: Type.String(), note: changes.items.properties.note })),
  series: Type.Array(Undescribed),
  nextUntil,
});

export const trendTools = (ctx: Context): Tool[] => [
  tool({
    name: "get_trends",
    title: "Show trends",
    description:
      "Show scores, success rate, time and cost by day, week or month, for one prompt or all. others contains other versions and methodologies. To compare two evaluations, use compare_reports.",
    input: Type.Object({ ...trendFilter, promptId: Type.Optional(promptIdArgument) }),
    output: BriefTrends,
    annotations: readOnly,
    run({ promptId: name, ...filter }, { caller: { org } }) {
      const promptId = name === undefined ? undefined : getPromptRow(ctx, org, readPromptId(ctx, org, name)).id;
      const trends = getTrends(ctx, org, { ...filter, promptId }, findClearChange(ctx, org, promptId));
      const { points: _points, others: _others, ...rest } = trends;
      const points = takeFitting(trends.points.toReversed(), rest).toReversed();
      const nextUntil = points.length < trends.points.length ? (points[0]?.from ?? null) : trends.nextUntil;
      // The other series get the room that the points leave.
      const fit = takeFitting([...points, ...trends.others], rest).length;
      return { ...trends, points, others: trends.others.slice(0, Math.max(0, fit - points.length)), nextUntil };
    },
  }),
];
