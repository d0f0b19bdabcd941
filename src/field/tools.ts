import { Type } from "@sinclair/typebox";
import type { Context } from "../context.ts";
import { type Tool, tool } from "../mcp/tool.ts";
import { reportFriction } from "./reports.ts";
import { frictionReport, Received } from "./schema.ts";

/** The tool of keys that can only report friction. No other key lists it. */
export const fieldTools = (ctx: Context): Tool[] => [
  tool({
    name: "report_friction",
    title: "Report friction",
    description:
      "Report that this product or its docs cost you time: a wrong or missing instruction, an unclear error, a broken sample, a dead link. Call it once per cause, when you have worked around it or given up. Don't include secrets or personal data.",
    input: Type.Object(frictionReport),
    output: Received,
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: false },
    run: (report, { caller }) => reportFriction(ctx, caller.org, caller.keyId, report),
  }),
];
