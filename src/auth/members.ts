import { and, asc, eq, max } from "drizzle-orm";
import type { Context, OrgId } from "../context.ts";
import { members, people, type Role, roles, signIns } from "../db/tables.ts";
import { conflict, notFound } from "../errors.ts";
import { toIso } from "../schema.ts";
import { type From, type GetEngine, toHeaders, withAppErrors } from "./engine-calls.ts";
import { type InTurn, type Person, type SignedIn, toRole } from "./person.ts";

export type Member = Person & { memberId: string; role: Role; since: string; lastUsedAt: string | null };
type Inside = { engine: GetEngine; inTurn: InTurn };

/** The members of an organization. A change takes effect with the next request of the member. */
export function createMembers({ db }: Context, { engine, inTurn }: Inside) {
  function getMember(org: OrgId, memberId: string) {
    const own = and(eq(members.orgId, org), eq(members.id, memberId));
    const row = db.select().from(members).where(own).get();
    if (!row) throw notFound("The member was not found.");
    return row;
  }

  function refuseLastOwner(org: OrgId, { role }: { role: Role }): void {
    const owners = and(eq(members.orgId, org), eq(members.role, "owner"));
    if (role === "owner" && db.select({ id: members.id }).from(members).where(owners).all().length <= 1)
      throw conflict("An organization needs at least one owner. Make another member an owner first.");
  }

  return {
    /** By name, owners first. */
    listMembers: (org: OrgId): Member[] =>
      db
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
        .sort((a, b) => roles.indexOf(a.role) - roles.indexOf(b.role)),

    setRole: (org: OrgId, memberId: string, role: string, from: From): Promise<void> =>
      inTurn(async () => {
        const wanted = toRole(role);
        const member = getMember(org, memberId);
        if (member.role === wanted) return;
        refuseLastOwner(org, member);
        const { api } = await engine();
        const body = { memberId, role: wanted, organizationId: org };
        await withAppErrors(api.updateMemberRole({ body, headers: toHeaders(from) }));
      }),

    removeMember: (org: OrgId, memberId: string, from: From): Promise<void> =>
      inTurn(async () => {
        refuseLastOwner(org, getMember(org, memberId));
        const { api } = await engine();
        const body = { memberIdOrEmail: memberId, organizationId: org };
        await withAppErrors(api.removeMember({ body, headers: toHeaders(from) }));
      }),

    leaveOrg: (org: OrgId, { person }: SignedIn, from: From): Promise<void> =>
      inTurn(async () => {
        const own = and(eq(members.orgId, org), eq(members.personId, person.id));
        const row = db.select().from(members).where(own).get();
        if (!row) throw notFound("The organization was not found.");
        refuseLastOwner(org, row);
        const { api } = await engine();
        await withAppErrors(api.leaveOrganization({ body: { organizationId: org }, headers: toHeaders(from) }));
      }),
  };
}
