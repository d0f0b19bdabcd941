import { and, asc, eq } from "drizzle-orm";
import type { AuditAction } from "../audit/actions.ts";
import { recordAudit } from "../audit/entries.ts";
import type { Context, OrgId } from "../context.ts";
import { type Tx, transaction } from "../db/open.ts";
import type { AuditChange } from "../db/tables/audit.ts";
import { orgs } from "../db/tables/orgs.ts";
import { accounts, members, people, type SignInMethod, signIns, verifications } from "../db/tables/people.ts";
import { isLocked } from "../db/write-lock.ts";
import { AppError, invalidField, notFound } from "../errors.ts";
import { identifyActor } from "../http/caller.ts";
import { toName } from "../schema.ts";
import { type Client, loadBetterAuth, toHeaders, withAppErrors } from "./better-auth-calls.ts";
import { checkStrength } from "./password-strength.ts";
import { withPasswordTurn } from "./password-turns.ts";
import { CodeNeeded, type Membership, type NewPerson, type Person, type SignedIn, toEmail } from "./person.ts";
import { countSignInAttempt, recordSignInSuccess } from "./sign-in-attempts.ts";

/** The password account of a person, if they have one. */
export function findPassword({ db }: Context, personId: string): { id: string; hash: string | null } | undefined {
  const where = and(eq(accounts.personId, personId), eq(accounts.providerId, "credential"));
  return db.select({ id: accounts.id, hash: accounts.password }).from(accounts).where(where).get();
}

/** The person with an email address, ignoring case; undefined: there is none. */
export const findPerson = (ctx: Context, email: string): Person | undefined =>
  ctx.db
    .select({ id: people.id, name: people.name, email: people.email })
    .from(people)
    .where(eq(people.email, toEmail(email)))
    .get();

/** The person with an email address, ignoring case. Throws not_found. */
export function getPerson(ctx: Context, email: string): Person {
  const person = findPerson(ctx, email);
  if (!person) throw notFound(`No user has the email address ${JSON.stringify(email)}.`);
  return person;
}

/** Ends sign-ins of a person that still wait for a code. Their first step used a password or factor that has changed since. */
export const endUnfinishedSignIns = (tx: Tx, personId: string): void =>
  void tx.delete(verifications).where(eq(verifications.value, personId)).run();

/** The organizations of a person, with the role in each. */
export const listMemberships = (ctx: Context, personId: string): Membership[] =>
  ctx.db
    .select({
      org: orgs.id,
      orgName: orgs.name,
      timeZone: orgs.timeZone,
      role: members.role,
      signInPolicy: orgs.signInPolicy,
    })
    .from(members)
    .innerJoin(orgs, eq(orgs.id, members.orgId))
    .where(eq(members.personId, personId))
    .orderBy(asc(orgs.name))
    .all()
    .map((row) => ({ ...row, org: row.org as OrgId }));

/**
 * Records a change of a person's account in the audit log of each of their organizations, because the account is used in all of them. If they have
 * none, it is recorded in the audit log of the service.
 */
export function recordAuditOfPerson(
  ctx: Context,
  person: { id: string; name: string },
  action: AuditAction,
  changes: AuditChange[] = [],
): void {
  const orgIds = listMemberships(ctx, person.id).map(({ org }) => org);
  transaction(ctx.db, () => {
    for (const org of orgIds.length === 0 ? [null] : orgIds) recordAudit(ctx, org, action, person, changes);
  });
}

/** Records a failed sign-in. `person`: null if nobody has the address. The address itself isn't stored, because it may be a mistyped password. */
export function recordFailedSignIn(ctx: Context, person: { id: string; name: string } | null): void {
  if (person) recordAuditOfPerson(ctx, person, "sign_in.failed");
  else transaction(ctx.db, () => recordAudit(ctx, null, "sign_in.failed"));
}

/** If an attempt to sign in is refused, records that, and rethrows the error. `person`: as in `recordFailedSignIn`. */
export async function recordRefusal<T>(
  ctx: Context,
  person: { id: string; name: string } | null,
  attempt: Promise<T>,
): Promise<T> {
  try {
    return await attempt;
  } catch (error) {
    if (error instanceof AppError && error.code === "unauthorized") recordFailedSignIn(ctx, person);
    throw error;
  }
}

/** Records that a person has just signed in. From then on, the person is the actor of the request. */
export function recordSignIn(ctx: Context, person: { id: string; name: string }): void {
  identifyActor({ kind: "person", ...person });
  recordAuditOfPerson(ctx, person, "sign_in.succeeded");
}

/**
 * Signs in with a password. Returns the cookies of the session. Throws rate_limited, and `CodeNeeded` for a person with two-factor sign-in. Throws
 * unauthorized without revealing whether the email address is known.
 */
export async function signIn(ctx: Context, email: string, password: string, client: Client): Promise<string[]> {
  const address = email.trim().toLowerCase();
  countSignInAttempt(ctx, address, client.address);
  const { api } = await loadBetterAuth(ctx);
  const person = ctx.db
    .select({ id: people.id, name: people.name })
    .from(people)
    .where(eq(people.email, address))
    .get();
  const readHash = () => person && findPassword(ctx, person.id)?.hash;
  const hashBefore = readHash();
  const body = { email: address, password };
  const attempt = withPasswordTurn(ctx, client.address, () =>
    withAppErrors(api.signInEmail({ body, headers: toHeaders(client), returnHeaders: true })),
  );
  const { headers, response } = await recordRefusal(ctx, person ?? null, attempt);
  // Verifying takes time. Meanwhile, the password may have been replaced and all sessions ended.
  if (readHash() !== hashBefore) {
    if (response.token) ctx.db.delete(signIns).where(eq(signIns.token, response.token)).run();
    throw new AppError("unauthorized", "Your password was changed while you signed in. Sign in again.");
  }
  recordSignInSuccess(ctx, address, client.address);
  if ("twoFactorRedirect" in response) throw new CodeNeeded(headers.getSetCookie());
  if (person) recordSignIn(ctx, person);
  return headers.getSetCookie();
}

/** The person that the cookies belong to, and the cookies to set in the response. */
export async function findSignedIn(ctx: Context, client: Client) {
  const { api } = await loadBetterAuth(ctx);
  const request = { headers: toHeaders(client), returnHeaders: true } as const;
  const { headers, response } = await api.getSession(request);
  const cookies = headers.getSetCookie();
  if (!response) return { signedIn: null, cookies };
  // If another process is writing, better-auth would block this thread until it has finished. Then the next page extends the session instead.
  if ("needsRefresh" in response && response.needsRefresh && !isLocked(ctx.db)) {
    const refreshed = await api.getSession({ ...request, method: "POST" }).catch(() => null);
    cookies.push(...(refreshed?.headers.getSetCookie() ?? []));
  }
  const { user, session } = response;
  const { id, name, email } = user;
  const chosenOrg = session.activeOrganizationId ?? null;
  const method = session.method as SignInMethod;
  const person = { id, name, email };
  const signedIn: SignedIn = { person, signInId: session.id, token: session.token, method, chosenOrg };
  return { signedIn, cookies };
}

/** Ends a session. Returns cookies that clear the cookies of the browser. */
export async function signOut(ctx: Context, client: Client): Promise<string[]> {
  const { api } = await loadBetterAuth(ctx);
  const current = await api.getSession({ headers: toHeaders(client), query: { disableRefresh: true } });
  // better-auth reports success even if the session could not be deleted.
  if (current)
    transaction(ctx.db, (tx) => {
      tx.delete(signIns).where(eq(signIns.id, current.session.id)).run();
      recordAuditOfPerson(ctx, current.user, "sign_out.completed");
    });
  return (await api.signOut({ headers: toHeaders(client), returnHeaders: true })).headers.getSetCookie();
}

/** Switches this session to another organization. Throws not_found if the person isn't a member of that organization. */
export function chooseOrg(ctx: Context, { person, signInId }: SignedIn, org: string): void {
  if (!listMemberships(ctx, person.id).some((each) => each.org === org))
    throw notFound("The organization was not found.");
  ctx.db.update(signIns).set({ orgId: org }).where(eq(signIns.id, signInId)).run();
}

/** Hashes a password. Throws rate_limited, and bad_request if the password is too short, too long or easy to guess. */
export async function hashPassword(ctx: Context, password: string, { address }: Client): Promise<string> {
  const { $context } = await loadBetterAuth(ctx);
  const { config, hash } = (await $context).password;
  const { minPasswordLength: min, maxPasswordLength: max } = config;
  if (password.length < min || password.length > max)
    throw invalidField("password", `must be ${min} to ${max} characters long`);
  await checkStrength(password);
  return await withPasswordTurn(ctx, address, () => hash(password));
}

/**
 * Creates a person with a password and signs them in. For an existing person, the password must match. `isProven`: whether only the holder of the
 * email address can have opened the link. A link that somebody else has seen proves nothing.
 */
export async function registerOrSignIn(
  ctx: Context,
  { name, email, password }: NewPerson,
  client: Client,
  { isProven }: { isProven: boolean },
): Promise<string[]> {
  const address = toEmail(email);
  if (findPerson(ctx, address)) return await signIn(ctx, address, password, client);
  const trimmedName = toName(name);
  const hash = await hashPassword(ctx, password, client);
  const { $context } = await loadBetterAuth(ctx);
  const { internalAdapter } = await $context;
  const person = await internalAdapter.createUser(
    { name: trimmedName, email: address, emailVerified: isProven },
    { method: "email-password" },
  );
  const account = { userId: person.id, accountId: person.id, providerId: "credential", password: hash };
  await internalAdapter.linkAccount(account);
  return await signIn(ctx, address, password, client);
}
