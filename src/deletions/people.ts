import { and, count, eq, inArray } from "drizzle-orm";
import { recordAudit } from "../audit/entries.ts";
import { isLastOwner } from "../auth/members.ts";
import { listMemberships } from "../auth/people.ts";
import type { Context } from "../context.ts";
import { type Db, transaction } from "../db/open.ts";
import { auditEntries } from "../db/tables/audit.ts";
import { deletedPeople } from "../db/tables/deletions.ts";
import { apiKeys } from "../db/tables/keys.ts";
import { accounts, formerMembers, invitations, people, signIns } from "../db/tables/people.ts";
import { evalRequests } from "../db/tables/runs.ts";
import { conflict, notFound } from "../errors.ts";
import { toIso } from "../schema.ts";
import { takeTurn, truncateLog } from "./erasure.ts";

/** What stands in the place of the name of a person whose account was deleted. */
const deletedPerson = "deleted person";

/** Columns that hold the name or email address of whoever did something, after a text. */
const nameColumns: readonly [table: string, column: string, before?: string][] = [
  ["dismissals", "dismissed_by"],
  ["dismissals", "withdrawn_by"],
  ["fixes", "done_by"],
  ["field_friction", "changed_by"],
  ["inbox_marks", "marked_by"],
  ["inbox_marks", "assignee"],
  ["deletions", "deleted_by"],
  ["runs", "failure_detail", "by "],
  ["jobs", "last_error", "cancelled: by "],
];
/** Rows that one step reads. */
const rowsPerStep = 1_000;

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
  transaction(ctx.db, (tx) => {
    const row = tx.select().from(people).where(eq(people.id, personId)).get();
    if (!row) throw notFound("The account was not found.");
    refuseOnlyOwner(ctx, personId);
    for (const { org } of listMemberships(ctx, personId)) recordAudit(ctx, org, "account.deleted", row);
    const { name, email } = row;
    tx.insert(deletedPeople).values({ personId, name, email }).run();
    tx.delete(invitations).where(eq(invitations.email, email)).run();
    // What else belongs to the account refers to it, and is deleted with it.
    tx.delete(people).where(eq(people.id, personId)).run();
  });
  await forgetDeletedPeople(ctx, ctx.stopping);
}

type DeletedPerson = typeof deletedPeople.$inferSelect;

/** Forgets a person in a part of a table. Returns the last row of the part; null: nothing is left. */
type Forget = (db: Db, person: DeletedPerson, after: number) => number | null;

/**
 * Removes the names and addresses of people whose accounts were deleted from what others see, in short turns. A process that is killed goes on at
 * its next start.
 */
export async function forgetDeletedPeople({ db }: Context, stop: AbortSignal): Promise<void> {
  const all = db.select().from(deletedPeople).all();
  for (const person of all) {
    for (const forget of forgetting) {
      if (stop.aborted) return;
      let after: number | null = 0;
      const step = () => {
        after = forget(db, person, after ?? 0);
        return after !== null;
      };
      while (await takeTurn(db, step)) if (stop.aborted) return;
    }
    transaction(db, (tx) => {
      tx.delete(formerMembers).where(eq(formerMembers.personId, person.personId)).run();
      tx.delete(deletedPeople).where(eq(deletedPeople.personId, person.personId)).run();
    });
  }
  // Until a reader releases it, the log may have copies of the pages; they go with the next truncation.
  if (all.length > 0) truncateLog(db);
}

const part = "rowid > ?1 and rowid <= ?1 + ?2";
/** Whether the person `?3` was a member of the organization of a row: in others, somebody else may have the same name. */
const wasMember = "org_id in (select org_id from former_members where person_id = ?3)";

/** The last row of the part of a table after a row; null: the table has no more rows. */
function endOfPart({ $client }: Db, table: string, after: number): number | null {
  const last = $client.query<{ last: number | null }, []>(`select max(rowid) last from ${table}`).get()?.last ?? 0;
  return after >= last ? null : after + rowsPerStep;
}

/** Replaces the name or address of a person in a column. */
const forgetInColumn =
  ([table, column, before = ""]: (typeof nameColumns)[number]): Forget =>
  (db, { personId, name, email }, after) => {
    db.$client
      .query(`update ${table} set ${column} = ?4 where ${part} and ${column} in (?5, ?6) and ${wasMember}`)
      .run(after, rowsPerStep, personId, before + deletedPerson, before + name, before + email);
    return endOfPart(db, table, after);
  };

/** Operators pause runs of organizations without being members, so the audit log says who it was. */
const forgetInPauses: Forget = (db, { personId, name, email }, after) => {
  db.$client
    .query(
      `update pauses set paused_by = ?4 where ${part} and paused_by in (?5, ?6) and exists (
        select 1 from audit_entries where org_id is iif(kind = 'organization', subject, null)
        and action = 'queue.paused' and actor_kind = 'person' and actor_id = ?3 and target_id = subject)`,
    )
    .run(after, rowsPerStep, personId, deletedPerson, name, email);
  return endOfPart(db, "pauses", after);
};

const forgetRecipient: Forget = (db, { personId, email }, after) => {
  const { $client } = db;
  const rows = $client
    .query<{ id: string; recipients: string }, [number, number, string, string]>(
      `select id, recipients from destinations where ${part} and instr(recipients, ?4) > 0 and ${wasMember}`,
    )
    .all(after, rowsPerStep, personId, email);
  for (const { id, recipients } of rows) {
    const others = (JSON.parse(recipients) as string[]).filter((each) => each !== email);
    $client
      .query("update destinations set recipients = ? where id = ?")
      .run(others.length > 0 ? JSON.stringify(others) : null, id);
  }
  return endOfPart(db, "destinations", after);
};

const forgetInAuditLog: Forget = (db, { personId, name, email }, after) => {
  const { $client } = db;
  $client
    .query(
      `update audit_entries set actor_name = ?4, ip_address = null, user_agent = null
      where ${part} and actor_kind = 'person' and actor_id = ?3`,
    )
    .run(after, rowsPerStep, personId, deletedPerson);
  $client
    .query(
      `update audit_entries set target_name = iif(target_name is null, null, ?4), changes = null
      where ${part} and (target_id = ?3 or (action like 'invitation.%' and target_name = ?6)
        or (${wasMember} and (target_name in (?5, ?6) or instr(changes, ?6) > 0 or instr(target_name, ?6) > 0)))`,
    )
    .run(after, rowsPerStep, personId, deletedPerson, name, email);
  return endOfPart(db, "audit_entries", after);
};

const forgetting: readonly Forget[] = [
  ...nameColumns.map(forgetInColumn),
  forgetInPauses,
  forgetRecipient,
  forgetInAuditLog,
];
