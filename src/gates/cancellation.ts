import { and, eq, inArray, isNull } from "drizzle-orm";
import { recordAudit } from "../audit/entries.ts";
import type { Context, OrgId } from "../context.ts";
import { gates } from "../db/tables/gates.ts";
import { runs } from "../db/tables/runs.ts";
import { conflict, notFound } from "../errors.ts";
import { cancelRuns } from "../runs/endings.ts";
import { getGate } from "./gates.ts";
import type { Gate } from "./schema.ts";
import { targetsOf } from "./targets.ts";

/**
 * Cancels all unfinished runs of a gate, which then ends without a verdict. `requester` is named in the failure reason of the runs. Throws not_found,
 * and conflict if no run is unfinished.
 */
export async function cancelGate(ctx: Context, org: OrgId, id: string, requester: string): Promise<Gate> {
  const whereGate = and(eq(gates.orgId, org), eq(gates.id, id.toLowerCase()));
  const gate = ctx.db.select().from(gates).where(whereGate).get();
  if (!gate) throw notFound(`No gate has the ID ${id}.`);
  const requestIds = targetsOf(gate).flatMap(({ headRequestId, baseRequestId }) => [headRequestId, baseRequestId]);
  const evaluations = requestIds.filter((each) => each !== null);
  const unfinished = ctx.db
    .select({ id: runs.id })
    .from(runs)
    .where(and(eq(runs.orgId, org), inArray(runs.evalRequestId, evaluations), isNull(runs.completedAt)))
    .all();
  if (unfinished.length === 0) throw conflict("No run of this gate is unfinished.");
  const ids = unfinished.map((run) => run.id);
  await cancelRuns(ctx, org, ids, requester);
  await ctx.commit(() => recordAudit(ctx, org, "gate.cancelled", { id: gate.id }));
  return getGate(ctx, org, gate.id);
}
