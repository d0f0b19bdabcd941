import type { Context } from "../context.ts";
import { countVerificationRuns } from "../fixes/done-fixes.ts";
import type { Report } from "../reports/schema.ts";
import { getEstimate } from "../runs/estimates.ts";
import type { Verification } from "./components/fixes.tsx";
import { may, type Viewer } from "./viewer.ts";

/** What verifying each open fix requires; null if the viewer may not start runs. */
export function verificationsOf(ctx: Context, viewer: Viewer, report: Report): Map<string, Verification> | null {
  if (!may(viewer, "run") || report.recommendations.length === 0) return null;
  const { model, costUsd } = getEstimate(ctx, viewer.org, report.prompt.id);
  const maxUsdPerRun = model === null ? 0 : (costUsd?.high ?? null);
  const fingerprints = new Map(report.frictionPoints.map(({ id, fingerprint }) => [id, fingerprint]));
  return new Map(
    report.recommendations.flatMap(({ id, frictionIds, dismissed }) => {
      const fingerprint = fingerprints.get(frictionIds[0] ?? "");
      if (dismissed || !fingerprint) return [];
      const runs = countVerificationRuns(ctx, viewer.org, report.prompt.id, fingerprint);
      if (runs === null) return [];
      return [[id, { fingerprint, runs, maxUsd: maxUsdPerRun === null ? null : maxUsdPerRun * runs }] as const];
    }),
  );
}
