import { and, count, eq, inArray } from "drizzle-orm";
import { recordAudit } from "../audit/entries.ts";
import { isLastOwner } from "../auth/members.ts";
import { listMemberships } from "../auth/people.ts";
import type { Context } from "../context.ts";
import { transaction } from "../db/open.ts";
import { auditEntries } from "../db/tables/audit.ts";
import { deletedPeople } from "../db/tables/deletions.ts";
import { apiKeys } from "../db/tables/keys.ts";
import { accounts, invitations, people, signIns } from "../db/tables/people.ts";
import { evalRequests } from "../db/tables/runs.ts";
import { conflict, notFound } from "../errors.ts";
import { toIso } from "../schema.ts";
import { forgetDeletedPeople } from "./forgetting.ts";

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
    // All other rows of the account refer to it, and are deleted with it.
    tx.delete(people).where(eq(people.id, personId)).run();
  });
  await forgetDeletedPeople(ctx, ctx.stopping);
}
