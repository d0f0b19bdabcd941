import { and, asc, desc, eq, max } from "drizzle-orm";
import { invitations, members, orgs, people, type Role, roles, signIns } from "../db/tables.ts";
import type { Deps, OrgId } from "../deps.ts";
import { badRequest, conflict, notFound } from "../errors.ts";
import { type From, type GetEngine, toHeaders, told, withCookies } from "./enginecalls.ts";
import type { Links } from "./links.ts";
import type { NewPerson, Person, SignedIn } from "./people.ts";

export type Member = Person & { memberId: string; role: Role; since: string; lastUsedAt: string | null };
/** An invitation that was not taken up yet. `path` is the link to give to the person. */
export type Invitation = {
  id: string;
  email: string;
  role: Role;
  invitedBy: string;
  expiresAt: string;
  isExpired: boolean;
  path: string;
};
/** What an invitation is for. `isKnown`: the address belongs to a person who has an account here. */
export type Invited = { id: string; org: OrgId; orgName: string; email: string; role: Role; isKnown: boolean };

type Inside = {
  engine: GetEngine;
  links: Links;
  inTurn: <T>(work: () => Promise<T>) => Promise<T>;
  enter: (person: NewPerson, from: From) => Promise<string[]>;
  findPerson: (email: string) => Person | undefined;
  toEmail: (text: string) => string;
};

/** Who belongs to an organisation, and who was asked to. What is changed here acts at the next request of whom it is about. */
export function createMembers({ db, now }: Deps, { engine, links, inTurn, enter, findPerson, toEmail }: Inside) {
  const toPath = (id: string) => `/invite/${links.toToken("invite", id)}`;

  function getMember(org: OrgId, memberId: string) {
    const own = and(eq(members.orgId, org), eq(members.id, memberId));
    const row = db.select().from(members).where(own).get();
    if (!row) throw notFound("there is no such member");
    return row;
  }

  function refuseLastOwner(org: OrgId, { role }: { role: Role }): void {
    const owners = and(eq(members.orgId, org), eq(members.role, "owner"));
    if (role === "owner" && db.select({ id: members.id }).from(members).where(owners).all().length <= 1)
      throw conflict("an organisation needs an owner; make somebody else one first");
  }

  /** Throws not_found, with the reason, for an invitation that cannot be taken up. */
  function readInvitation(token: string): Invited {
    const [id = ""] = links.readToken("invite", token) ?? [];
    const row = db
      .select({ invitation: invitations, orgName: orgs.name })
      .from(invitations)
      .innerJoin(orgs, eq(orgs.id, invitations.orgId))
      .where(eq(invitations.id, id))
      .get();
    if (!row) throw notFound("this invitation is not right; copy all of its address, or ask for a new one");
    const { orgId, email, role, status, expiresAt } = row.invitation;
    if (status === "accepted") throw notFound("this invitation was taken up already; sign in");
    if (status !== "pending") throw notFound("this invitation was revoked; ask an owner for a new one");
    if (expiresAt.getTime() <= now()) throw notFound("this invitation is too old; ask an owner for a new one");
    return { id, org: orgId as OrgId, orgName: row.orgName, email, role, isKnown: findPerson(email) !== undefined };
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
          since: member.createdAt.toISOString(),
          lastUsedAt: usedAt?.toISOString() ?? null,
        }))
        .sort((a, b) => roles.indexOf(a.role) - roles.indexOf(b.role)),

    /** Those that wait, newest first. */
    listInvitations: (org: OrgId): Invitation[] =>
      db
        .select({ invitation: invitations, invitedBy: people.name })
        .from(invitations)
        .innerJoin(people, eq(people.id, invitations.inviterId))
        .where(and(eq(invitations.orgId, org), eq(invitations.status, "pending")))
        .orderBy(desc(invitations.id))
        .all()
        .map(({ invitation: { id, email, role, expiresAt }, invitedBy }) => ({
          id,
          email,
          role,
          invitedBy,
          expiresAt: expiresAt.toISOString(),
          isExpired: expiresAt.getTime() <= now(),
          path: toPath(id),
        })),

    /** Invites an address; an older invitation of the same address is revoked. Answers with the path of the link. */
    async invite(org: OrgId, email: string, role: string, from: From): Promise<{ email: string; path: string }> {
      const address = toEmail(email);
      const body = { email: address, role: toRole(role), organizationId: org };
      const { api } = await engine();
      const made = await told(api.createInvitation({ body, headers: toHeaders(from) }));
      return { email: address, path: toPath(made.id) };
    },

    async revokeInvitation(org: OrgId, id: string, from: From): Promise<void> {
      const own = and(eq(invitations.orgId, org), eq(invitations.id, id), eq(invitations.status, "pending"));
      if (!db.select().from(invitations).where(own).get()) throw notFound("there is no such invitation");
      const { api } = await engine();
      await told(api.cancelInvitation({ body: { invitationId: id }, headers: toHeaders(from) }));
    },

    readInvitation,

    /** Makes whoever is invited a member: a person who is signed in with that address, or one who gives a password. Answers with cookies. */
    acceptInvitation: (
      token: string,
      signedIn: SignedIn | null,
      { name, password }: Pick<NewPerson, "name" | "password">,
      from: From,
    ): Promise<string[]> =>
      inTurn(async () => {
        const { id, email } = readInvitation(token);
        if (signedIn && signedIn.person.email !== email)
          throw conflict(
            `this invitation is for ${email}, and you are signed in as ${signedIn.person.email}; sign out first`,
          );
        const cookies = signedIn ? [] : await enter({ name, email, password }, from);
        const { api } = await engine();
        const headers = toHeaders(signedIn ? from : withCookies(from, cookies));
        await told(api.acceptInvitation({ body: { invitationId: id }, headers }));
        return cookies;
      }),

    setRole: (org: OrgId, memberId: string, role: string, from: From): Promise<void> =>
      inTurn(async () => {
        const wanted = toRole(role);
        const member = getMember(org, memberId);
        if (member.role === wanted) return;
        refuseLastOwner(org, member);
        const { api } = await engine();
        const body = { memberId, role: wanted, organizationId: org };
        await told(api.updateMemberRole({ body, headers: toHeaders(from) }));
      }),

    removeMember: (org: OrgId, memberId: string, from: From): Promise<void> =>
      inTurn(async () => {
        refuseLastOwner(org, getMember(org, memberId));
        const { api } = await engine();
        const body = { memberIdOrEmail: memberId, organizationId: org };
        await told(api.removeMember({ body, headers: toHeaders(from) }));
      }),

    leaveOrg: (org: OrgId, { person }: SignedIn, from: From): Promise<void> =>
      inTurn(async () => {
        const own = and(eq(members.orgId, org), eq(members.personId, person.id));
        const row = db.select().from(members).where(own).get();
        if (!row) throw notFound("there is no such organisation");
        refuseLastOwner(org, row);
        const { api } = await engine();
        await told(api.leaveOrganization({ body: { organizationId: org }, headers: toHeaders(from) }));
      }),
  };
}

function toRole(text: string): Role {
  const role = roles.find((each) => each === text);
  if (!role) throw badRequest(`the role must be one of ${roles.join(", ")}`);
  return role;
}
