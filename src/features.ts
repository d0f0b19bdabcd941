import { createAgentList } from "./agents/choice.ts";
import { hasArchive } from "./archives/archives.ts";
import { createCompare } from "./comparisons/compare.ts";
import { createLatest } from "./comparisons/latest.ts";
import type { Context, OrgId } from "./context.ts";
import { createExports } from "./exchange/export.ts";
import { createImports } from "./exchange/import.ts";
import { createField } from "./field/field.ts";
import { createFieldReports } from "./field/reports.ts";
import { createDismissals } from "./friction/dismissals.ts";
import { createFriction } from "./friction/friction.ts";
import { getModel, listModelSecrets } from "./models/models.ts";
import type { Outbox } from "./notifications/outbox.ts";
import { createPrompts } from "./prompts/prompts.ts";
import { createAnnouncements } from "./reports/announcements.ts";
import { createBaselines } from "./reports/baseline.ts";
import { createCounts } from "./reports/counts.ts";
import { createGradings } from "./reports/gradings.ts";
import { reportMarkdown } from "./reports/markdown.ts";
import { createReports } from "./reports/reports.ts";
import { createTimelines } from "./reports/timeline.ts";
import { createRedaction } from "./runs/redaction.ts";
import { createShares } from "./shares/shares.ts";
import { createScoreCounts } from "./trends/score-days.ts";

type Parts = {
  outbox: Outbox;
  /** The program whose threads write exports; default: this thread. */
  threadProgram?: string;
};

export type Features = ReturnType<typeof createFeatures>;

/** Reading and storing: everything that needs no job. */
export function createFeatures(ctx: Context, { outbox, threadProgram }: Parts) {
  const { config } = ctx;
  const listAgents = createAgentList(ctx.agents);
  const prompts = createPrompts(ctx, {
    listAgents,
    agentModel: config.agentModel,
    checkModel: (org, model) => getModel(ctx, org, model),
    hasArchive: (org, id) => hasArchive(ctx, org, id),
  });
  const dismissals = createDismissals(ctx);
  const redact = (org: OrgId, text: string) => createRedaction(listModelSecrets(ctx, org)).clean(text);
  const field = { ...createField(ctx), ...createFieldReports(ctx, { redact }) };
  const friction = createFriction(ctx, { ...dismissals, ...field });
  const { announceReport, announceFriction } = createAnnouncements(ctx, outbox);
  const countReport = createCounts(ctx, [createScoreCounts(ctx)], announceFriction);
  const baselines = createBaselines(ctx);
  const reports = createReports(ctx, { friction, baselines, countReport, announceReport });
  const compare = createCompare(ctx, { reports, baselines });
  const shares = createShares(ctx);
  const getTimeline = createTimelines(ctx);
  const gradings = createGradings(ctx, reports);
  const latest = createLatest(baselines, compare);
  const exports = createExports(ctx, { reports, toMarkdown: reportMarkdown, program: threadProgram ?? null });
  const imports = createImports(ctx, createCounts(ctx, [createScoreCounts(ctx)]));
  return {
    listAgents,
    prompts,
    dismissals,
    friction,
    field,
    baselines,
    reports,
    compare,
    shares,
    getTimeline,
    gradings,
    latest,
    exports,
    imports,
  };
}
