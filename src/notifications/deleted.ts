import { type SQL, sql } from "drizzle-orm";
import { deletions } from "../db/tables/deletions.ts";
import { gates } from "../db/tables/gates.ts";
import { notifications } from "../db/tables/notifications.ts";
import { runs } from "../db/tables/runs.ts";

/** Whether a notification has an ID or a slug in its data. */
export const mentions = (name: unknown): SQL => sql`instr(${notifications.data}, ${name}) > 0`;

/** The gates that are hidden with a deleted run. */
const gatesOfRun = sql`select 1 from ${gates} join ${runs} on ${runs.orgId} = ${gates.orgId} and ${runs.promptId} = ${gates.promptId}
  where ${runs.id} = ${deletions.subjectId} and ${mentions(gates.id)}`;

/**
 * The condition that a notification mentions nothing that was deleted and is not yet erased. Most are hidden with their prompt; this also finds
 * those about several prompts, such as a digest.
 */
export const mentionsNothingDeleted: SQL = sql`not exists (
  select 1 from ${deletions} where ${deletions.orgId} = ${notifications.orgId} and ${deletions.completedAt} is null and (
    ${mentions(deletions.subjectId)} or ${mentions(deletions.slug)} or (${deletions.kind} = 'run' and exists (${gatesOfRun}))))`;
