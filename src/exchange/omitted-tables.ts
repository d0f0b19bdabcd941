import type { SQLiteTable } from "drizzle-orm/sqlite-core";
import { bisectRuns, bisects } from "../db/tables/bisects.ts";
import { calibrationRuns, calibrations } from "../db/tables/calibrations.ts";
import { experimentRuns, experiments } from "../db/tables/experiments.ts";
import { agentLogins, apiKeys, checkSecrets, modelKeys, trusts } from "../db/tables/keys.ts";
import { deliveries, deliveryTries, notifications } from "../db/tables/notifications.ts";
import { formerMembers, invitations, members, signIns } from "../db/tables/people.ts";
import { proposalSets } from "../db/tables/proposals.ts";
import { pageTexts, sessionPages } from "../db/tables/runs.ts";
import { fieldTraffic } from "../db/tables/traffic.ts";

/**
 * The tables of an organization that no export contains, each under a name for what it holds. All other tables are exported or derived from exported
 * ones.
 */
export const omittedTables: Record<string, SQLiteTable> = {
  "API keys": apiKeys,
  "model keys": modelKeys,
  "logins of agents": agentLogins,
  "secrets of success checks": checkSecrets,
  "trusts of CI jobs": trusts,
  "sets of proposals": proposalSets,
  "counts of access logs": fieldTraffic,
  "texts of pages": pageTexts,
  "which session read which text": sessionPages,
  experiments,
  "runs of experiments": experimentRuns,
  bisects,
  "runs of bisects": bisectRuns,
  calibrations,
  "runs of calibrations": calibrationRuns,
  members,
  "former members": formerMembers,
  "sign-ins": signIns,
  invitations,
  notifications,
  deliveries,
  "tries of deliveries": deliveryTries,
};
