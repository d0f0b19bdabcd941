import type { Agent } from "./agents/agent.ts";
import { createAgentList } from "./agents/choice.ts";
import { createArchives } from "./archives/archives.ts";
import { createKeys } from "./auth/keys.ts";
import { createOrgs } from "./auth/orgs.ts";
import { createPeople } from "./auth/people.ts";
import { createCompare } from "./comparisons/compare.ts";
import { createLatest } from "./comparisons/latest.ts";
import type { Deps, OrgId } from "./deps.ts";
import { createExports } from "./exchange/export.ts";
import { createImports } from "./exchange/import.ts";
import { createField } from "./field/field.ts";
import { createFieldReports } from "./field/reports.ts";
import { createDismissals } from "./friction/dismissals.ts";
import { createFriction } from "./friction/friction.ts";
import { createModels } from "./models/models.ts";
import { createGuard } from "./net/guarded.ts";
import type { Outbox } from "./notifications/outbox.ts";
import { createPrompts } from "./prompts/prompts.ts";
import { createProviders } from "./providers/providers.ts";
import { createAnnouncements } from "./reports/announcements.ts";
import { createBaselines } from "./reports/baseline.ts";
import { createCounts } from "./reports/counts.ts";
import { createGradings } from "./reports/gradings.ts";
import { reportMarkdown } from "./reports/markdown.ts";
import { createReports } from "./reports/reports.ts";
import { createTimelines } from "./reports/timeline.ts";
import { createEvals } from "./runs/evals.ts";
import { createRedaction } from "./runs/redaction.ts";
import { createRuns } from "./runs/runs.ts";
import { createShares } from "./shares/shares.ts";
import { createScoreCounts } from "./trends/score-days.ts";
import { createTrusts } from "./trusts/trusts.ts";

type Parts = {
  /** By ID. */
  agents: Record<string, Agent>;
  outbox: Outbox;
  userAgent: string;
  /** The program whose threads write exports; default: this thread. */
  threadProgram?: string;
  onScheduled: () => void;
};

export type Features = ReturnType<typeof createFeatures>;

/** Reading and storing: everything that needs no job. */
export function createFeatures(deps: Deps, { agents, outbox, userAgent, threadProgram, onScheduled }: Parts) {
  const { config } = deps;
  const orgs = createOrgs(deps);
  const keys = createKeys(deps);
  const people = createPeople(deps);
  const guard = createGuard({ allow: config.allowPrivate, userAgent, now: deps.now, keepsAlive: false });
  const trusts = createTrusts(deps, { keys, orgs, guard });
  const providers = createProviders(deps);
  const archives = createArchives(deps);
  const models = createModels(deps);
  const listAgents = createAgentList(agents);
  const prompts = createPrompts(deps, {
    listAgents,
    agentModel: config.agentModel,
    checkModel: models.getModel,
    hasArchive: archives.hasArchive,
    onScheduled,
  });
  const dismissals = createDismissals(deps);
  const redact = (org: OrgId, text: string) => createRedaction(models.secretsOf(org)).clean(text);
  const field = { ...createField(deps), ...createFieldReports(deps, { redact }) };
  const friction = createFriction(deps, { ...dismissals, ...field });
  const { announceReport, announceFriction } = createAnnouncements(deps, outbox);
  const countReport = createCounts(deps, [createScoreCounts(deps)], announceFriction);
  const baselines = createBaselines(deps);
  const reports = createReports(deps, { friction, baselines, countReport, announceReport });
  const compare = createCompare(deps, { reports, baselines });
  const shares = createShares(deps);
  const getTimeline = createTimelines(deps);
  const gradings = createGradings(deps, reports);
  const latest = createLatest(baselines, compare);
  const runs = createRuns(deps);
  const exports = createExports(deps, { reports, models, toMarkdown: reportMarkdown, program: threadProgram ?? null });
  const imports = createImports(deps, createCounts(deps, [createScoreCounts(deps)]));
  const evals = createEvals(deps);
  return {
    orgs,
    keys,
    people,
    trusts,
    providers,
    archives,
    models,
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
    runs,
    exports,
    imports,
    evals,
  };
}
