import { eq } from "drizzle-orm";
import { changesOf, recordAudit } from "../audit/entries.ts";
import type { Context, OrgId } from "../context.ts";
import { transaction } from "../db/open.ts";
import { orgs } from "../db/tables/orgs.ts";
import { members, people, signIns } from "../db/tables/people.ts";
import { conflict, notFound } from "../errors.ts";
import { type Client, inSequence, loadBetterAuth, withAppErrors, withCookies } from "./better-auth-calls.ts";
import { readLinkToken, toLinkToken } from "./links.ts";
import { checkOrgName, updateOrgAsPerson } from "./orgs.ts";
import { findSignedIn, registerOrSignIn } from "./people.ts";
import type { NewPerson, SignedIn } from "./person.ts";

const setupLifetimeMs = 3 * 24 * 3600_000;

/** The organization of a setup link. Throws not_found if the link is invalid, has expired or was used. */
export function readSetup(ctx: Context, token: string): { org: OrgId; orgName: string } {
  const [org = "", expiresAt = "0"] = readLinkToken(ctx, "setup", token) ?? [];
  const row = ctx.db.select({ name: orgs.name }).from(orgs).where(eq(orgs.id, org)).get();
  if (!row)
    throw notFound("This setup link is not valid. Copy the whole link, or create a new one with evald org setup-link.");
  if (hasMembers(ctx, org))
    throw notFound("This setup link was already used. Ask an owner of the organization to invite you.");
  if (Number(expiresAt) <= ctx.now())
    throw notFound("This setup link has expired. Create a new one with evald org setup-link.");
  return { org: org as OrgId, orgName: row.name };
}

/**
 * The path of a link that creates the first owner of an organization without people. The link is valid for three days. Throws conflict if the
 * organization has people.
 */
export function setupPath(ctx: Context, org: OrgId): string {
  if (hasMembers(ctx, org))
    throw conflict("The organization already has members. Its owners can invite others under Settings, Members.");
  transaction(ctx.db, () => recordAudit(ctx, org, "setup_link.created"));
  return `/setup/${toLinkToken(ctx, "setup", org, ctx.now() + setupLifetimeMs)}`;
}

/** Whether nobody has an account on this server yet. The first account is created with a setup link. */
export const isWithoutPeople = (ctx: Context): boolean =>
  ctx.db.select({ id: people.id }).from(people).limit(1).get() === undefined;

/** Makes the signed-in person an owner of an organization, and switches their session to it. */
export async function addOwner(ctx: Context, org: OrgId, { person, signInId }: SignedIn): Promise<void> {
  const { api } = await loadBetterAuth(ctx);
  await withAppErrors(api.addMember({ body: { userId: person.id, organizationId: org, role: "owner" } }));
  transaction(ctx.db, (tx) => {
    tx.update(signIns).set({ orgId: org }).where(eq(signIns.id, signInId)).run();
    recordAudit(ctx, org, "member.added", person, changesOf({}, { role: "owner" }));
  });
}

/** `orgName`: the name that the owner gives to the organization; undefined: the organization keeps its name. */
type FirstOwner = NewPerson & { orgName?: string };

/**
 * Makes someone the first owner of an organization, and switches to the organization. That is the signed-in person, or otherwise a new or existing
 * person with their password. Returns the cookies. Throws not_found like `readSetup`, and what `registerOrSignIn` and `checkOrgName` throw.
 */
export const createFirstOwner = (
  ctx: Context,
  token: string,
  signedIn: SignedIn | null,
  { orgName, ...person }: FirstOwner,
  client: Client,
): Promise<string[]> =>
  inSequence(ctx, async () => {
    const { org } = readSetup(ctx, token);
    if (signedIn) {
      await addOwner(ctx, org, signedIn);
      return [];
    }
    // Checked before the account is created, because a form with an invalid name must change nothing.
    if (orgName !== undefined) checkOrgName(ctx, org, orgName);
    const cookies = await registerOrSignIn(ctx, person, client, { isProven: false });
    const owner = (await findSignedIn(ctx, withCookies(client, cookies))).signedIn as SignedIn;
    await addOwner(ctx, org, owner);
    if (orgName !== undefined) updateOrgAsPerson(ctx, org, { name: orgName });
    return cookies;
  });

const hasMembers = (ctx: Context, org: string): boolean =>
  ctx.db.select({ id: members.id }).from(members).where(eq(members.orgId, org)).limit(1).get() !== undefined;
