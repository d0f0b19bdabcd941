import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { notFound } from "../../errors.ts";
import { outcomeLabels, scoreSummary } from "../../reports/labels.ts";
import type { Service } from "../../service.ts";
import { publicAnswer } from "../answer.ts";
import { renderBadge } from "../components/badge.tsx";
import { page } from "../describe.ts";

/** Public badges: the latest score of a prompt as an image, without signing in, if the prompt allows it. */
export const badgePages = ({ prompts, latest, reports }: Service) => {
  function badgeOf(promptId: string): string {
    const org = prompts.findBadgeOrg(promptId);
    if (org === null) throw notFound("This badge does not exist, or it is not public.");
    const newest = latest.findLatest(org, promptId.toLowerCase());
    if (newest === null) return renderBadge({ label: "evald", message: "no report yet", grade: null });
    const report = reports.getReport(org, newest.slug);
    const message = scoreSummary(report) ?? outcomeLabels[report.outcome];
    return renderBadge({ label: "evald", message, grade: report.grade });
  }

  return new Elysia({ name: "badges" }).get(
    "/badges/:badge",
    ({ request, params }) => publicAnswer(request, "svg", badgeOf(params.badge.replace(/\.svg$/, ""))),
    {
      params: Type.Object({ badge: Type.String({ description: "ID of the prompt, followed by .svg" }) }),
      ...page("badge", "Badge with the latest score of a prompt", { types: ["image/svg+xml"], misses: true }),
    },
  );
};
