import { and, asc, eq, max } from "drizzle-orm";
import { changesOf, recordAudit } from "../audit/entries.ts";
import type { Context, OrgId } from "../context.ts";
import { transaction } from "../db/open.ts";
import { members, people, type Role, roles, signIns } from "../db/tables/people.ts";
import { conflict, notFound } from "../errors.ts";
import { toIso } from "../schema.ts";
import { type Client, inSequence, loadBetterAuth, toHeaders, withAppErrors } from "./better-auth-calls.ts";
import { revokeKeysOfPerson } from "./keys.ts";
import { listOperators } from "./operators.ts";
import { type SignedIn, toRole } from "./person.ts";

export type Member = ReturnType<typeof listMembers>[number];

/** The members by name, owners first. */
export const listMembers = (ctx: Context, org: OrgId) =>
  ctx.db
    .select({ member: members, person: people, usedAt: max(signIns.updatedAt) })
    .from(members)
    .innerJoin(people, eq(people.id, members.personId))
    .leftJoin(signIns, eq(signIns.personId, people.id))
    .where(eq(members.orgId, org))
    .groupBy(members.id)
    .orderBy(asc(people.name))
    .all()
    .map(({ member, person: { id, name, email }, usedAt }) => ({
      id,
      name,
      email,
      memberId: member.id,
      role: member.role,
      since: toIso(member.createdAt),
      lastUsedAt: toIso(usedAt),
    }))
    .sort((a, b) => roles.indexOf(a.role) - roles.indexOf(b.role));

/** The email addresses of an organization's members, in lower case. */
export const listMemberEmails = (ctx: Context, org: OrgId): string[] =>
  listMembers(ctx, org).map(({ email }) => email.toLowerCase());

/** Whether a member of the organization operates the whole service. */
export function hasOperator(ctx: Context, org: OrgId): boolean {
  const emails = new Set(listMemberEmails(ctx, org));
  return listOperators(ctx).some(({ email }) => emails.has(email.toLowerCase()));
}

/** The email addresses of the owners of an organization. */
export const listOwnerEmails = (ctx: Context, org: OrgId): string[] =>
  listMembers(ctx, org).flatMap(({ email, role }) => (role === "owner" ? [email] : []));

/** Changes the role of a member. Throws not_found, bad_request for an unknown role, and conflict for the last owner. */
export const setRole = (ctx: Context, org: OrgId, memberId: string, role: string, client: Client): Promise<void> =>
  inSequence(ctx, async () => {
    const newRole = toRole(role);
    const member = getMember(ctx, org, memberId);
    if (member.role === newRole) return;
    refuseLastOwner(ctx, org, member);
    const { api } = await loadBetterAuth(ctx);
    const body = { memberId, role: newRole, organizationId: org };
    await withAppErrors(api.updateMemberRole({ body, headers: toHeaders(client) }));
    const changes = changesOf({ role: member.role }, { role: newRole });
    transaction(ctx.db, () => recordAudit(ctx, org, "member.role_changed", member.person, changes));
  });

/** Removes a member. `revokesKeys`: also revokes the API keys that the member created. */
export const removeMember = (
  ctx: Context,
  org: OrgId,
  memberId: string,
  client: Client,
  { revokesKeys = false }: { revokesKeys?: boolean } = {},
): Promise<void> =>
  inSequence(ctx, async () => {
    const member = getMember(ctx, org, memberId);
    refuseLastOwner(ctx, org, member);
    const { api } = await loadBetterAuth(ctx);
    const body = { memberIdOrEmail: memberId, organizationId: org };
    await withAppErrors(api.removeMember({ body, headers: toHeaders(client) }));
    transaction(ctx.db, () => recordAudit(ctx, org, "member.removed", member.person));
    if (revokesKeys) revokeKeysOfPerson(ctx, org, member.person.id);
  });

/** Ends the person's own membership. `revokesKeys`: also revokes the API keys that the person created. */
export const leaveOrg = (
  ctx: Context,
  org: OrgId,
  { person }: SignedIn,
  client: Client,
  { revokesKeys = false }: { revokesKeys?: boolean } = {},
): Promise<void> =>
  inSequence(ctx, async () => {
    const where = and(eq(members.orgId, org), eq(members.personId, person.id));
    const row = ctx.db.select().from(members).where(where).get();
    if (!row) throw notFound("The organization was not found.");
    refuseLastOwner(ctx, org, row);
    const { api } = await loadBetterAuth(ctx);
    await withAppErrors(api.leaveOrganization({ body: { organizationId: org }, headers: toHeaders(client) }));
    transaction(ctx.db, () => recordAudit(ctx, org, "member.left", person));
    if (revokesKeys) revokeKeysOfPerson(ctx, org, person.id);
  });

function getMember(ctx: Context, org: OrgId, memberId: string) {
  const row = ctx.db
    .select({ role: members.role, person: { id: people.id, name: people.name } })
    .from(members)
    .innerJoin(people, eq(people.id, members.personId))
    .where(and(eq(members.orgId, org), eq(members.id, memberId)))
    .get();
  if (!row) throw notFound("The member was not found.");
  return row;
}

/** Whether a member with this role is the only owner. The only owner can't leave the organization. */
export const isLastOwner = (ctx: Context, org: OrgId, role: Role): boolean =>
  role === "owner" && listOwnerEmails(ctx, org).length <= 1;

/** Throws conflict for the only owner of an organization. Call it before the person is asked to confirm. */
export function refuseLastOwner(ctx: Context, org: OrgId, { role }: { role: Role }): void {
  if (isLastOwner(ctx, org, role))
    throw conflict("An organization needs at least one owner. Make another member an owner first.");
}
