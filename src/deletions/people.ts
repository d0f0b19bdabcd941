import { and, count, eq, inArray } from "drizzle-orm";
import { recordAudit } from "../audit/entries.ts";
import { isLastOwner } from "../auth/members.ts";
import { listMemberships } from "../auth/people.ts";
import type { Person } from "../auth/person.ts";
import type { Context } from "../context.ts";
import { type Tx, transaction } from "../db/open.ts";
import { auditEntries } from "../db/tables/audit.ts";
import { apiKeys } from "../db/tables/keys.ts";
import { destinations } from "../db/tables/notifications.ts";
import { accounts, invitations, people, signIns } from "../db/tables/people.ts";
import { evalRequests } from "../db/tables/runs.ts";
import { conflict, notFound } from "../errors.ts";
import { toIso } from "../schema.ts";
import { takeTurn, truncateLog } from "./erasure.ts";

/** What stands in the place of the name of a person whose account was deleted. */
const deletedPerson = "deleted person";

/** Columns that hold the name or email address of whoever did something, by table. */
const nameColumns: readonly [table: string, ...columns: string[]][] = [
  ["dismissals", "dismissed_by", "withdrawn_by"],
  ["fixes", "done_by"],
  ["field_friction", "changed_by"],
  ["inbox_marks", "marked_by", "assignee"],
  ["deletions", "deleted_by"],
];
/** Audit entries that one step reads. */
const entriesPerStep = 2_000;

/** Collects what the service stores about a person, and records it. Secrets and their digests are left out. Throws not_found. */
export function exportPerson(ctx: Context, personId: string) {
  const { db } = ctx;
  const person = db.select().from(people).where(eq(people.id, personId)).get();
  if (!person) throw notFound("The account was not found.");
  const memberships = listMemberships(ctx, personId);
  for (const { org } of memberships) recordAudit(ctx, org, "account.exported", person);
  const requests = db.select({ n: count() }).from(evalRequests).where(eq(evalRequests.personId, personId)).get();
  return {
    account: {
      id: person.id,
      name: person.name,
      email: person.email,
      emailVerified: person.emailVerified,
      createdAt: toIso(person.createdAt),
      updatedAt: toIso(person.updatedAt),
    },
    signInMethods: db
      .select({ provider: accounts.providerId, createdAt: accounts.createdAt })
      .from(accounts)
      .where(eq(accounts.personId, personId))
      .all()
      .map(({ provider, createdAt }) => ({ provider, createdAt: toIso(createdAt) })),
    sessions: db
      .select()
      .from(signIns)
      .where(eq(signIns.personId, personId))
      .all()
      .map(({ ipAddress, userAgent, createdAt, updatedAt, expiresAt }) => ({
        ipAddress,
        userAgent,
        createdAt: toIso(createdAt),
        lastUsedAt: toIso(updatedAt),
        expiresAt: toIso(expiresAt),
      })),
    organizations: memberships.map(({ org, orgName, role }) => ({ id: org, name: orgName, role })),
    invitations: db
      .select()
      .from(invitations)
      .where(eq(invitations.email, person.email))
      .all()
      .map(({ orgId, role, status, createdAt }) => ({ orgId, role, status, createdAt: toIso(createdAt) })),
    apiKeys: db
      .select()
      .from(apiKeys)
      .where(eq(apiKeys.createdBy, personId))
      .all()
      .map(({ id, orgId, name, display, createdAt, lastUsedAt, revokedAt }) => ({
        id,
        orgId,
        name,
        display,
        createdAt: toIso(createdAt),
        lastUsedAt: toIso(lastUsedAt),
        revokedAt: toIso(revokedAt),
      })),
    requestedEvaluations: requests?.n ?? 0,
    auditLog: db
      .select()
      .from(auditEntries)
      .where(
        and(
          inArray(
            auditEntries.orgId,
            memberships.map(({ org }) => org),
          ),
          eq(auditEntries.actorId, personId),
        ),
      )
      .all()
      .map(({ orgId, createdAt, action, targetName, ipAddress, userAgent }) => ({
        orgId,
        createdAt: toIso(createdAt),
        action,
        targetName,
        ipAddress,
        userAgent,
      })),
  };
}

/** Throws conflict, with what to do first, for the only owner of an organization. */
export function refuseOnlyOwner(ctx: Context, personId: string): void {
  const owned = listMemberships(ctx, personId).filter(({ org, role }) => isLastOwner(ctx, org, role));
  if (owned.length === 0) return;
  const names = owned.map(({ orgName }) => orgName).join(", ");
  throw conflict(`You’re the only owner of ${names}. Make another member an owner, or delete the organization first.`);
}

/**
 * Deletes the account of a person for good. What they made stays: there, they are called a deleted person. Throws not_found, and conflict for the
 * only owner of an organization.
 */
export async function deletePerson(ctx: Context, personId: string): Promise<void> {
  const { db } = ctx;
  const person = transaction(db, (tx) => {
    const row = tx.select().from(people).where(eq(people.id, personId)).get();
    if (!row) throw notFound("The account was not found.");
    refuseOnlyOwner(ctx, personId);
    for (const { org } of listMemberships(ctx, personId)) recordAudit(ctx, org, "account.deleted", row);
    forgetName(tx, ctx, row);
    // What else belongs to the account refers to it, and is deleted with it.
    tx.delete(people).where(eq(people.id, personId)).run();
    return row;
  });
  let after = 0;
  while (
    await takeTurn(db, () => {
      const next = forgetInAuditLog(ctx, person, after);
      after = next ?? after;
      return next !== null;
    })
  );
  // Until a reader releases it, the log may have copies of the pages; they go with the next truncation.
  truncateLog(db);
}

/** Removes the name and address of a person from what others see. */
function forgetName(tx: Tx, { db }: Context, { name, email }: Person): void {
  const { $client } = db;
  for (const [table, ...columns] of nameColumns)
    for (const column of columns)
      $client.query(`update ${table} set ${column} = ? where ${column} in (?, ?)`).run(deletedPerson, name, email);
  tx.delete(invitations).where(eq(invitations.email, email)).run();
  for (const { id, recipients } of tx.select().from(destinations).all())
    if (recipients?.includes(email)) {
      const others = recipients.filter((each) => each !== email);
      tx.update(destinations)
        .set({ recipients: others.length > 0 ? others : null })
        .where(eq(destinations.id, id))
        .run();
    }
}

/** Removes a person from a part of the audit log. Returns the last entry of the part; null: nothing is left. */
function forgetInAuditLog({ db }: Context, { id, name, email }: Person, after: number): number | null {
  const { $client } = db;
  const part = "rowid > ?1 and rowid <= ?1 + ?2";
  const last = $client.query<{ last: number | null }, []>("select max(rowid) last from audit_entries").get()?.last ?? 0;
  if (after >= last) return null;
  $client
    .query(
      `update audit_entries set actor_name = ?4, ip_address = null, user_agent = null
      where ${part} and actor_kind = 'person' and actor_id = ?3`,
    )
    .run(after, entriesPerStep, id, deletedPerson);
  $client
    .query(
      `update audit_entries set target_name = iif(target_name is null, null, ?4), changes = null
      where ${part} and (target_id = ?3 or target_name in (?5, ?6) or instr(changes, ?6) > 0 or instr(target_name, ?6) > 0)`,
    )
    .run(after, entriesPerStep, id, deletedPerson, name, email);
  return after + entriesPerStep;
}
