import { and, desc, eq, gt, ne } from "drizzle-orm";
import { tx } from "../db/open.ts";
import { accounts, members, people, signIns } from "../db/tables.ts";
import type { Deps, OrgId } from "../deps.ts";
import { conflict, notFound } from "../errors.ts";
import { toIso, toName } from "../schema.ts";
import { shortAddress } from "./address.ts";
import type { Attempts } from "./attempts.ts";
import { type From, type GetEngine, toHeaders, withAppErrors } from "./engine-calls.ts";
import type { Links } from "./links.ts";
import type { Person, SignedIn } from "./person.ts";

const resetLifeMs = 24 * 3600_000;

/** A browser in which the person is signed in. */
export type SignIn = {
  id: string;
  userAgent: string;
  address: string;
  since: string;
  lastUsedAt: string;
  isThis: boolean;
};

type Inside = {
  engine: GetEngine;
  links: Links;
  attempts: Attempts;
  hashOf: (password: string) => Promise<string>;
  signIn: (email: string, password: string, from: From) => Promise<string[]>;
};

/** A person's own account and sessions, and password resets. */
export function createAccount({ db, now, newId }: Deps, { engine, links, attempts, hashOf, signIn }: Inside) {
  const passwordOf = (personId: string) => {
    const own = and(eq(accounts.personId, personId), eq(accounts.providerId, "credential"));
    return db.select({ id: accounts.id, hash: accounts.password }).from(accounts).where(own).get();
  };
  /** Changing the password invalidates all earlier links. */
  const markOf = (personId: string) =>
    new Bun.CryptoHasher("sha256")
      .update(passwordOf(personId)?.hash ?? "none")
      .digest("hex")
      .slice(0, 16);

  const toResetPath = (personId: string) =>
    `/reset/${links.toToken("reset", personId, now() + resetLifeMs, markOf(personId))}`;

  /** Throws not_found, with the reason, for an invalid link. */
  function readReset(token: string): Person {
    const [id = "", expiresAt = "0", mark = ""] = links.readToken("reset", token) ?? [];
    const { name, email } = people;
    const person = db.select({ id: people.id, name, email }).from(people).where(eq(people.id, id)).get();
    if (!person) throw notFound("This link is not valid. Copy the whole link, or ask for a new one.");
    if (mark !== markOf(id)) throw notFound("This link was already used. Sign in, or ask for a new link.");
    if (Number(expiresAt) <= now()) throw notFound("This link has expired. Ask for a new one.");
    return person;
  }

  return {
    rename({ person }: SignedIn, name: string): void {
      db.update(people)
        .set({ name: toName(name), updatedAt: new Date(now()) })
        .where(eq(people.id, person.id))
        .run();
    },

    hasPassword: ({ person }: SignedIn): boolean => passwordOf(person.id) !== undefined,

    /** Signs the person out everywhere else. Returns the cookies of this session. */
    async changePassword({ person }: SignedIn, present: string, next: string, from: From): Promise<string[]> {
      attempts.begin(person.email, from.address);
      // Checked before the current password, so that the error message is ours.
      await hashOf(next);
      const { api } = await engine();
      const body = { currentPassword: present, newPassword: next, revokeOtherSessions: true };
      const { headers } = await withAppErrors(
        api.changePassword({ body, headers: toHeaders(from), returnHeaders: true }),
      );
      attempts.succeed(person.email, from.address);
      return headers.getSetCookie();
    },

    /** Last used first. */
    listSignIns: ({ person, signInId }: SignedIn): SignIn[] =>
      db
        .select()
        .from(signIns)
        .where(and(eq(signIns.personId, person.id), gt(signIns.expiresAt, new Date(now()))))
        .orderBy(desc(signIns.updatedAt))
        .all()
        .map(({ id, userAgent, ipAddress, createdAt, updatedAt }) => ({
          id,
          userAgent: userAgent ?? "",
          address: ipAddress ? shortAddress(ipAddress) : "",
          since: toIso(createdAt),
          lastUsedAt: toIso(updatedAt),
          isThis: id === signInId,
        })),

    /** Signs out one other session of the person; without an ID, all of them except this one. */
    endSignIn({ person, signInId }: SignedIn, id?: string): void {
      const own = and(
        eq(signIns.personId, person.id),
        id === undefined ? ne(signIns.id, signInId) : eq(signIns.id, id),
      );
      db.delete(signIns).where(own).run();
    },

    toResetPath,
    readReset,

    /**
     * The path of a link that lets a member set a new password within a day. Throws conflict if the person is also in
     * an organization of which the caller isn't an owner, because the link would grant access to that one too.
     */
    resetPathFor(org: OrgId, memberId: string, asking: Person): { email: string; path: string } {
      const own = and(eq(members.orgId, org), eq(members.id, memberId), eq(people.id, members.personId));
      const person = db.select({ id: people.id, email: people.email }).from(people).innerJoin(members, own).get();
      if (!person) throw notFound("The member was not found.");
      const orgsOf = (personId: string, role?: "owner") =>
        db
          .select({ org: members.orgId })
          .from(members)
          .where(and(eq(members.personId, personId), role && eq(members.role, role)))
          .all()
          .map((row) => row.org);
      if (!new Set(orgsOf(person.id)).isSubsetOf(new Set(orgsOf(asking.id, "owner"))))
        throw conflict(
          `${person.email} belongs to other organizations too. Ask the operator of this service for a reset link: evald person reset-link ${person.email}`,
        );
      return { email: person.email, path: toResetPath(person.id) };
    },

    /** Sets the password, and signs the person out everywhere and in here. Returns the cookies. */
    async resetPassword(token: string, password: string, from: From): Promise<string[]> {
      readReset(token);
      const hash = await hashOf(password);
      const email = tx(db, (t) => {
        // Check again, because hashing takes time and a link works once.
        const person = readReset(token);
        const known = passwordOf(person.id);
        const at = new Date(now());
        if (known) t.update(accounts).set({ password: hash, updatedAt: at }).where(eq(accounts.id, known.id)).run();
        else
          t.insert(accounts)
            .values({
              id: newId(now()),
              personId: person.id,
              accountId: person.id,
              providerId: "credential",
              password: hash,
              createdAt: at,
              updatedAt: at,
            })
            .run();
        t.delete(signIns).where(eq(signIns.personId, person.id)).run();
        return person.email;
      });
      attempts.succeed(email, from.address);
      return await signIn(email, password, from);
    },
  };
}
