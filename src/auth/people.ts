import { asc, eq } from "drizzle-orm";
import type { Context, OrgId } from "../context.ts";
import { members, orgs, people, signIns } from "../db/tables.ts";
import { isLocked } from "../db/write-lock.ts";
import { AppError, invalidField, notFound } from "../errors.ts";
import { toName } from "../schema.ts";
import { createAccount, findPassword } from "./account.ts";
import { createAttempts } from "./attempts.ts";
import type { Engine } from "./engine.ts";
import { type From, toHeaders, withAppErrors } from "./engine-calls.ts";
import { createInvitations } from "./invitations.ts";
import { createLinks, readSecret } from "./links.ts";
import { createMail } from "./mail.ts";
import { createMembers } from "./members.ts";
import { checkStrength } from "./password-strength.ts";
import { type Membership, type NewPerson, type Person, type SignedIn, toEmail } from "./person.ts";
import { createResets } from "./resets.ts";
import { createSetup } from "./setup.ts";
import { createSso } from "./sso.ts";
import { createUploads } from "./uploads.ts";

/** People: who they are and how they sign in. No other part of the service uses the library behind it. */
export function createPeople(ctx: Context) {
  const { db } = ctx;
  const attempts = createAttempts(ctx);
  let kept: string | undefined;
  const secret = () => (kept ??= readSecret(db));
  const links = createLinks(secret);
  let loading: Promise<Engine> | undefined;
  const engine = () => (loading ??= import("./engine.ts").then(({ createEngine }) => createEngine(ctx, secret())));

  /** Changes that read other rows first run one after another. */
  let turn: Promise<unknown> = Promise.resolve();
  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    const next = turn.then(work, work);
    turn = next.catch(() => {});
    return next;
  }

  const findPerson = (email: string): Person | undefined =>
    db
      .select({ id: people.id, name: people.name, email: people.email })
      .from(people)
      .where(eq(people.email, toEmail(email)))
      .get();

  const membershipsOf = (personId: string): Membership[] =>
    db
      .select({ org: orgs.id, orgName: orgs.name, timeZone: orgs.timeZone, role: members.role })
      .from(members)
      .innerJoin(orgs, eq(orgs.id, members.orgId))
      .where(eq(members.personId, personId))
      .orderBy(asc(orgs.name))
      .all()
      .map((row) => ({ ...row, org: row.org as OrgId }));

  /** Returns the cookies of the session. Throws unauthorized, without saying whether the email address is known, and rate_limited. */
  async function signIn(email: string, password: string, from: From): Promise<string[]> {
    const account = email.trim().toLowerCase();
    attempts.begin(account, from.address);
    const { api } = await engine();
    const hash = () => {
      const person = db.select({ id: people.id }).from(people).where(eq(people.email, account)).get();
      return person && findPassword(db, person.id)?.hash;
    };
    const before = hash();
    const { headers, response } = await withAppErrors(
      api.signInEmail({ body: { email: account, password }, headers: toHeaders(from), returnHeaders: true }),
    );
    // Verification takes time, during which the password may have been replaced and all sessions ended.
    if (hash() !== before) {
      db.delete(signIns).where(eq(signIns.token, response.token)).run();
      throw new AppError("unauthorized", "Your password was changed while you signed in. Sign in again.");
    }
    attempts.succeed(account, from.address);
    return headers.getSetCookie();
  }

  /** Throws bad_request if the password is too short, too long or easy to guess. */
  async function hashOf(password: string): Promise<string> {
    const { config, hash } = (await (await engine()).$context).password;
    const { minPasswordLength: min, maxPasswordLength: max } = config;
    if (password.length < min || password.length > max)
      throw invalidField("password", `must be ${min} to ${max} characters long`);
    await checkStrength(password);
    return await hash(password);
  }

  /**
   * Creates a person with a password and signs them in. For an existing person, the password must match. `isProven`: only the holder of
   * the email address can have got here. A link that somebody else has seen proves nothing.
   */
  async function enter({ name, email, password }: NewPerson, from: From, isProven: boolean): Promise<string[]> {
    const address = toEmail(email);
    if (findPerson(address)) return await signIn(address, password, from);
    const called = toName(name);
    const hash = await hashOf(password);
    const { internalAdapter } = await (await engine()).$context;
    const made = await internalAdapter.createUser(
      { name: called, email: address, emailVerified: isProven },
      { method: "email-password" },
    );
    await internalAdapter.linkAccount({
      userId: made.id,
      accountId: made.id,
      providerId: "credential",
      password: hash,
    });
    return await signIn(address, password, from);
  }

  const inside = { engine, links, attempts, inTurn, enter, findPerson, hashOf, signIn };

  return {
    ...createMembers(ctx, inside),
    ...createInvitations(ctx, inside),
    ...createSetup(ctx, inside),
    ...createAccount(ctx, inside),
    ...createResets(ctx, inside),
    ...createMail(ctx),
    ...createUploads(ctx, inside),
    ...createSso(ctx, secret),
    attempts,
    membershipsOf,
    findPerson,
    signIn,

    /** The person to whom the cookies belong, and cookies to set in the response. */
    async findSignedIn(from: From): Promise<{ signedIn: SignedIn | null; cookies: string[] }> {
      const { api } = await engine();
      const request = { headers: toHeaders(from), returnHeaders: true } as const;
      const { headers, response } = await api.getSession(request);
      const cookies = headers.getSetCookie();
      if (!response) return { signedIn: null, cookies };
      // The library would block this thread until another process has finished writing. The next page extends the session.
      if ("needsRefresh" in response && response.needsRefresh && !isLocked(db)) {
        const refreshed = await api.getSession({ ...request, method: "POST" }).catch(() => null);
        cookies.push(...(refreshed?.headers.getSetCookie() ?? []));
      }
      const { user, session } = response;
      const { id, name, email } = user;
      const chosen = session.activeOrganizationId ?? null;
      return { signedIn: { person: { id, name, email }, signInId: session.id, token: session.token, chosen }, cookies };
    },

    /** Ends a session. Returns cookies that clear the browser's. */
    async signOut(from: From): Promise<string[]> {
      const { api } = await engine();
      const found = await api.getSession({ headers: toHeaders(from), query: { disableRefresh: true } });
      // The library reports success even if the session could not be deleted.
      if (found) db.delete(signIns).where(eq(signIns.id, found.session.id)).run();
      return (await api.signOut({ headers: toHeaders(from), returnHeaders: true })).headers.getSetCookie();
    },

    /** Switches this session to another organization. Throws not_found if the person isn't a member of it. */
    chooseOrg({ person, signInId }: SignedIn, org: string): void {
      if (!membershipsOf(person.id).some((each) => each.org === org)) throw notFound("The organization was not found.");
      db.update(signIns).set({ orgId: org }).where(eq(signIns.id, signInId)).run();
    },
  };
}
