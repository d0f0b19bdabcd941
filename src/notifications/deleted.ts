import { type SQL, sql } from "drizzle-orm";
import { deletions } from "../db/tables/deletions.ts";
import { gates } from "../db/tables/gates.ts";
import { notifications } from "../db/tables/notifications.ts";
import { runs } from "../db/tables/runs.ts";

/** Whether the data of a notification contains this ID or slug. */
export const mentions = (name: unknown): SQL => sql`instr(${notifications.data}, ${name}) > 0`;

/** Selects the gates in a notification that are hidden together with a deleted run. */
const gatesOfRun = sql`select 1 from ${gates} join ${runs} on ${runs.orgId} = ${gates.orgId} and ${runs.promptId} = ${gates.promptId}
  where ${runs.id} = ${deletions.subjectId} and ${mentions(gates.id)}`;

/**
 * The condition that a notification mentions nothing that is deleted but not yet erased. Most notifications are hidden together with their prompt.
 * This condition also finds notifications about several prompts, such as a digest.
 */
export const mentionsNothingDeleted: SQL = sql`not exists (
  select 1 from ${deletions} where ${deletions.orgId} = ${notifications.orgId} and ${deletions.completedAt} is null and (
    ${mentions(deletions.subjectId)} or ${mentions(deletions.slug)} or (${deletions.kind} = 'run' and exists (${gatesOfRun}))))`;
