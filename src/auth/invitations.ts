import { and, desc, eq, gt } from "drizzle-orm";
import { changesOf, recordAudit } from "../audit/entries.ts";
import type { Context, OrgId } from "../context.ts";
import { transaction } from "../db/open.ts";
import { orgs } from "../db/tables/orgs.ts";
import { invitations, people } from "../db/tables/people.ts";
import { AppError, conflict, notFound } from "../errors.ts";
import { toIso } from "../schema.ts";
import { type Client, inSequence, loadBetterAuth, toHeaders, withAppErrors, withCookies } from "./better-auth-calls.ts";
import { readLinkToken, toLinkToken } from "./links.ts";
import { findPerson, registerOrSignIn } from "./people.ts";
import { type NewPerson, type SignedIn, toEmail, toRole } from "./person.ts";
import { checkEmailDomain, getSignInPolicy } from "./sign-in-policy.ts";

/** A pending invitation. `path`: the link to give to the invited person. */
export type Invitation = ReturnType<typeof listInvitations>[number];
/** An invitation as the invited person sees it. */
export type ReceivedInvitation = ReturnType<typeof listReceivedInvitations>[number];
/** The details of an invitation, for the person who opens its link. */
export type InvitationDetails = ReturnType<typeof readInvitation>;

const hourMs = 3600_000;
/** A limit is needed because each invitation may send an email to a stranger. */
const maxPerHour = 50;

/** The details of an invitation. Throws not_found with the reason if it is invalid. */
export function readInvitation(ctx: Context, token: string) {
  const [id = "", channel] = readLinkToken(ctx, "invite", token) ?? [];
  const row = ctx.db
    .select({ invitation: invitations, orgName: orgs.name, invitedBy: people.name })
    .from(invitations)
    .innerJoin(orgs, eq(orgs.id, invitations.orgId))
    .innerJoin(people, eq(people.id, invitations.inviterId))
    .where(eq(invitations.id, id))
    .get();
  if (!row) throw notFound("This invitation link is not valid. Copy the whole link, or ask for a new one.");
  const { orgId, email, role, status, expiresAt } = row.invitation;
  if (status === "accepted") throw notFound("This invitation was already accepted. Sign in.");
  if (status !== "pending") throw notFound("This invitation was revoked. Ask an owner for a new one.");
  if (expiresAt.getTime() <= ctx.now()) throw notFound("This invitation has expired. Ask an owner for a new one.");
  return {
    id,
    org: orgId as OrgId,
    orgName: row.orgName,
    invitedBy: row.invitedBy,
    email,
    role,
    hasAccount: findPerson(ctx, email) !== undefined,
    /** Whether the organization doesn't allow passwords. */
    requiresSso: getSignInPolicy(ctx, orgId as OrgId).requiresSso,
    /** Whether the link was only emailed to the address and not shown to anyone else. */
    isMailed: channel === "mail",
  };
}

/** Pending invitations, newest first. */
export const listInvitations = (ctx: Context, org: OrgId) =>
  ctx.db
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
      expiresAt: toIso(expiresAt),
      isExpired: expiresAt.getTime() <= ctx.now(),
      path: toPath(ctx, id),
    }));

/** Valid invitations for the email address of a person. If the address isn't proven, there are none. */
export const listReceivedInvitations = (ctx: Context, personId: string) =>
  ctx.db
    .select({ id: invitations.id, role: invitations.role, orgName: orgs.name })
    .from(invitations)
    .innerJoin(orgs, eq(orgs.id, invitations.orgId))
    .innerJoin(people, and(eq(people.email, invitations.email), eq(people.emailVerified, true)))
    .where(
      and(eq(people.id, personId), eq(invitations.status, "pending"), gt(invitations.expiresAt, new Date(ctx.now()))),
    )
    .orderBy(desc(invitations.id))
    .all()
    .map(({ id, role, orgName }) => ({ orgName, role, path: toPath(ctx, id) }));

/**
 * Invites an email address, and revokes its earlier invitation. `mailedPath`: the path of the link to email. Opening this link proves who holds the
 * address, so it must not be shown to anyone else.
 */
export async function invitePerson(ctx: Context, org: OrgId, email: string, role: string, client: Client) {
  const address = toEmail(email);
  checkEmailDomain(ctx, org, address);
  const hourAgo = new Date(ctx.provenTime.now() - hourMs);
  const whereRecent = and(eq(invitations.orgId, org), gt(invitations.createdAt, hourAgo));
  const recent = ctx.db.select({ id: invitations.id }).from(invitations).where(whereRecent).limit(maxPerHour).all();
  if (recent.length === maxPerHour)
    throw new AppError("rate_limited", `An organization can invite ${maxPerHour} people an hour. Try again later.`, {
      retryAfterSeconds: 3600,
    });
  const body = { email: address, role: toRole(role), organizationId: org };
  const { api } = await loadBetterAuth(ctx);
  const invitation = await withAppErrors(api.createInvitation({ body, headers: toHeaders(client) }));
  const target = { id: invitation.id, name: address };
  transaction(ctx.db, () => recordAudit(ctx, org, "invitation.created", target, changesOf({}, { role: body.role })));
  return { email: address, mailedPath: toPath(ctx, invitation.id, "mail") };
}

/** Revokes a pending invitation. Throws not_found. */
export async function revokeInvitation(ctx: Context, org: OrgId, id: string, client: Client): Promise<void> {
  const where = and(eq(invitations.orgId, org), eq(invitations.id, id), eq(invitations.status, "pending"));
  const invitation = ctx.db.select().from(invitations).where(where).get();
  if (!invitation) throw notFound("The invitation was not found.");
  const { api } = await loadBetterAuth(ctx);
  await withAppErrors(api.cancelInvitation({ body: { invitationId: id }, headers: toHeaders(client) }));
  transaction(ctx.db, () => recordAudit(ctx, org, "invitation.revoked", { id, name: invitation.email }));
}

/** Makes the invited person a member. They are either signed in with that email address, or give a password. Returns the cookies. */
export const acceptInvitation = (
  ctx: Context,
  token: string,
  signedIn: SignedIn | null,
  { name, password }: Omit<NewPerson, "email">,
  client: Client,
): Promise<string[]> =>
  inSequence(ctx, async () => {
    const { id, org, email, role, isMailed, requiresSso } = readInvitation(ctx, token);
    if (signedIn && signedIn.person.email !== email)
      throw conflict(
        `This invitation is for ${email}, but you are signed in as ${signedIn.person.email}. Sign out first.`,
      );
    checkEmailDomain(ctx, org, email);
    if (requiresSso && signedIn?.method !== "sso")
      throw new AppError(
        "forbidden",
        "Members of this organization sign in with the identity provider. Do so to join.",
      );
    const person = { name, email, password };
    const cookies = signedIn ? [] : await registerOrSignIn(ctx, person, client, { isProven: isMailed });
    const { api } = await loadBetterAuth(ctx);
    const headers = toHeaders(signedIn ? client : withCookies(client, cookies));
    await withAppErrors(api.acceptInvitation({ body: { invitationId: id }, headers }));
    transaction(ctx.db, () =>
      recordAudit(ctx, org, "invitation.accepted", { id, name: email }, changesOf({}, { role })),
    );
    return cookies;
  });

/** `channel`: set if the link is only emailed. */
const toPath = (ctx: Context, id: string, channel?: "mail") =>
  `/invite/${toLinkToken(ctx, "invite", id, ...(channel ? [channel] : []))}`;
