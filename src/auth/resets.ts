import { and, eq } from "drizzle-orm";
import { recordAudit } from "../audit/entries.ts";
import type { Context, OrgId } from "../context.ts";
import { transaction } from "../db/open.ts";
import { accounts, members, people, signIns } from "../db/tables/people.ts";
import { conflict, notFound } from "../errors.ts";
import { identifyActor } from "../http/caller.ts";
import type { Client } from "./better-auth-calls.ts";
import { readLinkToken, toLinkToken } from "./links.ts";
import { endUnfinishedSignIns, findPassword, hashPassword, recordAuditOfPerson, signIn } from "./people.ts";
import type { Person } from "./person.ts";
import { recordSignInSuccess } from "./sign-in-attempts.ts";
import { removeFactors } from "./two-factor.ts";

const resetLifetimeMs = 24 * 3600_000;

/** In a reset link, replaces the ID of the owner if no owner created the link. Such a link was emailed, or created by the operator. */
const byService = "service";

/** The person of a reset link. Throws not_found with the reason if the link is invalid. */
export function readReset(ctx: Context, token: string): Person & { isProven: boolean } {
  const [id = "", expiresAt = "0", passwordMark = "", creator = ""] = readLinkToken(ctx, "reset", token) ?? [];
  const { name, email } = people;
  const person = ctx.db.select({ id: people.id, name, email }).from(people).where(eq(people.id, id)).get();
  if (!person || creator === "") throw notFound("This link is not valid. Copy the whole link, or ask for a new one.");
  if (passwordMark !== passwordMarkOf(ctx, id))
    throw notFound("This link was already used. Sign in, or ask for a new link.");
  if (Number(expiresAt) <= ctx.now()) throw notFound("This link has expired. Ask for a new one.");
  const isProven = creator === byService;
  // This is checked again, because the person may have joined another organization, or the owner may have lost ownership.
  if (!isProven && !mayReset(ctx, creator, id))
    throw notFound("This link is no longer valid, because memberships have changed. Ask for a new one.");
  return { ...person, isProven };
}

/** The path of a link for the holder of the email address only. Using the link proves the address. */
export function toResetPath(ctx: Context, person: { id: string; name: string }): string {
  recordAuditOfPerson(ctx, person, "password.reset_requested");
  return toPath(ctx, person.id, byService);
}

/**
 * The path of a link that lets a member set a new password within a day. Throws conflict if the person is also in an organization that the caller
 * doesn't own, because the link would also grant access to that organization.
 */
export function toResetPathByOwner(ctx: Context, org: OrgId, memberId: string, owner: Person) {
  const whereMember = and(eq(members.orgId, org), eq(members.id, memberId), eq(people.id, members.personId));
  const person = ctx.db
    .select({ id: people.id, name: people.name, email: people.email })
    .from(people)
    .innerJoin(members, whereMember)
    .get();
  if (!person) throw notFound("The member was not found.");
  if (!mayReset(ctx, owner.id, person.id))
    throw conflict(
      `${person.email} belongs to other organizations too. Ask the operator of this service for a reset link: evald person reset-link ${person.email}`,
    );
  transaction(ctx.db, () => recordAudit(ctx, org, "password.reset_requested", person));
  return { email: person.email, path: toPath(ctx, person.id, owner.id) };
}

/** Sets the password, ends all sessions of the person, and signs them in here. Returns the cookies. Throws `CodeNeeded` like `signIn`. */
export async function resetPassword(ctx: Context, token: string, password: string, client: Client) {
  readReset(ctx, token);
  const hash = await hashPassword(ctx, password, client);
  const email = transaction(ctx.db, (tx) => {
    // The link is read again, because hashing takes time and a link works only once.
    const person = readReset(ctx, token);
    const account = findPassword(ctx, person.id);
    const now = new Date(ctx.now());
    if (account) tx.update(accounts).set({ password: hash, updatedAt: now }).where(eq(accounts.id, account.id)).run();
    else
      tx.insert(accounts)
        .values({
          id: ctx.newId(ctx.now()),
          personId: person.id,
          accountId: person.id,
          providerId: "credential",
          password: hash,
          createdAt: now,
          updatedAt: now,
        })
        .run();
    const where = eq(people.id, person.id);
    const wasProven = tx.select({ emailVerified: people.emailVerified }).from(people).where(where).get()?.emailVerified;
    // Until the address is proven, somebody else may have added second factors. After that, a reset doesn't remove them.
    if (person.isProven && !wasProven) removeFactors(tx, person.id);
    endUnfinishedSignIns(tx, person.id);
    // If an owner created the link, the owner may be the one who knows the password.
    tx.update(people).set({ emailVerified: person.isProven }).where(where).run();
    tx.delete(signIns).where(eq(signIns.personId, person.id)).run();
    identifyActor({ kind: "person", id: person.id, name: person.name });
    recordAuditOfPerson(ctx, person, "password.reset");
    return person.email;
  });
  recordSignInSuccess(ctx, email, client.address);
  return await signIn(ctx, email, password, client);
}

/** A mark that changes with the password, which invalidates all earlier links. It is shortened to keep links short. */
const passwordMarkOf = (ctx: Context, personId: string) =>
  new Bun.CryptoHasher("sha256")
    .update(findPassword(ctx, personId)?.hash ?? "none")
    .digest("hex")
    .slice(0, 16);

const toPath = (ctx: Context, personId: string, creator: string) =>
  `/reset/${toLinkToken(ctx, "reset", personId, ctx.now() + resetLifetimeMs, passwordMarkOf(ctx, personId), creator)}`;

const orgsOf = (ctx: Context, personId: string, role?: "owner"): string[] =>
  ctx.db
    .select({ org: members.orgId })
    .from(members)
    .where(and(eq(members.personId, personId), role && eq(members.role, role)))
    .all()
    .map((row) => row.org);

/** Whether the creator owns all organizations of the person, and there is at least one. If so, the person's account grants access to nothing else. */
function mayReset(ctx: Context, creatorId: string, personId: string): boolean {
  const orgsOfPerson = new Set(orgsOf(ctx, personId));
  return orgsOfPerson.size > 0 && orgsOfPerson.isSubsetOf(new Set(orgsOf(ctx, creatorId, "owner")));
}
