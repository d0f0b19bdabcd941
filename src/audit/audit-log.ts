import { and, desc, eq, gte, isNull, lt, type SQL, sql } from "drizzle-orm";
import type { Context, OrgId } from "../context.ts";
import { firstIdOf, timeZoneOf } from "../db/rows.ts";
import { auditEntries } from "../db/tables/audit.ts";
import { toCsv } from "../http/csv.ts";
import { turnOfOrg } from "../http/turns.ts";
import { toInstant, toIso } from "../schema.ts";
import type { AuditAction } from "./actions.ts";
import { changesOf, recordAudit } from "./entries.ts";
import type { AuditEntry, AuditFilter, AuditFormat, AuditLog } from "./schema.ts";

type AuditEntryRow = typeof auditEntries.$inferSelect;

/** Entries that a download reads per query. */
const batchSize = 500;
const maxActors = 200;

/**
 * Lists the newest entries, or with `before` the newest ones that are older than that entry. `org` null: the entries about the service as a whole.
 * Throws bad_request for an invalid time.
 */
export function listAuditEntries(
  ctx: Context,
  org: OrgId | null,
  filter: AuditFilter,
  { before, limit }: { before?: string; limit: number },
): AuditLog {
  const rows = ctx.db
    .select()
    .from(auditEntries)
    .where(and(whereFilter(ctx, org, filter), before === undefined ? undefined : lt(auditEntries.id, before)))
    .orderBy(desc(auditEntries.id))
    .limit(limit + 1)
    .all();
  const entries = rows.slice(0, limit).map(toEntry);
  return { entries, nextBefore: rows.length > limit ? (entries.at(-1)?.id ?? null) : null };
}

/** Everyone who is in the audit log of an organization, under their newest name, by name. */
export function listAuditActors({ db }: Context, org: OrgId): { id: string; name: string }[] {
  // This walks the index from actor to actor, so that it doesn't read all entries of each actor.
  const rows = db.all<{ id: string; name: string }>(sql`
    with recursive actors (id) as (
      select min(actor_id) from audit_entries where org_id = ${org}
      union all
      select (select min(actor_id) from audit_entries where org_id = ${org} and actor_id > actors.id)
      from actors where actors.id is not null limit ${maxActors}
    )
    select id, (
      select actor_name from audit_entries where org_id = ${org} and actor_id = actors.id order by audit_entries.id desc limit 1
    ) name from actors where id is not null`);
  return rows.sort((a, b) => a.name.localeCompare(b.name));
}

const mediaTypes: Record<AuditFormat, string> = { csv: "text/csv; charset=utf-8", jsonl: "application/x-ndjson" };

/**
 * Returns all matching entries as a file. The entries are read in batches while the file is sent. The download itself becomes an entry, too. Throws
 * bad_request for an invalid time.
 */
export async function downloadAuditLog(
  ctx: Context,
  org: OrgId,
  filter: AuditFilter,
  format: AuditFormat,
): Promise<Response> {
  // An invalid time must throw here: once the response has begun, no error can be reported.
  whereFilter(ctx, org, filter);
  await ctx.commit(() => recordAudit(ctx, org, "audit_log.downloaded", {}, changesOf({}, { ...filter, format })));
  return new Response(toStream(piecesOf(ctx, org, filter, format)), {
    headers: {
      "content-type": mediaTypes[format],
      "content-disposition": `attachment; filename="evald-audit-log.${format}"`,
      "cache-control": "no-store",
    },
  });
}

const toStream = (pieces: AsyncGenerator<string>): ReadableStream<Uint8Array> =>
  new ReadableStream(
    {
      async pull(controller) {
        const { done, value } = await pieces.next();
        if (done) controller.close();
        else controller.enqueue(new TextEncoder().encode(value));
      },
    },
    // Reads nothing ahead of what was sent.
    { highWaterMark: 0 },
  );

async function* piecesOf(ctx: Context, org: OrgId, filter: AuditFilter, format: AuditFormat): AsyncGenerator<string> {
  if (format === "csv") yield toCsv(csvColumns.map(([name]) => name));
  for (let before: string | undefined; ; ) {
    const { entries, nextBefore } = listAuditEntries(ctx, org, filter, { before, limit: batchSize });
    if (entries.length > 0) yield entries.map(format === "csv" ? toCsvRow : toLine).join("");
    if (nextBefore === null) return;
    before = nextBefore;
    await turnOfOrg(ctx, org);
  }
}

const toLine = (entry: AuditEntry): string => `${JSON.stringify(entry)}\n`;

const csvColumns: [name: string, toCell: (entry: AuditEntry) => string | null][] = [
  ["id", ({ id }) => id],
  ["createdAt", ({ createdAt }) => createdAt],
  ["actorKind", ({ actor }) => actor.kind],
  ["actorId", ({ actor }) => actor.id],
  ["actorName", ({ actor }) => actor.name],
  ["action", ({ action }) => action],
  ["targetKind", ({ target }) => target.kind],
  ["targetId", ({ target }) => target.id],
  ["targetName", ({ target }) => target.name],
  ["changes", ({ changes }) => (changes.length === 0 ? "" : JSON.stringify(changes))],
  ["ipAddress", ({ ipAddress }) => ipAddress],
  ["userAgent", ({ userAgent }) => userAgent],
  ["requestId", ({ requestId }) => requestId],
];

const toCsvRow = (entry: AuditEntry): string => toCsv(csvColumns.map(([, toCell]) => toCell(entry)));

function whereFilter(ctx: Context, org: OrgId | null, { actor, action, since, until }: AuditFilter): SQL | undefined {
  const zone = org === null ? "UTC" : timeZoneOf(ctx.db, org);
  return and(
    org === null ? isNull(auditEntries.orgId) : eq(auditEntries.orgId, org),
    actor === undefined ? undefined : eq(auditEntries.actorId, actor),
    action === undefined ? undefined : eq(auditEntries.action, action),
    since === undefined ? undefined : gte(auditEntries.id, firstIdOf(toInstant("since", since, zone))),
    until === undefined ? undefined : lt(auditEntries.id, firstIdOf(toInstant("until", until, zone))),
  );
}

const toEntry = (row: AuditEntryRow): AuditEntry => ({
  id: row.id,
  createdAt: toIso(row.createdAt),
  actor: { kind: row.actorKind, id: row.actorId, name: row.actorName },
  action: row.action as AuditAction,
  target: { kind: row.action.split(".", 1)[0] ?? "", id: row.targetId, name: row.targetName },
  changes: row.changes ?? [],
  ipAddress: row.ipAddress,
  userAgent: row.userAgent,
  requestId: row.requestId,
});
