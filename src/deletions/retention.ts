import { and, eq } from "drizzle-orm";
import { changesOf, recordAudit } from "../audit/entries.ts";
import type { Context, OrgId } from "../context.ts";
import { type Tx, transaction } from "../db/open.ts";
import { keptKinds, retention } from "../db/tables/deletions.ts";
import type { Retention } from "./schema.ts";

/** How long an organization keeps what it stores, in days; null: the default of the server. */
export function getRetention({ db }: Context, org: OrgId): Retention {
  const rows = db.select().from(retention).where(eq(retention.orgId, org)).all();
  const daysOf = (kind: (typeof keptKinds)[number]) => rows.find((row) => row.kind === kind)?.days ?? null;
  return {
    sessions: daysOf("sessions"),
    artifacts: daysOf("artifacts"),
    reports: daysOf("reports"),
    deliveries: daysOf("deliveries"),
    people: daysOf("people"),
  };
}

/** Changes how long an organization keeps what it stores. Older data is erased within a minute, and can't be restored. */
export function setRetention(ctx: Context, org: OrgId, patch: Partial<Retention>): Retention {
  transaction(ctx.db, (tx) => {
    recordAudit(ctx, org, "retention.changed", {}, changesOf(getRetention(ctx, org), patch));
    for (const kind of keptKinds) if (patch[kind] !== undefined) setDays(tx, org, kind, patch[kind]);
  });
  ctx.signals.erasureDue.emit();
  return getRetention(ctx, org);
}

function setDays(tx: Tx, orgId: OrgId, kind: (typeof keptKinds)[number], days: number | null): void {
  if (days === null)
    tx.delete(retention)
      .where(and(eq(retention.orgId, orgId), eq(retention.kind, kind)))
      .run();
  else
    tx.insert(retention)
      .values({ orgId, kind, days })
      .onConflictDoUpdate({ target: [retention.orgId, retention.kind], set: { days } })
      .run();
}
