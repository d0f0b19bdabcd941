import { asc, eq } from "drizzle-orm";
import { members, orgs, people, type Role, signIns } from "../db/tables.ts";
import type { Deps, OrgId } from "../deps.ts";
import { badRequest, conflict, notFound } from "../errors.ts";
import { toName } from "../schema.ts";
import { createAccount } from "./account.ts";
import { createAttempts } from "./attempts.ts";
import type { Engine } from "./engine.ts";
import { type From, toHeaders, told } from "./enginecalls.ts";
import { createLinks, readSecret } from "./links.ts";
import { createMail } from "./mail.ts";
import { createMembers } from "./members.ts";
import { createSso } from "./sso.ts";

const setupLifeMs = 3 * 24 * 3600_000;

export type Person = { id: string; name: string; email: string };
/** A person in one of the organisations that they are a member of. */
export type Membership = { org: OrgId; orgName: string; role: Role };
/** Who is signed in, by which row, and which organisation they chose to look at. */
export type SignedIn = { person: Person; signInId: string; token: string; chosen: string | null };
export type NewPerson = { name: string; email: string; password: string };

/** People: who they are and how they sign in. The rest of the service knows nothing of the library behind it, which is loaded when first needed. */
export function createPeople(deps: Deps) {
  const { db, now } = deps;
  const attempts = createAttempts(deps);
  let kept: string | undefined;
  const secret = () => (kept ??= readSecret(db));
  const links = createLinks(secret);
  let loading: Promise<Engine> | undefined;
  const engine = () => (loading ??= import("./engine.ts").then(({ createEngine }) => createEngine(deps, secret())));

  /** Changes that look at other rows first take turns. */
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
      .select({ org: orgs.id, orgName: orgs.name, role: members.role })
      .from(members)
      .innerJoin(orgs, eq(orgs.id, members.orgId))
      .where(eq(members.personId, personId))
      .orderBy(asc(orgs.name))
      .all()
      .map((row) => ({ ...row, org: row.org as OrgId }));

  const hasMembers = (org: string): boolean =>
    db.select({ id: members.id }).from(members).where(eq(members.orgId, org)).limit(1).get() !== undefined;

  /** Answers with the cookies that keep a person signed in. Throws unauthorized, which says not whether the address is known, and rate_limited. */
  async function signIn(email: string, password: string, from: From): Promise<string[]> {
    const account = email.trim().toLowerCase();
    attempts.begin(account, from.address);
    const { api } = await engine();
    const { headers } = await told(
      api.signInEmail({ body: { email: account, password }, headers: toHeaders(from), returnHeaders: true }),
    );
    attempts.succeed(account, from.address);
    return headers.getSetCookie();
  }

  /** Throws bad_request for a password that is too short or too long. */
  async function hashOf(password: string): Promise<string> {
    const { config, hash } = (await (await engine()).$context).password;
    const { minPasswordLength: min, maxPasswordLength: max } = config;
    if (password.length < min || password.length > max)
      throw badRequest(
        `the password must have ${min} to ${max} characters; a few words that only you would put together are best`,
      );
    return await hash(password);
  }

  /** Makes a person with a password and signs them in; one who is known must give the password that they have. */
  async function enter({ name, email, password }: NewPerson, from: From): Promise<string[]> {
    const address = toEmail(email);
    if (findPerson(address)) return await signIn(address, password, from);
    const called = toName(name);
    const hash = await hashOf(password);
    const { internalAdapter } = await (await engine()).$context;
    const made = await internalAdapter.createUser(
      { name: called, email: address, emailVerified: true },
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

  /** The organisation that a set-up address is for. Throws not_found for one that is wrong, too old or was used. */
  function readSetup(token: string): { org: OrgId; orgName: string } {
    const [org = "", expiresAt = "0"] = links.readToken("setup", token) ?? [];
    const row = db.select({ name: orgs.name }).from(orgs).where(eq(orgs.id, org)).get();
    if (!row) throw notFound("this set-up address is not right; copy all of it, or make one with evald org setup-link");
    if (hasMembers(org))
      throw notFound("this set-up address was used: the organisation has an owner, who can invite you");
    if (Number(expiresAt) <= now())
      throw notFound("this set-up address is too old; make a new one with evald org setup-link");
    return { org: org as OrgId, orgName: row.name };
  }

  const inside = { engine, links, attempts, inTurn, enter, findPerson, toEmail, hashOf, signIn };

  return {
    ...createMembers(deps, inside),
    ...createAccount(deps, inside),
    ...createMail(deps),
    ...createSso(deps, secret),
    attempts,
    membershipsOf,
    findPerson,
    signIn,
    readSetup,

    /** Who bears the cookie, and the cookies to send with the answer. */
    async findSignedIn(from: From): Promise<{ signedIn: SignedIn | null; cookies: string[] }> {
      const { api } = await engine();
      const { headers, response } = await api.getSession({ headers: toHeaders(from), returnHeaders: true });
      const cookies = headers.getSetCookie();
      if (!response) return { signedIn: null, cookies };
      const { user, session } = response;
      const { id, name, email } = user;
      const chosen = session.activeOrganizationId ?? null;
      return { signedIn: { person: { id, name, email }, signInId: session.id, token: session.token, chosen }, cookies };
    },

    /** Ends a sign-in; answers with the cookies that make the browser forget it. */
    async signOut(from: From): Promise<string[]> {
      const { api } = await engine();
      return (await api.signOut({ headers: toHeaders(from), returnHeaders: true })).headers.getSetCookie();
    },

    /** Shows another organisation in the pages of this sign-in. Throws not_found for one that the person is not a member of. */
    chooseOrg({ person, signInId }: SignedIn, org: string): void {
      if (!membershipsOf(person.id).some((each) => each.org === org)) throw notFound("there is no such organisation");
      db.update(signIns).set({ orgId: org }).where(eq(signIns.id, signInId)).run();
    },

    /** The path of the address at which an organisation without people gets its first owner, for three days. Throws conflict if it has people. */
    setupPath(org: OrgId): string {
      if (hasMembers(org))
        throw conflict("the organisation has people already; its owners invite others under Settings, Members");
      return `/setup/${links.toToken("setup", org, now() + setupLifeMs)}`;
    },

    /** Makes somebody who is signed in the owner of an organisation that they made, and shows it. */
    async addOwner(org: OrgId, { person, signInId }: SignedIn): Promise<void> {
      const { api } = await engine();
      await told(api.addMember({ body: { userId: person.id, organizationId: org, role: "owner" } }));
      db.update(signIns).set({ orgId: org }).where(eq(signIns.id, signInId)).run();
    },

    /** Makes the first owner of an organisation and signs them in. */
    setUp: (token: string, person: NewPerson, from: From): Promise<string[]> =>
      inTurn(async () => {
        const { org } = readSetup(token);
        const cookies = await enter(person, from);
        const { api } = await engine();
        const { id } = findPerson(person.email) as Person;
        await told(api.addMember({ body: { userId: id, organizationId: org, role: "owner" } }));
        return cookies;
      }),
  };
}

/** An address of mail in the one form in which it is kept. Throws bad_request. */
function toEmail(text: string): string {
  const email = text.trim().toLowerCase();
  if (!/^[^\s@<>,;:"]+@[^\s@<>,;:"]+\.[^\s@<>,;:".]+$/.test(email) || email.length > 254)
    throw badRequest(`${JSON.stringify(text.slice(0, 300))} is no address of mail; use one like ada@example.com`);
  return email;
}
